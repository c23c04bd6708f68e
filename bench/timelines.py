# SPDX-License-Identifier: Apache-2.0
"""What a timeline costs: an event alone, and all of gpusonde trace beside a program that launches as fast as it can."""
import json
import os
import subprocess
import tempfile
import time

from lib import perfetto

from common import BUILD, Row
from tracing import SIM, need_tracing

SECONDS = 3
MIB = 1 << 20


def spent(pid):
    """(CPU seconds, greatest resident bytes)"""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        (peak,) = [int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")]
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak


def traced(*flags):
    """Of the tracer: (CPU seconds, greatest resident bytes), and the calls of the program."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(SIM), GPUSONDE_SIM_CUDA_KERNEL_US="0")
    with tempfile.TemporaryDirectory() as tmp, subprocess.Popen([f"{SIM}/spin", "__cudaLaunchKernel", "--seconds", str(SECONDS + 2)], env=env,
                                                                stdout=subprocess.PIPE) as program:
        command = [f"{BUILD}/gpusonde", "trace", "--socket=none", "--json", f"--output={tmp}/json", *flags, "-p", str(program.pid)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
            time.sleep(SECONDS)
            cost = spent(tracer.pid)
            tracer.terminate()
        with open(f"{tmp}/json", encoding="utf-8") as file:
            calls = sum(call["count"] for call in json.load(file)["calls"])
    return *cost, calls


def run():
    need_tracing()
    alone = json.loads(subprocess.run([f"{BUILD}/bench/bench_timeline"], check=True, capture_output=True).stdout)
    yield Row("an event encoded and compressed: ns of CPU time", alone["ns"], "{:.0f}", at_most=500)
    yield Row("an event in the file, bytes", alone["bytes"], "{:.1f}", at_most=12)
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/x.pftrace"
        without, _, events = traced("--kernels")
        cpu, peak, calls = traced("--kernels", f"--timeline={path}")
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            timeline = perfetto.read(file.read(), whole=False)
    lost = sum(int(i.name.split()[0]) for i in timeline.instants if i.name.endswith("events lost"))
    slices = len(timeline.named("__cudaLaunchKernel"))
    yield Row("launches of a core that does nothing else, a second", calls / SECONDS, "{:,.0f}")
    yield Row("of them in the file or said to be lost, share", (slices + lost) / calls, "{:.3f}")
    yield Row("of them said to be lost, share", lost / calls, "{:.3f}")
    yield Row("gpusonde trace: ns of CPU time more for an event with a timeline", (cpu / slices - without / events) * 1e9, "{:.0f}")
    yield Row("gpusonde trace: bytes in the file for an event", size / slices, "{:.1f}", at_most=12)
    yield Row("gpusonde trace: resident memory at most, MiB", peak / MIB, "{:.1f}", at_most=64)
