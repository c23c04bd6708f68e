#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's stacks: of programs that it did not start, and of their forked children; each format has the same sums; off unless asked for."""
import gzip
import json
import os
import shutil
import subprocess
import urllib.request

from lib.e2e import Agent, BUILD, Skip, command, contains, environment, equal, run, wait_for
from lib.sampling import unbiased

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


def started(program=PROGRAM):
    python = shutil.which("python3", path="/usr/bin") or "python3"
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0", PYTHONDONTWRITEBYTECODE="1")
    return subprocess.Popen([python, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


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


def profile(a):
    with urllib.request.urlopen(f"http://127.0.0.1:{a.port()}/api/v1/stacks?format=pprof") as reply:
        return gzip.decompress(reply.read())


def test_stacks():
    with agent("--trace-stacks", "yes", "--max-overhead", "0%") as a:
        begun(a)
        with started() as program:
            wait_for(lambda: len(children(program.pid)) == 1, "the child")
            for pids, name, size in (children(program.pid), "child", 210), ([program.pid], "parent", 4000):
                comes(a, pids, ("<module>", "waiting", "allocate"), 1)
                go_on(program, name)
                equal(comes(a, pids, ("<module>", name, "allocate"), size), size, "bytes")
                program.stdin.write("\n")
                program.stdin.flush()
                # What a process held until it ended is held no more.
                wait_for(lambda: not held(a, pids).get(("<module>", name, "allocate")), "its memory to be let go")
        equal(a.get("/api/v1/stacks?format=folded").status, 200)
        equal(profile(a)[:1], b"\x0a", "a profile begins with a kind of sample")
        contains(a.get("/api/v1/stacks?format=html").text, "<title>gpusonde stacks</title>")
        refused = a.get("/api/v1/stacks?format=xml")
        equal(refused.status, 400)
        contains(refused.text, "json, folded, pprof or html")


LINES = 100
FLOOD = PROGRAM.split("def parent")[0] + """
def waiting():
    while not select.select([0], [], [], 0.05)[0]:
        allocate(1)
    assert os.read(0, 1)
def flood():
    rounds, address, one = 0, ctypes.c_void_p(), ctypes.c_size_t(1)
    assert cuda.cudaMalloc(ctypes.byref(address), one) == 0
    while not select.select([0], [], [], 0.002)[0]: # so that the ring does not overflow
        rounds += 1
""" + "        cuda.cudaMemset(address, 0, one)\n" * LINES + """
    print(rounds, flush=True)
waiting()
flood()
assert os.read(0, 1)
sys.stdin.read()
"""


def calls(a, pid):
    return sum(c["count"] for p in a.get("/api/v1/trace").json()["trace"]["processes"] if p["pid"] == pid for c in p["calls"] if c["api"] == "cuMemsetD8_v2")


def by_line(page, pid):
    """bytes by line of flood()"""
    set_at = [w["name"] for w in page["weights"]].index("bytes_copied") + 3
    lines = {}
    for row in page["rows"]:
        name, _, line = page["places"][row[-1]]
        if row[0] == pid and page["texts"][name] == "flood":
            lines[line] = lines.get(line, 0) + row[set_at]
    return list(lines.values()) + [0] * (LINES - len(lines))


def test_sampled():
    """Of a flood a sample is taken, which is right on average; the page says that it is one."""
    with agent("--trace-stacks", "yes", "--max-overhead", "0%") as a:
        begun(a)
        with started(FLOOD) as program:
            comes(a, [program.pid], ("<module>", "waiting", "allocate"), 1)
            program.stdin.write("\n")
            program.stdin.flush()
            wait_for(lambda: a.get("/api/v1/stacks").json()["estimated"], "a sample to be taken")
            before = calls(a, program.pid)
            wait_for(lambda: calls(a, program.pid) > 3 * before, "more calls")
            program.stdin.write("\n")
            program.stdin.flush()
            rounds = int(program.stdout.readline())
            wait_for(lambda: calls(a, program.pid) == LINES * rounds, "all calls to be counted")
            page = a.get("/api/v1/stacks").json()
            folded = a.get("/api/v1/stacks?format=folded").text
            program.stdin.close()
    contains(folded, "# estimated: from a sample")
    if "events were lost" in page["incomplete"]:
        raise Skip(page["incomplete"])
    unbiased(by_line(page, program.pid), rounds)


def whole(a, pid):
    """Stacks of a process from its entry point on, as (name, file), the outermost first."""
    page = a.get("/api/v1/stacks").json()
    weights = len(page["weights"])
    texts, places = page["texts"], page["places"]
    stacks = [[(texts[places[i][0]], texts[places[i][1]]) for i in row[3 + weights:]] for row in page["rows"] if row[0] == pid]
    return [s for s in stacks if s and s[0][0] == "_start"]


def python_in_native(stack):
    """The frames behind the program's own, up to the one of CUDA's library."""
    names = [name for name, _ in stack]
    return [n for n in names if n in ("<module>", "waiting", "allocate")], names


def test_native():
    """Native frames, which a helper has unwound by and named, with Python's in their places; and of a child, too."""
    with agent("--trace-stacks", "yes", "--trace-native-stacks", "yes", "--max-overhead", "0%") as a:
        begun(a)
        with started() as program:
            wait_for(lambda: len(children(program.pid)) == 1, "the child")
            wait_for(lambda: [pid for pid in of_agent("gpusonde-unwind") if parent(pid) == a.process.pid], "files to be read by a helper of its own")
            for pid in children(program.pid):
                stacks = wait_for(lambda: [s for s in whole(a, pid) if python_in_native(s)[0] == ["<module>", "waiting", "allocate"]], "a whole stack")
                names = python_in_native(stacks[-1])[1]
                assert names.index("_start") < names.index("<module>") < names.index("allocate") < len(names) - 1, names
                wait_for(lambda: not [n for s in whole(a, pid) for n, _ in s if n == "[not named yet]"], "all to be named")
                files = {file for s in whole(a, pid) for _, file in s}
                assert any(file.startswith("libcudart.so") for file in files), files
                assert any(file.startswith("libc.so") for file in files), files
            contains(a.get("/api/v1/stacks?format=html").text, "_start")
            contains(profile(a), b"_start")
            equal(a.get("/api/v1/stacks?format=folded").status, 200) # of nothing: no kernel is launched
            program.communicate("\n" * 4)


def test_given_up():
    """For the budget native frames go, then stacks; the process says so, and doctor counts it."""
    with agent("--trace-stacks", "yes", "--trace-native-stacks", "yes", "--max-overhead", "0.1%") as a:
        begun(a)
        with started(FLOOD) as program:
            program.stdin.write("\n")
            program.stdin.flush()
            wait_for(lambda: {"native_frames", "stacks"} <= set(incomplete(a, program.pid)), "both to be given up")
            wait_for(lambda: doctor_counts(a), "doctor to count what pages do, our process and what else there is")
            program.communicate("\n" * 2)
        log = a.log()
    assert log.index("its native frames are not taken") < log.index("its stacks are not taken"), log


def doctor_counts(a):
    """Whether doctor has as many processes as the page of the same time."""
    processes = a.get("/api/v1/trace").json()["trace"]["processes"]
    done = command("doctor", "--json", "--socket", a.socket)
    budget = {check["check"]: check for check in json.loads(done.stdout)["checks"]}["trace-budget"]
    equal(budget["verdict"], "warning", budget)
    counts = [sum(why in process["incomplete"] for process in processes) for why in ("native_frames", "stacks")]
    words = [f"{n} process" if n == 1 else f"{n} processes" for n in counts]
    return f"native frames of {words[0]}, stacks of {words[1]}" in budget["text"]


def incomplete(a, pid):
    return [why for p in a.get("/api/v1/trace").json()["trace"]["processes"] if p["pid"] == pid for why in p["incomplete"]]


def of_agent(name):
    """Helpers of this name."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and comm(pid) == name]


def test_with_waits():
    """With waits for the lock, too, one helper finds interpreters for both."""
    before = of_agent("gpusonde-python")
    with agent("--trace-stacks", "yes", "--trace-python", "yes", "--max-overhead", "0%") as a:
        begun(a)
        with started() as program:
            wait_for(lambda: len(children(program.pid)) == 1, "the child")
            child = children(program.pid)
            comes(a, child, ("<module>", "waiting", "allocate"), 1)
            own = [pid for pid in set(of_agent("gpusonde-python")) - set(before) if parent(pid) == a.process.pid]
            equal(len(own), 1, "helpers that find interpreters")
            program.communicate("\n" * 4)


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def test_off():
    with agent() as a:
        begun(a)
        page = a.get("/api/v1/stacks")
        equal(page.status, 404)
        contains(page.text, "trace.stacks is off")


if __name__ == "__main__":
    run()
