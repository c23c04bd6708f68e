// SPDX-License-Identifier: Apache-2.0
/*
 * Iterates over /proc/PID/maps in bounded memory: a process may have tens of thousands of areas. The kernel
 * takes the process's mmap lock for each read; if that lock is held for long (a write to an unresponsive file
 * server), the caller blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct proc_map {
	uint64_t start, end;
	uint64_t offset; /* offset of start in the file */
	/* as in maps, which differs from stat() on btrfs and overlay; 0: no file */
	uint64_t dev, ino;
	bool executable;
	const char *path; /* not NUL-terminated; as printed, including " (deleted)" */
	size_t path_n;
};

/* Parses one line without its newline. -EBADMSG. */
int proc_map_parse(const char *line, size_t n, struct proc_map *ret_map);

struct proc_maps {
	int fd;
	bool eof, cut; /* end of file reached; skipping the rest of a line that is too long */
	size_t at, n;
	char buf[16384];
};

/* @root is "/proc" except in tests. */
int proc_maps_open(const char *root, pid_t pid, struct proc_maps *ret_maps);
/* Also allowed if it was never opened and its fd is -1. */
void proc_maps_done(struct proc_maps *maps);
/*
 * 1: an area, whose path is valid until the next call; 0: no more; -errno. Invalid and too long lines are
 * skipped.
 */
int proc_maps_next(struct proc_maps *maps, struct proc_map *ret_map);
/* The first executable area of a file. -ENOENT. */
int proc_maps_find(const char *root, pid_t pid, uint64_t dev, uint64_t ino, struct proc_map *ret_map);
/* Device and inode of an open file as in /proc/PID/maps, of a mapping of our own. */
int proc_maps_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino);
