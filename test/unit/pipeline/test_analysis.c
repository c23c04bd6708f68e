// SPDX-License-Identifier: Apache-2.0
/* What traced calls and spans become in a live analysis. */
#include "test.h"

#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "pipeline/analysis.h"
#include "pipeline/analysis_call.h"
#include "pipeline/analysis_late.h"
#include "proc/proc.h"
#include "trace/probe.h"

#define SECOND ((uint64_t)NSEC_PER_SEC)

static struct live_analysis *live;

static int begin(_unused_ void **state)
{
	return live_analysis_new(NULL, ANALYSIS_LATE_AGENT, &live);
}

static int end(_unused_ void **state)
{
	live_analysis_free(live);
	return 0;
}

static struct trace_call call_of(const char *symbol, uint64_t begin_ns, uint64_t ns)
{
	const struct probe *probe = probe_find(PROBE_CUDA, symbol);
	struct trace_call call = { .duration_ns = ns, .size = 4096 };

	assert_non_null(probe);
	call.header = (struct trace_header){ .type = TRACE_EVENT_CALL,
					     .op = probe->spec.op,
					     .call = probe_call(probe),
					     .tgid = 7,
					     .tid = 8,
					     .time_ns = begin_ns };
	call.kind = TRACE_COPY_HOST_TO_DEVICE;
	return call;
}

static void send(const struct trace_call *call)
{
	struct event_sink *sink = live_analysis_sink(live);

	assert_int_equal(sink->event(&call->header, sizeof(*call), sink->sink.userdata), 0);
}

/* Of a rule: active findings; -1: it was not judged. */
static int active(uint64_t now_ns, const char *name, const char **ret_new)
{
	struct findings *findings = live_analysis_tick(live, NULL, now_ns, ret_new);
	int n = -1;

	assert_non_null(findings);
	for (uint32_t i = 0; i < findings->rules_n; i++)
		if (strcmp(findings->rules[i].name, name) == 0 && !findings->rules[i].missing)
			n = (int)findings->rules[i].active;
	free(findings);
	return n;
}

static void copies(const char *symbol, uint64_t from_ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct trace_call call = call_of(symbol, from_ns + i * SECOND / 100, SECOND / 200);

		send(&call);
	}
}

static void blocking_copies_are_found(_unused_ void **state)
{
	const char *new;

	assert_int_equal(active(1000 * SECOND, "copy_bound", &new), -1);
	copies("cuMemcpyHtoD_v2", 1000 * SECOND, 900);
	assert_int_equal(active(1009 * SECOND, "copy_bound", &new), 0);
	assert_null(new);
	copies("cuMemcpyHtoD_v2", 1009 * SECOND, 200);
	assert_int_equal(active(1011 * SECOND, "copy_bound", &new), 1);
	assert_string_equal(new, "copy_bound");
	/* It is told once. */
	assert_int_equal(active(1012 * SECOND, "copy_bound", &new), 1);
	assert_null(new);
	/* And ends when there are none any more. */
	assert_int_equal(active(1040 * SECOND, "copy_bound", &new), 0);
}

static void others_are_not(_unused_ void **state)
{
	const char *new;

	copies("cuMemcpyHtoDAsync_v2", 1000 * SECOND, 1200);
	assert_int_equal(active(1012 * SECOND, "copy_bound", &new), 0);
}

/* Calls that did not come in order, or never end, do no harm. */
static void times_may_be_anything(_unused_ void **state)
{
	struct trace_call call = call_of("cuMemcpyHtoD_v2", UINT64_MAX - 5, 100);
	struct event_sink *sink = live_analysis_sink(live);
	const char *new;

	assert_true(sink->event(&call.header, sizeof(call), sink->sink.userdata) < 0);
	call.header.call = UINT16_MAX;
	assert_int_equal(sink->event(&call.header, sizeof(call), sink->sink.userdata), 0);
	assert_int_equal(active(SECOND, "copy_bound", &new), -1);
}

/* Without a communicator no rank is judged; a process that has ended is evidence. */
static void ends_are_told(_unused_ void **state)
{
	struct event_sink *sink = live_analysis_sink(live);
	struct span span = { .tgid = 7, .device = "GPU-1", .start_ns = 5, .end_ns = 9, .likely_end_ns = 9 };
	struct span_sink *spans = live_analysis_spans(live);
	struct findings *findings;
	const char *new;

	sink->process_over(7, 0, sink->sink.userdata);
	assert_int_equal(spans->span(&span, spans->sink.userdata), 0);
	span.kind = SPAN_SYNC;
	assert_int_equal(spans->span(&span, spans->sink.userdata), 0);
	findings = live_analysis_tick(live, NULL, (uint64_t)clock_mono_ns(), &new);
	assert_non_null(findings);
	assert_int_equal(findings->events, 2);
	free(findings);
}

static void ranges_of_pytorch(_unused_ void **state)
{
	struct analysis_event event = { .kind = ANALYSIS_KINDS };

	assert_false(analysis_of_range("aten::mm", &event));
	assert_int_equal(event.kind, ANALYSIS_KINDS);
	assert_true(analysis_of_range("Optimizer.step#AdamW.step", &event));
	assert_int_equal(event.kind, ANALYSIS_STEP);
	assert_true(
		analysis_of_range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", &event));
	assert_int_equal(event.kind, ANALYSIS_DATA);
}

/* What programs call their steps takes no room from others' names. */
static void names_of_steps_are_not_kept(_unused_ void **state)
{
	_cleanup_free_ struct trace_name *name = calloc(1, sizeof(*name) + 32);
	struct event_sink *sink = live_analysis_sink(live);
	struct findings *findings;
	const char *new;

	assert_non_null(name);
	for (unsigned i = 0; i < (1 << 16) + 10; i++) {
		name->header = (struct trace_header){ .type = TRACE_EVENT_NAME,
						      .op = TRACE_OP_TORCH_RANGE,
						      .tgid = 7,
						      .tid = 8,
						      .time_ns = 1000 * SECOND + i };
		snprintf(name->name, 32, "Optimizer.step#%u", i);
		assert_int_equal(sink->event(&name->header, sizeof(*name) + 32, sink->sink.userdata), 0);
	}
	copies("cuMemcpyHtoD_v2", 1000 * SECOND, 1200);
	assert_int_equal(active(1013 * SECOND, "copy_bound", &new), 1);
	findings = live_analysis_tick(live, NULL, 1014 * SECOND, &new);
	assert_non_null(findings);
	assert_int_equal(findings->events, (1 << 16) + 10 + 1200);
	assert_int_equal(findings->beyond, 0);
	free(findings);
}

/* Why clocks are throttled: known from the first reading, and for as long as readings say so. */
static void throttling_is_told(_unused_ void **state)
{
	struct snapshot node = { .entities_n = 1 };
	_cleanup_free_ struct entity *e = calloc(1, sizeof(*e));
	unsigned reason = gpu_metrics[GPU_EVENT_REASON_HW_SLOWDOWN].slot,
		 used = gpu_metrics[GPU_UTILIZATION_GPU].slot;
	struct findings *findings;
	const char *new;

	assert_non_null(e);
	node.entities = e;
	e->id.parent = READING_NONE;
	snprintf(e->id.uuid, sizeof(e->id.uuid), "GPU-1");
	e->present = true;
	e->id.p[reason] = e->id.p[used] = PRESENCE_PRESENT;
	e->id.v[used] = 1;
	for (unsigned i = 0; i < 40; i++) {
		node.seq = i + 1;
		e->id.v[reason] = i >= 20 && i < 30;
		free(live_analysis_tick(live, &node, (1000 + i) * SECOND, &new));
		if (i == 19)
			assert_int_equal(active(1019 * SECOND, "clocks_throttled", &new), 0);
		if (i == 32)
			assert_int_equal(active(1032 * SECOND, "clocks_throttled", &new), 1);
	}
	findings = live_analysis_finish(live);
	assert_non_null(findings);
	assert_string_equal(findings->list[0].subject, "hw_slowdown");
	assert_string_equal(findings->list[0].device, "GPU-1");
	free(findings);
}

/* GPUs "GPU-0", "GPU-1"; one process on some of them. */
struct holding {
	struct snapshot node;
	struct entity *gpus;
	struct process on[2];
};

static struct holding holding_begin(uint32_t pid)
{
	struct holding h = { .gpus = calloc(2, sizeof(*h.gpus)), .node.entities_n = 2 };

	assert_non_null(h.gpus);
	h.node.entities = h.gpus;
	for (unsigned i = 0; i < 2; i++) {
		h.gpus[i].id.parent = READING_NONE;
		h.gpus[i].present = true;
		snprintf(h.gpus[i].id.uuid, sizeof(h.gpus[i].id.uuid), "GPU-%u", i);
		h.on[i].id.pid = pid;
		h.on[i].id.start_ticks = 1;
		h.on[i].entity = (uint16_t)i;
		h.on[i].p[PROCESS_MEMORY] = PRESENCE_PRESENT;
		h.on[i].v[PROCESS_MEMORY] = 1e9;
	}
	return h;
}

static void holding_tick(struct holding *h, uint32_t devices, uint64_t now_ns)
{
	const char *new;

	h->node.processes = h->on;
	h->node.processes_n = devices;
	h->node.seq++;
	free(live_analysis_tick(live, &h->node, now_ns, &new));
}

/* The driver's figures of processes, their CPU time, and their ends, also where nothing of them is traced. */
static void who_holds_memory_is_told(_unused_ void **state)
{
	pid_t child = fork();
	struct holding h = holding_begin((uint32_t)child);
	const char *new;

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no child */
		for (;;)
			pause();
	}
	for (unsigned i = 0; i < 640; i++)
		holding_tick(&h, 1, (1000 + i) * SECOND);
	assert_int_equal(active(1640 * SECOND, "memory_held", &new), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (unsigned i = 0; i < 30; i++)
		holding_tick(&h, 0, (1640 + i) * SECOND);
	assert_int_equal(active(1670 * SECOND, "memory_held", &new), 0);
	free(h.gpus);
}

static uint64_t events_of(struct holding *h, uint32_t devices, uint64_t now_ns)
{
	struct findings *findings;
	uint64_t events;
	const char *new;

	holding_tick(h, devices, now_ns);
	findings = live_analysis_tick(live, NULL, now_ns, &new);
	assert_non_null(findings);
	events = findings->events;
	free(findings);
	return events;
}

/* The memory that it holds is told with each snapshot, and once that it has ended. */
static void ends_of_holders_are_told(_unused_ void **state)
{
	struct holding h = holding_begin(INT32_MAX); /* no process has it */
	uint64_t before = events_of(&h, 1, 1000 * SECOND);

	assert_int_equal(events_of(&h, 1, 1001 * SECOND), before + 1);
	h.on[0].id.start_ticks = 2; /* another process, and its memory */
	assert_int_equal(events_of(&h, 1, 1002 * SECOND), before + 3);
	assert_int_equal(events_of(&h, 0, 1003 * SECOND), before + 3 + proc_sees_all());
	assert_int_equal(events_of(&h, 0, 1004 * SECOND), before + 3 + proc_sees_all());
	free(h.gpus);
}

/* It works with one GPU and holds memory of another. */
static void devices_are_told(_unused_ void **state)
{
	struct span span = { .tgid = 7, .device = "GPU-0" };
	struct span_sink *spans = live_analysis_spans(live);
	struct holding h = holding_begin(7);
	struct trace_launch launch = { .duration_ns = 1000 };
	struct event_sink *sink = live_analysis_sink(live);
	const struct probe *probe = probe_find(PROBE_CUDA, "cuLaunchKernel");
	const char *new;

	assert_non_null(probe);
	launch.header = (struct trace_header){ .type = TRACE_EVENT_LAUNCH,
					       .op = probe->spec.op,
					       .call = probe_call(probe),
					       .tgid = 7,
					       .tid = 8 };
	for (unsigned i = 0; i < 200; i++) {
		launch.header.time_ns = 1000 * SECOND + i * SECOND / 10;
		span.start_ns = launch.header.time_ns;
		span.end_ns = span.likely_end_ns = span.start_ns + 1000;
		assert_int_equal(sink->event(&launch.header, sizeof(launch), sink->sink.userdata), 0);
		assert_int_equal(spans->span(&span, spans->sink.userdata), 0);
		if (i % 10 == 0)
			holding_tick(&h, 1, span.end_ns);
	}
	assert_int_equal(active(1020 * SECOND, "wrong_device", &new), 0);
	for (unsigned i = 20; i < 32; i++)
		holding_tick(&h, 2, (1001 + i) * SECOND);
	assert_int_equal(active(1033 * SECOND, "wrong_device", &new), 1);
	free(h.gpus);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocking_copies_are_found),   TEST(others_are_not),
		TEST(times_may_be_anything),       TEST(ends_are_told),
		TEST(names_of_steps_are_not_kept), TEST(throttling_is_told),
		TEST(who_holds_memory_is_told),    TEST(devices_are_told),
		TEST(ranges_of_pytorch),           TEST(ends_of_holders_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
