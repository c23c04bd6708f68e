// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/macro.h"

/* Preserves errno, so that a function may return -errno while its descriptors are closed. */
static inline void closep(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
#define _cleanup_close_ _cleanup_(closep)

/*
 * Reads a whole file, of /proc and /sys too, into @buf of @cap bytes (the NUL that ends it included).
 * -E2BIG when it does not fit; -EISDIR, and -ENOTSUP for what else is no regular file; any errno of open and
 * read. @ret_len may be NULL. After a failure the content of @buf is unspecified.
 */
int read_file(const char *path, char *buf, size_t cap, size_t *ret_len);

/* The same for a path relative to the directory @dirfd (or AT_FDCWD). */
int read_file_at(int dirfd, const char *path, char *buf, size_t cap, size_t *ret_len);

/* The same for an open one, from where it stands. */
int read_fd(int fd, char *buf, size_t cap, size_t *ret_len);

/*
 * Opens a path below the folder @root (a descriptor), as if that were the root: symbolic links are followed
 * within it. A descriptor or a negative errno.
 */
int fd_open_below(int root, const char *path, int flags);

/*
 * Replaces @path by a file of these @n bytes: readers see the old or the new content, never a part,
 * after a crash of the program too. It is not forced to disk, which may take seconds: after a crash of the
 * machine the file may be the old one, or empty. Writes beside it (@path plus a suffix), so the directory
 * must be writable.
 */
int write_file_atomic(const char *path, const void *data, size_t n, mode_t mode);

int fd_nonblock(int fd);

/*
 * Opens the file of the O_PATH descriptor @handle, of which fstat() returned @st: for reading, non-blocking,
 * and never a device or a FIFO (-ENOTSUP), since opening these has side effects.
 */
int fd_reopen(int handle, const struct stat *st, int *ret_fd);
/* The same by its path. -EISDIR; -ENOTSUP for what else is no regular file. */
int fd_open_regular(const char *path, int *ret_fd);

/*
 * Writes all @n bytes and returns @n, or a negative errno, which includes -EAGAIN on a full non-blocking
 * descriptor; after an error the number of bytes written is unknown.
 */
ssize_t write_all(int fd, const void *p, size_t n);

/*
 * The folder that this program's file is in, as the kernel knows it: free of symbolic links. Any errno of
 * readlink.
 */
int program_folder(char ret_path[static PATH_MAX]);
