// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "client.h"
#include "fixture.h"
#include "view/kernels.h"
#include "view/view.h"

#define GPU0 "gpu=\"0\",uuid=\"GPU-abc00000-0000-4000-8000-000000000000\""
#define PID1001 \
	"pid=\"1001\",comm=\"train \\\"a\\\\b\\\"\\n\",namespace=\"ml\",pod=\"train-0\",container=\"main\""
#define FLASH64 GPU0 "," PID1001 ",kernel=\"flash_fwd_kernel<...>\",id=\"43e646a1a3a2ad9f\""
#define FLASH128 GPU0 "," PID1001 ",kernel=\"flash_fwd_kernel<...>\",id=\"61d28070d67e0a52\""

static char *table(const struct snapshot *s, unsigned width, bool full, size_t rows)
{
	struct table_options options = { .width = width };
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(table_kernels(s, &options, full, rows, &out), 0);
	return strbuf_take(&out);
}

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

static void must_have(const char *text, const char *what)
{
	if (!has(text, what))
		fail_msg("missing: %s", what);
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

static unsigned lines_with(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* ---- /metrics ---- */

static void series_carry_what_is_known(void **state)
{
	static const char *const series[] = {
		"launches_total{" FLASH64 "} 500\n",
		"launches_total{" PID1001 ",kernel=\"mul\",id=\"1b6f3c59583a2786\"} 2\n",
		"launches_total{gpu=\"2\",uuid=\"GPU-abc00002-0000-4000-8000-000000000002\",gi=\"1\","
		"ci=\"0\",pid=\"2001\",comm=\"in-mig\",kernel=\"add\",id=\"0cf73a72c8dd1e30\"} 32\n",
		"threads_total{" FLASH64 "} 4096000\n",
		"busy_seconds_total{" FLASH64 "} 4.25\n",
		"theoretical_occupancy_ratio{" FLASH64 ",limiter=\"registers\"} 0.1875\n",
		"memory_bytes{" FLASH64 ",class=\"code\"} 26240\n",
		/* 49,152 of 700 launches, nothing of 300, 1,024 declared and 1,024 of the system's. */
		"memory_bytes{" FLASH64 ",class=\"shared\"} 36454.4\n",
		"launches_total{" GPU0 "," PID1001
		",kernel=\"libattention.so+0x12f0\",id=\"1b0a095d2caf128e\"} 15\n",
		"launches_total{" GPU0
		",pid=\"1002\",comm=\"bad?\?(\\\\x1b[31mred\\\\u202e\",kernel=\"?\?(\","
		"id=\"6b2fbaf07fcba8f5\"} 0\n",
		"estimated{" FLASH64 ",metric=\"gpusonde_kernel_busy_seconds_total\"} 1\n",
		"estimated{" PID1001
		",kernel=\"mul\",id=\"1b6f3c59583a2786\",metric=\"gpusonde_kernel_threads_total\"} 1\n",
	};
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);
	char line[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(series); i++) {
		snprintf(line, sizeof(line), "\ngpusonde_kernel_%s", series[i]);
		must_have(text, line);
	}
	/* Nothing is known of it but how it was launched. */
	assert_false(has(text, "kernel_memory_bytes{" PID1001));
	assert_false(has(text, "kernel_theoretical_occupancy_ratio{" PID1001));
	assert_false(
		has(text, "gpusonde_kernel_estimated{" FLASH64 ",metric=\"gpusonde_kernel_launches_total\""));
	assert_false(has(text, "gpu=\"\""));
	assert_false(has(text, "0x7f12deadbeef")); /* without a series */
	fixture_free(s);
}

/* One launch, one series: what was launched without one is its device's, whichever process launched it. */
static void the_others_are_one_series_a_device(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	must_have(text, "\ngpusonde_kernel_launches_total{" GPU0
			",pid=\"other\",comm=\"other\",kernel=\"other\",id=\"other\"} 31\n");
	must_have(text, "\ngpusonde_kernel_busy_seconds_total{" GPU0
			",pid=\"other\",comm=\"other\",kernel=\"other\",id=\"other\"} 3.875\n");
	/* A line for each counter of the one device that has any, and that one is an estimate. */
	assert_int_equal(lines_with(text, "kernel=\"other\""), 3 + 1);
	must_have(text, "\ngpusonde_gpu_kernel_launches_total{" GPU0 "} 1000000\n");
	must_have(text, "\ngpusonde_gpu_kernel_launches_total 1000000\n"); /* on devices not known which */
	must_have(text, "\ngpusonde_gpu_kernel_estimated{" GPU0
			",metric=\"gpusonde_gpu_kernel_busy_seconds_total\"} 1\n");
	fixture_free(s);
}

/* Where launches were missed, sums over them are no better than their parts. */
static void totals_are_estimates_where_launches_were_missed(void **state)
{
	static const char other[] = GPU0 ",pid=\"other\",comm=\"other\",kernel=\"other\",id=\"other\"";
	struct snapshot *s = fixture_traced();
	json_t *json;

	(void)state;
	for (unsigned missed = 0; missed < 2; missed++) {
		_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);
		char line[300];

		for (unsigned row = KERNEL_METRIC_LAUNCHES; row <= KERNEL_METRIC_BUSY; row++) {
			bool wanted = missed || row == KERNEL_METRIC_BUSY;

			snprintf(line, sizeof(line),
				 "\ngpusonde_kernel_estimated{%s,metric=\"gpusonde_%s\"} 1\n", other,
				 kernel_metrics[row].family);
			assert_int_equal(lines_with(text, line), wanted);
			snprintf(line, sizeof(line),
				 "\ngpusonde_gpu_kernel_estimated{%s,metric=\"gpusonde_gpu_%s\"} 1\n", GPU0,
				 kernel_metrics[row].family);
			assert_int_equal(lines_with(text, line), wanted);
		}
		json = client_document(s, JSON_KERNELS);
		assert_int_equal(json_array_size(path(json, "kernels/devices/0/estimated")), missed ? 3 : 1);
		assert_int_equal(json_array_size(path(json, "kernels/devices/0/without_series/estimated")),
				 missed ? 3 : 1);
		json_decref(json);
		for (uint32_t i = 0; i < s->trace->totals_n; i++)
			s->trace->totals[i].p[TRACED_LAUNCHES] |= PRESENCE_ESTIMATED;
	}
	fixture_free(s);
}

static void kernels_of_one_brief_name_stay_apart(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	must_have(text, "launches_total{" FLASH64 "} 500\n");
	/* 250 and, loaded once more, 10. */
	must_have(text, "launches_total{" FLASH128 "} 260\n");
	must_have(text, "busy_seconds_total{" FLASH128 "} 2.25\n");
	assert_int_equal(lines_with(text, "gpusonde_kernel_launches_total{" FLASH128), 1);
	assert_int_equal(lines_with(text, "occupancy_ratio{" FLASH128), 1);
	fixture_free(s);
}

/* A part that is not known makes the sum so; one that is an estimate, an estimate. */
static void a_sum_is_as_good_as_its_parts(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *estimated = NULL, *unknown = NULL;

	(void)state;
	s->trace->kernels[2].p |= PRESENCE_ESTIMATED;
	estimated = client_page(s, EXPOSITION_PROMETHEUS);
	must_have(estimated, "launches_total{" FLASH128 "} 260\n");
	must_have(estimated,
		  "gpusonde_kernel_estimated{" FLASH128 ",metric=\"gpusonde_kernel_launches_total\"} 1\n");
	s->trace->kernels[2].p = PRESENCE_ABSENT;
	s->trace->kernels[0].other_shapes = 1; /* with how much shared memory nobody knows */
	unknown = client_page(s, EXPOSITION_PROMETHEUS);
	must_have(unknown, "gpusonde_kernel_estimated{" FLASH64
			   ",class=\"shared\",metric=\"gpusonde_kernel_memory_bytes\"} 1\n");
	assert_false(has(unknown, "launches_total{" FLASH128));
	must_have(unknown, "occupancy_ratio{" FLASH128);
	fixture_free(s);
}

static void of_one_pid_the_younger_is_shown(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *both = client_page(s, EXPOSITION_PROMETHEUS), *exited = NULL;

	(void)state;
	assert_false(has(both, "kernel=\"old\""));
	s->trace->processes[5].id.pid = 3001;
	exited = client_page(s, EXPOSITION_PROMETHEUS);
	must_have(exited, "gpusonde_kernel_launches_total{pid=\"3000\",comm=\"again\",kernel=\"old\"");
	fixture_free(s);
}

/* What does not age: a kernel needs what it needs. */
static void old_figures_still_tell_the_kernel(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = NULL;

	(void)state;
	s->trace_stale = true;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	must_have(text, "gpusonde_kernel_launches_total{" FLASH64 "} 500\n");
	must_have(text, "gpusonde_kernel_theoretical_occupancy_ratio{" FLASH64);
	fixture_free(s);
}

/* Two entries for one device. */
static void devices_with_equal_labels_are_one(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = NULL;

	(void)state;
	strcpy(s->trace->totals[0].uuid, s->trace->totals[1].uuid);
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_int_equal(lines_with(text, "\ngpusonde_gpu_kernel_launches_total"), 2);
	assert_int_equal(lines_with(text, "\ngpusonde_gpu_kernel_estimated"), 2);
	fixture_free(s);
}

/* ---- names ---- */

static struct kernel named(const char *brief, const char *symbol, const char *file)
{
	return (struct kernel){ .brief = brief, .symbol = symbol, .name = symbol, .file = file };
}

static void labels_are_short_and_whole_characters(void **state)
{
	char brief[400], label[KERNEL_LABEL_BYTES + 1];
	struct kernel kernel = named(brief, "symbol", "");

	(void)state;
	for (size_t n = 0; n < 140; n++) {
		memset(brief, 'x', n);
		strcpy(brief + n, "\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa4");
		kernel_label(&kernel, label);
		assert_true(strlen(label) <= KERNEL_LABEL_BYTES);
		assert_true(utf8_valid(label, strlen(label)));
		assert_null(strchr(label, '?'));
		if (n + 9 <= KERNEL_LABEL_BYTES)
			assert_string_equal(label, brief);
		else
			assert_string_equal(label + strlen(label) - 3, "...");
	}
	brief[0] = '\0';
	kernel_label(&kernel, label);
	assert_string_equal(label, "symbol");
}

static void ids_tell_symbol_and_file_apart(void **state)
{
	const struct kernel kernels[] = {
		named("f", "ab", ""), named("f", "a", "b"), named("f", "", "ab"),
		named("f", "a", ""),  named("f", "b", "a"), named("f", "ab", "a"),
	};
	const struct kernel other = named("g", "ab", "");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		for (size_t k = 0; k < i; k++)
			assert_true(kernel_id(&kernels[i]) != kernel_id(&kernels[k]));
	/* What it is called for people makes no difference. */
	assert_true(kernel_id(&kernels[0]) == kernel_id(&other));
}

/* ---- JSON ---- */

static void every_kernel_is_in_the_document(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_KERNELS), *row, *process;
	size_t i, n = 0, k;

	(void)state;
	assert_int_equal(json_object_size(json), 5);
	json_array_foreach(path(json, "kernels/processes"), i, process) {
		n += json_array_size(path(process, "kernels"));
		assert_int_equal(json_integer_value(path(process, "kernels_left_out")), 0);
		json_array_foreach(path(process, "kernels"), k, row)
			assert_int_equal(json_is_null(path(row, "name")), json_is_true(path(row, "other")));
	}
	assert_int_equal(n, s->trace->kernels_n);
	row = path(json, "kernels/processes/0/kernels/0");
	assert_string_equal(json_string_value(path(row, "name")),
			    "void flash::flash_fwd_kernel<64, true>(Params)");
	assert_string_equal(json_string_value(path(row, "symbol")),
			    "_ZN5flash16flash_fwd_kernelILi64ELb1EEEv6Params");
	assert_string_equal(json_string_value(path(row, "id")), "43e646a1a3a2ad9f");
	assert_string_equal(json_string_value(path(row, "source")), "handle");
	assert_string_equal(json_string_value(path(row, "arch")), "sm_90a");
	assert_int_equal(json_integer_value(path(row, "registers")), 168);
	assert_int_equal(json_integer_value(path(row, "launches_total")), 1000);
	assert_string_equal(json_string_value(path(row, "estimated/0")), "busy_seconds_total");
	assert_int_equal(json_integer_value(path(row, "shapes/0/grid/1")), 8);
	assert_int_equal(json_integer_value(path(row, "shapes/0/dynamic_shared_bytes")), 49152);
	assert_int_equal(json_integer_value(path(row, "shapes/1/launches")), 300);
	assert_string_equal(json_string_value(path(row, "occupancy_limiter")), "registers");
	assert_int_equal(json_integer_value(path(row, "warps_per_sm")), 12);
	json_decref(json);
	fixture_free(s);
}

static void what_is_not_known_is_null(void **state)
{
	static const char *const unknown[] = { "registers",
					       "constant_bytes",
					       "arch",
					       "uuid",
					       "theoretical_occupancy_ratio",
					       "occupancy_limiter",
					       "blocks_per_sm",
					       "memory_bytes/shared",
					       "offset" };
	static const char *const nobody[] = { "name", "brief", "symbol", "id", "source", "file", "jit" };
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_KERNELS), *mul = path(json, "kernels/processes/0/kernels/5"),
	       *others = path(json, "kernels/processes/0/kernels/6"),
	       *lost = path(json, "kernels/processes/0/kernels/3");

	(void)state;
	assert_string_equal(json_string_value(path(mul, "brief")), "mul");
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_true(json_is_null(path(mul, unknown[i])));
	assert_int_equal(json_integer_value(path(mul, "other_shapes")), 3);
	for (size_t i = 0; i < ARRAY_SIZE(nobody); i++)
		assert_true(json_is_null(path(others, nobody[i])));
	assert_int_equal(json_integer_value(path(others, "launches_total")), 77);
	assert_int_equal(json_integer_value(path(lost, "offset")), 0x12f0);
	assert_string_equal(json_string_value(path(lost, "source")), "unresolved");
	assert_string_equal(json_string_value(path(lost, "file")), "/opt/app/lib/libattention.so");
	json_decref(json);
	fixture_free(s);
}

/* Of any length and of any bytes. */
static void names_are_complete(void **state)
{
	struct snapshot *s = fixture_traced();
	json_t *json = client_document(s, JSON_KERNELS), *row = path(json, "kernels/processes/1/kernels/0");

	(void)state;
	assert_int_equal(json_string_length(path(row, "name")), 4096);
	assert_int_equal(json_string_length(path(row, "symbol")), 4096);
	row = path(json, "kernels/processes/1/kernels/1");
	assert_string_equal(json_string_value(path(row, "name")),
			    "hostile \"a\\b\"\n\x1b[31mred\xe2\x80\xae");
	assert_string_equal(json_string_value(path(json, "kernels/processes/1/kernels/2/name")), "?\?(");
	json_decref(json);
	fixture_free(s);
}

static void without_tracing_there_is_no_kernel(void **state)
{
	struct snapshot *s = fixture_small(), *off = fixture_untraced();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS), *nothing = table(s, 0, false, 0);
	json_t *json = client_document(s, JSON_KERNELS);

	(void)state;
	assert_true(json_is_null(path(json, "kernels")));
	assert_false(has(text, "gpusonde_kernel"));
	must_have(nothing, "No launch of a kernel was seen.");
	json_decref(json);
	json = client_document(off, JSON_KERNELS);
	assert_true(json_is_false(path(json, "kernels/enabled")));
	must_have(json_string_value(path(json, "kernels/why")), "no BTF");
	json_decref(json);
	fixture_free(s);
	fixture_free(off);
}

/* ---- bounds ---- */

enum { PAGE_MAX = 16 << 20 };

/* @processes with @each kernels whose names have @length bytes; the last process is the one with a series. */
static struct snapshot *many(uint32_t processes, uint32_t each, size_t length)
{
	struct snapshot *s = fixture_full();
	_cleanup_free_ char *name = calloc(1, length + 1);
	struct kernel from = { .name = name, .symbol = name, .brief = "k", .file = "" }, *kernel;
	struct trace_view *view;

	memset(name, '"', length);
	assert_int_equal(kernel_new(&from, &kernel), 0);
	assert_int_equal(trace_view_new(processes, 0, 0, 0, 0, 0, processes * each, &view), 0);
	s->trace = view;
	view->enabled = true;
	for (uint32_t i = 0; i < processes; i++) {
		view->processes[i] = (struct traced_process){ .id.pid = 1000 + i,
							      .kernels_first = i * each,
							      .kernels_n = each,
							      .has_series = i == processes - 1 };
		for (uint32_t k = 0; k < each; k++)
			view->kernels[view->kernels_n++] =
				(struct traced_kernel){ .process = i,
							.kernel = kernel_ref(kernel),
							.p = PRESENCE_PRESENT,
							.all = { 1, 32, 0 } };
	}
	view->processes_n = processes;
	fixture_join(s);
	kernel_unref(kernel);
	return s;
}

/*
 * No page is larger than the server serves, and what is not there is counted: kernels, launches, processes.
 */
static void check_counts(uint32_t processes, uint32_t each, size_t length, size_t least_shown, size_t least)
{
	struct snapshot *s = many(processes, each, length);
	size_t i, rows = 0, shown, fewest = SIZE_MAX;
	json_t *json, *process;
	struct strbuf out;

	strbuf_init(&out, PAGE_MAX);
	assert_int_equal(view_json_text(s, JSON_KERNELS, &out), 0);
	json = json_loadb(out.data, out.len, 0, NULL);
	shown = json_array_size(path(json, "kernels/processes"));
	assert_int_equal(shown + (size_t)json_integer_value(path(json, "kernels/processes_left_out")),
			 processes);
	assert_int_equal(json_integer_value(path(json, "kernels/processes/0/pid")), 1000 + processes - 1);
	json_array_foreach(path(json, "kernels/processes"), i, process) {
		size_t n = json_array_size(path(process, "kernels"));

		assert_int_equal(n + (size_t)json_integer_value(path(process, "kernels_left_out")), each);
		assert_int_equal(json_integer_value(path(process, "launches_left_out")), each - n);
		fewest = MIN(fewest, n);
		rows += n;
	}
	if (fewest < least)
		fail_msg("%zu of %u kernels shown of a process", fewest, each);
	if (shown < least_shown)
		fail_msg("%zu of %u processes shown", shown, processes);
	assert_true(rows > 0 && rows <= (size_t)processes * each);
	json_decref(json);
	strbuf_done(&out);
	fixture_free(s);
}

static void what_does_not_fit_is_counted(void **state)
{
	(void)state;
	check_counts(4, 64, 512, 4, 64); /* all of it */
	check_counts(8, 4096, 512, 8, 300); /* each has its part */
	check_counts(16384, 4, 128, 1000, 1); /* not even all processes */
	check_counts(1, 65536, 64, 1, 1000);
	check_counts(3, 16, 512 << 10, 3, 1); /* one name is half a megabyte, and twice that in JSON */
}

static void who_asks_for_all_gets_it(void **state)
{
	struct snapshot *s = many(1, 20000, 600);
	struct strbuf out;
	json_t *json;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(view_kernels(s, 0, &out), 0);
	json = json_loadb(out.data, out.len, 0, NULL);
	assert_int_equal(json_array_size(path(json, "processes/0/kernels")), 20000);
	json_decref(json);
	strbuf_done(&out);
	fixture_free(s);
}

/* A row for each of 64 kernels in each family, with the longest labels. */
static void the_page_is_bounded(void **state)
{
	struct snapshot *s = many(1, 64, 4096);
	_cleanup_free_ char *before = NULL, *after = NULL;
	struct trace_view *view = s->trace;

	(void)state;
	before = client_page(s, EXPOSITION_PROMETHEUS);
	for (uint32_t i = 0; i < 64; i++) {
		struct traced_kernel *row = &view->kernels[i];
		char symbol[32], brief[300];
		struct kernel from = { .name = "", .brief = brief, .symbol = symbol, .file = "" };

		kernel_unref(row->kernel);
		memset(brief, '"', sizeof(brief) - 1);
		brief[sizeof(brief) - 1] = '\0';
		snprintf(symbol, sizeof(symbol), "k%u", i);
		assert_int_equal(kernel_new(&from, &row->kernel), 0);
		row->has_series = row->occupancy_known = true;
		row->shapes_n = 1;
		row->shapes[0].launches = 1;
	}
	after = client_page(s, EXPOSITION_PROMETHEUS);
	assert_int_equal(lines_with(after, "\ngpusonde_kernel_launches_total{"), 64);
	if (strlen(after) - strlen(before) > 64 * 8 * 700)
		fail_msg("%zu bytes", strlen(after) - strlen(before));
	fixture_free(s);
}

static void a_limit_is_an_error(void **state)
{
	struct snapshot *s = fixture_traced();
	struct strbuf out;

	(void)state;
	for (size_t limit = 64; limit < 20000; limit += 997) {
		strbuf_init(&out, limit);
		assert_int_equal(view_json_text(s, JSON_KERNELS, &out), -E2BIG);
		strbuf_done(&out);
	}
	fixture_free(s);
}

/* ---- the table ---- */

static void the_table_says_what_is_missing(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = table(s, 0, false, 0), *some = table(s, 0, false, 3);

	(void)state;
	must_have(text, "flash_fwd_kernel<...>");
	must_have(text, "1024+49152");
	must_have(text, "16x8x2+");
	must_have(text, "35 of 1808 launches could not be named\n");
	must_have(text, "77 of 1808 launches are not told apart: beyond a limit, or function not read");
	must_have(text, "0x12f0  /opt/app/lib/libattention.so\n");
	must_have(text, "0x7f12deadbeef          1001         4       -  -\n");
	assert_false(has(text, "more, with"));
	must_have(some, "and 10 more, with 277 launches\n");
	fixture_free(s);
}

static void names_in_full(void **state)
{
	struct snapshot *s = fixture_traced();
	_cleanup_free_ char *text = table(s, 0, true, 0);

	(void)state;
	must_have(text, "void flash::flash_fwd_kernel<128, true>(Params)");
	assert_false(has(text, "\x1b"));
	assert_false(has(text, "\xe2\x80\xae"));
	fixture_free(s);
}

static void columns_of_what_is_one_are_left_out(void **state)
{
	struct snapshot *s = many(1, 3, 8);
	_cleanup_free_ char *one = table(s, 0, false, 0), *two = NULL;
	struct snapshot *more = many(2, 3, 8);

	(void)state;
	two = table(more, 0, false, 0);
	assert_false(has(one, "PID"));
	assert_false(has(one, "GPU"));
	must_have(two, "PID");
	/* Names stand last, where they need no room of others. */
	must_have(two, "  NAMED BY  KERNEL\n");
	assert_false(has(two, " \n"));
	assert_false(has(two, "could not be named"));
	fixture_free(s);
	fixture_free(more);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	struct snapshot *s = fixture_traced();

	(void)state;
	for (unsigned width = 30; width < 200; width += 7) {
		_cleanup_free_ char *text = table(s, width, false, 0);

		for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			if (strlen(line) > width)
				fail_msg("%zu columns of %u: %s", strlen(line), width, line);
	}
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_carry_what_is_known),
		cmocka_unit_test(the_others_are_one_series_a_device),
		cmocka_unit_test(totals_are_estimates_where_launches_were_missed),
		cmocka_unit_test(kernels_of_one_brief_name_stay_apart),
		cmocka_unit_test(a_sum_is_as_good_as_its_parts),
		cmocka_unit_test(of_one_pid_the_younger_is_shown),
		cmocka_unit_test(old_figures_still_tell_the_kernel),
		cmocka_unit_test(devices_with_equal_labels_are_one),
		cmocka_unit_test(labels_are_short_and_whole_characters),
		cmocka_unit_test(ids_tell_symbol_and_file_apart),
		cmocka_unit_test(every_kernel_is_in_the_document),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(names_are_complete),
		cmocka_unit_test(without_tracing_there_is_no_kernel),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(who_asks_for_all_gets_it),
		cmocka_unit_test(the_page_is_bounded),
		cmocka_unit_test(a_limit_is_an_error),
		cmocka_unit_test(the_table_says_what_is_missing),
		cmocka_unit_test(names_in_full),
		cmocka_unit_test(columns_of_what_is_one_are_left_out),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
