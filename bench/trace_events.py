# SPDX-License-Identifier: Apache-2.0
"""A thread that only makes calls, and an agent that gets an event of every call: lost events, the agent's cost of an event, its memory.

The agent is the real one with its default buffer and no budget, so that nothing is given up. The simulated CUDA's calls take no time, so
the rate is what one core can produce with a probe pair on each call. BENCH_EVENTS_SECONDS: how long, 60 by default.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from common import BUILD, Row, Skip, agent, stop
from cost import rss_bytes
from tracing import SIM, need_tracing, sim_env

SECONDS = int(os.environ.get("BENCH_EVENTS_SECONDS", "60"))
SHORT_SECONDS = min(SECONDS, 10)    # of calls made only to measure the cost of their events
SETTLE_S = min(SECONDS / 3, 10)
STRAY = 1000                        # events other than calls: of processes, of first calls
TICKS_S = 2.5                       # the agent's figures are at most a second old, and the page has the next snapshot's


def figures(ours):
    """{series: value} of the page."""
    page = ours.scrape().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+(?:\{[^}]*\})?) ([-+.\w]+)$", page, re.M)}


def events(page, state):
    return page.get(f'gpusonde_trace_events_total{{state="{state}"}}', 0)


def calls(page, api):
    return page.get(f'gpusonde_cuda_calls_total{{api="{api}"}}', 0)


def tracing_cpu_ns(pid):
    """CPU time of the thread that is neither the main one nor the HTTP server's."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
            if int(tid) == pid or f.read().strip() == "http":
                continue
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def wait_for_probes(ours):
    for _ in range(100):
        if figures(ours).get('gpusonde_trace_sites{state="attached"}', 0) > 0:
            return
        time.sleep(0.1)
    raise RuntimeError("the agent did not probe the library within 10 s")


def spin(ours, folder, api, seconds):
    """Figures before and after; the output of spin; resident bytes after SETTLE_S and at the end."""
    before, cpu_ns = figures(ours), tracing_cpu_ns(ours.pid)
    done = subprocess.Popen([f"{SIM}/spin", api, "--seconds", str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            env=dict(sim_env(), LD_LIBRARY_PATH=folder))
    time.sleep(min(SETTLE_S, seconds / 3))
    early = rss_bytes(ours.pid)
    while done.poll() is None:
        late = rss_bytes(ours.pid)
        time.sleep(0.2)
    made = json.loads(done.stdout.read())["calls"]
    if any(what["errors"] for what in made.values()):
        raise RuntimeError(f"the simulated CUDA does not work: {made}")
    time.sleep(TICKS_S)
    return before, figures(ours), made, tracing_cpu_ns(ours.pid) - cpu_ns, late - early


def rows_of(ours, folder, api, seconds, promised):
    before, after, made, cpu_ns, growth = spin(ours, folder, api, seconds)
    received = events(after, "received") - events(before, "received")
    total = sum(what["count"] for what in made.values())
    if received + events(after, "dropped") - events(before, "dropped") > total + STRAY:
        return [Row(f"{api}", skipped="other processes on this machine make CUDA calls meanwhile")]
    wrong = sum(abs(calls(after, name) - calls(before, name) - what["count"]) for name, what in made.items()
                if f'gpusonde_cuda_calls_total{{api="{name}"}}' in after)
    return [Row(f"{api}, {seconds} s: events a second from one core", received / seconds, "{:,.0f}"),
            Row(f"{api}: agent CPU for each event, us", cpu_ns / 1000 / max(received, 1), "{:.3f}", at_most=0.5),
            Row(f"{api}: events lost", events(after, "dropped") - events(before, "dropped"), "{:,.0f}", at_most=0),
            Row(f"{api}: calls counted too many or too few, of {made[api]['count']:,}", wrong, "{:,.0f}", at_most=0),
            Row(f"{api}: growth of the agent's resident memory after the first {min(SETTLE_S, seconds / 3):.0f} s, MiB", growth / 2**20, "{:.2f}",
                at_most=1 if promised else None)]


def run():
    try:
        need_tracing()
    except Skip as why:
        return [Row("events", skipped=str(why))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libcuda.so.1", "libcudart.so.13"):
            shutil.copy(f"{SIM}/{name}", folder)
        ours = agent(folder, extra=["--atop-listen", "none", "--atop-socket", "none", "--trace-max-overhead", "0%", "--trace-enabled", "yes"])
        # A process that maps the library, so that it is probed before the first call.
        holder = subprocess.Popen(["/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.stdin.read()",
                                   f"{folder}/libcuda.so.1"], stdin=subprocess.PIPE)
        try:
            wait_for_probes(ours)
            rows += rows_of(ours, folder, "cuCtxSynchronize", SECONDS, True)
            rows += rows_of(ours, folder, "cuLaunchKernel", SHORT_SECONDS, False)
            rows += rows_of(ours, folder, "cuMemAlloc_v2", SHORT_SECONDS, False)
        finally:
            holder.kill()
            holder.wait()
            stop(ours)
    return rows
