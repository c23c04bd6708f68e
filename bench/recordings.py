# SPDX-License-Identifier: Apache-2.0
"""What a recording costs: the file by pace, of the simulated node whose numbers all change, and the CPU time. A day and a year are extrapolated."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import tempfile
import time

from common import BUILD, Row

SECONDS = 310 # so that there are six snapshots of a minute
DAY, MINUTES_OF_YEAR = 86400, 365 * 1440
GIB = 1 << 30


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def store_of(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                    if comm.read().strip() == "gpusonde-store":
                        return int(child)
    raise RuntimeError("no gpusonde-store")


def bytes_by_frame(path, tier):
    """What a block begins with is divided by its frames."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        blocks = db.execute("SELECT frames, length(data) FROM block WHERE tier=? ORDER BY id", (tier,)).fetchall()
    return sum(size for _, size in blocks) / sum(frames for frames, _ in blocks)


def run():
    env = dict(os.environ, GPUSONDE_NVML_LIBRARY=os.path.abspath(f"{BUILD}/sim/libnvidia-ml.so.1"), GPUSONDE_SIM_SCENARIO="node-8xh100")
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/r.db"
        with subprocess.Popen([f"{BUILD}/gpusonde", "record", "--store", path], env=env, stderr=subprocess.DEVNULL) as recorder:
            time.sleep(SECONDS)
            cpu = cpu_seconds(store_of(recorder.pid))
            recorder.send_signal(signal.SIGINT)
        second, minute = bytes_by_frame(path, 0), bytes_by_frame(path, 2)
    yield Row("a snapshot of each second, bytes", second, "{:,.0f}")
    yield Row("a day of them, extrapolated, MiB", second * DAY / (1 << 20), "{:,.0f}")
    yield Row("a snapshot of a minute, in a block of five, bytes (a block has 240)", minute, "{:,.0f}")
    yield Row("a year of them, extrapolated from blocks of five, GiB", minute * MINUTES_OF_YEAR / GIB, "{:.2f}")
    yield Row("gpusonde-store: share of a core", cpu / SECONDS, "{:.4f}", at_most=0.02)
