// SPDX-License-Identifier: Apache-2.0
/*
 * The files that a process maps or names, opened as it sees them: in containers, deleted or replaced. Only
 * regular files are opened, without waiting, for reading; a file on a dead network file system makes the
 * caller wait all the same.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* An area, as /proc/PID/maps or a record of the kernel tells it. */
struct proc_mapped {
	pid_t pid;
	uint64_t start, end, dev, ino;
	const char *path; /* not ended by NUL */
	size_t path_n;
};

/*
 * The file that is mapped there, and nothing else. -ESTALE: something else is there now; -ENOTSUP: no regular
 * file.
 */
int proc_mapped_open(const char *root, const struct proc_mapped *mapped, int *ret_fd, struct stat *ret_st);
/*
 * What @path is for the process, below its own root or, if relative, its working directory; what leads out of
 * that (../) is looked for below the root, too. -ENOTSUP: no regular file.
 */
int proc_file_open(const char *root, pid_t pid, const char *path, int *ret_fd, struct stat *ret_st);
