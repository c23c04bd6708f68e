// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/parts.h"

enum { ROW = 1000, MAX_ROWS = 300 };

static int channel[2] = { -1, -1 };
static struct row_list rows = { .size = ROW, .max = MAX_ROWS };
static struct arriving tables[2];
static struct part part;

static int begin(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		tables[i] = (struct arriving){ .row_bytes = ROW, .max = MAX_ROWS };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel);
}

static int end(void **state)
{
	(void)state;
	parts_forget(tables, 2);
	row_list_done(&rows);
	if (channel[0] >= 0)
		close(channel[0]);
	close(channel[1]);
	return 0;
}

static void fill(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memset(row_list_add(&rows), (int)i, ROW);
}

/* A process of its own sends, since not all messages fit into a socket. */
static void send_all(uint32_t table, uint64_t digest)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(parts_send(channel[0], table, digest, &rows) == 0 ? 0 : 1);
	close(channel[0]);
	channel[0] = -1;
}

/* Takes as many messages as there are. */
static unsigned receive_all(void)
{
	unsigned n = 0;
	ssize_t bytes;
	int fd, status;

	while ((bytes = receive_with_fd(channel[1], &part, sizeof(part), &fd)) > 0) {
		assert_true(parts_take(tables, 2, &part, (size_t)bytes));
		n++;
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	return n;
}

static void a_large_table_arrives_in_parts(void **state)
{
	const uint64_t digest[2] = { 0, 5 }, known[2] = { 0 };

	(void)state;
	fill(MAX_ROWS);
	send_all(1, 5);
	assert_int_equal(receive_all(), 3);
	assert_int_equal(tables[1].n, MAX_ROWS);
	assert_memory_equal(tables[1].list, rows.list, (size_t)ROW * MAX_ROWS);
	assert_true(parts_are_whole(tables, 2, digest, known));
}

static void an_empty_table_arrives(void **state)
{
	const uint64_t digest[2] = { 3, 4 }, known[2] = { 9, 4 };

	(void)state;
	send_all(0, 3);
	assert_int_equal(receive_all(), 1);
	assert_non_null(tables[0].list);
	assert_true(parts_are_whole(tables, 2, digest, known));
}

/* Each member out of its bounds. */
static void what_is_no_next_part_is_refused(void **state)
{
	const struct part_header good = {
		.message = PART_ROWS, .digest = 1, .rows = 4, .n = 2, .row_bytes = ROW
	};
	const size_t n = sizeof(good) + 2 * ROW;
	struct part_header bad[9];

	(void)state;
	for (unsigned i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].message = PART_OTHERS;
	bad[1].table = 2;
	bad[2].digest = 0;
	bad[3].rows = MAX_ROWS + 1;
	bad[4].at = 1;
	bad[5].n = 3;
	bad[6].row_bytes = ROW - 1;
	bad[7].rows = 1;
	bad[8].n = UINT32_MAX;
	for (unsigned i = 0; i < 9; i++) {
		part.header = bad[i];
		assert_false(parts_take(tables, 2, &part, n));
		parts_forget(tables, 2);
	}
	part.header = good;
	assert_false(parts_take(tables, 2, &part, n - 1));
	assert_false(parts_take(tables, 2, &part, sizeof(good) - 1));
	assert_true(parts_take(tables, 2, &part, n));
	assert_false(parts_take(tables, 2, &part, n)); /* it comes again */
	part.header.at = 2;
	part.header.digest = 2;
	assert_false(parts_take(tables, 2, &part, n)); /* of another table */
}

static void a_cut_or_foreign_table_is_not_whole(void **state)
{
	const uint64_t known[2] = { 7, 0 };

	(void)state;
	assert_true(parts_are_whole(tables, 2, (uint64_t[]){ 7, 0 }, known));
	assert_false(parts_are_whole(tables, 2, (uint64_t[]){ 8, 0 }, known));
	part.header = (struct part_header){
		.message = PART_ROWS, .digest = 1, .rows = 4, .n = 2, .row_bytes = ROW
	};
	assert_true(parts_take(tables, 2, &part, sizeof(part.header) + 2 * ROW));
	assert_false(parts_are_whole(tables, 2, (uint64_t[]){ 1, 0 }, known));
	part.header.at = 2;
	assert_true(parts_take(tables, 2, &part, sizeof(part.header) + 2 * ROW));
	assert_true(parts_are_whole(tables, 2, (uint64_t[]){ 1, 0 }, known));
	assert_false(parts_are_whole(tables, 2, (uint64_t[]){ 2, 0 }, known));
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_large_table_arrives_in_parts),
		TEST(an_empty_table_arrives),
		TEST(what_is_no_next_part_is_refused),
		TEST(a_cut_or_foreign_table_is_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
