// SPDX-License-Identifier: Apache-2.0
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

static void on_line(uint64_t address, uint64_t size, const char *name, void *userdata)
{
	struct told *told = userdata;
	size_t at = strlen(told->text);

	snprintf(told->text + at, sizeof(told->text) - at, "%llx+%llx=%s;", (unsigned long long)address,
		 (unsigned long long)size, name);
}

static void test_lines(void **state)
{
	static const char text[] = "7f0010 20 py::f:/a b.py\n7f0010 20 again\nno line\n7f 0 empty\n"
				   "ffffffffffffffff 2 wraps\n10 1 \x1b[31mred\x80\n20 1\n30 1 cut";
	struct told told = { "" };

	(void)state;
	assert_int_equal(perf_map_parse(text, sizeof(text) - 1, on_line, &told),
			 sizeof(text) - 1 - strlen("30 1 cut"));
	assert_string_equal(told.text, "7f0010+20=py::f:/a b.py;7f0010+20=again;10+1=?[31mred?;");
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
	if (perf_map_open(getpid(), &found) == 0) {
		perf_map_read(found, on_line, &told);
		assert_string_equal(told.text, "1000+10=f;");
	}
	unlink(path);
	assert_true(found >= 0);
	/* A link, and what is no file, are not followed. */
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_true(perf_map_open(getpid(), &fd) < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(perf_map_open(getpid(), &fd) < 0);
	unlink(path);
	assert_true(perf_map_open(getpid(), &fd) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_own_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
