#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary users fill the tables in which an agent that traces counts calls: another user's figures are exact, and what is missing is said with theirs."""
import os
import shutil
import subprocess

from lib.e2e import BUILD, PATIENCE_S, Agent, Skip, equal, run, values, wait_for
from lib.traced import SCENARIO, begun, probed_when_loaded, process_of, trace_of

USER, OTHER = 12345, 12346
CODES = 50000 # more than the table of error codes has room for
CODES_APART = 15
PROCESSES = 400 # with a hundred calls each, more than the table of sums has room for


class Crowd:
    """crowd.c of a user's, which waits before its calls and after them."""

    def __init__(self, agent, user, what, n):
        os.chmod(agent.tmp, 0o755)
        # A file of its own: nobody else's probes are in it.
        self.library = shutil.copy(f"{BUILD}/test/e2e/libcrowd_cuda.so", f"{agent.tmp}/libcuda.so.{id(self)}")
        program = shutil.copy(f"{BUILD}/test/e2e/crowd", f"{agent.tmp}/crowd-{id(self)}")
        self.process = subprocess.Popen([program, self.library, what, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        user=user, group=user, extra_groups=[])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ready(self):
        equal(self.process.stdout.readline(), "ready\n", "the program")

    def call(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.ready()


def tracing():
    if os.geteuid() != 0:
        raise Skip("tracing, and programs of other users, need root")
    return Agent("--trace-enabled", "yes", "--trace-max-overhead", "100%", scenario=SCENARIO)


def calls_of(agent, pid):
    process = process_of(agent, pid)
    return {c["api"]: c for c in process["calls"]} if process else {}


def refused(agent, table):
    return sum(values(agent.metrics(), "gpusonde_trace_refused_total", table=table))


def complete(agent, crowd):
    return "uncounted_calls" not in process_of(agent, crowd.process.pid)["incomplete"]


def test_error_codes():
    with tracing() as agent:
        begun(agent)
        with Crowd(agent, USER, "codes", CODES) as many, Crowd(agent, OTHER, "codes", 3) as bystander:
            probed_when_loaded(agent, many)
            probed_when_loaded(agent, bystander)
            many.call()
            bystander.call()
            call = wait_for(lambda: (c := calls_of(agent, bystander.process.pid).get("cuMemAlloc_v2")) and c["count"] == 3 and c,
                            "the bystander's calls")
            equal(call["errors"], {"1": 1, "2": 1, "3": 1}, "the bystander's errors")
            call = wait_for(lambda: (c := calls_of(agent, many.process.pid).get("cuMemAlloc_v2")) and c["count"] == CODES and c,
                            "the other's calls")
            # Nothing is lost of it, either.
            equal(call["errors"], {**{str(i): 1 for i in range(1, CODES_APART + 1)}, "other": CODES - CODES_APART}, "the other's errors")
            assert complete(agent, many) and complete(agent, bystander)
            equal(refused(agent, "codes"), 0, "codes refused")


def test_processes_and_calls():
    with tracing() as agent:
        begun(agent)
        with Crowd(agent, USER, "processes", PROCESSES) as many, Crowd(agent, OTHER, "processes", 0) as bystander:
            probed_when_loaded(agent, many)
            probed_when_loaded(agent, bystander)
            many.call()
            bystander.call()
            apis = wait_for(lambda: (c := calls_of(agent, bystander.process.pid)) and "cuMemAlloc_v2" in c and c, "the bystander's calls")
            assert len(apis) > 90, apis.keys()
            wait_for(lambda: all(c["count"] == 1 for c in calls_of(agent, bystander.process.pid).values()), "each of the bystander's calls")
            assert complete(agent, bystander)
            found = wait_for(lambda: (p := [p for p in trace_of(agent)["processes"] if (p["comm"] or "").startswith("crowd")]) and
                             any("uncounted_calls" in q["incomplete"] for q in p) and p, "losses to be said with those who had them")
            lost = [p for p in found if p["pid"] != bystander.process.pid and len(p["calls"]) < len(apis)]
            assert lost and all("uncounted_calls" in p["incomplete"] for p in lost), [(len(p["calls"]), p["incomplete"]) for p in lost]
            counted = sum(c["count"] for p in found for c in p["calls"] if p["pid"] != bystander.process.pid)
            equal(counted + refused(agent, "calls"), (PROCESSES + 1) * len(apis), "calls that were counted and refused")
        wait_for(lambda: process_of(agent, many.process.pid) is None, "the processes to be forgotten", PATIENCE_S)
        # They take no room any more.
        before = refused(agent, "calls")
        with Crowd(agent, USER, "processes", 10) as few:
            probed_when_loaded(agent, few)
            few.call()
            wait_for(lambda: len(calls_of(agent, few.process.pid)) == len(apis), "all calls")
            equal(refused(agent, "calls"), before, "calls refused")


run()
