// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "client.h"
#include "fixture.h"
#include "view/trace_summary.h"
#include "view/view.h"

#define GPU0 "gpu=\"0\",uuid=\"GPU-abc00000-0000-4000-8000-000000000000\""
#define PID1001 \
	"pid=\"1001\",comm=\"train \\\"a\\\\b\\\"\\n\",namespace=\"ml\",pod=\"train-0\",container=\"main\""

static char *ps(const struct snapshot *s)
{
	struct table_options options = { 0 };
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	assert_int_equal(table_processes(s, &options, &out), 0);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One series twice and Prometheus takes nothing of the page. */
static void refuse_twins(char *text)
{
	static char *series[20000];
	size_t n = 0;

	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#')
			continue;
		*strrchr(line, ' ') = '\0';
		assert_true(n < ARRAY_SIZE(series));
		series[n++] = line;
	}
	assert_true(n > 100);
	qsort(series, n, sizeof(*series), compare);
	for (size_t i = 1; i < n; i++)
		if (STRV_EQ(series[i - 1], series[i]))
			fail_msg("twice: %s", series[i]);
}

static json_t *path(json_t *json, const char *keys)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *key = strtok_r(copy, "/", &save); key && json; key = strtok_r(NULL, "/", &save))
		json = *key >= '0' && *key <= '9' && json_is_array(json) ?
			       json_array_get(json, (size_t)atoi(key)) :
			       json_object_get(json, key);
	if (!json)
		fail_msg("no %s", keys);
	return json;
}

static void without_tracing_nothing_speaks_of_it(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS), *table = ps(s);
	json_t *json = client_document(s, JSON_PROCESSES | JSON_TRACE);

	(void)state;
	assert_false(has(text, "process_cuda_"));
	assert_false(has(text, "gpusonde_trace_"));
	assert_false(has(table, "LAUNCHES"));
	assert_true(json_is_null(path(json, "trace")));
	assert_true(json_is_null(path(json, "traced")));
	assert_true(json_is_null(path(json, "processes/0/cuda")));
	json_decref(json);
	fixture_free(s);
}

static void tracing_that_is_off_says_why(void **state)
{
	struct snapshot *s = fixture_untraced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS), *table = ps(s);
	json_t *json = client_document(s, JSON_PROCESSES | JSON_TRACE);

	(void)state;
	assert_true(has(text,
			"gpusonde_trace_info{enabled=\"false\",backend=\"\",reason=\"the kernel has no BTF"));
	assert_false(has(table, "LAUNCHES"));
	assert_true(json_is_null(path(json, "traced")));
	assert_true(json_is_false(path(json, "trace/enabled")));
	assert_true(has(json_string_value(path(json, "trace/why")), "no BTF"));
	json_decref(json);
	fixture_free(s);
}

static void labels_say_what_is_known_of_the_device(void **state)
{
	static const char *const series[] = {
		"launches_total{" GPU0 "," PID1001 "} 123456789\n",
		"launches_total{" PID1001 "} 5\n",
		"launches_total{gpu=\"2\",uuid=\"GPU-abc00002-0000-4000-8000-000000000002\",gi=\"1\","
		"ci=\"0\",pid=\"2001\",comm=\"in-mig\"} 64\n",
		"launches_total{uuid=\"GPU-ffffffff-0000-4000-8000-00000000ffff\",pid=\"4000\","
		"comm=\"elsewhere\"} 1\n",
		"launches_total{" GPU0 ",pid=\"other\",comm=\"other\"} 31\n",
		"memory_bytes{" GPU0 ",kind=\"device\",pid=\"other\",comm=\"other\"} 1610612736\n",
		"estimated{" GPU0 ",pid=\"1002\",",
		"incomplete{pid=\"4000\",comm=\"elsewhere\",reason=\"probes_given_up\"} 1\n",
	};
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);
	char line[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(series); i++) {
		snprintf(line, sizeof(line), "\ngpusonde_process_cuda_%s", series[i]);
		if (!has(text, line))
			fail_msg("missing: %s", line);
	}
	assert_true(has(text, "\ngpusonde_gpu_cuda_busy_seconds_total{" GPU0 "} 4000.5\n"));
	assert_true(has(text, "\ngpusonde_gpu_cuda_estimated{" GPU0
			      ",metric=\"gpusonde_gpu_cuda_busy_seconds_total\"} 1\n"));
	/* on devices not known which */
	assert_true(has(text, "\ngpusonde_gpu_cuda_launches_total 1000000\n"));
	assert_false(has(text, "pid=\"1003\",comm=\"small\",kind"));
	assert_false(has(text, "incomplete{pid=\"1001\""));
	fixture_free(s);
}

static void no_series_is_there_twice(void **state)
{
	struct snapshot *s = fixture_traced();
	struct trace_view *view = s->trace;
	_cleanup_free_ char *text = NULL;

	(void)state;
	/* The exited one and its successor, on the same device. */
	assert_int_equal(view->processes[4].id.pid, view->processes[5].id.pid);
	view->processes[5].devices_first = view->processes[4].devices_first;
	view->processes[5].devices_n = 1;
	/* Two entries for one device, in a process and in the sums; one name twice. */
	strcpy(view->devices[0].uuid, view->devices[1].uuid);
	strcpy(view->totals[0].uuid, view->totals[1].uuid);
	view->totals[0].other[TRACED_LAUNCHES] = 3;
	view->all_calls[0].api = view->all_calls[1].api;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	refuse_twins(text);
	fixture_free(s);
}

static void of_one_pid_the_younger_has_the_series(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *both = client_page(s, EXPOSITION_PROMETHEUS), *exited = NULL;

	(void)state;
	assert_false(has(both, "launches_total{pid=\"3000\""));
	s->trace->processes[5].id.pid = 3001;
	exited = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(exited, "launches_total{pid=\"3000\",comm=\"again\"} 11\n"));
	assert_true(has(exited, "memory_peak_bytes{pid=\"3000\""));
	assert_false(has(exited, "active_ratio{pid=\"3000\""));
	assert_false(has(exited, "overhead_ratio{pid=\"3000\""));
	fixture_free(s);
}

static void old_figures_have_no_gauges(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = NULL, *table = NULL;
	json_t *json;

	(void)state;
	s->trace_stale = true;
	s->boot_ns += INT64_C(60000000000);
	s->agent[AGENT_SOURCE_UP_TRACE] = 0;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(text, "launches_total{" GPU0 ",pid=\"1001\""));
	assert_true(has(text, "memory_peak_bytes{" GPU0 ",pid=\"1001\""));
	assert_false(has(text, "cuda_active_ratio{"));
	assert_true(has(text, "gpusonde_gpu_cuda_launches_total{" GPU0 "} 1000000\n"));
	assert_false(has(text, "process_cuda_memory_bytes{"));
	assert_false(has(text, "overhead_ratio{"));
	json = client_document(s, JSON_PROCESSES | JSON_TRACE);
	assert_true(json_is_true(path(json, "trace/stale")));
	assert_true(json_number_value(path(json, "trace/age_seconds")) > 60);
	assert_true(json_is_null(path(json, "processes/0/cuda/active_ratio")));
	assert_true(json_is_null(path(json, "trace/devices/1/active_ratio")));
	assert_true(json_is_null(path(json, "processes/0/cuda/overhead_ratio")));
	assert_int_equal(json_integer_value(path(json, "processes/0/cuda/launches_total")), 123456789);
	json_decref(json);
	table = ps(s);
	assert_true(has(table, "tracing delivers nothing new"));
	assert_false(has(table, "1.5 GiB  lost_events"));
	fixture_free(s);
}

/* Nor one whose numbers, of a recording, do; one of another version is not there. */
static void a_histogram_never_falls(void **state)
{
	struct snapshot *s = fixture_traced();
	struct traced_call *call = &s->trace->all_calls[2];
	_cleanup_free_ char *text = NULL;
	uint64_t before = 0;
	char *line;

	(void)state;
	call->count = 8;
	for (unsigned i = 0; i < TRACED_LE; i++)
		call->within[i] = i + 1 < TRACED_LE ? (i * 3) % 8 : 5;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	line = strstr(text, "_bucket{api=\"cudaLaunchKernel\",le=\"9.5367431640625e-07\"");
	for (unsigned i = 0; i <= TRACED_LE_SHOWN; i++, line = strchr(line, '\n') + 1) {
		uint64_t now = strtoull(strchr(line, '}') + 1, NULL, 10);

		assert_true(now >= before && now <= 5);
		before = now;
	}
	assert_int_equal(before, 5);
	assert_true(has(
		text,
		"le=\"+Inf\"} 5\ngpusonde_cuda_call_duration_seconds_sum{api=\"cudaLaunchKernel\"} 2.5e-06\n"
		"gpusonde_cuda_call_duration_seconds_count{api=\"cudaLaunchKernel\"} 5\n"));
	memset(call->within, 0, sizeof(call->within));
	memset(s->trace->totals[0].gaps.within, 0, sizeof(s->trace->totals[0].gaps.within));
	free(TAKE_PTR(text));
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(text, "gpusonde_cuda_calls_total{api=\"cudaLaunchKernel\"} 8"));
	assert_false(has(text, "duration_seconds_count{api=\"cudaLaunchKernel\"}"));
	fixture_free(s);
}

/* Without return probes: how often, and nothing of how it went. */
static void calls_that_were_not_seen_to_return(void **state)
{
	static const char *const unknown[] = { "failed", "errors", "bytes", "seconds",
					       "p50_ns", "p95_ns", "p99_ns" };
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = NULL;
	json_t *json, *call;

	(void)state;
	s->trace->all_calls[0].timed = 0;
	memset(s->trace->all_calls[0].within, 0, sizeof(s->trace->all_calls[0].within));
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(text, "cuda_calls_total{api=\"cuLaunchKernel\"} 123457901\n"));
	assert_false(has(text, "duration_seconds_bucket{api=\"cuLaunchKernel\""));
	assert_false(has(text, "duration_seconds_sum{api=\"cuLaunchKernel\""));
	assert_true(has(text, "duration_seconds_bucket{api=\"cuMemAlloc_v2\""));
	json = client_document(s, JSON_TRACE);
	call = path(json, "trace/calls/0");
	assert_int_equal(json_integer_value(path(call, "count")), 123457901);
	assert_int_equal(json_integer_value(path(call, "timed")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_true(json_is_null(path(call, unknown[i])));
	/* Only ever nested: of no calls none failed. */
	assert_int_equal(json_integer_value(path(json, "trace/processes/0/calls/2/failed")), 0);
	json_decref(json);
	fixture_free(s);
}

/* The driver's list is of the process that has the PID now. */
static void another_process_with_the_pid_is_not_meant(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json;

	(void)state;
	s->processes[0].id.start_ticks = s->trace->processes[0].id.start_ticks + 1;
	fixture_join(s);
	json = client_document(s, JSON_PROCESSES);
	assert_true(json_is_null(path(json, "processes/0/cuda")));
	assert_int_equal(json_integer_value(path(json, "traced/1/pid")), 1001);
	assert_int_equal(json_integer_value(path(json, "traced/1/gpu")), 0);
	json_decref(json);
	s->processes[0].id.start_ticks--;
	fixture_join(s);
	json = client_document(s, JSON_PROCESSES);
	assert_int_equal(json_integer_value(path(json, "processes/0/cuda/launches_total")), 123456789);
	assert_int_equal(json_integer_value(path(json, "processes/4/cuda/launches_total")), 64);
	json_decref(json);
	fixture_free(s);
}

/* Each pair of a live traced process and a device is either in the driver's list or beside it. */
static void nobody_is_left_out_or_shown_twice(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_PROCESSES), *process;
	unsigned n = 0;
	size_t i;

	(void)state;
	json_array_foreach(path(json, "processes"), i, process)
		n += json_is_object(json_object_get(process, "cuda"));
	assert_int_equal(n, 4);
	/* 1001 on an unknown device and on GPU 1, 3000 on none, 4000 on one that NVML does not show. */
	assert_int_equal(json_array_size(path(json, "traced")), 4);
	assert_true(json_is_null(path(json, "traced/0/gpu")));
	assert_true(json_is_null(path(json, "traced/0/uuid")));
	assert_int_equal(json_integer_value(path(json, "traced/1/gpu")), 1);
	assert_true(json_is_null(path(json, "traced/2/cuda/launches_total")));
	assert_string_equal(json_string_value(path(json, "traced/3/uuid")),
			    "GPU-ffffffff-0000-4000-8000-00000000ffff");
	json_decref(json);
	fixture_free(s);
}

static void the_trace_document(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_TRACE), *trace = path(json, "trace");

	(void)state;
	assert_int_equal(json_object_size(json), 8);
	assert_int_equal(json_array_size(path(json, "nccl_measured")), 2);
	assert_float_equal(json_number_value(path(json, "nccl_measured/0/busbw")), 7.0 * (1 << 29), 1);
	assert_true(json_is_null(path(json, "nccl_measured/1/busbw")));
	assert_int_equal(json_array_size(path(json, "nccl_measured_totals")), 2);
	assert_float_equal(json_number_value(path(json, "nccl_measured_totals/0/busbw")), 7.0 * (1 << 29), 1);
	assert_true(json_is_null(path(json, "nccl_measured_totals/1/traffic_bytes")));
	assert_int_equal(json_integer_value(path(trace, "events/produced")), 5000);
	assert_int_equal(json_integer_value(path(trace, "events/dropped")), 10);
	assert_int_equal(json_integer_value(path(trace, "processes/0/calls/1/errors/2")), 3);
	assert_int_equal(json_integer_value(path(trace, "processes/0/calls/1/errors/other")), 1);
	assert_int_equal(json_integer_value(path(trace, "processes/0/calls/0/p95_ns")), 4608);
	assert_true(json_is_null(path(trace, "processes/0/calls/2/p50_ns")));
	assert_int_equal(json_integer_value(path(trace, "processes/0/calls/2/nested")), 4);
	assert_true(json_is_null(path(trace, "processes/0/devices/0/uuid")));
	assert_string_equal(json_string_value(path(trace, "processes/1/incomplete/1")), "late");
	assert_true(json_is_true(path(trace, "processes/3/exited")));
	assert_true(json_is_null(path(trace, "processes/3/devices/0/active_ratio")));
	assert_true(json_is_null(path(trace, "devices/0/uuid")));
	assert_int_equal(json_integer_value(path(trace, "devices/1/launches_total")), 1000000);
	assert_true(json_number_value(path(trace, "devices/1/active_ratio")) == 0.75);
	assert_string_equal(json_string_value(path(trace, "devices/1/estimated/1")), "active_ratio");
	assert_int_equal(json_integer_value(path(trace, "calls/1/bytes")), INT64_C(3221225472));
	assert_int_equal(json_integer_value(path(trace, "processes/6/pid")), 1003); /* without a series */
	assert_int_equal(json_integer_value(path(trace, "processes_left_out")), 0);
	json_decref(json);
	fixture_free(s);
}

static void memory_by_thread(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_TRACE);

	(void)state;
	assert_int_equal(json_integer_value(path(json, "trace/processes/0/memory_by_thread/threads/0/tid")),
			 1007);
	assert_int_equal(json_integer_value(path(json, "trace/processes/0/memory_by_thread/threads/1/bytes")),
			 268435456);
	assert_int_equal(json_integer_value(path(json, "trace/processes/0/memory_by_thread/other_bytes")),
			 268435456);
	assert_true(json_is_true(path(json, "trace/processes/0/memory_by_thread/estimated")));
	assert_true(json_is_null(path(json, "trace/processes/1/memory_by_thread")));
	json_decref(json);
	s->trace->processes[0].exited = true;
	json = client_document(s, JSON_TRACE);
	assert_true(json_is_null(path(json, "trace/processes/0/memory_by_thread")));
	json_decref(json);
	fixture_free(s);
}

/* Bytes that a program lies about add up to what no signed number holds. */
static void counts_stay_positive(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json;

	(void)state;
	s->trace->all_calls[0].bytes = UINT64_MAX;
	json = client_document(s, JSON_TRACE);
	assert_int_equal(json_integer_value(path(json, "trace/calls/0/bytes")), INT64_MAX);
	json_decref(json);
	fixture_free(s);
}

static void the_table_marks_estimates_and_what_is_incomplete(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *table = ps(s);

	(void)state;
	assert_true(has(table, "LAUNCHES  ERRORS  CUDA BUSY  CUDA MEM  INCOMPLETE"));
	assert_true(has(table, "123456789       4    ~33.5 s   1.5 GiB"));
	assert_true(has(table, "lost_events,late"));
	assert_false(has(table, "tracing delivers nothing new"));
	fixture_free(s);
}

/* Memory that is an estimate is marked, one kind not known makes it one, all of them leave nothing to say. */
static void the_table_marks_memory(void **state)
{
	struct snapshot *s = fixture_traced();
	struct traced_device *d = &s->trace->devices[1];
	_cleanup_free_ char *estimated = NULL, *partial = NULL, *unknown = NULL;

	(void)state;
	d->p[TRACED_LIVE_ASYNC] |= PRESENCE_ESTIMATED;
	estimated = ps(s);
	assert_true(has(estimated, "~33.5 s  ~1.5 GiB"));
	d->p[TRACED_LIVE_ASYNC] = PRESENCE_ABSENT;
	partial = ps(s);
	assert_true(has(partial, "~33.5 s  ~1.5 GiB"));
	for (unsigned row = TRACED_LIVE_DEVICE; row <= TRACED_LIVE_ARRAY; row++)
		d->p[row] = PRESENCE_ABSENT;
	unknown = ps(s);
	assert_true(has(unknown, "~33.5 s         -"));
	fixture_free(s);
}

/* One of those without a series is not known: then what they have together is not, either. */
static void a_sum_with_an_unknown_part_is_unknown(void **state)
{
	struct snapshot *s = fixture_traced();
	struct trace_view *view = s->trace;
	_cleanup_free_ char *text = NULL;

	(void)state;
	view->processes[1].has_series = false;
	view->devices[view->processes[1].devices_first].p[TRACED_LIVE_DEVICE] = PRESENCE_ABSENT;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_false(has(text, "memory_bytes{" GPU0 ",kind=\"device\",pid=\"other\""));
	assert_true(
		has(text, "memory_bytes{" GPU0 ",kind=\"host\",pid=\"other\",comm=\"other\"} 536870912\n"));
	fixture_free(s);
}

/* However many there are, no page is larger than the server serves, and what is not there is counted. */
static void what_does_not_fit_is_counted(void **state)
{
	enum { PROCESSES = TRACED_PROCESSES_MAX, CALLS = 16, PAGE_MAX = 16 << 20 };
	struct snapshot *s = fixture_full();
	struct trace_view *view;
	struct strbuf out;
	json_t *json;

	(void)state;
	assert_int_equal(trace_view_new(PROCESSES, 0, PROCESSES * CALLS, 0, 0, 0, 0, &view), 0);
	s->trace = view;
	view->enabled = true;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		view->processes[i] = (struct traced_process){ .id.pid = 1000 + i,
							      .calls_first = i * CALLS,
							      .calls_n = CALLS,
							      .has_series = i == PROCESSES - 1 };
		for (unsigned k = 0; k < CALLS; k++)
			view->calls[i * CALLS + k].api = "cuLaunchKernel";
	}
	view->processes_n = PROCESSES;
	view->calls_n = PROCESSES * CALLS;
	fixture_join(s);
	strbuf_init(&out, PAGE_MAX);
	assert_int_equal(view_json_text(s, JSON_TRACE, &out), 0);
	json = json_loadb(out.data, out.len, 0, NULL);
	assert_int_equal(json_integer_value(path(json, "trace/processes/0/pid")), 1000 + PROCESSES - 1);
	assert_int_equal(json_integer_value(path(json, "trace/processes/1/pid")), 1000);
	assert_int_equal(json_array_size(path(json, "trace/processes")) +
				 (size_t)json_integer_value(path(json, "trace/processes_left_out")),
			 PROCESSES);
	assert_true(json_integer_value(path(json, "trace/processes_left_out")) > 0);
	json_decref(json);
	strbuf_reset(&out);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &out), 0);
	json = json_loadb(out.data, out.len, 0, NULL);
	assert_true(json_integer_value(path(json, "traced_left_out")) > 0);
	assert_int_equal(json_array_size(path(json, "traced")) +
				 (size_t)json_integer_value(path(json, "traced_left_out")),
			 PROCESSES);
	json_decref(json);
	strbuf_done(&out);
	fixture_free(s);
}

static void a_limit_is_an_error(void **state)
{
	struct snapshot *s = fixture_traced();
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 24 * 1024);
	assert_int_equal(view_prometheus(s, EXPOSITION_PROMETHEUS, NULL, &out), -E2BIG);
	strbuf_reset(&out);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_TRACE, &out), -E2BIG);
	strbuf_done(&out);
	fixture_free(s);
}

static json_t *summary_document(const struct trace_summary *summary)
{
	struct strbuf out;
	json_t *document;

	strbuf_init(&out, 0);
	strbuf_addc(&out, '{');
	assert_int_equal(json_trace_summary(summary, &out), 0);
	strbuf_addc(&out, '}');
	document = json_loadb(out.data, out.len, 0, NULL);
	assert_non_null(document);
	strbuf_done(&out);
	return document;
}

/* What "gpusonde trace --json" and the agent say of a process's calls. */
static void calls_have_one_form(void **state)
{
	struct snapshot *s = fixture_traced();
	const struct trace_summary summary = { .view = s->trace, .backend = "none", .received = 7 };
	json_t *own = summary_document(&summary), *agents = client_document(s, JSON_TRACE), *a, *b;
	size_t i, k, compared = 0;

	(void)state;
	json_array_foreach(json_object_get(own, "processes"), i, a)
		json_array_foreach(json_object_get(json_object_get(agents, "trace"), "processes"), k, b)
			if (json_equal(json_object_get(a, "pid"), json_object_get(b, "pid")) &&
			    json_equal(json_object_get(a, "ended"), json_object_get(b, "exited"))) {
				assert_true(
					json_equal(json_object_get(a, "calls"), json_object_get(b, "calls")));
				compared += json_array_size(json_object_get(a, "calls"));
			}
	assert_true(compared > 3);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(own, "events"), "received")), 7);
	json_decref(own);
	json_decref(agents);
	fixture_free(s);
}

static void the_summary_is_a_table(void **state)
{
	struct snapshot *s = fixture_traced();
	const double rates[8] = { 2500 };
	struct trace_summary summary = {
		.view = s->trace,
		.rates = rates,
		.backend = "uprobe_multi",
		.files = 1,
		.attached = 2,
		.cost_seconds = 1.5,
		.dropped = 3,
		.produced = 9,
		.uncounted_hits = 4,
		.lost_processes = 5,
	};
	const struct table_options options = { 0 };
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(table_trace(&summary, &options, &out), 0);
	table_trace_status(&summary, &options, &out);
	assert_true(has(out.data, "  2500 "));
	assert_true(has(out.data, "3.0 GiB"));
	assert_true(has(out.data, "out of memory"));
	assert_true(has(out.data, "2 probes on 1 file, attached by uprobe_multi"));
	assert_true(has(out.data, "3 of 9 events were lost"));
	assert_true(has(out.data, "4 hits are not counted, 5 processes not shown"));
	strbuf_done(&out);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_tracing_nothing_speaks_of_it),
		cmocka_unit_test(tracing_that_is_off_says_why),
		cmocka_unit_test(labels_say_what_is_known_of_the_device),
		cmocka_unit_test(no_series_is_there_twice),
		cmocka_unit_test(of_one_pid_the_younger_has_the_series),
		cmocka_unit_test(old_figures_have_no_gauges),
		cmocka_unit_test(a_histogram_never_falls),
		cmocka_unit_test(calls_that_were_not_seen_to_return),
		cmocka_unit_test(another_process_with_the_pid_is_not_meant),
		cmocka_unit_test(nobody_is_left_out_or_shown_twice),
		cmocka_unit_test(the_trace_document),
		cmocka_unit_test(memory_by_thread),
		cmocka_unit_test(counts_stay_positive),
		cmocka_unit_test(the_table_marks_estimates_and_what_is_incomplete),
		cmocka_unit_test(the_table_marks_memory),
		cmocka_unit_test(a_sum_with_an_unknown_part_is_unknown),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(a_limit_is_an_error),
		cmocka_unit_test(calls_have_one_form),
		cmocka_unit_test(the_summary_is_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
