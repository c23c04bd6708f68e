// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

/* CPU seconds of this process, its ended children and @child; resident bytes of this process and @child. */
struct usage {
	double cpu_seconds;
	double resident_bytes;
};

/* @child 0: none. What cannot be read counts as 0. */
void usage_read(pid_t child, struct usage *ret_usage);
