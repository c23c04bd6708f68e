// SPDX-License-Identifier: Apache-2.0
/*
 * What compilers that run in a process (V8, LLVM's, CPython's -X perf) say of the code that they made:
 * /tmp/perf-PID.map in the process's file system, lines "ADDRESS BYTES NAME" with hexadecimal numbers. The
 * process writes it, and is believed of its own code only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/mounts.h"

enum {
	PERF_MAP_BYTES = 64 << 20, /* the beginning of a longer one is read */
	PERF_MAP_NAME = 1024, /* a longer name is cut */
};

/* @name is valid UTF-8 without control characters. Reading stops when it returns a value other than 0. */
typedef int perf_map_fn(uint64_t address, uint64_t size, const char *name, void *userdata);

/*
 * Of @user->pid. -ENOENT: there is none; -EREMOTEIO: it is on a file system that a user serves; -ENOTSUP: it
 * is no regular file; -EPERM: it is another user's than the process, and says nothing of it.
 */
int perf_map_open(struct mounts_user *user, int *ret_fd);
/* Lines that are none are skipped. Their order is the file's: the last one of an address counts. */
int perf_map_read(int fd, perf_map_fn *fn, void *userdata);
/* The same of text. *ret_n: bytes of whole lines that were read. */
int perf_map_parse(const char *text, size_t n, perf_map_fn *fn, void *userdata, size_t *ret_n);
