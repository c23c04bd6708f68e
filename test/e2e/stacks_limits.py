# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --stacks where programs are large, or end: what is told is right, and what is not told is said. With GPUSONDE_TEST_ALL_PYTHONS on each CPython that is here."""
import collections
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time

from e2e.stacks import compare, interpreters
from lib.e2e import BUILD, GPUSONDE, SOURCE, command, environment, equal, run
from lib.traced import tracing

SIM = f"{BUILD}/sim/cuda"
CALLS = f"{SOURCE}/test/e2e/stacks_limits_calls.py"
ENV = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0", PYTHONDONTWRITEBYTECODE="1")
TRACE = [GPUSONDE, "trace", "--stacks-of=python", "--weight=calls"]
THREADS, FUNCTIONS = 200, 50000
# What stands in place of a stack that is not told.
NOT_TOLD = {"[too many stacks]", "[stack lost]", "[stack not readable]", "[one of several interpreters]", "[thread without Python]", "[no Python code running]",
            "[no Python interpreter known]"}
ALL = bool(os.environ.get("GPUSONDE_TEST_ALL_PYTHONS"))
KILLS = 8 if ALL else 3


def pythons():
    tracing()
    found = interpreters()
    for path in found if ALL else [p for p in found if p.startswith("/usr/bin/")][:1] or list(found)[:1]:
        print(f"# CPython {found[path]}: {path}", flush=True)
        yield path, found[path]


def folded(path):
    """Stack, outermost first -> calls; without the process and the function of CUDA."""
    stacks = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            text, weight = line.rstrip("\n").rsplit(" ", 1)
            _, *frames, last = text.split(";")
            equal(last, "cudaMalloc")
            stacks[tuple(frames)] += int(weight)
    return stacks


def traced(python, tmp, *argv):
    done = command("trace", f"--stacks={tmp}/x.folded", "--stacks-of=python", "--weight=calls", "--", python, CALLS, f"{tmp}/said", *argv, env=ENV)
    equal(done.returncode, 0, done.stderr)
    return folded(f"{tmp}/x.folded"), done


def said(path):
    stacks = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for frames, number in json.load(file):
            stacks[tuple(frames)] += number
    return stacks


def test_threads():
    """200 at once: each call has the stack of its thread."""
    for python, _ in pythons():
        with tempfile.TemporaryDirectory() as tmp:
            stacks, _ = traced(python, tmp, "threads", str(THREADS))
            compare(stacks, said(f"{tmp}/said"))


def test_depth():
    """Thousands of frames, of C functions between them, too: the innermost ones are told, and that there are more."""
    for python, _ in pythons():
        with tempfile.TemporaryDirectory() as tmp:
            stacks, _ = traced(python, tmp, "deep")
            wanted = said(f"{tmp}/said")
            # Of that many frames of C between those of Python fewer are found.
            shallow = {frames: n for frames, n in wanted.items() if frames[0] != "[deeper stack]"}
            for frames, number in shallow.items():
                equal(stacks.get(frames), number, str(frames))
            for frames, number in stacks.items():
                if frames not in shallow:
                    equal(frames[0], "[deeper stack]")
                    inner = frames[1:]
                    assert any(w[-len(inner):] == inner for w in wanted), frames
            equal(sum(stacks.values()), sum(wanted.values()), "calls")


def test_functions():
    """100,000, half of which are gone when the next one calls: a name and a line that are told belong together, and none is told twice."""
    for python, _ in pythons():
        with tempfile.TemporaryDirectory() as tmp:
            stacks, done = traced(python, tmp, "functions", str(FUNCTIONS))
            missing = 2 * FUNCTIONS - sum(stacks.values())
            assert missing == 0 or missing > 0 and "events were lost" in done.stderr, f"{missing} calls are missing; {done.stderr}"
            told = 0
            for frames, number in stacks.items():
                if frames[-1] in NOT_TOLD or frames[-1] == "[unknown function]":
                    continue
                name, line = re.fullmatch(r"made_(\d+) \(made.py:(\d+)\)", frames[-1]).groups()
                equal(int(line), int(name) + 2, frames[-1])
                equal(number, 1, frames[-1])
                told += 1
            print(f"# {told} of {2 * FUNCTIONS} functions told; {stacks.most_common(2)[0][1]} calls {stacks.most_common(1)[0][0][-1]}", flush=True)
            # There is room for some 65,000.
            assert 0 < told < 2 * FUNCTIONS and "INCOMPLETE" in done.stderr, done.stderr


def test_end():
    """Calls while the interpreter ends: at exit, when modules are cleared, and of threads that go on."""
    for python, version in pythons():
        with tempfile.TemporaryDirectory() as tmp:
            stacks, _ = traced(python, tmp, "end")
            wanted = said(f"{tmp}/said")
            equal([stacks[frames] for frames in wanted], list(wanted.values()), "calls at exit, while all is there")
            with open(f"{tmp}/said.end", encoding="utf-8") as file:
                last = file.read().splitlines()
            for line in last:
                wanted[tuple(line.split(";"))] += 1
            print(f"# {len(last)} calls of destructors at the end", flush=True)
            for frames, number in stacks.items():
                if len(frames) == 1 and frames[0] in NOT_TOLD or frames[-1].startswith("end.<locals>.daemon ") or frames[-1].startswith("daemon "):
                    continue
                assert wanted[frames] >= number, f"{version}: {frames}: {number} calls told of {wanted[frames]}; all: {wanted}"


def test_killed():
    """gpusonde, or the program, at any moment: the program goes on as without, and what is written is whole."""
    for python, _ in pythons():
        for _ in range(KILLS):
            with tempfile.TemporaryDirectory() as tmp:
                argv = [*TRACE, f"--stacks={tmp}/x.folded", "--", python, CALLS, f"{tmp}/said", "spin", "30000"]
                with subprocess.Popen(argv, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gpusonde:
                    equal(gpusonde.stdout.readline(), "begun\n", "the program")
                    time.sleep(random.uniform(0, 1))
                    gpusonde.send_signal(signal.SIGKILL)
                    # Its pipe is open until the program ends, too.
                    equal(gpusonde.stdout.read(), "done 30000\n", "the program's output")
                assert not os.path.exists(f"{tmp}/x.folded") or folded(f"{tmp}/x.folded"), "it is written whole, or not at all"


def test_program_killed():
    for python, _ in pythons():
        for _ in range(KILLS):
            with tempfile.TemporaryDirectory() as tmp:
                argv = [*TRACE, f"--stacks={tmp}/x.folded", "--",
                        "timeout", "-s", "KILL", f"{random.uniform(0.1, 1.0):.3f}", python, CALLS, f"{tmp}/said", "spin", "1000000"]
                done = subprocess.run(argv, env=ENV, capture_output=True, text=True, check=False)
                equal(done.returncode, 128 + 9, done.stderr)
                for frames in folded(f"{tmp}/x.folded"):
                    if frames[-1] in NOT_TOLD:
                        continue
                    assert re.fullmatch(r"call \(.*:\d+\)", frames[-1]), frames
                    assert all(re.match(r"(<module>|spin|recursion|call) \(.*_calls.py:\d+\)$", frame) for frame in frames), frames


if __name__ == "__main__":
    run()
