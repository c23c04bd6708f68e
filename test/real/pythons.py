#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython of the newest versions, as Debian compiles it: stacks, waits for the lock, and what else e2e/ asks of the interpreters that are here.

    pythons.py BUILD SOURCE VERSION [words of names of tests]
"""
import functools
import subprocess
import sys

from e2e import gil, stacks, stacks_limits, stacks_native
from lib import e2e, rows

import real

VERSION = sys.argv.pop(3)


@functools.lru_cache(maxsize=None)
def interpreter():
    """(path, its whole version)"""
    real.need_tracing()
    path = real.thing(f"python-{VERSION}")[f"python{VERSION}"]
    done = subprocess.run([path, "-c", "import ctypes, platform; print(platform.python_version())"], capture_output=True, text=True, check=False)
    e2e.equal(done.returncode, 0, done.stderr)
    return path, done.stdout.strip()


def found():
    path, version = interpreter()
    return {path: version}


gil.interpreters = stacks_limits.interpreters = found


def test_stacks():
    path, version = interpreter()
    stacks.check(path)
    rows.say("pythons", version, stacks="equal to its own frames', in coroutines, threads, sub-interpreters and children too")


def test_native_frames():
    path, version = interpreter()
    stacks_native.check_mixed(path)
    rows.say("pythons", version, native="each function of Python in its place among native frames")


def test_limits():
    stacks_limits.test_threads()
    stacks_limits.test_depth()
    stacks_limits.test_functions()
    stacks_limits.test_end()
    rows.say("pythons", interpreter()[1], limits="200 threads, 5,000 frames, 100,000 functions, its end: right or said")


def test_waits_for_the_lock():
    gil.test_a_thread_waits_while_another_one_holds_the_lock()
    gil.test_each_turn_is_one_wait()
    gil.test_what_a_single_thread_does()
    rows.say("pythons", interpreter()[1], waits="counted")


if __name__ == "__main__":
    e2e.run()
