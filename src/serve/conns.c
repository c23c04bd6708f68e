// SPDX-License-Identifier: Apache-2.0
#include "serve/conns.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* How soon to look again when there is no place for as long as those that leave have not left. */
static const int64_t LEAVING_NS = 2 * NSEC_PER_MSEC;

int conns_init(struct conns *conns, unsigned max)
{
	unsigned n = max + CONNS_LEAVING;
	struct conn *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	*conns = (struct conns){ .slots = slots, .n = n, .max = max };
	pthread_mutex_init(&conns->lock, NULL);
	return 0;
}

void conns_done(struct conns *conns)
{
	if (!conns->slots)
		return;
	pthread_mutex_destroy(&conns->lock);
	free(conns->slots);
	conns->slots = NULL;
}

static bool incomplete(const struct conn *c)
{
	return c->state == CONN_FRESH || c->state == CONN_REQUEST;
}

static bool answered(const struct conn *c)
{
	return c->state == CONN_REPLY || c->state == CONN_IDLE;
}

/* Under the lock. The client gets a reset, and the kernel's memory for what it did not read is free at once. */
static void evict(struct conns *conns, struct conn *c)
{
	struct linger abort_at_close = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &abort_at_close, sizeof(abort_at_close));
	shutdown(c->fd, SHUT_RDWR);
	c->leaving = true;
	conns->evicted++;
}

/* Under the lock. Who is to give way; NULL when nobody's grace is over, and then when to ask again. */
static struct conn *victim(struct conns *conns, int64_t *ret_wait_ns)
{
	struct conn *waiting = NULL, *served = NULL;
	int64_t now_ns = clock_mono_ns();
	unsigned waiting_n = 0;

	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->leaving)
			continue;
		if (incomplete(c)) {
			waiting_n++;
			if (!waiting || c->since_ns < waiting->since_ns)
				waiting = c;
		} else if (answered(c) && (!served || c->since_ns < served->since_ns)) {
			served = c;
		}
	}
	/*
	 * A flood's young connections must not push out one that scrapes us every few seconds; but neither may many
	 * answered ones leave so few places that the grace of the others becomes everybody's waiting time.
	 */
	if (waiting && (waiting_n > conns->max / 2 || now_ns - waiting->since_ns >= CONNS_GRACE_NS))
		served = waiting;
	if (served && now_ns - served->since_ns >= CONNS_GRACE_NS)
		return served;
	*ret_wait_ns = served ? served->since_ns + CONNS_GRACE_NS - now_ns : LEAVING_NS;
	return NULL;
}

int64_t conns_room(struct conns *conns)
{
	unsigned all = 0, open = 0;
	int64_t wait_ns = 0;

	pthread_mutex_lock(&conns->lock);
	for (const struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		all += c->state != CONN_FREE;
		open += c->state != CONN_FREE && !c->leaving;
	}
	if (all == conns->n) {
		wait_ns = LEAVING_NS;
	} else if (open >= conns->max) {
		struct conn *c = victim(conns, &wait_ns);

		if (c)
			evict(conns, c);
	}
	pthread_mutex_unlock(&conns->lock);
	return wait_ns;
}

void conns_evict_one(struct conns *conns)
{
	struct conn *c;
	int64_t wait_ns;

	pthread_mutex_lock(&conns->lock);
	c = victim(conns, &wait_ns);
	if (c)
		evict(conns, c);
	pthread_mutex_unlock(&conns->lock);
}

struct conn *conns_add(struct conns *conns, int fd, bool local)
{
	struct conn *slot = NULL;

	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		/*
		 * libmicrohttpd closes without a word what it has no memory to begin. That the number is in use again proves
		 * it for this slot.
		 */
		if (c->state == CONN_HANDED && c->fd == fd)
			c->state = CONN_FREE;
		if (c->state == CONN_FREE && !slot)
			slot = c;
	}
	if (slot) {
		*slot = (struct conn){
			.fd = fd, .state = CONN_HANDED, .local = local, .since_ns = clock_mono_ns()
		};
		conns->accepted++;
	}
	pthread_mutex_unlock(&conns->lock);
	return slot;
}

void conns_refused(struct conns *conns, struct conn *conn)
{
	pthread_mutex_lock(&conns->lock);
	conn->state = CONN_FREE;
	pthread_mutex_unlock(&conns->lock);
}

struct conn *conns_started(struct conns *conns, int fd)
{
	struct conn *found = NULL;

	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->state == CONN_HANDED && c->fd == fd)
			found = c;
	}
	if (found) {
		found->state = CONN_FRESH;
		found->since_ns = clock_mono_ns();
	}
	pthread_mutex_unlock(&conns->lock);
	return found;
}

void conns_enter(struct conns *conns, struct conn *conn, enum conn_state state, const void *page)
{
	pthread_mutex_lock(&conns->lock);
	conn->state = state;
	conn->since_ns = clock_mono_ns();
	conn->page = page;
	pthread_mutex_unlock(&conns->lock);
}

void conns_closed(struct conns *conns, struct conn *conn)
{
	pthread_mutex_lock(&conns->lock);
	*conn = (struct conn){ .fd = -1, .state = CONN_FREE };
	pthread_mutex_unlock(&conns->lock);
}

void conns_drop_page(struct conns *conns, const void *page)
{
	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->state == CONN_REPLY && c->page == page && !c->leaving)
			evict(conns, c);
	}
	pthread_mutex_unlock(&conns->lock);
}

void conns_stats(struct conns *conns, uint64_t *ret_accepted, uint64_t *ret_evicted, unsigned *ret_open)
{
	unsigned open = 0;

	pthread_mutex_lock(&conns->lock);
	for (const struct conn *c = conns->slots; c < conns->slots + conns->n; c++)
		open += c->state != CONN_FREE && !c->leaving;
	*ret_accepted = conns->accepted;
	*ret_evicted = conns->evicted;
	*ret_open = open;
	pthread_mutex_unlock(&conns->lock);
}
