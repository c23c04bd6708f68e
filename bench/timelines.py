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


def peak_of(pid):
    """Greatest resident bytes; 0: it has ended."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return max([int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")], default=0)


def traced(*flags):
    """Of the tracer: (CPU seconds, greatest resident bytes), and the calls of the program that it has counted."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(SIM), GPUSONDE_SIM_CUDA_KERNEL_US="0", GPUSONDE_NVML_LIBRARY=os.path.abspath(f"{BUILD}/sim/libnvidia-ml.so.1"))
    with tempfile.TemporaryDirectory() as tmp, subprocess.Popen([f"{SIM}/spin", "__cudaLaunchKernel", "--seconds", "60"], env=env, stdout=subprocess.DEVNULL,
                                                                stderr=subprocess.DEVNULL) as program:
        command = [f"{BUILD}/gpusonde", "trace", "--socket=none", "--json", f"--output={tmp}/json", f"--duration={SECONDS}s", *flags, "-p", str(program.pid)]
        tracer = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) # pylint: disable=consider-using-with
        peak, ended = 0, None
        while not ended:
            peak = max(peak, peak_of(tracer.pid))
            time.sleep(0.05)
            pid, _, usage = os.wait4(tracer.pid, os.WNOHANG)
            ended = usage if pid else None
        tracer.returncode = 0
        program.kill()
        with open(f"{tmp}/json", encoding="utf-8") as file:
            calls = sum(call["count"] for call in json.load(file)["calls"])
    return ended.ru_utime + ended.ru_stime, peak, calls


def an_hour():
    """100,000 events a second by their clocks, as fast as it goes. On a disk: where /tmp is memory, set TMPDIR."""
    events = int(os.environ.get("GPUSONDE_BENCH_EVENTS", "360000000"))
    with tempfile.TemporaryDirectory() as tmp:
        told = json.loads(subprocess.run([f"{BUILD}/bench/bench_timeline", tmp, str(events)], check=True, capture_output=True).stdout)
        kept = sum(os.path.getsize(f"{tmp}/{name}") for name in os.listdir(tmp))
    what = "an hour of 100,000 events a second" if events == 360_000_000 else f"{events:,} events"
    yield Row(f"{what}, in files that rotate: ns of CPU time for each, writing too", told["ns"], "{:.0f}", at_most=500)
    yield Row(f"{what}: bytes for each", told["bytes"], "{:.1f}", at_most=12)
    yield Row(f"{what}: resident memory at most, MiB", told["resident_bytes"] / MIB, "{:.1f}", at_most=64)
    yield Row(f"{what}: not written", told["lost"], "{:.0f}", at_most=0)
    yield Row(f"{what}: files that stay, MiB", kept / MIB, "{:.0f}", at_most=256)


def run():
    need_tracing()
    alone = json.loads(subprocess.run([f"{BUILD}/bench/bench_timeline"], check=True, capture_output=True).stdout)
    yield Row("an event encoded and compressed: ns of CPU time", alone["ns"], "{:.0f}", at_most=500)
    yield Row("an event in the file, bytes", alone["bytes"], "{:.1f}", at_most=12)
    yield from an_hour()
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/x.pftrace"
        without, _, events = traced("--kernels")
        cpu, peak, calls = traced("--kernels", f"--timeline={path}")
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            timeline = perfetto.read(file.read(), whole=False)
    lost = sum(int(i.name.split()[0]) for i in timeline.instants if i.name.endswith("events lost"))
    slices = len([s for s in timeline.slices if s.track.kind == "thread"])
    yield Row("calls of a core that does nothing else, a second", calls / SECONDS, "{:,.0f}")
    yield Row("of them in the file or said to be lost, share", (slices + lost) / calls, "{:.6f}", at_least=1)
    yield Row("of them said to be lost, share", lost / calls, "{:.3f}")
    yield Row("gpusonde trace: ns of CPU time more for an event with a timeline", (cpu / slices - without / events) * 1e9, "{:.0f}")
    yield Row("gpusonde trace: bytes in the file for an event", size / slices, "{:.1f}", at_most=12)
    yield Row("gpusonde trace: resident memory at most, MiB", peak / MIB, "{:.1f}", at_most=64)
