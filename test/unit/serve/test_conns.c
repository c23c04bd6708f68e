// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/conns.h"

enum { MAX_OPEN = 4 };

static struct conns conns;
/* Our clients' ends, by the number of the connection. */
static int peers[64];
static unsigned n_peers;

static int setup(void **state)
{
	(void)state;
	clock_freeze(true);
	n_peers = 0;
	return conns_init(&conns, MAX_OPEN);
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_peers; i++)
		close(peers[i]);
	for (unsigned i = 0; i < conns.n; i++) {
		if (conns.slots[i].state > CONN_HANDED)
			close(conns.slots[i].fd);
	}
	conns_done(&conns);
	clock_freeze(false);
	return 0;
}

/* A connection in this state, that entered it this long after the one before. */
static struct conn *open_in(enum conn_state state)
{
	struct conn *c;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	peers[n_peers++] = pair[1];
	assert_true(conns_add(&conns, pair[0], false));
	c = conns_take(&conns);
	assert_non_null(c);
	assert_int_equal(c->fd, pair[0]);
	conns_enter(&conns, c, CONN_FRESH, NULL);
	if (state != CONN_FRESH)
		conns_enter(&conns, c, state, NULL);
	clock_advance(NSEC_PER_MSEC);
	return c;
}

static void close_conn(struct conn *c)
{
	close(c->fd);
	conns_closed(&conns, c);
}

static bool peer_sees_end(unsigned i)
{
	char byte;

	return recv(peers[i], &byte, 1, MSG_DONTWAIT) == 0;
}

static unsigned open_now(void)
{
	uint64_t accepted, evicted;
	unsigned open;

	conns_stats(&conns, &accepted, &evicted, &open);
	return open;
}

static void test_room_until_the_bound(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MAX_OPEN; i++) {
		assert_int_equal(conns_room(&conns), 0);
		open_in(CONN_IDLE);
	}
	assert_int_equal(open_now(), MAX_OPEN);
	/* All are younger than their grace: a new one waits until the oldest's is over. */
	assert_int_equal(conns_room(&conns), CONNS_GRACE_NS - MAX_OPEN * NSEC_PER_MSEC);
	clock_advance(CONNS_GRACE_NS);
	assert_int_equal(conns_room(&conns), 0);
	assert_int_equal(open_now(), MAX_OPEN - 1);
	assert_true(peer_sees_end(0));
}

static void test_oldest_incomplete_goes_before_any_answered(void **state)
{
	struct conn *c[MAX_OPEN];

	(void)state;
	c[0] = open_in(CONN_IDLE);
	c[1] = open_in(CONN_REQUEST);
	c[2] = open_in(CONN_FRESH);
	c[3] = open_in(CONN_REQUEST);
	clock_advance(CONNS_GRACE_NS);
	assert_int_equal(conns_room(&conns), 0);
	assert_true(c[1]->leaving && !c[0]->leaving && !c[2]->leaving && !c[3]->leaving);
	/* There is a place now; nobody else goes until it is taken. */
	assert_int_equal(conns_room(&conns), 0);
	assert_true(!c[2]->leaving);
	c[1] = open_in(CONN_FRESH);
	assert_int_equal(conns_room(&conns), 0);
	assert_true(c[2]->leaving);
}

static void test_few_incomplete_have_patience(void **state)
{
	struct conn *idle, *reply;

	(void)state;
	idle = open_in(CONN_IDLE);
	reply = open_in(CONN_REPLY);
	open_in(CONN_IDLE);
	open_in(CONN_FRESH);
	clock_advance(CONNS_GRACE_NS);
	assert_int_equal(conns_room(&conns), 0);
	assert_true(idle->leaving);
	close_conn(idle);
	open_in(CONN_IDLE);
	clock_advance(CONNS_PATIENCE_NS);
	assert_int_equal(conns_room(&conns), 0);
	/* Now the incomplete one has had its patience. */
	assert_true(!reply->leaving && peer_sees_end(3));
}

static void test_unread_bytes_are_not_the_clients_fault(void **state)
{
	struct conn *c[MAX_OPEN];

	(void)state;
	for (unsigned i = 0; i < MAX_OPEN; i++)
		c[i] = open_in(CONN_FRESH);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send(peers[i], "G", 1, 0), 1);
	clock_advance(CONNS_PATIENCE_NS);
	assert_int_equal(conns_room(&conns), 0);
	assert_true(c[2]->leaving && !c[0]->leaving && !c[1]->leaving && !c[3]->leaving);
}

static void test_those_who_leave_are_bounded(void **state)
{
	unsigned n = 0;

	(void)state;
	while (n_peers < MAX_OPEN + CONNS_LEAVING) {
		assert_int_equal(conns_room(&conns), 0);
		open_in(CONN_FRESH);
		clock_advance(CONNS_GRACE_NS);
	}
	assert_true(conns_room(&conns) > 0);
	assert_false(conns_add(&conns, peers[0], false));
	for (unsigned i = 0; i < conns.n; i++)
		n += conns.slots[i].leaving;
	assert_int_equal(n, CONNS_LEAVING);
	assert_int_equal(open_now(), MAX_OPEN);
	close_conn(&conns.slots[0]);
	assert_int_equal(conns_room(&conns), 0);
}

/*
 * Until libmicrohttpd has it, a descriptor is not ours to shut down: it may be closed and its number be
 * another's.
 */
static void test_handed_and_taken_are_left_alone(void **state)
{
	int pair[2];

	(void)state;
	for (unsigned i = 0; i < MAX_OPEN; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		peers[n_peers++] = pair[1];
		assert_true(conns_add(&conns, pair[0], false));
		clock_advance(1);
	}
	assert_ptr_equal(conns_take(&conns), &conns.slots[0]);
	clock_advance(NSEC_PER_SEC);
	assert_true(conns_room(&conns) > 0);
	conns_evict_one(&conns);
	for (unsigned i = 0; i < MAX_OPEN; i++)
		assert_false(conns.slots[i].leaving);
	/* First come, first served. */
	assert_ptr_equal(conns_take(&conns), &conns.slots[1]);
	assert_ptr_equal(conns_take(&conns), &conns.slots[2]);
	assert_ptr_equal(conns_take(&conns), &conns.slots[3]);
	assert_null(conns_take(&conns));
}

/*
 * libmicrohttpd tells later, and in its own order, which of those that it was given it serves; of the others
 * it says nothing.
 */
static void test_started_and_lost(void **state)
{
	struct conn *c[3];
	int fds[3], pair[2];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		peers[n_peers++] = pair[1];
		assert_true(conns_add(&conns, fds[i] = pair[0], i == 1));
		clock_advance(1);
	}
	c[0] = conns_take(&conns);
	c[1] = conns_take(&conns);
	assert_ptr_equal(conns_started(&conns, fds[1]), c[1]);
	assert_true(c[1]->origin && c[1]->state == CONN_FRESH);
	/* Once only, and what is not taken yet has not begun. */
	assert_null(conns_started(&conns, fds[1]));
	assert_null(conns_started(&conns, fds[2]));
	c[2] = conns_take(&conns);
	close(fds[0]);
	conns_lost(&conns, c[0]);
	assert_int_equal(c[0]->state, CONN_FREE);
	assert_int_equal(c[2]->state, CONN_TAKEN);
	close(fds[2]);
	conns_lost(&conns, NULL);
	assert_int_equal(c[2]->state, CONN_FREE);
	assert_int_equal(c[1]->state, CONN_FRESH);
	conns_lost(&conns, c[1]);
	assert_int_equal(c[1]->state, CONN_FRESH);
}

static void test_readers_of_a_page_go(void **state)
{
	struct conn *c[MAX_OPEN];
	int page, other;

	(void)state;
	for (unsigned i = 0; i < MAX_OPEN; i++)
		c[i] = open_in(CONN_FRESH);
	conns_enter(&conns, c[0], CONN_REPLY, &page);
	conns_enter(&conns, c[1], CONN_REPLY, &other);
	conns_enter(&conns, c[2], CONN_REPLY, &page);
	conns_enter(&conns, c[3], CONN_REPLY, &page);
	conns_enter(&conns, c[3], CONN_IDLE, NULL);
	conns_drop_page(&conns, &page);
	assert_true(c[0]->leaving && !c[1]->leaving && c[2]->leaving && !c[3]->leaving);
}

static void test_unanswered(void **state)
{
	struct conn *fresh = open_in(CONN_FRESH), *idle = open_in(CONN_IDLE);

	(void)state;
	assert_true(conns_unanswered(&conns, fresh));
	assert_false(conns_unanswered(&conns, idle));
	clock_advance(CONNS_PATIENCE_NS);
	conns_evict_one(&conns);
	assert_false(conns_unanswered(&conns, fresh));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_room_until_the_bound),
		CASE(test_oldest_incomplete_goes_before_any_answered),
		CASE(test_few_incomplete_have_patience),
		CASE(test_unread_bytes_are_not_the_clients_fault),
		CASE(test_those_who_leave_are_bounded),
		CASE(test_handed_and_taken_are_left_alone),
		CASE(test_started_and_lost),
		CASE(test_readers_of_a_page_go),
		CASE(test_unanswered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
