#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run of a program, seen by one agent, has the same counts in the timeline, in the tables, in the report of the recording and on /metrics; one tick the same figures on the screen, the web page, in JSON and on /metrics."""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile

from lib import perfetto
from lib.cgroups import cgroup, enter
from lib.chromium import Browser
from lib.e2e import BUILD, GPUSONDE, PATIENCE_S, Agent, Skip, command, environment, equal, run, values, wait_for
from lib.tmux import Terminal
from lib.traced import DRIVER, begun, probed, process_of, trace_of, tracing

JOB = f"47{os.getpid()}"
TIMES = 30
NCCL = f"{BUILD}/sim/nccl/libnccl.so.2"

# CUDA through ctypes.
BEGINS = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, NAME.encode())
cuda = ctypes.CDLL(sys.argv[1])
context, module, function, memory, device = (ctypes.c_void_p() for _ in range(5))
image = ctypes.create_string_buffer(b"\\177ELF", 64)
called = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
          cuda.cuModuleLoadData(ctypes.byref(module), image), cuda.cuModuleGetFunction(ctypes.byref(function), module, b"work"),
          cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))]
assert called == [0] * len(called), called
host = ctypes.create_string_buffer(4096)
"""

# Operators with a backward pass, and CUDA from the same thread: PyTorch of Debian has none of its own.
PYTORCH = BEGINS + """
import torch
torch.set_num_threads(1)
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

# Gradients of a rank of eight, in two collectives a step, and memory that is allocated for it.
COLLECTIVES = BEGINS + """
nccl = ctypes.CDLL(sys.argv[3])
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
print("ready", flush=True)
sys.stdin.readline()
communicator, gradients, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(1000)
assert nccl.ncclCommInitRank(ctypes.byref(communicator), 8, Id(b"x"), 5) == 0
for _ in range(int(sys.argv[2])):
    cuda.cuMemAlloc_v2(ctypes.byref(gradients), ctypes.c_size_t(4000))
    cuda.cuMemcpyHtoD_v2(gradients, host, ctypes.c_size_t(100))
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    nccl.ncclAllReduce(None, None, count, 7, 0, communicator, None)
    nccl.ncclAllGather(None, None, count, 7, communicator, None)
    nccl.ncclAllReduce(None, None, count, 7, 0, communicator, None)
    cuda.cuMemFree_v2(gradients)
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
        self.of_job = wait_for(lambda: (r := self.report(recorded, "--job", JOB)) and calls_of(r["calls"] + r["collectives"]) == calls and r,
                               "the report to have all calls of the job")
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


def check_collectives(seen, collectives):
    """@collectives: calls of each function of NCCL; all but that which makes the communicator are its operations, numbered."""
    on_threads = [s for s in seen.timeline.slices if s.track.kind == "thread" and s.track.pid == seen.pid and s.category == "nccl"]
    equal(collections.Counter(s.name for s in on_threads), collectives, "calls of NCCL in the timeline")
    equal(calls_of(seen.of_job["collectives"]), collectives, "calls of NCCL in the report of the job")
    operations = {name: n for name, n in collectives.items() if name != "ncclCommInitRank"}
    lane = [s for s in seen.timeline.slices if s.track.name.startswith("communicator ") and seen.timeline.tracks[s.track.parent].pid == seen.pid]
    equal(collections.Counter(s.name for s in lane), operations, "operations of the communicator in the timeline")
    equal(sorted(s.args["sequence"] for s in lane), list(range(1, len(lane) + 1)), "their numbers")
    rows = {o["operation"]: (o["calls"], o["traffic_bytes"]) for o in seen.process["nccl"]["operations"]}
    equal({"nccl" + name.replace("_", ""): n for name, (n, _) in rows.items()}, {name.lower(): n for name, n in operations.items()}, "operations of the process")
    for name, (n, size_) in rows.items():
        labels = {"pid": str(seen.pid), "operation": name}
        got = [values(seen.page, f"gpusonde_process_nccl_{what}_total", **labels) for what in ("operations", "bytes")]
        equal(got, [[n], [size_]], f"{name} on /metrics")


def check(seen, calls, operators, launches_of, collectives=()):
    """
    @calls: of each function of CUDA after "ready"; @operators: calls of some, as all views have them; @launches_of: by operator, None: outside;
    @collectives: of each function of NCCL.
    """
    on_threads = [s for s in seen.timeline.slices if s.track.kind == "thread" and s.track.pid == seen.pid and s.category == "cuda"]
    equal(collections.Counter(s.name for s in on_threads), calls, "calls in the timeline")
    equal(calls_of(seen.process["calls"], "api"), {**calls, **dict(collectives)}, "calls of the agent")
    equal(calls_of(seen.of_job["calls"]), calls, "calls in the report of the job")
    launches = calls["cuLaunchKernel"]
    labels = {"pid": str(seen.pid)}
    equal(values(seen.page, "gpusonde_process_cuda_launches_total", **labels), [launches], "launches on /metrics")
    equal(seen.table, str(launches), "launches in the table")
    equal([(who["kind"], who["id"], who["launches"]) for who in seen.of_job["who"]], [("job", JOB, launches)], "launches of the job in the report")
    equal(sum(calls_of(seen.of_job["kernels"]).values()), launches, "launches of kernels in the report")
    equal(collections.Counter(s.args.get("operator") for s in on_threads if s.name == "cuLaunchKernel"), launches_of, "operators of launches in the timeline")
    allocated = [s.args["bytes"] for s in on_threads if s.name == "cuMemAlloc_v2"]
    equal(([len(allocated)], [sum(allocated)] * bool(allocated)),
          (values(seen.page, "gpusonde_process_cuda_allocations_total", **labels) or [0], [c["bytes"] for c in seen.of_job["calls"] if c["name"] == "cuMemAlloc_v2"]), "allocations")
    if collectives:
        check_collectives(seen, collectives)
    own = {o["name"]: o for o in (seen.process["torch"] or {"operators": []})["operators"]}
    equal({name: own[name]["calls_total"] for name in operators}, operators, "calls of operators of the process")
    if operators:
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


def test_collectives_and_allocations():
    seen = Run(lambda name, _, own: ["/usr/bin/python3", "-c", f"NAME = {name!r}\n{COLLECTIVES}", own[0], str(TIMES), own[1]], [DRIVER, NCCL],
               lambda trace, process: calls_of(process["calls"], "api").get("cuCtxSynchronize") == TIMES)
    check(seen, dict.fromkeys(("cuLaunchKernel", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemFree_v2", "cuCtxSynchronize"), TIMES), {}, {None: TIMES},
          {"ncclCommInitRank": 1, "ncclAllReduce": 2 * TIMES, "ncclAllGather": TIMES})


# ---- four views at one tick ----

def share(v):
    return f"{v * 100:.0f} %"


def size(v):
    unit = 0
    while v >= 1024 and unit < 6:
        v, unit = v / 1024, unit + 1
    return f"{v:.{min(unit, 1)}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[unit]}"


def rate(v):
    return size(v) + "/s"


# Of a GPU: column of the screen, figure of the web page's card (None: it has another form there), member of JSON, family and label on /metrics, as people read it.
GPU_FIGURES = [
    ("UTIL", "Utilization", "utilization_ratio.gpu", "gpu_utilization_ratio", {"engine": "gpu"}, share),
    ("MEMORY", None, "memory_used_bytes", "gpu_memory_used_bytes", {}, size),
    ("OF", None, "memory_total_bytes", "gpu_memory_total_bytes", {}, size),
    ("POWER", None, "power_watts", "gpu_power_watts", {}, lambda v: f"{v:.0f} W"),
    ("LIMIT", None, "power_limit_watts.enforced", "gpu_power_limit_watts", {"limit": "enforced"}, lambda v: f"{v:.0f} W"),
    ("TEMP", "Temperature", "temperature_celsius", "gpu_temperature_celsius", {}, lambda v: f"{v:.0f} \u00b0C"),
    ("SM CLOCK", "SM clock", "clock_hertz.sm", "gpu_clock_hertz", {"clock": "sm"}, lambda v: f"{v / 1e6:.0f} MHz"),
    ("SM", "SM active", "sm_active_ratio", "gpu_sm_active_ratio", {}, share),
    ("TENSOR", "Tensor active", "pipe_active_ratio.tensor", "gpu_pipe_active_ratio", {"pipe": "tensor"}, share),
    ("DRAM", "DRAM active", "dram_active_ratio", "gpu_dram_active_ratio", {}, share),
    ("PCIE TX", "PCIe out", "pcie_tx_bytes_per_second", "gpu_pcie_tx_bytes_per_second", {}, rate),
    ("PCIE RX", "PCIe in", "pcie_rx_bytes_per_second", "gpu_pcie_rx_bytes_per_second", {}, rate),
    ("NVL TX", "NVLink out", "nvlink_tx_bytes_per_second", "gpu_nvlink_tx_bytes_per_second", {}, rate),
    ("NVL RX", "NVLink in", "nvlink_rx_bytes_per_second", "gpu_nvlink_rx_bytes_per_second", {}, rate),
]


def member(row, path):
    for name in path.split("."):
        row = row[name]
    return row


def on_the_screen(text, columns):
    """The rows of GPUs: by column what is in it, which is to the right."""
    lines = text.split("\n")
    at = next((i for i, line in enumerate(lines) if " UTIL" in line and " PCIE TX" in line), None)
    if at is None:
        return []
    ends, end = [], 0
    for column in columns: # from left to right
        end = lines[at].index(f" {column}", end) + 1 + len(column)
        ends.append((end, column))
    rows = [line for line in lines[at + 1:] if re.match(r"\s*\d+\s+H100", line)]
    return [{column: line[(ends[i - 1][0] if i else end - len(column) - 2):end].strip() for i, (end, column) in enumerate(ends)} for line in rows]


CARDS = """[...document.querySelectorAll(".cards .card")].map(card => Object.fromEntries([...card.querySelector("dl").children].map(
    figure => [figure.children[0].textContent, figure.children[1].children[0].textContent])))"""


def test_four_views_at_one_tick():
    """The screen, the web page, JSON and /metrics: each figure of each GPU is the same number."""
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent("--sample-period", "10s"))
        screen = stack.enter_context(Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=300, rows=40, env=dict(agent.env, HOME="/nonexistent")))
        missing, page = None, None
        try:
            page = stack.enter_context(stack.enter_context(Browser()).open(f"http://127.0.0.1:{agent.port()}/"))
        except Skip as why:
            missing = why
        screen.shows("h help")
        screen.keys("b")
        differences = []

        def agree():
            before = agent.get("/api/v1/gpus").json()
            shown, cards, metrics = on_the_screen(screen.screen(), [figure[0] for figure in GPU_FIGURES]), page.ask(CARDS) if page else [{}] * 8, agent.metrics()
            after = agent.get("/api/v1/gpus").json()
            if before["time"] != after["time"] or len(shown) != 8 or len(cards) != 8:
                differences[:] = [("not of one time, or not all rows", len(shown), len(cards))]
                return False
            differences[:] = [d for gpu in before["gpus"] for d in difference(gpu, shown[gpu["gpu"]], cards[gpu["gpu"]], metrics)]
            return not differences and before
        document = wait_for(agree, "all four to be of one tick", seconds=4 * PATIENCE_S, otherwise=lambda: differences[:5])
        equal(len(document["gpus"]), 8)
        if missing:
            raise Skip(f"the other three say the same; of the page: {missing}")


def difference(gpu, shown, card, page):
    for column, title, path, family, labels, text in GPU_FIGURES:
        number = member(gpu, path)
        if number is None:
            yield gpu["gpu"], path, "not known yet"
            continue
        got = values(page, f"gpusonde_{family}", gpu=str(gpu["gpu"]), **labels)
        if got != [number] or shown[column] != text(number) or (title and card and card.get(title) != text(number)):
            yield gpu["gpu"], path, number, got, shown[column], card.get(title)


def duration(v):
    return next(f"{v / of:.1f} {unit}" for of, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")) if v >= of or of == 1)


# Of a process on a GPU: column of the web page, member of JSON, family on /metrics, as people read it.
PROCESS_FIGURES = [
    ("SM", "utilization_ratio", "process_gpu_utilization_ratio", share),
    ("Memory", "memory_bytes", "process_gpu_memory_bytes", size),
    ("Busy", "busy_seconds_total", "process_gpu_busy_seconds_total", duration),
]
PROCESS_ROWS = """(() => {
    const [head, ...rows] = [...document.querySelector("#main table")?.rows ?? [{ cells: [] }]].map(r => [...r.cells].filter(c => !c.hidden).map(c => c.innerText.replace(/ [\u25b2\u25bc]$/, "")));
    return rows.map(r => Object.fromEntries(r.map((v, i) => [head[i], v])));
})()"""


def test_processes_in_four_views_at_one_tick():
    """The screen has each process on a line; its figures are compared as texts there."""
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(Agent("--sample-period", "10s"))
        screen = stack.enter_context(Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=300, rows=120, env=dict(agent.env, HOME="/nonexistent")))
        page = stack.enter_context(stack.enter_context(Browser()).open(f"http://127.0.0.1:{agent.port()}/#processes"))
        screen.shows("h help")
        screen.keys("2")
        differences = []

        def agree():
            before, metrics = agent.get("/api/v1/processes").json(), agent.metrics()
            rows = {(row["PID"], row["GPU"]): row for row in page.ask(PROCESS_ROWS)}
            lines = {line.split()[i]: line for line in screen.screen().split("\n") for i in range(len(line.split())) if line.split()[i].isdigit() and len(line.split()[i]) > 5}
            if before["time"] != agent.get("/api/v1/processes").json()["time"]:
                differences[:] = ["not of one time"]
                return False
            differences[:] = [d for p in before["processes"] for d in process_difference(p, rows.get((str(p["pid"]), str(p["gpu"])), {}), lines.get(str(p["pid"]), ""), metrics)]
            return not differences and before
        document = wait_for(agree, "all four to be of one tick", seconds=4 * PATIENCE_S, otherwise=lambda: differences[:5])
        assert len(document["processes"]) > 50, document


def process_difference(process, row, line, page):
    for column, name, family, text in PROCESS_FIGURES:
        number = process[name]
        got = values(page, f"gpusonde_{family}", gpu=str(process["gpu"]), pid=str(process["pid"]))
        shown = text(number) if number is not None else "-"
        if got != ([] if number is None else [number]) or row.get(column) != shown or (name != "busy_seconds_total" and shown not in line):
            yield process["pid"], name, number, got, row.get(column), line


if __name__ == "__main__":
    run()
