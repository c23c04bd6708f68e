#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch and what they make CUDA do: gpusonde trace and the agent, against a program that knows what it calls. test/real/operators.py has PyTorch itself."""
import json
import os
import shutil
import subprocess

from lib.e2e import BUILD, Agent, command, contains, environment, equal, run, values, wait_for
from lib.traced import DRIVER, SCENARIO, begun, probed, trace_of, tracing

PROGRAM, LIBRARY = f"{BUILD}/test/e2e/calls_operators", f"{BUILD}/test/e2e/libtorch_cpu.so"
TIMES = 50
FIGURES = ("calls_total", "outermost_calls_total", "launches_total", "copied_bytes_total", "allocated_bytes_total")
# Each round: add; linear { add }; mm, which is left; backward { linear { add } }; a launch outside.
WANTED = {
    "add.Tensor": (3 * TIMES, TIMES, 6 * TIMES, 300 * TIMES, 0),
    "linear": (2 * TIMES, TIMES, 2 * TIMES, 0, 2 * 4096 * TIMES),
    "mm": (TIMES, TIMES, TIMES, 0, 0),
    "backward": (TIMES, TIMES, 0, 0, 0),
}
OUTSIDE = TIMES # launches


def figures(operators):
    return {o["name"]: tuple(o[f] for f in FIGURES) for o in operators if o["name"]}


def check(operators):
    equal(figures(operators), WANTED, "operators")
    outside, = (o for o in operators if o["name"] is None)
    equal((outside["calls_total"], outside["launches_total"]), (None, OUTSIDE), "outside of operators")
    assert all(o["wait_seconds_total"] > 0 for o in operators if o["name"] == "linear"), operators
    busy = sum(o["busy_seconds_total"] for o in operators)
    assert busy > 0 and all("busy_seconds_total" in o["estimated"] for o in operators), operators
    return busy


def traced(*flags):
    tracing()
    done = command("trace", "--torch", *flags, "-o", "-", "--", PROGRAM, env=environment(GPUSONDE_SIM_SCENARIO=SCENARIO))
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def test_each_call_is_its_operators():
    document = json.loads(traced("--json"))
    check(document["operators"])
    process, = document["processes"]
    equal(process["incomplete"], [], "incomplete")
    own, = document["torch"]["processes"]
    equal((figures(own["operators"]), own["other_operators"]), (WANTED, 0), "operators of the process")
    equal([o["launches_total"] for o in own["operators"] if o["name"] is None], [OUTSIDE], "outside of operators")
    calls = {c["api"]: c["count"] for c in document["calls"]}
    equal(calls["cuLaunchKernel"], sum(w[2] for w in WANTED.values()) + OUTSIDE, "launches")
    assert not [c for c in calls if c.startswith("_Z")], calls


def test_table():
    text = traced()
    contains(text, "OPERATOR")
    contains(text, "add.Tensor")
    contains(text, "(outside of operators)")
    assert "PID" not in text.split("OPERATOR")[0].splitlines()[-1], f"a table of one process: {text}"
    contains(command("trace", "--torch", "--", "true").stderr, "No operator of PyTorch was called.")


def test_operators_of_each_process():
    tracing()
    both = ("trace", "--torch", "-o", "-", "--", "sh", "-c", f"{PROGRAM} & {PROGRAM}; wait")
    env = environment(GPUSONDE_SIM_SCENARIO=SCENARIO)
    document = json.loads(command(*both[:2], "--json", *both[2:], env=env).stdout)
    processes = [p for p in document["torch"]["processes"] if p["operators"]]
    equal([figures(p["operators"]) for p in processes], [WANTED, WANTED], "operators of each process")
    equal(figures(document["operators"]), {n: tuple(2 * v for v in w) for n, w in WANTED.items()}, "operators of both")
    lines = [line.split() for line in command(*both, env=env).stdout.splitlines()]
    table = lines[[line[:2] for line in lines].index(["PID", "OPERATOR"]):]
    equal(sorted(line[2] for line in table if line[1:2] == ["add.Tensor"]), [str(3 * TIMES)] * 2, "rows of the table")


def trained(document):
    """What the program says it does with "train"."""
    process, = document["torch"]["processes"]
    allocator, = process["allocators"]
    equal(allocator, {"device": "cuda:3", "allocated_bytes": 1000, "allocated_peak_bytes": 1000, "reserved_bytes": 8192, "reserved_peak_bytes": 8192,
                      "allocations": TIMES + 1, "frees": 2 * TIMES, "allocations_bytes": 512 * TIMES + 1000, "out_of_memory": 1,
                      "last_out_of_memory": {"asked_bytes": 1 << 20, "allocated_bytes": 1000, "reserved_bytes": 8192, "operator": None}}, "allocator")
    equal([(n["name"], n["count"]) for n in process["nodes"]], [("MulBackward0", 2 * TIMES)], "nodes")
    equal((process["other_nodes"], process["nodes_of_operators"], process["lost"]), (0, TIMES, False), "nodes that no operator has made")
    equal([(r["name"], r["count"]) for r in process["ranges"]], [("Optimizer.step#SGD.step", TIMES)], "ranges")
    equal(process["optimizer_steps"], TIMES, "steps")
    assert process["optimizer_period_seconds"] > 0, process
    operators = {o["name"]: o for o in document["operators"]}
    # Within the node's evaluation an add launches two kernels; nothing of it is of the second node.
    equal([operators["mul.Tensor"][f] for f in ("calls_total", "backward_nodes_total", "backward_launches_total", "tensor_bytes_total", "held_bytes")],
          [TIMES, TIMES, 2 * TIMES, 512 * TIMES, 0], "of the operator that makes nodes")
    equal([operators["add.Tensor"][f] for f in ("calls_total", "backward_nodes_total", "launches_total")], [3 * TIMES, 0, 6 * TIMES], "of the one within it")
    equal(operators["backward.node"]["calls_total"], 2 * TIMES, "evaluations")
    assert not [name for name in operators if name and name.startswith("_Z")], operators


def test_memory_nodes_and_steps():
    tracing()
    env = environment(GPUSONDE_SIM_SCENARIO=SCENARIO)
    done = command("trace", "--torch", "--json", "-o", "-", "--", PROGRAM, "train", env=env)
    equal(done.returncode, 0, done.stderr)
    trained(json.loads(done.stdout))
    text = command("trace", "--torch", "-o", "-", "--", PROGRAM, "train", env=env).stdout
    for part in ("MulBackward0", "cuda:3", f"{TIMES} steps of optimizers", "what is no operator asked for 1.0 MiB, with 1000 B allocated"):
        contains(text, part)


def test_lines():
    tracing()
    done = command("trace", "--torch", "--raw", "--json", "-o", "-", "--", PROGRAM, "train", env=environment(GPUSONDE_SIM_SCENARIO=SCENARIO))
    equal(done.returncode, 0, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    nodes = [e for e in lines if "evaluate_function" in (e.get("api") or "") and e["type"] != "name"]
    equal([e.get("operator") for e in nodes], ["mul.Tensor", None] * TIMES, "operators of nodes")
    equal([e["sequence"] for e in nodes], list(range(1, 2 * TIMES + 1)), "their numbers")
    reports = [e for e in lines if "reportMemoryUsage" in (e.get("api") or "")]
    equal([e["bytes"] for e in reports[:3]], [512, -512, -512], "reports")
    equal([e.get("operator") for e in reports[:2]], ["mul.Tensor", "backward.node"], "their operators")


def test_not_unless_wanted():
    tracing()
    done = command("trace", "--json", "-o", "-", "--", PROGRAM, env=environment(GPUSONDE_SIM_SCENARIO=SCENARIO))
    assert "operators" not in json.loads(done.stdout), done.stdout


def test_the_agent():
    tracing()
    with Agent("--trace-enabled", "yes", "--trace-operators", "yes", scenario=SCENARIO) as agent:
        begun(agent)
        folder = f"{agent.tmp}/torch"
        os.mkdir(folder)
        shutil.copy(LIBRARY, folder)
        env = environment(LD_LIBRARY_PATH=folder, GPUSONDE_SIM_SCENARIO=SCENARIO)
        with subprocess.Popen([PROGRAM, "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            equal(program.stdout.readline(), "ready\n", "the program")
            probed(agent, program.pid, f"{folder}/libtorch_cpu.so")
            probed(agent, program.pid, DRIVER)
            program.stdin.write("\n")
            program.stdin.flush()
            equal(program.stdout.readline(), "called\n", "the program")
            wait_for(lambda: figures(trace_of(agent)["operators"]) == WANTED, f"all operators to be counted: {trace_of(agent)['operators']}")
            wait_for(lambda: sum(values(agent.metrics(), "gpusonde_operator_busy_seconds_total")) > 0, "an estimate of their time")
            page = agent.metrics()
            for name, (calls, outermost, launches, copied, allocated) in WANTED.items():
                equal(values(page, "gpusonde_operator_calls_total", operator=name), [calls], name)
                equal(values(page, "gpusonde_operator_outermost_calls_total", operator=name), [outermost], name)
                equal(values(page, "gpusonde_operator_launches_total", operator=name), [launches], name)
                equal(values(page, "gpusonde_operator_copied_bytes_total", operator=name), [copied], name)
                equal(values(page, "gpusonde_operator_allocated_bytes_total", operator=name), [allocated], name)
            equal(values(page, "gpusonde_operator_estimated", operator="mm", metric="gpusonde_operator_busy_seconds_total"), [1], "estimated")
            program.communicate("\n")
        # They stay when it is gone.
        wait_for(lambda: not [p for p in trace_of(agent)["processes"] if p["pid"] == program.pid], "the process to be forgotten")
        equal(figures(trace_of(agent)["operators"]), WANTED, "operators")


def test_the_agent_knows_memory_and_steps():
    tracing()
    with Agent("--trace-enabled", "yes", "--trace-operators", "yes", scenario=SCENARIO) as agent:
        begun(agent)
        env = environment(GPUSONDE_SIM_SCENARIO=SCENARIO)
        # It maps what is probed, and stays: what runs next is probed from its first call on.
        with subprocess.Popen([PROGRAM, "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
            equal(first.stdout.readline(), "ready\n", "the program")
            probed(agent, first.pid, LIBRARY)
            probed(agent, first.pid, DRIVER)
            with subprocess.Popen([PROGRAM, "train", "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
                equal(program.stdout.readline(), "trained\n", "the program")
                labels = {"pid": str(program.pid), "comm": "calls_operators", "allocator": "cuda:3"}
                wait_for(lambda: values(agent.metrics(), "gpusonde_process_torch_out_of_memory_total", **labels) == [1], "what it does to be known")
                page = agent.metrics()
                equal(values(page, "gpusonde_process_torch_allocated_bytes", **labels), [1000], "allocated")
                equal(values(page, "gpusonde_process_torch_reserved_bytes", **labels), [8192], "reserved")
                equal(values(page, "gpusonde_process_torch_optimizer_steps_total", pid=str(program.pid)), [TIMES], "steps")
                equal(values(page, "gpusonde_operator_backward_nodes_total", operator="mul.Tensor"), [TIMES], "nodes")
                process, = (p for p in trace_of(agent)["processes"] if p["pid"] == program.pid)
                equal(process["torch"]["nodes_of_operators"], TIMES, "nodes that operators have made")
                program.communicate("\n")
            first.kill()


if __name__ == "__main__":
    run()
