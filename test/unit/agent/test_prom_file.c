// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/outputs/prom_file.h"
#include "base/fd.h"
#include "base/macro.h"

static char root[64]; /* a folder for each case */
static struct prom_file file;
static char why[PROM_FILE_ERROR];

static int begin(_unused_ void **state)
{
	strcpy(root, "/tmp/gpusonde-test-prom-XXXXXX");
	return mkdtemp(root) && chmod(root, 0755) == 0 ? 0 : -1;
}

static int end(_unused_ void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static const char *in_root(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void content_is(const char *path, const char *wanted)
{
	char text[64];

	assert_int_equal(read_file(path, text, sizeof(text), NULL), 0);
	assert_string_equal(text, wanted);
}

static unsigned count_files(void)
{
	DIR *folder = opendir(root);
	unsigned n = 0;

	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(folder);
	return n;
}

static void write_page(const char *text)
{
	assert_int_equal(prom_file_write(&file, text, strlen(text), why), 0);
	assert_string_equal(why, "");
}

static void paths_are_folders_or_files(_unused_ void **state)
{
	static const struct {
		const char *path, *folder, *name;
	} cases[] = {
		{ "/a/b", "/a/b", "gpusonde.prom" },
		{ "/a/b/", "/a/b", "gpusonde.prom" },
		{ "/a/b//", "/a/b", "gpusonde.prom" },
		{ "/a/gpu.prom", "/a", "gpu.prom" },
		{ "/gpu.prom", "/", "gpu.prom" },
		{ "/", "/", "gpusonde.prom" },
		{ "/a/.prom", "/a/.prom", "gpusonde.prom" },
		{ "/a//x.prom", "/a", "x.prom" },
	};
	char name[300] = "/";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(prom_file_init(cases[i].path, &file), 0);
		assert_string_equal(file.folder, cases[i].folder);
		assert_string_equal(file.name, cases[i].name);
	}
	assert_int_equal(prom_file_init("a/b.prom", &file), -EINVAL);
	assert_int_equal(prom_file_init("", &file), -EINVAL);
	memset(name + 1, 'n', 250);
	strcpy(name + 251, ".prom");
	assert_int_equal(prom_file_init(name, &file), -EINVAL);
}

static void a_page_replaces_the_one_before(_unused_ void **state)
{
	mode_t before = umask(0077);
	struct stat st;

	assert_int_equal(prom_file_init(root, &file), 0);
	write_page("one\n");
	write_page("two\n");
	umask(before);
	content_is(in_root("gpusonde.prom"), "two\n");
	assert_int_equal(stat(in_root("gpusonde.prom"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(count_files(), 1);
	prom_file_remove(&file);
	assert_int_equal(count_files(), 0);
}

/* What somebody else has put there stays somebody else's. */
static void only_ours_is_removed(_unused_ void **state)
{
	char ours[PATH_MAX];

	assert_int_equal(prom_file_init(root, &file), 0);
	write_page("ours\n");
	strcpy(ours, in_root("gpusonde.prom"));
	assert_int_equal(write_file_atomic(ours, "theirs\n", 7, 0644), 0);
	prom_file_remove(&file);
	content_is(ours, "theirs\n");
}

static void links_are_not_followed(_unused_ void **state)
{
	char victim[PATH_MAX], link[PATH_MAX], folder[PATH_MAX];
	struct stat st;

	strcpy(victim, in_root("victim"));
	strcpy(link, in_root("gpusonde.prom"));
	assert_int_equal(write_file_atomic(victim, "victim\n", 7, 0600), 0);
	/* In place of the file, and of what is written beside it. */
	assert_int_equal(symlink(victim, link), 0);
	assert_int_equal(symlink(victim, in_root(".gpusonde.prom.new")), 0);
	assert_int_equal(prom_file_init(root, &file), 0);
	write_page("page\n");
	content_is(victim, "victim\n");
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	content_is(link, "page\n");
	/* In place of the folder, a slash behind its name or not. */
	strcpy(folder, in_root("folder"));
	assert_int_equal(symlink(root, folder), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(prom_file_init(folder, &file), 0);
		assert_int_equal(prom_file_write(&file, "x", 1, why), -ENOTDIR);
		assert_non_null(strstr(why, "name the folder itself"));
		strcat(folder, "/");
	}
}

static void a_folder_that_everybody_may_write_to_is_refused(_unused_ void **state)
{
	assert_int_equal(prom_file_init(root, &file), 0);
	assert_int_equal(chmod(root, 0777), 0);
	assert_int_equal(prom_file_write(&file, "x", 1, why), -EPERM);
	assert_non_null(strstr(why, "chmod o-w"));
	assert_int_equal(count_files(), 0);
	/* There, only a file's owner may replace it. */
	assert_int_equal(chmod(root, 01777), 0);
	write_page("x");
}

static void causes_are_named(_unused_ void **state)
{
	assert_int_equal(prom_file_init(in_root("missing"), &file), 0);
	assert_int_equal(prom_file_write(&file, "x", 1, why), -ENOENT);
	assert_non_null(strstr(why, "there is no folder "));
	assert_int_equal(prom_file_init("/proc/self", &file), 0);
	assert_true(prom_file_write(&file, "x", 1, why) < 0);
}

/* A folder in place of the file can be neither replaced nor taken for ours; nothing is left beside. */
static void what_cannot_be_replaced_is_left(_unused_ void **state)
{
	assert_int_equal(prom_file_init(root, &file), 0);
	assert_int_equal(mkdir(in_root("gpusonde.prom"), 0755), 0);
	assert_int_equal(prom_file_write(&file, "x", 1, why), -EISDIR);
	assert_int_equal(count_files(), 1);
}

/* An old page must not look alive. */
static void a_page_that_could_not_be_replaced_is_removed(_unused_ void **state)
{
	assert_int_equal(prom_file_init(root, &file), 0);
	write_page("old\n");
	/* Nothing can be made beside it. */
	assert_int_equal(mkdir(in_root(".gpusonde.prom.new"), 0755), 0);
	assert_true(prom_file_write(&file, "new\n", 4, why) < 0);
	assert_int_equal(access(in_root("gpusonde.prom"), F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_folders_or_files),
		cmocka_unit_test_setup_teardown(a_page_replaces_the_one_before, begin, end),
		cmocka_unit_test_setup_teardown(only_ours_is_removed, begin, end),
		cmocka_unit_test_setup_teardown(links_are_not_followed, begin, end),
		cmocka_unit_test_setup_teardown(a_folder_that_everybody_may_write_to_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(causes_are_named, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_replaced_is_left, begin, end),
		cmocka_unit_test_setup_teardown(a_page_that_could_not_be_replaced_is_removed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
