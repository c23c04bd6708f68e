// SPDX-License-Identifier: Apache-2.0
/* Which queries "gpusonde lint" finds in a file, and which names in a query. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/lint/lint.h"

static struct strbuf got, why;

static int setup(_unused_ void **state)
{
	strbuf_init(&got, 0);
	strbuf_init(&why, 0);
	return 0;
}

static int teardown(_unused_ void **state)
{
	strbuf_done(&got);
	strbuf_done(&why);
	return 0;
}

static void on_query(const struct lint_query *query, _unused_ void *userdata)
{
	strbuf_addf(&got, "%s%s|%d|%s\n", query->records ? "record " : "", query->title, query->line,
		    query->text);
}

static void on_name(const struct lint_name *name, _unused_ void *userdata)
{
	strbuf_addf(&got, "%.*s|%d|%s|%g|%s|%g\n", (int)name->n, name->name, name->breaks_49,
		    name->dcgm49 ? name->dcgm49 : "-", name->factor49, name->ours, name->factor_ours);
}

static void on_fault(const struct lint_fault *fault, _unused_ void *userdata)
{
	strbuf_addf(&got, "%.*s|%.*s\n", (int)fault->metric_n, fault->metric ? fault->metric : "",
		    (int)fault->label_n, fault->label ? fault->label : "");
}

static void expect_faults(const char *query, const char *wanted)
{
	strbuf_reset(&got);
	assert_int_equal(lint_ours(query, "gpusonde_mine\ngpusonde_other\n", on_fault, NULL), 0);
	assert_string_equal(got.data, wanted);
}

static void expect_queries(const char *file, int r, const char *wanted)
{
	strbuf_reset(&got);
	strbuf_reset(&why);
	assert_int_equal(lint_read("file", file, strlen(file), on_query, NULL, &why), r);
	assert_string_equal(r < 0 ? why.data : got.data, wanted);
}

static void expect_names(const char *query, const char *wanted)
{
	strbuf_reset(&got);
	lint_names(query, on_name, NULL);
	assert_string_equal(got.data, wanted);
}

static void boards_have_queries(_unused_ void **state)
{
	expect_queries(" {\"title\":\"board\",\"panels\":[{\"title\":\"row\",\"panels\":["
		       "{\"title\":\"a\",\"targets\":[{"
		       "\"expr\":\"up\",\"refId\":\"A\"}]}]}],\"templating\":{\"list\":[{\"name\":\"gpu\","
		       "\"definition\":"
		       "\"x\",\"query\":{\"query\":\"label_values(y, gpu)\"}}]}}",
		       0, "a|0|up\ngpu|0|label_values(y, gpu)\n");
	expect_queries("{\"type\": \"datasource\", \"query\": \"prometheus\"}", 0, "");
	expect_queries("{\"expr\": 1, \"query\": [\"x\"]}", 0, "");
}

static void rules_have_queries(_unused_ void **state)
{
	expect_queries("groups:\n- name: g\n  rules:\n  - alert: A\n    expr: up == 0\n"
		       "  - record: r\n    expr: |\n      sum(x)\n",
		       0, "A|5|up == 0\nrecord r|7|sum(x)\n\n");
}

static void other_files_are_refused(_unused_ void **state)
{
	char *large;

	expect_queries("{\"a\"", -EBADMSG, "line 1: ':' expected near end of file");
	strbuf_reset(&why);
	assert_int_equal(lint_read("file", "a: [", 4, on_query, NULL, &why), -EBADMSG);
	assert_true(why.len > 0);
	large = malloc(LINT_FILE_MAX + 1);
	assert_non_null(large);
	memset(large, ' ', LINT_FILE_MAX + 1);
	memcpy(large, "{}", 2);
	strbuf_reset(&why);
	assert_int_equal(lint_read("file", large, LINT_FILE_MAX + 1, on_query, NULL, &why), -EBADMSG);
	assert_string_equal(why.data, "it has more than 4 MiB");
	assert_int_equal(lint_read("file", large, LINT_FILE_MAX, on_query, NULL, &why), 0);
	free(large);
	expect_queries("", 0, "");
}

static void names_have_replacements(_unused_ void **state)
{
	expect_names("sum(DCGM_FI_DEV_FB_USED{gpu=\"1\"}) + DCGM_FI_DEV_FB_USED",
		     "DCGM_FI_DEV_FB_USED|1|DCGM_FI_DEV_FB_USED_BYTES|1.04858e+06|"
		     "gpusonde_gpu_memory_used_bytes|1.04858e+06\n");
	expect_names(
		"DCGM_FI_DEV_FB_USED_BYTES",
		"DCGM_FI_DEV_FB_USED_BYTES|0|DCGM_FI_DEV_FB_USED_BYTES|1|gpusonde_gpu_memory_used_bytes|1\n");
	expect_names("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL|1|DCGM_FI_DEV_GPU_UTIL_RATIO|0.01|"
					     "gpusonde_gpu_utilization_ratio{engine=\"gpu\"}|0.01\n");
	expect_names("DCGM_FI_DEV_PCIE_LINK_GEN", "DCGM_FI_DEV_PCIE_LINK_GEN|0|DCGM_FI_DEV_PCIE_LINK_GEN|1|"
						  "gpusonde_gpu_pcie_link_generation{state=\"current\"}|1\n");
	expect_names("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
		     "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL|1|DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_"
		     "PER_SECOND|1.024e+06||0\n");
	expect_names("sum by (DCGM_FI_DRIVER_VERSION) (up)",
		     "DCGM_FI_DRIVER_VERSION|1|DCGM_FI_SYSTEM_DRIVER_VERSION|1||0\n");
	expect_names("DCGM_FI_NONE", "DCGM_FI_NONE|1|-|0||0\n");
}

static void texts_are_no_names(_unused_ void **state)
{
	expect_names("up{a=\"DCGM_FI_NONE\",b='\\'DCGM_FI_NONE'} # DCGM_FI_NONE", "");
	expect_names("my_DCGM_FI_NONE + DCGM_", "");
	expect_names("{__name__=~\"DCGM_FI_NONE|x\"}", "DCGM_FI_NONE|1|-|0||0\n");
	expect_names("up{a=\"x", "");
}

static void metrics_of_ours_are_judged(_unused_ void **state)
{
	expect_faults("gpusonde_gpu_power_watts + gpusonde_up", "");
	expect_faults("gpusonde_gpu_power + sum(gpusonde_gpu_power) + my_gpusonde_x",
		      "gpusonde_gpu_power|\n");
	expect_faults("gpusonde_mine + gpusonde_other + gpu:gpusonde_x:sum + gpusonde_min",
		      "gpusonde_min|\n");
	expect_faults("gpusonde_cuda_call_duration_seconds_sum / gpusonde_cuda_call_duration_seconds_counts",
		      "gpusonde_cuda_call_duration_seconds_counts|\n");
	expect_faults("gpusonde_up_sum", "gpusonde_up_sum|\n");
	/* by other families' beginnings */
	expect_faults("gpusonde_workload_gpu_busy_seconds_total + gpusonde_gpu_cuda_launches_total + "
		      "gpusonde_gpu_kernel_launches_total + gpusonde_workload_launches_total",
		      "gpusonde_workload_launches_total|\n");
	/* by __name__ */
	expect_faults("{__name__=\"gpusonde_no\"} + {\"gpusonde_none\", gpu=\"1\"}",
		      "gpusonde_no|\ngpusonde_none|\n");
	expect_faults("{__name__=~\"gpusonde_up|gpusonde_no\"} + {__name__=~\"gpusonde_.*\"}",
		      "gpusonde_no|\n");
	/* a variable, a text, a comment and a question for names are none */
	expect_faults("gpusonde_${x}_y + gpusonde_$x + [[gpusonde_x]] + metrics(gpusonde_x)", "");
	expect_faults("up{a=\"gpusonde_no\"} # gpusonde_no", "");
}

static void labels_of_ours_are_judged(_unused_ void **state)
{
	expect_faults("gpusonde_gpu_power_watts{gpu=\"1\", instance=~\"$i\", job!=\"\", exported_gpu=\"\"}",
		      "");
	expect_faults("gpusonde_gpu_power_watts{pod=\"a{b}\", uuid!~\"x\", $more, exported_pod=\"\"}[5m]",
		      "gpusonde_gpu_power_watts|pod\ngpusonde_gpu_power_watts|exported_pod\n");
	expect_faults("{__name__=\"gpusonde_up\", gpu=\"1\"}", "gpusonde_up|gpu\n");
	expect_faults("sum by (gpu, pod) (gpusonde_gpu_power_watts)", "gpusonde_gpu_power_watts|pod\n");
	expect_faults("sum(gpusonde_gpu_power_watts) BY (pod) / sum by ($x) (gpusonde_up)",
		      "gpusonde_gpu_power_watts|pod\n");
	expect_faults("gpusonde_up - on (gpu, nothing) group_left (uuid) gpusonde_gpu_power_watts",
		      "|nothing\n");
	expect_faults("gpusonde_gpu_fan_speed_ratio{fan=\"0\"} + gpusonde_gpu_fan_speed_ratio{link=\"0\"}",
		      "gpusonde_gpu_fan_speed_ratio|link\n");
	/* `le` is of buckets only */
	expect_faults("gpusonde_cuda_call_duration_seconds_bucket{le=\"1\"}", "");
	expect_faults("gpusonde_cuda_call_duration_seconds_count{le=\"1\"}",
		      "gpusonde_cuda_call_duration_seconds_count|le\n");
	/* the labels of others, and those that functions make, may be any */
	expect_faults("sum by (x) (gpusonde_up * on (instance) group_left (x) kube_node_labels)", "");
	expect_faults("sum by (x) (gpusonde_up + gpusonde_mine)", "");
	expect_faults("sum by (x) (label_replace(gpusonde_up, \"x\", \"$1\", \"instance\", \"(.*)\"))", "");
	/* as Grafana's variables ask */
	expect_faults("label_values(gpusonde_gpu_power_watts{gpu=\"1\"}, uuid) + label_values(uid)", "");
	expect_faults("label_values(gpusonde_gpu_power_watts{gpu=\"1\"}, uid)",
		      "gpusonde_gpu_power_watts|uid\n");
}

static void long_queries_are_told(_unused_ void **state)
{
	struct strbuf query;

	strbuf_init(&query, 0);
	strbuf_adds(&query, "gpusonde_up");
	for (int i = 0; i < 2047; i++)
		strbuf_adds(&query, "+1");
	expect_faults(query.data, "");
	strbuf_adds(&query, "+1");
	expect_faults(query.data, "|\n");
	strbuf_done(&query);
	for (const char *const *broken =
		     (const char *const[]){ "gpusonde_up{", "gpusonde_up{gpu=", "sum by (gpusonde_up",
					    "gpusonde_up)} by (x", "label_values(gpusonde_up", "{gpusonde_up",
					    "gpusonde_up[", "gpusonde_up '", NULL };
	     *broken; broken++)
		expect_faults(*broken, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boards_have_queries),       cmocka_unit_test(rules_have_queries),
		cmocka_unit_test(other_files_are_refused),   cmocka_unit_test(names_have_replacements),
		cmocka_unit_test(texts_are_no_names),        cmocka_unit_test(metrics_of_ours_are_judged),
		cmocka_unit_test(labels_of_ours_are_judged), cmocka_unit_test(long_queries_are_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
