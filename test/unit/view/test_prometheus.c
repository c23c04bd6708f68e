// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "client.h"
#include "fixture.h"
#include "view/metrics/families.h"
#include "view/view.h"

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

static bool ends_in_total(const char *family)
{
	size_t n = strlen(family);

	return n > 6 && STRV_EQ(family + n - 6, "_total");
}

/* Names that both formats can carry: counters end in _total, nothing else does, and no name is used twice. */
static void check_names(const struct metric *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bool counter = rows[i].kind == METRIC_COUNTER || rows[i].kind == METRIC_INCREMENT;

		if (counter != ends_in_total(rows[i].family))
			fail_msg("%s: counters end in _total, and they alone", rows[i].family);
		for (unsigned k = 0; k < i; k++) {
			size_t length = strlen(rows[k].family);

			/* OpenMetrics cuts _total off, so X and X_total clash. */
			if (strncmp(rows[i].family, rows[k].family, length) == 0 &&
			    STRV_EQ(rows[i].family + length, "_total"))
				fail_msg("%s and %s are one family in OpenMetrics", rows[k].family,
					 rows[i].family);
			if (k + 1 < i && STRV_EQ(rows[i].family, rows[k].family) &&
			    !STRV_EQ(rows[i].family, rows[i - 1].family))
				fail_msg("the rows of %s do not stand together", rows[i].family);
		}
	}
}

static void table_makes_valid_names(void **state)
{
	(void)state;
	check_names(gpu_metrics, GPU_METRICS);
	check_names(process_metrics, PROCESS_METRICS);
	check_names(traced_metrics, TRACED_METRICS);
	check_names(host_metrics, HOST_METRICS);
	check_names(disk_metrics, DISK_METRICS);
	check_names(interface_metrics, INTERFACE_METRICS);
	check_names(server_metrics, SERVER_METRICS);
	check_names(agent_metrics, AGENT_METRICS);
	for (unsigned i = 0; i < TRACED_METRICS; i++)
		assert_int_equal(strncmp(traced_metrics[i].family, "process_cuda_", 13), 0);
	for (unsigned i = 0; i < PROCESS_METRICS; i++)
		assert_int_equal(strncmp(process_metrics[i].family, "process_", 8), 0);
}

/* Names and labels that dashboards may rely on from the first release on. */
static void fixed_names(void **state)
{
	static const char *const names[] = {
		"gpusonde_gpu_info{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_present{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_stale{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_busy_seconds_total{gpu=\"0\",uuid=\"GPU-abc00000-0000-4000-8000-000000000000\","
		"engine=\"gpu\"} ",
		"gpusonde_gpu_observed_seconds_total{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-abc00000-0000-4000-8000-000000000000\","
		"engine=\"memory\"} ",
		"gpusonde_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_memory_total_bytes{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_power_watts{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_energy_joules_total{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_temperature_celsius{gpu=\"0\",uuid=\"GPU-",
		"gpusonde_gpu_xid_errors_total{gpu=\"0\",uuid=\"GPU-abc00000-0000-4000-8000-000000000000\","
		"xid=\"31\"} 2\n",
		"gpusonde_process_gpu_busy_seconds_total{gpu=\"0\","
		"uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",pid=\"1001\",comm=",
		("gpusonde_process_gpu_memory_bytes{gpu=\"2\","
		 "uuid=\"GPU-abc00002-0000-4000-8000-000000000002\",gi=\"1\",ci=\"0\",pid=\"2001\","
		 "comm=\"in-mig\"} 2147483648\n"),
	};
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!has(text, names[i]))
			fail_msg("missing: %s", names[i]);
	fixture_free(s);
}

/* Every engine, by its name. */
static void engines(void **state)
{
	static const char *const names[] = { "gpu", "memory", "encoder", "decoder", "jpeg", "ofa" };
	struct snapshot *s = fixture_full();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct strbuf sample;

		strbuf_init(&sample, 0);
		strbuf_addf(&sample, "gpusonde_gpu_utilization_ratio{gpu=\"7\",uuid=\"%s\",engine=\"%s\"} ",
			    s->entities[7].id.uuid, names[i]);
		assert_true(has(text, sample.data));
		strbuf_done(&sample);
	}
	fixture_free(s);
}

static void lost_gpu_has_no_gauges(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);
	const char *line = text;

	(void)state;
	while ((line = strstr(line, "{gpu=\"3\""))) {
		const char *start = line;
		size_t n;

		while (start > text && start[-1] != '\n')
			start--;
		n = (size_t)(line - start);
		assert_true(strncmp(start, "gpusonde_gpu_info", n) == 0 ||
			    strncmp(start, "gpusonde_gpu_present", n) == 0 ||
			    strncmp(start, "gpusonde_gpu_stale", n) == 0 ||
			    strncmp(start, "gpusonde_gpu_status", n) == 0 ||
			    strncmp(start, "gpusonde_gpu_sample_age_seconds", n) == 0 ||
			    strncmp(start, "gpusonde_gpu_xid_last_timestamp_seconds", n) == 0 ||
			    strncmp(start, "gpusonde_container_gpu_allocated", n) == 0 ||
			    (n > 6 && strncmp(line - 6, "_total", 6) == 0));
		line++;
	}
	assert_true(
		has(text,
		    "gpusonde_gpu_present{gpu=\"3\",uuid=\"GPU-abc00003-0000-4000-8000-000000000003\"} 0\n"));
	assert_true(has(text, "gpusonde_gpu_energy_joules_total{gpu=\"3\""));
	fixture_free(s);
}

static void stale_gpu_says_so(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(
		text, "gpusonde_gpu_stale{gpu=\"1\",uuid=\"GPU-abc00001-0000-4000-8000-000000000001\"} 1\n"));
	assert_true(has(text, "gpusonde_gpu_sample_age_seconds{gpu=\"1\","
			      "uuid=\"GPU-abc00001-0000-4000-8000-000000000001\"} 42\n"));
	assert_true(has(text, "gpusonde_gpu_power_watts{gpu=\"1\""));
	fixture_free(s);
}

static void absent_is_absent(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	/* Unsupported, rejected, not permitted: no series and, as nobody else has one, no family. */
	assert_false(has(text, "gpu_fan_speed_ratio"));
	assert_false(has(text, "gpu_memory_temperature_celsius"));
	assert_false(has(text, "gpu_pcie_replay_total"));
	assert_true(has(text, "gpusonde_rejected_samples_total{field=\"temperature_memory\"} 7\n"));
	assert_true(has(text, "gpusonde_rejected_samples_total{field=\"process_memory\"} 2\n"));
	/* A MIG GPU whose utilisation the driver does not offer has none; its instance has. */
	assert_false(has(
		text,
		"gpusonde_gpu_utilization_ratio{gpu=\"2\",uuid=\"GPU-abc00002-0000-4000-8000-000000000002\","
		"engine="));
	/* An instance that is gone leaves nothing. */
	assert_false(has(text, "gi=\"9\""));
	fixture_free(s);
}

/* Each increment is in one series: its process's or the others'. */
static void others_are_summed(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	/* credited: 3/4 of 150 */
	assert_true(has(text,
			"pid=\"1001\",comm=\"train \\\"a\\\\b\\\"\\n\",namespace=\"ml\",pod=\"train-0\","
			"container=\"main\"} 112.5\n"));
	assert_true(has(
		text,
		"gpusonde_process_gpu_busy_seconds_total{gpu=\"0\","
		"uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",pid=\"other\",comm=\"other\"} 17.25\n"));
	/* Memory of those without a series: 512 and 256 MiB. */
	assert_true(has(text,
			"gpusonde_process_gpu_memory_bytes{gpu=\"0\","
			"uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",pid=\"other\",comm=\"other\"} "
			"805306368\n"));
	assert_false(has(text, "pid=\"1003\""));
	/* Ratios and peaks do not add up. */
	assert_false(has(text, "gpusonde_process_gpu_utilization_ratio{gpu=\"0\","
			       "uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",pid=\"other\""));
	/* Nothing of the kind where every process has its series. */
	assert_false(has(text, "gi=\"1\",ci=\"0\",pid=\"other\""));
	fixture_free(s);
}

static void series_of_others_stay_when_they_are_gone(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = NULL;

	(void)state;
	s->processes_n = 0;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(
		text,
		"gpusonde_process_gpu_busy_seconds_total{gpu=\"0\","
		"uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",pid=\"other\",comm=\"other\"} 17.25\n"));
	assert_false(has(text, "gpusonde_process_gpu_memory_bytes"));
	assert_true(has(text, "gpusonde_gpu_processes_busy_seconds_total{gpu=\"0\","
			      "uuid=\"GPU-abc00000-0000-4000-8000-000000000000\"} 4321.125\n"));
	fixture_free(s);
}

static void hostile_labels(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(text, "model=\"GPU \\\"one\\\" \\\\ two\\nthree ?? \xe2\x82\xac@#\""));
	assert_true(has(text, "comm=\"bad?\?("));
	fixture_free(s);
}

static void workload_labels(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(text,
			"gpusonde_workload_gpu_busy_seconds_total{gpu=\"0\","
			"uuid=\"GPU-abc00000-0000-4000-8000-000000000000\",kind=\"container\","
			"container_id=\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
			"pod_uid=\"2f6f1ad2-0f5c-4a8e-9a39-0f1e2d3c4b5a\",namespace=\"ml\",pod=\"train-0\","
			"container=\"main\"} 300.5\n"));
	/* A pod's has no container; what has no names has no labels for them. */
	assert_true(has(text, "pod_uid=\"9d1b6c1e-6c1b-4d3f-8d8f-1c2b3a495867\",namespace=\"serve\","
			      "pod=\"infer-6d5f8c7b9-x2x7k\"} 300.5\n"));
	assert_true(has(text, ",kind=\"job\",job=\"4711\"} 300.5\n"));
	assert_true(has(text, "gi=\"1\",ci=\"0\",kind=\"unit\",unit=\"ollama.service\"} 300.5\n"));
	/* On the lost GPU: its counter stays, its memory is nobody's any more. */
	assert_true(has(text, "gpusonde_workload_gpu_busy_seconds_total{gpu=\"3\""));
	assert_false(has(text, "gpusonde_workload_gpu_memory_bytes{gpu=\"3\""));
	fixture_free(s);
}

/* What a process says of its job is on no series of figures, and marked: its user chose it. */
static void a_jobs_name_is_claimed(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = NULL, *again = NULL;

	(void)state;
	strcpy(s->jobs[0].name, "a\x1b[31m\xc2\x9b\xe2\x80\xae\\ \"b\"\n");
	/* The same job on another GPU, of which another process says something else. */
	s->workloads[3].kind = WORKLOAD_JOB;
	strcpy(s->workloads[3].id, "4711");
	s->workloads[3].job = 1;
	text = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(
		has(text, "\ngpusonde_job_info{job=\"4711\",job_uid=\"4000000000\",claimed=\"false\"} 1\n"));
	/* Nothing in it does anything to a terminal. */
	assert_true(has(text, "\ngpusonde_job_info{job=\"4711\",job_name=\"a\\\\x1b[31m\\\\x9b\\\\u202e\\\\ "
			      "\\\"b\\\"\\n\",job_user=\"alice\",claimed=\"true\"} 1\n"));
	assert_false(has(text, "2022[3]"));
	assert_null(strchr(text, '\x1b'));
	s->workloads[1].job = JOB_NONE;
	s->workloads[1].uid = s->workloads[3].uid = UINT32_MAX;
	again = client_page(s, EXPOSITION_PROMETHEUS);
	assert_false(has(again, "gpusonde_job_info{"));
	fixture_free(s);
}

/* An allocation that only a process says is not one like others. */
static void a_claimed_allocation_is_marked(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_PROMETHEUS);

	(void)state;
	assert_true(has(text,
			"kind=\"job\",job=\"4712\",claimed=\"true\",resource=\"NVIDIA_VISIBLE_DEVICES\","
			"source=\"jobs\"} 1\n"));
	assert_true(has(text, "kind=\"job\",job=\"4712\",claimed=\"true\"} 60\n"));
	assert_false(has(text, "claimed=\"true\",resource=\"nvidia.com"));
	fixture_free(s);
}

static void openmetrics_differs_where_it_must(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = client_page(s, EXPOSITION_OPENMETRICS);
	size_t n = strlen(text);

	(void)state;
	assert_true(n > 6 && STRV_EQ(text + n - 6, "# EOF\n"));
	assert_true(
		has(text,
		    "# TYPE gpusonde_gpu_busy_seconds counter\n# UNIT gpusonde_gpu_busy_seconds seconds\n"));
	assert_true(has(text, "# TYPE gpusonde_gpu info\ngpusonde_gpu_info{"));
	assert_true(has(text, "# TYPE gpusonde_node info\n"));
	assert_true(has(text, "# UNIT gpusonde_process_gpu_memory_byte_seconds byte_seconds\n"));
	assert_false(has(text, "# UNIT gpusonde_gpu_present"));
	fixture_free(s);
}

static void simulated_is_said(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *simulated = client_page(s, EXPOSITION_PROMETHEUS), *real = NULL;

	(void)state;
	s->simulated = false;
	real = client_page(s, EXPOSITION_PROMETHEUS);
	assert_true(has(simulated, "simulated=\"true\""));
	assert_false(has(simulated, "simulated=\"false\""));
	assert_true(has(real, "simulated=\"false\""));
	assert_false(has(real, "simulated=\"true\""));
	fixture_free(s);
}

static void limit_is_kept(void **state)
{
	struct snapshot *s = fixture_small();
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 1000);
	assert_int_equal(view_prometheus(s, EXPOSITION_PROMETHEUS, NULL, &out), -E2BIG);
	assert_true(out.len <= 1000);
	strbuf_done(&out);
	fixture_free(s);
}

/* Whether families are left out before the page is written, or of the page. */
static void families_are_left_out(void **state)
{
	static const char *const lists[] = { "gpusonde_gpu_*", "gpusonde_*_total,gpusonde_gpu_info",
					     "!gpusonde_process_*", "nothing", "" };
	struct snapshot *s = fixture_small();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lists) * EXPOSITIONS; i++) {
		enum exposition format = (enum exposition)(i % EXPOSITIONS);
		const char *list = lists[i / EXPOSITIONS];
		struct strbuf whole, written, left;

		strbuf_init(&whole, 0);
		strbuf_init(&written, 0);
		strbuf_init(&left, 0);
		assert_int_equal(view_prometheus(s, format, NULL, &whole), 0);
		assert_int_equal(view_prometheus(s, format, list, &written), 0);
		families_of_page(&whole, list, &left);
		assert_string_equal(written.data, left.data);
		assert_true(*list ? written.len < whole.len : written.len == whole.len);
		strbuf_done(&whole);
		strbuf_done(&written);
		strbuf_done(&left);
	}
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_makes_valid_names),
		cmocka_unit_test(fixed_names),
		cmocka_unit_test(engines),
		cmocka_unit_test(lost_gpu_has_no_gauges),
		cmocka_unit_test(stale_gpu_says_so),
		cmocka_unit_test(absent_is_absent),
		cmocka_unit_test(others_are_summed),
		cmocka_unit_test(series_of_others_stay_when_they_are_gone),
		cmocka_unit_test(hostile_labels),
		cmocka_unit_test(workload_labels),
		cmocka_unit_test(a_jobs_name_is_claimed),
		cmocka_unit_test(a_claimed_allocation_is_marked),
		cmocka_unit_test(openmetrics_differs_where_it_must),
		cmocka_unit_test(simulated_is_said),
		cmocka_unit_test(limit_is_kept),
		cmocka_unit_test(families_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
