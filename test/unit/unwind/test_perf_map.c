// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "unwind/perf_map.h"

struct told {
	char text[512];
};

static int on_line(uint64_t address, uint64_t size, const char *name, void *userdata)
{
	struct told *told = userdata;
	size_t at = strlen(told->text);

	snprintf(told->text + at, sizeof(told->text) - at, "%llx+%llx=%s;", (unsigned long long)address,
		 (unsigned long long)size, name);
	return strcmp(name, "stop") == 0;
}

static int open_map(pid_t pid, int *ret_fd)
{
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };

	assert_int_equal(mounts_new("/proc", &mounts), 0);
	user.mounts = mounts;
	return perf_map_open(&user, ret_fd);
}

static void test_lines(void **state)
{
	static const char text[] = "7f0010 20 py::f:/a b.py\n7f0010 20 again\nno line\n7f 0 empty\n"
				   "ffffffffffffffff 2 wraps\n10 1 \x1b[31mred\x80\n20 1\n30 1 cut";
	struct told told = { "" };
	size_t whole;

	(void)state;
	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, on_line, &told, &whole), 0);
	assert_int_equal(whole, sizeof(text) - 1 - strlen("30 1 cut"));
	assert_string_equal(told.text, "7f0010+20=py::f:/a b.py;7f0010+20=again;10+1=?[31mred?;");
}

static void test_is_stopped(void **state)
{
	static const char text[] = "10 1 a\n20 1 stop\n30 1 b\n";
	struct told told = { "" };
	size_t whole;

	(void)state;
	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, on_line, &told, &whole), 1);
	assert_string_equal(told.text, "10+1=a;20+1=stop;");
}

static void test_own_map(void **state)
{
	struct told told = { "" };
	_cleanup_close_ int fd = -1, found = -1;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		print_message("SKIPPED: /tmp cannot be written\n");
		skip();
	}
	assert_int_equal(write(fd, "1000 10 f\n", 10), 10);
	if (open_map(getpid(), &found) == 0) {
		perf_map_read(found, on_line, &told);
		assert_string_equal(told.text, "1000+10=f;");
	}
	assert_true(found >= 0);
	/* Anybody may make a file of that name. */
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 65534, 65534), 0);
		assert_int_equal(open_map(getpid(), &found), -EPERM);
	}
	unlink(path);
	/* A link, and what is no file, are not followed. */
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_true(open_map(getpid(), &fd) < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(open_map(getpid(), &fd) < 0);
	unlink(path);
	assert_true(open_map(getpid(), &fd) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_is_stopped),
		cmocka_unit_test(test_own_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
