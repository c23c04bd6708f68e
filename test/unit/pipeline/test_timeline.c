// SPDX-License-Identifier: Apache-2.0
/* What snapshots become in a timeline: the GPUs' counters, whose times are the driver's. */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "pipeline/timeline.h"
#include "timeline/read.h"

enum { VALUES = 64 };

static struct trace_timeline *timeline;
static struct snapshot node;
static struct entity gpu;
static int file;

/* Of the counter that is asked for; how many marks there are that begin like this. */
static struct {
	int64_t at_ms[VALUES]; /* after the test's begin */
	double value[VALUES];
	unsigned n;
} told;
static int64_t begin_ns;

static int keep(struct timeline_block *block, void *userdata)
{
	(void)userdata;
	return write_all(file, block->data, block->n) < 0 ? -errno : 0;
}

static int setup(void **state)
{
	const struct trace_timeline_config config = { .format = TIMELINE_PERFETTO, .ops.write = keep };

	(void)state;
	clock_freeze(true);
	begin_ns = clock_mono_ns();
	file = memfd_create("timeline", MFD_CLOEXEC);
	gpu = (struct entity){ .present = true, .source = SOURCE_NVML };
	strcpy(gpu.id.uuid, "GPU-0");
	strcpy(gpu.id.name, "some");
	gpu.id.parent = READING_NONE;
	node = (struct snapshot){ .entities = &gpu, .entities_n = 1 };
	return file < 0 ? -1 : trace_timeline_new(&config, &timeline);
}

static int teardown(void **state)
{
	(void)state;
	trace_timeline_free(timeline);
	clock_freeze(false);
	return close(file);
}

static void set(unsigned slot, double value)
{
	gpu.id.v[slot] = value;
	gpu.id.p[slot] = PRESENCE_PRESENT;
}

/* One that ends a second after the one before, with a utilisation of @age_ms before; negative: no time. */
static void reading(double utilization, int64_t age_ms)
{
	clock_advance(NSEC_PER_SEC);
	gpu.sampled_boot_ns = gpu.stamped_boot_ns = clock_boot_ns();
	gpu.sampled_real_ns = gpu.stamped_real_ns = clock_real_ns();
	gpu.id.stamps.at_ns[STAMPED_UTILIZATION_GPU] =
		age_ms < 0 ? 0 : clock_boot_ns() - age_ms * NSEC_PER_MSEC;
	set(SLOT_UTILIZATION_GPU, utilization);
	trace_timeline_node(timeline, &node);
}

/* Reads the counter of this name; the number of marks named @mark. */
static unsigned look(const char *counter, const char *mark, struct timeline_event *ret_mark)
{
	_cleanup_(timeline_reader_freep) struct timeline_reader *reader = NULL;
	struct timeline_event event;
	unsigned marks = 0;
	int r;

	told.n = 0;
	assert_int_equal(trace_timeline_finish(timeline), 0);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(timeline_reader_new(file, &reader), 0);
	while ((r = timeline_read_next(reader, &event)) > 0) {
		const struct timeline_track *track = timeline_reader_track(reader, event.track);

		if (event.type == TIMELINE_VALUE &&
		    strcmp(timeline_reader_text(reader, track->name), counter) == 0) {
			assert_true(told.n < VALUES);
			told.at_ms[told.n] = ((int64_t)event.begin_ns - begin_ns) / NSEC_PER_MSEC;
			told.value[told.n++] = event.value;
		} else if (event.type == TIMELINE_INSTANT &&
			   strcmp(timeline_reader_text(reader, event.name), mark) == 0) {
			marks++;
			*ret_mark = event;
		}
	}
	assert_int_equal(r, 0);
	for (unsigned i = 1; i < told.n; i++)
		assert_true(told.at_ms[i] >= told.at_ms[i - 1]);
	return marks;
}

static void values_have_the_times_of_the_driver(void **state)
{
	struct timeline_event mark;

	(void)state;
	gpu.id.stamps.offset_ns = -192 * NSEC_PER_MSEC;
	gpu.id.stamps.error_ns = 1000;
	set(SLOT_POWER, 300);
	reading(0.5, 1030);
	reading(0.7, 1040);
	assert_int_equal(look("utilization", "driver's clock", &mark), 1);
	assert_int_equal(told.n, 2);
	assert_in_range(told.at_ms[0] + 100, 69, 71);
	assert_in_range(told.at_ms[1], 959, 961);
	assert_true(told.value[1] == 0.7);
	assert_int_equal(mark.args_n, 3);
	assert_int_equal((int64_t)mark.args[1].value, -192 * NSEC_PER_MSEC);
	assert_in_range((int64_t)mark.args[0].value -
				(clock_real_ns() - clock_mono_ns() - 192 * NSEC_PER_MSEC) + NSEC_PER_MSEC,
			0, 2 * NSEC_PER_MSEC);
	assert_int_equal(mark.args[2].value, 1000);
	look("power, watts", "", &mark);
	assert_in_range(told.at_ms[0], 999, 1001);
}

/* The same value once more is none; one without a time has ours, and the next begins after it. */
static void values_without_a_time_of_their_own(void **state)
{
	struct timeline_event mark;

	(void)state;
	gpu.id.stamps.error_ns = 1000;
	reading(0.1, 1000); /* at 0 ms */
	reading(0.1, 2000); /* the same */
	reading(0.2, -1); /* at 3000 */
	reading(0.3, 3500); /* from 500 on: after that */
	reading(0.4, 900); /* at 4100 */
	assert_int_equal(look("utilization", "driver's clock jumps: values have our times", &mark), 0);
	assert_int_equal(told.n, 4);
	assert_in_range(told.at_ms[1], 2999, 3001);
	assert_in_range(told.at_ms[2], 2999, 3001);
	assert_in_range(told.at_ms[3], 4099, 4101);
}

static void a_clock_that_goes_back_is_marked(void **state)
{
	struct timeline_event mark;

	(void)state;
	gpu.id.stamps.error_ns = 1000;
	reading(0.1, 1000); /* at 0 ms */
	reading(0.2, 1000); /* at 1000 */
	reading(0.3, 2400); /* at 600: not believed */
	reading(0.4, 1000); /* at 3000 */
	gpu.id.stamps.unusable = 1;
	reading(0.5, -1); /* at 5000 */
	reading(0.6, -1);
	assert_int_equal(look("utilization", "driver's clock goes evenly: values have its times", &mark), 1);
	assert_int_equal(told.n, 6);
	assert_in_range(told.at_ms[2], 2999, 3001);
	assert_in_range(told.at_ms[4], 4999, 5001);
	assert_int_equal(look("utilization", "driver's clock jumps: values have our times", &mark), 2);
}

static double own_cpu(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / NSEC_PER_SEC;
}

static void work(double seconds)
{
	double until = own_cpu() + seconds;

	while (own_cpu() < until)
		;
}

/* Those that the timeline has: the caller is made one by an event of it. */
static void processes_have_counters(void **state)
{
	const struct trace_process begins = { .header = { .type = TRACE_EVENT_PROCESS,
							  .tgid = (uint32_t)getpid(),
							  .tid = (uint32_t)getpid() } };
	struct process processes[] = { { .id.pid = (uint32_t)getpid(), .v[PROCESS_MEMORY] = 1e9 },
				       { .id.pid = 4000000000, .v[PROCESS_MEMORY] = 2e9 } };
	struct event_sink *sink = trace_timeline_sink(timeline);
	struct timeline_event mark;
	double cpu;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		processes[i].p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	node.processes = processes;
	node.processes_n = 2;
	assert_true(sink->event(&begins.header, sizeof(begins), sink->sink.userdata) >= 0);
	work(0.2);
	cpu = own_cpu();
	reading(0.1, -1);
	reading(0.1, -1);
	processes[0].v[PROCESS_MEMORY] = 3e9;
	work(0.1);
	reading(0.1, -1);
	cpu = own_cpu() - cpu;
	look("GPU 0 memory held, bytes", "", &mark);
	assert_int_equal(told.n, 3);
	assert_in_range(told.at_ms[0], 999, 1001);
	assert_true(told.value[0] == 1e9);
	assert_true(told.value[2] == 3e9);
	look("CPU, cores", "", &mark);
	assert_int_equal(told.n, 2);
	assert_in_range(told.at_ms[0], 999, 1001); /* of the second that begins there */
	/* Of the seconds between the readings, to ticks of 10 ms; not of all time. */
	assert_true(told.value[0] >= 0 && told.value[1] >= 0.08);
	assert_true(told.value[0] + told.value[1] <= cpu + 0.03);
}

/* Another source's number has no time of the driver's. */
static void numbers_of_others(void **state)
{
	struct timeline_event mark;

	(void)state;
	gpu.source = SOURCE_DCGM;
	gpu.id.stamps.error_ns = 1000;
	reading(0.1, 900);
	look("utilization", "", &mark);
	assert_in_range(told.at_ms[0], 999, 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_have_the_times_of_the_driver, setup, teardown),
		cmocka_unit_test_setup_teardown(values_without_a_time_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_goes_back_is_marked, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_have_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_of_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
