// SPDX-License-Identifier: Apache-2.0
/*
 * Functions to be probed, called by a child of the test's own: the tests' stand-in for CUDA. Each begins with
 * an instruction that every kernel emulates, then does what traced_body does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/attach.h"

/* As cuda.h and driver_types.h have them. */
struct traced_dim3 {
	unsigned x, y, z;
};
struct traced_extent {
	size_t width, height, depth;
};
struct traced_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct traced_config {
	struct traced_dim3 grid, block;
	size_t shared;
	void *stream;
};

/* What all of them run: gets the first arguments, gives the result. NULL: 0. */
typedef int traced_fn(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
extern traced_fn *traced_body;

traced_fn traced_outer, traced_inner, traced_third, traced_fourth;
traced_fn traced_tail; /* jumps to traced_inner */
traced_fn traced_deep; /* its site lies where the stack pointer is traced_deep_stack lower */
extern const uint32_t traced_deep_offset, traced_deep_stack;
int traced_launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		  unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int traced_launch_dim3(const void *function, struct traced_dim3 grid, struct traced_dim3 block, void **args,
		       size_t shared, void *stream);
int traced_launch_config(const struct traced_config *config, void *function, void **params, void **extra);
int traced_malloc3d(struct traced_pitched *pitched, struct traced_extent extent);

/* Where in the test's own executable code lies, and its bytes. */
struct attach_site traced_site(const void *code, uint16_t call);
int traced_file(void); /* the executable, open until the process ends */

/* Runs @fn in a child, waits for it and gives its status as waitpid(2) has it. */
int traced_run(void (*fn)(void *userdata), void *userdata, pid_t *ret_pid);
