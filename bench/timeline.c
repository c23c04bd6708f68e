// SPDX-License-Identifier: Apache-2.0
/*
 * What an event of a timeline costs: launches of four threads, as "gpusonde trace --timeline" has them,
 * written to nowhere. As in training, each step launches the same kernels, from one thread; times are random.
 * Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "timeline/timeline.h"

enum { EVENTS = 2000000, THREADS = 4, KERNELS = 64, STEP = 400, GAP_NS = 10000 };

static size_t written;

static int count(struct timeline_block *block, _unused_ void *userdata)
{
	written += block->n;
	return 0;
}

static uint32_t text(struct timeline *timeline, const char *string)
{
	uint32_t number;

	if (timeline_text(timeline, string, &number) < 0)
		abort();
	return number;
}

static uint32_t track(struct timeline *timeline, struct timeline_track track)
{
	uint32_t number;

	if (timeline_track(timeline, &track, &number) < 0)
		abort();
	return number;
}

int main(void)
{
	static const struct timeline_ops ops = { .write = count };
	const char *const keys[] = { "kernel", "operator", "grid", "block", "shared_bytes", "stream" };
	static const uint32_t grid[3] = { 1024, 1, 1 }, block[3] = { 256, 1, 1 };
	uint32_t threads[THREADS], kernels[KERNELS], names[ARRAY_SIZE(keys)], process;
	struct timeline_event event = { .type = TIMELINE_SLICE, .args_n = ARRAY_SIZE(keys) };
	struct timeline *timeline;
	uint64_t now_ns = (uint64_t)clock_mono_ns(), random = now_ns | 1;
	int64_t begin_ns;
	uint8_t step[STEP];
	char name[64];

	if (timeline_new(TIMELINE_PERFETTO, &ops, NULL, &timeline) < 0)
		return EXIT_FAILURE;
	process = track(timeline, (struct timeline_track){ .kind = TIMELINE_PROCESS,
							   .parent = TIMELINE_NONE,
							   .pid = 1000,
							   .name = text(timeline, "python3") });
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = track(timeline, (struct timeline_track){ .kind = TIMELINE_THREAD,
								      .parent = process,
								      .pid = 1000,
								      .tid = 1000 + i,
								      .name = text(timeline, "worker") });
	for (unsigned i = 0; i < KERNELS; i++) {
		snprintf(name, sizeof(name), "vectorized_elementwise_kernel<%u>", i);
		kernels[i] = text(timeline, name);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
		names[i] = text(timeline, keys[i]);
	event.name = text(timeline, "cudaLaunchKernel");
	for (unsigned i = 0; i < STEP; i++)
		step[i] = (uint8_t)(rand() % KERNELS);
	begin_ns = clock_thread_cpu_ns();
	for (uint32_t i = 0; i < EVENTS; i++) {
		/* xorshift: times as even as a program's are not */
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		now_ns += random % GAP_NS;
		event.track = threads[i / STEP % THREADS];
		event.begin_ns = now_ns;
		event.end_ns = now_ns + 2000 + (random >> 40) % 2000;
		event.flow = i / 100 + 1;
		event.args[0] = (struct timeline_arg){ names[0], TIMELINE_TEXT, kernels[step[i % STEP]] };
		event.args[1] =
			(struct timeline_arg){ names[1], TIMELINE_TEXT, kernels[step[i % STEP] % 16] };
		event.args[2] =
			(struct timeline_arg){ names[2], TIMELINE_DIMENSIONS, timeline_dimensions(grid) };
		event.args[3] =
			(struct timeline_arg){ names[3], TIMELINE_DIMENSIONS, timeline_dimensions(block) };
		event.args[4] = (struct timeline_arg){ names[4], TIMELINE_UNSIGNED, 0 };
		event.args[5] = (struct timeline_arg){ names[5], TIMELINE_POINTER, 0x7f0012345678 };
		if (timeline_add(timeline, &event) < 0)
			return EXIT_FAILURE;
	}
	timeline_flush(timeline);
	printf("{\"ns\":%.1f,\"bytes\":%.2f}\n", (double)(clock_thread_cpu_ns() - begin_ns) / EVENTS,
	       (double)written / EVENTS);
	timeline_free(timeline);
	return EXIT_SUCCESS;
}
