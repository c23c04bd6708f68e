// SPDX-License-Identifier: Apache-2.0
#include "folder.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "timeline/writer.h"

#define PATIENCE_NS (60 * NSEC_PER_SEC)

static struct timeline_writer *writer;

static struct timeline_files_config config_of(const char *stem)
{
	struct timeline_files_config config = { .format = TIMELINE_CHROME, .folder = dup(folder) };

	assert_true(config.folder >= 0);
	snprintf(config.stem, sizeof(config.stem), "%s", stem);
	return config;
}

static int put(const char *text)
{
	struct timeline_block *block = block_of(text, 1);
	int r = timeline_writer_put(writer, block);

	timeline_block_unref(block);
	return r;
}

static struct timeline_writer_status ended(void)
{
	struct timeline_writer_status status;

	timeline_writer_end(writer);
	assert_true(timeline_writer_wait(writer, PATIENCE_NS));
	timeline_writer_status(writer, &status);
	timeline_writer_free(writer);
	assert_true(status.done);
	return status;
}

static void all_that_was_put_is_written(void **state)
{
	const struct timeline_files_config config = config_of("x");
	struct timeline_writer_status status;

	(void)state;
	assert_int_equal(timeline_writer_new(&config, true, &writer), 0);
	assert_int_equal(put("{1}"), 0);
	assert_int_equal(put("{2}"), 0);
	status = ended();
	assert_string_equal(content("x.json"), "[\n{1},\n{2}\n]\n");
	assert_int_equal(status.error, 0);
	assert_int_equal(status.bytes, 6);
	assert_int_equal(status.files, 1);
}

static void what_cannot_be_opened_is_told(void **state)
{
	const struct timeline_files_config config = config_of("no/x");
	struct timeline_writer_status status;
	struct timeline_files_config again;

	(void)state;
	assert_int_equal(timeline_writer_new(&config, true, &writer), -ENOENT);
	again = config_of("no/x");
	assert_int_equal(timeline_writer_new(&again, false, &writer), 0);
	assert_int_equal(put("{1}"), 0);
	status = ended();
	assert_int_equal(status.error, -ENOENT);
	assert_int_equal(status.files, 0);
	assert_int_equal(status.lost, 10);
}

static void a_full_disk_is_counted(void **state)
{
	const struct timeline_files_config config = config_of("x");
	struct timeline_writer_status status;

	(void)state;
	assert_int_equal(symlinkat("/dev/full", folder, "x.json"), 0);
	assert_int_equal(timeline_writer_new(&config, true, &writer), 0);
	assert_int_equal(put("{1}"), 0);
	assert_int_equal(put("{2}"), 0);
	status = ended();
	assert_int_equal(status.error, -ENOSPC);
	assert_int_equal(status.lost, 20);
	assert_int_equal(status.bytes, 0);
}

/* A file system that hangs: a FIFO that nobody reads. Neither who puts nor who leaves waits. */
static void a_hung_disk_keeps_nobody(void **state)
{
	const struct timeline_files_config config = config_of("x");
	static char large[1 << 20];
	struct timeline_writer_status status;
	int held, r = 0;

	(void)state;
	assert_int_equal(mkfifoat(folder, "x.json", 0600), 0);
	held = openat(folder, "x.json", O_RDWR | O_CLOEXEC);
	assert_true(held >= 0);
	assert_int_equal(timeline_writer_new(&config, true, &writer), 0);
	memset(large, 'x', sizeof(large) - 1);
	for (unsigned i = 0; r == 0 && i < 2 * (TIMELINE_QUEUE_BYTES / sizeof(large)); i++)
		r = put(large);
	assert_int_equal(r, -ENOBUFS);
	timeline_writer_end(writer);
	assert_false(timeline_writer_wait(writer, 0));
	timeline_writer_status(writer, &status);
	assert_false(status.done);
	timeline_writer_free(writer);
	/* The thread ends with an error once nobody can read. */
	close(held);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, folder_begin, folder_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_that_was_put_is_written),
		TEST(what_cannot_be_opened_is_told),
		TEST(a_full_disk_is_counted),
		TEST(a_hung_disk_keeps_nobody),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
