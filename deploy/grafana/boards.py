#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Grafana's boards, as tables; `ninja boards` writes the JSON files beside this one.

    boards.py [FOLDER]

A board is {title of a row: panels}, a panel (title, unit, [(legend, expression)]) and how it is drawn. In expressions $N stands for
the nodes that are chosen, $G for their GPUs, $P for pods, $J for jobs, and $R for the interval of rates.
"""
import json
import os
import re
import sys

STANDS_FOR = {"$N": 'instance=~"$instance"', "$G": 'instance=~"$instance",gpu=~"$gpu"', "$P": 'namespace=~"$namespace",pod=~"$pod"',
              "$J": 'job=~"$batch_job"', "$R": "$__rate_interval"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

# name: (label, metric, what narrows it)
VARIABLES = {
    "instance": ("Node", "gpusonde_build_info", ""),
    "gpu": ("GPU", "gpusonde_gpu_info", "$N"),
    "namespace": ("Namespace", "gpusonde_workload_gpu_busy_seconds_total", '$N,pod!=""'),
    "pod": ("Pod", "gpusonde_workload_gpu_busy_seconds_total", '$N,namespace=~"$namespace",pod!=""'),
    "batch_job": ("Job", "gpusonde_job_info", "$N"),
}
LABELS = {"batch_job": "job"} # the others are called as their labels


class Panel:
    def __init__(self, title, unit, *targets, kind="timeseries", width=8, height=8, stack=False, about=""):
        self.title, self.unit, self.targets, self.kind, self.width, self.height = title, unit, targets, kind, width, height
        self.stack, self.about = stack, about


def stat(title, unit, expression, about=""):
    return Panel(title, unit, ("", expression), kind="stat", width=4, height=4, about=about)


def table(title, unit, *targets, about=""):
    return Panel(title, unit, *targets, kind="table", width=24, about=about)


BUSY = 'rate(gpusonde_gpu_busy_seconds_total{{{0},engine="gpu"}}[$R]) / ignoring (engine) rate(gpusonde_gpu_observed_seconds_total{{{0}}}[$R])'
BUSY_OF_NODES, BUSY_OF_GPUS = BUSY.format('$N,gi=""'), BUSY.format('$G,gi=""')

FLEET = {
    "All nodes": [
        stat("Nodes", "none", "count(gpusonde_up{$N})"),
        stat("Nodes without fresh data", "none", "count(gpusonde_up{$N} == 0) or vector(0)"),
        stat("GPUs", "none", 'sum(gpusonde_node_gpus{$N,state="present"})'),
        stat("GPUs that are gone", "none", 'sum(gpusonde_node_gpus{$N,state="absent"})'),
        stat("Power", "watt", "sum(gpusonde_gpu_power_watts{$N})"),
        stat("Busy", "percentunit", f"avg({BUSY_OF_NODES})"),
    ],
    "Nodes": [
        table("Nodes", "none", ("GPUs", 'sum by (instance) (gpusonde_node_gpus{$N,state="present"})'),
              ("Busy GPUs", f"sum by (instance) ({BUSY_OF_NODES})"), ("Power (W)", "sum by (instance) (gpusonde_gpu_power_watts{$N})"),
              ("Hottest (C)", "max by (instance) (gpusonde_gpu_temperature_celsius{$N})"), about="A node's name leads to its board."),
        Panel("Busy", "percentunit", ("{{instance}}", f"avg by (instance) ({BUSY_OF_NODES})")),
        Panel("Memory used", "percentunit", ("{{instance}}", 'sum by (instance) (gpusonde_gpu_memory_used_bytes{$N,gi=""}) / sum by (instance) (gpusonde_gpu_memory_total_bytes{$N,gi=""})')),
        Panel("Power", "watt", ("{{instance}}", "sum by (instance) (gpusonde_gpu_power_watts{$N})"), stack=True),
        Panel("Hottest GPU", "celsius", ("{{instance}}", "max by (instance) (gpusonde_gpu_temperature_celsius{$N})")),
        Panel("XIDs", "short", ("{{instance}} {{severity}}", "sum by (instance, severity) (increase(gpusonde_gpu_xid_reports_total{$N}[$R]))")),
        Panel("Energy of an hour", "joule", ("{{instance}}", "sum by (instance) (increase(gpusonde_gpu_energy_joules_total{$N}[1h]))")),
    ],
    "What they are": [
        table("GPUs by model", "none", ("GPUs", "count by (model) (gpusonde_gpu_info{$N})")),
        table("Drivers and versions", "none", ("Nodes", "count by (driver, cuda) (gpusonde_node_info{$N})")),
    ],
}

NODE = {
    "Now": [
        stat("GPUs", "none", 'sum(gpusonde_node_gpus{$N,state="present"})'),
        stat("Busy", "percentunit", f"avg({BUSY_OF_GPUS})"),
        stat("Memory used", "percentunit", 'sum(gpusonde_gpu_memory_used_bytes{$G,gi=""}) / sum(gpusonde_gpu_memory_total_bytes{$G,gi=""})'),
        stat("Power", "watt", "sum(gpusonde_gpu_power_watts{$G})"),
        stat("Hottest GPU", "celsius", "max(gpusonde_gpu_temperature_celsius{$G})"),
        stat("Processes", "none", "sum(gpusonde_gpu_processes{$G})"),
    ],
    "GPUs": [
        Panel("Busy", "percentunit", ("GPU {{gpu}} {{gi}}", BUSY.format("$G"))),
        Panel("Memory used", "bytes", ("GPU {{gpu}} {{gi}}", "gpusonde_gpu_memory_used_bytes{$G}")),
        Panel("Power", "watt", ("GPU {{gpu}}", "gpusonde_gpu_power_watts{$G}"), ("limit of {{gpu}}", 'gpusonde_gpu_power_limit_watts{$G,limit="enforced"}')),
        Panel("Temperature", "celsius", ("GPU {{gpu}}", "gpusonde_gpu_temperature_celsius{$G}"), ("memory of {{gpu}}", "gpusonde_gpu_memory_temperature_celsius{$G}")),
        Panel("SM clock", "hertz", ("GPU {{gpu}}", 'gpusonde_gpu_clock_hertz{$G,clock="sm"}')),
        Panel("Slowed down", "percentunit", ("GPU {{gpu}} {{reason}}", "rate(gpusonde_gpu_throttle_seconds_total{$G}[$R])")),
        Panel("Multiprocessors active", "percentunit", ("GPU {{gpu}} {{gi}}", "gpusonde_gpu_sm_active_ratio{$G}")),
        Panel("Tensor pipe active", "percentunit", ("GPU {{gpu}} {{gi}}", 'gpusonde_gpu_pipe_active_ratio{$G,pipe="tensor"}')),
        Panel("Device memory active", "percentunit", ("GPU {{gpu}} {{gi}}", "gpusonde_gpu_dram_active_ratio{$G}")),
        Panel("PCIe", "Bps", ("GPU {{gpu}} sends", "gpusonde_gpu_pcie_tx_bytes_per_second{$G}"), ("GPU {{gpu}} receives", "gpusonde_gpu_pcie_rx_bytes_per_second{$G}")),
        Panel("NVLink", "Bps", ("GPU {{gpu}} sends", "gpusonde_gpu_nvlink_tx_bytes_per_second{$G}"), ("GPU {{gpu}} receives", "gpusonde_gpu_nvlink_rx_bytes_per_second{$G}")),
        Panel("Energy not of processes", "joule", ("GPU {{gpu}}", 'increase(gpusonde_gpu_attribution_energy_joules_total{$G,part="unattributed"}[$R])')),
    ],
    "Processes": [
        Panel("Busy", "percentunit", ("{{pid}} {{comm}} on {{gpu}}", "topk(20, rate(gpusonde_process_gpu_busy_seconds_total{$G}[$R]))"), width=12),
        Panel("Memory", "bytes", ("{{pid}} {{comm}} on {{gpu}}", "topk(20, gpusonde_process_gpu_memory_bytes{$G})"), width=12),
    ],
    "Machine": [
        Panel("Processor", "short", ("{{state}}", "rate(gpusonde_host_cpu_seconds_total{$N}[$R])"), stack=True),
        Panel("Memory", "bytes", ("{{kind}}", "gpusonde_host_memory_bytes{$N}")),
        Panel("Disks", "Bps", ("{{device}} read", "rate(gpusonde_host_disk_read_bytes_total{$N}[$R])"), ("{{device}} written", "rate(gpusonde_host_disk_written_bytes_total{$N}[$R])")),
        Panel("Network", "Bps", ("{{interface}} {{direction}}", "rate(gpusonde_host_network_bytes_total{$N}[$R])")),
        Panel("Load", "short", ("{{window}}", "gpusonde_host_load{$N}")),
        Panel("Swap", "bytes", ("{{kind}}", "gpusonde_host_swap_bytes{$N}")),
    ],
}

OWNER = "{{namespace}}/{{pod}} {{container}}"
WORKLOAD = {
    "Pods": [
        Panel("GPUs that work for it", "short", ("{{namespace}}/{{pod}}", "sum by (namespace, pod) (rate(gpusonde_workload_gpu_busy_seconds_total{$N,$P}[$R]))")),
        Panel("GPU memory", "bytes", ("{{namespace}}/{{pod}}", "sum by (namespace, pod) (gpusonde_workload_gpu_memory_bytes{$N,$P})")),
        Panel("Allocated and idle", "percentunit", ("{{namespace}}/{{pod}}", "sum by (namespace, pod) (rate(gpusonde_container_gpu_idle_seconds_total{$N,$P}[$R])) "
              "/ sum by (namespace, pod) (rate(gpusonde_container_gpu_allocated_seconds_total{$N,$P}[$R]))")),
        table("Allocated GPUs", "none", ("GPUs", "sum by (instance, namespace, pod, container, resource) (gpusonde_container_gpu_allocated{$N,$P})")),
    ],
    "Jobs": [
        Panel("GPUs that work for it", "short", ("job {{job}}", 'sum by (job) (rate(gpusonde_workload_gpu_busy_seconds_total{$N,$J,kind="job"}[$R]))')),
        Panel("GPU memory", "bytes", ("job {{job}}", 'sum by (job) (gpusonde_workload_gpu_memory_bytes{$N,$J,kind="job"})')),
        Panel("Allocated", "s", ("job {{job}}", 'sum by (job) (gpusonde_container_gpu_allocated_seconds_total{$N,$J,kind="job"})')),
        table("Jobs", "none", ("", "max by (instance, job, job_uid, job_name, job_user, claimed) (gpusonde_job_info{$N,$J})")),
    ],
    "Traced calls": [
        Panel("Kernel launches", "ops", (OWNER, "sum by (namespace, pod, container) (rate(gpusonde_workload_cuda_launches_total{$N,$P}[$R]))"), width=12),
        Panel("CUDA memory", "bytes", (OWNER, "sum by (namespace, pod, container) (gpusonde_workload_cuda_memory_bytes{$N,$P})"), width=12),
    ],
    "Inference servers": [
        Panel("Tokens", "short", ("{{server}} {{pid}} {{direction}}", "rate(gpusonde_inference_tokens_total{$N}[$R])")),
        Panel("Requests", "short", ("{{server}} {{pid}} {{state}}", "gpusonde_inference_requests{$N}")),
        Panel("Tokens for each joule", "short", ("{{server}} {{pid}}", "gpusonde_inference_tokens_per_joule{$N}")),
    ],
}

PROCESS = "{{pid}} {{comm}}"
CUDA = {
    "Traced": [
        stat("Processes", "none", "sum(gpusonde_trace_processes{$N})"),
        stat("Lost events", "short", 'sum(increase(gpusonde_trace_events_total{$N,state="dropped"}[$R]))'),
        stat("Incomplete processes", "none", "count(count by (instance, pid) (gpusonde_process_cuda_incomplete{$N} == 1)) or vector(0)",
             about="Their figures are less than what happened."),
        stat("Failed calls", "short", "sum(increase(gpusonde_cuda_failed_calls_total{$N}[$R]))"),
        stat("Leaks suspected", "none", "sum(gpusonde_process_cuda_leak_suspected{$N}) or vector(0)"),
        stat("Kernels busy (estimated)", "percentunit", 'avg(gpusonde_gpu_cuda_active_ratio{$G})'),
    ],
    "Launches": [
        Panel("Launches", "ops", ("GPU {{gpu}} {{gi}}", "rate(gpusonde_gpu_cuda_launches_total{$G}[$R])")),
        Panel("Between launches, 90%", "s", ("GPU {{gpu}} {{gi}}", "histogram_quantile(0.9, sum by (instance, gpu, gi, le) (rate(gpusonde_gpu_cuda_launch_gap_seconds_bucket{$N}[$R])))"),
              about="Of work that is not on a known device, too. Empty while nothing is launched."),
        Panel("Busy (estimated)", "percentunit", (PROCESS, "topk(20, sum by (instance, pid, comm) (gpusonde_process_cuda_active_ratio{$G}))")),
    ],
    "Kernels": [
        Panel("Time by kernel", "percentunit", ("{{kernel}}", "topk(20, sum by (kernel) (rate(gpusonde_kernel_busy_seconds_total{$G}[$R])))"), width=12),
        Panel("Launches by kernel", "ops", ("{{kernel}}", "topk(20, sum by (kernel) (rate(gpusonde_kernel_launches_total{$G}[$R])))"), width=12),
        table("Occupancy in theory", "percentunit", ("", "topk(20, max by (kernel) (gpusonde_kernel_theoretical_occupancy_ratio{$G}))")),
        table("Time by operator of PyTorch", "s", ("", "topk(20, sum by (operator) (gpusonde_operator_busy_seconds_total{$N}))")),
    ],
    "Calls": [
        Panel("Calls", "ops", ("{{api}}", "topk(20, sum by (api) (rate(gpusonde_cuda_calls_total{$N}[$R])))")),
        Panel("Time within a call, mean", "s", ("{{api}}", "topk(20, sum by (api) (gpusonde_cuda_call_duration_seconds_sum{$N}) / sum by (api) (gpusonde_cuda_call_duration_seconds_count{$N} > 0))"),
              about="Since the agent began."),
        Panel("Errors", "short", ("{{api}} {{code}}", "sum by (api, code) (increase(gpusonde_cuda_call_errors_total{$N}[$R]))")),
        Panel("Copied", "Bps", ("{{kind}}", "sum by (kind) (rate(gpusonde_process_cuda_copy_bytes_total{$N}[$R]))")),
        Panel("Waited for the GPU", "percentunit", (PROCESS, "topk(20, sum by (instance, pid, comm) (rate(gpusonde_process_cuda_synchronization_wait_seconds_total{$N}[$R])))")),
        Panel("Multiplications", "short", ("{{precision}} (operations/s)", "sum by (precision) (rate(gpusonde_gemm_flop_total{$N}[$R]))")),
    ],
    "Memory and Python": [
        Panel("CUDA memory", "bytes", (PROCESS, "topk(20, sum by (instance, pid, comm) (gpusonde_process_cuda_memory_bytes{$N}))")),
        Panel("PyTorch's allocator", "bytes", (f"{PROCESS} tensors", "topk(20, gpusonde_process_torch_allocated_bytes{$N})"), (f"{PROCESS} reserved", "topk(20, gpusonde_process_torch_reserved_bytes{$N})")),
        Panel("Waited for Python's lock", "percentunit", (PROCESS, "topk(20, rate(gpusonde_process_python_gil_wait_seconds_total{$N}[$R]))")),
    ],
}

RANKS = "{{operation}} of {{comm_size}}"
COLLECTIVES = {
    "Enqueued": [
        Panel("Operations", "ops", (RANKS, "sum by (comm_size, operation) (rate(gpusonde_nccl_operations_total{$N}[$R]))")),
        Panel("Traffic", "Bps", (RANKS, "sum by (comm_size, operation) (rate(gpusonde_nccl_bytes_total{$N}[$R]))")),
        Panel("Failed calls", "short", ("{{instance}}", "increase(gpusonde_nccl_failed_calls_total{$N}[$R])")),
        Panel("Operations by process", "ops", (PROCESS, "topk(20, sum by (instance, pid, comm) (rate(gpusonde_process_nccl_operations_total{$N}[$R])))"),
              about="Ranks that fall behind enqueue less."),
        Panel("Time within groups", "percentunit", ("{{instance}}", "rate(gpusonde_nccl_group_seconds_total{$N}[$R])")),
        Panel("Communicators", "none", (PROCESS, "gpusonde_process_nccl_communicators{$N}")),
    ],
    "Measured by NCCL's plugin": [
        Panel("Bus bandwidth, mean", "Bps", (f"{PROCESS} {RANKS} {{{{algorithm}}}} {{{{protocol}}}}", "topk(20, gpusonde_process_nccl_bus_bandwidth_bytes_per_second{$N})")),
        Panel("Time", "percentunit", (RANKS, "sum by (comm_size, operation) (rate(gpusonde_nccl_measured_seconds_total{$N}[$R]))")),
        Panel("Traffic on the bus", "Bps", (RANKS, "sum by (comm_size, operation) (rate(gpusonde_nccl_measured_bus_bytes_total{$N}[$R]))")),
        Panel("Duration by process, mean", "s", (f"{PROCESS} {RANKS}", "topk(20, sum by (instance, pid, comm, comm_size, operation) (gpusonde_process_nccl_measured_seconds_total{$N}) "
              "/ sum by (instance, pid, comm, comm_size, operation) (gpusonde_process_nccl_measured_total{$N} > 0))"), about="Since the program began. The straggler's is the shortest: the others wait for it."),
        Panel("Channels", "none", (f"{PROCESS} {RANKS}", "topk(20, gpusonde_process_nccl_channels{$N})")),
        Panel("Lost", "short", ("operations", "sum(increase(gpusonde_nccl_plugin_lost_total{$N}[$R]))"), ("refused messages", "sum(increase(gpusonde_nccl_plugin_refused_total{$N}[$R]))")),
    ],
    "Found, and the links": [
        Panel("Findings", "none", ("{{finding}}", "sum by (finding) (gpusonde_finding_active{$N})")),
        Panel("NVLink", "Bps", ("GPU {{gpu}} sends", "gpusonde_gpu_nvlink_tx_bytes_per_second{$G}"), ("GPU {{gpu}} receives", "gpusonde_gpu_nvlink_rx_bytes_per_second{$G}")),
        Panel("Network", "Bps", ("{{interface}} {{direction}}", "rate(gpusonde_host_network_bytes_total{$N}[$R])")),
    ],
}

HEALTH = {
    "Now": [
        stat("GPUs that are gone", "none", 'sum(gpusonde_node_gpus{$N,state="absent"})'),
        stat("Stale GPUs", "none", "sum(gpusonde_gpu_stale{$G})"),
        stat("Want a reset or more", "none", "count(gpusonde_gpu_recovery_action{$G} > 0) or vector(0)"),
        stat("Want replacing", "none", "sum(gpusonde_gpu_remapped_rows_failed{$G})"),
        stat("Not allocatable", "none", "sum(gpusonde_gpu_unhealthy{$G}) or vector(0)"),
        stat("Nodes without fresh data", "none", "count(gpusonde_up{$N} == 0) or vector(0)"),
    ],
    "Errors": [
        Panel("XIDs", "short", ("GPU {{gpu}} {{severity}}", "increase(gpusonde_gpu_xid_reports_total{$G}[$R])")),
        table("XIDs since boot", "none", ("", "sum by (instance, gpu, xid) (gpusonde_gpu_xid_errors_total{$N})")),
        Panel("ECC", "short", ("GPU {{gpu}} {{type}}", 'increase(gpusonde_gpu_ecc_errors_total{$G,location="all"}[$R])')),
        Panel("Remapped rows", "short", ("GPU {{gpu}} {{cause}}", "gpusonde_gpu_remapped_rows_total{$G}"), ("GPU {{gpu}} pending", "gpusonde_gpu_remapped_rows_pending{$G}")),
        Panel("Banks without spare rows", "none", ("GPU {{gpu}}", 'gpusonde_gpu_row_remapper_banks{$G,availability="none"}')),
    ],
    "Heat and power": [
        Panel("Below the slowdown's temperature", "celsius", ("GPU {{gpu}}", 'gpusonde_gpu_temperature_threshold_celsius{$G,threshold="slowdown"} - ignoring (threshold) gpusonde_gpu_temperature_celsius{$G}')),
        Panel("Slowed down", "percentunit", ("GPU {{gpu}} {{reason}}", 'rate(gpusonde_gpu_throttle_seconds_total{$G,reason=~"power|thermal|board_limit|reliability"}[$R])')),
        Panel("Reasons now", "none", ("GPU {{gpu}} {{reason}}", 'gpusonde_gpu_clocks_event_reason{$G,reason!="gpu_idle"}')),
    ],
    "Links": [
        Panel("PCIe width of the best", "percentunit", ("GPU {{gpu}}", 'gpusonde_gpu_pcie_link_width{$G,state="current"} / ignoring (state) gpusonde_gpu_pcie_link_width{$G,state="max"}')),
        Panel("PCIe replays", "short", ("GPU {{gpu}}", "increase(gpusonde_gpu_pcie_replay_total{$G}[$R])")),
        Panel("NVLinks down", "none", ("GPU {{gpu}}", 'gpusonde_gpu_nvlink_links{$G,state="total"} - ignoring (state) gpusonde_gpu_nvlink_links{$G,state="active"}')),
        Panel("NVLink errors", "short", ("GPU {{gpu}} {{type}}", "increase(gpusonde_gpu_nvlink_errors_total{$G}[$R])"), width=12),
        Panel("C2C links", "none", ("GPU {{gpu}} {{state}}", "gpusonde_gpu_c2c_links{$G}"), width=12),
    ],
    "The agent itself": [
        Panel("Driver", "none", ("{{instance}} {{state}} {{reason}}", "gpusonde_driver_state{$N} == 1")),
        Panel("Sources", "none", ("{{instance}} {{source}}", "gpusonde_source_up{$N}")),
        Panel("Left out", "short", ("{{instance}} {{kind}}", "increase(gpusonde_dropped_total{$N}[$R])"), ("{{instance}} {{field}}", "increase(gpusonde_rejected_samples_total{$N}[$R])")),
        Panel("Processor", "percentunit", ("{{instance}}", "rate(gpusonde_agent_cpu_seconds_total{$N}[$R])")),
        Panel("Memory", "bytes", ("{{instance}}", "gpusonde_agent_resident_bytes{$N}")),
        Panel("Tracing is incomplete", "none", ("{{instance}} {{reason}}", "sum by (instance, reason) (gpusonde_process_cuda_incomplete{$N})")),
    ],
}

# name of the file: (title, variables, rows)
BOARDS = {
    "fleet": ("fleet", ["instance"], FLEET),
    "node": ("node", ["instance", "gpu"], NODE),
    "workload": ("pods and jobs", ["instance", "namespace", "pod", "batch_job"], WORKLOAD),
    "cuda": ("CUDA and kernels", ["instance", "gpu"], CUDA),
    "collectives": ("collectives", ["instance", "gpu"], COLLECTIVES),
    "health": ("health", ["instance", "gpu"], HEALTH),
}


def expanded(text):
    return re.sub(r"\$[NGPJR]\b", lambda short: STANDS_FOR[short.group()], text)


def variable(name):
    label, metric, narrowed = VARIABLES[name]
    selector = f"{metric}{{{expanded(narrowed)}}}" if narrowed else metric
    query = f"label_values({selector}, {LABELS.get(name, name)})"
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "definition": query, "query": {"query": query, "refId": name}, "refresh": 2,
            "sort": 3, "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}


def target(number, legend, expression, kind):
    once = {"instant": True, "range": False} if kind != "timeseries" else {"instant": False, "range": True}
    return {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expanded(expression), "legendFormat": legend,
            "format": "table" if kind == "table" else "time_series", **once}


def drawn(panel, number, x, y):
    defaults = {"unit": panel.unit}
    options, more = {}, {}
    if panel.kind == "timeseries":
        defaults["custom"] = {"fillOpacity": 10, "stacking": {"mode": "normal" if panel.stack else "none"}}
        options = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "table":
        names = {f"Value #{chr(ord('A') + n)}": legend for n, (legend, _) in enumerate(panel.targets)} if len(panel.targets) > 1 else {"Value": panel.targets[0][0] or "Value"}
        more["transformations"] = [{"id": "merge", "options": {}}, {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}}]
    overrides = [{"matcher": {"id": "byName", "options": "instance"}, "properties": [{"id": "links", "value": [
        {"title": "this node", "url": "/d/gpusonde-node?var-datasource=${datasource}&var-instance=${__value.raw}&${__url_time_range}"}]}]}] if panel.kind == "table" else []
    return {"id": number, "type": panel.kind, "title": panel.title, "description": panel.about, "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}, "fieldConfig": {"defaults": defaults, "overrides": overrides}, "options": options,
            "targets": [target(n, *t, panel.kind) for n, t in enumerate(panel.targets)], **more}


def laid_out(rows):
    """Panels from left to right, and in lines."""
    y, out = 0, []
    for title, panels in rows.items():
        out.append({"id": len(out) + 1, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})
        x, y, height = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            out.append(drawn(panel, len(out) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return out


def board(name):
    title, variables, rows = BOARDS[name]
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "current": {}}
    links = [{"type": "dashboards", "title": "gpusonde", "tags": ["gpusonde"], "asDropdown": True, "includeVars": True, "keepTime": True, "targetBlank": False}]
    return {"uid": f"gpusonde-{name}", "title": f"gpusonde: {title}", "tags": ["gpusonde"], "schemaVersion": 39, "version": 1, "editable": True, "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "timezone": "", "graphTooltip": 1, "links": links, "annotations": {"list": []},
            "templating": {"list": [source, *map(variable, variables)]}, "panels": laid_out(rows)}


def text(name):
    return json.dumps(board(name), indent=1) + "\n"


if __name__ == "__main__":
    for name in BOARDS:
        with open(f"{sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))}/{name}.json", "w", encoding="ascii") as f:
            f.write(text(name))
