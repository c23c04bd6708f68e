// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the files that a process maps or names, as that process sees them: in containers, deleted or
 * replaced. Only regular files are opened, non-blocking and read-only; an unresponsive network file system
 * blocks the caller nevertheless.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* An area from /proc/PID/maps or a record of the kernel. */
struct proc_mapped {
	pid_t pid;
	uint64_t start, end, dev, ino;
	const char *path; /* not NUL-terminated */
	size_t path_n;
	/*
	 * NULL, or whether a file may be opened, by its handle (O_PATH), before its file system is asked
	 * anything: 1, 0 (then -EREMOTEIO is returned), or -errno.
	 */
	int (*admit)(int handle, void *userdata);
	void *userdata;
};

/* Opens exactly the mapped file. -ESTALE: the path now has another file; -ENOTSUP: not a regular file. */
int proc_mapped_open(const char *root, const struct proc_mapped *mapped, int *ret_fd, struct stat *ret_st);
struct proc_map;
struct mounts_user;
/*
 * The same, of an area that was read from the process's maps, where no user can withhold the file's pages;
 * else -EREMOTEIO.
 */
int proc_map_open(const char *root, const struct proc_map *map, struct mounts_user *user, int *ret_fd,
		  struct stat *ret_st);
/*
 * Opens @path as seen by the process, with its rights (proc/rights.h): below its root or, if relative, its
 * working directory; ".." cannot leave the root. -ENOTSUP: not a regular file, or one that the kernel makes
 * up.
 */
int proc_file_open(const char *root, pid_t pid, const char *path, int *ret_fd, struct stat *ret_st);
