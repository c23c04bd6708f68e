#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that choose their devices themselves: their calls are shown on the device that CUDA gave them, or on none, never on another."""
import contextlib
import os
import shutil
import subprocess
import sys
import time

from lib.e2e import BUILD, PATIENCE_S, Agent, Skip, environment, equal, run, wait_for
from lib.traced import DRIVER, SCENARIO, probed, trace_of, view_time

CHOOSES = f"{BUILD}/test/e2e/chooses"
STATIC = f"{BUILD}/test/e2e/chooses-static"
NAME = "CUDA_VISIBLE_DEVICES"
PYTHON = f"""
import ctypes, os, sys
if sys.argv[3] == "fork" and os.fork() != 0:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.environ["{NAME}"] = sys.argv[2]
cuda = ctypes.CDLL(sys.argv[1])
context, address = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
print("ready", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def process(*argv, **env):
    """A program that has said that it is ready; it is ended with the block."""
    with subprocess.Popen(argv, env=environment(GPUSONDE_SIM_SCENARIO=SCENARIO, **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as started:
        equal(started.stdout.readline(), "ready\n", argv[0])
        yield started
        started.stdin.write("\n")
        started.stdin.flush()
        equal(started.wait(PATIENCE_S), 0, "its status")


@contextlib.contextmanager
def driver(agent):
    """A copy of the driver's library that is probed before the programs of the test load it."""
    path = shutil.copy(DRIVER, f"{agent.tmp}/libcuda.so.1")
    with process(CHOOSES, path, "load", "wait") as holder:
        probed(agent, holder.pid, path)
        yield path


@contextlib.contextmanager
def tracing():
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    with Agent("--trace-enabled", "yes", scenario=SCENARIO) as agent:
        found = wait_for(lambda: (t := trace_of(agent)) and (t["enabled"] or t["why"]) and t, "tracing to begin")
        if not found["enabled"]:
            raise Skip(found["why"])
        # And until it has been told of the devices.
        seen = time.time()
        wait_for(lambda: view_time(agent) > seen + 2, "views of what is traced")
        with driver(agent) as library:
            yield agent, library


def parent(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])
    return None


def memory_of(agent, pid):
    """The UUID of the one device, or None for not known, that the process or its child has memory on, and whether that is an estimate."""
    def found():
        for p in trace_of(agent)["processes"]:
            used = [d for d in p["devices"] if d["allocations_total"]]
            if used and not p["exited"] and pid in (p["pid"], parent(p["pid"])):
                equal(len(used), 1, "devices")
                return used[0]["uuid"], "allocations_total" in used[0]["estimated"]
        return None
    return wait_for(found, f"memory of process {pid}")


def expect(tracing, gpu, *argv, estimated=False, **env):
    """The device of what the program allocates. @gpu None: not known."""
    agent, library = tracing
    uuid = None if gpu is None else next(g["uuid"] for g in agent.get("/api/v1/gpus").json()["gpus"] if g["gpu"] == gpu)
    with process(argv[0], *(word.replace("LIBRARY", library) for word in argv[1:]), **env) as program:
        equal(memory_of(agent, program.pid), (uuid, estimated), " ".join(argv[-4:]))


def expect_steps(tracing, gpu, *steps, program=CHOOSES, **more):
    expect(tracing, gpu, program, "LIBRARY", *steps, **more)


def test_python():
    with tracing() as t:
        expect(t, 3, sys.executable, "-c", PYTHON, "LIBRARY", "3", "")
        expect(t, 4, sys.executable, "-c", PYTHON, "LIBRARY", "4", "fork")


def test_c():
    with tracing() as t:
        expect_steps(t, 0, "load", "init", "alloc", "wait")
        expect_steps(t, 5, f"set={NAME}=5", "load", "init", "alloc", "wait")
        expect_steps(t, 6, "load", f"put={NAME}=6", "init", "alloc", "wait", **{NAME: "2"})
        expect_steps(t, 0, "load", f"unset={NAME}", "init", "alloc", "wait", **{NAME: "2"})
        expect_steps(t, 0, "load", "clear", f"set=GPUSONDE_SIM_SCENARIO={SCENARIO}", "init", "alloc", "wait", **{NAME: "2"})


def test_set_after_cuinit_has_no_effect():
    with tracing() as t:
        expect_steps(t, 0, "load", "init", f"set={NAME}=4", "alloc", "wait")
        expect_steps(t, 7, f"set={NAME}=7", "load", "init", f"set={NAME}=4", "alloc", "wait", **{NAME: "2"})


def test_forked_child():
    with tracing() as t:
        expect_steps(t, 1, "fork", f"set={NAME}=1", "load", "init", "alloc", "wait")
        expect_steps(t, 1, "load", "fork", f"set={NAME}=1", "init", "alloc", "wait")


def test_eight_uuids():
    with tracing() as t:
        uuids = [g["uuid"] for g in t[0].get("/api/v1/gpus").json()["gpus"]]
        expect_steps(t, 7, f"set={NAME}={','.join(reversed(uuids))}", "load", "init", "alloc", "wait")


def test_static_program():
    if not os.path.exists(STATIC):
        raise Skip("no static C library")
    with tracing() as t:
        expect_steps(t, 3, "load", "init", "alloc", "wait", program=STATIC, **{NAME: "3"})
        # The kernel side does not find its environment, so it is read later.
        expect_steps(t, 3, f"set={NAME}=3", "load", "init", "alloc", "wait", program=STATIC, estimated=True)


if __name__ == "__main__":
    run()
