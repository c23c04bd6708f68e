// SPDX-License-Identifier: Apache-2.0
/*
 * Theoretical occupancy: warps of a kernel that a multiprocessor can hold at once, of those it has room for,
 * and what limits them. By the rules of NVIDIA's occupancy calculator (cuda_occupancy.h) with the limits of
 * occupancy.def.
 *
 * What cannot be known from a kernel and its launch is taken at its best: the multiprocessor gives as much of
 * its memory to shared memory as it can (the largest carve-out, the driver's default), and a kernel that
 * needs more than 48 KiB was allowed to.
 */
#pragma once

#include <stdint.h>

#include "model/kernel.h"

/* Where several limit alike, the first of them is named. */
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
	uint32_t blocks; /* per multiprocessor; 0: cannot be launched so */
	uint32_t warps, warps_max;
	double ratio;
	enum occupancy_limiter limiter;
};

/*
 * @kernel's registers and shared memory, blocks of @threads with @dynamic_shared bytes more, on a device of
 * @sm (100: sm_100). -ENODATA: a figure or the architecture is not known. -EINVAL: no device takes such a
 * block.
 */
int occupancy_of(uint16_t sm, const int64_t figures[KERNEL_FIGURES], uint32_t threads,
		 uint64_t dynamic_shared, struct occupancy *ret_occupancy);
