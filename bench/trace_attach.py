# SPDX-License-Identifier: Apache-2.0
"""How long it takes to probe 300 functions of one mapped file and to detach them (attach_cost.c): medians.

Letting go is waiting for the kernel: until no CPU can be in one of the programs any more.
"""
import statistics
import tempfile

from common import BUILD, Row, Skip
from tracing import need_tracing, output_of, real_driver, unwatched

ROUNDS = "15"
PROMISED_MS = {"uprobe_multi": (20, 50), "trace event": (100, 100)}


def run():
    rows = []
    try:
        need_tracing()
        with tempfile.TemporaryDirectory() as folder:
            result = output_of(f"{BUILD}/bench/attach_cost", unwatched(real_driver(), folder, "real.so"), ROUNDS)
    except Skip as why:
        return [Row("300 probes to attach and detach", skipped=str(why))]
    for way, (attach_ms, detach_ms) in PROMISED_MS.items():
        if way not in result:
            rows.append(Row(f"{way}: 300 probes to attach and detach", skipped="this kernel does not have it"))
            continue
        got = {key: statistics.median(value) for key, value in result[way].items() if key != "sites"}
        rows += [Row(f"{way}: {result[way]['sites']} probes attached, ms", got["attach_ms"], "{:.1f}", at_most=attach_ms),
                 Row(f"{way}: and detached, ms", got["detach_ms"], "{:.1f}", at_most=detach_ms),
                 Row(f"{way}: with return probes attached, ms", got["pairs_attach_ms"], "{:.1f}"),
                 Row(f"{way}: and detached, ms", got["pairs_detach_ms"], "{:.1f}")]
    return rows
