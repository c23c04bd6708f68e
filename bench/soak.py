# SPDX-License-Identifier: Apache-2.0
"""Memory stays flat: bench/soak.c reads, adds up and shows the simulated node on an accelerated clock."""
import os
import subprocess

from common import BUILD, Row

SAMPLES = int(os.environ.get("BENCH_SOAK_SAMPLES", "10000000"))


def run():
    out = subprocess.run([f"{BUILD}/bench/soak", os.path.abspath(f"{BUILD}/sim/libnvidia-ml.so.1"), str(SAMPLES)],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    samples, ticks, warm, end = map(int, out.split())
    return [Row("samples (a GPU or process read once)", samples, "{:,}"), Row("ticks of one second", ticks, "{:,}"),
            Row("resident after the first half, MiB", warm / 2**20, "{:.2f}"),
            Row("growth over the second half, KiB", (end - warm) / 1024, "{:.0f}", at_most=64)]
