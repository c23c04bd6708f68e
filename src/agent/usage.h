// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

/* CPU seconds of this process, its ended children and @child; resident bytes of this process and @child. */
struct usage {
	double cpu_seconds;
	double resident_bytes;
};

/* Of this process, of @children (0: none there), and the CPU time of ended ones. What cannot be read is 0. */
void usage_read(const pid_t *children, unsigned n, struct usage *ret_usage);
