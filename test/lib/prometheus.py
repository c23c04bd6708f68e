# SPDX-License-Identifier: Apache-2.0
"""A Prometheus of our own, and the pages that it scrapes."""
import contextlib
import http.client
import http.server
import json
import platform
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.parse

from lib import fetch
from lib.e2e import BUILD, SOURCE, Skip, equal, wait_for


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def release(version):
    """{"prometheus": path, "promtool": path} of "2.53" or "3", as Debian compiled them."""
    if platform.machine() != "x86_64":
        raise Skip(f"Prometheus {version} is fetched for x86-64 alone")
    try:
        return fetch.get(f"prometheus-{version}", f"{BUILD}/real")
    except fetch.Unavailable as why:
        raise Skip(str(why)) from None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Prometheus:
    """@program: which; None: the one that is installed."""

    def __init__(self, scrape_configs, alerts=None, rule_files=(), alertmanager=None, flags=(), program=None):
        self.scrape_configs = list(scrape_configs)
        self.alerts = alerts or {} # name: expression
        self.rule_files = list(rule_files)
        self.alertmanager = alertmanager # a port
        self.flags, self.program = flags, program

    def __enter__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="gpusonde-prometheus-")
        config = f"{self.tmp.name}/prometheus.yml"
        with open(config, "w", encoding="utf-8") as f: # JSON is YAML
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": self.scrape_configs,
                       "rule_files": [f"{self.tmp.name}/rules.yml", *self.rule_files],
                       "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager}"]}]}] if self.alertmanager else []}}, f)
        with open(f"{self.tmp.name}/rules.yml", "w", encoding="utf-8") as f:
            rules = [{"alert": name, "expr": expression} for name, expression in self.alerts.items()]
            json.dump({"groups": [{"name": "gpusonde", "rules": rules}]}, f)
        self.port = free_port()
        self.log = open(f"{self.tmp.name}/log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [self.program or tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self.tmp.name}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", *self.flags], stdout=self.log, stderr=self.log)
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

    def result(self, text):
        """As the API has it."""
        status, body = self.get("/api/v1/query?query=" + urllib.parse.quote(text))
        equal(status, 200, body)
        return json.loads(body)["data"]["result"]

    def query(self, text):
        """[({label: value}, number)]"""
        return [(r["metric"], float(r["value"][1])) for r in self.result(text)]

    def histograms(self, text):
        """[({label: value}, {"count": .., "sum": .., "buckets": [[how, from, to, count]]})] of native ones."""
        return [(r["metric"], r["histogram"][1]) for r in self.result(text)]

    def complaints(self):
        """Lines of its log that are no information."""
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as f:
            return [line for line in f.read().split("\n") if line and not re.search(r"\blevel=info\b", line, re.I)]

    def targets(self):
        return json.loads(self.get("/api/v1/targets")[1])["data"]["activeTargets"]


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
