// SPDX-License-Identifier: Apache-2.0
#include "model/occupancy.h"

#include <errno.h>

enum { WARP_THREADS = 32, BLOCK_THREADS = 1024, SM_REGISTERS = 65536, WARP_REGISTERS_UNIT = 256 };

struct limits {
	uint32_t sm, warps, blocks, barriers, block_registers, shared, block_shared, shared_unit, reserved,
		parts;
};

static const struct limits table[] = {
#define LIMITS(...) { __VA_ARGS__ },
#include "model/occupancy.def"
#undef LIMITS
};

static const struct limits *limits_of(uint16_t sm)
{
	for (const struct limits *l = table; l < table + ARRAY_SIZE(table); l++)
		if (l->sm == sm)
			return l;
	return NULL;
}

const char *occupancy_limiter_name(enum occupancy_limiter limiter)
{
	static const char *const names[OCCUPANCY_LIMITERS] = {
		[OCCUPANCY_WARPS] = "block_size",    [OCCUPANCY_BLOCKS] = "blocks_per_sm",
		[OCCUPANCY_REGISTERS] = "registers", [OCCUPANCY_SHARED] = "shared_memory",
		[OCCUPANCY_BARRIERS] = "barriers",
	};

	return names[limiter];
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Registers are allocated to whole warps, each in one of the multiprocessor's register file partitions. */
static uint64_t by_registers(const struct limits *l, uint64_t registers, uint32_t warps)
{
	uint64_t warp = round_up(registers * WARP_THREADS, WARP_REGISTERS_UNIT);

	if (registers > (l->sm < 70 ? 255 : 256))
		return 0;
	/*
	 * The launch check rounds up to four warps, one for each partition. sm_60 has two partitions, but
	 * must not accept what other sm_6x reject.
	 */
	if (warp * round_up(warps, 4) > l->block_registers)
		return 0;
	return warp ? SM_REGISTERS / l->parts / warp * l->parts / warps : UINT64_MAX;
}

static uint64_t by_shared(const struct limits *l, uint64_t static_bytes, uint64_t dynamic_bytes)
{
	uint64_t bytes;

	if (static_bytes > l->shared || dynamic_bytes > l->shared)
		return 0;
	bytes = round_up(static_bytes + dynamic_bytes + l->reserved, l->shared_unit);
	if (bytes > l->block_shared + l->reserved)
		return 0;
	return bytes ? l->shared / bytes : UINT64_MAX;
}

static uint64_t by_barriers(const struct limits *l, int64_t barriers)
{
	return l->barriers && barriers > 0 ? l->barriers / (uint64_t)barriers : UINT64_MAX;
}

int occupancy_of(uint16_t sm, const int64_t figures[KERNEL_FIGURES], uint32_t threads,
		 uint64_t dynamic_shared, struct occupancy *ret_occupancy)
{
	const struct limits *l = limits_of(sm);
	uint32_t warps = threads / WARP_THREADS + (threads % WARP_THREADS != 0);
	uint64_t blocks[OCCUPANCY_LIMITERS];
	enum occupancy_limiter limiter = 0;

	if (!l || figures[KERNEL_REGISTERS] < 0 || figures[KERNEL_STATIC_SHARED] < 0)
		return -ENODATA;
	if (threads == 0 || threads > BLOCK_THREADS)
		return -EINVAL;
	blocks[OCCUPANCY_WARPS] = l->warps / warps;
	blocks[OCCUPANCY_BLOCKS] = l->blocks;
	blocks[OCCUPANCY_REGISTERS] =
		by_registers(l, (uint64_t)MIN(figures[KERNEL_REGISTERS], (int64_t)UINT16_MAX), warps);
	blocks[OCCUPANCY_SHARED] = by_shared(l, (uint64_t)figures[KERNEL_STATIC_SHARED], dynamic_shared);
	blocks[OCCUPANCY_BARRIERS] = by_barriers(l, figures[KERNEL_BARRIERS]);
	for (unsigned i = 0; i < OCCUPANCY_LIMITERS; i++)
		if (blocks[i] < blocks[limiter])
			limiter = i;
	*ret_occupancy = (struct occupancy){
		.blocks = (uint32_t)blocks[limiter],
		.warps = (uint32_t)blocks[limiter] * warps,
		.warps_max = l->warps,
		.ratio = (double)(blocks[limiter] * warps) / l->warps,
		.limiter = limiter,
	};
	return 0;
}
