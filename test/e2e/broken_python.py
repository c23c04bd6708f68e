# SPDX-License-Identifier: Apache-2.0
"""Stacks of a program whose interpreter's memory is broken in all kinds of ways (broken_python.c): bounded, said, and no wrong line told as a right one."""
import collections
import re
import tempfile

from lib.e2e import BUILD, command, environment, equal, run
from lib.traced import tracing

PROGRAMS = f"{BUILD}/test/e2e/broken_python", f"{BUILD}/test/e2e/broken_python_free"
OUTER, MIDDLE, INNER = "outer (made.py:2)", "middle (made.py:12)", "inner (made.py:22)"
OTHER = "other (made.py)"
CUT, PART = "[deeper stack]", "[callers not readable]"
UNKNOWN, UNREAD, NO_THREAD = "[unknown function]", "[stack not readable]", "[thread without Python]"
# What is told of each case: the outermost first.
WANTED = {
    "known": [OUTER, MIDDLE, INNER],
    "innermost gone": [UNREAD],
    "none": ["[no Python code running]"],
    "caller gone": [PART, INNER],
    "caller of the kernel's": [PART, INNER],
    "caller at an odd place": [PART, INNER],
    "caller itself": [CUT] + [INNER] * 127,
    "circle": [CUT] + [INNER] + [OUTER, MIDDLE, INNER] * 42,
    "circle of C": [CUT, INNER],
    "code gone": [PART, INNER],
    "code none": [PART, INNER],
    "code zeros": [OUTER, UNKNOWN, INNER],
    "code no code": [OUTER, UNKNOWN, INNER],
    "before the code": [OUTER, MIDDLE, "inner (made.py)"],
    "behind the code": [OUTER, MIDDLE, "inner (made.py)"],
    "of other code": [OUTER, MIDDLE, "inner (made.py)"],
    "deep": [CUT] + [INNER] * 127,
    "name gone": [OUTER, UNKNOWN],
    "name too long": [OUTER, UNKNOWN],
    "name elsewhere": [OUTER, UNKNOWN],
    "name of no width": [OUTER, UNKNOWN],
    "file gone": [OUTER, UNKNOWN],
    "no text": [OUTER, "o?[1m:?r (???e.py:32)"],
    "lines gone": [OUTER, UNKNOWN],
    "more lines than memory": [OUTER, UNKNOWN],
    "no lines": [OUTER, OTHER],
    "lines of nonsense": [OUTER, OTHER],
    "half a line": [OUTER, OTHER],
    "no instructions": [OUTER, OTHER],
    "a line beyond all": [OUTER, OTHER],
    "first": [OUTER, "first (made.py:32)"],
    "later": [OUTER, "later (made.py:32)"],
    "a line later": [OUTER, "later (made.py:33)"],
    "in memory": [OUTER, INNER],
    "frame paged out": [PART, INNER],
    "all paged out": [UNREAD],
    "name paged out": [OUTER, UNKNOWN],
    "thread without a state": [NO_THREAD],
    "behind too many threads": [UNREAD],
    "behind 200 threads": [OUTER, MIDDLE, INNER],
    "circle of threads": [UNREAD],
    "circle of interpreters": [UNREAD],
    "threads gone": [NO_THREAD],
    "interpreter gone": [NO_THREAD],
    "no interpreter": [NO_THREAD],
    "two interpreters": ["[one of several interpreters]"],
    "the one that runs": [OUTER],
    "state of another thread": [NO_THREAD],
}
# Instructions of which threads have copies of their own, without the lock.
COPIES = {
    "own copy": [OUTER, "copied (made.py:32)"],
    "copy beyond all": [OUTER, "copied (made.py)"],
    "copies gone": [OUTER, "copied (made.py)"],
}


def stacks_of(lines):
    """Of folded text: each stack's bytes. Where the runtime's function begins with nothing that a probe may replace (arm64), the driver's is told."""
    stacks = collections.Counter()
    for line in lines:
        frames, weight = re.fullmatch(r".*?;(.*);(?:cudaMalloc|cuMemAlloc_v2) (\d+)", line.rstrip("\n")).groups()
        stacks[tuple(frames.split(";"))] += int(weight)
    return stacks


def said_of(text):
    """(case, bytes) of each call, as the program says it."""
    return [(line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in text.splitlines()]


def traced(*argv):
    """Of each stack the bytes; what the program says that it did."""
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", f"--stacks={tmp}/x.folded", "--stacks-of=python", "--weight=bytes_held", "--", *argv,
                       env=environment(LD_LIBRARY_PATH=f"{BUILD}/sim/cuda"))
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/x.folded", encoding="utf-8") as file:
            return stacks_of(file), said_of(done.stdout)


def compare(stacks, said, cases):
    equal({name for name, _ in said}, set(cases), "cases")
    wanted = collections.Counter()
    for name, number in said:
        wanted[tuple(cases[name])] += number
    for frames, number in wanted.items():
        equal(stacks.get(frames), number, f"{[name for name in cases if tuple(cases[name]) == frames]}: {frames}; all: {stacks}")
    equal(stacks, wanted, "stacks")


def check_each(program, cases):
    compare(*traced(program), cases)


def test_each_state_of_memory():
    tracing()
    check_each(PROGRAMS[0], WANTED)


def test_the_same_without_a_lock():
    """As 3.14's free-threaded builds have it, of which none was at hand."""
    tracing()
    check_each(PROGRAMS[1], WANTED | COPIES)


def test_garbage():
    """Whatever lies in its memory, each call has one stack, of at most so many frames, and what comes after is right."""
    tracing()
    for program, seed in zip(PROGRAMS, "12"):
        stacks, said = traced(program, seed)
        equal(sum(stacks.values()), sum(number for _, number in said), "bytes of all calls")
        assert max(map(len, stacks)) <= 128, max(stacks, key=len)
        calls = [number for name, number in said if name == "known"]
        assert stacks[tuple(WANTED["known"])] >= sum(calls), stacks


if __name__ == "__main__":
    run()
