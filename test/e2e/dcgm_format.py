#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of DCGM exporters' pages beside Prometheus's own: strict, both take and refuse the same pages, and have the same numbers."""
import json
import math
import os
import random
import shutil
import subprocess

from lib.e2e import BUILD, Skip, equal, run

DUMP = f"{BUILD}/test/tools/dcgm_dump"
PAGES = int(os.environ.get("GPUSONDE_DCGM_PAGES", "300"))
SEED = 20261125
LINES = [
    '# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).', '# TYPE DCGM_FI_DEV_GPU_TEMP gauge',
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",device="nvidia0"} 40', 'DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-2",device="nvidia1"} 41 1700000000000',
    '# TYPE DCGM_FI_PROF_SM_ACTIVE counter', 'DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-1",pod="a\\"b\\\\c\\nd"} 0.25', 'DCGM_FI_DEV_FB_USED{gpu="0",} 2048',
    '# TYPE rpc summary', 'rpc{quantile="0.5"} 1', 'rpc_sum 2', 'rpc_count 3', '# TYPE lat histogram', 'lat_bucket{le="+Inf"} 1', 'lat_sum 1', 'lat_count 1',
    '', '   ', '# a comment', '#', '# HELP', '# TYPE x', 'go_goroutines 12', 'x NaN', 'y -Inf', 'z{ a = "b" , c = "\u00e4" } 1e3', '\tw 5.']
# What a mutation puts in; each breaks something somewhere.
BITS = ['"', '\\', '{', '}', ',', '=', ' ', '\t', '\n', '#', '_', 'e', 'p', '0x', '\xff', '\r', ':', '1', 'NaN', '# TYPE ', 'quantile', 'a="b",', '+', '-', '.', 'HELP ']


def promtool():
    path = shutil.which("promtool")
    if not path:
        raise Skip("no promtool; install Debian's package prometheus")
    return path


def takes(tool, page):
    """What promtool lints is no matter here: only whether it could read the page."""
    done = subprocess.run([tool, "check", "metrics"], input=page, capture_output=True, timeout=60, check=False)
    return b"error while linting" not in done.stderr


def dump(page, *how):
    done = subprocess.run([DUMP, *how], input=page, capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0, [json.loads(line) for line in done.stdout.splitlines()]


def mutated(chance):
    lines = [chance.choice(LINES) for _ in range(chance.randint(1, 8))]
    page = "\n".join(lines) + ("\n" if chance.random() < 0.9 else "")
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        at = chance.randint(0, len(page))
        page = page[:at] + chance.choice(BITS) + page[at + chance.randint(0, 2):]
    return page.encode("latin-1", "replace")


def test_strict_as_prometheus():
    tool = promtool()
    chance = random.Random(SEED)
    taken = 0
    for _ in range(PAGES):
        page = mutated(chance)
        wanted = takes(tool, page)
        got, rows = dump(page, "strict", str(chance.choice([1, 7, 65536])))
        assert got == wanted, f"Prometheus {'takes' if wanted else 'refuses'} {page!r}, we say {rows[-1]}"
        taken += got
    # Or it would say nothing.
    assert PAGES // 5 < taken < PAGES * 4 // 5, taken


def test_numbers_as_prometheus_client():
    try:
        from prometheus_client.parser import text_string_to_metric_families  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("no prometheus_client for this Python; install Debian's package python3-prometheus-client") from None
    chance = random.Random(SEED)
    lines = ["# TYPE DCGM_FI_DEV_POWER_USAGE gauge"]
    for i in range(500):
        value = chance.choice([f"{chance.uniform(-1e6, 1e6):.6f}", repr(chance.uniform(0, 1)), str(chance.randint(0, 10 ** chance.randint(1, 25))),
                               f"{chance.random():e}", f"{chance.uniform(1, 9)}e{chance.randint(-320, 308)}"])
        lines.append(f'DCGM_FI_DEV_POWER_USAGE{{gpu="{i}"}} {value}')
    page = "\n".join(lines) + "\n"
    wanted = {s.labels["gpu"]: s.value for family in text_string_to_metric_families(page) for s in family.samples}
    _, rows = dump(page.encode())
    got = {row["gpu"]: row["power_usage"] for row in rows if row["table"] == "row"}
    assert len(got) > 490, len(got)
    for gpu, value in got.items():
        assert value == wanted[gpu] or math.isclose(value, wanted[gpu], rel_tol=0, abs_tol=0), (gpu, value, wanted[gpu])


def test_lenient_loses_the_line_alone():
    page = open(f"{os.path.dirname(__file__)}/dcgm_page.prom", "rb").read()
    ok, rows = dump(page)
    end = rows[-1]
    equal((ok, end.get("labels"), end.get("duplicate_label"), end.get("utf8"), end.get("value"), end.get("blank"), end.get("comment")), (True, 1, 1, 1, 1, 1, 1))
    table = {(r["gpu"], r["gi"], r["pod"]): r for r in rows if r["table"] == "row"}
    equal(sorted(table), [("0", "", "train-0"), ("1", "", ""), ("3", "8", "p")])
    equal(table["0", "", "train-0"]["gpu_utilization"], 97.0)
    equal(table["3", "8", "p"]["graphics_engine_active"], 0.482113)
    equal(table["1", "", ""]["xid_errors"], 79.0)
    ok, rows = dump(page, "strict")
    equal((ok, rows[-1]["lost"]), (False, "labels"))


if __name__ == "__main__":
    run()
