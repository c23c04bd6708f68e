# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --timeline: what the file has is what was counted, in both formats, and opens however tracing ends."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from e2e.stacks import interpreters
from lib import perfetto
from lib.e2e import BUILD, GPUSONDE, SIMULATED, SOURCE, Agent, Skip, command, contains, environment, equal, run, wait_for
from lib.traced import SCENARIO, tracing

SIM = f"{BUILD}/sim/cuda"
ENV = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_KERNEL_US="50")
SCRIPT = ("alloc 4096; copy h2d 4096; repeat 30; launch 3 64; end; sync; threads 3; stream create; repeat 10; launch; end; sync stream; end;"
          "bad alloc; fork; launch; sync; end; free")
# Registers a kernel: nothing that the program does.
REGISTERS = "__cudaRegisterFunction"


def traced(path, *program, flags=(), env=ENV):
    tracing()
    done = command("trace", "--socket=none", f"--timeline={path}", "--json", f"--output={path}.sums", *flags, "--", *program, env=env)
    equal(done.returncode, 0, done.stderr)
    with open(f"{path}.sums") as file:
        return done, json.load(file)


def counted(sums):
    """function -> calls, nested ones too, of all processes."""
    return collections.Counter({call["api"]: call["count"] for call in sums["calls"] if call["count"] and call["api"] != REGISTERS})


def perfetto_of(path, whole=True):
    with open(path, "rb") as file:
        return perfetto.read(file.read(), whole)


def calls_of(timeline):
    found = [s.name for s in timeline.slices if s.track.kind == "thread"] + [i.name for i in timeline.instants if i.track.kind == "thread"]
    return collections.Counter(found)


def test_perfetto():
    with tempfile.TemporaryDirectory() as tmp:
        done, sums = traced(f"{tmp}/x.pftrace", f"{SIM}/workload", SCRIPT)
        timeline = perfetto_of(f"{tmp}/x.pftrace")
    equal(done.stderr, "")
    found = calls_of(timeline)
    for call, calls in counted(sums).items():
        equal(found[call], calls, call)
    threads = {t.tid: t for t in timeline.tracks.values() if t.kind == "thread"}
    processes = {t.uuid: t for t in timeline.tracks.values() if t.kind == "process"}
    equal(len(threads), 5, "the program, its three threads and its child")
    equal({t.name for t in processes.values()}, {"workload"})
    equal({t.pid for t in processes.values()}, {t.pid for t in threads.values()})
    # CUDA cannot be used after fork: that launch fails.
    (refused,) = [s for s in timeline.named("cudaLaunchKernel") if "result" in s.args]
    equal((refused.args["result"], refused.flows), (3, []))
    launches = [s for s in timeline.named("cudaLaunchKernel") if s is not refused]
    equal({s.args["kernel"] for s in launches}, {"work"})
    equal(collections.Counter(s.args["grid"] for s in launches)["3x1x1"], 30)
    (failed,) = [s for s in timeline.named("cudaMalloc") if "result" in s.args]
    equal(failed.args["result"], 2)
    # Each launch is joined to the span of its stream that covers it.
    spans = {flow: s for s in timeline.named("kernels (estimate)") for flow in s.flows}
    for launch in launches:
        (flow,) = launch.flows
        assert spans[flow].begin <= launch.begin <= spans[flow].end, f"{launch} is not in {spans[flow]}"
    equal(sum(s.args["launches"] for s in timeline.named("kernels (estimate)")), len(launches))
    equal({s.track.name.split(" stream")[0] for s in timeline.named("kernels (estimate)")}, {"GPU 0 default", "GPU 0"})
    assert all(s.depth == 0 for s in timeline.named("kernels (estimate)"))


def arrows(timeline):
    """(launch, span that its arrow leads to) of each launch that has one."""
    spans = {flow: s for s in timeline.named("kernels (estimate)") for flow in s.flows}
    return [(s, spans[s.flows[0]]) for s in timeline.named("cudaLaunchKernel") + timeline.named("cudaLaunchKernel_ptsz") if s.flows]


def test_arrows_of_threads():
    """Threads that launch into one stream, and wait for it, while others do: each launch leads to the span that covers it. Its own stream's to its own."""
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{SIM}/workload", "threads 4; repeat 100; launch; sync; end; end")
        shared = perfetto_of(f"{tmp}/x.pftrace")
        traced(f"{tmp}/y.pftrace", f"{SIM}/workload", "launch; streams perthread; threads 2; launch 7; sync stream; end; streams legacy; launch; sync")
        own = perfetto_of(f"{tmp}/y.pftrace")
    pairs = arrows(shared)
    equal(len(pairs), 400)
    ends = {(s.track.uuid, s.end) for s in shared.named("kernels (estimate)")}
    # A launch that began while another thread waited is in a span that begins when that one's ends.
    assert all(launch.begin <= span.end and (launch.begin >= span.begin or (span.track.uuid, span.begin) in ends) for launch, span in pairs)
    equal(sum(s.args["launches"] for s in shared.named("kernels (estimate)")), 400)
    pairs = arrows(own)
    equal(len(pairs), 4)
    legacy = {span.track.uuid for launch, span in pairs if launch.args["grid"] == "1x1x1"}
    threads = [(launch, span) for launch, span in pairs if launch.args["grid"] == "7x1x1"]
    equal((len(legacy), len({span.track.uuid for _, span in threads}), len(legacy & {span.track.uuid for _, span in threads})), (1, 2, 0))
    assert all(span.begin <= launch.begin <= span.end and span.args["launches"] == 1 for launch, span in threads), threads
    equal({span.args["device"] for _, span in pairs}, {0})


def test_communicators():
    """Each has a track with its collectives, numbered; the same numbers are on the calls."""
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{BUILD}/test/e2e/collectives", "operations")
        timeline = perfetto_of(f"{tmp}/x.pftrace")
    lanes = {t.uuid: t for t in timeline.tracks.values() if t.name.startswith("communicator ")}
    assert lanes and all(t.parent in timeline.tracks and timeline.tracks[t.parent].kind == "process" for t in lanes.values()), timeline.tracks
    calls = [s for s in timeline.slices if s.track.kind == "thread" and "communicator" in s.args]
    on_lanes = [s for s in timeline.slices if s.track.uuid in lanes]
    assert len(calls) > 10 and len(on_lanes) >= len(calls), f"{len(calls)} and {len(on_lanes)}"
    assert all(s.depth == 0 for s in on_lanes)
    for lane in lanes:
        numbers = [s.args["sequence"] for s in sorted(timeline.slices, key=lambda s: s.begin) if s.track.uuid == lane and "sequence" in s.args]
        equal(numbers, list(range(1, len(numbers) + 1)), lanes[lane])
    reduces = [s for s in calls if s.name == "ncclAllReduce" and s.args["ranks"] == 8]
    equal({(s.args["count"], s.args["bytes"], s.args["type"]) for s in reduces}, {(1000, 4000, "float32")})
    name = f"communicator {hex(reduces[0].args['communicator'])} (rank {reduces[0].args['rank']} of 8)"
    assert name in {t.name for t in lanes.values()}, f"{name} and {lanes}"
    assert any(i.name == "process ended" and i.track.kind == "process" for i in timeline.instants)


def test_chrome():
    with tempfile.TemporaryDirectory() as tmp:
        begin = time.monotonic_ns() / 1000
        _, sums = traced(f"{tmp}/x.json", f"{SIM}/workload", SCRIPT)
        end = time.monotonic_ns() / 1000
        with open(f"{tmp}/x.json") as file:
            events = json.load(file)
    found = collections.Counter(e["name"] for e in events if e["ph"] in "Xi" and e["cat"] == "cuda")
    for call, calls in counted(sums).items():
        equal(found[call], calls, call)
    # Microseconds of CLOCK_MONOTONIC.
    assert all(begin <= e["ts"] <= e["ts"] + e.get("dur", 0) <= end for e in events if e["ph"] in "Xi" and e["cat"] == "cuda"), (begin, end)
    assert all(e["dur"] >= 0 and e["ts"] > 0 for e in events if e["ph"] == "X")
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    equal({(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"} - named, set(), "tracks without a name")
    # An arrow ends in the span of a stream.
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert ends and all(e["id"] in ends for e in events if e["ph"] == "s")


def chrome(path, *program, flags=()):
    """(category, name) -> complete events and instants; what was counted."""
    _, sums = traced(path, *program, flags=flags)
    with open(path) as file:
        events = json.load(file)
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")
    return collections.Counter((e["cat"], e["name"]) for e in events if e["ph"] in "Xi"), sums


def test_chrome_of_the_layers():
    """Categories are those that readers of such files go by: nccl, torch and python beside cuda."""
    with tempfile.TemporaryDirectory() as tmp:
        found, sums = chrome(f"{tmp}/n.json", f"{BUILD}/test/e2e/collectives", "operations")
        calls = {call: n for call, n in counted(sums).items() if call.startswith("nccl")}
        assert len(calls) > 10, calls
        on_tracks = {call: found["nccl", call] for call in calls}
        assert all(on_tracks[call] >= n for call, n in calls.items()), f"{on_tracks}, and not at least {calls}"
        found, _ = chrome(f"{tmp}/t.json", f"{BUILD}/test/e2e/calls_operators", "train", flags=["--torch"])
        equal((found["torch", "Optimizer.step#SGD.step"], found["torch", "out of memory"]), (50, 1))
        found, _ = chrome(f"{tmp}/p.json", "/usr/bin/python3", f"{SOURCE}/test/e2e/gil_calls.py", "waits", "0.3", flags=["--python"])
        assert sum(n for (category, _), n in found.items() if category == "python") > 0, found


def test_chrome_of_the_others():
    """Probes of the user's own, the GPUs' figures, what gpusonde says of itself, and spans of the program."""
    with tempfile.TemporaryDirectory() as tmp:
        found, sums = chrome(f"{tmp}/u.json", f"{BUILD}/test/e2e/calls_named", "7", flags=["--probe=libnamed.so:named_leaf"])
        (calls,) = (call["count"] for call in sums["calls"] if call["api"] == "named_leaf")
        equal((found["user", "named_leaf"], calls), (21, 21))
        found, _ = chrome(f"{tmp}/m.json", "/usr/bin/python3", "-c", SPANS, "monotonic", f"{tmp}/own.json", f"{SIM}/workload", "launch; sync", "",
                          flags=[f"--merge={tmp}/own.json"])
        with open(f"{tmp}/m.json", encoding="utf-8") as file:
            figures = {e["name"] for e in json.load(file) if e["ph"] == "C" and e["cat"] == "gpu" and isinstance(e["args"]["value"], (int, float))}
    equal((found["program", "train"], found["program", "step"], found["gpusonde", "clocks"], found["gpu", "driver's clock"] > 0), (1, 1, 1, True))
    assert {"utilization", "power, watts", "memory used, bytes"} <= figures, figures


# A library of cuBLAS' name, and a program that multiplies with it.
MULTIPLIES = """
import ctypes, sys
blas = ctypes.CDLL(sys.argv[1])
none = ctypes.c_void_p()
for _ in range(7):
    blas.cublasSgemm_v2(none, 0, 0, 2, 3, 4, none, none, 2, none, 4, none, none, 2)
"""


def test_chrome_of_cublas():
    if not shutil.which("cc"):
        raise Skip("no C compiler here")
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/blas.c", "w", encoding="ascii") as file:
            file.write("int cublasSgemm_v2(void *handle, int a, int b, int m, int n, int k) { return handle != 0 || a + b + m + n + k == 0; }\n")
        subprocess.run(["cc", "-O0", "-shared", "-fPIC", "-o", f"{tmp}/libcublas.so.13", f"{tmp}/blas.c"], check=True)
        found, _ = chrome(f"{tmp}/x.json", "/usr/bin/python3", "-c", MULTIPLIES, f"{tmp}/libcublas.so.13", flags=["--blas"])
    equal(found["blas", "cublasSgemm_v2"], 7)


def decoded(data):
    """Text by protoc, which has no number that Perfetto's own files do not have."""
    if not shutil.which("protoc"):
        raise Skip("protoc is not installed")
    plain = b"".join(perfetto.inflated(data))
    done = subprocess.run(["protoc", f"--proto_path={SOURCE}/test/timeline", "--decode=perfetto.protos.Trace", "perfetto.proto"], input=plain,
                          capture_output=True, check=False)
    equal(done.returncode, 0, done.stderr.decode())
    text = done.stdout.decode()
    equal([line for line in text.splitlines() if line.strip()[:1].isdigit()], [], "fields that the .proto file does not have")
    return text


def test_fields_are_perfettos():
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{SIM}/workload", SCRIPT)
        with open(f"{tmp}/x.pftrace", "rb") as file:
            text = decoded(file.read())
    contains(text, "type: TYPE_SLICE_BEGIN")
    contains(text, 'process_name: "workload"')


def test_gpus():
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{SIM}/workload", "launch; sync; sleep 2500", env=dict(ENV, GPUSONDE_SIM_SCENARIO=""))
        timeline = perfetto_of(f"{tmp}/x.pftrace")
    gpus = {t.uuid: t for t in timeline.tracks.values() if t.name.startswith("GPU ") and t.parent is None}
    equal(len(gpus), 8)
    power = [v for v in timeline.values if v.track.name == "power, watts"]
    equal({v.track.parent for v in power}, set(gpus))
    for uuid in gpus:
        times = [v.time for v in power if v.track.parent == uuid]
        assert len(times) >= 2 and times == sorted(times), times
    # One clock: the readings are around the calls.
    (sync,) = timeline.named("cudaDeviceSynchronize")
    assert min(v.time for v in power) < sync.end < max(v.time for v in power)
    (measured,) = [i for i in timeline.instants if i.name == "clocks"]
    for snapshot in timeline.clocks:
        assert abs(snapshot[1] - snapshot[3] - measured.args["realtime_ns"]) < 10e9 and measured.args["error_ns"] < 1e9, f"{snapshot} and {measured}"
    clocks = timeline.clocks[0]
    assert abs(clocks[3] - sync.end) < 60e9, f"{clocks} and {sync}"
    throttled = [s for s in timeline.slices if s.track.name == "clocks throttled by"]
    assert throttled and all(s.track.parent in gpus and s.begin < s.end for s in throttled), throttled


# Half of each four seconds all of it is busy, by the time since boot; its driver's clock is 96 ms behind (sim/nvml/call.h).
SQUARE = """
gpus: [{model: h100-sxm}]
processes: [{name: job, memory: 1GiB, load: {gpu: {square: [0, 100], period: 4s}}}]
"""


def busy_share(begin, end):
    """Of a time since boot in ns, by SQUARE."""
    at = lambda t: t // 4_000_000_000 * 2_000_000_000 + min(t % 4_000_000_000, 2_000_000_000)
    return (at(end) - at(begin)) / (end - begin)


def test_times_of_the_driver():
    """A mean of samples stands where they begin, on our clock, as closely as it is measured; alone and beside an agent."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/square.yaml", "w", encoding="ascii") as file:
            file.write(SQUARE)
        env = dict(ENV, GPUSONDE_SIM_SCENARIO=f"{tmp}/square.yaml")
        program = [f"{SIM}/workload", "alloc 4096; sleep 7000; free all"]
        traced(f"{tmp}/x.pftrace", *program, env=env)
        with Agent("--trace-enabled", "no", scenario=f"{tmp}/square.yaml") as agent:
            done = command("trace", f"--socket={agent.socket}", f"--timeline={tmp}/y.pftrace", "--", *program, env=env)
        equal(done.returncode, 0, done.stderr)
        files = [perfetto_of(f"{tmp}/{name}.pftrace") for name in "xy"]
    for timeline in files:
        marks = [i for i in timeline.instants if i.name == "driver's clock"]
        assert marks and not [i for i in timeline.instants if i.name.startswith("driver's clock jumps")], timeline.instants
        for mark in marks:
            error = mark.args["error_ns"] + 2_000_000 # times of an agent's document are in milliseconds
            assert abs(mark.args["realtime_ns"] + 96_000_000) <= error < 60_000_000, mark
        boot = timeline.clocks[0][6] - timeline.clocks[0][3]
        values = [v for v in timeline.values if v.track.name == "utilization"]
        assert len(values) > 4, values
        # A short one is after a value without a time of its own.
        told = [(a.time, b.time, a.value) for a, b in zip(values, values[1:]) if 400_000_000 < b.time - a.time < 3_000_000_000]
        off = [abs(busy_share(begin + boot, end + boot) - value) * (end - begin) for begin, end, value in told]
        assert len(off) > 2 and max(off) <= 20_000_000 + max(m.args["error_ns"] for m in marks), f"{off} of {told}"


def test_xids():
    """Those that come while it is traced, by an agent's count or by its own."""
    scenario = f"{SOURCE}/sim/scenarios/driver-future.yaml"
    env = dict(ENV, GPUSONDE_SIM_SCENARIO=scenario)
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{SIM}/workload", "launch; sync; sleep 6000", env=env)
        alone = perfetto_of(f"{tmp}/x.pftrace")
        with Agent("--trace-enabled", "no", scenario=scenario) as agent:
            done = command("trace", f"--socket={agent.socket}", f"--timeline={tmp}/y.pftrace", "--", f"{SIM}/workload", "launch; sync; sleep 6000", env=env)
        equal(done.returncode, 0, done.stderr)
        beside = perfetto_of(f"{tmp}/y.pftrace")
    for timeline in (alone, beside):
        xids = [i for i in timeline.instants if i.name == "XID 999"]
        assert xids and all(i.track.name.startswith("GPU 0") for i in xids), timeline.instants


def test_layers():
    """PyTorch's allocators are curves, its ranges marks; operators are said of the calls that they make."""
    program, times = f"{BUILD}/test/e2e/calls_operators", 50
    with tempfile.TemporaryDirectory() as tmp:
        _, sums = traced(f"{tmp}/x.pftrace", program, "train", flags=["--torch"])
        timeline = perfetto_of(f"{tmp}/x.pftrace")
        _, _ = traced(f"{tmp}/y.pftrace", program, flags=["--torch"])
        operators = perfetto_of(f"{tmp}/y.pftrace")
    (memory,) = sums["torch"]["processes"][0]["allocators"]
    curve = [v for v in timeline.values if v.track.name == "cuda:3 allocated, bytes"]
    equal(len(curve), memory["allocations"] + memory["frees"], "each change")
    equal((curve[-1].value, max(v.value for v in curve)), (memory["allocated_bytes"], memory["allocated_peak_bytes"]))
    equal(timeline.tracks[curve[0].track.parent].kind, "process")
    marks = collections.Counter((i.name, i.category) for i in timeline.instants)
    equal(marks["Optimizer.step#SGD.step", "torch"], times)
    equal(marks["out of memory", "torch"], 1)
    equal(sum(n for (name, category), n in marks.items() if category == "torch" and "backward" in name), 2 * times, marks)
    launches = collections.Counter(s.args.get("operator") for s in operators.slices if "LaunchKernel" in s.name)
    equal(launches, {"add.Tensor": 6 * times, "linear": 2 * times, "mm": times, None: times})


def test_python():
    """Waits for the interpreter's lock are on the threads that wait, as long as they were."""
    with tempfile.TemporaryDirectory() as tmp:
        done, sums = traced(f"{tmp}/x.pftrace", "/usr/bin/python3", f"{SOURCE}/test/e2e/gil_calls.py", "waits", "0.3", flags=["--python"])
        timeline = perfetto_of(f"{tmp}/x.pftrace")
    waits = [s for s in timeline.slices if s.name == "wait for the GIL"]
    told = [i for i in timeline.instants if i.name == "wait for the GIL"]
    equal({e.category for e in waits + told}, {"python"})
    (process,) = sums["python"]["processes"]
    equal(len(waits) + sum(i.args["waits"] for i in told), process["gil_waits"]["count"])
    seconds = sum(s.end - s.begin for s in waits) + sum(i.args["total_ns"] for i in told)
    assert abs(seconds / 1e9 - process["gil_waits"]["seconds"]) < 1e-6, f"{seconds} ns and {process}"
    want = int(done.stdout.split()[0])
    assert any(e.track.tid == want for e in waits + told), waits + told


def test_garbage():
    """Each collection that was counted is a slice of its thread. Of the first interpreter that has symbols of its collector."""
    tracing()
    for path in sorted(interpreters()):
        with open(os.path.realpath(path), "rb") as file:
            if b"invoke_gc_callback" not in file.read():
                continue
        with tempfile.TemporaryDirectory() as tmp:
            _, sums = traced(f"{tmp}/x.pftrace", path, f"{SOURCE}/test/e2e/gil_calls.py", "alone", "10", flags=["--python"])
            timeline = perfetto_of(f"{tmp}/x.pftrace")
        counts = sum(row["count"] for row in sums["python"]["collections"])
        slices = timeline.named("garbage collection")
        equal(({s.category for s in slices}, len(slices)), ({"python"}, counts))
        assert counts >= 10 and all(s.begin < s.end and s.track.kind == "thread" for s in slices), slices
        return
    raise Skip("no Python has symbols of its collector")


def maps(pid, library):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return library in file.read()


def test_a_late_start():
    """A program that ran before it was traced is marked so, on its own track; one from its first call on is not."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/x.pftrace"
        with subprocess.Popen([f"{SIM}/spin", "__cudaLaunchKernel", "--seconds", "60"], env=ENV, stdout=subprocess.DEVNULL) as program:
            wait_for(lambda: maps(program.pid, "libcudart"), "the program to run") # noqa: B023
            with subprocess.Popen([GPUSONDE, "trace", "--socket=none", f"--timeline={path}", "-p", str(program.pid)], env=ENV, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as tracer:
                wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 1 << 16, "some of the timeline") # noqa: B023
                tracer.terminate()
                equal(tracer.wait(60), 0)
            program.kill()
        late = perfetto_of(path)
        traced(path, f"{SIM}/workload", "launch; sync")
        early = perfetto_of(path)
    marks = [i for i in late.instants if i.name == "late"]
    equal({(i.category, i.track.kind, i.track.pid) for i in marks}, {("gpusonde", "process", program.pid)})
    equal([i for i in early.instants if i.name == "late"], [])


def calls_in(path):
    with open(path, "rb") as file:
        return file.read().count(b'"__cudaLaunchKernel"')


def test_killed():
    """kill -9 while it is written: what was written opens."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        for name, size in (("x.pftrace", 1 << 18), ("x.json", 1 << 20)): # a call takes five bytes or two hundred
            path = f"{tmp}/{name}"
            with subprocess.Popen([f"{SIM}/spin", "__cudaLaunchKernel", "--seconds", "60"], env=ENV, stdout=subprocess.DEVNULL) as program:
                with subprocess.Popen([GPUSONDE, "trace", "--socket=none", f"--timeline={path}", "-p", str(program.pid)], env=ENV,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tracer:
                    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > size, "much of the timeline") # noqa: B023
                    # What a busy machine loses is marked in the file, and takes room there.
                    if name.endswith("json"):
                        wait_for(lambda: calls_in(path) > 5000, "many calls") # noqa: B023
                    tracer.send_signal(signal.SIGKILL)
                program.kill()
            if name.endswith("pftrace"):
                assert len(perfetto_of(path, whole=False).named("__cudaLaunchKernel")) > 4000
                continue
            with open(path) as file:
                text = file.read()
            events = json.loads(text[:text.rindex("\n")].rstrip(",") + "]")
            assert len([e for e in events if e["name"] == "__cudaLaunchKernel"]) > 4000


def parts(folder, stem="x"):
    """Files of a timeline that follow each other, each read by itself."""
    return [perfetto_of(f"{folder}/{name}") for name in sorted(os.listdir(folder)) if name.startswith(f"{stem}.0") and name.endswith(".pftrace")]


def test_several_files():
    """Each opens alone; together they have every call, and with --keep only the newest stay."""
    with tempfile.TemporaryDirectory() as tmp:
        _, sums = traced(f"{tmp}/x.pftrace", f"{SIM}/spin", "__cudaLaunchKernel", "--calls", "300000", flags=["--rotate-size=1MiB"])
        sizes = [os.path.getsize(f"{tmp}/{name}") for name in os.listdir(tmp) if name.endswith(".pftrace")]
        files = parts(tmp)
        traced(f"{tmp}/y.pftrace", f"{SIM}/spin", "__cudaLaunchKernel", "--calls", "300000", flags=["--rotate-size=1MiB", "--keep=1"])
        kept = sorted(name for name in os.listdir(tmp) if name.startswith("y.") and name.endswith(".pftrace"))
        newest = parts(tmp, "y")
    assert len(files) > 1 and max(sizes) <= 1 << 20, sizes
    lost = sum(int(i.name.split()[0]) for file in files for i in file.instants if i.name.endswith("events lost"))
    equal(sum(len(file.named("__cudaLaunchKernel")) for file in files) + lost, counted(sums)["__cudaLaunchKernel"])
    assert all(file.slices for file in files)
    equal(len(kept), 1)
    assert kept[0] != "y.000001.pftrace" and newest[0].slices


def test_the_last():
    """What is older than --last is not in the file; what a signal asks for is in one with a number."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/x.pftrace"
        program = [f"{SIM}/workload", "alloc 4096; sleep 6000; launch; sync; free all"]
        with subprocess.Popen([GPUSONDE, "trace", "--socket=none", f"--timeline={path}", "--last=2s", "--", *program], env=ENV,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
            def asked():
                tracer.send_signal(signal.SIGUSR1)
                names = sorted((name for name in os.listdir(tmp) if name.count(".") == 2), key=lambda name: int(name.split(".")[1]))
                found = [perfetto_of(f"{tmp}/{name}", whole=False) for name in names]
                return next((file for file in found if file.named("cudaMalloc")), None)
            wait_for(lambda: os.path.exists(path), "tracing to begin")
            asked_for = wait_for(asked, "a file that a signal asked for, with the first call")
            equal(tracer.wait(60), 0, tracer.stderr.read())
        last = perfetto_of(path)
    assert any(i.name == "written because of a signal" for i in asked_for.instants), asked_for.instants
    assert any(i.name == "written because of the end of tracing" for i in last.instants), last.instants
    equal((len(last.named("cudaMalloc")), len(last.named("cudaLaunchKernel")), len(last.named("cudaFree"))), (0, 1, 1))


def test_the_last_before_an_xid():
    scenario = f"{SOURCE}/sim/scenarios/driver-future.yaml"
    with tempfile.TemporaryDirectory() as tmp:
        traced(f"{tmp}/x.pftrace", f"{SIM}/workload", "launch; sync; sleep 6000", flags=["--last=60s"], env=dict(ENV, GPUSONDE_SIM_SCENARIO=scenario))
        file = perfetto_of(f"{tmp}/x.1.pftrace")
    names = {i.name for i in file.instants}
    assert {"XID 999", "written because of XID 999"} <= names, names
    equal(len(file.named("cudaLaunchKernel")), 1)


def test_the_last_before_a_finding():
    """
    What is found while tracing goes on is said, and what is kept is written with the calls until then: of a program that copies all the time. Of one that
    does not, that is not found. A busy machine may have others, and another one first.
    """
    tracing()
    env = dict(ENV, GPUSONDE_SIM_CUDA_COPY_GBPS="0.1")
    with tempfile.TemporaryDirectory() as tmp:
        for name, script in (("x", "repeat 1500; copy h2d 1048576; end"), ("y", "repeat 140; copy h2d 1024; sleep 100; end")):
            done = command("trace", "--socket=none", f"--timeline={tmp}/{name}.pftrace", "--last=60s", "--", f"{SIM}/workload",
                           f"alloc 1048576; {script}; free", env=env)
            equal(done.returncode, 0, done.stderr)
            found = re.findall("^gpusonde trace: found: (.*)$", done.stderr, re.M)
            equal(("copy_bound" in found, os.path.exists(f"{tmp}/{name}.1.pftrace")), (name == "x", bool(found)), done.stderr)
            if name == "x":
                written, last = perfetto_of(f"{tmp}/x.1.pftrace"), perfetto_of(f"{tmp}/x.pftrace")
                assert f"written because of {found[0]}" in {i.name for i in written.instants}, (found, written.instants)
                calls = len(written.named("cudaMemcpy")), len(last.named("cudaMemcpy"))
                assert 0 < calls[0] < calls[1] == 1500, calls


# Runs a program of CUDA within a span that it writes of itself; the clock, and what is added to the file, are its arguments.
SPANS = """
import json, os, subprocess, sys, time
clock, path, program, script, wide = sys.argv[1:]
now = {"monotonic": time.monotonic_ns, "wall": time.time_ns}[clock]
base = now() - 10**9 if wide else 0
us = lambda ns: (ns - base) / 1000
begin = now()
subprocess.run([program, script], check=True, stdout=subprocess.DEVNULL)
end = now()
events = [{"ph": "B", "name": "train", "cat": "python", "pid": os.getpid(), "tid": os.getpid(), "ts": us(begin)},
          {"ph": "X", "name": "step", "cat": "python", "pid": os.getpid(), "tid": os.getpid(), "ts": us(begin + 1000), "dur": (end - begin - 2000) / 1000},
          {"ph": "E", "pid": os.getpid(), "tid": os.getpid(), "ts": us(end)}]
with open(path, "w") as file:
    json.dump({"traceEvents": events, "baseTimeNanoseconds": base} if wide else events, file)
"""


def test_stacks():
    """With --stacks each call has the lines of Python that make it, as they are; without it none."""
    program = "import ctypes\ncuda = ctypes.CDLL('libcudart.so.13')\ndef inner():\n    cuda.cudaDeviceSynchronize()\ndef outer():\n    inner()\nfor _ in range(3):\n    outer()\n"
    with tempfile.TemporaryDirectory() as tmp:
        for kinds in ("python", "all"):
            traced(f"{tmp}/x.pftrace", "/usr/bin/python3", "-c", program, flags=[f"--stacks={tmp}/x.folded", f"--stacks-of={kinds}"])
            with open(f"{tmp}/x.pftrace", "rb") as file:
                data = file.read()
            calls = perfetto.read(data).named("cudaDeviceSynchronize")
            equal(len(calls), 3)
            for call in calls:
                equal([tuple(frame) for frame in call.stack if frame.kind == 3],
                      [("<module>", "<string>", 8, 3), ("outer", "<string>", 6, 3), ("inner", "<string>", 4, 3)], "interpreted frames")
                assert kinds == "python" or any(frame.kind == 1 for frame in call.stack), call.stack
        decoded(data)
        traced(f"{tmp}/y.pftrace", "/usr/bin/python3", "-c", program)
        assert not any(s.stack for s in perfetto_of(f"{tmp}/y.pftrace").slices)


def test_spans_of_the_program():
    """What it wrote of itself is on our clock, whichever clock it used."""
    for clock, wide in (("monotonic", ""), ("wall", ""), ("wall", "base")):
        with tempfile.TemporaryDirectory() as tmp:
            done, _ = traced(f"{tmp}/x.pftrace", "/usr/bin/python3", "-c", SPANS, clock, f"{tmp}/own.json", f"{SIM}/workload", "launch; sync", wide,
                             flags=[f"--merge={tmp}/own.json"])
            timeline = perfetto_of(f"{tmp}/x.pftrace")
        equal(done.stderr, "")
        (train,), (step,), (launch,) = timeline.named("train"), timeline.named("step"), timeline.named("cudaLaunchKernel")
        equal((train.category, step.category, train.args, train.depth, step.depth), ("program", "program", {"category": "python"}, 0, 1))
        assert train.track.name.endswith("(written by the program)"), train.track
        # Microseconds with decimals as Python's doubles have them: the wall clock's are off by less than one.
        assert train.begin - 2000 <= step.begin <= launch.begin < launch.end <= step.end <= train.end + 2000, f"{train} {step} {launch}"


def test_spans_that_are_refused():
    """The timeline is whole all the same."""
    old = '[{"ph":"X","name":"old","ts":1,"dur":1,"pid":1,"tid":1}]'
    for text, why in (("[" * 100, "nested too deeply"), ("no JSON", "it is no JSON"), ("{}", "no events of Chrome's format"), (old, "no slice was while tracing ran")):
        with tempfile.TemporaryDirectory() as tmp:
            with open(f"{tmp}/own.json", "w", encoding="ascii") as file:
                file.write(text)
            done = command("trace", "--socket=none", f"--timeline={tmp}/x.pftrace", f"--merge={tmp}/own.json", "--", f"{SIM}/workload", "launch; sync", env=ENV)
            timeline = perfetto_of(f"{tmp}/x.pftrace")
        contains(done.stderr, "own.json is not merged")
        contains(done.stderr, why)
        equal((done.returncode, len(timeline.named("cudaLaunchKernel"))), (1, 1), done.stderr)
    with tempfile.TemporaryDirectory() as tmp:
        os.mkfifo(f"{tmp}/own.json")
        done = command("trace", "--socket=none", f"--timeline={tmp}/x.pftrace", f"--merge={tmp}/own.json", "--", f"{SIM}/workload", "launch", env=ENV)
    contains(done.stderr, "own.json is not merged")


def test_lost():
    """A small buffer and a fast program: what is lost is said in the file, to the event."""
    with tempfile.TemporaryDirectory() as tmp:
        done, sums = traced(f"{tmp}/x.pftrace", f"{SIM}/spin", "__cudaLaunchKernel", "--threads", "4", "--calls", "50000",
                            flags=["--trace-buffer=64KiB"])
        timeline = perfetto_of(f"{tmp}/x.pftrace")
    calls = counted(sums)["__cudaLaunchKernel"]
    equal(calls, 200000)
    lost, events = lost_in(timeline), sums["events"]
    equal((lost, events["received"] + events["dropped"]), (events["dropped"], events["produced"]))
    if not lost:
        raise Skip("nothing was lost on this machine")
    contains(done.stderr, f"{lost} events were lost")
    launches = [s for s in timeline.slices if s.track.kind == "thread" and "LaunchKernel" in s.name]
    # What else may be lost: the program's end, a kernel's name, that a function was called for the first time.
    assert 0 <= len(launches) + lost - calls <= events["produced"] - sum(counted(sums).values()), f"{len(launches)} slices and {lost} lost of {calls}"


def lost_in(timeline):
    return sum(int(i.name.split()[0]) for i in timeline.instants if i.name.endswith("events lost"))


def test_ended_while_it_runs():
    """Threads that launch as fast as they can when tracing ends: what is counted is in the file, to the call, or said to be lost."""
    tracing()
    for round_ in range(4):
        with tempfile.TemporaryDirectory() as tmp, subprocess.Popen([f"{SIM}/spin", "__cudaLaunchKernel", "--threads", "3", "--seconds", "120"], env=ENV,
                                                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            path = f"{tmp}/x.pftrace"
            with subprocess.Popen([GPUSONDE, "trace", "--socket=none", "--json", f"--output={tmp}/sums", f"--timeline={path}", "-p", str(program.pid)], env=ENV,
                                  stderr=subprocess.PIPE, text=True) as tracer:
                wait_for(lambda: tracer.poll() is not None or (os.path.exists(path) and os.path.getsize(path) > 100_000), "some of the timeline") # noqa: B023
                tracer.terminate()
                said = tracer.stderr.read()
            program.kill()
            equal(tracer.returncode, 0, said)
            with open(f"{tmp}/sums", encoding="utf-8") as file:
                sums = json.load(file)
            timeline = perfetto_of(path)
        calls, found, lost, events = counted(sums), calls_of(timeline), lost_in(timeline), sums["events"]
        assert calls["__cudaLaunchKernel"] > 10_000, calls
        equal((events["received"] + events["dropped"], lost), (events["produced"], events["dropped"]), f"round {round_}")
        if lost == 0:
            equal({call: found[call] for call in calls}, dict(calls), f"round {round_}")
        else:
            assert 0 <= sum(found.values()) + lost - sum(calls.values()) <= events["produced"] - sum(calls.values()), f"{found}, {lost} lost, of {calls}"


def test_hostile_names():
    with tempfile.TemporaryDirectory() as tmp:
        program = shutil.copy(f"{SIM}/workload", f"{tmp}/a\"\\\x1b<é")
        for name in ("x.pftrace", "x.json"):
            traced(f"{tmp}/{name}", program, "launch; sync")
        names = {t.name for t in perfetto_of(f"{tmp}/x.pftrace").tracks.values() if t.kind == "process"}
        with open(f"{tmp}/x.json", encoding="utf-8") as file:
            json_names = {e["args"]["name"] for e in json.load(file) if e["ph"] == "M" and e["name"] == "process_name" and e["pid"] < 1 << 30}
    equal(names, {"a\"\\?<é"})
    equal(json_names, names)


def test_refused():
    for path, flags, status, why in (("x.txt", [], 2, "it must be a file whose name ends in .pftrace or .json"),
                                     ("/nonexistent/x.json", [], 1, "cannot write /nonexistent/x.json: No such file or directory"),
                                     ("/nonexistent/x.json", ["--last=5s"], 1, "cannot write /nonexistent/x.json: No such file or directory"),
                                     ("x.json", ["--keep=3"], 2, "add --rotate-size or --rotate-time"),
                                     ("x.json", ["--last=1s", "--rotate-time=1s"], 2, "leave out --rotate-size"),
                                     ("x.json", ["--last=1h"], 2, "--last cannot be \"1h\": it must be a time from 1s to 10m"),
                                     ("x.json", ["--rotate-size=1KiB"], 2, "a size of at least 1MiB")):
        done = command("trace", f"--timeline={path}", *flags, "--", "true", env=ENV)
        equal(done.returncode, status, done.stderr)
        contains(done.stderr, why)


def test_a_full_disk():
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        os.symlink("/dev/full", f"{tmp}/x.json")
        done = command("trace", "--socket=none", f"--timeline={tmp}/x.json", "--", f"{SIM}/workload", "launch; sync", env=ENV)
    equal(done.returncode, 1, done.stderr)
    contains(done.stderr, "No space left on device")
    contains(done.stdout, '"cudaLaunchKernel":{"count":1')


if __name__ == "__main__":
    run()
