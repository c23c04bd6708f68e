// SPDX-License-Identifier: Apache-2.0
/*
 * What an event of a timeline costs: launches of four threads, as "gpusonde trace --timeline" has them. As in
 * training, each step launches the same kernels, from one thread; times are random, 100,000 a second by the
 * events' clocks. Prints one line of JSON.
 *
 *	bench_timeline			2 million, written to nowhere
 *	bench_timeline FOLDER EVENTS	so many, in files there that rotate, of which the oldest go
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "timeline/timeline.h"
#include "timeline/writer.h"

enum { EVENTS = 2000000, THREADS = 4, KERNELS = 64, STEP = 400, GAP_NS = 20000 };
enum { FILE_BYTES = 64 << 20, FOLDER_BYTES = 256 << 20 };

static size_t written;
static struct timeline_writer *writer; /* NULL: to nowhere */

/* Here the disk is waited for, which the agent does not do: all that is fed is to be measured. */
static int count(struct timeline_block *block, _unused_ void *userdata)
{
	const struct timespec moment = { 0, NSEC_PER_MSEC };

	written += block->n;
	while (writer && timeline_writer_put(writer, block) < 0)
		nanosleep(&moment, NULL);
	return 0;
}

static int open_files(const char *folder)
{
	struct timeline_files_config files = { .format = TIMELINE_PERFETTO,
					       .folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					       .exclusive = true,
					       .rotate_bytes = FILE_BYTES,
					       .prefix = "bench-",
					       .folder_bytes = FOLDER_BYTES - FILE_BYTES };

	strcpy(files.stem, "bench-timeline");
	return files.folder < 0 ? -errno : timeline_writer_new(&files, true, &writer);
}

/* Of all threads. */
static int64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static void print(uint64_t events, int64_t begin_ns)
{
	struct timeline_writer_status status = { 0 };
	struct rusage usage;

	if (writer) {
		timeline_writer_end(writer);
		while (!timeline_writer_wait(writer, NSEC_PER_SEC))
			;
		timeline_writer_status(writer, &status);
		timeline_writer_free(writer);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"ns\":%.1f,\"bytes\":%.2f,\"resident_bytes\":%ld,\"files\":%u,\"lost\":%" PRIu64
	       "}\n",
	       (double)(cpu_ns() - begin_ns) / (double)events, (double)written / (double)events,
	       usage.ru_maxrss * 1024, status.files, status.lost);
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

int main(int argc, char **argv)
{
	static const struct timeline_ops ops = { .write = count };
	const char *const keys[] = { "kernel", "operator", "grid", "block", "shared_bytes", "stream" };
	static const uint32_t grid[3] = { 1024, 1, 1 }, block[3] = { 256, 1, 1 };
	uint32_t threads[THREADS], kernels[KERNELS], names[ARRAY_SIZE(keys)], process;
	struct timeline_event event = { .type = TIMELINE_SLICE, .args_n = ARRAY_SIZE(keys) };
	struct timeline *timeline;
	uint64_t now_ns = (uint64_t)clock_mono_ns(), random = now_ns | 1;
	uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : EVENTS;
	int64_t begin_ns;
	uint8_t step[STEP];
	char name[64];

	if (argc > 1 && open_files(argv[1]) < 0)
		return EXIT_FAILURE;
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
	begin_ns = cpu_ns();
	for (uint64_t i = 0; i < events; i++) {
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
	print(events, begin_ns);
	timeline_free(timeline);
	return EXIT_SUCCESS;
}
