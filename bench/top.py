# SPDX-License-Identifier: Apache-2.0
"""The screen on the simulated node, 8 GPUs and 64 processes at a sample a second: CPU time, bytes written to the terminal, time to the first picture; nvtop
and nvitop on the same simulated driver beside it, where they are installed."""
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import tempfile
import termios
import time

from common import BUILD, Row, agent, stop

SECONDS = int(os.environ.get("BENCH_TOP_SECONDS", "30"))
ROWS, COLUMNS = 40, 120
STARTS = 9


class Screen:
    """A program on a terminal of its own, whose bytes are counted and thrown away."""

    def __init__(self, command, env):
        self.bytes = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execvpe(command[0], command, dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", **env))
        self.seen = b""

    def read(self, seconds, until=None):
        """False: it has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                part = os.read(self.fd, 1 << 16)
            except OSError:
                return False
            self.bytes += len(part)
            self.seen = (self.seen + part)[-1 << 16:]
            if until and until in self.seen:
                return True
        return True

    def cpu(self):
        """Seconds that its threads ran, as the scheduler counts them."""
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def measure(command, env):
    """Shares of a core, and bytes a second, once it has begun."""
    screen = Screen(command, env)
    try:
        if not screen.read(5):
            return None
        before, screen.bytes, begin = screen.cpu(), 0, time.monotonic()
        if not screen.read(SECONDS):
            return None
        seconds = time.monotonic() - begin
        return (screen.cpu() - before) / seconds * 100, screen.bytes / seconds
    finally:
        screen.end()


def first_picture(command, env):
    times = []
    for _ in range(STARTS):
        begin = time.monotonic()
        screen = Screen(command, env)
        screen.read(10, b"UTIL")
        times.append((time.monotonic() - begin) * 1000)
        screen.end()
    return statistics.median(times)


def run():
    with tempfile.TemporaryDirectory(prefix="gpusonde-bench-") as tmp:
        a = agent(tmp, extra=("--socket", f"{tmp}/socket"))
        try:
            command = [os.path.abspath(f"{BUILD}/gpusonde"), "top", "--socket", f"{tmp}/socket"]
            home = {"HOME": tmp}
            yield Row("`gpusonde top`: from start to the first picture of the GPUs, median of 9, beside an agent", first_picture(command, home), "{:.0f} ms", at_most=100)
            cpu, written = measure(command, home)
            yield Row("`gpusonde top`: CPU, of a core", cpu, "{:.2f} %", at_most=0.5)
            yield Row("`gpusonde top`: written to the terminal, by second", written, "{:.0f} B")
        finally:
            stop(a)
        simulated = {"HOME": tmp, "LD_LIBRARY_PATH": os.path.abspath(f"{BUILD}/sim")}
        for name, package in (("nvtop", "apt install nvtop"), ("nvitop", "pip install nvitop")):
            found = measure([name], simulated) if shutil.which(name) else None
            for what, i, form in (("CPU, of a core", 0, "{:.2f} %"), ("written to the terminal, by second", 1, "{:.0f} B")):
                if found:
                    yield Row(f"{name}: {what}", found[i], form)
                else:
                    yield Row(f"{name}: {what}", skipped=f"it is not here, or does not run: {package}")
