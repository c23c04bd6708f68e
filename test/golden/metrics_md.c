// SPDX-License-Identifier: Apache-2.0
/* Prints docs/metrics.md: every family of the metric tables with its rows, and the few that no table has. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"
#include "view/metrics/family_names.h"
#include "view/names.h"
#include "view/tags.h"

static const char *const intro =
	"# Metrics\n"
	"\n"
	"<!-- Generated from src/model/metrics.def by test/golden/metrics_md.c; `ninja -C build "
	"golden-update` writes it. -->\n"
	"\n"
	"Every metric is one row of `src/model/metrics.def`; this page, the exposition pages and the JSON "
	"come from there.\n"
	"\n"
	"* **Prometheus** names carry the prefix `gpusonde_`. In OpenMetrics a counter's family is named "
	"without `_total`.\n"
	"* **JSON** names are the families' without `gpu_` (`process_gpu_` or `process_` in processes, "
	"`process_cuda_` in their `cuda`,\n"
	"  `kernel_` in kernels); label values are keys,\n"
	"  an index makes an array.\n"
	"* **Level** says where the number is measured, and so shown: the GPU, a MIG instance, or both.\n"
	"* **Kind**: a *gauge* is what the driver said last; a *counter* adds up a counter of the driver's, "
	"across its wraps and\n"
	"  restarts; an *increment* is added up from samples; a *peak* is the highest reading since the "
	"device was first seen.\n"
	"* A number that the driver does not give is absent: never zero, never a sentinel. JSON's "
	"`unavailable` calls it `unsupported` where this GPU lacks it, where\n"
	"  the driver is too old for it (column Driver), and where the driver gives it in a way that is not "
	"known: `node.unrecognised` lists those, and\n"
	"  `gpusonde_driver_unrecognised` counts them.\n"
	"* **Driver**: the least release known to have it, of those after 470; empty: 470 has it, too. Where "
	"a driver does not have it, it is absent.\n"
	"* **Digits**: sums of seconds are told to the microsecond, of joules to the millijoule, of byte "
	"seconds to a million; ratios to four\n"
	"  significant digits, bytes per second to six; what the driver counts or measures otherwise, and "
	"what a DCGM exporter's page says, as it is said. What of a device's energy and\n"
	"  busy time processes account for and what they do not is exactly the device's, and no sum falls.\n"
	"* **DCGM** names are those of `/metrics/dcgm` (up to 4.8) and `/metrics/dcgm?names=4.9`; see "
	"docs/dcgm.md.\n"
	"\n"
	"GPU series carry `gpu` (NVML's index) and `uuid`; those of MIG instances their GPU's, and `gi` and "
	"`ci`; those of processes\n"
	"these and `pid` and `comm`.\n"
	"\n"
	"The exact average of what engines did since the scrape before, however long ago that was, is of the "
	"busy and the observed seconds. Only the former have\n"
	"`engine`:\n"
	"\n"
	"```promql\n"
	"rate(gpusonde_gpu_busy_seconds_total[5m]) / ignoring(engine) group_left "
	"rate(gpusonde_gpu_observed_seconds_total[5m])\n"
	"```\n";

/* What the pages have besides the tables. */
static const struct {
	const char *name, *type, *labels, *help;
} others[] = {
#define OWN_LABELS "the metric's own label"
#define FAMILY(name_, type_, labels_, help_) { name_, type_, labels_, help_ },
#include "view/metrics/named_families.def"
};

static const char *kind_name(enum metric_kind kind)
{
	static const char *const names[] = {
		[METRIC_GAUGE] = "gauge",
		[METRIC_COUNTER] = "counter",
		[METRIC_INCREMENT] = "increment",
		[METRIC_PEAK] = "peak",
	};

	return names[kind];
}

static const char *level_name(unsigned levels)
{
	if (levels == LEVEL_BOTH)
		return "GPU, MIG instance";
	return levels == LEVEL_MIG ? "MIG instance" : "GPU";
}

/* A table cell: what separates cells must not be in it. */
static void cell(const char *text)
{
	fputs(" ", stdout);
	for (; *text; text++) {
		if (*text == '|')
			fputs("\\", stdout);
		fputc(*text, stdout);
	}
	fputs(" |", stdout);
}

static void labels(const struct metric *m)
{
	printf(" `%s%s%s%s%s%s%s%s%s` |", m->label ? m->label : "", m->label ? "=" : "",
	       m->label ? m->value : "", m->label2 ? "," : "", m->label2 ? m->label2 : "",
	       m->label2 ? "=" : "", m->label2 ? m->value2 : "", m->index && m->label ? "," : "",
	       m->index ? m->index :
	       m->label ? "" :
			  "-");
}

static void dcgm(const struct metric *m)
{
	if (!m->dcgm.name && !m->dcgm49.name)
		fputs(" |", stdout);
	else if (m->dcgm.name && m->dcgm49.name && strcmp(m->dcgm.name, m->dcgm49.name) == 0)
		printf(" `%s` |", m->dcgm.name);
	else
		printf(" `%s`, 4.9: `%s` |", m->dcgm.name ? m->dcgm.name : "-",
		       m->dcgm49.name ? m->dcgm49.name : "-");
}

static void family_head(const struct metric *m, bool levels)
{
	printf("\n### gpusonde_%s\n\n%s\n\n", m->family, m->help);
	printf("Kind %s", kind_name(m->kind));
	if (m->unit != UNIT_NONE)
		printf(", in %s", unit_name(m->unit));
	if (levels)
		printf("; level %s", level_name(m->levels));
	puts(".\n");
}

/* Levels may differ within a family; then each row says its own. */
static bool levels_agree(const struct metric *rows, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		if (rows[i].levels != rows[first].levels)
			return false;
	return true;
}

static void family(const struct metric *rows, unsigned first, unsigned end)
{
	bool agree = levels_agree(rows, first, end);

	family_head(&rows[first], agree);
	printf("| Labels | Source | Architectures | Driver | DCGM | OpenTelemetry |%s\n",
	       agree ? "" : " Level |");
	printf("| --- | --- | --- | --- | --- | --- |%s\n", agree ? "" : " --- |");
	for (unsigned i = first; i < end; i++) {
		const struct metric *m = &rows[i];

		fputs("|", stdout);
		labels(m);
		cell(m->source);
		cell(m->arch);
		if (m->driver)
			printf(" %u |", m->driver);
		else
			fputs(" |", stdout);
		dcgm(m);
		if (m->otel)
			printf(" `%s` |", m->otel);
		else
			fputs(" |", stdout);
		if (!agree)
			cell(level_name(m->levels));
		puts("");
	}
}

static unsigned family_last(const struct metric *rows, unsigned n, unsigned first)
{
	unsigned end = first;

	while (end < n && strcmp(rows[end].family, rows[first].family) == 0)
		end++;
	return end;
}

/* Of what tracing and the kernel know: there is no DCGM and no architecture in it. */
static void traced_families(const struct metric *rows, unsigned n)
{
	for (unsigned first = 0, end; first < n; first = end) {
		end = family_last(rows, n, first);
		family_head(&rows[first], false);
		puts("| Labels | Source |\n| --- | --- |");
		for (unsigned i = first; i < end; i++) {
			fputs("|", stdout);
			labels(&rows[i]);
			cell(rows[i].source);
			puts("");
		}
	}
}

/* Of several labels: a value of one is in many rows. */
static bool is_listed(const char *const values[], unsigned n, const char *value)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(values[i], value) == 0)
			return true;
	return false;
}

/* @second: of label2. Returns what divides it from the next. */
static const char *agent_label(const struct metric *rows, unsigned n, bool second, const char *comma)
{
	const char *seen[AGENT_METRICS];
	unsigned seen_n = 0;

	for (unsigned i = 0; i < n; i++) {
		const char *label = second ? rows[i].label2 : rows[i].label;
		const char *value = second ? rows[i].value2 : rows[i].value;

		if (!label || is_listed(seen, seen_n, value))
			continue;
		printf("%s`%s=%s`", comma, label, value);
		seen[seen_n++] = value;
		comma = ", ";
	}
	return comma;
}

static void agent_families(void)
{
	puts("\n## The agent itself\n\nIn JSON under `node.agent`.\n\n| Name | Kind | Labels | Help |\n"
	     "| --- | --- | --- | --- |");
	for (unsigned first = 0, end; first < AGENT_METRICS; first = end) {
		const struct metric *m = &agent_metrics[first];

		end = family_last(agent_metrics, AGENT_METRICS, first);
		printf("| `gpusonde_%s` | %s | ", m->family, kind_name(m->kind));
		agent_label(m, end - first, true, agent_label(m, end - first, false, ""));
		printf(" | %s |\n", m->help);
	}
}

static void machine_families(void)
{
	puts("\n## The machine\n\n"
	     "CPU, memory, pressure, disks and network of the host, beside its GPUs "
	     "(`host.figures`). In JSON "
	     "under `node.host`, without `host_`; disks and network interfaces are "
	     "lists there (`disks` without "
	     "`host_disk_`, `interfaces` without `host_network_`), with a `name` each, which is the label "
	     "`device` or `interface` here.\n\n"
	     "They are few, to be seen beside a GPU's: for all that a machine can "
	     "say there is node_exporter, "
	     "whose families have other names (`node_cpu_seconds_total`, `node_memory_MemAvailable_bytes`, "
	     "`node_disk_read_bytes_total`, `node_network_receive_bytes_total`); both may run.\n\n"
	     "Counters are the kernel's, added up across wraps, and across restarts "
	     "of devices; one that steps "
	     "back (idle times do) stands still. What this kernel does not have, "
	     "such as pressure, is absent, "
	     "and `unsupported` in JSON's `unavailable`. There are no partitions, "
	     "loop devices, memory disks, "
	     "floppies or compact discs; nor `lo`, nor the machine's ends of "
	     "containers' interfaces (`veth*`, "
	     "`cali*`, `lxc*`). A device that is gone has no series; of more than 16 the rest are counted in "
	     "`gpusonde_host_left_out`. The network is the machine's first "
	     "process's: an agent in a container "
	     "needs the host's PID namespace for it, or the host's `/proc` below `workload.root`; else it is "
	     "unsupported, for the container's own network is another one.");
	traced_families(host_metrics, HOST_METRICS);
	traced_families(disk_metrics, DISK_METRICS);
	traced_families(interface_metrics, INTERFACE_METRICS);
}

static void server_families(void)
{
	puts("\n## Inference servers\n\n"
	     "vLLM, SGLang, TGI, llama.cpp and Triton, where `inference.servers` is on: what their "
	     "own pages of metrics say, by `server`, `pid` (of the process that the others come "
	     "from) and `port`, and what of the GPUs is their processes' "
	     "([inference.md](inference.md)). In JSON under `node.inference`, without "
	     "`inference_`. `gpusonde_inference_server_up` says whether the page could be read, "
	     "and in the label `state` why not. What a server's page does not tell is absent.");
	traced_families(server_metrics, SERVER_METRICS);
}

int main(void)
{
	fputs(intro, stdout);
	puts("\n## GPUs and MIG instances");
	for (unsigned first = 0; first < GPU_METRICS; first = family_last(gpu_metrics, GPU_METRICS, first))
		family(gpu_metrics, first, family_last(gpu_metrics, GPU_METRICS, first));
	puts("\n## Processes\n\n"
	     "The same families with `gpusonde_workload_` in place of `gpusonde_process_` add up the "
	     "processes of a container, pod, job\n"
	     "or unit, those that have ended included; labels `kind` and `container_id`, `pod_uid`, `job` or "
	     "`unit`. `pid=\"other\"`\n"
	     "stands for the processes without series of their own. Both carry `namespace`, `pod` and "
	     "`container` where these are known.");
	for (unsigned first = 0; first < PROCESS_METRICS;
	     first = family_last(process_metrics, PROCESS_METRICS, first))
		family(process_metrics, first, family_last(process_metrics, PROCESS_METRICS, first));
	puts("\n## Traced processes\n\n"
	     "What the CUDA calls of a process did on a device; only while calls are traced. Series carry "
	     "`gpu`, `uuid`, `gi` and `ci` where\n"
	     "the device is known (`uuid` alone where the driver has not shown it), `pid` and `comm`, and "
	     "`namespace`, `pod` and `container` where these are known. "
	     "`pid=\"other\"` stands for the\n"
	     "processes without series of their own. The same families with `gpusonde_gpu_cuda_` in place of "
	     "`gpusonde_process_cuda_` are of\n"
	     "a device with all its processes, those that have ended included; with "
	     "`gpusonde_workload_cuda_`, "
	     "labels as of `gpusonde_workload_` (but `workload` in place of `kind`) and the "
	     "device's, of a container, "
	     "pod, job or unit there (counters, and memory held). When tracing delivers nothing "
	     "new, gauges are left out and\n"
	     "`gpusonde_source_up{source=\"trace\"}` is 0.");
	traced_families(traced_metrics, TRACED_METRICS);
	puts("\n## Kernels of traced processes\n\n"
	     "What a process launched of a kernel on a device; only while calls are traced. Series carry the "
	     "labels of the process's other series,\n"
	     "`kernel` and `id`. `kernel` is the brief name: without namespaces and parameters, template "
	     "arguments folded, at most 128 bytes; of a kernel\n"
	     "without a name it is the file and the offset in it, or the address. Many kernels of a program "
	     "may share one brief name: `id`, made from the\n"
	     "full name and the file, tells them apart, stays the same from run to run, and is in JSON "
	     "beside the full name (`/api/v1/kernels`).\n"
	     "`sum by (kernel)` adds them up. The occupancy carries `limiter`: `block_size`, "
	     "`blocks_per_sm`, `registers`, `shared_memory` or `barriers`.\n\n"
	     "The kernels with the most busy time have series of their own. Each launch is credited to "
	     "exactly one: its kernel's if that has one at that\n"
	     "moment, else `kernel=\"other\"` of its device. So the sum over all series of a device grows by "
	     "every launch, and by each once. When a\n"
	     "process ends its series end with it; `gpusonde_gpu_kernel_launches_total`, `..._threads_total` "
	     "and `..._busy_seconds_total` are of the device with all its\n"
	     "kernels, those of processes that have ended included.");
	traced_families(kernel_metrics, KERNEL_METRICS);
	puts("\n## Operators of PyTorch\n\n"
	     "Over all processes, those that have ended included; only with `trace.operators`. `operator` is "
	     "the name, `add.Tensor`; `backward` is the whole\n"
	     "backward pass, `backward.node` a node of its graph; empty: what was done outside of "
	     "operators. The first 192 names of root's files and the first 64 of\n"
	     "users' have series of their own, the others are `operator=\"other\"`. A call is counted for "
	     "each operator, launches and bytes for the\n"
	     "innermost one.");
	traced_families(operator_metrics, OPERATOR_METRICS);
	puts("\n## Identity, state and events\n\n| Name | Type | Labels | Help |\n| --- | --- | --- | --- |");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		printf("| `gpusonde_%s` | %s | %s | %s |\n", others[i].name, others[i].type, others[i].labels,
		       others[i].help);
	machine_families();
	server_families();
	agent_families();
	return 0;
}
