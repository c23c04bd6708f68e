# SPDX-License-Identifier: Apache-2.0
"""Programs that the run watches: started, let go when something is ready for them, asked what they did."""
import json
import os
import select
import subprocess
import time

from machine import run
from rows import NotCompared

LIMIT_S = 120


class Program:
    """program.c with a pause before its first call of CUDA and another one before its end."""

    def __init__(self, machine, *words, **env):
        self.command = [machine.program(), *map(str, words)]
        self.env = {**machine.program_env, "PROGRAM_PAUSE": "1", **env}

    def __enter__(self):
        # Unbuffered: select() would not see a line that was read along with the one before it.
        self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        try:
            if self.line() != "ready\n":
                raise NotCompared(f"{' '.join(self.command[1:])}: ended with {self.process.wait(LIMIT_S)} before its first call")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def says(self, seconds):
        """Whether it says something within so many seconds."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def line(self):
        """The next line; of a program that hangs none comes."""
        if not self.says(LIMIT_S):
            raise NotCompared(f"{' '.join(self.command[1:])}: says nothing for {LIMIT_S} s")
        return self.process.stdout.readline().decode()

    def go(self):
        """Until its device is ready, and the work begins."""
        self.process.stdin.write(b"\n")
        if self.line() != "working\n":
            raise NotCompared(f"{' '.join(self.command[1:])}: ended with {self.process.wait(LIMIT_S)} in its first calls")

    def stop(self):
        """Of "busy", which goes on until then; what it did."""
        self.process.stdin.write(b"\n")
        return self.result()

    def result(self):
        """What it did; it lives on until the block ends."""
        said = self.line()
        if not said:
            raise NotCompared(f"{' '.join(self.command[1:])}: ended with {self.process.wait(LIMIT_S)}")
        return json.loads(said)


def plain(machine, *command, **env):
    """Run to its end, untraced: its output, and how long it took."""
    begin = time.monotonic()
    out = run(*map(str, command), env={**machine.program_env, **env}, limit_s=LIMIT_S)
    return out, time.monotonic() - begin


def traced(machine, *command, flags=(), **env):
    """Run to its end under "gpusonde trace": its output, gpusonde's document."""
    machine.need_root()
    path = f"{machine.tmp}/trace.json"
    if os.path.exists(path):
        os.unlink(path)
    # The status is the command's: run() refuses another than 0.
    out = run(machine.gpusonde, "trace", "--json", *flags, "-o", path, "--", *map(str, command), env={**machine.trace_env, **env},
              limit_s=LIMIT_S)
    with open(path, encoding="utf-8") as f:
        document = json.loads(f.read().splitlines()[-1])
    return out, document
