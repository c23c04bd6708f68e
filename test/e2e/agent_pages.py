#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's pages, as a client sees them."""
import concurrent.futures
import fnmatch
import gzip
import json
import os
import re
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


def unpack_zstd(data):
    program = shutil.which("zstd")
    if not program:
        raise Skip("zstd is not installed")
    return subprocess.run([program, "-dc"], input=data, check=True, capture_output=True).stdout


def packed_and_plain(agent, path, encoding):
    """A page in this encoding, and as it is, of one snapshot: the latter was the same before and after."""
    before, packed, after = (agent.get(path, **{"Accept-Encoding": wanted}) for wanted in ("identity", encoding, "identity"))
    equal((before.encoding, packed.encoding), ("", encoding), path)
    return before.body == after.body and (packed.body, before.body)


def pages_come_packed(encoding, unpack):
    with Agent() as agent:
        for path in ("/metrics", "/metrics/dcgm"):
            packed, plain = wait_for(lambda path=path: packed_and_plain(agent, path, encoding), "two replies of one snapshot")
            equal(unpack(packed), plain, path)
            assert len(packed) < len(plain) / 3, (len(packed), len(plain))
            equal(agent.get(path, unix=True, **{"Accept-Encoding": encoding}).encoding, encoding)
            head = agent.get(path, method="HEAD", **{"Accept-Encoding": encoding})
            equal((head.status, head.encoding, head.body), (200, encoding, b""))


def test_metrics_come_by_gzip():
    pages_come_packed("gzip", gzip.decompress)


def test_a_hundred_scrapers_at_once():
    """Each gets a whole page, and those of one snapshot the same one."""
    with Agent() as agent, concurrent.futures.ThreadPoolExecutor(100) as scrapers:
        replies = list(scrapers.map(lambda _: agent.get("/metrics", **{"Accept-Encoding": "gzip"}), range(100)))
        equal({(reply.status, reply.encoding) for reply in replies}, {(200, "gzip")})
        pages = {gzip.decompress(body).decode() for body in {reply.body for reply in replies}}
        assert all("\ngpusonde_up 1\n" in page and page.endswith("\n") for page in pages)
        equal(len({reply.body for reply in replies}), len(pages), "pages are packed once")


def test_metrics_come_by_zstd():
    pages_come_packed("zstd", unpack_zstd)


def test_only_what_is_asked_for_is_packed():
    with Agent() as agent:
        for wanted in ("br", "*", "gzip;q=0", "identity;q=0", "identity, gzip;q=0.1"):
            reply = agent.get("/metrics", **{"Accept-Encoding": wanted})
            equal((reply.status, reply.encoding), (200, ""), wanted)
            contains(reply.text, "gpusonde_gpu_info{")
        for path, status in (("/nonsense", 404), ("/metrics/dcgm?names=5", 400), ("/api/v1/gpus", 200)):
            reply = agent.get(path, **{"Accept-Encoding": "gzip"})
            equal((reply.status, reply.encoding), (status, ""), path)


def family(line):
    """Of a comment or of a sample of Prometheus' text; a histogram's samples have suffixes of their own."""
    if line.startswith("#"):
        return line.split(" ")[2]
    return re.sub("_seconds_(bucket|count|sum)$", "_seconds", re.match("[a-zA-Z0-9_:]+", line)[0])


def families(page):
    return {family(line) for line in page.splitlines()}


def is_chosen(name, patterns):
    wanted = [p for p in patterns.split(",") if p and not p.startswith("!")]
    return not any(fnmatch.fnmatchcase(name, p[1:]) for p in patterns.split(",") if p.startswith("!")) and \
        (not wanted or any(fnmatch.fnmatchcase(name, p) for p in wanted))


def part_and_whole(agent, chosen):
    """What a choice of families leaves, and the page, of one snapshot: the latter was the same before and after."""
    before, part, after = (agent.get(path).text for path in ("/metrics", f"/metrics?family={chosen}", "/metrics"))
    return before == after and (part, before)


def test_families_are_chosen():
    with Agent() as agent:
        for chosen in ("gpusonde_gpu_*", "gpusonde_gpu_info,gpusonde_gpu_pre*", "!gpusonde_gpu_*", "!gpusonde_gpu_p*,gpusonde_gpu_*", ""):
            part, whole = wait_for(lambda chosen=chosen: part_and_whole(agent, chosen), "two replies of one snapshot")
            equal(part, "".join(line for line in whole.splitlines(True) if is_chosen(family(line), chosen)), chosen)
            assert part, chosen
        equal(agent.get("/metrics?family=nothing").text, "")
        equal(agent.get("/metrics?family=gpusonde_gpu_present", **{"Accept-Encoding": "gzip"}).encoding, "")
        page = agent.get("/metrics?family=gpusonde_gpu_energy_joules_total,gpusonde_gpu_info", Accept=OPENMETRICS).text
        contains(page, "\ngpusonde_gpu_energy_joules_total{")
        contains(page, "# TYPE gpusonde_gpu info\n")
        assert page.endswith("# EOF\n") and "gpusonde_gpu_present" not in page, page
        equal(families(agent.get("/metrics/dcgm?family=DCGM_FI_DEV_GPU_UTIL").text), {"DCGM_FI_DEV_GPU_UTIL"})


def test_families_are_configured():
    with Agent("--http-families", "gpusonde_gpu_*,!gpusonde_gpu_present,gpusonde_build_info") as agent:
        page = families(agent.metrics())
        assert {"gpusonde_gpu_info", "gpusonde_build_info"} <= page, page
        assert all(name.startswith("gpusonde_gpu_") or name == "gpusonde_build_info" for name in page), page
        assert "gpusonde_gpu_present" not in page, page
        equal(families(agent.get("/metrics?family=*_info").text), {name for name in page if name.endswith("_info")})
        equal(agent.get("/metrics?family=gpusonde_gpu_present").text, "")
        contains(agent.get("/metrics/dcgm").text, "DCGM_FI_DEV_GPU_UTIL{")


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
            out = subprocess.run([curl, "-sSf", "--compressed", "-D", "-", f"http://127.0.0.1:{agent.port()}{path}"], check=True,
                                 capture_output=True, text=True).stdout
            contains(out, "simulated" if path.startswith("/api") else "# HELP ")
        out = subprocess.run([curl, "-sSf", "--unix-socket", agent.socket, "http://agent/api/v1/node"], check=True,
                             capture_output=True).stdout
        equal(json.loads(out)["simulated"], True)


if __name__ == "__main__":
    run()
