#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of DCGM exporters as the agent reads them: of servers that are well, slow, broken and hostile, and of another agent."""
import contextlib
import gzip
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from e2e.fake_kube import Authority
from lib.e2e import Agent, Skip, children, comm, command, contains, environment, equal, run, samples, values, wait_for
from lib.tls import need_reasons

REFRESH = "5s"
NO_DRIVER = "/nonexistent/libnvidia-ml.so.1"
GPU = 'gpu="{0}",UUID="GPU-{0}",pci_bus_id="00000000:{0}B:00.0",device="nvidia{0}",modelName="NVIDIA H200",Hostname="n1",DCGM_FI_DRIVER_VERSION="570.86.15"'


def page(temperature=40, pod="train-0", more=""):
    return (f'# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{{{GPU.format(0)},container="main",namespace="ml",pod="{pod}"}} {temperature}\n'
            f'DCGM_FI_DEV_GPU_TEMP{{{GPU.format(1)}}} {temperature + 1}\n{more}')


class Exporter:
    """A server whose answer is what `answer` does with a handler; it counts requests and keeps their headers."""

    def __init__(self, family=socket.AF_INET):
        outer = self
        self.requests, self.answer = [], lambda handler: handler.say(page())
        self.over = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # pylint: disable=invalid-name
                outer.requests.append((self.path, dict(self.headers)))
                with contextlib.suppress(OSError):
                    outer.answer(self)

            def say(self, body, status=200, length=None, **headers):
                body = body.encode() if isinstance(body, str) else body
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body) if length is None else length))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def chunks(self, pieces):
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            address_family = family
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def agent_of(exporter, *flags, host="127.0.0.1", **kwargs):
    kwargs.setdefault("scenario", None)
    kwargs.setdefault("wait", False)
    driver = [] if kwargs["scenario"] else ["--nvml-library", NO_DRIVER]
    return Agent(*driver, "--dcgm-host", host, "--dcgm-port", str(exporter.port), "--dcgm-refresh", REFRESH, *flags, **kwargs)


def figure(agent, name, **labels):
    return sum(values(agent.metrics(), f"gpusonde_{name}", **labels))


def wait_page(agent):
    """A node of which nothing is known yet may be ready, too: without a driver it may have no GPU."""
    wait_for(lambda: agent.port() and values(agent.metrics(), "gpusonde_gpu_temperature_celsius"), "what the page says")


def wait_scrapes(agent, n):
    wait_for(lambda: agent.port() and figure(agent, "dcgm_scrapes_total") >= n, f"{n} pages")


def helper(agent):
    return next(iter(p for p in children(agent.pid) if comm(p) == "gpusonde-dcgm"), None)


def test_without_a_driver():
    with Exporter() as exporter, agent_of(exporter) as agent:
        wait_page(agent)
        equal(agent.get("/readyz").status, 200)
        text = agent.metrics()
        equal(sorted(values(text, "gpusonde_gpu_temperature_celsius")), [40, 41])
        equal(values(text, "gpusonde_source_up", source="dcgm"), [1])
        equal(values(text, "gpusonde_node_info", driver="570.86.15"), [1])
        equal(exporter.requests[0][0], "/metrics")
        contains(exporter.requests[0][1]["User-Agent"], "gpusonde/")
        document = agent.get("/api/v1/snapshot").json()
        equal([(g["uuid"], g["name"]) for g in document["gpus"]], [("GPU-0", "NVIDIA H200"), ("GPU-1", "NVIDIA H200")])
        # The newest page counts.
        exporter.answer = lambda handler: handler.say(page(50))
        wait_for(lambda: sorted(values(agent.metrics(), "gpusonde_gpu_temperature_celsius")) == [50, 51], "the next page")
        agent.stop()
        equal(values(text, "gpusonde_dcgm_exporters"), [1])


def test_labels_without_an_api_are_told():
    with Agent(wait=False, DCGM_LABELS="app=dcgm", GPUSONDE_KUBE_ENABLED="no") as agent:
        wait_for(lambda: "dcgm.labels finds no exporters" in agent.log(), "a warning")


def test_names_and_ipv6():
    with Exporter() as exporter, agent_of(exporter, host="localhost") as agent:
        wait_page(agent)
    try:
        exporter = Exporter(socket.AF_INET6)
    except OSError:
        raise Skip("no IPv6 here") from None
    with exporter, agent_of(exporter, host="::1") as agent:
        wait_page(agent)
        contains(exporter.requests[0][1]["Host"], f"[::1]:{exporter.port}")


def test_gzip_and_chunks():
    def answer(handler):
        contains(handler.headers["Accept-Encoding"], "gzip")
        if len(exporter.requests) == 1:
            handler.say(gzip.compress(page(61).encode()), Content_Encoding="gzip")
        else:
            handler.chunks([bytes([b]) for b in page(62).encode()])
    with Exporter() as exporter, agent_of(exporter) as agent:
        exporter.answer = answer
        for temperature in (61, 62):
            wait_for(lambda t=temperature: agent.port() and t in values(agent.metrics(), "gpusonde_gpu_temperature_celsius"), f"{temperature} degrees")


def test_https():
    """By certificates of one's own, which alone are believed then, and which may be replaced."""
    need_reasons()
    with tempfile.TemporaryDirectory(prefix="gpusonde-ca-") as folder, Exporter() as exporter:
        os.chmod(folder, 0o755)
        ours, others = (Authority(folder, name) for name in ("ours", "others"))
        exporter.server.socket = ours.listening(exporter.server.socket)
        file = f"{folder}/ca"
        shutil.copy(others.ca, file)
        with agent_of(exporter, "--dcgm-ca-file", file, host=f"https://127.0.0.1:{exporter.port}/metrics") as agent:
            wait_for(lambda: agent.port() and figure(agent, "dcgm_scrape_failures_total", reason="tls_ca") >= 1, "a certificate of somebody else's")
            contains(agent.log(), "its certificate is not of a CA that is trusted (name its CA by dcgm.ca_file: ")
            contains(agent.cli("doctor").stdout, "name its CA by dcgm.ca_file")
            equal(exporter.requests, [])
            shutil.copy(ours.ca, file)
            wait_page(agent)
        for host, option, reason in (("127.0.0.1", [], "tls_ca"), ("localhost", ["--dcgm-ca-file", ours.ca], "tls_name")):
            with agent_of(exporter, *option, host=f"https://{host}:{exporter.port}/metrics") as agent:
                wait_for(lambda r=reason: agent.port() and figure(agent, "dcgm_scrape_failures_total", reason=r) >= 1, f"{reason} of {host}")


def test_failures_are_counted_and_what_was_said_stays():
    with Exporter() as other, Exporter() as exporter, agent_of(exporter) as agent:
        wait_page(agent)
        failures = [("status", lambda h: h.say("no", status=500)),
                    ("status", lambda h: h.say("", status=302, Location=f"http://127.0.0.1:{other.port}/metrics")),
                    ("transport", lambda h: (h.say(page(90), length=100000), h.connection.shutdown(socket.SHUT_RDWR))),
                    ("transport", lambda h: h.say(b"no gzip", Content_Encoding="gzip")),
                    ("empty", lambda h: h.say(""))]
        for reason, answer in failures:
            before = figure(agent, "dcgm_scrape_failures_total", reason=reason)
            exporter.answer = answer
            wait_for(lambda r=reason, b=before: figure(agent, "dcgm_scrape_failures_total", reason=r) > b, reason)
            equal(sorted(values(agent.metrics(), "gpusonde_gpu_temperature_celsius")), [40, 41], reason)
        equal(other.requests, [])
        contains(agent.log(), "its answer is not 200 (status 500); what it said before stays")


def test_an_exporter_that_stalls():
    with Exporter() as exporter, agent_of(exporter) as agent:
        wait_page(agent)
        exporter.answer = lambda handler: (handler.say(page(70), length=100000), exporter.over.wait(60))
        wait_for(lambda: figure(agent, "dcgm_scrape_failures_total", reason="timeout") > 0, "a timeout")
        # No request waits for it.
        begin = time.monotonic()
        agent.metrics()
        assert time.monotonic() - begin < 5
        # It is stale at last, and the source says so.
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="dcgm") == [0], "the source to be down")
        agent.wait_not_ready()
        equal(values(agent.metrics(), "gpusonde_gpu_stale"), [1, 1])
        exporter.over.set()
        exporter.answer = lambda handler: handler.say(page())
        agent.wait_ready()
        contains(agent.log(), "is read again")


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Agent("--nvml-library", NO_DRIVER, "--dcgm-host", "127.0.0.1", "--dcgm-port", str(port), scenario=None, wait=False) as agent:
        wait_for(lambda: agent.port() and figure(agent, "dcgm_scrape_failures_total", reason="connect") > 0, "a failure")
        equal(values(agent.metrics(), "gpusonde_source_up", source="dcgm"), [0])
        contains(agent.log(), f"http://127.0.0.1:{port}/metrics: nobody answers there")
        contains(agent.get("/control/status", unix=True).json()["dcgm"], "nobody answers there")


def test_hostile_labels():
    more = ('DCGM_FI_DEV_GPU_UTIL{gpu="0",hpc_job="a"b"} 5\n'
            f'DCGM_FI_DEV_GPU_UTIL{{{GPU.format(0)},pod="{"p" * 300}"}} 6\n'
            f'DCGM_FI_DEV_GPU_UTIL{{{GPU.format(0)},pod="<script>\\"\\\\\\n\x1b[31m"}} 7\n'
            f'DCGM_FI_DEV_MEMORY_TEMP{{{GPU.format(0)}}} 9223372036854775794\n')
    with Exporter() as exporter, agent_of(exporter) as agent:
        exporter.answer = lambda handler: handler.say(page(more=more))
        wait_for(lambda: agent.port() and figure(agent, "dcgm_lines_left_out_total", reason="key") > 0, "the page")
        text = agent.metrics()
        equal({reason: figure(agent, "dcgm_lines_left_out_total", reason=reason) >= 1 for reason in ("labels", "key", "blank", "utf8")},
              {"labels": True, "key": True, "blank": True, "utf8": False})
        equal(values(text, "gpusonde_gpu_memory_temperature_celsius"), [])
        agent.get("/api/v1/snapshot").json()
        json.dumps(samples(text))


def test_strict():
    with Exporter() as exporter, agent_of(exporter, "--dcgm-strict", "true") as agent:
        exporter.answer = lambda handler: handler.say(page(more='x{a="1",a="2"} 1\n'))
        wait_for(lambda: agent.port() and figure(agent, "dcgm_scrape_failures_total", reason="body") > 0, "a page that is lost")
        contains(agent.log(), "line 4: a label that is there twice")
        exporter.answer = lambda handler: handler.say(page())
        wait_page(agent)


def test_a_file_of_counters_says_what_is_read():
    more = f'DCGM_FI_DEV_FB_USED{{{GPU.format(0)}}} 1024\nDCGM_FI_DEV_MEMORY_TEMP{{{GPU.format(0)}}} 33\nDCGM_FI_DEV_XID_ERRORS{{{GPU.format(0)}}} 31\n'
    with Exporter() as exporter, tempfile.TemporaryDirectory() as tmp:
        exporter.answer = lambda handler: handler.say(page(more=more))
        with open(f"{tmp}/counters.csv", "w", encoding="utf-8") as f:
            f.write("DCGM_FI_DEV_FB_USED, gauge, used\nDCGM_FI_DEV_SM_CLOCK, gauge, clock\n")
        for flags, wanted in (((), {"temperature_celsius", "memory_used_bytes", "memory_temperature_celsius"}),
                              (("--exporter-collectors", f"{tmp}/counters.csv"), {"memory_used_bytes"})):
            with agent_of(exporter, *flags) as agent:
                wait_for(lambda a=agent: a.port() and values(a.metrics(), "gpusonde_gpu_memory_used_bytes"), "what the page says")
                found = {name for name in ("temperature_celsius", "memory_used_bytes", "memory_temperature_celsius") if values(agent.metrics(), f"gpusonde_gpu_{name}")}
                equal(found, wanted, flags)
                row, *_ = agent.get("/container/metrics").json()
                equal((row.get("temperature", 0) > 0, row.get("xid_errors", 0) > 0, row["framebuffer_used"]), (not flags, not flags, 1024), flags)
                equal(figure(agent, "dcgm_scrape_failures_total"), 0)


def test_numbers_are_told_as_the_page_says_them():
    said = {"sm_active": ("DCGM_FI_PROF_SM_ACTIVE", 0.123456), "nvlink_tx_bytes": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 719654321),
            "power_violation": ("DCGM_FI_DEV_POWER_VIOLATION", 123456789012345)}
    with Exporter() as exporter, agent_of(exporter) as agent:
        exporter.answer = lambda handler: handler.say(page(pod="", more="".join(f"{name}{{{GPU.format(0)}}} {value}\n" for name, value in said.values())))
        wait_page(agent)
        row = next(row for row in agent.get("/container/metrics").json() if row.get("sm_active"))
        equal({member: row[member] for member in said}, {member: value for member, (_, value) in said.items()})
        equal(values(agent.metrics(), "gpusonde_gpu_sm_active_ratio", gpu="0"), [0.123456])


def check_the_driver(agent, uuid):
    uuid.append(agent.get("/api/v1/snapshot").json()["gpus"][0]["uuid"])
    wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_temperature_celsius", uuid="GPU-other") == [8], "what only the exporter knows")
    now, = values(agent.metrics(), "gpusonde_gpu_temperature_celsius", uuid=uuid[0])
    assert now != 7, now
    told = {g["uuid"]: g["sources"] for g in agent.get("/api/v1/gpus").json()["gpus"]}
    equal((told[uuid[0]], told["GPU-other"]), (["nvml"], ["dcgm"]))
    equal(values(agent.metrics(), "gpusonde_source_up", source="nvml"), [1])


def test_the_driver_comes_first():
    uuid = []

    def answer(handler):
        if not uuid:
            handler.say("nothing 1\n")
            return
        handler.say(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{uuid[0]}"}} 7\nDCGM_FI_DEV_GPU_TEMP{{gpu="99",UUID="GPU-other"}} 8\n')
    with Exporter() as exporter:
        exporter.answer = answer
        with agent_of(exporter, scenario="node-8xh100", wait=True) as agent:
            check_the_driver(agent, uuid)


def entities(text):
    """Of DCGM's page: without what differs between two agents by right."""
    found = {}
    for series, value in samples(text).items():
        if series.startswith("DCGM_FI_") and "NVLINK_BANDWIDTH" not in series and "NVLINK_L" not in series and "XID_ERROR" not in series:
            found[re.sub(r',DCGM_FI_(SYSTEM_)?DRIVER_VERSION="[^"]*"', "", series)] = value
    return found


def test_another_agents_page():
    # The simulated node does nothing for a while: its figures can be compared.
    scenario = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: h100-sxm}\n"
    for names in ("", "?names=4.9"):
        with Agent(scenario=scenario) as first:
            kept = []

            def answer(handler, agent=first, query=names, pages=kept):
                pages.append(agent.get("/metrics/dcgm" + query).text)
                handler.say(pages[-1])
            with Exporter() as exporter:
                exporter.answer = answer
                with agent_of(exporter) as second:
                    second.wait_ready()
                    wait_scrapes(second, 1)
                    theirs = entities(second.get("/metrics/dcgm" + names).text)
                    ours = entities(kept[0])
                    missing = {k for k in ours if k not in theirs}
                    assert not missing, missing
                    wrong = {k: (v, theirs[k]) for k, v in ours.items() if abs(theirs[k] - v) > 1e-6 * max(1, abs(v)) and "ENERGY" not in k and "VIOLATION" not in k and "THROTTLE" not in k}
                    equal(wrong, {})
                    assert len(ours) > 40, len(ours)
                    contains(second.metrics(), 'simulated="true"')


def big_page(handler, megabytes):
    """Mostly families that nobody reads, with all rows of a node."""
    lines = [f'DCGM_FI_DEV_GPU_TEMP{{{GPU.format(i % 8)},pod="pod-{i}",namespace="ml",container="main"}} {i % 90}\n' for i in range(400)]
    lines += [f'other_metric_total{{path="/{i}",code="200"}} {i}\n' for i in range(8000)]
    piece = "".join(lines).encode()
    handler.chunks(piece for _ in range(megabytes * 1000000 // len(piece) + 1))


def resident(pid, what):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{what}:\s+(\d+) kB", f.read(), re.M)[1]) << 10


def test_a_large_page():
    with Exporter() as exporter, agent_of(exporter) as agent:
        wait_page(agent)
        pid = helper(agent)
        idle = resident(pid, "VmRSS")
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
            f.write("5")
        exporter.answer = lambda handler: big_page(handler, 200)
        wait_for(lambda: figure(agent, "dcgm_rows") == 400, "the large page")
        peak = resident(pid, "VmHWM")
        print(f"# {(peak - idle) / (1 << 20):.1f} MiB more than {idle / (1 << 20):.1f}")
        assert peak - idle <= 2 << 20, (idle, peak)
        equal(pid, helper(agent))


def test_wrong_values_are_refused():
    for flags, words in ((["--dcgm-host", "a b"], "dcgm.host"), (["--dcgm-host", "ftp://x/"], "dcgm.host"), (["--dcgm-path", "metrics"], "dcgm.path"),
                         (["--dcgm-port", "0"], "dcgm.port"), (["--dcgm-refresh", "1s"], "dcgm.refresh")):
        done = command("agent", "--check-config", *flags)
        assert done.returncode != 0, flags
        contains(done.stderr, words)
    done = command("agent", "--check-config", env=environment(DCGM_PORT="many"))
    assert done.returncode != 0
    contains(done.stderr, "DCGM_PORT")


def test_the_process_is_replaced():
    with Exporter() as exporter, agent_of(exporter) as agent:
        wait_page(agent)
        first = helper(agent)
        subprocess.run(["kill", "-KILL", str(first)], check=True)
        exporter.answer = lambda handler: handler.say(page(55))
        wait_for(lambda: 55 in values(agent.metrics(), "gpusonde_gpu_temperature_celsius"), "another process")
        assert helper(agent) != first
    equal(os.path.exists(f"/proc/{first}"), False)


if __name__ == "__main__":
    run()
