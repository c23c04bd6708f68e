// SPDX-License-Identifier: Apache-2.0
#include "cmd/inspect/order.h"

#include <errno.h>
#include <stdlib.h>

enum {
	WRITE_BYTES = 64 << 10, /* at a time */
	CHUNK_BYTES = 1 << 20, /* of a part that waits for its turn */
	KEPT_BYTES = 3 << 20, /* of all that have ended before theirs */
	KEPT_MAX = 1024,
	SPARE_MAX = 1, /* with their memory */
};

struct inspect_kept {
	struct inspect_kept *next;
	uint64_t part;
	struct inspect_chunk chunk;
};

void inspect_chunk_init(struct inspect_chunk *chunk)
{
	strbuf_init(&chunk->text, 0);
	strbuf_init(&chunk->troubles, 0);
	chunk->troubles_left_out = 0;
}

void inspect_chunk_done(struct inspect_chunk *chunk)
{
	strbuf_done(&chunk->text);
	strbuf_done(&chunk->troubles);
}

void inspect_chunk_reset(struct inspect_chunk *chunk)
{
	strbuf_reset(&chunk->text);
	strbuf_reset(&chunk->troubles);
	chunk->troubles_left_out = 0;
}

void inspect_order_init(struct inspect_order *order, int (*write)(const struct inspect_chunk *, void *),
			void *userdata)
{
	*order = (struct inspect_order){ .write = write, .userdata = userdata };
	pthread_mutex_init(&order->lock, NULL);
	pthread_cond_init(&order->changed, NULL);
}

static void free_list(struct inspect_kept *kept)
{
	while (kept) {
		struct inspect_kept *next = kept->next;

		inspect_chunk_done(&kept->chunk);
		free(kept);
		kept = next;
	}
}

void inspect_order_done(struct inspect_order *order)
{
	free_list(order->kept);
	free_list(order->spare);
	pthread_cond_destroy(&order->changed);
	pthread_mutex_destroy(&order->lock);
}

void inspect_order_again(struct inspect_order *order)
{
	atomic_store(&order->turn, 0);
}

/* By whose turn it is, without the lock. */
static int write_chunk(struct inspect_order *order, struct inspect_chunk *chunk)
{
	int r = atomic_load(&order->error);

	if (r == 0)
		r = chunk->text.failed || chunk->troubles.failed ? -ENOMEM :
								   order->write(chunk, order->userdata);
	inspect_chunk_reset(chunk);
	if (r < 0) {
		pthread_mutex_lock(&order->lock);
		atomic_store(&order->error, r);
		pthread_cond_broadcast(&order->changed);
		pthread_mutex_unlock(&order->lock);
	}
	return r;
}

int inspect_order_await(struct inspect_order *order, uint64_t part)
{
	int r;

	pthread_mutex_lock(&order->lock);
	while (atomic_load(&order->turn) != part && atomic_load(&order->error) == 0)
		pthread_cond_wait(&order->changed, &order->lock);
	r = atomic_load(&order->error);
	pthread_mutex_unlock(&order->lock);
	return r;
}

int inspect_order_more(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	int r = atomic_load(&order->error);

	if (r == 0 && chunk->text.failed)
		r = inspect_order_await(order, part);
	else if (r == 0 && chunk->text.len >= CHUNK_BYTES)
		r = inspect_order_await(order, part);
	else if (r < 0 || chunk->text.len < WRITE_BYTES || atomic_load(&order->turn) != part)
		return r;
	return r < 0 ? r : write_chunk(order, chunk);
}

static size_t bytes_of(const struct inspect_chunk *chunk)
{
	return chunk->text.len + chunk->troubles.len;
}

/* What the next parts left, if they have ended; under the lock, which is let go while writing. */
static void drain(struct inspect_order *order)
{
	struct inspect_kept **at = &order->kept;

	while (*at && (*at)->part != atomic_load(&order->turn))
		at = &(*at)->next;
	while (*at) {
		struct inspect_kept *kept = *at;

		*at = kept->next;
		order->kept_n--;
		order->kept_bytes -= bytes_of(&kept->chunk);
		pthread_mutex_unlock(&order->lock);
		write_chunk(order, &kept->chunk);
		pthread_mutex_lock(&order->lock);
		if (order->spare_n < SPARE_MAX) {
			kept->next = order->spare;
			order->spare = kept;
			order->spare_n++;
		} else {
			kept->next = NULL;
			free_list(kept);
		}
		atomic_fetch_add(&order->turn, 1);
		for (at = &order->kept; *at && (*at)->part != atomic_load(&order->turn);)
			at = &(*at)->next;
	}
}

/* Under the lock: @chunk's memory for that of a spare one, which is empty. False: there is no room for it. */
static bool part_keep(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	struct inspect_kept *kept = order->spare;
	struct inspect_chunk empty;

	if (order->kept_n >= KEPT_MAX || order->kept_bytes + bytes_of(chunk) > KEPT_BYTES)
		return false;
	if (kept) {
		order->spare = kept->next;
		order->spare_n--;
	} else {
		kept = malloc(sizeof(*kept));
		if (!kept)
			return false;
		inspect_chunk_init(&kept->chunk);
	}
	empty = kept->chunk;
	*kept = (struct inspect_kept){ .next = order->kept, .part = part, .chunk = *chunk };
	*chunk = empty;
	order->kept = kept;
	order->kept_n++;
	order->kept_bytes += bytes_of(&kept->chunk);
	return true;
}

int inspect_order_end(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	pthread_mutex_lock(&order->lock);
	while (atomic_load(&order->turn) != part) {
		/* What nobody will write need not be kept; its turn comes and goes all the same. */
		if (atomic_load(&order->error))
			inspect_chunk_reset(chunk);
		if (part_keep(order, part, chunk))
			goto out;
		pthread_cond_wait(&order->changed, &order->lock);
	}
	pthread_mutex_unlock(&order->lock);
	write_chunk(order, chunk);
	pthread_mutex_lock(&order->lock);
	atomic_fetch_add(&order->turn, 1);
	drain(order);
	pthread_cond_broadcast(&order->changed);
out:
	pthread_mutex_unlock(&order->lock);
	return atomic_load(&order->error);
}
