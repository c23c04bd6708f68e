// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "push/queue.h"

#define BLOCK 4096

static char dir[64];
static int folder;
static struct queue *queue;

static void reopen(uint64_t max_bytes)
{
	queue_free(queue);
	queue = NULL;
	assert_int_equal(queue_new(folder, max_bytes, 0, &queue), 0);
}

static int begin(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/gpusonde-test-queue-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	folder = queue_open_folder(dir, "push");
	if (folder < 0)
		return -1;
	return queue_new(folder, 4 * BLOCK, 0, &queue);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	queue_free(queue);
	queue = NULL;
	close(folder);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static uint64_t add(const char *text)
{
	const struct batch batch = {
		.data = (uint8_t *)text, .n = strlen(text), .real_ns = 7, .samples = 3, .format = 1
	};
	uint64_t number;

	assert_int_equal(queue_add(queue, &batch, &number), 0);
	return number;
}

static void first_is(const char *text)
{
	struct batch batch;
	uint64_t number;

	assert_int_equal(queue_first(queue, &number, &batch), 0);
	assert_int_equal(batch.n, strlen(text));
	assert_memory_equal(batch.data, text, batch.n);
	assert_true(batch.real_ns == 7 && batch.samples == 3 && batch.format == 1);
	batch_done(&batch);
}

static void is_empty(void)
{
	struct batch batch;
	uint64_t number;

	assert_int_equal(queue_first(queue, &number, &batch), -ENOENT);
}

static struct queue_figures figures(void)
{
	struct queue_figures f;

	queue_take_figures(queue, &f);
	return f;
}

static void keeps_the_order_over_restarts(void **state)
{
	uint64_t one = add("one"), two = add("two");

	(void)state;
	assert_true(one != 0 && two > one);
	reopen(4 * BLOCK);
	assert_int_equal(figures().batches, 2);
	assert_int_equal(figures().bytes, 2 * BLOCK);
	first_is("one");
	queue_remove(queue, one);
	queue_remove(queue, one);
	first_is("two");
	assert_true(add("three") > two);
	queue_remove(queue, two);
	reopen(4 * BLOCK);
	first_is("three");
}

static void drops_the_oldest_but_what_is_held(void **state)
{
	uint64_t first = add("0");

	(void)state;
	queue_hold(queue, first);
	for (char text[2] = "1"; *text < '6'; ++*text)
		add(text);
	assert_int_equal(figures().full, 2);
	assert_int_equal(figures().full, 0);
	assert_int_equal(figures().bytes, 4 * BLOCK);
	first_is("0");
	queue_hold(queue, 0);
	queue_remove(queue, first);
	first_is("3");
	/* A smaller bound holds for what is there already. */
	reopen(BLOCK);
	assert_int_equal(figures().batches, 1);
	first_is("5");
}

static void refuses_what_can_never_fit(void **state)
{
	static uint8_t large[5 * BLOCK];
	const struct batch batch = { .data = large, .n = sizeof(large) }, small = { .data = large, .n = 1 };
	uint64_t number, held;

	(void)state;
	add("kept");
	assert_int_equal(queue_add(queue, &batch, &number), -EFBIG);
	first_is("kept");
	reopen(BLOCK);
	assert_int_equal(figures().batches, 1);
	assert_int_equal(queue_add(queue, &small, &held), 0);
	queue_hold(queue, held);
	assert_int_equal(queue_add(queue, &small, &number), -EFBIG);
}

static void spoil(const char *name, off_t at, const char *text, off_t size)
{
	_cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
	if (size >= 0)
		assert_int_equal(ftruncate(fd, size), 0);
}

static void drops_and_counts_torn_files(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add("something");
	spoil("0000000000000004.batch", 24, "XX", -1); /* how many samples it has */
	reopen(8 * BLOCK);
	spoil("0000000000000001.batch", 36, "X", -1); /* within the batch */
	spoil("0000000000000002.batch", 0, "", 34); /* cut short */
	spoil("0000000000000003.batch", 0, "gspush1", -1); /* another program's */
	add("whole");
	first_is("whole");
	assert_int_equal(figures().torn, 4);
	assert_int_equal(faccessat(folder, "0000000000000001.batch", F_OK, 0), -1);
}

/* The oldest that have waited for too long, but not the one that is under way. */
static void drops_what_is_old(void **state)
{
	const struct timespec old[2] = { { .tv_sec = time(NULL) - 100 }, { .tv_sec = time(NULL) - 100 } };

	(void)state;
	add("one");
	add("two");
	add("three");
	assert_int_equal(utimensat(folder, "0000000000000001.batch", old, 0), 0);
	assert_int_equal(utimensat(folder, "0000000000000002.batch", old, 0), 0);
	queue_free(queue);
	assert_int_equal(queue_new(folder, 4 * BLOCK, 1000 * NSEC_PER_SEC, &queue), 0);
	first_is("one");
	queue_free(queue);
	assert_int_equal(queue_new(folder, 4 * BLOCK, 50 * NSEC_PER_SEC, &queue), 0);
	assert_int_equal(figures().old, 2);
	first_is("three");
	assert_int_equal(faccessat(folder, "0000000000000001.batch", F_OK, 0), -1);
}

/* What was being written when the process ended, and what is nobody's. */
static void ignores_what_is_no_batch(void **state)
{
	(void)state;
	spoil("new", 0, "half", -1);
	spoil("1.batch", 0, "x", -1);
	spoil("0000000000000000.batch", 0, "x", -1);
	spoil("000000000000000z.batch", 0, "x", -1);
	assert_int_equal(symlinkat("/etc/passwd", folder, "0000000000000007.batch"), 0);
	reopen(4 * BLOCK);
	is_empty();
	assert_int_equal(faccessat(folder, "new", F_OK, 0), -1);
	assert_int_equal(faccessat(folder, "1.batch", F_OK, 0), 0);
	assert_int_equal(figures().torn, 0);
}

static void a_number_is_not_used_twice(void **state)
{
	uint64_t number = add("one");

	(void)state;
	queue_remove(queue, number);
	is_empty();
	assert_true(add("two") > number);
}

/* Only its user may enter; a process that has the descriptor may write. */
static void the_folder_is_private(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/push", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(chmod(path, 0755), 0);
	close(folder);
	folder = queue_open_folder(dir, "push");
	assert_true(folder >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(queue_open_folder("/nowhere", "push"), -ENOENT);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(queue_open_folder(dir, "push"), -EPERM);
	}
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keeps_the_order_over_restarts), TEST(drops_the_oldest_but_what_is_held),
		TEST(refuses_what_can_never_fit),    TEST(drops_and_counts_torn_files),
		TEST(ignores_what_is_no_batch),      TEST(a_number_is_not_used_twice),
		TEST(the_folder_is_private),         TEST(drops_what_is_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
