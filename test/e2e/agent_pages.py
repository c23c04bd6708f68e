#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's pages, as a client sees them."""
import json
import os
import shutil
import subprocess

from lib.e2e import Agent, Skip, contains, equal, run, values, wait_for

FIXED_NAMES = [
    "gpusonde_gpu_info", "gpusonde_gpu_present", "gpusonde_gpu_stale", "gpusonde_gpu_busy_seconds_total",
    "gpusonde_gpu_observed_seconds_total", "gpusonde_gpu_utilization_ratio", "gpusonde_gpu_memory_used_bytes",
    "gpusonde_gpu_memory_total_bytes", "gpusonde_gpu_power_watts", "gpusonde_gpu_energy_joules_total",
    "gpusonde_gpu_temperature_celsius", "gpusonde_process_gpu_busy_seconds_total", "gpusonde_process_gpu_memory_bytes",
]
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def test_fixed_names_are_there():
    with Agent() as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_observed_seconds_total"), "a second reading")
        page = agent.metrics()
        for name in FIXED_NAMES:
            assert values(page, name), f"no {name}"
        equal(len(values(page, "gpusonde_gpu_present")), 8)
        for engine in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa"):
            equal(len(values(page, "gpusonde_gpu_utilization_ratio", engine=engine)), 8, engine)


def test_xids_are_counted_by_code():
    scenario = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 3s}\n"
    with Agent(scenario=scenario) as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", gpu="0", xid="79") >= [2], "XID 79 to come twice")
        xid = agent.get("/api/v1/gpus").json()["gpus"][0]["xids"][0]
        equal((xid["xid"], xid["severity"]), (79, "critical"))
        contains(agent.cli("gpus").stdout, "79")
        contains(agent.cli("doctor").stdout, "XID 79")
        contains(agent.log(), "XID 79 (")


def test_simulated_data_are_called_so():
    with Agent() as agent:
        contains(agent.metrics(), 'simulated="true"')
        for page in ("gpus", "processes", "node", "trace", "snapshot"):
            equal(agent.get(f"/api/v1/{page}").json()["simulated"], True, page)
        contains(agent.get("/").text, "simulated")
        contains(agent.get("/readyz").text, "simulated")
        for command in ("gpus", "ps", "snapshot"):
            contains(agent.cli(command).stdout, "SIMULATED")
        contains(agent.cli("doctor", "--atop-listen", "none").stdout, "SIMULATED")


def test_content_is_negotiated():
    with Agent() as agent:
        for path in ("/metrics", "/metrics/dcgm", "/metrics/dcgm?names=4.9"):
            plain, open_metrics = agent.get(path), agent.get(path, Accept=OPENMETRICS)
            contains(plain.type, "text/plain; version=0.0.4")
            contains(open_metrics.type, "application/openmetrics-text")
            assert open_metrics.text.endswith("# EOF\n") and "# EOF" not in plain.text


def test_dcgm_names_by_release():
    with Agent() as agent:
        old, new = agent.get("/metrics/dcgm"), agent.get("/metrics/dcgm?names=4.9")
        contains(old.text, "DCGM_FI_DEV_GPU_UTIL{")
        assert old.text != new.text
        bad = agent.get("/metrics/dcgm?names=5")
        equal(bad.status, 400)
        contains(bad.text, "4.9")


def test_json_has_its_keys():
    with Agent() as agent:
        for page, keys in {"gpus": ["gpus"], "processes": ["processes", "allocations", "traced", "traced_left_out"], "node": ["node"], "trace": ["trace", "cupti", "nccl_measured", "nccl_measured_totals"],
                           "snapshot": ["gpus", "processes", "allocations", "traced", "traced_left_out", "node"]}.items():
            reply = agent.get(f"/api/v1/{page}")
            contains(reply.type, "application/json")
            equal(set(reply.json()), {"schema", "time", "simulated", "error", *keys}, page)
        equal(len(agent.get("/api/v1/gpus").json()["gpus"]), 8)
        assert isinstance(agent.get("/api/v1/processes").json()["processes"], list)


def test_index_and_health():
    with Agent() as agent:
        index = agent.get("/").text
        for path in ("/metrics", "/metrics/dcgm", "/api/v1/gpus", "/healthz", "/readyz"):
            contains(index, path)
            equal(agent.get(path).status, 200, path)
        equal(agent.get("/healthz").text, "OK")
        equal(agent.get("/nonsense").status, 404)
        equal(agent.get("/metrics", method="DELETE").status, 405)


def test_control_is_local_only():
    with Agent() as agent:
        for path, method in (("/control/release", "POST"), ("/control/resume", "POST"), ("/control/record", "POST"), ("/control/status", "GET"), ("/control/capabilities", "GET")):
            equal(agent.get(path, method=method).status, 403, path)
        status = agent.get("/control/status", unix=True).json()
        equal((status["ready"], status["released"], status["pid"]), (True, False, agent.process.pid))
        equal(agent.get("/control/release", unix=True).status, 405)
        equal(os.stat(agent.socket).st_mode & 0o777, 0o660)


def test_a_node_without_gpu_is_ready():
    with Agent(scenario=None) as agent:
        contains(agent.get("/readyz").text, "no GPU")
        equal(agent.get("/api/v1/gpus").json()["gpus"], [])
        equal(agent.get("/api/v1/gpus").json()["simulated"], False)
        assert not values(agent.metrics(), "gpusonde_gpu_info")


def test_an_empty_driver_is_ready():
    with Agent(scenario="empty") as agent:
        equal(agent.get("/api/v1/gpus").json()["gpus"], [])


def test_mig_instances_carry_their_labels():
    with Agent(scenario="node-mig") as agent:
        page = wait_for(lambda: 'gi="' in agent.metrics() and agent.metrics(), "instances")
        gpu = agent.get("/api/v1/gpus").json()["gpus"]
        assert any(g["mig"] for g in gpu), "no instances in JSON"
        lines = [line for line in page.split("\n") if line.startswith("gpusonde_gpu_memory_used_bytes{") and 'gi="' in line]
        assert lines and all('ci="' in line and 'uuid="GPU-' in line for line in lines), lines[:3]


def test_process_series_are_bounded():
    with Agent("--process-series", "5") as agent:
        own = [v for v in agent.metrics().split("\n")
               if v.startswith("gpusonde_process_gpu_busy_seconds_total{") and 'pid="other"' not in v]
        equal(len(own), 5)
        assert values(agent.metrics(), "gpusonde_process_gpu_busy_seconds_total", pid="other")


def test_curl_reads_every_page():
    curl = shutil.which("curl")
    if not curl:
        raise Skip("curl is not installed")
    with Agent() as agent:
        for path in ("/metrics", "/metrics/dcgm", "/api/v1/snapshot"):
            for flags in ([], ["-H", f"Accept: {OPENMETRICS}"], ["--compressed"], ["--http1.0"], ["-I"]):
                subprocess.run([curl, "-sSf", "-o", "/dev/null", *flags, f"http://127.0.0.1:{agent.port()}{path}"], check=True)
        out = subprocess.run([curl, "-sSf", "--unix-socket", agent.socket, "http://agent/api/v1/node"], check=True,
                             capture_output=True).stdout
        equal(json.loads(out)["simulated"], True)


if __name__ == "__main__":
    run()
