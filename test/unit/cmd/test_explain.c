// SPDX-License-Identifier: Apache-2.0
/* What "gpusonde explain" says of hand-made nodes and findings. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "cmd/explain/explain.h"
#include "cmd/top/columns.h"
#include "view/fixture.h"
#include "view/snapshot/read.h"

/* One GPU of the node in full, as its document has it. */
static json_t *document;
static struct snapshot *decoded;
static struct explain explain;

static int setup(_unused_ void **state)
{
	struct snapshot *s = fixture_full();

	document = view_json(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE);
	fixture_free(s);
	return document ? 0 : -1;
}

static int teardown(_unused_ void **state)
{
	json_decref(explain.subjects);
	json_decref((json_t *)(uintptr_t)explain.findings);
	snapshot_read_free(decoded);
	json_decref(document);
	decoded = NULL;
	explain = (struct explain){ 0 };
	return 0;
}

static json_t *gpu(size_t i)
{
	return json_array_get(json_object_get(document, "gpus"), i);
}

static void set(json_t *object, const char *path, json_t *value)
{
	const char *dot = strchr(path, '.');
	char first[60];

	snprintf(first, sizeof(first), "%.*s", dot ? (int)(dot - path) : (int)strlen(path), path);
	if (dot)
		json_object_set_new(json_object_get(object, first), dot + 1, value);
	else
		json_object_set_new(object, first, value);
}

/* Explains it, and decodes the document first. */
static void explain_it(const char *operand)
{
	char why[400];
	const json_t *row;
	size_t i;

	assert_int_equal(snapshot_read(document, &decoded), 0);
	explain.document = document;
	explain.s = decoded;
	explain.subjects = json_array();
	assert_int_equal(subject_find(&explain, operand, why, sizeof(why)), 0);
	if (explain.about == ABOUT_JOB)
		explain_job(&explain);
	json_array_foreach(json_object_get(document, "processes"), i, row)
		if (subject_has_process(&explain, row))
			explain_process(&explain, row);
	json_array_foreach(json_object_get(document, "gpus"), i, row)
		if (subject_has_gpu(&explain, row))
			explain_gpu(&explain, row);
	assert_false(explain.failed);
}

/* The sentence of that topic which has these words; NULL: none. */
static const json_t *said(const char *topic, const char *words)
{
	const json_t *subject, *sentence;
	size_t i, k;

	json_array_foreach(explain.subjects, i, subject)
		json_array_foreach(json_object_get(subject, "sentences"), k, sentence)
			if (STRV_EQ(text_member(sentence, "topic"), topic) &&
			    strstr(text_member(sentence, "text"), words))
				return sentence;
	return NULL;
}

static void calm(json_t *object)
{
	json_t *reasons = json_object_get(object, "clocks_event_reason");

	for (void *i = json_object_iter(reasons); i; i = json_object_iter_next(reasons, i))
		json_object_iter_set_new(reasons, i, json_integer(0));
	set(object, "clock_hertz.sm", json_integer(1000000000));
	set(object, "clock_max_hertz.sm", json_integer(2000000000));
	set(object, "utilization_ratio.gpu", json_real(0.5));
	set(object, "pcie_link_width.current", json_integer(16));
	set(object, "pcie_link_width.max", json_integer(16));
	set(object, "pcie_link_generation.current", json_integer(5));
	set(object, "pcie_link_generation.max", json_integer(5));
	set(object, "attribution_memory_bytes.unattributed", json_integer(0));
}

static void throttling(_unused_ void **state)
{
	const json_t *sentence;

	calm(gpu(0));
	set(gpu(0), "clocks_event_reason.hw_thermal_slowdown", json_integer(1));
	explain_it("GPU 0"); /* as it is called there itself */
	sentence = said("slowdown", "throttled (hw_thermal_slowdown) to 50 % of the highest");
	assert_non_null(sentence);
	assert_string_equal(text_member(sentence, "remedy"), analysis_rules[FINDING_CLOCKS_THROTTLED].remedy);
	assert_non_null(json_object_get(json_object_get(sentence, "figures"), "clock_hertz.sm"));
}

static void throttling_that_costs_little(_unused_ void **state)
{
	calm(gpu(0));
	set(gpu(0), "clocks_event_reason.sw_power_cap", json_integer(1));
	set(gpu(0), "clock_hertz.sm", json_integer(1900000000));
	explain_it("gpu:0");
	assert_non_null(said("slowdown", "to 95 % of the highest, which costs little"));
	assert_true(json_is_null(json_object_get(said("slowdown", "95 %"), "remedy")));
}

static void a_calm_gpu(_unused_ void **state)
{
	calm(gpu(0));
	explain_it("gpu:0");
	assert_non_null(said("use", "busy 50 %"));
	assert_non_null(said("use", "SM clock 1000 MHz of 2000 MHz"));
	assert_null(said("slowdown", ""));
	assert_null(said("waste", ""));
}

static void a_link(_unused_ void **state)
{
	calm(gpu(0));
	set(gpu(0), "pcie_link_width.current", json_integer(8));
	explain_it("gpu:0");
	assert_non_null(said("slowdown", "generation 5 of 5 with 8 of 16 lanes"));
}

/* An idle link is slow by design. */
static void an_idle_link(_unused_ void **state)
{
	calm(gpu(0));
	set(gpu(0), "pcie_link_generation.current", json_integer(1));
	set(gpu(0), "utilization_ratio.gpu", json_real(0.01));
	explain_it("gpu:0");
	assert_null(said("slowdown", "PCIe"));
}

/* Of all processes on GPU 0: over all windows. */
static void set_recent(double share, double seconds)
{
	json_t *row, *windows;
	size_t i;

	json_array_foreach(json_object_get(document, "processes"), i, row) {
		windows = json_array();
		for (unsigned k = 0; k < RECENTS; k++)
			json_array_append_new(windows, json_pack("{s:i, s:f, s:f}", "window_seconds",
								 (int)recent_seconds[k], "seconds", seconds,
								 "utilization_ratio", share));
		set(row, "recent", windows);
	}
}

static void idle_with_memory(_unused_ void **state)
{
	const json_t *sentence;

	calm(gpu(0));
	set(gpu(0), "utilization_ratio.gpu", json_real(0));
	set(gpu(0), "memory_used_bytes", json_integer(INT64_C(40) << 30));
	set(gpu(0), "memory_total_bytes", json_integer(INT64_C(80) << 30));
	set_recent(0, 120);
	explain_it("gpu:0");
	sentence = said("waste",
			"idle while 40.0 GiB are allocated: its processes were seen to use nothing of it for "
			"120 s");
	assert_non_null(sentence);
	assert_string_equal(text_member(sentence, "remedy"), analysis_rules[FINDING_IDLE_ALLOCATED].remedy);
}

/* What was not seen for long, or does something, is not called a waste. */
static void idle_for_a_moment(_unused_ void **state)
{
	calm(gpu(0));
	set(gpu(0), "utilization_ratio.gpu", json_real(0));
	set(gpu(0), "memory_used_bytes", json_integer(INT64_C(40) << 30));
	set(gpu(0), "memory_total_bytes", json_integer(INT64_C(80) << 30));
	set_recent(0.2, 120);
	explain_it("gpu:0");
	assert_null(said("waste", "idle"));
	assert_non_null(said("use", "It is idle now"));
}

static void stale_and_gone(_unused_ void **state)
{
	set(gpu(0), "stale", json_true());
	set(gpu(1), "present", json_false());
	set_recent(0, 120);
	explain_it(NULL);
	assert_non_null(said("state", "What is said of it is"));
	assert_non_null(said("use", "Then: "));
	assert_non_null(said("state", "It is gone"));
}

static json_t *finding(const char *rule, json_t *pid, json_t *device, bool active)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:s, s:n, s:[i], s:f, s:{s:f, s:f, s:i}}", "finding",
			 rule, "title", "kernels are small", "remedy", "use graphs", "pid", pid, "device",
			 device, "active", (int)active, "subject", "cudaLaunchKernel", "caused_by",
			 "symptoms", 4, "confidence", 0.9, "evidence", "time_share", 0.125, "slowest_seconds",
			 0.002, "launches_per_second", 31000);
}

static void findings(_unused_ void **state)
{
	json_t *row = json_array_get(json_object_get(document, "processes"), 0);
	json_t *pid = json_object_get(row, "pid");
	char operand[40];

	calm(gpu(0));
	set(gpu(0), "clocks_event_reason.hw_thermal_slowdown", json_integer(1));
	explain.findings = json_pack(
		"{s:[o,o,o]}", "findings", finding("launch_bound", json_incref(pid), json_null(), true),
		finding("copy_bound", json_incref(pid), json_null(), false),
		finding("clocks_throttled", json_null(), json_string(text_member(gpu(0), "uuid")), true));
	snprintf(operand, sizeof(operand), "pid:%" JSON_INTEGER_FORMAT, json_integer_value(pid));
	explain_it(operand);
	assert_non_null(said("finding",
			     "launch_bound: kernels are small, cudaLaunchKernel (time_share 12.5 %, "
			     "slowest_seconds 2.0 ms, launches_per_second 31000, confidence 90 %; it "
			     "explains 1 other finding)"));
	assert_non_null(said("finding", "1 finding of before has ended"));
	assert_null(said("finding", "copy_bound"));
	/* It is said once: with the analysis's figures. */
	assert_non_null(said("finding", "clocks_throttled"));
	assert_null(said("slowdown", "throttled"));
}

static void of_a_process(_unused_ void **state)
{
	json_t *row = json_array_get(json_object_get(document, "processes"), 0);
	char operand[40];

	set_recent(0, 120);
	set(row, "memory_bytes", json_integer(INT64_C(3) << 30));
	snprintf(operand, sizeof(operand), "%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(row, "pid")));
	explain_it(operand);
	assert_non_null(said("waste", "It has used none of that GPU's time in 120 s, and holds 3.0 GiB"));
	assert_non_null(said("users", "It shares it with"));
}

static void of_a_process_that_works(_unused_ void **state)
{
	json_t *row = json_array_get(json_object_get(document, "processes"), 0);
	char operand[40];

	set_recent(0.25, 120);
	snprintf(operand, sizeof(operand), "pid:%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(row, "pid")));
	explain_it(operand);
	assert_null(said("waste", "none of that GPU's time"));
	assert_non_null(said("use", "Over the last 120 s it had 25 %"));
}

static void of_a_job(_unused_ void **state)
{
	json_t *list = json_object_get(document, "processes");

	for (size_t i = 0; i < json_array_size(list); i++) {
		set(json_array_get(list, i), "job", i < 2 ? json_string("77") : json_null());
		set(json_array_get(list, i), "memory_bytes", json_integer(INT64_C(1) << 30));
		set(json_array_get(list, i), "utilization_ratio", json_real(0.25));
	}
	explain_it("job:77");
	assert_non_null(said("use", "(100 % of SMs is one GPU): SMs 50 %, GPU memory 2.0 GiB"));
	set(json_array_get(list, 0), "memory_bytes", json_null());
	json_array_clear(explain.subjects);
	explain_job(&explain);
	assert_non_null(said("use", "SMs 50 %"));
	assert_null(said("use", "GPU memory"));
}

static void who_is_meant(_unused_ void **state)
{
	json_t *row = json_array_get(json_object_get(document, "processes"), 0);
	char why[400];

	set(row, "job", json_string("0"));
	explain.document = document;
	assert_int_equal(subject_find(&explain, "0", why, sizeof(why)), -ENOTUNIQ);
	assert_non_null(strstr(why, "gpu:0, pid:0 or job:0"));
	assert_int_equal(subject_find(&explain, "gpu:0", why, sizeof(why)), 0);
	assert_int_equal(explain.about, ABOUT_GPU);
	assert_int_equal(subject_find(&explain, "job:0", why, sizeof(why)), 0);
	assert_int_equal(explain.about, ABOUT_JOB);
	assert_int_equal(subject_find(&explain, "", why, sizeof(why)), -ESRCH);
	assert_int_equal(subject_find(&explain, "gpu:", why, sizeof(why)), -ESRCH);
	assert_int_equal(subject_find(&explain, NULL, why, sizeof(why)), 0);
}

/* What users chose is cleaned, and wrapped with the rest. */
static void as_text(_unused_ void **state)
{
	const struct table_options options = { .width = 60 };
	struct strbuf out;

	json_object_set_new(json_array_get(json_object_get(document, "processes"), 0), "comm",
			    json_string("evil\x1b[31m"));
	explain_it("gpu:0");
	strbuf_init(&out, 0);
	assert_int_equal(explain_text(explain.subjects, &options, &out), 0);
	assert_null(strchr(out.data, 0x1b));
	for (char *line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 70); /* bytes: a character may have more than one */
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(throttling, setup, teardown),
		cmocka_unit_test_setup_teardown(throttling_that_costs_little, setup, teardown),
		cmocka_unit_test_setup_teardown(a_calm_gpu, setup, teardown),
		cmocka_unit_test_setup_teardown(a_link, setup, teardown),
		cmocka_unit_test_setup_teardown(an_idle_link, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_with_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_for_a_moment, setup, teardown),
		cmocka_unit_test_setup_teardown(stale_and_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(findings, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_process, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_process_that_works, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_job, setup, teardown),
		cmocka_unit_test_setup_teardown(who_is_meant, setup, teardown),
		cmocka_unit_test_setup_teardown(as_text, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
