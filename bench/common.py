# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks: a row of the table, and an agent on the simulated node."""
import os
import signal
import socket
import subprocess
import time
import urllib.request

BUILD = os.environ.get("BUILD", "build")


class Skip(Exception):
    """The comparison is not possible here; the text has the cause and the remedy."""


class Row:
    def __init__(self, name, value=None, form="{}", at_most=None, at_least=None, skipped=None):
        self.name, self.value, self.form = name, value, form
        self.at_most, self.at_least, self.skipped = at_most, at_least, skipped

    def promise(self):
        if self.at_most is not None:
            return "at most " + self.form.format(self.at_most)
        if self.at_least is not None:
            return "at least " + self.form.format(self.at_least)
        return ""

    def verdict(self):
        if self.skipped:
            return "SKIPPED: " + self.skipped
        if self.at_most is not None and self.value > self.at_most:
            return "MISSED"
        if self.at_least is not None and self.value < self.at_least:
            return "MISSED"
        return "kept" if self.promise() else ""

    def figure(self):
        return "" if self.skipped else self.form.format(self.value)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    """Of all its threads: one of the agent's starts processes."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            found += [int(p) for p in f.read().split()]
    return found


def agent(tmp, extra=(), env=None):
    """A running agent on the simulated 8-GPU, 64-process node; its port is in .port, ready to be scraped."""
    port = free_port()
    environment = dict(os.environ, GPUSONDE_NVML_LIBRARY=os.path.abspath(f"{BUILD}/sim/libnvidia-ml.so.1"), **(env or {}))
    process = subprocess.Popen(
        [f"{BUILD}/gpusonde", "agent", "--listen", f"127.0.0.1:{port}", "--socket", f"{tmp}/agent.sock",
         "--state-dir", tmp, *extra], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.port = port
    process.scrape = lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()
    for _ in range(100):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                return process
        except OSError:
            time.sleep(0.1)
    stop(process)
    raise RuntimeError("the agent did not become ready within 10 s")


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
