#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's stacks: of programs that it did not start, and of their forked children; each format has the same sums; off unless asked for."""
import gzip
import os
import shutil
import subprocess
import urllib.request

from lib.e2e import Agent, BUILD, Skip, contains, environment, equal, run, wait_for

PROGRAM = """
import ctypes, os, select, sys
cuda = ctypes.CDLL("libcudart.so.13")
def allocate(n):
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(n)) == 0
def parent():
    for i in range(40):
        allocate(100)
def child():
    for i in range(30):
        allocate(7)
def waiting():
    # Until told to go on: the first calls have no stack, since the interpreter is looked for when they are seen.
    while not select.select([0], [], [], 0.05)[0]:
        allocate(1)
    assert os.read(0, 1)
if os.fork() == 0: # before its parent uses CUDA, which a child could not go on with
    waiting()
    child()
    print("child", flush=True)
    waiting()
    os._exit(0)
os.wait()
waiting()
parent()
print("parent", flush=True)
waiting()
"""
SIM = f"{BUILD}/sim/cuda"


def agent(*flags):
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    return Agent("--trace-enabled", "yes", *flags)


def begun(a):
    def state():
        trace = a.get("/api/v1/trace").json()["trace"]
        return trace and (trace["enabled"] or trace["why"]) and trace
    trace = wait_for(state, "tracing to begin")
    if not trace["enabled"]:
        raise Skip(trace["why"])


def started():
    python = shutil.which("python3", path="/usr/bin") or "python3"
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0", PYTHONDONTWRITEBYTECODE="1")
    return subprocess.Popen([python, "-c", PROGRAM], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def held(a, pids):
    """Bytes held by the stacks of these processes, outermost function first; without the function of CUDA."""
    page = a.get("/api/v1/stacks").json()
    weights = [w["name"] for w in page["weights"]]
    sums = {}
    for pid, _, _, *numbers in page["rows"]:
        if pid in pids:
            names = tuple(page["texts"][page["places"][i][0]] for i in numbers[len(weights):])
            sums[names] = sums.get(names, 0) + numbers[weights.index("bytes_held")]
    return sums


def go_on(program, said):
    program.stdin.write("\n")
    program.stdin.flush()
    equal(program.stdout.readline(), f"{said}\n")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(p) for p in file.read().split()]


def comes(a, pids, stack, size):
    wait_for(lambda: held(a, pids).get(stack, 0) >= size, f"{size} bytes of {stack}")
    return held(a, pids)[stack]


def test_stacks():
    with agent("--trace-stacks", "yes", "--max-overhead", "0%") as a:
        begun(a)
        with started() as program:
            wait_for(lambda: len(children(program.pid)) == 1, "the child")
            for pids, name, size in (children(program.pid), "child", 210), ([program.pid], "parent", 4000):
                comes(a, pids, ("<module>", "waiting", "allocate"), 1)
                go_on(program, name)
                equal(comes(a, pids, ("<module>", name, "allocate"), 1), size, "bytes")
                program.stdin.write("\n")
                program.stdin.flush()
        equal(a.get("/api/v1/stacks?format=folded").status, 200)
        with urllib.request.urlopen(f"http://127.0.0.1:{a.port()}/api/v1/stacks?format=pprof") as reply:
            equal(gzip.decompress(reply.read())[:1], b"\x0a", "a profile begins with a kind of sample")
        contains(a.get("/api/v1/stacks?format=html").text, "<title>gpusonde stacks</title>")
        refused = a.get("/api/v1/stacks?format=xml")
        equal(refused.status, 400)
        contains(refused.text, "json, folded, pprof or html")


def test_off():
    with agent() as a:
        begun(a)
        page = a.get("/api/v1/stacks")
        equal(page.status, 404)
        contains(page.text, "trace.stacks is off")


if __name__ == "__main__":
    run()
