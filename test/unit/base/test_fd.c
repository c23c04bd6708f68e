// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

static char dir[] = "/tmp/gpusonde-fd-XXXXXX";
static char file[64];

static int make_dir(_unused_ void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/file", dir);
	return 0;
}

static int remove_dir(_unused_ void **state)
{
	unlink(file);
	return rmdir(dir); /* fails, and so does the group, if something was left behind */
}

static unsigned files_in_dir(void)
{
	unsigned n = 0;
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void writes_and_reads_back(_unused_ void **state)
{
	char buf[16];
	size_t len;
	struct stat st;

	assert_int_equal(write_file_atomic(file, "a\0b", 3, 0640), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(read_file(file, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(buf, "a\0b", 4);
	assert_int_equal(write_file_atomic(file, "", 0, 0600), 0);
	assert_int_equal(read_file(file, buf, sizeof(buf), NULL), 0);
	assert_string_equal(buf, "");
	assert_int_equal(files_in_dir(), 1);
}

/* Opening a device or a FIFO has side effects, and may wait. */
static void opens_regular_files_alone(_unused_ void **state)
{
	char fifo[80], link[80];
	int fd = -1;

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(write_file_atomic(file, "a", 1, 0600), 0);
	assert_int_equal(fd_open_regular(fifo, &fd), -ENOTSUP);
	assert_int_equal(fd_open_regular("/dev/null", &fd), -ENOTSUP);
	assert_int_equal(fd_open_regular(dir, &fd), -EISDIR);
	assert_int_equal(fd, -1);
	assert_int_equal(fd_open_regular(link, &fd), 0);
	close(fd);
	unlink(link);
	assert_int_equal(fd_open_regular(link, &fd), -ENOENT);
	unlink(fifo);
}

static void needs_room_for_the_nul(_unused_ void **state)
{
	char buf[4];
	size_t len = 99;

	assert_int_equal(write_file_atomic(file, "abcd", 4, 0600), 0);
	assert_int_equal(read_file(file, buf, sizeof(buf), &len), -E2BIG);
	assert_int_equal(read_file(file, buf, 0, &len), -E2BIG);
	assert_int_equal(len, 99);
	assert_int_equal(write_file_atomic(file, "abc", 3, 0600), 0);
	assert_int_equal(read_file(file, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 3);
}

static void reads_proc_and_relative_paths(_unused_ void **state)
{
	_cleanup_close_ int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char buf[4096];
	size_t len;

	assert_true(proc >= 0);
	assert_int_equal(read_file_at(proc, "stat", buf, sizeof(buf), &len), 0);
	assert_true(len > 10);
	assert_int_equal(strlen(buf), len);
}

static void says_why_it_failed(_unused_ void **state)
{
	char buf[8], nowhere[96], fifo[96];

	snprintf(nowhere, sizeof(nowhere), "%s/none/file", dir);
	assert_int_equal(read_file(nowhere, buf, sizeof(buf), NULL), -ENOENT);
	assert_int_equal(read_file(dir, buf, sizeof(buf), NULL), -EISDIR);
	/* Nobody writes to this: a reader that waits would wait for ever. */
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(read_file(fifo, buf, sizeof(buf), NULL), -ENOTSUP);
	unlink(fifo);
	assert_int_equal(write_file_atomic(nowhere, "x", 1, 0600), -ENOENT);
}

static void failed_replacement_leaves_the_old(_unused_ void **state)
{
	char sub[96], buf[8];

	/* A directory cannot be replaced by a file: rename() fails after all was written. */
	snprintf(sub, sizeof(sub), "%s/sub", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(write_file_atomic(file, "old", 3, 0600), 0);
	assert_int_equal(write_file_atomic(sub, "x", 1, 0600), -EISDIR);
	assert_int_equal(files_in_dir(), 2);
	assert_int_equal(read_file(file, buf, sizeof(buf), NULL), 0);
	assert_string_equal(buf, "old");
	assert_int_equal(rmdir(sub), 0);
}

static void full_pipe_is_eagain(_unused_ void **state)
{
	static char block[1 << 20];
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_nonblock(ends[1]), 0);
	assert_int_equal(write_all(ends[1], "hello", 5), 5);
	assert_int_equal(write_all(ends[1], block, sizeof(block)), -EAGAIN);
	assert_int_equal(write_all(ends[1], block, 0), 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(fd_nonblock(-1), -EBADF);
}

static void cleanup_closes_and_keeps_errno(_unused_ void **state)
{
	int copy;

	errno = ENOTTY;
	{
		_cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		_cleanup_close_ _unused_ int none = -1;

		assert_true(fd >= 0);
		copy = fd;
		errno = ENOTTY;
	}
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(fcntl(copy, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_and_reads_back),
		cmocka_unit_test(opens_regular_files_alone),
		cmocka_unit_test(needs_room_for_the_nul),
		cmocka_unit_test(reads_proc_and_relative_paths),
		cmocka_unit_test(says_why_it_failed),
		cmocka_unit_test(failed_replacement_leaves_the_old),
		cmocka_unit_test(full_pipe_is_eagain),
		cmocka_unit_test(cleanup_closes_and_keeps_errno),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
