# SPDX-License-Identifier: Apache-2.0
"""What a recording costs: bench/recordings.c samples the simulated node, whose numbers all change, on an accelerated clock, so that its blocks are whole ones."""
import contextlib
import os
import sqlite3
import subprocess
import tempfile

from common import BUILD, Row

HOURS = int(os.environ.get("BENCH_RECORDINGS_HOURS", "2")) # a block of minutes has two
PACES = (("second", 86400), ("ten seconds", 7 * 8640), ("minute", 365 * 1440)) # and the snapshots that are kept by default
MIB = 1 << 20


def bytes_by_frame(path):
    """By pace; what a block begins with is divided by its frames."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [size / frames for frames, size in
                db.execute("SELECT sum(frames), sum(length(data)) FROM block GROUP BY tier ORDER BY tier").fetchall()]


def record(links):
    """Sizes of a snapshot by pace, and the seconds that storing them took."""
    with tempfile.TemporaryDirectory() as tmp:
        out = subprocess.run([f"{BUILD}/bench/bench_recordings", os.path.abspath(f"{BUILD}/sim/libnvidia-ml.so.1"), tmp, str(HOURS), str(links)],
                             env=dict(os.environ, GPUSONDE_SIM_SCENARIO="node-8xh100"), stdout=subprocess.PIPE, text=True, check=True).stdout
        return bytes_by_frame(f"{tmp}/r.db"), float(out)


def run():
    for name, links in (("links alike", 0), ("each link differs by a thousandth", 1000)):
        sizes, seconds = record(links)
        kept = [size * frames / MIB for size, (_, frames) in zip(sizes, PACES)]
        for size, (pace, _) in zip(sizes, PACES):
            yield Row(f"{name}: a snapshot of each {pace}, bytes", size, "{:,.0f}")
        yield Row(f"{name}: a day of one a second, MiB", kept[0], "{:,.0f}")
        yield Row(f"{name}: a year of one a minute, MiB", kept[2], "{:,.0f}", at_most=2048)
        yield Row(f"{name}: all that is kept by default, MiB", sum(kept), "{:,.0f}", at_most=2048)
        yield Row(f"{name}: to store the snapshots: share of a core", seconds / (HOURS * 3600), "{:.4f}", at_most=0.02)
