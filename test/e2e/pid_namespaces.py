#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver that lists processes by the PIDs of their own namespaces: said, and joined where only one process can be meant."""
import contextlib
import os
import subprocess
import tempfile

from lib.e2e import Agent, Skip, Worker, children, contains, equal, run, values, wait_for

FAULT = "faults:\n  - {namespaced: true}\n"


class Inner(Worker):
    """A worker that is the first process of a PID namespace, as in a container."""

    def __enter__(self):
        self.outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", self.path, "1000"], stderr=subprocess.PIPE, text=True)
        found = wait_for(lambda: children(self.outer.pid) if self.outer.poll() is None else [0], "the process in the namespace")
        if not found[0]:
            raise Skip(f"a PID namespace cannot be made: {self.outer.stderr.read()}")
        self.pid = found[0]
        return self

    def end(self):
        self.outer.kill()
        self.outer.wait()
        self.outer.stderr.close()


def rows(agent):
    return agent.get("/api/v1/processes").json()["processes"]


def test_a_process_is_told_by_the_machines_pid():
    with tempfile.TemporaryDirectory() as tmp, Inner(tmp) as worker, Agent(scenario=worker.scenario() + FAULT) as agent:
        found, = wait_for(lambda: [p for p in rows(agent) if p["pid"] == worker.pid and p["memory_bytes"]], "the process with its memory")
        wait_for(lambda: [p["pid"] for p in rows(agent)] == [worker.pid], "the other PID to be gone")
        equal((found["ns_pid"], found["memory_bytes"], found["comm"]), (1, 2**30, worker.comm[:15]))
        wait_for(lambda: (p := rows(agent)[0])["busy_seconds_total"] > 0 and p["utilization_ratio"], "its work")
        contains(agent.get("/api/v1/node").json()["node"]["unrecognised"], "PIDs of the processes' own namespaces")
        contains(agent.log(), "PIDs of the processes' own namespaces")
        contains(agent.cli("doctor").stdout, "PIDs of the processes' own namespaces")


def test_where_two_can_be_meant_none_is():
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Inner(f"{tmp}/{i}")) for i in range(2) if not os.mkdir(f"{tmp}/{i}")]
        scenario = workers[0].scenario() + f"  - {{name: worker, match: {workers[1].comm}, gpus: 0, memory: 2GiB, load: {{gpu: 30}}}}\n" + FAULT
        with Agent(scenario=scenario) as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_dropped_total", kind="processes")[0] > 0, "an entry to be left out")
            wait_for(lambda: sorted(p["pid"] for p in rows(agent)) == sorted(w.pid for w in workers), "both, by their utilisation")
            equal([p["memory_bytes"] for p in rows(agent)], [None, None], "whose memory it is, is not known")


run()
