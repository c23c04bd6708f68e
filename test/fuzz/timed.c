// SPDX-License-Identifier: Apache-2.0
/*
 * The promise that every fuzzer checks: an input is handled within its bound of CPU time, some for any
 * input and some for each KiB of it (meson.build has both, for each fuzzer). It is the CPU time of all
 * threads, since other programs run beside. What is above the bound is measured again: the first time may
 * pay for something else.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIES = 3 };

static struct {
	double share; /* of the bound */
	int64_t ns;
	size_t size;
} slowest;

static int64_t cpu_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void print_slowest(void)
{
	fprintf(stderr, "# slowest input: %zu bytes in %.3f ms of CPU time, %.1f %% of its bound\n",
		slowest.size, (double)slowest.ns / 1e6, slowest.share * 100);
}

static int64_t bound_ns(size_t size)
{
	return fuzz_bound.ms * 1000000 + (int64_t)size * fuzz_bound.us_per_kib * 1000 / 1024;
}

static void note_slowest(int64_t ns, size_t size)
{
	double share = (double)ns / (double)bound_ns(size);

	if (slowest.ns == 0)
		atexit(print_slowest);
	if (share <= slowest.share)
		return;
	slowest.share = share;
	slowest.ns = ns;
	slowest.size = size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < TRIES && least > bound_ns(size); i++) {
		int64_t begin = cpu_ns(), ns;

		fuzz_one(data, size);
		ns = cpu_ns() - begin;
		if (ns < least)
			least = ns;
	}
	note_slowest(least, size);
	if (least > bound_ns(size)) {
		fprintf(stderr, "too slow: %zu bytes take %.3f ms of CPU time, at least, and may take %.3f\n",
			size, (double)least / 1e6, (double)bound_ns(size) / 1e6);
		abort();
	}
	return 0;
}
