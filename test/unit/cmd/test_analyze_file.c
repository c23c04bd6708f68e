// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/analyze/file.h"
#include "pipeline/timeline.h"
#include "timeline/timeline.h"

enum { MS = 1000000, PID = 1000 };

static char path[] = "/tmp/gpusonde-test-XXXXXX";

static int write_block(struct timeline_block *block, void *userdata)
{
	return write_all(*(int *)userdata, block->data, block->n) == (ssize_t)block->n ? 0 : -EIO;
}

static uint32_t text(struct timeline *t, const char *string)
{
	uint32_t number;

	assert_int_equal(timeline_text(t, string, &number), 0);
	return number;
}

static uint32_t track(struct timeline *t, uint8_t kind, uint32_t parent, const char *name)
{
	const struct timeline_track of = {
		.kind = kind, .parent = parent, .pid = PID, .name = text(t, name)
	};
	uint32_t number;

	assert_int_equal(timeline_track(t, &of, &number), 0);
	return number;
}

static void slice_of(struct timeline *t, uint32_t on, uint64_t begin_ms, uint64_t end_ms, const char *times)
{
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.track = on,
					.name = text(t, "work"),
					.begin_ns = begin_ms * MS,
					.end_ns = end_ms * MS };

	if (times)
		event.args[event.args_n++] =
			(struct timeline_arg){ text(t, "times"), TIMELINE_TEXT, text(t, times) };
	assert_int_equal(timeline_add(t, &event), 0);
}

static void slice(struct timeline *t, uint32_t on, uint64_t begin_ms, const char *times)
{
	slice_of(t, on, begin_ms, begin_ms + 1, times);
}

/* A kernel of a stream, estimated, and the same one as CUPTI measured it. */
static void write_timeline(int fd)
{
	static const struct timeline_ops ops = { .write = write_block };
	struct timeline *t;
	uint32_t process;

	assert_int_equal(timeline_new(TIMELINE_PERFETTO, &ops, &fd, &t), 0);
	process = track(t, TIMELINE_PROCESS, TIMELINE_NONE, "python3");
	slice(t, track(t, TIMELINE_CHILD, process, "GPU 0 stream 0x7"), 10, NULL);
	slice(t, track(t, TIMELINE_CHILD, process, "GPU 0 measured, stream 7"), 11, "measured by CUPTI");
	assert_int_equal(timeline_flush(t), 0);
	timeline_free(t);
}

static void what_was_measured_counts_no_work_twice(_unused_ void **state)
{
	int fd = mkstemp(path), r;
	struct analysis *analysis;
	struct analyze_file *file;
	struct analysis_event event;
	unsigned works = 0;

	assert_true(fd >= 0);
	write_timeline(fd);
	close(fd);
	assert_int_equal(
		analysis_new(&(struct analysis_options){ .window_ns = ANALYSIS_WINDOW_NS }, &analysis), 0);
	assert_int_equal(analyze_file_new(path, analysis, 0, &file), 0);
	while ((r = analyze_file_next(file, &event)) > 0) {
		if (event.kind != ANALYSIS_WORK)
			continue;
		works++;
		assert_int_equal(event.begin_ns, 10 * MS);
		assert_int_equal(event.pid, PID);
		assert_true(event.flags & ANALYSIS_ESTIMATED);
	}
	assert_int_equal(r, 0);
	assert_int_equal(works, 1);
	analyze_file_free(file);
	analysis_free(analysis);
	unlink(path);
}

/* Two seconds of which the second was measured, as it is told: later than the estimate. */
static void write_measured(int fd)
{
	static const struct timeline_ops ops = { .write = write_block };
	uint32_t process, stream, measured, times;
	struct timeline *t;

	assert_int_equal(timeline_new(TIMELINE_PERFETTO, &ops, &fd, &t), 0);
	process = track(t, TIMELINE_PROCESS, TIMELINE_NONE, "python3");
	stream = track(t, TIMELINE_CHILD, process, "GPU 0 stream 0x7");
	measured = track(t, TIMELINE_CHILD, process, "GPU 0 measured, stream 7");
	times = track(t, TIMELINE_CHILD, process, TIMELINE_MEASURED);
	slice_of(t, times, 900, 1000, NULL);
	slice_of(t, stream, 1000, 3000, NULL);
	slice_of(t, measured, 2500, 2600, "measured by CUPTI");
	slice_of(t, times, 2000, 3000, NULL);
	assert_int_equal(timeline_flush(t), 0);
	timeline_free(t);
}

static void measured_times_are_judged_and_estimates_of_the_others(_unused_ void **state)
{
	static const struct {
		uint64_t begin_ms, end_ms;
		unsigned flags;
	} wanted[] = { { 2500, 2600, ANALYSIS_TRUE }, { 1000, 2000, ANALYSIS_ESTIMATED } };
	struct analysis *analysis;
	struct analyze_file *file;
	struct analysis_event event;
	unsigned works = 0;
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	write_measured(fd);
	close(fd);
	assert_int_equal(
		analysis_new(&(struct analysis_options){ .window_ns = ANALYSIS_WINDOW_NS }, &analysis), 0);
	assert_int_equal(analyze_file_new(path, analysis, 0, &file), 0);
	while (analyze_file_next(file, &event) > 0) {
		if (event.kind != ANALYSIS_WORK)
			continue;
		assert_true(works < 2);
		assert_int_equal(event.begin_ns / MS, wanted[works].begin_ms);
		assert_int_equal(event.end_ns / MS, wanted[works].end_ms);
		assert_int_equal(event.flags, wanted[works].flags);
		works++;
	}
	assert_int_equal(works, 2);
	analyze_file_free(file);
	analysis_free(analysis);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_measured_counts_no_work_twice),
		cmocka_unit_test(measured_times_are_judged_and_estimates_of_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
