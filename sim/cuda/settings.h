// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What the environment says about the simulated time and the failures on demand; README.md lists the
 * variables. Read once, when libcuda is loaded.
 */
struct settings {
	bool instant; /* no work takes any time */
	double copy_bytes_per_ns; /* 0: copies take no time */
	bool failures; /* some call is to fail */
};

extern struct settings settings;

/* For libcuda, which knows the names of its calls; both libraries read their own failures. */
void settings_init(const char *const *names, uint32_t count);

/* How long a kernel of this name runs. */
int64_t settings_kernel_ns(const char *name);

/* The code with which this call is to fail; 0: not. Counts the calls of functions that fail now and then. */
int settings_failure(uint16_t api);
