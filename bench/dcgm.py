# SPDX-License-Identifier: Apache-2.0
"""Pages of a DCGM exporter of 200 MB: CPU time against wc -l of the same bytes, and memory above that of an empty page.

dcgm_dump reads them as gpusonde-dcgm does, without its HTTP client; what that one's process takes beside is in test/e2e/dcgm.py.
"""
import json
import os
import statistics
import subprocess
import tempfile

from common import BUILD, Row

DUMP = f"{BUILD}/test/tools/dcgm_dump"
BYTES = 200_000_000
ROUNDS = 3
MIB = 1 << 20
GPU = ('gpu="{0}",UUID="GPU-{0}",pci_bus_id="00000000:{0}B:00.0",device="nvidia{0}",modelName="NVIDIA H200",Hostname="n1",DCGM_FI_DRIVER_VERSION="570.86.15",'
       'container="main",namespace="ml",pod="pod-{1}"')


def rows():
    return "".join(f"DCGM_FI_DEV_GPU_TEMP{{{GPU.format(i % 8, i)}}} {i % 90}\n" for i in range(400))


def others():
    return "".join(f'other_metric_total{{path="/{i}",code="200"}} {i}\n' for i in range(8000))


def timed(path, *command):
    """(CPU seconds, the last line of its output) of a program that reads the file."""
    with open(path, "rb") as f, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=f, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        output.seek(0)
        last = output.read().splitlines()[-1]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, last


def peak(line):
    return json.loads(line)["peak_kib"] * 1024


def measure(folder, name, piece):
    path = f"{folder}/page"
    with open(path, "wb") as f:
        for _ in range(BYTES // len(piece) + 1):
            f.write(piece.encode())
    _, idle = timed("/dev/null", DUMP)
    for how in ("lenient", "strict"):
        runs = [timed(path, DUMP, *([how] if how == "strict" else [])) for _ in range(ROUNDS)]
        lines = [timed(path, "wc", "-l")[0] for _ in range(ROUNDS)]
        seconds = statistics.median(r[0] for r in runs)
        yield Row(f"{name}, {how}: CPU seconds for 200 MB", seconds, "{:.2f}")
        yield Row("and of wc -l, times", seconds / statistics.median(lines), "{:.1f}")
        yield Row("memory above that of an empty page, MiB", (max(peak(r[1]) for r in runs) - peak(idle)) / MIB, "{:.2f}", at_most=2)


def run():
    found = []
    with tempfile.TemporaryDirectory(prefix="gpusonde-bench-") as folder:
        found += measure(folder, "families that are read alone", rows())
        found += measure(folder, "mostly other families", rows() + others())
    return found
