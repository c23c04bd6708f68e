// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl_socket/receive.h"

static struct nccl_wire message_of(unsigned n)
{
	struct nccl_wire message = { .wire = { NCCL_WIRE_MAGIC, NCCL_WIRE_VERSION, (uint16_t)n, 0 } };

	for (unsigned i = 0; i < n && i < NCCL_WIRE_OPERATIONS; i++)
		message.at[i] = (struct nccl_wire_operation){ .bytes = 100,
							      .duration_ns = 1000,
							      .ranks = 4,
							      .operation = NCCL_ALL_GATHER,
							      .algorithm = NCCL_ALGORITHM_RING,
							      .protocol = NCCL_PROTOCOL_LL,
							      .timing = NCCL_TIMING_GPU,
							      .channels = 2 };
	return message;
}

static size_t size_of(const struct nccl_wire *message)
{
	return offsetof(struct nccl_wire, at) + message->wire.n * sizeof(message->at[0]);
}

static int client(struct nccl_receiver *receiver)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_true(plugin_clients_add(nccl_receiver_clients(receiver), fds[1]));
	return fds[0];
}

static void serve(struct nccl_receiver *receiver)
{
	bool channel;

	while (plugin_clients_wait(nccl_receiver_clients(receiver), 0, &channel) > 0)
		assert_false(channel);
}

static int setup(void **state)
{
	*state = nccl_receiver_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	nccl_receiver_free(*state);
	return 0;
}

static struct row_list rows_of(struct nccl_receiver *receiver)
{
	struct row_list rows = { .size = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };

	nccl_receiver_rows(receiver, &rows);
	return rows;
}

static void operations_are_added(void **state)
{
	struct nccl_receiver *receiver = *state;
	struct nccl_wire message = message_of(2);
	const struct nccl_measured *row;
	struct row_list rows;
	int fd = client(receiver);

	message.at[1].timing = NCCL_TIMING_NONE;
	message.at[1].duration_ns = 0;
	message.wire.lost = 5;
	assert_int_equal(send(fd, &message, size_of(&message), 0), size_of(&message));
	serve(receiver);
	rows = rows_of(receiver);
	assert_int_equal(rows.n, 1);
	row = rows.list;
	assert_int_equal(row->calls, 2);
	assert_int_equal(row->timed, 1);
	assert_int_equal(row->bytes, 200);
	assert_int_equal(row->traffic, 400);
	assert_float_equal(row->bus_traffic, 300, 1e-9);
	assert_float_equal(nccl_algorithm_bandwidth(row), 4e8, 1);
	assert_float_equal(nccl_bus_bandwidth(row), 3e8, 1);
	assert_string_equal(row->algorithm, "RING");
	assert_int_equal(row->lost, 5);
	assert_int_equal(row->pid, getpid());
	assert_false(row->gone);
	row_list_done(&rows);
	close(fd);
	serve(receiver);
	rows = rows_of(receiver);
	assert_true(((const struct nccl_measured *)rows.list)->gone);
	row_list_done(&rows);
	rows = rows_of(receiver);
	assert_int_equal(rows.n, 0);
	row_list_done(&rows);
}

static void totals_stay(void **state)
{
	struct nccl_receiver *receiver = *state;
	const struct nccl_totals *totals = nccl_receiver_totals(receiver);
	struct row_list none = { .size = sizeof(struct nccl_measured), .max = 0 };

	for (unsigned i = 0; i < 2; i++) {
		struct nccl_wire message = message_of(3);
		int fd = client(receiver);

		message.at[1].operation = NCCL_SEND;
		message.at[2].algorithm = NCCL_ALGORITHM_TREE;
		for (message.wire.lost = 5; message.wire.lost > 3; message.wire.lost--)
			assert_int_equal(send(fd, &message, size_of(&message), 0), size_of(&message));
		close(fd);
		serve(receiver);
		nccl_receiver_rows(receiver, &none); /* in which they find no room */
	}
	assert_int_equal(none.dropped, 2 * 3);
	assert_int_equal(totals->n, 2);
	assert_int_equal(totals->rows[0].operation, NCCL_ALL_GATHER);
	assert_int_equal(totals->rows[0].ranks, 4);
	assert_int_equal(totals->rows[0].calls, 8);
	assert_int_equal(totals->rows[0].traffic, 8 * 400);
	assert_int_equal(totals->rows[0].pid, 0);
	assert_int_equal(totals->rows[1].calls, 4);
	assert_int_equal(totals->lost, 2 * 5);
}

/* What version 3 of the interface tells. */
static void without_ranks_there_is_a_duration_and_no_bandwidth(void **state)
{
	struct nccl_receiver *receiver = *state;
	struct nccl_wire message = message_of(1);
	const struct nccl_measured *row;
	struct row_list rows;
	int fd = client(receiver);

	message.at[0].ranks = NCCL_RANKS_UNKNOWN;
	message.at[0].timing = NCCL_TIMING_HOST;
	assert_int_equal(send(fd, &message, size_of(&message), 0), size_of(&message));
	serve(receiver);
	rows = rows_of(receiver);
	row = rows.list;
	assert_int_equal(row->timed, 1);
	assert_float_equal(row->seconds, 1e-6, 1e-12);
	assert_true(row->host_timed);
	assert_int_equal(row->traffic, 0);
	assert_true(isnan(nccl_algorithm_bandwidth(row)));
	assert_true(isnan(nccl_bus_bandwidth(row)));
	row_list_done(&rows);
	close(fd);
}

static void a_wrong_message_ends_its_connection(void **state)
{
	struct nccl_receiver *receiver = *state;
	struct nccl_wire message = message_of(1);
	int fd = client(receiver);
	char byte;

	message.at[0].operation = NCCL_OPERATIONS;
	assert_int_equal(send(fd, &message, size_of(&message), 0), size_of(&message));
	serve(receiver);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_int_equal(plugin_clients_refused(nccl_receiver_clients(receiver)), 1);
	close(fd);
}

static void what_is_valid(void **state)
{
	struct nccl_wire message = message_of(NCCL_WIRE_OPERATIONS);

	(void)state;
	assert_true(nccl_wire_is_valid(&message, size_of(&message)));
	assert_false(nccl_wire_is_valid(&message, size_of(&message) - 1));
	assert_false(nccl_wire_is_valid(&message, 4));
	assert_false(nccl_wire_is_valid(&message, 0));
	message.wire.n++;
	assert_false(nccl_wire_is_valid(&message, size_of(&message)));
	message = message_of(0);
	assert_true(nccl_wire_is_valid(&message, size_of(&message)));
#define WRONG(member_, value_)                                                   \
	do {                                                                     \
		message = message_of(1);                                         \
		message.member_ = value_;                                        \
		assert_false(nccl_wire_is_valid(&message, size_of(&message_1))); \
	} while (0)
	struct nccl_wire message_1 = message_of(1);

	WRONG(wire.magic, 0);
	WRONG(wire.version, 2);
	WRONG(at[0].algorithm, NCCL_ALGORITHMS);
	WRONG(at[0].protocol, NCCL_PROTOCOLS);
	WRONG(at[0].timing, NCCL_TIMINGS);
	WRONG(at[0].timing, NCCL_TIMING_NONE);
	WRONG(at[0].duration_ns, 0);
	WRONG(at[0].duration_ns, UINT64_C(3600000000001));
	WRONG(at[0].ranks, (1 << 20) + 1);
#undef WRONG
}

static void rows_of_a_client_are_bounded(void **state)
{
	struct nccl_receiver *receiver = *state;
	struct row_list rows;
	const struct nccl_measured *last;
	int fd = client(receiver);

	for (unsigned i = 0; i < 10; i++) {
		struct nccl_wire message = message_of(NCCL_WIRE_OPERATIONS);

		for (unsigned k = 0; k < NCCL_WIRE_OPERATIONS; k++)
			message.at[k].ranks = i * NCCL_WIRE_OPERATIONS + k + 1;
		assert_int_equal(send(fd, &message, size_of(&message), 0), size_of(&message));
		serve(receiver);
	}
	rows = rows_of(receiver);
	assert_int_equal(rows.n, NCCL_CLIENT_ROWS);
	last = &((const struct nccl_measured *)rows.list)[NCCL_CLIENT_ROWS - 1];
	assert_string_equal(nccl_measured_operation(last), "other");
	assert_int_equal(last->calls, 320 - (NCCL_CLIENT_ROWS - 1));
	row_list_done(&rows);
	close(fd);
}

/* A user's connections do not take the places of others'. */
static void rows_of_a_user_are_bounded(void **state)
{
	struct nccl_receiver *receiver = *state;
	struct row_list rows = { .size = sizeof(struct nccl_measured), .max = 4 };
	int fds[3];

	for (unsigned i = 0; i < 3; i++) {
		struct nccl_wire message = message_of(2);

		message.at[1].operation = NCCL_SEND;
		fds[i] = client(receiver);
		assert_int_equal(send(fds[i], &message, size_of(&message), 0), size_of(&message));
	}
	serve(receiver);
	nccl_receiver_rows(receiver, &rows);
	assert_int_equal(rows.n, 2);
	assert_int_equal(rows.dropped, 4);
	row_list_done(&rows);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
}

static void connections_of_a_user_are_bounded(void **state)
{
	struct nccl_receiver *receiver = *state;
	int fds[2], held[PLUGIN_CLIENTS_MAX / 2];

	for (unsigned i = 0; i < PLUGIN_CLIENTS_MAX / 2; i++)
		held[i] = client(receiver);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_false(plugin_clients_add(nccl_receiver_clients(receiver), fds[1]));
	close(fds[0]);
	for (unsigned i = 0; i < PLUGIN_CLIENTS_MAX / 2; i++)
		close(held[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(operations_are_added, setup, teardown),
		cmocka_unit_test_setup_teardown(totals_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(without_ranks_there_is_a_duration_and_no_bandwidth, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_wrong_message_ends_its_connection, setup, teardown),
		cmocka_unit_test(what_is_valid),
		cmocka_unit_test_setup_teardown(rows_of_a_client_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_of_a_user_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(connections_of_a_user_are_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
