// SPDX-License-Identifier: Apache-2.0
/* Files that binutils make of this program's own one. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "unwind/debug_file.h"

static char folder[] = "/tmp/gpusonde-debug-XXXXXX", root[128], debug[256];

static void _printf_(1, 2) shell(const char *format, ...)
{
	char command[4 * PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* FOLDER/code, without symbols and build-id, whose debugging symbols are in ROOT/FOLDER/code.debug. */
static void make(void)
{
	assert_non_null(mkdtemp(folder));
	snprintf(root, sizeof(root), "%s/root", folder);
	snprintf(debug, sizeof(debug), "%s%s/code.debug", root, folder);
	debug_file_root = root;
	shell("cd %s && mkdir -p %s%s && objcopy -R .note.gnu.build-id /proc/%d/exe code && "
	      "objcopy --only-keep-debug code %s 2>/dev/null && objcopy -S --add-gnu-debuglink=%s code",
	      folder, root, folder, getpid(), debug, debug);
}

static int find(int64_t cpu_ns, struct stat *ret_st)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1, found = -1;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/code", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_open(fd, &elf), 0);
	r = debug_file_open(elf, fd, clock_thread_cpu_ns() + cpu_ns, &found);
	if (r == 0)
		assert_int_equal(fstat(found, ret_st), 0);
	return r;
}

static void by_name_and_checksum(void **state)
{
	struct stat wanted, st;

	(void)state;
	if (system("objcopy --version >/dev/null 2>&1") != 0) {
		print_message("# SKIP objcopy is not installed\n");
		skip();
	}
	make();
	assert_int_equal(stat(debug, &wanted), 0);
	assert_int_equal(find(NSEC_PER_SEC, &st), 0);
	assert_int_equal(st.st_ino, wanted.st_ino);
	/* One whose checksum takes too long is none; nor is one that has changed. */
	assert_int_equal(find(-1, &st), -ETIME);
	shell("printf x >> %s", debug);
	assert_int_equal(find(NSEC_PER_SEC, &st), -ENOENT);
	shell("rm %s && mkfifo %s", debug, debug);
	assert_int_equal(find(NSEC_PER_SEC, &st), -ENOENT);
	shell("rm -r %s", root);
	assert_int_equal(find(NSEC_PER_SEC, &st), -ENOENT);
	shell("rm -r %s", folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(by_name_and_checksum) };

	return cmocka_run_group_tests_name("debug_file", tests, NULL, NULL);
}
