// SPDX-License-Identifier: Apache-2.0
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "timeline/files.h"
#include "timeline/room.h"

static struct timeline_files files;

/* A descriptor of its own, which the files take. */
static int open_as(struct timeline_files_config config)
{
	config.folder = dup(folder);
	assert_true(config.folder >= 0);
	snprintf(config.stem, sizeof(config.stem), "x");
	return timeline_files_open(&files, &config);
}

static int put(const char *text, int64_t end_ns)
{
	struct timeline_block *block = block_of(text, end_ns);
	int r = timeline_files_write(&files, block);

	timeline_block_unref(block);
	return r;
}

static int done(void **state)
{
	timeline_files_close(&files);
	return folder_end(state);
}

static void an_array_is_closed(void **state)
{
	(void)state;
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_CHROME }), 0);
	assert_int_equal(put("{1}", 1), 0);
	assert_int_equal(put("{2}", 2), 0);
	assert_string_equal(content("x.json"), "[\n{1},\n{2}");
	assert_int_equal(timeline_files_end(&files), 0);
	assert_string_equal(content("x.json"), "[\n{1},\n{2}\n]\n");
}

static void an_empty_one_is_valid(void **state)
{
	(void)state;
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_CHROME }), 0);
	assert_int_equal(timeline_files_end(&files), 0);
	assert_string_equal(content("x.json"), "[]\n");
}

static void what_was_there_stays_until_something_comes(void **state)
{
	(void)state;
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO }), 0);
	assert_int_equal(put("long and old", 1), 0);
	timeline_files_close(&files);
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO }), 0);
	assert_string_equal(content("x.pftrace"), "long and old");
	assert_int_equal(put("new", 1), 0);
	assert_string_equal(content("x.pftrace"), "new");
}

static void files_follow_by_size(void **state)
{
	(void)state;
	assert_int_equal(open_as((struct timeline_files_config){
				 .format = TIMELINE_CHROME, .rotate_bytes = 10, .keep = 2 }),
			 0);
	assert_int_equal(put("{1}", 1), 0);
	assert_int_equal(put("{2}", 2), 0);
	assert_int_equal(put("{larger than a file}", 3), 0);
	assert_string_equal(content("x.000001.json"), "[\n{1},\n{2}\n]\n");
	assert_int_equal(put("{4}", 4), 0);
	assert_int_equal(timeline_files_end(&files), 0);
	/* The newest two are kept. */
	assert_string_equal(content("x.000001.json"), "");
	assert_string_equal(content("x.000002.json"), "[\n{larger than a file}\n]\n");
	assert_string_equal(content("x.000003.json"), "[\n{4}\n]\n");
}

static void files_follow_by_time(void **state)
{
	(void)state;
	assert_int_equal(
		open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO, .rotate_ns = 10 }), 0);
	assert_int_equal(put("a", 100), 0);
	assert_int_equal(put("b", 109), 0);
	assert_int_equal(put("c", 110), 0);
	assert_string_equal(content("x.000001.pftrace"), "ab");
	assert_string_equal(content("x.000002.pftrace"), "c");
}

/* A link that somebody has put there leads nowhere. */
static void links_are_not_followed(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("target", folder, "x.pftrace"), 0);
	assert_int_equal(
		open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO, .exclusive = true }),
		-EEXIST);
	assert_int_equal(faccessat(folder, "target", F_OK, 0), -1);
}

static void an_exclusive_one_is_its_owners(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(
		open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO, .exclusive = true }), 0);
	assert_int_equal(fstatat(folder, "x.pftrace", &st, 0), 0);
	assert_int_equal(st.st_mode & 0137, 0);
}

/* What fits in part is cut off, and what comes when there is room again is whole. */
static void a_full_disk_leaves_whole_blocks(void **state)
{
	struct rlimit before, few;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_CHROME }), 0);
	assert_int_equal(put("{1}", 1), 0);
	few = (struct rlimit){ strlen("[\n{1}") + 4, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	assert_int_equal(put("{lost}", 2), -EFBIG);
	assert_string_equal(content("x.json"), "[\n{1}");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(put("{3}", 3), 0);
	assert_int_equal(timeline_files_end(&files), 0);
	assert_string_equal(content("x.json"), "[\n{1},\n{3}\n]\n");
}

static void make(const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), strlen(text));
}

static void the_oldest_make_room(void **state)
{
	enum { FILES = 20 };
	char name[32];

	(void)state;
	assert_int_equal(open_as((struct timeline_files_config){ .format = TIMELINE_PERFETTO }), 0);
	/* In an order that is neither that of names nor its opposite. */
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "t-%02u.pftrace", i * 7 % FILES);
		make(name, "12345");
	}
	make("other", "123456789");
	assert_int_equal(timeline_make_room(folder, "t-", ".pftrace", 5 * (FILES / 2)), 0);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "t-%02u.pftrace", i);
		assert_string_equal(content(name), i < FILES / 2 ? "" : "12345");
	}
	assert_int_equal(timeline_make_room(folder, "t-", ".pftrace", 4), 0);
	assert_string_equal(content(name), "");
	assert_string_equal(content("other"), "123456789");
}

static void the_format_is_that_of_the_name(void **state)
{
	enum timeline_format format;
	size_t stem;

	(void)state;
	assert_true(timeline_format_of("/a.b/x.pftrace", &format, &stem));
	assert_int_equal(format, TIMELINE_PERFETTO);
	assert_int_equal(stem, strlen("/a.b/x"));
	assert_true(timeline_format_of("x.y.json", &format, &stem));
	assert_int_equal(format, TIMELINE_CHROME);
	assert_false(timeline_format_of(".json", &format, &stem));
	assert_false(timeline_format_of("x.txt", &format, &stem));
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, folder_begin, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_array_is_closed),
		TEST(an_empty_one_is_valid),
		TEST(what_was_there_stays_until_something_comes),
		TEST(files_follow_by_size),
		TEST(files_follow_by_time),
		TEST(links_are_not_followed),
		TEST(an_exclusive_one_is_its_owners),
		TEST(a_full_disk_leaves_whole_blocks),
		TEST(the_oldest_make_room),
		cmocka_unit_test(the_format_is_that_of_the_name),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
