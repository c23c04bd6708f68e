#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run of a program, seen by one agent, has the same counts in the timeline, in the tables, in the report of the recording and on /metrics."""
import collections
import json
import os
import shutil
import subprocess
import tempfile

from lib import perfetto
from lib.cgroups import cgroup, enter
from lib.e2e import BUILD, Agent, Skip, command, environment, equal, run, values, wait_for
from lib.traced import DRIVER, begun, probed, process_of, trace_of, tracing

JOB = f"47{os.getpid()}"
TIMES = 30

# Operators with a backward pass, and CUDA through ctypes from the same thread: PyTorch of Debian has none of its own.
PYTORCH = """
import ctypes, sys, torch
torch.set_num_threads(1)
ctypes.CDLL(None).prctl(15, NAME.encode())
cuda = ctypes.CDLL(sys.argv[1])
context, module, function, memory, device = (ctypes.c_void_p() for _ in range(5))
image = ctypes.create_string_buffer(b"\\177ELF", 64)
called = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
          cuda.cuModuleLoadData(ctypes.byref(module), image), cuda.cuModuleGetFunction(ctypes.byref(function), module, b"work"),
          cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))]
assert called == [0] * len(called), called
host = ctypes.create_string_buffer(4096)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    weight = torch.full((4, 4), 0.5, requires_grad=True)
    cuda.cuMemcpyHtoD_v2(memory, host, ctypes.c_size_t(100))
    loss = torch.tanh(torch.mm(weight, weight)).sum()
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    loss.backward()
    cuda.cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()
print("called", flush=True)
sys.stdin.readline()
"""


class Run:
    """What each view says of one run of a program, which says "ready", after a line "called", and ends with the next one."""

    def __init__(self, argv, libraries, done):
        tracing()
        name = f"views-{os.getpid()}"
        scenario = ("cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nprocesses:\n"
                    f"  - {{name: own, match: {name}, gpus: 0, memory: 1GiB, load: {{gpu: 60, memory: 30}}}}\n")
        with tempfile.TemporaryDirectory() as tmp, cgroup(f"slurm/uid_0/job_{JOB}/step_0") as folder:
            os.mkdir(f"{tmp}/own")
            # Files of its own: nobody else's probes are in them.
            own = [shutil.copy(os.path.realpath(library), f"{tmp}/own/{os.path.basename(library)}") for library in libraries]
            with open(f"{tmp}/scenario.yaml", "w", encoding="ascii") as file:
                file.write(scenario)
            env = environment(LD_LIBRARY_PATH=f"{tmp}/own", GPUSONDE_SIM_SCENARIO=f"{tmp}/scenario.yaml")
            with subprocess.Popen(argv(name, tmp, own), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                try:
                    self.pid = program.pid
                    equal(program.stdout.readline(), "ready\n", "the program")
                    enter(folder, program.pid)
                    with Agent("--trace-enabled", "yes", "--trace-operators", "yes", "--recording-path", f"{tmp}/r.db", scenario=scenario) as agent:
                        self.watch(agent, program, own, done, f"{tmp}/r.db")
                    self.next(program, "")
                finally:
                    program.kill()

    def watch(self, agent, program, libraries, done, recorded):
        begun(agent)
        for library in libraries:
            probed(agent, program.pid, library)
        path = self.record(agent, "start").removeprefix("recording to ").strip()
        self.next(program, "called\n")
        wait_for(lambda: (p := process_of(agent, self.pid)) and done(trace_of(agent), p), "all calls to be counted")
        self.record(agent, "stop")
        with open(path, "rb") as file:
            self.timeline = perfetto.read(file.read())
        self.process, self.page = process_of(agent, self.pid), agent.metrics()
        self.table = wait_for(lambda: self.launches_in_table(agent), "the process in the table")
        calls = calls_of(self.process["calls"], "api")
        # What is recorded every ten seconds alone is in the next of these.
        self.of_job = wait_for(lambda: (r := self.report(recorded, "--job", JOB)) and calls_of(r["calls"]) == calls and r, "the report to have all calls of the job")
        self.of_all, self.trace = self.report(recorded), trace_of(agent)

    @staticmethod
    def next(program, line):
        program.stdin.write("\n")
        program.stdin.flush()
        equal(program.stdout.readline(), line, "the program")

    @staticmethod
    def record(agent, word):
        done = agent.cli("record", word)
        equal(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @staticmethod
    def report(path, *flags):
        done = command("report", path, "--json", *flags)
        return json.loads(done.stdout) if done.returncode == 0 and json.loads(done.stdout)["calls"] else None

    def launches_in_table(self, agent):
        """The process's, in the table of processes; None: it is not in it, or has none."""
        lines = agent.cli("ps").stdout.splitlines()
        heads = [line for line in lines if " PID " in line]
        rows = [line for line in lines if f" {self.pid} " in line]
        if not heads or not rows:
            return None
        cell = rows[0][:heads[0].index("LAUNCHES") + len("LAUNCHES")].split()[-1]
        return None if cell == "-" else cell


def calls_of(rows, name="name"):
    return {row[name]: row["count"] for row in rows}


def all_of_them(seen, name):
    """Calls of an operator by all programs, at the end."""
    return sum(o["calls_total"] for o in seen.trace["operators"] if o["name"] == name)


def check(seen, calls, operators, launches_of):
    """@calls: of each function of CUDA after "ready"; @operators: calls of some, as all views have them; @launches_of: by operator, None: outside."""
    on_threads = [s for s in seen.timeline.slices if s.track.kind == "thread" and s.track.pid == seen.pid and s.category == "cuda"]
    equal(collections.Counter(s.name for s in on_threads), calls, "calls in the timeline")
    equal(calls_of(seen.process["calls"], "api"), calls, "calls of the agent")
    equal(calls_of(seen.of_job["calls"]), calls, "calls in the report of the job")
    launches = calls["cuLaunchKernel"]
    labels = {"pid": str(seen.pid)}
    equal(values(seen.page, "gpusonde_process_cuda_launches_total", **labels), [launches], "launches on /metrics")
    equal(seen.table, str(launches), "launches in the table")
    equal([(who["kind"], who["id"], who["launches"]) for who in seen.of_job["who"]], [("job", JOB, launches)], "launches of the job in the report")
    equal(sum(calls_of(seen.of_job["kernels"]).values()), launches, "launches of kernels in the report")
    equal(collections.Counter(s.args.get("operator") for s in on_threads if s.name == "cuLaunchKernel"), launches_of, "operators of launches in the timeline")
    own = {o["name"]: o for o in seen.process["torch"]["operators"]}
    equal({name: own[name]["calls_total"] for name in operators}, operators, "calls of operators of the process")
    equal({name: own[name]["launches_total"] for name in launches_of}, launches_of, "launches of operators of the process")
    for name, n in operators.items():
        got = values(seen.page, "gpusonde_operator_calls_total", operator=name) + [calls_of(seen.of_all["operators"])[name]]
        # Both are of the whole machine, where other programs may call operators, too.
        if all_of_them(seen, name) == n:
            equal(got, [n, n], f"{name} on /metrics and in the report")
        assert min(got) >= n, f"{name} on /metrics and in the report: got {got}, the process alone has {n}"
    copied = sum(s.args["bytes"] for s in on_threads if s.name.startswith("cuMemcpy"))
    equal((values(seen.page, "gpusonde_process_cuda_copy_bytes_total", kind="host_to_device", **labels), [c["bytes"] for c in seen.of_job["calls"] if "Memcpy" in c["name"]]),
          ([copied], [copied]), "bytes copied")


def test_pytorchs_operators():
    """The program of the tests of operators (operators.py), whose operators launch."""
    each = 50
    seen = Run(lambda name, tmp, _: [shutil.copy(f"{BUILD}/test/e2e/calls_operators", f"{tmp}/{name}"), "wait"], [f"{BUILD}/test/e2e/libtorch_cpu.so", DRIVER],
               lambda trace, process: calls_of(process["calls"], "api").get("cuLaunchKernel") == 10 * each)
    check(seen, {"cuLaunchKernel": 10 * each, "cuMemcpyHtoD_v2": 3 * each, "cuMemAlloc_v2": 2 * each, "cuCtxSynchronize": 2 * each},
          {"add.Tensor": 3 * each, "linear": 2 * each, "mm": each, "backward": each}, {"add.Tensor": 6 * each, "linear": 2 * each, "mm": each, None: each})


def test_pytorch_itself():
    """Of Debian: what it calls is on the CPU, and its program launches beside it."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        raise Skip("no PyTorch here: apt-get install python3-torch")
    seen = Run(lambda name, _, own: ["/usr/bin/python3", "-c", f"NAME = {name!r}\n{PYTORCH}", own[0], str(TIMES)], [DRIVER],
               lambda trace, process: calls_of(process["calls"], "api").get("cuCtxSynchronize") == TIMES)
    check(seen, {"cuLaunchKernel": 2 * TIMES, "cuMemcpyHtoD_v2": TIMES, "cuCtxSynchronize": TIMES}, {"tanh": TIMES, "mm": 3 * TIMES, "sum": TIMES}, {None: 2 * TIMES})
    nodes = {node["name"]: node["count"] for node in seen.process["torch"]["nodes"]}
    equal({name: nodes[name] for name in ("TanhBackward0", "MmBackward0", "SumBackward0")}, dict.fromkeys(("TanhBackward0", "MmBackward0", "SumBackward0"), TIMES), "nodes")
    marks = sum(1 for i in seen.timeline.instants if i.category == "torch" and i.track.pid == seen.pid and "backward" in i.name)
    equal(marks, sum(nodes.values()), "nodes in the timeline")


if __name__ == "__main__":
    run()
