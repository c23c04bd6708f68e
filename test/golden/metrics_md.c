// SPDX-License-Identifier: Apache-2.0
/* Prints docs/metrics.md: every family of the metric tables with its rows, and the few that no table has. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"
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
	"  significant digits, bytes per second to six; what the driver counts or measures otherwise as it "
	"says it. What of a device's energy and\n"
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
	{ "gpu_info", "info",
	  "gpu, uuid, pci_bus_id, model, driver, vbios, serial, architecture, compute_capability, simulated",
	  "What the GPU is; always 1." },
	{ "mig_info", "info", "gpu, uuid, gi, ci, mig_uuid, profile", "What the MIG instance is; always 1." },
	{ "gpu_present", "gauge", "gpu, uuid",
	  "1 while the driver lists the GPU, 0 since it was lost or removed." },
	{ "gpu_stale", "gauge", "gpu, uuid",
	  "1 while the newest values are older than 2.5 sampling periods and 3 seconds." },
	{ "gpu_sample_age_seconds", "gauge", "gpu, uuid", "Time since the newest good reading." },
	{ "gpu_unhealthy", "gauge", "gpu, uuid, gi, ci, by",
	  "`by=\"allocatable\"`: 1 if kubelet has listed the device as one that it can give to pods, or has "
	  "given it, and does not list it any more; 0 while it does; absent for one that it never had. "
	  "`by=\"pod_status\"`: what `allocatedResourcesStatus` of a pod that has the device says; absent "
	  "where it says Unknown, or nothing. docs/kubernetes.md." },
	{ "gpu_estimated", "gauge", "gpu, uuid, metric, the metric's own label",
	  "1 for each metric whose value is an estimate, not a measurement." },
	{ "gpu_xid_reports_total", "counter", "gpu, uuid, severity",
	  "XID reports since boot; 0 before the first, so that increase() sees it: to alert on. "
	  "pci_bus_id instead of gpu and uuid for a GPU that the driver has never shown." },
	{ "gpu_xid_errors_total", "counter", "gpu, uuid, xid",
	  "XID reports since boot. pci_bus_id instead of gpu and uuid for a GPU "
	  "that the driver has never shown." },
	{ "gpu_xid_last_timestamp_seconds", "gauge", "gpu, uuid, xid",
	  "When the XID was last reported, as Unix time." },
	{ "gpu_processes_busy_seconds_total", "counter", "gpu, uuid",
	  "Time the multiprocessors worked for processes, those that have ended included." },
	{ "job_info", "info", "job, job_uid, job_name, job_user, claimed",
	  "Whose a batch system's job is; always 1. A job has one series with `claimed=\"false\"` and "
	  "`job_uid`, the "
	  "real user ID of its first process that was seen (not of a slot of HTCondor, which has one job "
	  "after "
	  "another), and one with `claimed=\"true\"` and the `job_name` and `job_user` that a process of it "
	  "says, "
	  "which its user chooses." },
	{ "pod_run_info", "info", "namespace, pod, run, run_group",
	  "Training run that a pod on a GPU belongs to, and its group, by the pod's label or annotation "
	  "(`workload.pod_run`, `workload.pod_group`); always 1. Join it: "
	  "`gpusonde_workload_gpu_busy_seconds_total * on (namespace, pod, instance) group_left (run) "
	  "gpusonde_pod_run_info`." },
	{ "container_gpu_allocated", "gauge",
	  "gpu, uuid, gi, ci, kind, container_id, pod_uid, job, namespace, pod, container, claimed, "
	  "resource, source",
	  "1 for a GPU or MIG instance that a container, pod or job was given, whether it uses it or not, by "
	  "whom and as what. `claimed=\"true\"` where a process of the job says so, whose user may have "
	  "chosen it. "
	  "What kubelet says counts before what the node's files say. More than 1 in the "
	  "row "
	  "`kind=\"none\"`, which stands for the allocations of a device beyond `workload.max`." },
	{ "container_gpu_slots", "gauge", "the same without resource and source",
	  "Logical slots of a shared GPU that are the container's (time slicing, MPS). They never multiply "
	  "anything: sharers of a GPU have a row each, and the GPU's own figures stay the GPU's." },
	{ "container_gpu_allocated_seconds_total", "counter", "the same without resource and source",
	  "For how long it has been allocated, since the agent saw it first. Stands still while the source "
	  "says "
	  "nothing, and catches up when it is back." },
	{ "container_gpu_idle_seconds_total", "counter", "the same without resource and source",
	  "Of that, the time between readings in which no process of it worked on the GPU, or it had none "
	  "there. "
	  "Absent while the driver does not tell whether its processes work (MIG), or a process on the "
	  "device "
	  "cannot be identified." },
	{ "container_gpu_estimated", "gauge", "the same without resource and source, and metric",
	  "1 for one of these that is likely, and not confirmed; and for a counter that lacks time of which "
	  "it was not known whether it was idle." },
	{ "build_info", "info", "version", "Version of gpusonde." },
	{ "node_info", "info", "driver, nvml, cuda, simulated", "What drives the GPUs of this node." },
	{ "node_tag_info", "info", "key, value", NODE_TAG_HELP },
	{ "driver_state", "gauge", "state, reason", DRIVER_STATE_HELP },
	{ "up", "gauge", "", "1 while the agent's data are fresh, on a node without GPUs too." },
	{ "node_gpus", "gauge", "state", "GPUs that this agent has seen: present, absent." },
	{ "rejected_samples_total", "counter", "field",
	  "Implausible values from the driver that were left out." },
	{ "trace_info", "info", "enabled, backend, reason",
	  "Whether CUDA calls are traced, how, and why not or what is missing." },
	{ "process_cuda_estimated", "gauge", "those of the process's series, metric, the metric's own label",
	  "1 for each metric of the process whose value is an estimate." },
	{ "gpu_cuda_estimated", "gauge", "those of the device's series, metric, the metric's own label",
	  "1 for each metric of traced processes by device whose value is an estimate." },
	{ "kernel_estimated", "gauge", "those of the kernel's series, metric, the metric's own label",
	  "1 for each metric of the kernel whose value is an estimate." },
	{ "operator_estimated", "gauge", "operator, metric",
	  "1 for each metric of the operator whose value is an estimate." },
	{ "gpu_kernel_estimated", "gauge", "those of the device's series, metric",
	  "1 for each metric of kernels by device whose value is an estimate." },
	{ "process_cuda_incomplete", "gauge", "pid, comm, reason",
	  "1 for each reason why figures of the traced process are less than what happened: lost_events, "
	  "events_off and probes_given_up (for the overhead budget), late (it ran before it was probed), "
	  "no_return_probes, sites_refused, beyond_limit, uncounted_calls (its user or container had its "
	  "share of a table), operators (some operators of PyTorch are not counted), stacks (they were given "
	  "up for the budget, or there was no room for them)." },
	{ "process_cuda_device_unknown", "gauge", "pid, comm, reason",
	  "1 for a traced process with work on a device that is not known, and why: no_devices (the driver "
	  "lists none), container (what its container or job was given is not known), environment (its "
	  "variables cannot be read), none_visible (by these it sees none), context (it sees several, and "
	  "the creation of its context was not seen)." },
	{ "process_trace_overhead_ratio", "gauge", "pid, comm",
	  "Estimate: share of a core that tracing costs the process." },
	{ "cuda_calls_total", "counter", "api",
	  "Traced calls of all processes, failed ones included; nested calls count once, by the outer "
	  "name." },
	{ "cuda_call_errors_total", "counter", "api, code",
	  "Traced calls that failed, by CUresult or, of the runtime's calls, cudaError_t; other: beyond a "
	  "limit." },
	{ "cuda_failed_calls_total", "counter", "",
	  "Traced calls that failed; 0 before the first, so that increase() sees it: to alert on." },
	{ "cuda_call_bytes_total", "counter", "api",
	  "Bytes that successful traced calls were asked to allocate, copy or set." },
	{ "cuda_call_duration_seconds", "histogram", "api, le",
	  "Time from entry to return of traced calls whose return was traced, not of the work that they "
	  "start; bounds are 1 us times powers of 4." },
	{ "nccl_calls_total", "counter", "api", "The same of NCCL's calls." },
	{ "nccl_call_errors_total", "counter", "api, code",
	  "Traced calls of NCCL that failed, by ncclResult_t; other: beyond a limit. In progress is no "
	  "failure." },
	{ "nccl_failed_calls_total", "counter", "", "Traced calls of NCCL that failed; 0 before the first." },
	{ "nccl_call_bytes_total", "counter", "api",
	  "Elements of the argument times the size of their type, of successful calls; of allocations and "
	  "registered buffers their size." },
	{ "nccl_call_duration_seconds", "histogram", "api, le",
	  "Time from entry to return of NCCL's calls, which enqueue: not that of the work on the GPUs." },
	{ "finding_active", "gauge", "finding",
	  "Findings of the analysis that are active, by rule (docs/analysis.md); rules that could not be "
	  "judged have no series. With trace.analysis; /api/v1/findings has the evidence." },
	{ "process_gemm_calls_total", "counter", "pid, comm, precision",
	  "Multiplications of matrices that the process asked cuBLAS for, by what is computed with: "
	  "fp32_or_tf32 where that was set before it was traced. Of processes with series of their own, as "
	  "the next ones; with trace.blas." },
	{ "process_gemm_flop_total", "counter", "pid, comm, precision",
	  "Floating-point (or integer) operations that they ask for, 2 m n k, of complex numbers 8 m n k." },
	{ "process_gemm_unsized_calls_total", "counter", "pid, comm",
	  "Multiplications of the process whose sizes are not known, and are in no sum." },
	{ "process_gemm_peak_share_estimated", "gauge", "pid, comm",
	  "Time that the multiplications would take at the board's peak, as a share of the time that the "
	  "device worked for the process, since it is traced; for processes on one GPU that is known." },
	{ "gemm_calls_total", "counter", "precision",
	  "Multiplications of matrices that cuBLAS was asked for, of all processes, those that have ended "
	  "included." },
	{ "gemm_flop_total", "counter", "precision", "The operations that they ask for." },
	{ "gemm_other_processes_calls_total", "counter", "",
	  "Those of them that are in no process's figures, since more than 1,024 processes used cuBLAS." },
	{ "process_python_gil_waits_total", "counter", "pid, comm",
	  "Waits of the process's threads for Python's lock (GIL). Of processes with series of their own, as "
	  "the next ones; with trace.python." },
	{ "process_python_gil_wait_seconds_total", "counter", "pid, comm",
	  "Time of these waits, of all threads together: more than a second a second where several wait." },
	{ "process_python_collections_total", "counter", "pid, comm, generation",
	  "Collections of garbage in Python; of interpreters with a symbol table only." },
	{ "process_python_collection_seconds_total", "counter", "pid, comm, generation",
	  "Time of these collections." },
	{ "python_gil_waits_total", "counter", "",
	  "Waits for Python's lock, of all processes, those that have ended included." },
	{ "python_gil_wait_seconds_total", "counter", "", "Time of these waits." },
	{ "python_collections_total", "counter", "generation",
	  "Collections of garbage in Python, of all processes, those that have ended included." },
	{ "python_collection_seconds_total", "counter", "generation", "Time of these collections." },
	{ "process_torch_allocated_bytes", "gauge", "pid, comm, allocator",
	  "Bytes that PyTorch's allocator says it has given to tensors. allocator: the device as PyTorch "
	  "numbers it in the process, cuda:0 or cpu. Of processes with series of their own, as the next "
	  "ones; with trace.operators." },
	{ "process_torch_allocated_peak_bytes", "gauge", "pid, comm, allocator",
	  "The greatest of these, as far as it was seen." },
	{ "process_torch_reserved_bytes", "gauge", "pid, comm, allocator",
	  "Bytes that PyTorch's allocator says it holds, those of tensors included; 0 on the CPU." },
	{ "process_torch_reserved_peak_bytes", "gauge", "pid, comm, allocator",
	  "The greatest of these, as far as it was seen." },
	{ "process_torch_out_of_memory_total", "counter", "pid, comm, allocator",
	  "Allocations of tensors that failed for want of memory." },
	{ "process_torch_beside_bytes", "gauge", "pid, comm",
	  "Estimate, since both are read at different moments: GPU memory that NVML says the process holds, "
	  "less what PyTorch's allocators have reserved: the context, kernels, memory of other libraries, "
	  "leaks. Absent where an allocator has not said yet what it holds on one of these GPUs." },
	{ "process_torch_optimizer_steps_total", "counter", "pid, comm",
	  "Steps of optimizers (torch.optim), of PyTorch 2 and later." },
	{ "process_nccl_operations_total", "counter", "pid, comm, comm_size, operation",
	  "Operations of NCCL that the process enqueued, by ranks of the communicator: unknown where it was "
	  "made before it was traced, other beyond 15 sizes. So are the next families." },
	{ "process_nccl_failed_total", "counter", "pid, comm, comm_size, operation",
	  "Operations of NCCL that the process could not enqueue." },
	{ "process_nccl_bytes_total", "counter", "pid, comm, comm_size, operation",
	  "Traffic of the operations that the process enqueued, as nccl-tests counts it: an argument that is "
	  "each rank's times the ranks; absent where these are not known." },
	{ "process_nccl_communicators", "gauge", "pid, comm", "Communicators of the process." },
	{ "nccl_operations_total", "counter", "comm_size, operation",
	  "Operations of NCCL that were enqueued, of all processes, those that have ended included." },
	{ "nccl_bytes_total", "counter", "comm_size, operation", "Their traffic, as nccl-tests counts it." },
	{ "nccl_other_processes_operations_total", "counter", "",
	  "Those of them that are in no process's figures, since more than 1,024 processes used NCCL." },
	{ "nccl_groups_total", "counter", "", "Groups of NCCL's calls, nested ones not counted." },
	{ "nccl_group_seconds_total", "counter", "",
	  "Time from their outermost ncclGroupStart() to the end of its ncclGroupEnd()." },
	{ "process_nccl_measured_total", "counter", "pid, comm, comm_size, operation, algorithm, protocol",
	  "Operations of NCCL whose duration its plugin measured (nccl.socket), as the program says itself; "
	  "of the first 1,024 such sets, the others together as other. So are the next families." },
	{ "process_nccl_measured_seconds_total", "counter",
	  "pid, comm, comm_size, operation, algorithm, protocol",
	  "Their durations on the GPU; of NCCL 2.26 by the host's clock, which is longer." },
	{ "process_nccl_measured_bytes_total", "counter",
	  "pid, comm, comm_size, operation, algorithm, protocol",
	  "Their traffic, as nccl-tests counts it; the rate by that of the seconds: algbw." },
	{ "process_nccl_measured_bus_bytes_total", "counter",
	  "pid, comm, comm_size, operation, algorithm, protocol",
	  "The traffic times the operation's factor of the bus; the rate by that of the seconds: busbw." },
	{ "process_nccl_algorithm_bandwidth_bytes_per_second", "gauge",
	  "pid, comm, comm_size, operation, algorithm, protocol",
	  "algbw, the mean since the program began." },
	{ "process_nccl_bus_bandwidth_bytes_per_second", "gauge",
	  "pid, comm, comm_size, operation, algorithm, protocol",
	  "busbw, the mean since the program began." },
	{ "process_nccl_channels", "gauge", "pid, comm, comm_size, operation, algorithm, protocol",
	  "Channels that an operation had, at most." },
	{ "nccl_measured_total", "counter", "comm_size, operation",
	  "Operations of NCCL whose duration plugins measured, of all processes, those that have ended "
	  "included; other: beyond 95 of them." },
	{ "nccl_measured_seconds_total", "counter", "comm_size, operation", "Their durations." },
	{ "nccl_measured_bytes_total", "counter", "comm_size, operation",
	  "Their traffic, as nccl-tests counts it; absent where the ranks are not known." },
	{ "nccl_measured_bus_bytes_total", "counter", "comm_size, operation",
	  "The traffic times the operation's factor of the bus." },
	{ "nccl_plugin_left_out", "gauge", "",
	  "Rows of the plugins that found no room: of a user with more than are left for others. They "
	  "are in the totals." },
	{ "nccl_plugin_refused_total", "counter", "",
	  "Connections and messages to nccl.socket that were refused." },
	{ "nccl_plugin_lost_total", "counter", "",
	  "Operations that plugins had no room for, of all processes." },
	{ "process_gpu_measured_seconds_total", "counter", "gpu, uuid, pid, comm, device",
	  "Time in which any kernel or graph of the process ran, as CUPTI measured it in the program "
	  "(cupti.socket), of the time that was observed; device is CUDA's number in the program. Of the "
	  "first 1,024 such rows, the others together as other. So are the next families." },
	{ "process_gpu_measured_observed_seconds_total", "counter", "gpu, uuid, pid, comm, device",
	  "Time that was observed, in slices: the rate of the measured seconds by that of these is the "
	  "share." },
	{ "process_gpu_measured_launches_total", "counter", "gpu, uuid, pid, comm, device",
	  "Kernels, and graphs as a whole, whose times were measured." },
	{ "process_gpu_measured_missing_total", "counter", "gpu, uuid, pid, comm, device",
	  "Records of CUPTI that found no room, have no times or make no sense; in the process's first "
	  "row." },
	{ "cupti_plugin_refused_total", "counter", "",
	  "Connections and messages to cupti.socket that were refused." },
	{ "cupti_plugin_left_out", "gauge", "",
	  "Rows of the plugins that found no room: of a user with more than are left for others." },
	{ "cupti_plugin_lost_total", "counter", "",
	  "Records that plugins had no room for, of all processes." },
	{ "probe_calls_total", "counter", "library, function",
	  "Calls of functions that trace.probes names, of all processes; of the first 768 that were "
	  "found in root's files and 256 in users', the others together as other. So are the next "
	  "families." },
	{ "probe_call_errors_total", "counter", "library, function",
	  "Calls of such functions that failed, where returns:status or returns:pointer says how that is "
	  "seen." },
	{ "probe_call_duration_seconds", "histogram", "library, function, le",
	  "Time from entry to return of such functions with returns." },
	{ "probe_argument_values", "unknown", "library, function, argument",
	  "Arguments of such functions that were seen, of those that are numbers; not of other." },
	{ "probe_argument_sum", "unknown", "library, function, argument",
	  "Sum of these arguments: by rate, divided by that of probe_argument_values, their mean." },
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

/* Of what tracing knows: there is no DCGM and no architecture in it. */
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

static void agent_families(void)
{
	puts("\n## The agent itself\n\nIn JSON under `node.agent`.\n\n| Name | Kind | Labels | Help |\n"
	     "| --- | --- | --- | --- |");
	for (unsigned first = 0, end; first < AGENT_METRICS; first = end) {
		const struct metric *m = &agent_metrics[first];

		end = family_last(agent_metrics, AGENT_METRICS, first);
		printf("| `gpusonde_%s` | %s | ", m->family, kind_name(m->kind));
		for (unsigned i = first; m->label && i < end; i++)
			printf("%s`%s=%s`", i > first ? ", " : "", m->label, agent_metrics[i].value);
		printf(" | %s |\n", m->help);
	}
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
	agent_families();
	return 0;
}
