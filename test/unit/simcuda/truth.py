#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA's ground truth is what the sample programs did, however they end; and NVML tells the same story.

Speaks TAP.
"""
import json
import os
import subprocess
import sys
import tempfile

from sim.cuda import truth as sim_truth

BUILD = os.environ["GPUSONDE_TEST_BUILD"]
SIM = os.path.join(BUILD, "sim/cuda")

EVERYTHING = """
    alloc 1000000; repeat 5; launch 7 32; copy h2d 65536; copy d2h 512 async; copy d2d 64; memset 99; end
    stream create; launch; event record; event wait; event query; event sync; event destroy; graph 3 2
    sync stream; stream destroy; bad alloc; bad free; bad launch; bad stream
    alloc 5000 managed; alloc 100 vmm; alloc 100 array; alloc 77 async; alloc 5000 pitch; alloc 55 host; free all; sync
"""


def expect(want, got, what=""):
    assert want == got, f"{what} expected {want!r}, got {got!r}"


class Run:
    """One program with a log of its own."""

    def __init__(self, *command, thunk=False, text=None, status=0, **settings):
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "log")
        path = (os.path.join(SIM, "thunk") + ":" if thunk else "") + SIM
        environment = {**os.environ, "LD_LIBRARY_PATH": path, "GPUSONDE_SIM_SCENARIO": "desktop-1gpu",
                       "GPUSONDE_SIM_CUDA_LOG": self.log, **{k: str(v) for k, v in settings.items()}}
        done = subprocess.run([os.path.join(SIM, command[0]), *command[1:]], env=environment, capture_output=True,
                              text=True, input=text, timeout=120, check=False)
        expect(status, done.returncode, done.stderr)
        self.printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.processes = {p["pid"]: {c["api"]: c for c in p["calls"]}
                          for p in sim_truth.read(self.log)["processes"]}

    def calls(self):
        expect(1, len(self.processes), "processes:")
        return next(iter(self.processes.values()))

    def agree(self):
        """What a program says it called, the log has; what the log has besides is nested."""
        for pid, calls in self.processes.items():
            mine = {}
            for printed in self.printed:
                if printed["pid"] == pid:
                    mine = printed["calls"]
            for name, logged in calls.items():
                said = mine.get(name, {"count": 0, "errors": {}})
                expect(said["count"], logged["count"] - logged["nested"], name)
                outer = {k: n - logged["nested_errors"].get(k, 0) for k, n in logged["errors"].items()}
                expect(said["errors"], {k: n for k, n in outer.items() if n}, name)
            expect(set(), set(mine) - set(calls))


def runtime():
    run = Run("workload", "api runtime", EVERYTHING)
    run.agree()
    calls = run.calls()
    expect(1000000, calls["cudaMalloc"]["bytes"])
    expect((5 * (65536 + 64), 5 * 512), (calls["cudaMemcpy"]["bytes"], calls["cudaMemcpyAsync"]["bytes"]))
    expect({"9": 1}, calls["cudaLaunchKernel"]["errors"])
    expect({"1": 1}, calls["cuLaunchKernel"]["nested_errors"])
    expect(calls["cuMemAlloc_v2"]["count"], calls["cuMemAlloc_v2"]["nested"])
    expect(calls["cuMemAlloc_v2"]["bytes"], calls["cudaMalloc"]["bytes"])


def driver(thunk):
    def check():
        run = Run("workload", "api driver", EVERYTHING, thunk=thunk)
        run.agree()
        expect(1000000, run.calls()["cuMemAlloc_v2"]["bytes"])
        expect(1000000 + 5000 + 5120, run.calls()["cuMemFree_v2"]["bytes"])
        expect(0, sum(c["nested"] for c in run.calls().values()))
    return check


def late():
    Run("workload-late", "sleep 10", EVERYTHING).agree()


def threads():
    run = Run("workload", "threads 16; repeat 200; alloc 512; launch; free; end; end", GPUSONDE_SIM_CUDA_KERNEL_US=0)
    run.agree()
    expect(3200, run.calls()["cudaLaunchKernel"]["count"])


def spinning():
    run = Run("spin", "cudaMalloc", "--threads", "8", "--calls", "2000", GPUSONDE_SIM_CUDA_KERNEL_US=0)
    run.agree()
    expect(16000, run.calls()["cudaMalloc"]["count"])


def killed():
    """SIGKILL loses nothing."""
    run = Run("workload", "launch; launch; alloc 4096; print; kill", status=-9)
    run.agree()
    expect(2, run.calls()["cudaLaunchKernel"]["count"])


def forked():
    """A child cannot go on using CUDA; what it tries is its own."""
    run = Run("workload", "launch; fork; launch; launch; end; launch")
    run.agree()
    expect([{}, {"3": 2}], sorted((c["cudaLaunchKernel"]["errors"] for c in run.processes.values()), key=len))


def executed():
    """The same PID goes on in the same file."""
    run = Run("workload", "launch; exec; launch; launch")
    expect(3, run.calls()["cudaLaunchKernel"]["count"])
    expect([1, 2], [p["calls"]["cudaLaunchKernel"]["count"] for p in run.printed])


def no_devices():
    expect({"100": 1}, Run("workload", "launch", CUDA_VISIBLE_DEVICES="").calls()["cudaLaunchKernel"]["errors"])
    expect({"100": 1}, Run("workload", "launch", GPUSONDE_SIM_SCENARIO="empty").calls()["cudaLaunchKernel"]["errors"])


def failures():
    run = Run("workload", "repeat 10; launch; end", GPUSONDE_SIM_CUDA_FAIL="cudaLaunch*:after=4:every=3:code=719")
    run.agree()
    expect({"719": 2}, run.calls()["cudaLaunchKernel"]["errors"])
    expect(8, run.calls()["cuLaunchKernel"]["count"])
    sticky = Run("workload", "api driver; launch; launch; launch; sync",
                 GPUSONDE_SIM_CUDA_FAIL="cuLaunchKernel:every=2:code=700")
    expect({"700": 2}, sticky.calls()["cuLaunchKernel"]["errors"])
    expect({"700": 1}, sticky.calls()["cuCtxSynchronize"]["errors"])


def lines():
    run = Run("workload", "api driver; alloc 4096; launch 3 64; free", GPUSONDE_SIM_CUDA_LOG_EVENTS=1)
    pid = next(iter(run.processes))
    with open(f"{run.log}.{pid}.events", encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    expect(sum(c["count"] for c in run.calls().values()), len(events))
    expect(sorted(e["t"] for e in events), [e["t"] for e in events])
    alloc, launch, free = [next(e for e in events if e["api"] == n)
                           for n in ("cuMemAlloc_v2", "cuLaunchKernel", "cuMemFree_v2")]
    expect((4096, 192, alloc["address"]), (free["bytes"], launch["threads"], free["address"]))


def nvml():
    """What one program does with the simulated CUDA, gpusonde sees in the simulated NVML."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GPUSONDE_SIM_CUDA_DIR": folder, "GPUSONDE_SIM_SCENARIO": "desktop-1gpu"}
        workload = subprocess.Popen([os.path.join(SIM, "workload"), "alloc 1073741824; launch; pause"], text=True,
                                    env={**environment, "LD_LIBRARY_PATH": SIM, "GPUSONDE_SIM_CUDA_KERNEL_US": "3600000000"},
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            expect("ready\n", workload.stdout.readline())

            def seen():
                done = subprocess.run([os.path.join(BUILD, "gpusonde"), "ps", "--json", "--socket", "none", "--nvml-library",
                                       os.path.join(BUILD, "sim/libnvidia-ml.so.1")], env=environment,
                                      capture_output=True, text=True, timeout=60, check=False)
                expect(0, done.returncode, done.stderr)
                return [line for line in done.stdout.split("{") if f'"pid": {workload.pid},' in line or
                        f'"pid":{workload.pid},' in line]

            assert seen(), "gpusonde ps does not show the process"
        finally:
            workload.kill()
            workload.wait()
        assert not seen(), "gpusonde ps shows a process that is gone"


TESTS = [
    ("runtime", runtime),
    ("driver", driver(False)),
    ("driver with thunks", driver(True)),
    ("runtime loaded late", late),
    ("threads", threads),
    ("spin", spinning),
    ("killed", killed),
    ("fork", forked),
    ("exec", executed),
    ("no devices", no_devices),
    ("failures on demand", failures),
    ("a line for each call", lines),
    ("NVML shows the process", nvml),
]
print(f"1..{len(TESTS)}")
failed = False
for number, (title, test) in enumerate(TESTS, start=1):
    try:
        test()
        print(f"ok {number} - {title}")
    except (AssertionError, KeyError, ValueError, OSError, StopIteration, subprocess.TimeoutExpired) as error:
        failed = True
        print(f"not ok {number} - {title}")
        for line in repr(error).splitlines():
            print(f"# {line}")
sys.exit(failed)
