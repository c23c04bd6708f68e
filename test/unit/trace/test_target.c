// SPDX-License-Identifier: Apache-2.0
/* Found in a /proc of our own writing, told by records of our own making. */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "targets.h"

enum { DRIVER = LIBRARY_BIT(PROBE_CUDA) };

static void a_scan_finds_files_once_and_processes_each(void **state)
{
	struct fixture *f = *state;
	uint64_t ino = make_file(f, "libcuda.so.550.1");
	struct target_stats stats;
	struct stat st;

	NEED_CALL(openat2);
	make_file(f, "libother.so");
	make_process(f, 1001, "libcuda.so.550.1", 7);
	make_process(f, 1002, "libother.so", 7);
	make_process(f, 1003, "libcuda.so.550.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 0, ino), 2);
	assert_int_equal(told(f, TOLD_PROCESS, 1002, 0), 0);
	targets_stats(f->targets, &stats);
	assert_int_equal(stats.files, 1);
	assert_int_equal(stats.processes, 2);
	assert_false(stats.by_records);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_non_null(targets_find(f->targets, st.st_dev, ino));
	assert_null(targets_find(f->targets, st.st_dev + 1, ino));
}

static void three_thousand_processes(void **state)
{
	struct fixture *f = *state;
	struct target_stats stats;
	int64_t begin;

	NEED_CALL(openat2);
	make_file(f, "libcuda.so.1");
	for (pid_t pid = 1; pid <= 3000; pid++)
		make_process(f, 1000000 + pid, pid % 3 ? NULL : "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	begin = clock_mono_ns();
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	printf("# 3,000 processes scanned in %lld ms, of which the thread's %lld\n",
	       (long long)((clock_mono_ns() - begin) / NSEC_PER_MSEC),
	       (long long)(f->targets->scan.cost_ns / NSEC_PER_MSEC));
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 0, 0), 1000);
	targets_stats(f->targets, &stats);
	assert_int_equal(stats.processes, 1000);
	assert_int_equal(stats.overflow, 0);
}

static void pids_come_again_and_files_are_unmapped(void **state)
{
	struct fixture *f = *state;

	NEED_CALL(openat2);
	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	make_process(f, 1002, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	make_process(f, 1001, "libcuda.so.1", 8);
	make_process(f, 1002, NULL, 7);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 2);
	assert_int_equal(told(f, TOLD_GONE, 1001, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1001, 0), 2);
	assert_int_equal(told(f, TOLD_PROCESS, 1002, 0), 1);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, 0), 0);
	make_process(f, 1001, NULL, 8);
	until_told(f, TOLD_FILE_GONE, 0, 1);
}

static void a_replaced_file_is_another(void **state)
{
	struct fixture *f = *state;
	uint64_t first = make_file(f, "libcuda.so.1"), second;
	char from[256], to[256];

	NEED_CALL(openat2);
	make_process(f, 1001, "libcuda.so.1", 7);
	second = make_file(f, "new");
	snprintf(from, sizeof(from), "%s/new", f->dir);
	snprintf(to, sizeof(to), "%s/libcuda.so.1", f->dir);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	assert_int_equal(rename(from, to), 0);
	make_process(f, 1002, "libcuda.so.1", 7);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 2);
	assert_int_equal(told(f, TOLD_PROCESS, 1001, first), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1002, second), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 0, 0), 2);
}

/* What the path names now is not what was mapped: never opened. */
static void a_path_that_names_another_file(void **state)
{
	struct fixture *f = *state;
	char from[256], to[256];

	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	make_file(f, "new");
	snprintf(from, sizeof(from), "%s/new", f->dir);
	snprintf(to, sizeof(to), "%s/libcuda.so.1", f->dir);
	assert_int_equal(rename(from, to), 0);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 0);
}

static void nobody_asks_twice_until_the_file_changes(void **state)
{
	struct fixture *f = *state;

	NEED_CALL(openat2);
	f->answer = -ENOENT;
	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(targets_scan(f->targets), 0);
		until_scans(f, i);
	}
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 0, 0), 0);
	f->answer = 0;
	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	until_told(f, TOLD_PROCESS, 1001, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 2);
}

/* A user who touches a large one of his does not have us read it all the time. */
static void what_takes_long_to_read_is_not_read_at_each_change(void **state)
{
	struct fixture *f = *state;
	struct target_stats stats;

	NEED_CALL(openat2);
	f->answer = -ENOENT;
	f->reads_ns = 900 * NSEC_PER_MSEC; /* so not for 45 s */
	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	for (unsigned i = 1; i <= 3; i++) {
		make_file(f, "libcuda.so.1");
		assert_int_equal(targets_scan(f->targets), 0);
		until_scans(f, i);
	}
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	targets_stats(f->targets, &stats);
	assert_int_equal(stats.files_refused, 2);
}

static void a_fifo_is_not_opened(void **state)
{
	struct fixture *f = *state;
	char path[256];
	struct target_stats stats;

	snprintf(path, sizeof(path), "%s/libcuda.so.1", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	make_process(f, 1001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 0);
	targets_stats(f->targets, &stats);
	assert_int_equal(stats.files_refused, 1);
}

/* ---- records ---- */

static void say(struct fixture *f, enum perf_record_kind kind, uint64_t time_ns, pid_t pid, pid_t parent)
{
	const struct perf_record record = { .kind = kind,
					    .time_ns = time_ns,
					    .pid = (uint32_t)pid,
					    .tid = (uint32_t)pid,
					    .parent = (uint32_t)parent,
					    .lost = 3 };

	targets_record(f->targets, &record);
}

/* Of any file: what lay there before may have been known. */
static void a_mapping_is_told(void **state)
{
	struct fixture *f = *state;
	const struct perf_record record = { .kind = PERF_RECORD_KIND_MAP,
					    .time_ns = 1,
					    .pid = 1001,
					    .tid = 1001,
					    .path = "/usr/lib/libother.so" };

	fixture_start(f, f->dir, DRIVER, 0);
	targets_record(f->targets, &record);
	assert_int_equal(f->mapping_of, 1001);
	assert_int_equal(f->told_n, 0);
}

static void lost_records_make_a_scan(void **state)
{
	struct fixture *f = *state;
	struct target_stats stats;

	NEED_CALL(openat2);
	make_file(f, "libcuda.so.1");
	fixture_start(f, f->dir, DRIVER, 0);
	f->targets->stats.by_records = true; /* no scans by themselves */
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	make_process(f, 1001, "libcuda.so.1", 7);
	say(f, PERF_RECORD_KIND_LOST, 1, 0, 0);
	say(f, PERF_RECORD_KIND_LOST, 2, 0, 0);
	until_told(f, TOLD_PROCESS, 1001, 1);
	until_scans(f, 2);
	targets_stats(f->targets, &stats);
	assert_int_equal(stats.records_lost, 6);
	assert_int_equal(stats.scans, 2);
}

/*
 * Rings are read one after the other: the grandchild's exec comes first, the fork that made its parent last.
 */
static void records_in_the_order_of_time(void **state)
{
	struct fixture *f = *state;
	uint64_t now;

	NEED_CALL(openat2);
	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	now = (uint64_t)clock_mono_ns();
	say(f, PERF_RECORD_KIND_EXEC, now + 3, 1003, 0);
	say(f, PERF_RECORD_KIND_EXIT, now + 4, 1002, 0);
	say(f, PERF_RECORD_KIND_FORK, now + 2, 1003, 1002);
	say(f, PERF_RECORD_KIND_FORK, now + 1, 1002, 1001);
	say(f, PERF_RECORD_KIND_FORK, now + 9, 1004, 1001);
	targets_records_handle(f->targets, now + 5);
	assert_int_equal(told(f, TOLD_PROCESS, 1002, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1003, 0), 1);
	assert_int_equal(told(f, TOLD_EXEC, 1003, 0), 1);
	assert_int_equal(told(f, TOLD_GONE, 1002, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1004, 0), 0);
	targets_records_handle(f->targets, now + 9);
	assert_int_equal(told(f, TOLD_PROCESS, 1004, 0), 1);
}

/* What the maps showed is newer than these. */
static void records_older_than_a_look_change_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t before = (uint64_t)clock_mono_ns();

	make_file(f, "libcuda.so.1");
	make_process(f, 1001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	say(f, PERF_RECORD_KIND_EXEC, before, 1001, 0);
	say(f, PERF_RECORD_KIND_FORK, before, 1001, 1);
	targets_records_handle(f->targets, before + 1);
	assert_int_equal(told(f, TOLD_EXEC, 0, 0), 0);
	assert_int_equal(told(f, TOLD_GONE, 0, 0), 0);
}

/* gpusonde offers a file between a process's exec and the record of it. */
static void an_offer_outlives_an_older_exec(void **state)
{
	struct fixture *f = *state;
	char path[256];
	uint64_t before;
	int fd;

	make_file(f, "program");
	make_process(f, 1001, NULL, 7);
	fixture_start(f, f->dir, TARGET_ROLE_ANY, 1001);
	before = (uint64_t)clock_mono_ns();
	snprintf(path, sizeof(path), "%s/program", f->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(targets_offer(f->targets, 1001, fd, path), 0);
	assert_int_equal(targets_offer(f->targets, 1001, fd, path), 0);
	close(fd);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1001, 0), 1);
	say(f, PERF_RECORD_KIND_EXEC, before, 1001, 0);
	targets_records_handle(f->targets, before + 1);
	assert_int_equal(told(f, TOLD_EXEC, 1001, 0), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 1001, 0), 2);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, 0), 0);
}

/*
 * Probed before anybody maps it; when another lies there, that one, and the old one goes as if its last
 * process had.
 */
static void expected_files(void **state)
{
	struct fixture *f = *state;
	char path[256], new[256];
	uint64_t first = make_file(f, "libcuda.so.1"), second = make_file(f, "libcuda.so.new");

	fixture_start(f, f->dir, DRIVER, 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", f->dir);
	snprintf(new, sizeof(new), "%s/libcuda.so.new", f->dir);
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, first), 1);
	assert_int_equal(told(f, TOLD_PROCESS, 0, 0), 0);
	assert_int_equal(rename(new, path), 0);
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, second), 1);
	until_told(f, TOLD_FILE_GONE, 0, 1);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, first), 1);
	unlink(path);
	assert_int_equal(targets_expect(f->targets, path), -ENOENT);
	until_told(f, TOLD_FILE_GONE, 0, 2);
}

/*
 * Somebody copies another library over this one, without a new file: its probes go at once, and it is looked
 * at anew.
 */
static void a_rewritten_file_is_let_go_of(void **state)
{
	struct fixture *f = *state;
	uint64_t ino = make_file(f, "libcuda.so.1");
	char path[256];
	int fd;

	fixture_start(f, f->dir, DRIVER, 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", f->dir);
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, ino), 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	until_told(f, TOLD_FILE_GONE, 0, 1);
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, ino), 2);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, ino), 1);
}

/* Between the reading of its sites and the watch for changes. */
static void a_file_is_rewritten_before_it_is_watched(void **state)
{
	struct fixture *f = *state;
	uint64_t ino = make_file(f, "libcuda.so.1");
	char path[256];

	fixture_start(f, f->dir, DRIVER, 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", f->dir);
	f->writes_to = path;
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, ino), 1);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, ino), 1);
	f->writes_to = NULL;
	assert_int_equal(targets_expect(f->targets, path), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, ino), 2);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, ino), 1);
}

/* Not a target under the first name, by which somebody mapped it on purpose. */
static void a_file_of_two_names_is_read_for_both(void **state)
{
	struct fixture *f = *state;
	char from[256], to[256];

	NEED_CALL(openat2);
	f->answer = -ENOENT;
	make_file(f, "libcudart.so.12");
	snprintf(from, sizeof(from), "%s/libcudart.so.12", f->dir);
	snprintf(to, sizeof(to), "%s/libcuda.so.1", f->dir);
	assert_int_equal(link(from, to), 0);
	make_process(f, 1001, "libcudart.so.12", 7);
	fixture_start(f, f->dir, DRIVER | LIBRARY_BIT(PROBE_CUDART), 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 1);
	f->answer = 0;
	make_process(f, 1002, "libcuda.so.1", 7);
	until_told(f, TOLD_PROCESS, 1002, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, 0), 2);
}

/* Its owner writes on while a process maps it: the loop goes on, too (it hung in libsystemd). */
static void a_file_is_rewritten_all_the_time(void **state)
{
	struct fixture *f = *state;
	char path[256];
	int fd;

	make_file(f, "libcuda.so.1");
	make_process(f, 4000001, "libcuda.so.1", 7);
	fixture_start(f, f->dir, DRIVER, 0);
	assert_int_equal(targets_scan(f->targets), 0);
	until_told(f, TOLD_PROCESS, 4000001, 1);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", f->dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	until_told(f, TOLD_FILE_GONE, 0, 1);
	alarm(60);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(pwrite(fd, i % 2 ? "x" : "y", 1, i), 1);
		assert_true(sd_event_run(f->event, 1000) >= 0);
	}
	alarm(0);
	close(fd);
	assert_int_equal(told(f, TOLD_FILE_GONE, 0, 0), 1);
}

/* ---- what a ring may hold ---- */

struct heard {
	unsigned n;
	struct perf_record last;
	char path[64];
};

static void hear(const struct perf_record *record, void *userdata)
{
	struct heard *heard = userdata;

	heard->n++;
	heard->last = *record;
	if (record->kind == PERF_RECORD_KIND_MAP)
		snprintf(heard->path, sizeof(heard->path), "%s", record->path);
}

static size_t put_map(uint8_t *to, const char *path)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t start, length, offset;
		uint32_t major, minor;
		uint64_t ino, generation;
		uint32_t protection, flags;
		char path[24];
		uint64_t time_ns;
	} map = { .header = { .type = PERF_RECORD_MMAP2, .size = sizeof(map) },
		  .pid = 5,
		  .tid = 6,
		  .start = 0x1000,
		  .length = 0x2000,
		  .major = 8,
		  .minor = 1,
		  .ino = 77,
		  .generation = 3,
		  .protection = 5,
		  .time_ns = 99 };

	snprintf(map.path, sizeof(map.path), "%s", path);
	memcpy(to, &map, sizeof(map));
	return sizeof(map);
}

static void rings_wrap_and_may_hold_garbage(void **state)
{
	struct heard heard = { 0 };
	uint8_t record[256], ring[256];
	size_t n = put_map(record, "/lib/libcuda.so.1");
	uint64_t tail = 1000; /* 232 in the ring: the record wraps */

	(void)state;
	for (size_t i = 0; i < n; i++)
		ring[(tail + i) % sizeof(ring)] = record[i];
	assert_int_equal(perf_ring_walk(ring, sizeof(ring), tail, tail + n, hear, &heard), 0);
	assert_int_equal(heard.n, 1);
	assert_string_equal(heard.path, "/lib/libcuda.so.1");
	assert_int_equal(heard.last.end, 0x3000);
	assert_int_equal(heard.last.dev, makedev(8, 1));
	assert_int_equal(heard.last.time_ns, 99);
	/*
	 * No header, more than the ring, a record that ends beyond the head, one without an end of its path.
	 */
	assert_int_equal(perf_ring_walk(ring, sizeof(ring), tail, tail + 7, hear, &heard), 0);
	assert_int_equal(perf_ring_walk(ring, sizeof(ring), tail, tail + 257, hear, &heard), 1);
	assert_int_equal(perf_ring_walk(ring, sizeof(ring), tail, tail + n - 1, hear, &heard), 1);
	memset(ring, 0, sizeof(ring));
	assert_int_equal(perf_ring_walk(ring, sizeof(ring), 0, sizeof(ring), hear, &heard), 1);
	memset(record + n - 32, 'x', 24);
	assert_int_equal(perf_ring_walk(record, sizeof(record), 0, n, hear, &heard), 1);
	assert_int_equal(heard.n, 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_scan_finds_files_once_and_processes_each),
		CASE(three_thousand_processes),
		CASE(pids_come_again_and_files_are_unmapped),
		CASE(a_replaced_file_is_another),
		CASE(a_path_that_names_another_file),
		CASE(nobody_asks_twice_until_the_file_changes),
		CASE(what_takes_long_to_read_is_not_read_at_each_change),
		CASE(a_fifo_is_not_opened),
		CASE(a_mapping_is_told),
		CASE(lost_records_make_a_scan),
		CASE(records_in_the_order_of_time),
		CASE(records_older_than_a_look_change_nothing),
		CASE(an_offer_outlives_an_older_exec),
		CASE(expected_files),
		CASE(a_rewritten_file_is_let_go_of),
		CASE(a_file_is_rewritten_before_it_is_watched),
		CASE(a_file_of_two_names_is_read_for_both),
		CASE(a_file_is_rewritten_all_the_time),
		CASE(rings_wrap_and_may_hold_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
