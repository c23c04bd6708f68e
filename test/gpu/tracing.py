# SPDX-License-Identifier: Apache-2.0
"""Tracing, of small real programs that say what they did: by "gpusonde trace" and by the agent; and what it does to them."""
import contextlib
import json
import re
import statistics
import sys

from machine import HERE, KERNEL_MS, run
from programs import Program, plain, traced
from rows import HARM, LIE, Check, NotCompared, Tolerance

TURNS, THROWS, LAUNCHES = 50, 200, 20000
JOB_KERNEL_MS, JOB_S, JOB_LIMIT = 1, 1.5, 0.02


CHECKS = [
    Check("trace_counts", "calls of a CUDA program: counts and errors of each function", LIE, "exactly"),
    Check("trace_bytes", "the same: bytes allocated, copied, set", LIE, "exactly"),
    Check("trace_kernels", "the same: kernels by name, and their launches", LIE, "exactly"),
    Check("trace_output", "the program's output, traced and not", HARM, "equal, numbers right"),
    Check("trace_events", "events of the trace that were lost, of those produced", LIE, "each is counted"),
    Check("trace_runtime", "calls of a program of the CUDA runtime (nvcc)", LIE, "exactly"),
    Check("trace_agent", "calls of a program by the agent, while it lives", LIE, "exactly"),
    Check("trace_exceptions", "C++ exceptions around traced calls that fail", HARM, "all caught"),
    Check("trace_busy", "estimated busy seconds of a traced program, to its CUDA events", LIE, "15% or 0.1 s", True),
    Check("cupti_calls", "calls of the same program, counted by CUPTI", LIE, "exactly"),
    Check("cupti_time", "estimated busy seconds, to kernels' time by CUPTI", LIE, "15% or 0.1 s"),
    Check("cost_job", f"kernels of {JOB_KERNEL_MS} ms in a second, traced to untraced", HARM, f"at most {JOB_LIMIT:.0%} fewer", True),
    Check("cost_launch", "time that tracing adds to one launch of an empty kernel"),
    Check("cost_latency", "launch and wait of an empty kernel, traced to untraced"),
    Check("torch_output", "PyTorch on the GPU: output, traced and not, exceptions caught", HARM, "equal"),
    Check("torch_operators", "PyTorch on the GPU: calls of operators, to torch.profiler's", LIE, "exactly"),
    Check("torch_launches", "PyTorch on the GPU: launches of kernels, to CUPTI's by torch.profiler", LIE, "exactly"),
]
# What cuInit and its like do before anybody counts, and calls that CUPTI itself is started by.
BEFORE_CUPTI = {"cuInit"}


def by_name(document, pid):
    process = next((p for p in document["processes"] if p["pid"] == pid), None)
    if not process:
        raise AssertionError(f"process {pid} was not seen: {[p['pid'] for p in document['processes']]}")
    return {c["api"]: c for c in process["calls"]}


def counts(calls):
    return {name: (c["count"], c["errors"]) for name, c in calls.items()}


def different(ours, theirs):
    names = sorted(n for n in set(ours) | set(theirs) if ours.get(n) != theirs.get(n))
    return "; ".join(f"{n}: {ours.get(n, 'nothing')} against {theirs.get(n, 'nothing')}" for n in names[:3])


def listed(numbers):
    return ", ".join(f"{name} {n}" for name, n in numbers.items()) or "none"


def without_pid(text):
    return re.sub(r'"pid":\d+', "", text)


def probed(machine, library):
    """Names of a library's functions that carry a probe; None where it cannot be asked."""
    out = run(machine.gpusonde, "probes", "--json", library, env=machine.trace_env)
    return {s["symbol"] for s in json.loads(out)["sites"] if s["chosen"]}


def library_of(machine, name="libcuda.so.1"):
    """The file that programs here load by this name."""
    with Program(machine, "calls", 1) as program:
        with open(f"/proc/{program.pid}/maps", encoding="utf-8", errors="replace") as f:
            found = next((line.split(None, 5)[5].rstrip("\n") for line in f if name.split(".so")[0] + ".so" in line), None)
        program.go()
        program.result()
    if not found:
        raise NotCompared(f"programs here load no {name}")
    return found


def of_the_driver(table, machine):
    keys = ("trace_counts", "trace_bytes", "trace_kernels", "trace_output", "trace_events")
    with table.part(*keys):
        untraced, _ = plain(machine, machine.program(), "calls", TURNS)
        known = probed(machine, library_of(machine))
        out, document = traced(machine, machine.program(), "calls", TURNS, flags=("--kernels",))
        truth = json.loads(out)
        right = machine.simulated or truth["sum"] == truth["sum_wanted"]
        table.put("trace_output", without_pid(out) == without_pid(untraced) and right, f"{len(out)} bytes, traced",
                  f"{len(untraced)} bytes, untraced", "" if right else f"the device added up to {truth['sum']}, not {truth['sum_wanted']}")
        seen, did = by_name(document, truth["pid"]), {n: c for n, c in truth["calls"].items() if n in known}
        ours, theirs = counts(seen), counts(did)
        left_out = sorted(set(truth["calls"]) - known)
        note = f"not probed: {', '.join(left_out)}" if left_out else ""
        # Others may be called within the driver, at a program's start say: what the program itself called must be right.
        ours = {n: c for n, c in ours.items() if n in did}
        table.put("trace_counts", ours == theirs, f"{sum(c[0] for c in ours.values())} calls of {len(ours)} functions",
                  f"{sum(c[0] for c in theirs.values())} of {len(theirs)} (the program)", different(ours, theirs) or note)
        bytes_ours = {n: seen[n]["bytes"] for n in did if n in seen and did[n]["bytes"]}
        bytes_did = {n: c["bytes"] for n, c in did.items() if c["bytes"]}
        table.put("trace_bytes", bytes_ours == bytes_did, f"{sum(bytes_ours.values()):,}", f"{sum(bytes_did.values()):,} (the program)",
                  different(bytes_ours, bytes_did))
        kernels = {k["symbol"] or k["name"]: k["launches_total"] for p in document["kernels"]["processes"] for k in p["kernels"]}
        table.put("trace_kernels", kernels == truth["kernels"], listed(kernels), f"{listed(truth['kernels'])} (the program)")
        events = document["events"]
        table.put("trace_events", events["received"] + events["dropped"] == events["produced"], f"{events['dropped']} lost",
                  f"{events['produced']} produced, {events['received']} received")


def of_the_runtime(table, machine, capability):
    with table.part("trace_runtime"):
        nvcc = machine.nvcc()
        real = capability.replace(".", "") if capability else "75"
        link = "shared" if machine.simulated else "static"
        path = machine.compiled("runtime", f"{machine.source}/test/programs/calls.cu", compiler=nvcc, flags=(
            "-std=c++17", "-O1", "-gencode", f"arch=compute_{real},code=[sm_{real},compute_{real}]", "-cudart", link))
        out, document = traced(machine, path, TURNS)
        truth = json.loads(out)
        did, seen = counts(truth["calls"]), counts(by_name(document, truth["pid"]))
        seen = {n: c for n, c in seen.items() if n in did}
        table.put("trace_runtime", seen == did, f"{sum(c[0] for c in seen.values())} calls of {len(seen)} functions",
                  f"{sum(c[0] for c in did.values())} of {len(did)} (the program)", different(seen, did))


def settled(e2e, agent):
    """The agent traces, and has probed what is mapped: two views in which as many sites are attached."""
    seen = []

    def attached():
        trace = agent.get("/api/v1/trace").json()["trace"]
        if trace and not trace.get("enabled") and trace.get("why"):
            raise NotCompared(f"the agent does not trace: {trace['why']}")
        node = agent.get("/api/v1/snapshot").json()
        if not seen or seen[-1][0] != node["time"]:
            seen.append((node["time"], (node["node"]["agent"]["trace_sites"] or {}).get("attached")))
        return len(seen) > 2 and seen[-1][1] and seen[-1][1] == seen[-2][1]
    e2e.wait_for(attached, "the agent to probe libcuda")


def by_the_agent(table, machine, e2e, agent):
    """An agent that traces sees a program that maps the library and waits; asked while that lives."""
    machine.need_root()
    known = probed(machine, library_of(machine))
    with Program(machine, "calls", TURNS) as program:
        settled(e2e, agent)
        program.go()
        did = {n: c for n, c in counts(program.result()["calls"]).items() if n in known}

        def process():
            found = agent.get("/api/v1/trace").json()["trace"]["processes"]
            return next((p for p in found if p["pid"] == program.pid), None)

        def calls(p):
            return {c["api"]: (c["count"], c["errors"]) for c in p["calls"] if c["api"] in did} if p else {}
        with contextlib.suppress(AssertionError): # the row says what is different
            e2e.wait_for(lambda: calls(process()) == did, "the agent's counts to be the program's", seconds=10)
        last = process()
    seen, incomplete = calls(last), ", ".join(last["incomplete"]) if last else ""
    table.put("trace_agent", seen == did, f"{sum(c[0] for c in seen.values())} calls", f"{sum(c[0] for c in did.values())} (the program)",
              different(seen, did) or (f"incomplete: {incomplete}" if incomplete else ""))


def exceptions(table, machine):
    with table.part("trace_exceptions"):
        path = machine.compiled("throwing", "throwing.cc", compiler="c++", flags=("-std=c++17", "-O1", "-ldl"))
        untraced, _ = plain(machine, path, THROWS)
        out, _ = traced(machine, path, THROWS)
        told = json.loads(out)
        table.put("trace_exceptions", out == untraced and told["thrown"] == told["caught"] == THROWS, f"{told['caught']} caught",
                  f"{told['thrown']} thrown; untraced the same")


def busy_of(document):
    return sum(d["busy_seconds_total"] or 0 for d in document["kernels"]["devices"])


def busy(table, machine):
    with table.part("trace_busy", "cupti_time", "cupti_calls"):
        command = (machine.program(), "busy", 2, KERNEL_MS, KERNEL_MS, 1 << 20)
        out, document = traced(machine, *command, flags=("--kernels",))
        seconds, ours = json.loads(out)["device_seconds"], busy_of(document)
        near = Tolerance(0.1, 0.15)
        table.put("trace_busy", near.agree(ours, seconds), f"{ours:.3f} s", f"{seconds:.3f} s (CUDA events)")
        headers, libraries = machine.cupti()
        counter = machine.compiled("cupti_count.so", "cupti_count.c", flags=(
            "-D_GNU_SOURCE", "-fPIC", "-shared", f"-I{headers}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lcupti"))
        path = f"{machine.tmp}/cupti.json"

        def count(*words):
            env = {"CUDA_INJECTION64_PATH": counter, "CUPTI_COUNT_FILE": path}
            told, _ = plain(machine, *words, **env)
            with open(path, encoding="ascii") as f:
                found = json.load(f)
            if found["error"]:
                raise NotCompared(f"CUPTI gives error {found['error']}")
            return json.loads(told), found
        _, found = count(*command)
        table.put("cupti_time", near.agree(ours, found["kernel_seconds"]), f"{ours:.3f} s",
                  f"{found['kernel_seconds']:.3f} s, {found['kernels']} kernels (CUPTI)")
        truth, found = count(machine.program(), "calls", TURNS)
        out, document = traced(machine, machine.program(), "calls", TURNS)
        seen = by_name(document, json.loads(out)["pid"])
        both = [n for n in truth["calls"] if n in seen and n not in BEFORE_CUPTI]
        ours, theirs = {n: seen[n]["count"] for n in both}, {n: found["calls"].get(n, 0) for n in both}
        table.put("cupti_calls", ours == theirs, f"{sum(ours.values())} calls of {len(both)} functions", f"{sum(theirs.values())} (CUPTI)",
                  different(ours, theirs))


def cost(table, machine):
    """In turns, so that what else the machine does falls on both."""
    with table.part("cost_job", "cost_launch", "cost_latency"):
        program, job_env = machine.program(), machine.kernels_of(JOB_KERNEL_MS)
        found = {"job": ([], []), "launches": ([], []), "latency": ([], [])}
        for _ in range(machine.rounds):
            for name, words, env in (("job", ("busy", JOB_S, JOB_KERNEL_MS, 0, 0), job_env), ("launches", ("launches", LAUNCHES), {}),
                                     ("latency", ("latency", LAUNCHES // 10), {})):
                found[name][0].append(json.loads(plain(machine, program, *words, **env)[0]))
                found[name][1].append(json.loads(traced(machine, program, *words, **env)[0]))

        def middle(name, figure):
            return [statistics.median(figure(r) for r in runs) for runs in found[name]]
        rates = middle("job", lambda r: r["kernels"]["gpusonde_spin"] / r["seconds"])
        table.put("cost_job", rates[1] >= rates[0] * (1 - JOB_LIMIT), f"{rates[1]:.1f} a second, {rates[1] / rates[0] - 1:+.1%}",
                  f"{rates[0]:.1f} untraced")
        took = middle("launches", lambda r: r["seconds"] / LAUNCHES * 1e9)
        table.put("cost_launch", True, f"{took[1] - took[0]:.0f} ns", f"{took[0]:.0f} ns untraced")
        took = middle("latency", lambda r: r["p50_us"])
        table.put("cost_latency", True, f"{took[1]:.2f} us, {took[1] / took[0]:.2f} times", f"{took[0]:.2f} us untraced")


def torch(table, machine):
    with table.part("torch_output", "torch_operators", "torch_launches"):
        machine.torch()
        job = (sys.executable, f"{HERE}/torch_job.py")
        untraced, _ = plain(machine, *job)
        out, document = traced(machine, *job, flags=("--torch",))
        table.put("torch_output", out == untraced, out.strip(), f"{untraced.strip()} (untraced)")
        ours = sum(c["count"] for p in document["processes"] for c in p["calls"] if "LaunchKernel" in c["api"])
        told, _ = plain(machine, *job, "profile")
        # The profiler names an operator without its overload. It does not see what the program calls before it.
        did = {name: int(n) for name, n in re.findall(r"^operator (\S+) (\d+)$", told, re.M)}
        seen = dict.fromkeys(did, 0)
        for o in document["operators"]:
            name = (o["name"] or "").split(".")[0]
            if name in seen:
                seen[name] += o["calls_total"] or 0
        table.put("torch_operators", did and seen == did, f"{sum(seen.values())} calls of {len(did)} operators",
                  f"{sum(did.values())} (torch.profiler)", different(seen, did))
        launches = re.search(r"^launches (\d+)$", told, re.M)
        if not launches or int(launches[1]) == 0:
            raise NotCompared("torch.profiler counts no launches here")
        table.put("torch_launches", ours == int(launches[1]), ours, f"{launches[1]} (torch.profiler)")


def everything(table, machine, e2e, make_agent, capability):
    of_the_driver(table, machine)
    of_the_runtime(table, machine, capability)
    exceptions(table, machine)
    busy(table, machine)
    cost(table, machine)
    torch(table, machine)
    with table.part("trace_agent"), make_agent("--trace-enabled", "yes") as agent:
        by_the_agent(table, machine, e2e, agent)
