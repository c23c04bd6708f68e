# SPDX-License-Identifier: Apache-2.0
"""20 processes that use kernels of one library of PyTorch's size: how often the agent reads it, the cost, and how soon launches have names.

The library is PyTorch's own, from PyPI (test/lib/fetch.py). Each process maps it as a loader does, and asks the simulated driver for its kernels as CUDA's
runtime does (symbolize_user.c). The figures of every kernel are read, for the device's architecture.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

from lib import fetch

from common import BUILD, Row, Skip, agent, stop
from cost import cpu_ns
from trace_events import figures
from tracing import SIM, need_tracing, sim_env

PROCESSES, KERNELS = 20, 100
MIB = 1 << 20
QUIET = ["--atop-listen", "none", "--atop-socket", "none", "--trace-enabled", "yes"]


def status_bytes(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))


def named(ours):
    """Number of processes, and of their kernels with a name and figures."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ours.port}/api/v1/kernels", timeout=10) as page:
        processes = (json.load(page)["kernels"] or {}).get("processes", [])
    return {(p["pid"], k["symbol"]) for p in processes for k in p["kernels"] if k["symbol"] and k["registers"] is not None}


def start(folder, library, count):
    libcuda = f"{folder}/libcuda.so.1"
    if not os.path.exists(libcuda):
        shutil.copy(f"{SIM}/libcuda.so.1", libcuda)
    return [subprocess.Popen([f"{BUILD}/bench/symbolize_user", libcuda, library, str(KERNELS), f"{folder}/symbols"], env=sim_env(),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]


def ready(users):
    for user in users:
        if user.stdout.readline() != "ready\n":
            raise RuntimeError("the simulated CUDA does not work")


def release(users):
    """When the first one launched, ns."""
    for user in users:
        user.stdin.write("\n")
        user.stdin.flush()
    return min(int(user.stdout.readline()) for user in users)


def until(true, begin_ns, what):
    """Seconds from @begin_ns until @true() is true."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if true():
            return (time.monotonic_ns() - begin_ns) / 1e9
        time.sleep(0.05)
    raise RuntimeError(f"{what}: not within 60 s")


def answers(ours):
    return figures(ours).get('gpusonde_trace_kernels_named_total{source="handle"}', 0)


def end(users):
    for user in users:
        user.kill()
    for user in users:
        user.communicate()


def measure(folder, library):
    ours = agent(folder, extra=QUIET)
    users = []
    try:
        time.sleep(3)   # until the devices are known
        before, cpu = status_bytes(ours.pid, "VmRSS"), cpu_ns(ours.pid)
        users = start(folder, library, 1)
        ready(users)
        begin_ns = release(users)
        yield "first", until(lambda: named(ours), begin_ns, "the first name")
        until(lambda: len(named(ours)) == KERNELS, begin_ns, "all names with figures")
        one = figures(ours)
        users += start(folder, library, PROCESSES - 1)
        ready(users[1:])
        begin_ns = release(users[1:])
        yield "others", until(lambda: answers(ours) >= KERNELS * PROCESSES, begin_ns, "all names")
        yield "cpu", (cpu_ns(ours.pid) - cpu) / 1e9
        yield "read", (one, figures(ours))
        time.sleep(2)
        yield "rss", (before, status_bytes(ours.pid, "VmRSS"), status_bytes(ours.pid, "VmHWM"))
    finally:
        end(users)
        stop(ours)


def rows(at):
    read = 'gpusonde_trace_kernel_files_total{state="read"}'
    one, all_ = at["read"]
    before, rss, peak = at["rss"]
    yield Row("from the first launch to its name and figures on the page, one process, seconds", at["first"], "{:.2f}")
    yield Row(f"19 more processes, {KERNELS} kernels each: until the last of them has its name, seconds", at["others"], "{:.2f}")
    yield Row("tables read for the first process", one[read], "{:.0f}")
    yield Row("tables read for 19 more", all_[read] - one[read], "{:.0f}", at_most=0)
    yield Row("what is kept of the library, MiB", all_["gpusonde_trace_kernel_table_bytes"] / MIB, "{:.2f}")
    yield Row("processor time of the thread that reads, seconds", all_["gpusonde_trace_kernel_seconds_total"], "{:.2f}")
    yield Row("of the whole agent meanwhile, seconds", at["cpu"], "{:.2f}")
    yield Row("agent's resident memory before, MiB", before / MIB, "{:.1f}")
    yield Row(f"with {PROCESSES} processes, MiB", rss / MIB, "{:.1f}", at_most=100)
    yield Row("at most, MiB", peak / MIB, "{:.1f}", at_most=100)


def run():
    try:
        need_tracing()
        try:
            library = os.path.abspath(fetch.get("torch", f"{BUILD}/real")["libtorch_cuda.so"])
        except fetch.Unavailable as why:
            raise Skip(f"PyTorch's library is not available: {why}") from None
        with tempfile.TemporaryDirectory() as folder:
            return list(rows(dict(measure(folder, library))))
    except Skip as why:
        return [Row(f"{PROCESSES} processes of one library of PyTorch's size", skipped=str(why))]
