// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int read_fd(int fd, char *buf, size_t cap, size_t *ret_len)
{
	struct stat st;
	size_t len = 0;

	if (cap == 0)
		return -E2BIG;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	/* Until end of file, whatever size fstat() returns: files of /proc seem empty. */
	for (;;) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == cap)
			return -E2BIG;
	}
	buf[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return 0;
}

int read_file_at(int dirfd, const char *path, char *buf, size_t cap, size_t *ret_len)
{
	/* Neither opening nor reading may block, as they would for a FIFO. */
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : read_fd(fd, buf, cap, ret_len);
}

int fd_open_below(int root, const char *path, int flags)
{
	const struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int read_file(const char *path, char *buf, size_t cap, size_t *ret_len)
{
	return read_file_at(AT_FDCWD, path, buf, cap, ret_len);
}

int fd_reopen(int handle, const struct stat *st, int *ret_fd)
{
	char path[48];
	int fd;

	if (!S_ISREG(st->st_mode))
		return -ENOTSUP;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int fd_open_regular(const char *path, int *ret_fd)
{
	_cleanup_close_ int handle = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (handle < 0 || fstat(handle, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? -EISDIR : fd_reopen(handle, &st, ret_fd);
}

static int fill(int fd, const void *data, size_t n, mode_t mode)
{
	ssize_t written = write_all(fd, data, n);

	if (written < 0)
		return (int)written;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

int write_file_atomic(const char *path, const void *data, size_t n, mode_t mode)
{
	_cleanup_free_ char *beside = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fill(fd, data, n, mode);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	return r;
}

int fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

ssize_t write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	size_t left = n;

	while (left > 0) {
		ssize_t written = write(fd, at, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		left -= (size_t)written;
	}
	return (ssize_t)n;
}

int program_folder(char ret_path[static PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	ret_path[n] = '\0';
	slash = strrchr(ret_path, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}
