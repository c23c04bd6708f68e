// SPDX-License-Identifier: Apache-2.0
/*
 * Theoretical occupancy: the warps of a kernel that a multiprocessor can hold at once, relative to its
 * maximum, and what limits them. Uses the rules of NVIDIA's occupancy calculator (cuda_occupancy.h) with the
 * limits of occupancy.def.
 *
 * What a kernel and its launch do not show is assumed at its best: the largest shared memory carve-out (the
 * driver's default), and that a kernel that needs more than 48 KiB has opted in.
 */
#pragma once

#include <stdint.h>

#include "model/kernel.h"

/* If several are equally limiting, the first of them is named. */
enum occupancy_limiter {
	OCCUPANCY_WARPS, /* the block's size: warps of the multiprocessor */
	OCCUPANCY_BLOCKS, /* blocks per multiprocessor */
	OCCUPANCY_REGISTERS,
	OCCUPANCY_SHARED,
	OCCUPANCY_BARRIERS, /* named barriers, from sm_90 on */
	OCCUPANCY_LIMITERS
};
/* block_size, blocks_per_sm, registers, shared_memory, barriers */
const char *occupancy_limiter_name(enum occupancy_limiter limiter);

struct occupancy {
	uint32_t blocks; /* per multiprocessor; 0: cannot be launched */
	uint32_t warps, warps_max;
	double ratio;
	enum occupancy_limiter limiter;
};

/*
 * Occupancy of a kernel with @figures in blocks of @threads threads and @dynamic_shared bytes of dynamic
 * shared memory, on a device of @sm (100: sm_100). -ENODATA: a figure or the architecture is unknown.
 * -EINVAL: the block exceeds a limit of every device.
 */
int occupancy_of(uint16_t sm, const int64_t figures[KERNEL_FIGURES], uint32_t threads,
		 uint64_t dynamic_shared, struct occupancy *ret_occupancy);
