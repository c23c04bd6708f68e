#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython of the newest versions, as Debian compiles it, and without its lock ("3.13t"), and those that are here ("here"): stacks, waits for the lock.

    pythons.py BUILD SOURCE VERSION [words of names of tests]
"""
import functools
import subprocess
import sys

from e2e import gil, stacks, stacks_limits, stacks_native
from lib import e2e, rows

import real

VERSION = sys.argv.pop(3)
FREE_THREADED = VERSION.endswith("t")


@functools.lru_cache(maxsize=None)
def found():
    """path -> its whole version"""
    real.need_tracing()
    if VERSION == "here":
        return stacks.interpreters()
    fetched = real.thing(f"python-{VERSION}")
    path = f"{fetched['bin']}/python{VERSION}" if FREE_THREADED else fetched[f"python{VERSION}"]
    done = subprocess.run([path, "-c", "import ctypes, platform; print(platform.python_version())"], capture_output=True, text=True, check=False)
    e2e.equal(done.returncode, 0, done.stderr)
    return {path: done.stdout.strip() + ("t" if FREE_THREADED else "")}


def each(check, **cells):
    """Runs @check(path) with each alone to be found by e2e's tests, and says its row."""
    for path, version in found().items():
        gil.interpreters = stacks_limits.interpreters = lambda alone=(path, version): dict([alone])
        check(path)
        rows.say("pythons", version, **cells)


def test_stacks():
    each(stacks.check, stacks="equal to its own frames', in coroutines, threads, sub-interpreters and children too")


def test_native_frames():
    each(stacks_native.check_mixed, native="each function of Python in its place among native frames")


def test_limits():
    def check(_):
        stacks_limits.test_threads()
        stacks_limits.test_depth()
        stacks_limits.test_functions()
        stacks_limits.test_end()
    each(check, limits="200 threads, 5,000 frames, 100,000 functions, its end: right or said")


def test_waits_for_the_lock():
    def check(_):
        if not FREE_THREADED:
            gil.test_a_thread_waits_while_another_one_holds_the_lock()
            gil.test_each_turn_is_one_wait()
        gil.test_what_a_single_thread_does()
    each(check, waits="none, since it has no lock; collections of garbage as it counts them" if FREE_THREADED else "counted")


if __name__ == "__main__":
    e2e.run()
