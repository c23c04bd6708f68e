#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators are counted exactly, from outside, and the program does what it does alone.

    operators.py BUILD SOURCE debian|newest|VERSION [words of names of tests]

operators_job.py runs a list of operators, with gradients and exceptions, in a process, threads, coroutines and the processes of data loaders. How often it calls which
operator is what PyTorch's own profiler says of the list once; the difference between a long and a short run is that, times what the long one has more.
"""
import collections
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from e2e import stacks
from lib import e2e, rows

import real

WHICH = sys.argv.pop(3)
JOB = f"{e2e.SOURCE}/test/real/operators_job.py"
STACKS_JOB = f"{e2e.SOURCE}/test/real/stacks_job.py"
SHORT, LONG = 10, 34
RUN_S = 600
# Operators that are always entered by at::_ops, and enter no other one on their way.
ENTERED = ("add.Tensor", "div.Scalar", "gelu", "gelu_backward", "mean", "mm", "mul.Tensor", "pow.Tensor_Scalar", "sub_.Tensor", "sum", "tanh_backward")
COUNTED = {} # way: calls


@functools.lru_cache(maxsize=None)
def python():
    """The interpreter, and its environment."""
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    if WHICH != "debian":
        fetched = real.thing(f"torch-{WHICH}")
        with open(fetched["fetched.json"], encoding="utf-8") as f:
            return json.load(f).get("python", sys.executable), e2e.environment(PYTHONPATH=fetched["site"], **env)
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        raise e2e.Skip("no PyTorch here: apt-get install python3-torch")
    return "/usr/bin/python3", e2e.environment(**env)


def run(*args, before=()):
    interpreter, env = python()
    done = subprocess.run([*before, interpreter, JOB, *map(str, args)], capture_output=True, text=True, env=env, timeout=RUN_S, check=False)
    e2e.equal(done.returncode, 0, f"exit status of {args}, which says {done.stderr[-2000:]}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def truth(how):
    return json.loads(run("truth", how))


def counted(document):
    """Calls by name without the overload, as the profiler has them; and the full names."""
    calls, names = collections.Counter(), set()
    for operator in document["operators"]:
        name, n = operator["name"], operator["calls_total"]
        if name and n:
            names.add(name)
            calls[name if name.startswith("backward") else name.split(".")[0]] += n
    return calls, names


def documented(how, times):
    """(what it prints, the document)"""
    real.need_tracing()
    with tempfile.TemporaryDirectory() as tmp:
        output = f"{tmp}/document"
        printed = run(how, times, before=[e2e.GPUSONDE, "trace", "--torch", "--json", "--output", output, "--"])
        with open(output, encoding="ascii") as f:
            document = json.load(f)
    e2e.equal([p["incomplete"] for p in document["processes"] if "operators" in p["incomplete"]], [], "processes whose operators are not all counted")
    return printed, document


def traced(how, times):
    """(what it prints, calls of operators, their names)"""
    printed, document = documented(how, times)
    return printed, *counted(document)


def exact(*ways):
    """All of them in one program, which imports PyTorch once: what they call together is what the profiler says of each."""
    how = "+".join(ways)
    wanted = truth(how)
    printed, short, _ = traced(how, SHORT)
    e2e.equal(printed, run(how, SHORT), "what it prints alone")
    _, long, names = traced(how, LONG)
    more = {name: long[name] - short[name] for name in set(long) | set(short) if long[name] != short[name]}
    expected = collections.Counter()
    for way in ways:
        once = collections.Counter(wanted["calls"][way], backward=way != "compiled")
        COUNTED[way] = (LONG - SHORT) * sum(once.values())
        expected.update({name: (LONG - SHORT) * n for name, n in once.items() if n})
    e2e.equal(more, dict(expected), "calls, of the long run more than of the short one")
    unknown = names - set(wanted["names"]) - {"backward", "backward.node"}
    e2e.equal(sorted(unknown), [], "names that PyTorch does not have")
    rows.say("operators", version(), counted=f"exact: {sum(COUNTED.values()):,} calls in {len(COUNTED)} ways ({', '.join(COUNTED)})")


def test_in_threads_coroutines_and_deep_in_the_stack():
    """With gradients and exceptions, as all of them."""
    exact("plain", "threads", "tasks", "recursion")


def test_processes_for_data():
    exact("forked", "spawned")


def test_compiled():
    if WHICH == "debian" or not shutil.which("g++"):
        raise e2e.Skip("torch.compile came with PyTorch 2, and needs g++")
    exact("compiled")


def test_memory_nodes_and_steps():
    """Each allocation, each node by name and by the operator that made it, each step."""
    printed, document = documented("memory", LONG)
    wanted = json.loads(printed)
    process, = document["torch"]["processes"]
    allocator, = process["allocators"]
    e2e.equal(allocator["device"], "cpu", "the device")
    e2e.equal({f: allocator[f] for f in ("allocations", "frees", "allocations_bytes")}, {f: wanted[f] for f in ("allocations", "frees", "allocations_bytes")},
              "what the allocator says")
    e2e.equal({n["name"]: n["count"] for n in process["nodes"]}, wanted["nodes"], "nodes")
    e2e.equal((process["other_nodes"], process["lost"]), (0, False), "nodes without a name, lost events")
    # Of no operator are those that add to a leaf's gradient.
    joined = sum(wanted["nodes"].values()) - wanted["nodes"]["AccumulateGrad"]
    e2e.equal(process["nodes_of_operators"], joined, "nodes whose operator is known")
    by_operator = {o["name"]: o["backward_nodes_total"] for o in document["operators"] if o["backward_nodes_total"]}
    e2e.equal(sum(by_operator.values()), joined, f"nodes by operator: {by_operator}")
    e2e.equal([by_operator[o] for o in ("mm", "tanh", "gelu", "pow.Tensor_Scalar")], [LONG] * 4, "nodes of operators that make one each")
    # 1.13 calls a function without a symbol.
    e2e.equal(process["optimizer_steps"], None if WHICH == "debian" else LONG, "steps of the optimizer")


@functools.lru_cache(maxsize=None)
def version():
    """For the table of what was seen."""
    interpreter, env = python()
    code = "import platform, torch; print(f'PyTorch {torch.__version__}, CPython {platform.python_version()}')"
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, env=env, check=True).stdout.strip()


def stacks_run(tmp, *before):
    """(what it prints, the stacks that it says it had, bytes by operator)"""
    interpreter, env = python()
    os.makedirs(f"{tmp}/lib", exist_ok=True)
    driver = f"{tmp}/lib/libcuda.so.1" # alone: PyTorch's runtime is not to be taken for the simulated one
    if not os.path.exists(driver):
        os.symlink(f"{real.SIMULATED}/libcuda.so.1", driver)
    said = f"{tmp}/said"
    done = subprocess.run([*before, interpreter, STACKS_JOB, f"{real.SIMULATED}/libcudart.so.13", said], capture_output=True, text=True, check=False, timeout=RUN_S,
                          env=dict(env, LD_LIBRARY_PATH=f"{tmp}/lib", GPUSONDE_SIM_SCENARIO=real.SCENARIO, GPUSONDE_SIM_CUDA_KERNEL_US="0"))
    e2e.equal(done.returncode, 0, f"exit status, of what says {done.stderr[-2000:]}")
    wanted, held = collections.Counter(), collections.Counter()
    with open(said, encoding="utf-8") as f:
        for frames, operator, number in map(json.loads, f):
            wanted[tuple(frames)] += number
            held[(operator or "").removesuffix(".default")] += number
    return done.stdout, wanted, held


def test_stacks_of_operators():
    """Each operator's stack is traceback's at that line, in gradients, exceptions, threads, coroutines, processes, and what torch.compile makes of it."""
    real.need_tracing()
    real.need_plain_build()
    with tempfile.TemporaryDirectory() as tmp:
        printed, wanted, held = stacks_run(tmp, e2e.GPUSONDE, "trace", "--torch", f"--stacks={tmp}/x.folded", "--stacks-of=python", "--weight=bytes_held", "--json",
                                           "--output", f"{tmp}/document", "--")
        stacks.compare(stacks.folded(f"{tmp}/x.folded", ""), wanted)
        with open(f"{tmp}/document", encoding="ascii") as f:
            told = {o["name"]: o["allocated_bytes_total"] for o in json.load(f)["operators"]}
    e2e.equal({o: told.get(o) for o in ENTERED}, {o: held[o] for o in ENTERED}, "bytes by operator")
    ways = "gradients, exceptions, threads, coroutines, data loaders by fork and spawn" + (", torch.compile" if "compiled" in printed else "")
    rows.say("operators", version(), stacks=f"{len(wanted)} stacks, equal to traceback's: {ways}")


def test_killed_in_the_middle():
    """gpusonde is killed while operators of a running program are probed: that goes on, and prints what it prints alone."""
    real.need_tracing()
    interpreter, env = python()
    with tempfile.TemporaryDirectory() as tmp:
        output, done = f"{tmp}/document", f"{tmp}/done"
        alone = run("until", "/")
        with subprocess.Popen([interpreter, JOB, "until", done], stdout=subprocess.PIPE, text=True, env=env) as job:
            with subprocess.Popen([e2e.GPUSONDE, "trace", "--torch", "--json", "--interval", "100ms", "--output", output, "-p", str(job.pid)],
                                  env=e2e.environment()) as tracing:
                def seen():
                    assert job.poll() is None, f"it ended with status {job.returncode}"
                    if not os.path.exists(output):
                        return False
                    with open(output, encoding="ascii") as f:
                        lines = [line for line in f if line.endswith("\n")]
                    return lines and counted(json.loads(lines[-1]))[0]["linear"] > 0
                e2e.wait_for(seen, "operators to be counted", RUN_S)
                tracing.send_signal(signal.SIGKILL)
            with open(done, "w", encoding="ascii"):
                pass
            e2e.equal(job.communicate(timeout=RUN_S)[0], alone, "what it prints alone")
            e2e.equal(job.returncode, 0, "its exit status")


if __name__ == "__main__":
    e2e.run()
