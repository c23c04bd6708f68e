// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "store/restore.h"
#include "store/tiers.h"
#include "view/fixture.h"

#define SECOND INT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

static struct fields fields[STORE_TABLES];
static char path[] = "/tmp/gpusonde-test-tiers-XXXXXX";
static int folder;

static int setup(_unused_ void **state)
{
	if (!mkdtemp(path))
		return -1;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0 ? -1 : fields_new(fields);
}

static int remove_entry(const char *name, _unused_ const struct stat *st, _unused_ int type,
			_unused_ struct FTW *ftw)
{
	return remove(name);
}

static int teardown(_unused_ void **state)
{
	fields_done(fields);
	close(folder);
	return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static struct database *open_store(const char *name)
{
	struct database *database;
	char why[300];

	if (database_open(folder, name, true, &database, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return database;
}

static void add_seconds(struct tiers *tiers, struct snapshot *s, unsigned n, struct frame_mark *mark)
{
	for (unsigned i = 0; i < n; i++) {
		struct strbuf bytes;
		struct frame frame;
		uint64_t left_out;

		s->boot_ns += SECOND;
		s->real_ns += SECOND;
		s->entities[0].id.v[SLOT_POWER] = 100 + i * 7919 % 613 / 8.0;
		strbuf_init(&bytes, 0);
		assert_int_equal(frame_write(s, i % 10 == 0, mark, &bytes, &left_out), 0);
		assert_int_equal(frame_read(bytes.data, bytes.len, &frame), 0);
		assert_int_equal(tiers_add(tiers, &frame), 0);
		strbuf_done(&bytes);
	}
}

static uint64_t frames_of(struct database *database, uint32_t tier)
{
	struct stored_block *blocks = NULL;
	uint64_t sum = 0;
	size_t n = 0;

	assert_int_equal(database_list(database, &blocks, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (blocks[i].tier == tier)
			sum += blocks[i].frames;
	free(blocks);
	return sum;
}

/* Each pace has its own, and what is older than its time is dropped, by blocks. */
static void test_paces(_unused_ void **state)
{
	const struct tiers_settings settings = { .max_bytes = 64 * MIB, .frames = { 200, 1000, 1000 } };
	struct database *database = open_store("paces.db");
	struct snapshot *s = fixture_small();
	struct frame_mark mark = { 0 };
	struct tiers_figures figures;
	struct tiers *tiers;

	assert_int_equal(tiers_new(database, fields, &settings, &tiers), 0);
	add_seconds(tiers, s, 600, &mark);
	assert_int_equal(tiers_flush(tiers), 0);
	tiers_figures(tiers, &figures);
	tiers_free(tiers);
	assert_int_equal(figures.frames, 600);
	assert_int_equal(figures.lost + figures.dropped, 0);
	assert_in_range(frames_of(database, 0), 200, 200 + 2 * 120);
	assert_int_equal(frames_of(database, 1), 60);
	assert_int_equal(frames_of(database, 2), 10);
	database_close(database);
	fixture_free(s);
}

/* Whatever does not fit, the oldest goes. There is room for the open blocks, which are not packed. */
static void test_bounded(_unused_ void **state)
{
	const struct tiers_settings settings = { .max_bytes = MIB * 5 / 8,
						 .frames = { 100000, 100000, 100000 } };
	struct database *database = open_store("bounded.db");
	struct snapshot *s = fixture_full();
	struct frame_mark mark = { 0 };
	struct database_figures file;
	struct stored_block *blocks;
	struct tiers_figures figures;
	struct tiers *tiers;
	size_t n;

	assert_int_equal(database_limit(database, settings.max_bytes), 0);
	assert_int_equal(tiers_new(database, fields, &settings, &tiers), 0);
	add_seconds(tiers, s, 3000, &mark);
	assert_int_equal(tiers_flush(tiers), 0);
	tiers_figures(tiers, &figures);
	tiers_free(tiers);
	assert_int_equal(figures.lost, 0);
	assert_true(figures.dropped > 0);
	assert_int_equal(database_figures(database, &file), 0);
	assert_true(file.bytes <= settings.max_bytes);
	assert_int_equal(database_list(database, &blocks, &n), 0);
	assert_true(n > 0);
	assert_true(blocks[0].id > 1);
	assert_int_equal(blocks[n - 1].boot_last_ns / SECOND, s->boot_ns / SECOND);
	free(blocks);
	database_close(database);
	fixture_free(s);
}

/* In the order in which they came. */
static void each_frame(struct database *database, uint32_t tier, void (*see)(const struct block *block))
{
	struct stored_layout layout;
	struct stored_block *blocks;
	size_t n, size;
	void *data;

	assert_int_equal(database_list(database, &blocks, &n), 0);
	for (size_t i = 0; i < n; i++) {
		struct block *block;

		if (blocks[i].tier != tier)
			continue;
		assert_int_equal(database_get_layout(database, blocks[i].layout, &data, &size), 0);
		assert_int_equal(layout_read(fields, data, size, &layout), 0);
		free(data);
		assert_int_equal(database_get(database, blocks[i].id, &data, &size), 0);
		assert_int_equal(block_read(fields, &layout, data, size, &block), 0);
		free(data);
		while (block_next(block)) {
			int64_t real_ns = (int64_t)block_row(block, STORE_NODE, 0)[0];

			assert_true(real_ns >= blocks[i].real_first_ns && real_ns <= blocks[i].real_last_ns);
			see(block);
		}
		assert_int_equal(block_error(block), 0);
		block_free(block);
		layout_done(&layout);
	}
	free(blocks);
}

enum { CLOCK_STEPS = 5, CLOCK_SECONDS = 100 };
static const int64_t clock_steps[CLOCK_STEPS] = { 0, -3600 * SECOND, 365 * 86400 * SECOND, -1,
						  -366 * 86400 * SECOND };
static int64_t began_real_ns, began_boot_ns;
static unsigned seen;

static void see_time(const struct block *block)
{
	const uint64_t *row = block_row(block, STORE_NODE, 0);
	int64_t real_ns = began_real_ns + (seen + 1) * SECOND, boot_ns = began_boot_ns + (seen + 1) * SECOND;

	for (unsigned i = 0; i <= seen / CLOCK_SECONDS; i++)
		real_ns += clock_steps[i];
	assert_int_equal((int64_t)row[0], real_ns);
	assert_int_equal((int64_t)row[1], boot_ns);
	seen++;
}

/* A wall clock that is set back and forth drops nothing, and each snapshot has the time that it had. */
static void test_clock_is_set(_unused_ void **state)
{
	const struct tiers_settings settings = { .max_bytes = 64 * MIB, .frames = { 1000, 1000, 1000 } };
	struct database *database = open_store("clock.db");
	struct snapshot *s = fixture_small();
	struct frame_mark mark = { 0 };
	struct tiers_figures figures;
	struct tiers *tiers;

	assert_string_equal(fields[STORE_NODE].list[0].column->name, "real_ns");
	assert_string_equal(fields[STORE_NODE].list[1].column->name, "boot_ns");
	began_real_ns = s->real_ns;
	began_boot_ns = s->boot_ns;
	assert_int_equal(tiers_new(database, fields, &settings, &tiers), 0);
	for (unsigned i = 0; i < CLOCK_STEPS; i++) {
		s->real_ns += clock_steps[i];
		add_seconds(tiers, s, CLOCK_SECONDS, &mark);
	}
	assert_int_equal(tiers_flush(tiers), 0);
	tiers_figures(tiers, &figures);
	tiers_free(tiers);
	assert_int_equal(figures.lost + figures.dropped, 0);
	each_frame(database, 0, see_time);
	assert_int_equal(seen, CLOCK_STEPS * CLOCK_SECONDS);
	assert_int_equal(frames_of(database, 1), CLOCK_STEPS * CLOCK_SECONDS / 10);
	database_close(database);
	fixture_free(s);
}

static uint32_t exits;

static void see_exits(const struct block *block)
{
	exits += block_rows(block, STORE_EXITED);
}

static uint32_t exits_of(struct database *database, uint32_t tier)
{
	exits = 0;
	each_frame(database, tier, see_exits);
	return exits;
}

/* Those between two frames of a pace are in its next one, each once. */
static void test_exits_of_all_paces(_unused_ void **state)
{
	const struct tiers_settings settings = { .max_bytes = 64 * MIB, .frames = { 1000, 1000, 1000 } };
	struct database *database = open_store("exits.db");
	struct snapshot *s = fixture_small();
	struct frame_mark mark = { 0 };
	uint32_t exited = s->exited_n;
	struct tiers *tiers;

	assert_int_equal(tiers_new(database, fields, &settings, &tiers), 0);
	s->exited_n = 0;
	add_seconds(tiers, s, 5, &mark);
	s->exited_n = exited;
	add_seconds(tiers, s, 70, &mark);
	assert_int_equal(tiers_flush(tiers), 0);
	tiers_free(tiers);
	for (uint32_t tier = 0; tier < TIERS; tier++)
		assert_int_equal(exits_of(database, tier), exited);
	database_close(database);
	fixture_free(s);
}

/* Of more than a frame can have the first are kept, and the others counted by each pace. */
static void test_too_many_exits(_unused_ void **state)
{
	const struct tiers_settings settings = { .max_bytes = 64 * MIB, .frames = { 1000, 1000, 1000 } };
	const uint32_t most = store_tables[STORE_EXITED].rows_max;
	struct database *database = open_store("many_exits.db");
	struct snapshot *s = fixture_small();
	struct process *few = s->exited;
	struct tiers_figures figures;
	struct frame_mark mark = { 0 };
	struct tiers *tiers;

	s->exited = calloc(most, sizeof(*s->exited));
	assert_non_null(s->exited);
	assert_int_equal(tiers_new(database, fields, &settings, &tiers), 0);
	s->exited_n = 0;
	add_seconds(tiers, s, 1, &mark);
	/* Two times as many as have room, before the next frame of ten seconds. */
	for (unsigned second = 0; second < 2; second++) {
		s->exited_n = most;
		for (uint32_t i = 0; i < most; i++) {
			s->exited[i] = few[0];
			s->exited[i].exit_seq = 1000 + second * most + i;
			s->exited[i].id.pid = i + 1;
			s->exited[i].id.start_ticks = second + 1;
		}
		add_seconds(tiers, s, 1, &mark);
	}
	tiers_figures(tiers, &figures);
	tiers_free(tiers);
	assert_int_equal(figures.lost, 0);
	assert_int_equal(figures.exits, 2 * (uint64_t)most); /* not of the pace of a second */
	database_close(database);
	free(s->exited);
	s->exited = few;
	fixture_free(s);
}

/* ---- killed in the middle of a write ---- */

enum { TORN_PUTS = 12, TORN_BYTES = 20000, TORN_WRITES_MAX = 5000 };
static unsigned writes_left;

static ssize_t torn_pwrite(int fd, const void *data, size_t n, off_t at)
{
	if (--writes_left == 0) {
		if (pwrite(fd, data, n / 2, at) >= 0)
			raise(SIGKILL);
		_exit(1);
	}
	return pwrite(fd, data, n, at);
}

static ssize_t torn_write(int fd, const void *data, size_t n)
{
	ssize_t written = torn_pwrite(fd, data, n, lseek(fd, 0, SEEK_CUR));

	lseek(fd, MAX(written, (ssize_t)0), SEEK_CUR);
	return written;
}

/* Each block is put twice, as one that grows; @done gets a byte for each that has been put. */
static void put_until_killed(const char *name, int done)
{
	struct database *database = open_store(name);
	sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
	struct stored_block block = { .frames = 1 };
	char data[TORN_BYTES];

	vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)torn_pwrite);
	vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)torn_pwrite);
	vfs->xSetSystemCall(vfs, "write", (sqlite3_syscall_ptr)torn_write);
	for (int i = 0; i < TORN_PUTS; i++) {
		memset(data, 'a' + i, sizeof(data));
		block.id = i % 2 ? block.id : 0;
		if (database_put(database, &block, data, sizeof(data)) < 0 || write(done, "", 1) != 1)
			_exit(1);
	}
	database_close(database);
	_exit(0);
}

/* @puts are in it, and perhaps one that was in the middle. */
static void check_whole(const char *name, unsigned puts)
{
	struct database *database = open_store(name);
	struct stored_block *blocks;
	unsigned newest = 0;
	size_t n, size;

	assert_int_equal(database_list(database, &blocks, &n), 0);
	for (size_t i = 0; i < n; i++) {
		char *data;

		assert_int_equal(database_get(database, blocks[i].id, (void **)&data, &size), 0);
		assert_int_equal(size, TORN_BYTES);
		for (size_t k = 1; k < size; k++)
			assert_int_equal(data[k], data[0]);
		assert_int_equal((unsigned)(data[0] - 'a') / 2, i);
		newest = (unsigned)(data[0] - 'a') + 1;
		free(data);
	}
	assert_in_range(newest, puts, puts + 1);
	free(blocks);
	database_close(database);
}

/* At every fifth of its writes, of which half is written. */
static void test_killed_while_it_writes(_unused_ void **state)
{
	char name[32], done[TORN_PUTS + 1];
	unsigned at = 1;
	int status = -1, ends[2];

	while (status != 0) {
		pid_t child;
		ssize_t puts;

		assert_true((at += 5) < TORN_WRITES_MAX);
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		snprintf(name, sizeof(name), "torn-%u.db", at);
		child = fork();
		if (child == 0) {
			writes_left = at;
			put_until_killed(name, ends[1]);
		}
		close(ends[1]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		puts = read(ends[0], done, sizeof(done));
		close(ends[0]);
		check_whole(name, puts < 0 ? 0 : (unsigned)puts);
	}
	assert_true(at > TORN_PUTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paces),          cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_clock_is_set),   cmocka_unit_test(test_exits_of_all_paces),
		cmocka_unit_test(test_too_many_exits),
		cmocka_unit_test(test_killed_while_it_writes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
