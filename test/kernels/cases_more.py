# SPDX-License-Identifier: Apache-2.0
"""Cases of what, on this machine's kind, other tests see without a virtual machine: the agent, arguments, names, exceptions."""
import collections
import contextlib
import json
import os
import re
import statistics
import subprocess

from lib import counts, e2e
from kernels import cases
from kernels.cases import case, document, ended_well

UNITS = ("attach", "attach_gemm", "attach_shapes", "attach_lives", "kernel_sites") # of test/unit/trace, where the engine meets the kernel
NODE = "/sim/node.yaml"
SERIES_S = 20   # until all series are there, natively


def add_files(image, build):
    """What they need beside what is there."""
    image.add_program(f"{build}/sim/libnvidia-ml.so.1", "/sim/libnvidia-ml.so.1")
    # As NVIDIA's driver for arm64 is entered; without thunks most functions save first where they return to.
    image.add_program(f"{build}/sim/cuda/thunk/libcuda.so.1", "/sim/libcuda.so.1")
    image.add_program(f"{build}/sim/cuda/libcuda.so.1", "/plain/libcuda.so.1")
    image.files["/sim/xids.yaml"] = SCENARIO.encode()
    image.add_program(f"{build}/bench/probe_cost", "/gs/probe_cost")


def add_through(image, build):
    image.add(f"{build}/test/kernels/through.so", "/through/libcuda.so.1")
    image.add_program(f"{build}/test/kernels/through", "/gs/through")


# ---- the agent, every view ----

# Loads that stay as they are, so that two machines can be compared.
SCENARIO = """cycle: 60s
seed: 1
gpus:
  - {model: h100-sxm, count: 8}
processes:
  - {name: /usr/bin/python3, gpus: all, memory: 4GiB, load: {gpu: 60, memory: 30}}
  - {name: /opt/vllm/bin/vllm, gpus: "0-3", memory: 2GiB, load: {gpu: 10}}
xids:
  - {xid: 79, gpu: 0, at: 0s, every: 2s}
"""
PAGES = {
    "metrics": "/metrics", "openmetrics": "/metrics", "dcgm": "/metrics/dcgm", "dcgm49": "/metrics/dcgm?names=4.9", "gpus": "/api/v1/gpus",
    "processes": "/api/v1/processes", "node": "/api/v1/node", "trace": "/api/v1/trace", "kernels": "/api/v1/kernels",
    "snapshot": "/api/v1/snapshot", "ready": "/readyz", "health": "/healthz",
}
COMMANDS = {"gpus": "gpus", "ps": "ps", "doctor": "doctor --atop-listen none"}
AGENT = """
export GPUSONDE_NVML_LIBRARY=/sim/libnvidia-ml.so.1 GPUSONDE_SIM_SCENARIO=/sim/xids.yaml
/gs/gpusonde agent --listen 127.0.0.1:9470 --atop-listen 127.0.0.1:59123 --socket $OUT/agent.sock --state-dir /tmp/state >log 2>&1 &
agent=$!
page() {
	wget -q -O $1 --header "Accept: $3" http://127.0.0.1:9470$2
}
until page metrics /metrics text/plain && grep -q '^gpusonde_gpu_xid_errors_total.* [3-9]' metrics; do
	kill -0 $agent || { cat log >&2; exit 90; }
	sleep 0.3
done
while page trace /api/v1/trace text/plain && grep -q '"trace": *null' trace; do # the engine begins later
	kill -0 $agent || { cat log >&2; exit 92; }
	sleep 0.3
done
""" + "".join(f"page {name} '{path}' {'application/openmetrics-text' if name == 'openmetrics' else 'text/plain'} || exit 91\n"
              for name, path in PAGES.items()) + """
printf 'T\\002' | nc -w 5 127.0.0.1 59123 >atop_types
printf 'S\\002' | nc -w 5 127.0.0.1 59123 >atop_stats
""" + "".join(f"/gs/gpusonde {command} --socket $OUT/agent.sock >said_{name} 2>&1; echo $? >status_{name}\n" for name, command in COMMANDS.items()) + """
kill -TERM $agent
read begun _ </proc/uptime
wait $agent
echo $? >status
"""
# What may differ between two machines that simulate the same: the machine itself, who and what runs it and traces there, time, and what it costs.
UNLIKE = re.compile(r"gpusonde_(build_info|host_|cuda_|nccl_|source_|node_|agent_|self_|trace_|timeline_|reading|scrape|nvml_|kmsg_|http_|atop_|process_|.*_seconds|.*_timestamp)")


def family_labels(page):
    """Series of a page without their numbers; processes are told by name, not by PID."""
    found = set()
    for series in e2e.samples(page):
        if not UNLIKE.match(series):
            found.add(re.sub(r'pid="[^"]*"', 'pid=""', series))
    return found


def steady(page):
    """Numbers that the simulation does not change."""
    names = r"gpusonde_gpu_(info|present|memory_total_bytes|power_limit\w*|clock_max\w*|.*_info|mig_\w*|pcie_link_\w*_max|nvlink_\w*links?)\b"
    return {series: value for series, value in e2e.samples(page).items() if re.match(names, series)}


def shape(value):
    """Of a document: its keys and types, lists by their first element."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        # one of numbers is empty while none of them is known
        return [shape(value[0])] if value and isinstance(value[0], dict) else []
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def unlike(here, there, path="gpus"):
    """Where two shapes differ."""
    if isinstance(here, dict) and isinstance(there, dict):
        return [where for key in here.keys() | there.keys() for where in unlike(here.get(key), there.get(key), f"{path}.{key}")]
    if isinstance(here, list) and isinstance(there, list) and here and there:
        return unlike(here[0], there[0], f"{path}[]")
    return [] if here == there else [f"{path}: {here}, not {there}"]


def x86_says(here, told):
    """The same scenario, natively, by this build, once it has all series of @here and the members of @told; some come after several readings."""
    with e2e.Agent(scenario=SCENARIO) as agent:
        with contextlib.suppress(AssertionError): # the caller says how they differ
            e2e.wait_for(lambda: family_labels(agent.metrics()) == here and shape(agent.get("/api/v1/gpus").json()["gpus"]) == shape(told), "the same series and members",
                         seconds=SERIES_S)
        return agent.metrics(), agent.get("/metrics/dcgm").text, agent.get("/api/v1/gpus").json()


def check_pages(result):
    page = {name: result.text(name) for name in PAGES}
    here = family_labels(page["metrics"])
    told = json.loads(page["gpus"])["gpus"]
    metrics, dcgm, gpus = x86_says(here, told)
    there = family_labels(metrics)
    assert here == there, f"series that only this machine has: {sorted(here - there)[:5]}; that only x86-64 has: {sorted(there - here)[:5]}"
    assert len(steady(metrics)) >= 8 * 3 and steady(page["metrics"]) == steady(metrics), \
        f"other numbers: {[(s, v, steady(metrics).get(s)) for s, v in steady(page['metrics']).items() if steady(metrics).get(s) != v][:5]}"
    assert page["openmetrics"].endswith("# EOF\n") and "# EOF" not in page["metrics"], "no OpenMetrics when that is asked for"
    names = [{line.split("{")[0] for line in text.split("\n") if "{" in line} for text in (page["dcgm"], dcgm)]
    assert names[0] == names[1] and "DCGM_FI_DEV_GPU_UTIL" in names[0] and page["dcgm49"] != page["dcgm"], f"DCGM's names: {names[0] ^ names[1]}"
    assert len(told) == 8 and [(g["uuid"], g["name"]) for g in told] == [(g["uuid"], g["name"]) for g in gpus["gpus"]], f"other GPUs: {told}"
    assert shape(told) == shape(gpus["gpus"]), f"its JSON has another shape than x86-64's: {unlike(shape(told), shape(gpus['gpus']))[:5]}"
    assert told[0]["xids"][0]["xid"] == 79 and told[0]["xids"][0]["severity"] == "critical", f"no XID 79: {told[0]}"
    for name, key in {"processes": "processes", "node": "node", "trace": "trace", "kernels": "kernels", "snapshot": "gpus"}.items():
        assert json.loads(page[name])[key] is not None, name
    assert len(json.loads(page["processes"])["processes"]) >= 12, page["processes"][:500]
    assert page["health"] == "OK" and "simulated" in page["ready"], page["ready"]


def atop(result, name):
    """The text of an answer; four bytes come first, version and length."""
    raw = result.files[name]
    assert raw[:1] == b"\2" and int.from_bytes(raw[1:4], "big") == len(raw) - 4, f"{name}: {raw[:80]}"
    return raw[4:].decode()


@case(AGENT, arches=("arm64",), quick=("arm64",))
def agent_shows_the_simulated_node(results, _kernel):
    """Each view as on x86-64, XIDs, atop's protocol; SIGTERM ends it."""
    result = ended_well(results["agent-shows-the-simulated-node"])
    check_pages(result)
    assert atop(result, "atop_types").split("@")[0] == "8", atop(result, "atop_types")
    assert len(atop(result, "atop_stats").split("@")[1:]) >= 8, atop(result, "atop_stats")
    said = {name: result.text(f"said_{name}") for name in COMMANDS}
    assert said["gpus"].count("H100") == 8 and "79" in said["gpus"] and "SIMULATED" in said["gpus"], said["gpus"]
    assert "python3" in said["ps"] and "vllm" in said["ps"], said["ps"]
    assert "XID 79" in said["doctor"] and "SIMULATED" in said["doctor"], said["doctor"]
    assert [result.text(f"status_{name}").strip() for name in ("gpus", "ps")] == ["0", "0"], said
    assert result.text("status").strip() == "0", f"SIGTERM: {result.text('log')[-800:]}"


# ---- calls and their arguments ----

EVERYTHING = ("alloc 4096; alloc 65536 managed; alloc 8192 async; alloc 4096 host; alloc 4096 pitch; alloc 4096 array; alloc 2097152 vmm;"
              "copy h2d 4096; copy d2h 100 async; memset 64; stream create; event record; event wait; event sync; repeat 20; launch 3 64; end;"
              "graph 3 2; sync stream; stream destroy; stream use 0; sync; bad alloc; bad free; bad stream; bad launch; free all;"
              "threads 4; stream create; repeat 25; alloc 1000; launch 5 32; copy h2d 77; sync stream; free; end; end")


def workload(steps, driver="/sim"):
    return f"""
export GPUSONDE_SIM_SCENARIO={NODE} GPUSONDE_SIM_CUDA_KERNEL_US=0 LD_LIBRARY_PATH={driver}:/sim
for library in {driver}/libcuda.so.1 /sim/libcudart.so.13; do
	/gs/gpusonde probes $library --json >${{library##*/}} || exit
done
export GPUSONDE_SIM_CUDA_LOG=$OUT/log GPUSONDE_SIM_CUDA_LOG_EVENTS=1
CUDA_VISIBLE_DEVICES=0 /gs/gpusonde trace --raw --json -- /sim/workload-late "{steps}" || exit
cat log.*.events >events
rm log.*
"""


def lines(result, name):
    return [json.loads(line) for line in result.text(name).split("\n") if line.startswith("{")]


def told_always():
    """Rows of the table of probes that are told of within other calls, too."""
    found = set()
    for table in ("probes_cuda.def", "probes_cudart.def"):
        with open(f"{e2e.SOURCE}/src/trace/{table}", encoding="utf-8") as f:
            found.update(re.findall(r"^ALWAYS\(\w+, (\w+)", f.read(), re.M))
    return found


def expected(result):
    """
    As the library's own log has them, by thread and in their order: (calls that are counted, calls that are told of). A nested one is where its
    outer one is not probed.
    """
    chosen = {s["symbol"] for name in ("libcuda.so.1", "libcudart.so.13") for s in document(result, name)["sites"] if s["chosen"]}
    always, threads = told_always(), collections.defaultdict(list)
    for call in sorted(lines(result, "events"), key=lambda c: (c["t"], c["nested"])):
        threads[call["tid"]].append(call)
    counted, told = collections.defaultdict(list), collections.defaultdict(list)
    for tid, calls in threads.items():
        outer = None
        for call in calls:
            outer = outer if call["nested"] else call
            counts_itself = call["api"] in chosen and (not call["nested"] or outer["api"] not in chosen)
            if counts_itself:
                counted[tid].append(call)
            if counts_itself or (call["api"] in chosen & always and call["result"] == 0):
                told[tid].append(call)
    return counted, told


def same(event, call):
    """Whether an event of the kernel's says what the library was called with."""
    pairs = [(event["api"], call["api"]), (event.get("result", 0), call["result"])]
    if event["type"] == "launch":
        threads = 1
        for n in event["grid"] + event["block"]:
            threads *= n
        pairs.append((threads, call.get("threads", threads)))
        if event["api"].startswith("cu") and not event["api"].startswith("cuda"): # the runtime is given the host's function
            pairs.append((event["function"], call.get("handle", event["function"])))
    elif event["type"] == "call" and call["result"] == 0:
        pairs += [(event[a], call[b]) for a, b in (("size", "bytes"), ("handle", "handle")) if a in event and b in call]
        if "Mem" in call["api"] and "cpy" not in call["api"]:
            pairs += [(event[a], call[b]) for a, b in (("addr", "address"),) if a in event and b in call]
    elif event["type"] == "name":
        pairs += [(event["name"], call["name"]), (event["handle"], call["handle"])]
    if "stream" in event and "stream" in call:
        pairs.append((event["stream"], call["stream"]))
    return all(a == b for a, b in pairs)


def check_workload(result):
    """Counts, codes and arguments of every call."""
    ended_well(result)
    (wanted, told), seen = expected(result), collections.defaultdict(list)
    raw = lines(result, "stdout")
    for event in raw:
        if event.get("type") in ("call", "launch", "name"):
            seen[event["tid"]].append(event)
    # As cuInit found them, in this kernel, too.
    variables = {(e["name"], e.get("value")) for e in raw if e.get("type") == "variable"}
    assert variables == {("CUDA_VISIBLE_DEVICES", "0"), ("CUDA_DEVICE_ORDER", None)}, f"variables: {variables}"
    assert sum(map(len, wanted.values())) > 25, f"too little was called: {wanted}"
    for tid, calls in told.items():
        events = sorted(seen[tid], key=lambda e: e["time_ns"])
        assert [c["api"] for c in calls] == [e["api"] for e in events], f"thread {tid}: {len(events)} events of {len(calls)} calls"
        wrong = [(event, call) for event, call in zip(events, calls) if not same(event, call)]
        assert not wrong, f"{len(wrong)} of {len(events)} events differ: {wrong[:3]}"
    sums = collections.defaultdict(lambda: [0, collections.Counter()])
    for call in (c for calls in wanted.values() for c in calls):
        sums[call["api"]][0] += 1
        sums[call["api"]][1].update([str(call["result"])] if call["result"] else [])
    final = raw[-1]
    process = final["processes"][0]
    # Of a runtime whose functions are left to the driver's something may be missing.
    left = ["sites_refused"] if any(call["api"].startswith("cuda") for call in lines(result, "events")) else []
    assert process["incomplete"] == left, f"what is incomplete: {process['incomplete']}, wanted {left}"
    counted = counts.seen_of(final, process["pid"])
    wanted_sums = {api: [n, dict(errors) if api != "__cudaRegisterFunction" else None] for api, (n, errors) in sums.items()}
    assert counted == wanted_sums, f"sums differ: {[(a, counted.get(a), wanted_sums.get(a)) for a in {*counted, *wanted_sums} if counted.get(a) != wanted_sums.get(a)]}"
    assert counts.check_events(final) == 0, f"events were lost: {final['events']}"
    return {"simulated": f"{sum(n for n, _ in wanted_sums.values())} calls, {sum(map(len, seen.values()))} events exact, arguments too"}


def add_workload(name, steps, **more):
    cases.CASES[name] = cases.Case(workload(steps), lambda results, _kernel: check_workload(results[name]), arches=("arm64",), **more)


add_workload("arguments-through-the-runtime", EVERYTHING, quick=("arm64",))
add_workload("arguments-of-the-driver", "api driver; " + EVERYTHING, quick=("arm64",))
add_workload("arguments-per-thread-streams", "streams perthread; api driver; alloc 4096; repeat 20; launch 2 32; end; sync; free all")


def add_unit(name):
    """By the machine's calling convention, in C: registers, the stack beyond them, structures by value and by pointer, returns, nesting."""
    title = f"unit-{name.replace('_', '-')}"

    def judge(results, _kernel):
        result = ended_well(results[title])
        said = result.text("stdout") + result.text("stderr")
        assert "not ok" not in said and "SKIP" not in said and re.search(r"^ok ", said, re.M), f"{title}: {result.says()}"

    cases.CASES[title] = cases.Case(f"cd /tmp; CMOCKA_MESSAGE_OUTPUT=TAP /gs/test_{name}", judge, arches=("arm64",), units=(name,), since=cases.MULTI_SINCE)


for unit in UNITS:
    add_unit(unit)


@case(f"""
export GPUSONDE_SIM_SCENARIO={NODE} GPUSONDE_SIM_CUDA_KERNEL_US=0 LD_LIBRARY_PATH=/sim
/gs/gpusonde trace --kernels --json -- /sim/workload-late "api driver; repeat 7; launch 3 64; end; launch 5 128; sync"
""", arches=("arm64",), quick=("arm64",))
def kernels_have_names(results, _kernel):
    result = ended_well(results["kernels-have-names"])
    said = json.loads(next(line for line in result.text("stdout").split("\n") if line.startswith('{"processes"')))
    rows = [row for process in said["kernels"]["processes"] for row in process["kernels"]]
    assert [(r["symbol"], r["launches_total"]) for r in rows] == [("work", 8)], f"kernels: {rows}"
    shapes = {(tuple(s["grid"]), tuple(s["block"])): s["launches"] for s in rows[0]["shapes"]}
    assert shapes == {((3, 1, 1), (64, 1, 1)): 7, ((5, 1, 1), (128, 1, 1)): 1}, f"shapes: {shapes}"


# ---- no single step ----

# A page for instructions out of line appears in a process when the first is stepped; return probes have their trampoline there, too. At last a probe
# that must be stepped, by the kernel's own interface, so that it is known to show.
STEPPED = {"sites": ("cuStreamCreate", 0), "real": ("cuCtxSynchronize", 4)} # function, and where its first mov is: in NVIDIA's behind adrp
STEPS = """
events=/sys/kernel/tracing
until_called() {
	until [ "$(grep -c api truth)" = $(($(grep -c . PLAN) + $1)) ]; do
		kill -0 $tracer || exit 90
		sleep 0.2
	done
}
mkfifo plan
touch truth
exec 3<>plan
/gs/gpusonde trace --trace-return-probes=no --json -- /gs/driver_calls LIBRARY truth <plan 3>&- >traced &
tracer=$!
cat PLAN >&3
echo cuInit 1 >&3
until_called 1
pid=$(sed -n 's/^{"pid":\\([0-9]*\\).*/\\1/p' truth)
cat /proc/$pid/maps >maps
read function offset <PLAN-stepped
echo "p:control/stepped LIBRARY:$offset" >>$events/uprobe_events || exit 91
echo 1 >$events/events/control/stepped/enable || exit 92
echo $function 1 >&3
until_called 2
cat /proc/$pid/maps >maps_stepped
echo 0 >$events/events/control/stepped/enable
echo -:control/stepped >>$events/uprobe_events
exec 3>&-
wait $tracer || exit
"""


def stepped(path, which):
    """A function of the library, and where in the file its mov is, which nothing but a single step executes: for STEPS."""
    symbol, skip = STEPPED[which]
    said = subprocess.run(["readelf", "-W", "-l", "--dyn-syms", path], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"), check=True).stdout
    address = int(re.search(rf"([0-9a-f]+) +\d+ FUNC .* {symbol}(?:@|$)", said, re.M)[1], 16) + skip
    loads = [[int(n, 16) for n in load] for load in re.findall(r"^ +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", said, re.M)]
    offset = next(at + address - begin for at, begin, size in loads if begin <= address < begin + size)
    with open(path, "rb") as f:
        f.seek(offset)
        instruction = int.from_bytes(f.read(4), "little")
    assert instruction & 0x7f800000 == 0x52800000, f"{path}: no mov at {symbol}+{skip}: {instruction:#x}"
    return f"{symbol} {offset:#x}\n".encode()


def no_page(result, name="maps"):
    maps = result.text(name)
    assert "libcuda.so.1" in maps, f"these are another program's: {maps}"
    return "[uprobes]" not in maps


def check_not_stepped(result):
    assert no_page(result), f"an instruction was stepped out of line: {result.text('maps')}"
    assert not no_page(result, "maps_stepped"), "a step out of line does not show, so that there was none is not known"


@case(STEPS.replace("LIBRARY", "/sites/libcuda.so.1").replace("PLAN", "/plan/sites"), arches=("arm64",))
def specimens_are_not_stepped(results, kernel):
    result = ended_well(results["specimens-are-not-stepped"])
    check_not_stepped(result)
    seen = counts.seen_of(document(result, "traced"), json.loads(result.text("truth"))["pid"])
    assert set(seen) == cases.of_class(kernel, "E") | cases.of_class(kernel, "C"), f"not all were hit: {seen}"


@case(STEPS.replace("LIBRARY", "/real/550/libcuda.so.1").replace("PLAN", "/plan/real-550"), arches=("arm64",), quick=("arm64",), needs=("driver-550",))
def real_driver_is_not_stepped(results, _kernel):
    """Each of its entry points is hit."""
    result = ended_well(results["real-driver-is-not-stepped"])
    check_not_stepped(result)
    seen = counts.seen_of(document(result, "traced"), json.loads(result.text("truth"))["pid"])
    assert len(seen) > 150, f"too few were hit: {len(seen)}"


# ---- exceptions ----

ENTRY, ENTRY_ONLY = "cuStreamSynchronize", "cuEventSynchronize" # through.S


@case(f"""
/gs/through /through/libcuda.so.1 {ENTRY} {ENTRY_ONLY} >alone || exit
/gs/gpusonde trace --trace-return-probes=no --json -- /bin/sh -c 'exec /gs/through /through/libcuda.so.1 {ENTRY} {ENTRY_ONLY} >entries' >traced_entries || exit
/gs/gpusonde trace --json -- /bin/sh -c '
	/gs/through /through/libcuda.so.1 {ENTRY_ONLY} >both || exit
	/gs/through /through/libcuda.so.1 --no-throw {ENTRY} >returns
' >traced_both
""", quick=("arm64",))
def exceptions_are_caught(results, _kernel):
    """
    Exceptions and cancelled threads unwind through functions that are probed at their entry. Return probes sit in functions only that throw
    nothing, and what docs/tracing.md says of them is true: a backtrace ends there, and so does a cancelled thread's unwinding.
    """
    result = ended_well(results["exceptions-are-caught"])
    alone = json.loads(result.text("alone"))["functions"]
    assert all(f["caught"] == f["thrown"] == 100 and f["destroyed"] == 1 for f in alone.values()), f"untraced: {alone}"
    for name, functions in (("entries", (ENTRY, ENTRY_ONLY)), ("both", (ENTRY_ONLY,))):
        said = json.loads(result.text(name))
        assert said["functions"] == {f: alone[f] for f in functions}, f"{name}: {said}, untraced {alone}"
        seen = counts.seen_of(document(result, f"traced_{name}"), said["pid"])
        assert {f: n for f, (n, _) in seen.items()} == {f: alone[f]["calls"] for f in functions}, f"{name}: counted {seen}"
    returns = json.loads(result.text("returns"))["functions"][ENTRY]
    assert returns["frames"] < alone[ENTRY]["frames"] and returns["destroyed"] == 0, f"with return probes: {returns}"
    return {"exceptions": f"caught at entry probes, {sum(f['caught'] for f in alone.values())} of {sum(f['thrown'] for f in alone.values())}"}


# ---- what a call costs ----

COST = """
/gs/probe_cost --rounds 7 /real/550/libcuda.so.1 cuCtxSynchronize >fails || exit
/gs/probe_cost --rounds 7 /sites/libcuda.so.1 cuLaunchKernel >succeeds
"""
COST_MAX = 2    # beyond is a defect; what was promised is for bench/arm64_cost.py to say


def cost_ratio(subject, ours, empty):
    """Measured in turns: the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(subject["ns"][ours], subject["ns"][empty]))


def cost_subjects(result):
    """What probe_cost says of a function that fails and of one that succeeds; each call gives an event."""
    subjects = [json.loads(result.text(name))["subjects"][0] for name in ("fails", "succeeds")]
    for subject in subjects:
        assert subject["class"] == "emulated" and subject["events"] > 0 and subject["dropped"] <= subject["events"] / 100, subject
    return subjects


@case(COST, arches=("arm64",), needs=("driver-550",))
def probes_cost(results, _kernel):
    """An entry and a return probe of ours, against an empty entry and an empty return probe at the same site."""
    subjects = cost_subjects(ended_well(results["probes-cost"]))
    ratios = [cost_ratio(subject, ours, "empty_pair") for ours in ("our_pair", "counting_pair") for subject in subjects]
    assert max(ratios) < COST_MAX, f"a traced call costs {ratios} times an empty pair of probes"
    return {"cost": f"{max(ratios[:2]):.2f} times an empty pair (emulated), {max(ratios[2:]):.2f} where no event is told"}
