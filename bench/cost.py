# SPDX-License-Identifier: Apache-2.0
"""The cost of the agent, compared with Python atopgpud on the same simulated node, both at 1 Hz, in one run.

The agent is scraped every 15 seconds, as by Prometheus; atopgpud is left alone. CPU is read from /proc/PID/schedstat (nanoseconds run), memory
is the sum of Pss of the agent and its processes at the end: pages that they share (libraries) count once, as the machine has them once.
Python atopgpud is not ours to ship: ATOPGPUD names its script (from atop's sources), ATOPGPUD_PYTHON an interpreter that has
nvidia-ml-py. Without them the comparison is skipped, loudly, and our own figures are still measured.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from common import BUILD, Row, Skip, agent, children, stop

WARM_S = 15
SCRAPE_S = 15
MEASURE_S = int(os.environ.get("BENCH_COST_SECONDS", "60"))


def cpu_ns(pid):
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def pss_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))


def rss_bytes(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))


def start_atopgpud():
    script = os.environ.get("ATOPGPUD")
    if not script or not os.path.exists(script):
        raise Skip("ATOPGPUD does not name atop's Python atopgpud: take it from atop's sources")
    python = os.environ.get("ATOPGPUD_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import pynvml"], capture_output=True).returncode:
        raise Skip(f"{python} has no nvidia-ml-py: pip install nvidia-ml-py, or set ATOPGPUD_PYTHON")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(f"{BUILD}/sim"))
    subprocess.run([python, "-Es", script], env=env, check=True)  # it forks, and the parent exits
    time.sleep(2)
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and script in arguments(p)]
    if not pids:
        raise Skip(f"{script} ended by itself: is another one running?")
    return pids


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")
    except OSError:
        return []


def measure(groups, scrape):
    """{name: [pid, ...]} -> {name: (cpu share of a core, bytes)} over one common period."""
    begin = {name: sum(map(cpu_ns, pids)) for name, pids in groups.items()}
    t0 = time.monotonic_ns()
    while time.monotonic_ns() - t0 < MEASURE_S * 10**9:
        scrape()
        time.sleep(SCRAPE_S)
    t1 = time.monotonic_ns()
    return {name: ((sum(map(cpu_ns, pids)) - begin[name]) / (t1 - t0), sum(map(pss_bytes, pids)))
            for name, pids in groups.items()}


def wake_share():
    """CPU share of a core of a program that does nothing but wake up once a second; the agent and its child wake three times."""
    return int(subprocess.run([f"{BUILD}/bench/wake"], stdout=subprocess.PIPE, check=True).stdout) / 1e9


def run():
    rows = [Row("waking up once a second and doing nothing: CPU, share of a core", wake_share(), "{:.3%}")]
    with tempfile.TemporaryDirectory() as tmp:
        ours = agent(tmp, extra=["--atop-listen", "none", "--atop-socket", "none"])
        peer = []
        try:
            try:
                peer = start_atopgpud()
            except Skip as reason:
                rows.append(Row("CPU and memory against Python atopgpud", skipped=str(reason)))
            time.sleep(WARM_S)
            groups = {"gpusonde": [ours.pid] + children(ours.pid)}
            if peer:
                groups["atopgpud"] = peer
            result = measure(groups, ours.scrape)
            resident = sum(map(rss_bytes, groups["gpusonde"]))
        finally:
            stop(ours)
            for pid in peer:
                os.kill(pid, signal.SIGTERM)
    cpu, memory = result["gpusonde"]
    rows.append(Row("agent and its processes: CPU, share of a core", cpu, "{:.3%}", at_most=0.003))
    rows.append(Row("agent and its processes: memory (PSS), MiB", memory / 2**20, "{:.1f}", at_most=12))
    rows.append(Row("the same, shared pages counted in each process (RSS), MiB", resident / 2**20, "{:.1f}"))
    if "atopgpud" in result:
        peer_cpu, peer_memory = result["atopgpud"]
        rows.append(Row("Python atopgpud: CPU, share of a core", peer_cpu, "{:.3%}"))
        rows.append(Row("Python atopgpud: memory (PSS), MiB", peer_memory / 2**20, "{:.1f}"))
        rows.append(Row("CPU, ratio to Python atopgpud", cpu / peer_cpu, "{:.3f}", at_most=1 / 5))
        rows.append(Row("memory, ratio to Python atopgpud", memory / peer_memory, "{:.3f}", at_most=1 / 3))
    return rows
