# SPDX-License-Identifier: Apache-2.0
"""A fleet in VictoriaMetrics: three agents on the simulated node, and a replayer that sends what they said, one sample after the other, as so many nodes.

The pages are the agents' own. Each node has a label `instance` of its own (extra_label), and samples are 15 seconds apart by their timestamps, though sent as fast as they
are taken. FLEET_NODES (1000) says how many, a tenth of them where each says everything; each has two samples, so that series, memory and queries are those of a fleet that has just begun. What a sample takes on the
disk is measured with few nodes and many samples. Queries are those of deploy/grafana/fleet.json.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from common import Row, Skip, agent, free_port, stop

NODES, SAMPLES, STEP_S = int(os.environ.get("FLEET_NODES", "1000")), 2, 15
AGENTS, MANY_SAMPLES = 3, 60
# What http.families would be set to.
LEVELS = {
    "main figures of GPUs": "gpusonde_up,gpusonde_node_gpus,gpusonde_gpu_info,gpusonde_gpu_utilization_ratio,gpusonde_gpu_busy_seconds_total,gpusonde_gpu_observed_seconds_total,"
        "gpusonde_gpu_memory_used_bytes,gpusonde_gpu_memory_total_bytes,gpusonde_gpu_power_watts,gpusonde_gpu_energy_joules_total,gpusonde_gpu_temperature_celsius,"
        "gpusonde_gpu_xid_reports_total,gpusonde_gpu_throttle_seconds_total,gpusonde_gpu_present,gpusonde_gpu_stale",
    "all of GPUs": "gpusonde_up,gpusonde_gpu_*,gpusonde_node_*",
    "everything": "", # of a tenth of the nodes: four million new series take minutes
}
QUERIES = {
    "nodes": "count(gpusonde_up)",
    "power by node": "sum by (instance) (gpusonde_gpu_power_watts)",
    "busy by node": 'avg by (instance) (rate(gpusonde_gpu_busy_seconds_total{gi="",engine="gpu"}[1m]) / ignoring (engine) rate(gpusonde_gpu_observed_seconds_total{gi=""}[1m]))',
    "memory by node": 'sum by (instance) (gpusonde_gpu_memory_used_bytes{gi=""}) / sum by (instance) (gpusonde_gpu_memory_total_bytes{gi=""})',
    "XIDs by node and severity": "sum by (instance, severity) (increase(gpusonde_gpu_xid_reports_total[1m]))",
}


def page(port, families):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics" + (f"?family={families}" if families else "")) as reply:
        return reply.read()


def series_of(text):
    return sum(1 for line in text.splitlines() if line and not line.startswith(b"#"))


@contextlib.contextmanager
def agents(tmp, n):
    started = []
    try:
        for i in range(n):
            os.mkdir(f"{tmp}/{i}")
            started.append(agent(f"{tmp}/{i}", ["--trace-enabled", "no"]))
        yield [a.port for a in started]
    finally:
        for a in started:
            stop(a)


class Engine:
    """VictoriaMetrics with its files in @tmp."""

    def __init__(self, tmp):
        program = os.environ.get("GPUSONDE_VICTORIA_METRICS") or shutil.which("victoria-metrics")
        if not program:
            raise Skip("no victoria-metrics: install Debian's package, or name the program in GPUSONDE_VICTORIA_METRICS")
        self.folder, self.port = f"{tmp}/engine", free_port()
        self.process = subprocess.Popen([program, f"-storageDataPath={self.folder}", f"-httpListenAddr=127.0.0.1:{self.port}", "-retentionPeriod=1",
                                         "-loggerLevel=ERROR"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            with contextlib.suppress(OSError):
                return self.get("/health") and None
            if self.process.poll() is not None:
                raise Skip("victoria-metrics ended")
            time.sleep(0.1)

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=120) as reply:
            return reply.read()

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024

    def bytes_in(self, folder):
        return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(f"{self.folder}/{folder}") for name in names)

    def query(self, text, at):
        begin = time.monotonic()
        found = json.loads(self.get("/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": at, "nocache": 1})))["data"]["result"]
        return time.monotonic() - begin, found

    def close(self):
        """Writes what is in memory."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def send(port, nodes, body, at):
    """One sample of each of these nodes, by one connection."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        for node in nodes:
            connection.request("POST", f"/api/v1/import/prometheus?extra_label=instance=node-{node:05}&timestamp={int(at * 1000)}", body)
            reply = connection.getresponse()
            reply.read()
            if reply.status != 204:
                raise RuntimeError(f"victoria-metrics says {reply.status}")


def ingest(engine, said, begin_s, nodes):
    """@said: for each sample a page of each agent. Seconds that it took."""
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for n, pages in enumerate(said):
            parts = [(range(i, nodes, len(pages)), body) for i, body in enumerate(pages)]
            list(pool.map(lambda part, n=n: send(engine.port, part[0], part[1], begin_s + n * STEP_S), parts))
    engine.get("/internal/force_flush")
    return time.monotonic() - begin


def many_nodes(tmp, level, said, n):
    begin_s = time.time() - SAMPLES * STEP_S
    nodes, series, size = f"{n:,} nodes", series_of(said[0][0]), len(said[0][0])
    samples = n * series * SAMPLES
    yield Row(f"{level}: series of a node", series, "{:,}")
    yield Row(f"{level}: bytes of a page, as text", size, "{:,}")
    engine = Engine(tmp)
    try:
        took = ingest(engine, said, begin_s, n)
        yield Row(f"{level}: samples taken in a second while all series are new, {nodes}", samples / took, "{:,.0f}")
        yield Row(f"{level}: CPU time of the engine for a million of them", engine.cpu_s() / samples * 1e6, "{:.2f} s")
        yield Row(f"{level}: memory of the engine, {n * series:,} series", engine.resident_mib(), "{:,.0f} MiB")
        for name, query in QUERIES.items():
            rounds = sorted(((took, found) for took, found in (engine.query(query, begin_s + (SAMPLES - 1) * STEP_S) for _ in range(3))), key=lambda r: r[0])
            if not rounds[0][1] or (name == "nodes" and float(rounds[0][1][0]["value"][1]) != n):
                raise RuntimeError(f"{query}: {rounds[0][1][:1]}")
            yield Row(f"{level}: the query of {name}, {nodes}", 1000 * rounds[1][0], "{:.0f} ms")
        engine.close()
        yield Row(f"{level}: on the disk for a series, its index", engine.bytes_in("indexdb") / (n * series), "{:.0f} bytes")
    finally:
        engine.process.kill()
        shutil.rmtree(engine.folder, ignore_errors=True)


def many_samples(tmp, said):
    """Of everything: what a sample takes, and a second one of known series."""
    samples = sum(series_of(body) for pages in said for body in pages)
    engine = Engine(tmp)
    try:
        took = ingest(engine, said, time.time() - len(said) * STEP_S, AGENTS)
        yield Row(f"everything: samples taken in a second of known series, {len(said)} of each", samples / took, "{:,.0f}")
        yield Row("everything: CPU time of the engine for a million of them", engine.cpu_s() / samples * 1e6, "{:.2f} s")
        engine.close()
        yield Row(f"everything: on the disk for a sample, {len(said)} of each series", engine.bytes_in("data") / samples, "{:.2f} bytes")
    finally:
        engine.process.kill()
        shutil.rmtree(engine.folder, ignore_errors=True)


def run():
    with tempfile.TemporaryDirectory(prefix="gpusonde-fleet-") as tmp:
        try:
            Engine(tmp).close()
        except Skip as why:
            yield Row("fleet", skipped=str(why))
            return
        said = {level: [] for level in LEVELS}
        with agents(tmp, AGENTS) as ports:
            time.sleep(5) # all that a node shows from the start is there
            for n in range(MANY_SAMPLES):
                for level, families in LEVELS.items():
                    if n < SAMPLES or not families:
                        said[level].append([page(port, families) for port in ports])
                time.sleep(1)
        yield from many_samples(tmp, said["everything"])
        for level, pages in said.items():
            yield from many_nodes(tmp, level, pages[:SAMPLES], NODES if LEVELS[level] else NODES // 10)
