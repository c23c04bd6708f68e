// SPDX-License-Identifier: Apache-2.0
#include "serve/conns.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How soon to check again while there is no free slot because closing connections still exist. */
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
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->state == CONN_HANDED)
			close(c->fd);
	}
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

/* To be called under the lock. The client gets a reset, and the kernel frees unsent data at once. */
static void evict(struct conns *conns, struct conn *c)
{
	struct linger abort_at_close = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &abort_at_close, sizeof(abort_at_close));
	shutdown(c->fd, SHUT_RDWR);
	c->leaving = true;
	conns->evicted++;
}

/* The client's bytes have arrived and libmicrohttpd has not read them yet, so the delay is ours. */
static bool is_our_turn(const struct conn *c)
{
	int unread = 0;

	return ioctl(c->fd, SIOCINQ, &unread) == 0 && unread > 0;
}

static void keep_older(struct conn **oldest, struct conn *c)
{
	if (!*oldest || c->since_ns < (*oldest)->since_ns)
		*oldest = c;
}

/*
 * Whether more than half of them wait for us. Costs a system call for each, so it is only used when the
 * decision is close.
 */
static bool most_keep_us_waiting(const struct conns *conns)
{
	unsigned n = 0;

	for (const struct conn *c = conns->slots; c < conns->slots + conns->n && n <= conns->max / 2; c++)
		n += !c->leaving && incomplete(c) && !is_our_turn(c);
	return n > conns->max / 2;
}

/*
 * To be called under the lock. The connection to be closed; NULL if the grace period of all has not expired,
 * with the time until then.
 */
static struct conn *victim(struct conns *conns, int64_t *ret_wait_ns)
{
	struct conn *waiting = NULL, *served = NULL, *first;
	int64_t now_ns = clock_mono_ns();

	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->leaving)
			continue;
		if (answered(c))
			keep_older(&served, c);
		else if (incomplete(c) && (!waiting || c->since_ns < waiting->since_ns) && !is_our_turn(c))
			waiting = c;
	}
	first = waiting;
	if (served &&
	    (!waiting || (now_ns - waiting->since_ns < CONNS_PATIENCE_NS && !most_keep_us_waiting(conns))))
		first = served;
	if (first && now_ns - first->since_ns >= CONNS_GRACE_NS)
		return first;
	*ret_wait_ns = first ? first->since_ns + CONNS_GRACE_NS - now_ns : LEAVING_NS;
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

bool conns_add(struct conns *conns, int fd, enum conn_origin origin)
{
	struct conn *slot = NULL;

	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n && !slot; c++) {
		if (c->state == CONN_FREE)
			slot = c;
	}
	if (slot) {
		*slot = (struct conn){
			.fd = fd, .state = CONN_HANDED, .origin = origin, .since_ns = clock_mono_ns()
		};
		conns->accepted++;
	}
	pthread_mutex_unlock(&conns->lock);
	return slot;
}

struct conn *conns_take(struct conns *conns)
{
	struct conn *first = NULL;

	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->state == CONN_HANDED)
			keep_older(&first, c);
	}
	if (first)
		first->state = CONN_TAKEN;
	pthread_mutex_unlock(&conns->lock);
	return first;
}

struct conn *conns_started(struct conns *conns, int fd)
{
	struct conn *started = NULL;

	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n && !started; c++) {
		if (c->state == CONN_TAKEN && c->fd == fd)
			started = c;
	}
	if (started) {
		started->state = CONN_FRESH;
		started->since_ns = clock_mono_ns();
	}
	pthread_mutex_unlock(&conns->lock);
	return started;
}

void conns_lost(struct conns *conns, const struct conn *only)
{
	pthread_mutex_lock(&conns->lock);
	for (struct conn *c = conns->slots; c < conns->slots + conns->n; c++) {
		if (c->state == CONN_TAKEN && (!only || c == only))
			*c = (struct conn){ .fd = -1, .state = CONN_FREE };
	}
	pthread_mutex_unlock(&conns->lock);
}

void conns_enter(struct conns *conns, struct conn *conn, enum conn_state state, const void *page)
{
	pthread_mutex_lock(&conns->lock);
	conn->state = state;
	conn->since_ns = clock_mono_ns();
	conn->page = page;
	pthread_mutex_unlock(&conns->lock);
}

bool conns_unanswered(struct conns *conns, const struct conn *conn)
{
	bool unanswered;

	pthread_mutex_lock(&conns->lock);
	unanswered = conn->state == CONN_FRESH && !conn->leaving;
	pthread_mutex_unlock(&conns->lock);
	return unanswered;
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
