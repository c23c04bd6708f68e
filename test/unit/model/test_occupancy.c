// SPDX-License-Identifier: Apache-2.0
#include "needs.h"
#include "test.h"

#include <errno.h>

#include "base/macro.h"
#include "model/occupancy.h"

/* NVIDIA's own calculator, where a toolkit is installed (meson.build says where). */
#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAVE_CALCULATOR 1
#else
#define HAVE_CALCULATOR 0
#endif

struct shape {
	uint16_t sm;
	uint32_t threads;
	int64_t registers, shared, barriers;
	uint64_t dynamic;
};

static int compute(const struct shape *s, struct occupancy *ret)
{
	int64_t figures[KERNEL_FIGURES];

	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		figures[i] = -1;
	figures[KERNEL_REGISTERS] = s->registers;
	figures[KERNEL_STATIC_SHARED] = s->shared;
	figures[KERNEL_BARRIERS] = s->barriers;
	return occupancy_of(s->sm, figures, s->threads, s->dynamic, ret);
}

static void known_launches(void **state)
{
	static const struct {
		struct shape shape;
		uint32_t blocks, warps, warps_max;
		enum occupancy_limiter limiter;
	} rows[] = {
		/* 32 warps of 64: two blocks of 1,024 threads */
		{ { 90, 1024, 32, 0, 1, 0 }, 2, 64, 64, OCCUPANCY_WARPS },
		{ { 90, 32, 16, 0, 1, 0 }, 32, 32, 64, OCCUPANCY_BLOCKS },
		/* 33 registers count as 40: 1,280 for a warp, 12 warps in each quarter */
		{ { 80, 256, 33, 0, 1, 0 }, 6, 48, 64, OCCUPANCY_REGISTERS },
		{ { 80, 256, 255, 0, 1, 0 }, 1, 8, 64, OCCUPANCY_REGISTERS },
		/* 48 KiB and the driver's own: 4 times 49 in 228 */
		{ { 90, 256, 32, 48 << 10, 1, 0 }, 4, 32, 64, OCCUPANCY_SHARED },
		{ { 90, 128, 168, 1024, 16, 226 << 10 }, 1, 4, 64, OCCUPANCY_SHARED },
		{ { 90, 128, 168, 1024, 16, (226 << 10) + 1 }, 0, 0, 64, OCCUPANCY_SHARED },
		{ { 75, 1024, 64, 0, 1, 0 }, 1, 32, 32, OCCUPANCY_WARPS },
		{ { 86, 1024, 32, 0, 1, 0 }, 1, 32, 48, OCCUPANCY_WARPS },
		/* Too many registers for a block of that size: the launch fails */
		{ { 89, 1024, 65, 0, 1, 0 }, 0, 0, 48, OCCUPANCY_REGISTERS },
		{ { 90, 128, 32, 0, 16, 0 }, 4, 16, 64, OCCUPANCY_BARRIERS },
		{ { 80, 128, 32, 0, 16, 0 }, 16, 64, 64, OCCUPANCY_WARPS },
		/* Nothing but the block's size limits */
		{ { 120, 1, 0, 0, -1, 0 }, 24, 24, 48, OCCUPANCY_BLOCKS },
		{ { 50, 1, 0, 0, 0, 0 }, 32, 32, 64, OCCUPANCY_BLOCKS },
		{ { 100, 33, 32, 0, 0, 0 }, 32, 64, 64, OCCUPANCY_WARPS },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct occupancy o;

		assert_int_equal(compute(&rows[i].shape, &o), 0);
		assert_int_equal(o.blocks, rows[i].blocks);
		assert_int_equal(o.warps, rows[i].warps);
		assert_int_equal(o.warps_max, rows[i].warps_max);
		assert_int_equal(o.limiter, rows[i].limiter);
		assert_true(o.ratio == (double)rows[i].warps / rows[i].warps_max);
	}
}

static void what_is_not_known_is_not_guessed(void **state)
{
	static const struct {
		struct shape shape;
		int r;
	} rows[] = {
		{ { 0, 128, 32, 0, 0, 0 }, -ENODATA },   { { 51, 128, 32, 0, 0, 0 }, -ENODATA },
		{ { 130, 128, 32, 0, 0, 0 }, -ENODATA }, { { 90, 128, -1, 0, 0, 0 }, -ENODATA },
		{ { 90, 128, 32, -1, 0, 0 }, -ENODATA }, { { 90, 0, 32, 0, 0, 0 }, -EINVAL },
		{ { 90, 1025, 32, 0, 0, 0 }, -EINVAL },  { { 90, UINT32_MAX, 32, 0, 0, 0 }, -EINVAL },
	};
	struct occupancy o = { .blocks = 77 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(compute(&rows[i].shape, &o), rows[i].r);
	assert_int_equal(o.blocks, 77);
}

static void figures_that_lie_are_only_too_much(void **state)
{
	static const struct shape rows[] = {
		{ 90, 1024, INT64_MAX, 0, 0, 0 },   { 90, 1024, 32, INT64_MAX, 0, UINT64_MAX },
		{ 60, 1024, 32, 0, 0, UINT64_MAX }, { 90, 1024, 32, 0, INT64_MAX, 0 },
		{ 90, 1024, 257, 0, 0, 0 },         { 61, 32, 256, 0, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct occupancy o;

		assert_int_equal(compute(&rows[i], &o), 0);
		assert_int_equal(o.blocks, 0);
		assert_true(o.ratio == 0);
	}
}

static void limiters_have_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OCCUPANCY_LIMITERS; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(occupancy_limiter_name(i), occupancy_limiter_name(j));
	assert_string_equal(occupancy_limiter_name(OCCUPANCY_WARPS), "block_size");
	assert_string_equal(occupancy_limiter_name(OCCUPANCY_SHARED), "shared_memory");
}

#if HAVE_CALCULATOR
/*
 * What cudaGetDeviceProperties() says of a device of each architecture, written down apart from
 * occupancy.def.
 */
static const struct device {
	int sm, threads, block_registers;
	size_t shared, block_shared;
} devices[] = {
	{ 50, 2048, 65536, 65536, 49152 },    { 52, 2048, 65536, 98304, 49152 },
	{ 53, 2048, 32768, 65536, 49152 },    { 60, 2048, 65536, 65536, 49152 },
	{ 61, 2048, 65536, 98304, 49152 },    { 62, 2048, 32768, 65536, 49152 },
	{ 70, 2048, 65536, 98304, 98304 },    { 72, 2048, 65536, 98304, 98304 },
	{ 75, 1024, 65536, 65536, 65536 },    { 80, 2048, 65536, 167936, 166912 },
	{ 86, 1536, 65536, 102400, 101376 },  { 87, 1536, 65536, 167936, 166912 },
	{ 88, 1536, 65536, 102400, 101376 },  { 89, 1536, 65536, 102400, 101376 },
	{ 90, 2048, 65536, 233472, 232448 },  { 100, 2048, 65536, 233472, 232448 },
	{ 101, 1536, 65536, 233472, 232448 }, { 103, 2048, 65536, 233472, 232448 },
	{ 110, 1536, 65536, 233472, 232448 }, { 120, 1536, 65536, 102400, 101376 },
	{ 121, 1536, 65536, 102400, 101376 },
};

static void calculate(const struct device *d, const struct shape *s, cudaOccResult *ret)
{
	cudaOccDeviceProp device = {
		.computeMajor = d->sm / 10,
		.computeMinor = d->sm % 10,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = d->threads,
		.regsPerBlock = d->block_registers,
		.regsPerMultiprocessor = 65536,
		.warpSize = 32,
		.sharedMemPerBlock = 49152,
		.sharedMemPerMultiprocessor = d->shared,
		.numSms = 1,
		.sharedMemPerBlockOptin = d->block_shared,
		.reservedSharedMemPerBlock = d->sm >= 80 ? 1024 : 0,
	};
	cudaOccFuncAttributes kernel = {
		.maxThreadsPerBlock = 1024,
		.numRegs = (int)s->registers,
		.sharedSizeBytes = (size_t)s->shared,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = s->dynamic,
		.numBlockBarriers = (int)s->barriers,
	};
	cudaOccDeviceState defaults = { .carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT };

	assert_int_equal(cudaOccMaxActiveBlocksPerMultiprocessor(ret, &device, &kernel, &defaults,
								 (int)s->threads, s->dynamic),
			 CUDA_OCC_SUCCESS);
}

static void compare(const struct device *d, const struct shape *s)
{
	static const unsigned bits[OCCUPANCY_LIMITERS] = {
		[OCCUPANCY_WARPS] = OCC_LIMIT_WARPS,         [OCCUPANCY_BLOCKS] = OCC_LIMIT_BLOCKS,
		[OCCUPANCY_REGISTERS] = OCC_LIMIT_REGISTERS, [OCCUPANCY_SHARED] = OCC_LIMIT_SHARED_MEMORY,
		[OCCUPANCY_BARRIERS] = OCC_LIMIT_BARRIERS,
	};
	cudaOccResult result = { 0 };
	struct occupancy o;

	calculate(d, s, &result);
	assert_int_equal(compute(s, &o), 0);
	/*
	 * Its bits for the other limits stand for more than the least where barriers are it; ours is the
	 * first of the least.
	 */
	if ((uint32_t)result.activeBlocksPerMultiprocessor != o.blocks ||
	    !(result.limitingFactors & bits[o.limiter]))
		fail_msg("sm_%u, %u threads, %d registers, %d + %d bytes, %d barriers: %u blocks by %s, not "
			 "%d by 0x%x",
			 s->sm, s->threads, (int)s->registers, (int)s->shared, (int)s->dynamic,
			 (int)s->barriers, o.blocks, occupancy_limiter_name(o.limiter),
			 result.activeBlocksPerMultiprocessor, result.limitingFactors);
	for (unsigned i = 0; i < o.limiter; i++)
		if (result.limitingFactors & bits[i] && o.limiter != OCCUPANCY_BARRIERS)
			fail_msg("%s is not the first", occupancy_limiter_name(o.limiter));
	assert_int_equal(o.warps_max, d->threads / 32);
	assert_true(o.ratio == o.blocks * ((s->threads + 31) / 32) / (d->threads / 32.0));
}

static void every_combination(void)
{
	static const uint32_t threads[] = { 1,   31,  32,  33,  64,  96,  128, 160,  192,
					    256, 352, 384, 512, 640, 768, 992, 1000, 1024 };
	static const int64_t registers[] = { 0,  1,  8,  9,  16,  24,  32,  33,  40,  48,  56,  64,
					     65, 72, 80, 96, 128, 168, 200, 224, 254, 255, 256, 300 };
	static const int64_t shared[] = { 0,     1,     127,   128,   255,   257,   1024,   8192,
					  16384, 33000, 49151, 49152, 49153, 65536, 101376, 232448 };
	static const uint64_t dynamic[] = { 0, 1, 1024, 16384, 49152, 100352, 166912, 231424, 233472 };
	static const int64_t barriers[] = { 0, 1, 2, 3, 16 };
	unsigned n = 0, x = 0;

	for (unsigned d = 0; d < ARRAY_SIZE(devices); d++)
		for (unsigned t = 0; t < ARRAY_SIZE(threads); t++)
			for (unsigned r = 0; r < ARRAY_SIZE(registers); r++)
				for (unsigned s = 0; s < ARRAY_SIZE(shared); s++, x++, n++)
					compare(&devices[d],
						&(struct shape){ (uint16_t)devices[d].sm, threads[t],
								 registers[r], shared[s],
								 barriers[x % ARRAY_SIZE(barriers)],
								 dynamic[x / 7 % ARRAY_SIZE(dynamic)] });
	print_message("# %u combinations\n", n);
}
#endif

static void equal_to_nvidias_calculator(void **state)
{
	(void)state;
#if HAVE_CALCULATOR
	every_combination();
#else
	need_unmet("cuda_occupancy.h is not installed, nothing to compare with");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_launches),
		cmocka_unit_test(what_is_not_known_is_not_guessed),
		cmocka_unit_test(figures_that_lie_are_only_too_much),
		cmocka_unit_test(limiters_have_names),
		cmocka_unit_test(equal_to_nvidias_calculator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
