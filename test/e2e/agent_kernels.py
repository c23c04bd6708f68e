#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent names what nvcc's programs launch: those that begin while it traces, and those that ran before it came; on every page."""
import contextlib
import fcntl
import os
import re
import tempfile
import time

from lib.e2e import Agent, Skip, equal, run, samples, values, wait_for

from launches import KERNELS, MODULES, SCENARIO, Waiting, agrees, argv, described, launches_of, nameless, program

DRIVER = "libcuda.so.1" # the agent probes the driver alone


def gpu_alone():
    """A GPU that no other run of these tests uses meanwhile, since each agent traces all programs of the machine; and what keeps it."""
    for gpu in range(1, 8):
        lock = open(f"{tempfile.gettempdir()}/gpusonde-test-gpu-{gpu}", "w", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if gpu < 7 else 0))
            return gpu, lock
        except BlockingIOError:
            lock.close()
    raise AssertionError("unreachable")


GPU, KEPT = gpu_alone()
ALONE = {"CUDA_VISIBLE_DEVICES": str(GPU)}


def tracing(*flags):
    """An agent that traces, or a skip."""
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    return Agent("--trace-enabled", "yes", *flags, scenario=SCENARIO)


def begun(agent):
    """Until tracing has begun; a skip where it cannot."""
    def state():
        found = agent.get("/api/v1/kernels").json()["kernels"]
        return found and (found["enabled"] or found["why"]) and found
    found = wait_for(state, "tracing to begin")
    if not found["enabled"]:
        raise Skip(found["why"])
    # And until it has been told of the devices.
    seen = time.time()
    wait_for(lambda: time.time() - page(agent)["age_seconds"] > seen + 2, "views of what is traced")


def page(agent):
    return agent.get("/api/v1/kernels").json()["kernels"]


def uuid_of(agent, gpu):
    return next(g["uuid"] for g in agent.get("/api/v1/gpus").json()["gpus"] if g["gpu"] == gpu)


def rows_of(agent, pid):
    return next((p["kernels"] for p in page(agent)["processes"] if p["pid"] == pid), [])


def launches(rows):
    return sum(row["launches_total"] for row in rows)


def all_named(agent, program_, n):
    """Until so many launches have been seen, and no name is waited for any more."""
    def named():
        rows = rows_of(agent, program_.pid)
        return launches(rows) >= n and all(row["source"] != "unresolved" and not row["brief"].startswith("_Z") for row in rows) and rows
    return wait_for(named, f"{n} launches to be named", 20)


def test_programs_that_begin_while_it_traces():
    program("kernels-shared")
    with tracing() as agent:
        begun(agent)
        # The first one on a library may begin before its probes are in; the next cannot.
        with tempfile.TemporaryDirectory() as tmp, Waiting(tmp, "kernels-shared") as first:
            first.probed(DRIVER)
            with Waiting(tmp, "kernels-shared", **ALONE) as second:
                second.go_on()
                rows = all_named(agent, second, 46)
                for row in rows:
                    described(row)
                    equal(row["uuid"], uuid_of(agent, GPU), row["name"])
                    equal(row["arch"], "sm_90", row["name"])
                adds_up(agent)
                same_everywhere(agent, second.pid)
                agrees(rows, second.end())


def adds_up(agent):
    """Each launch is in one series: theirs and the others' are all, while nobody has ended."""
    def sums():
        metrics = agent.metrics()
        return [sum(values(metrics, f"gpusonde_{name}launches_total", gpu=GPU)) for name in ("kernel_", "gpu_kernel_")]
    parts, total = sums()
    assert parts == total > 0, f"{parts} in series, {total} of the device"


def same_everywhere(agent, pid):
    """What the page has of it is no more than what the JSON has, and describes it alike."""
    metrics, rows = agent.metrics(), {row["id"]: row for row in rows_of(agent, pid)}
    seen = 0
    for series, value in samples(metrics).items():
        if not series.startswith("gpusonde_kernel_") or f'pid="{pid}"' not in series or "estimated" in series:
            continue
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', series))
        row, name = rows[labels["id"]], series.split("{")[0].removeprefix("gpusonde_kernel_")
        equal(labels["kernel"], row["brief"], series)
        if name.endswith("_total"):
            assert value <= row[name], (series, value, row[name])
        elif "class" in labels:
            equal(value, row["memory_bytes"][labels["class"]], series)
        else:
            equal((value, labels["limiter"]), (row[name], row["occupancy_limiter"]), series)
        seen += 1
    assert seen >= 5 * 7, seen


def counted(agent, program_, n):
    """Until so many launches have been seen."""
    def seen():
        rows = rows_of(agent, program_.pid)
        return launches(rows) == n and rows
    return wait_for(seen, f"{n} launches", 20)


def test_programs_that_ran_before():
    """Their handles were made before anybody looked: each is in a variable of its program's, or leads to its name."""
    for arguments in [*KERNELS, MODULES]:
        argv(*arguments)
    with contextlib.ExitStack() as stack:
        tmp = stack.enter_context(tempfile.TemporaryDirectory())
        early = [(stack.enter_context(Waiting(tmp, *arguments)), launches_of(*arguments)) for arguments in [*KERNELS, MODULES]]
        agent = stack.enter_context(tracing())
        begun(agent)
        early[0][0].probed(DRIVER)
        for waiting, _ in early:
            waiting.go_on()
        for waiting, n in early[:-1]:
            all_named(agent, waiting, n)
            process = next(p for p in page(agent)["processes"] if p["pid"] == waiting.pid)
            assert "late" in process["incomplete"], process["incomplete"]
            rows = process["kernels"]
            agrees(rows, waiting.end(), part=0.5)
        waiting, n = early[-1]
        nameless(counted(agent, waiting, n), waiting.end(), part=0.5)


def test_all_programs():
    """Each from its beginning on."""
    for arguments in [*KERNELS, MODULES]:
        argv(*arguments)
    with tracing() as agent, tempfile.TemporaryDirectory() as tmp, Waiting(tmp, "kernels-shared") as first:
        begun(agent)
        first.probed(DRIVER)
        for arguments in [*KERNELS, MODULES]:
            with Waiting(tmp, *arguments) as waiting:
                waiting.go_on()
                rows = all_named(agent, waiting, 2 * launches_of(*arguments))
                agrees(rows, waiting.end())


def test_few_series():
    """Two have series, no more and no less, and all launches are counted all the same."""
    program("kernels-shared")
    with tracing("--trace-kernel-series", "2") as agent:
        begun(agent)
        with tempfile.TemporaryDirectory() as tmp, Waiting(tmp, "kernels-shared") as first:
            first.probed(DRIVER)
            with Waiting(tmp, "kernels-shared", **ALONE) as second:
                second.go_on()
                equal(len(all_named(agent, second, 46)), 20, "kernels in JSON")
                def of_kernels():
                    return [s for s in samples(agent.metrics()) if s.startswith("gpusonde_kernel_launches_total{") and 'pid="other"' not in s]
                wait_for(of_kernels, "series")
                equal(len(of_kernels()), 2, "series")
                adds_up(agent)


def test_untraced():
    with Agent(scenario=SCENARIO) as agent:
        found = page(agent)
        equal((found["enabled"], found["processes"]), (False, []), "kernels")
        assert "kernel_launches" not in agent.metrics()


if __name__ == "__main__":
    run()
