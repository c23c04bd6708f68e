# SPDX-License-Identifier: Apache-2.0
"""1,000 processes that map the driver and have made some calls: the agent's cost, and how soon one more is traced.

And the other end: what being ready to trace adds to an agent on a machine where nobody uses CUDA.
"""
import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from common import BUILD, Row, Skip, agent, children, stop
from cost import cpu_ns, rss_bytes
from tracing import SIM, need_tracing, sim_env
from trace_events import figures

PROCESSES = int(os.environ.get("BENCH_TRACE_PROCESSES", "1000"))
IDLE_S = int(os.environ.get("BENCH_IDLE_SECONDS", "20"))
DELAYS = 21
QUIET = ["--atop-listen", "none", "--atop-socket", "none"]


def start_users(folder, count):
    """Processes that have made a few calls and wait."""
    shutil.copy(f"{SIM}/libcuda.so.1", folder)
    env = dict(sim_env(), LD_LIBRARY_PATH=folder)
    users = [subprocess.Popen([f"{SIM}/workload-late", "api driver; init; alloc 4096; launch; sync; pause"], env=env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    for user in users:
        if user.stdout.readline() != b"ready\n":
            raise RuntimeError("the simulated CUDA does not work")
    return users


def wait_for_processes(ours, count):
    for _ in range(300):
        if figures(ours).get("gpusonde_trace_processes", 0) >= count:
            return
        time.sleep(0.1)
    raise RuntimeError(f"the agent traces {figures(ours).get('gpusonde_trace_processes')} of {count} processes after 30 s")


def idle(ours):
    """CPU share of a core of agent and child, resident bytes of each, with a scrape before and none meanwhile."""
    pids = [ours.pid] + children(ours.pid)
    ours.scrape()
    time.sleep(3)
    begin_ns, begin = sum(map(cpu_ns, pids)), time.monotonic_ns()
    time.sleep(IDLE_S)
    share = (sum(map(cpu_ns, pids)) - begin_ns) / (time.monotonic_ns() - begin)
    return share, rss_bytes(pids[0]), sum(map(rss_bytes, pids[1:]))


def delays_ms(folder):
    """Each with its own file, which cannot be probed before."""
    found = []
    for i in range(DELAYS):
        path = shutil.copy(f"{SIM}/libcuda.so.1", f"{folder}/libcuda.so.{100 + i}")
        done = subprocess.run([f"{BUILD}/bench/probe_delay", path, "cuCtxSynchronize"], stdout=subprocess.PIPE, env=sim_env(), check=True)
        found.append(int(done.stdout) / 1e6)
        os.unlink(path)
    return found


@contextlib.contextmanager
def running(folder, *flags):
    ours = agent(folder, extra=[*QUIET, *flags])
    try:
        yield ours
    finally:
        stop(ours)


def crowd(folder):
    users = []
    with running(folder, "--trace-enabled", "yes") as ours:
        try:
            users = start_users(folder, PROCESSES)
            wait_for_processes(ours, PROCESSES)
            cpu, rss, rss_child = idle(ours)
            delays = delays_ms(folder)
        finally:
            for user in users:
                user.kill()
            for user in users:
                user.communicate()
    name = f"{PROCESSES:,} processes attached"
    return [Row(f"{name}: agent's resident memory, MiB", rss / 2**20, "{:.1f}", at_most=64),
            Row(f"{name}: agent and child, MiB", (rss + rss_child) / 2**20, "{:.1f}", at_most=64),
            Row(f"{name}, waiting: agent and child: CPU, share of a core", cpu, "{:.3%}"),
            Row(f"{name}: from opening a library never seen to its calls being probed, {DELAYS} times: median, ms",
                statistics.median(delays), "{:.1f}", at_most=100),
            Row("the slowest of them, ms", max(delays), "{:.1f}", at_most=100)]


def nobody(folder):
    rows, at = [], {}
    for wish in ("no", "auto"):
        with running(folder, "--trace-enabled", wish) as ours:
            at[wish] = idle(ours)
            if wish == "auto" and figures(ours).get("gpusonde_trace_files", 0) > 0:
                raise Skip("another process on this machine uses CUDA")
    cpu, rss, _ = (a - b for a, b in zip(at["auto"], at["no"]))
    rows.append(Row("nobody uses CUDA: what tracing adds to the agent's CPU, share of a core", cpu, "{:.3%}"))
    rows.append(Row("and to its resident memory, MiB", rss / 2**20, "{:.1f}"))
    return rows


def run():
    rows = []
    for part in (nobody, crowd):
        try:
            need_tracing()
            with tempfile.TemporaryDirectory() as folder:
                rows += part(folder)
        except Skip as why:
            rows.append(Row("what tracing adds where nobody uses CUDA" if part is nobody else f"{PROCESSES:,} processes attached", skipped=str(why)))
    return rows
