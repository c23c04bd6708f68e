// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "fixture.h"
#include "view/view.h"

static json_t *document(const struct snapshot *s, unsigned sections)
{
	json_t *d = view_json(s, sections);

	assert_non_null(d);
	return d;
}

static json_t *gpu(json_t *d, size_t i)
{
	return json_array_get(json_object_get(d, "gpus"), i);
}

static const char *text(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void only_the_sections_asked_for(void **state)
{
	struct snapshot *s = fixture_small();

	(void)state;
	for (unsigned sections = JSON_GPUS; sections <= JSON_NODE; sections <<= 1) {
		json_t *d = document(s, sections);

		assert_string_equal(text(d, "schema"), "gpusonde/v1");
		assert_string_equal(text(d, "time"), "2026-09-21T14:13:20.250Z");
		assert_true(json_is_true(json_object_get(d, "simulated")));
		assert_int_equal(json_object_get(d, "gpus") != NULL, sections == JSON_GPUS);
		assert_int_equal(json_object_get(d, "processes") != NULL, sections == JSON_PROCESSES);
		assert_int_equal(json_object_get(d, "node") != NULL, sections == JSON_NODE);
		json_decref(d);
	}
	fixture_free(s);
}

/* Nothing that a process is called does anything to a terminal, and nothing of it is lost. */
static void texts_are_harmless_and_whole(void **state)
{
	static const char name[] = "a\x1b[31m\x7f\xc2\x9b\xe2\x80\xae"
				   "b\xc3\xa9";
	struct snapshot *s = fixture_small();
	struct strbuf out;
	json_t *d;

	(void)state;
	strcpy(s->processes[0].comm, name);
	strbuf_init(&out, 0);
	assert_int_equal(view_json_text(s, JSON_PROCESSES, &out), 0);
	assert_non_null(strstr(out.data, "\"a\\u001B[31m\\u007F\\u009B\\u202Eb\xc3\xa9\""));
	d = json_loads(out.data, 0, NULL);
	assert_string_equal(text(json_array_get(json_object_get(d, "processes"), 0), "comm"), name);
	json_decref(d);
	strbuf_done(&out);
	fixture_free(s);
}

static void shapes(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d = document(s, JSON_GPUS), *g = gpu(d, 0), *links;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(d, "gpus")), 4);
	assert_true(json_is_integer(json_object_get(g, "memory_total_bytes")));
	assert_true(json_is_real(json_object_get(g, "power_watts")));
	assert_true(json_is_real(json_object_get(json_object_get(g, "utilization_ratio"), "gpu")));
	assert_true(json_is_null(json_object_get(json_object_get(g, "utilization_ratio"), "ofa")));
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(json_object_get(g, "ecc_errors_total"), "corrected"), "all")),
		3);
	/* By index, as far as there is anything; what is missing between is null. */
	links = json_object_get(g, "nvlink_link_up");
	assert_int_equal(json_array_size(links), 3);
	assert_true(json_is_null(json_array_get(links, 1)));
	assert_int_equal(json_array_size(json_object_get(g, "fan_speed_ratio")), 0);
	assert_int_equal(json_array_size(json_object_get(json_object_get(g, "nvlink_link_bit_error_ratio"),
							 "effective")),
			 1);
	json_decref(d);
	fixture_free(s);
}

static void reasons_and_estimates(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d = document(s, JSON_GPUS), *why = json_object_get(gpu(d, 0), "unavailable"), *instance;

	(void)state;
	assert_string_equal(text(why, "fan_speed_ratio"), "unsupported");
	assert_string_equal(text(why, "memory_temperature_celsius"), "rejected");
	assert_string_equal(text(why, "pcie_replay_total"), "no_permission");
	assert_null(json_object_get(why, "nvlink_link_up")); /* some of it is there */
	assert_string_equal(text(json_object_get(gpu(d, 2), "unavailable"), "utilization_ratio.gpu"),
			    "unsupported");
	assert_string_equal(json_string_value(json_array_get(json_object_get(gpu(d, 0), "estimated"), 0)),
			    "energy_joules_total");
	instance = json_array_get(json_object_get(gpu(d, 2), "mig"), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(instance, "estimated"), 0)),
			    "utilization_ratio.gpu");
	json_decref(d);
	fixture_free(s);
}

static void levels(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d = document(s, JSON_GPUS), *mig = json_object_get(gpu(d, 2), "mig"), *instance;

	(void)state;
	assert_int_equal(json_array_size(mig), 3); /* without the one that is gone */
	instance = json_array_get(mig, 0);
	assert_string_equal(text(instance, "profile"), "1g.10gb");
	assert_null(json_object_get(instance, "power_watts"));
	assert_null(json_object_get(json_object_get(instance, "utilization_ratio"), "memory"));
	assert_int_equal(json_integer_value(json_object_get(instance, "processes_live")), 1);
	assert_int_equal(json_array_size(json_object_get(gpu(d, 0), "mig")), 0);
	json_decref(d);
	fixture_free(s);
}

static void lost_and_stale(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d = document(s, JSON_GPUS), *stale = gpu(d, 1), *lost = gpu(d, 3), *xid;

	(void)state;
	assert_true(json_is_true(json_object_get(stale, "stale")));
	assert_int_equal(json_integer_value(json_object_get(stale, "age_seconds")), 42);
	assert_true(json_is_number(json_object_get(stale, "power_watts")));
	assert_true(json_is_null(json_object_get(stale, "serial")));
	assert_true(json_is_null(json_object_get(stale, "numa_node")));
	assert_true(json_is_false(json_object_get(lost, "present")));
	assert_true(json_is_null(json_object_get(lost, "power_watts")));
	assert_true(json_is_number(json_object_get(lost, "energy_joules_total")));
	xid = json_array_get(json_object_get(lost, "xids"), 0);
	assert_int_equal(json_integer_value(json_object_get(xid, "xid")), 79);
	assert_string_equal(text(xid, "severity"), "critical");
	assert_string_equal(text(xid, "last_seen"), "2026-09-21T13:13:20.250Z");
	json_decref(d);
	fixture_free(s);
}

static void processes(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d = document(s, JSON_PROCESSES), *all = json_object_get(d, "processes"), *process;

	(void)state;
	assert_int_equal(json_array_size(all), 5); /* with or without a series; ended ones are not live */
	process = json_array_get(all, 0);
	assert_string_equal(text(process, "comm"), "train \"a\\b\"\n");
	assert_int_equal(json_integer_value(json_object_get(process, "busy_seconds_total")),
			 150); /* not the credited 112.5 */
	assert_int_equal(strlen(text(process, "container_id")), 64);
	assert_string_equal(text(process, "pod_uid"), "2f6f1ad2-0f5c-4a8e-9a39-0f1e2d3c4b5a");
	assert_string_equal(text(process, "namespace"), "ml");
	assert_string_equal(text(process, "pod"), "train-0");
	assert_string_equal(text(process, "container"), "main");
	assert_true(json_is_null(json_object_get(process, "job")));
	process = json_array_get(all, 3);
	assert_true(json_is_null(json_object_get(process, "pod")));
	assert_true(json_is_null(json_object_get(process, "comm")));
	assert_true(json_is_null(json_object_get(process, "uid")));
	assert_true(json_is_null(json_object_get(process, "busy_seconds_total")));
	assert_string_equal(text(json_object_get(process, "unavailable"), "busy_seconds_total"),
			    "no_permission");
	process = json_array_get(all, 4);
	assert_int_equal(json_integer_value(json_object_get(process, "gpu")), 2);
	assert_int_equal(json_integer_value(json_object_get(process, "gi")), 1);
	assert_string_equal(text(process, "unit"), "ollama.service");
	json_decref(d);
	fixture_free(s);
}

static void topology_is_by_index(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *d, *pairs;

	(void)state;
	for (uint32_t i = 0; i < s->entities_n; i++)
		s->entities[i].present &= s->entities[i].id.index != 1;
	d = document(s, JSON_NODE);
	pairs = json_object_get(json_object_get(d, "node"), "topology");
	assert_int_equal(json_array_size(pairs), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(pairs, 0), "a")), 0);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(pairs, 0), "b")), 2);
	json_decref(d);
	fixture_free(s);
}

static void node(void **state)
{
	struct snapshot *s = fixture_small(), *empty = fixture_empty();
	json_t *d = document(s, JSON_NODE), *n = json_object_get(d, "node"),
	       *none = document(empty, JSON_NODE);

	(void)state;
	assert_string_equal(text(n, "cuda_version"), "13.1");
	assert_string_equal(text(n, "state"), "ok");
	assert_true(json_is_null(json_object_get(n, "reason")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(n, "gpus"), "absent")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(n, "gpus"), "mig_instances")), 3);
	assert_int_equal(json_array_size(json_object_get(n, "topology")), 3);
	assert_string_equal(text(json_array_get(json_object_get(n, "topology"), 0), "link"), "NV18");
	assert_string_equal(text(json_array_get(json_object_get(n, "topology"), 1), "link"), "PIX");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(n, "rejected"), "process_memory")), 2);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_object_get(n, "agent"), "source_up"), "nvml")),
			 1);
	n = json_object_get(none, "node");
	assert_string_equal(text(n, "state"), "no_library");
	assert_true(strstr(text(n, "error"), "install the NVIDIA driver") != NULL);
	assert_true(json_is_true(json_object_get(n, "fresh")));
	json_decref(none);
	json_decref(d);
	fixture_free(empty);
	fixture_free(s);
}

/* What is printed reads back as what was made, and ends in a newline. */
static void text_reads_back(void **state)
{
	struct snapshot *s = fixture_small();
	json_t *made = document(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE), *read;
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &out), 0);
	assert_int_equal(out.data[out.len - 1], '\n');
	read = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(read);
	/* Reals lose what is beyond 15 digits; all else is equal. */
	assert_true(json_equal(json_object_get(gpu(read, 0), "xids"), json_object_get(gpu(made, 0), "xids")));
	assert_true(json_equal(json_object_get(gpu(read, 1), "name"), json_object_get(gpu(made, 1), "name")));
	assert_true(json_equal(json_object_get(gpu(read, 0), "power_watts"),
			       json_object_get(gpu(made, 0), "power_watts")));
	assert_int_equal(json_object_size(gpu(read, 0)), json_object_size(gpu(made, 0)));
	json_decref(read);
	strbuf_done(&out);
	strbuf_init(&out, 100);
	assert_int_equal(view_json_text(s, JSON_GPUS, &out), -E2BIG);
	strbuf_done(&out);
	json_decref(made);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_is_by_index),
		cmocka_unit_test(only_the_sections_asked_for),
		cmocka_unit_test(texts_are_harmless_and_whole),
		cmocka_unit_test(shapes),
		cmocka_unit_test(reasons_and_estimates),
		cmocka_unit_test(levels),
		cmocka_unit_test(lost_and_stale),
		cmocka_unit_test(processes),
		cmocka_unit_test(node),
		cmocka_unit_test(text_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
