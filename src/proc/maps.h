// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/maps, area by area, in bounded memory: a process may have tens of thousands. The kernel takes the
 * process's mmap lock for each read; one that never lets go of that lock (a write to a dead file server,
 * under it) makes the caller wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct proc_map {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	/* as maps has them, which on btrfs and overlay is not what stat() says; 0: no file */
	uint64_t dev, ino;
	bool executable;
	const char *path; /* not ended by NUL; as printed, " (deleted)" too */
	size_t path_n;
};

/* One line without its end. -EBADMSG. */
int proc_map_parse(const char *line, size_t n, struct proc_map *ret_map);

struct proc_maps {
	int fd;
	bool eof, cut; /* nothing more to read; in the rest of a line that did not fit */
	size_t at, n;
	char buf[16384];
};

/* @root is "/proc" except in tests. */
int proc_maps_open(const char *root, pid_t pid, struct proc_maps *ret_maps);
/* Also of one that was never opened, if its fd is -1. */
void proc_maps_done(struct proc_maps *maps);
/*
 * 1: an area, whose path is good until the next call; 0: no more; -errno. Lines that are none or too long are
 * left out.
 */
int proc_maps_next(struct proc_maps *maps, struct proc_map *ret_map);
/* The first executable area of a file. -ENOENT. */
int proc_maps_find(const char *root, pid_t pid, uint64_t dev, uint64_t ino, struct proc_map *ret_map);
