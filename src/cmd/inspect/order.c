// SPDX-License-Identifier: Apache-2.0
#include "cmd/inspect/order.h"

#include <errno.h>
#include <stdlib.h>

enum {
	WRITE_BYTES = 64 << 10, /* at a time */
	CHUNK_BYTES = 1 << 20, /* of a part that is not next in order */
	PENDING_BYTES = 3 << 20, /* of all parts that have ended but cannot be written yet */
	PENDING_MAX = 1024,
	SPARE_MAX = 1, /* entries whose memory is reused */
};

struct inspect_pending {
	struct inspect_pending *next;
	uint64_t part;
	struct inspect_chunk chunk;
};

void inspect_chunk_init(struct inspect_chunk *chunk)
{
	strbuf_init(&chunk->text, 0);
	strbuf_init(&chunk->errors, 0);
	chunk->errors_left_out = 0;
}

void inspect_chunk_done(struct inspect_chunk *chunk)
{
	strbuf_done(&chunk->text);
	strbuf_done(&chunk->errors);
}

void inspect_chunk_reset(struct inspect_chunk *chunk)
{
	strbuf_reset(&chunk->text);
	strbuf_reset(&chunk->errors);
	chunk->errors_left_out = 0;
}

void inspect_order_init(struct inspect_order *order, int (*write)(const struct inspect_chunk *, void *),
			void *userdata)
{
	*order = (struct inspect_order){ .write = write, .userdata = userdata };
	pthread_mutex_init(&order->lock, NULL);
	pthread_cond_init(&order->changed, NULL);
}

static void free_list(struct inspect_pending *pending)
{
	while (pending) {
		struct inspect_pending *next = pending->next;

		inspect_chunk_done(&pending->chunk);
		free(pending);
		pending = next;
	}
}

void inspect_order_done(struct inspect_order *order)
{
	free_list(order->pending);
	free_list(order->spare);
	pthread_cond_destroy(&order->changed);
	pthread_mutex_destroy(&order->lock);
}

void inspect_order_restart(struct inspect_order *order)
{
	atomic_store(&order->next_part, 0);
}

/* Called by the thread of the next part in order, without the lock. */
static int write_chunk(struct inspect_order *order, struct inspect_chunk *chunk)
{
	int r = atomic_load(&order->error);

	if (r == 0)
		r = chunk->text.failed || chunk->errors.failed ? -ENOMEM :
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
	while (atomic_load(&order->next_part) != part && atomic_load(&order->error) == 0)
		pthread_cond_wait(&order->changed, &order->lock);
	r = atomic_load(&order->error);
	pthread_mutex_unlock(&order->lock);
	return r;
}

int inspect_order_flush(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	int r = atomic_load(&order->error);

	if (r == 0 && chunk->text.failed)
		r = inspect_order_await(order, part);
	else if (r == 0 && chunk->text.len >= CHUNK_BYTES)
		r = inspect_order_await(order, part);
	else if (r < 0 || chunk->text.len < WRITE_BYTES || atomic_load(&order->next_part) != part)
		return r;
	return r < 0 ? r : write_chunk(order, chunk);
}

static size_t bytes_of(const struct inspect_chunk *chunk)
{
	return chunk->text.len + chunk->errors.len;
}

/* Writes the following parts that have ended. Called with the lock, which is released while writing. */
static void drain(struct inspect_order *order)
{
	struct inspect_pending **at = &order->pending;

	while (*at && (*at)->part != atomic_load(&order->next_part))
		at = &(*at)->next;
	while (*at) {
		struct inspect_pending *pending = *at;

		*at = pending->next;
		order->pending_n--;
		order->pending_bytes -= bytes_of(&pending->chunk);
		pthread_mutex_unlock(&order->lock);
		write_chunk(order, &pending->chunk);
		pthread_mutex_lock(&order->lock);
		if (order->spare_n < SPARE_MAX) {
			pending->next = order->spare;
			order->spare = pending;
			order->spare_n++;
		} else {
			pending->next = NULL;
			free_list(pending);
		}
		atomic_fetch_add(&order->next_part, 1);
		for (at = &order->pending; *at && (*at)->part != atomic_load(&order->next_part);)
			at = &(*at)->next;
	}
}

/* Stores @chunk and gives it the memory of an empty one. Called with the lock. False: a limit is reached. */
static bool store_part(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	struct inspect_pending *pending = order->spare;
	struct inspect_chunk empty;

	if (order->pending_n >= PENDING_MAX || order->pending_bytes + bytes_of(chunk) > PENDING_BYTES)
		return false;
	if (pending) {
		order->spare = pending->next;
		order->spare_n--;
	} else {
		pending = malloc(sizeof(*pending));
		if (!pending)
			return false;
		inspect_chunk_init(&pending->chunk);
	}
	empty = pending->chunk;
	*pending = (struct inspect_pending){ .next = order->pending, .part = part, .chunk = *chunk };
	*chunk = empty;
	order->pending = pending;
	order->pending_n++;
	order->pending_bytes += bytes_of(&pending->chunk);
	return true;
}

int inspect_order_end(struct inspect_order *order, uint64_t part, struct inspect_chunk *chunk)
{
	pthread_mutex_lock(&order->lock);
	while (atomic_load(&order->next_part) != part) {
		/* After an error nothing is written, but the parts still end in order. */
		if (atomic_load(&order->error))
			inspect_chunk_reset(chunk);
		if (store_part(order, part, chunk))
			goto out;
		pthread_cond_wait(&order->changed, &order->lock);
	}
	pthread_mutex_unlock(&order->lock);
	write_chunk(order, chunk);
	pthread_mutex_lock(&order->lock);
	atomic_fetch_add(&order->next_part, 1);
	drain(order);
	pthread_cond_broadcast(&order->changed);
out:
	pthread_mutex_unlock(&order->lock);
	return atomic_load(&order->error);
}
