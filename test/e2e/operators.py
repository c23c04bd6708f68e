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
    calls = {c["api"]: c["count"] for c in document["calls"]}
    equal(calls["cuLaunchKernel"], sum(w[2] for w in WANTED.values()) + OUTSIDE, "launches")
    assert not [c for c in calls if c.startswith("_Z")], calls


def test_table():
    text = traced()
    contains(text, "OPERATOR")
    contains(text, "add.Tensor")
    contains(text, "(outside of operators)")
    contains(command("trace", "--torch", "--", "true").stderr, "No operator of PyTorch was called.")


def test_not_unless_wanted():
    tracing()
    done = command("trace", "--json", "-o", "-", "--", PROGRAM, env=environment(GPUSONDE_SIM_SCENARIO=SCENARIO))
    assert "operators" not in json.loads(done.stdout), done.stdout
    equal(command("trace", "--torch", "--raw", "--", "true").returncode, 2, "--torch and --raw")


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


if __name__ == "__main__":
    run()
