#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus itself: promtool likes the page, and the server takes every page in both formats."""
import contextlib
import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from lib.e2e import SOURCE, Agent, Skip, equal, run, wait_for

PAGES = ["/metrics", "/metrics/dcgm", "/metrics/dcgm?names=4.9"]


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


class TextOnly(http.server.BaseHTTPRequestHandler):
    """Between Prometheus and the agent: asks for the text format, which Prometheus cannot be told to prefer."""
    agent = None

    def do_GET(self):
        reply = self.agent.get(self.path, Accept="text/plain;version=0.0.4")
        body = reply.text.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def text_only(agent):
    handler = type("Handler", (TextOnly,), {"agent": agent})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def jobs(ports):
    """One for each page and format: ports is {format: port}."""
    for form, port in ports.items():
        for page in PAGES:
            path, _, query = page.partition("?")
            yield {"job_name": f"{form} {page}", "metrics_path": path, "params": urllib.parse.parse_qs(query),
                   "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}


class Prometheus:
    def __init__(self, scrape_configs, alerts=None):
        self.scrape_configs = list(scrape_configs)
        self.alerts = alerts or {} # name: expression

    def __enter__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="gpusonde-prometheus-")
        config = f"{self.tmp.name}/prometheus.yml"
        with open(config, "w", encoding="utf-8") as f: # JSON is YAML
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": self.scrape_configs,
                       "rule_files": [f"{self.tmp.name}/rules.yml"]}, f)
        with open(f"{self.tmp.name}/rules.yml", "w", encoding="utf-8") as f:
            rules = [{"alert": name, "expr": expression} for name, expression in self.alerts.items()]
            json.dump({"groups": [{"name": "gpusonde", "rules": rules}]}, f)
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.log = open(f"{self.tmp.name}/log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self.tmp.name}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)
        wait_for(self.is_ready, "Prometheus to be ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.tmp.cleanup()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def is_ready(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise AssertionError(f"Prometheus ended: {self.log.read()[-2000:]}")
        try:
            return self.get("/-/ready")[0] == 200
        except OSError:
            return False

    def query(self, text):
        """[({label: value}, number)]"""
        status, body = self.get("/api/v1/query?query=" + urllib.parse.quote(text))
        equal(status, 200, body)
        return [(r["metric"], float(r["value"][1])) for r in json.loads(body)["data"]["result"]]

    def targets(self):
        return json.loads(self.get("/api/v1/targets")[1])["data"]["activeTargets"]


def test_promtool_accepts_metrics():
    promtool = tool("promtool")
    for scenario in ("node-8xh100", "node-mig", "desktop-1gpu", "sick", "empty"):
        with Agent(scenario=scenario) as agent:
            out = subprocess.run([promtool, "check", "metrics"], input=agent.metrics(), capture_output=True, text=True, timeout=60,
                                 check=False)
            equal((out.returncode, out.stdout, out.stderr), (0, "", ""), scenario)


def test_prometheus_scrapes_every_page_in_both_formats():
    with Agent() as agent, text_only(agent) as text_port, \
            Prometheus(jobs({"openmetrics": agent.port(), "text": text_port})) as prometheus:
        wait_for(lambda: all(t["health"] != "unknown" for t in prometheus.targets()), "every page to be scraped")
        for target in prometheus.targets():
            equal((target["health"], target["lastError"]), ("up", ""), target["labels"]["job"])
        wait_for(lambda: len(prometheus.query("count_over_time(up[1m]) >= 3")) == 2 * len(PAGES), "three scrapes of each page")
        for trouble in ("duplicate_timestamp", "out_of_order", "out_of_bounds"):
            for _, n in prometheus.query(f"prometheus_target_scrapes_sample_{trouble}_total"):
                equal(n, 0, trouble)
        for form in ("openmetrics", "text"):
            job = f'{{job="{form} /metrics"}}'
            equal(len(prometheus.query(f"gpusonde_gpu_power_watts{job}")), 8, form)
            assert all(100 < watts < 800 for _, watts in prometheus.query(f"gpusonde_gpu_power_watts{job}"))
            busy = wait_for(lambda: prometheus.query(
                f'rate(gpusonde_gpu_busy_seconds_total{{engine="gpu",job="{form} /metrics"}}[1m]) / ignoring(engine) '
                f'rate(gpusonde_gpu_observed_seconds_total{job}[1m])'), "rates")
            assert busy and all(0 <= share <= 1 for _, share in busy), busy
        # both formats have the same series
        for page in PAGES:
            counts = [len(prometheus.query(f'{{job="{form} {page}",__name__=~"gpusonde_gpu_.*|DCGM_.*"}}')) for form in ("openmetrics", "text")]
            assert counts[0] == counts[1] > 100, f"{page}: {counts}"


def test_alerts_fire_at_the_first_error():
    """Of XIDs, ECC, throttling and failed calls: their series are there before anything happens."""
    soon = int(time.clock_gettime(time.CLOCK_BOOTTIME)) + 30
    scenario = (f"cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\n  - {{model: h100-sxm}}\nxids:\n  - {{xid: 48, gpu: 1, at: {soon}s}}\n"
                f"counters:\n  - {{kind: ecc_uncorrected, gpus: 0, count: 1, at: {soon}s}}\n")
    alerts = {"total": 'increase(gpusonde_gpu_xid_reports_total{severity="critical"}[1m]) > 0', "code": "increase(gpusonde_gpu_xid_errors_total[1m]) > 0",
              "ecc": 'sum by (gpu) (increase(gpusonde_gpu_ecc_errors_total{type="uncorrected"}[1m])) > 0'}
    with Agent("--trace-enabled", "yes" if os.geteuid() == 0 else "no", scenario=scenario) as agent, \
            Prometheus(jobs({"openmetrics": agent.port()}), alerts) as prometheus:
        def series(name, labels=""):
            return prometheus.query(f'gpusonde_{name}{{{labels}job="openmetrics /metrics"}}')

        def fired(alert):
            return wait_for(lambda: prometheus.query(f'ALERTS{{alertstate="firing",alertname="{alert}"}}'), f"the alert {alert}")
        begun = wait_for(lambda: series("gpu_xid_reports_total", 'severity="critical",'), "a scrape")
        equal(sorted((labels["gpu"], n) for labels, n in begun), [("0", 0), ("1", 0)])
        ecc = series("gpu_ecc_errors_total")
        equal(({labels["gpu"] for labels, _ in ecc}, {n for _, n in ecc}), ({"0", "1"}, {0}))
        equal({(labels["gpu"], labels["reason"]) for labels, _ in series("gpu_throttle_seconds_total")} >= {("0", "power"), ("1", "thermal")}, True)
        if "tracing CUDA calls by" in agent.log():
            equal(len(series("cuda_failed_calls_total")), 1) # of all programs of this machine: there may be some
        equal([labels["gpu"] for labels, _ in fired("total")], ["1"])
        equal([labels["gpu"] for labels, _ in fired("ecc")], ["0"])
        # Why there is a total: the series of a code begins with its first report.
        equal(prometheus.query('ALERTS{alertname="code"}'), [])


class Golden(http.server.BaseHTTPRequestHandler):
    """The page of a node with traced processes, as the golden files have it."""
    TYPES = {"/openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
             "/prometheus": "text/plain; version=0.0.4; charset=utf-8"}

    def do_GET(self):
        with open(f"{SOURCE}/test/golden/traced-{self.path[1:]}.golden", "rb") as f:
            body = f.read()
        self.send_response(200)
        self.send_header("Content-Type", self.TYPES[self.path])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_prometheus_takes_traced_calls_in_both_formats():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Golden) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        targets = [{"targets": [f"127.0.0.1:{server.server_port}"]}]
        with Prometheus({"job_name": path[1:], "metrics_path": path, "static_configs": targets} for path in Golden.TYPES) as prometheus:
            wait_for(lambda: all(t["health"] != "unknown" for t in prometheus.targets()), "both pages to be scraped")
            for target in prometheus.targets():
                equal((target["health"], target["lastError"]), ("up", ""), target["labels"]["job"])
            counts = {}
            for path in Golden.TYPES:
                job = f'job="{path[1:]}"'
                [(_, launches)] = wait_for(lambda: prometheus.query(
                    f'gpusonde_process_cuda_launches_total{{pid="1001",gpu="0",{job}}}'), "the series of a process")
                equal(launches, 123456789)
                [(_, median)] = prometheus.query(
                    f'histogram_quantile(0.5, gpusonde_cuda_call_duration_seconds_bucket{{api="cuMemAlloc_v2",{job}}})')
                assert 1e-6 < median <= 4e-6, median
                counts[path] = len(prometheus.query(f'{{{job},__name__=~"gpusonde_.*"}}'))
            assert len(set(counts.values())) == 1 and min(counts.values()) > 250, counts
        server.shutdown()


if __name__ == "__main__":
    run()
