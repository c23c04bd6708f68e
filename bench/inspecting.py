# SPDX-License-Identifier: Apache-2.0
"""gpusonde inspect: against decompressing the same images alone, and against cuobjdump.

The libraries are the CUDA toolkit's beside nvcc, and PyTorch's; cuobjdump and PyTorch come from PyPI (test/lib/fetch.py). Wall time of some
rounds in which all take turns: the least against decompressing, the median against cuobjdump. gpusonde maps no file, so that all of its memory counts.
"""
import collections
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from lib import fetch

from common import BUILD, Row

LIBRARIES = ("cublas", "cublasLt", "cudnn_engines_precompiled", "nccl")
ROUNDS = 3
MIB = 1 << 20


def toolkit():
    nvcc = os.path.realpath(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    return os.path.join(os.path.dirname(os.path.dirname(nvcc)), "lib64")


def timed(*command, output=subprocess.DEVNULL):
    """(seconds, peak bytes) of a program; raises if it fails."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: exit status {process.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def inspect(path, output=subprocess.DEVNULL):
    return timed(f"{BUILD}/gpusonde", "inspect", path, "--json", output=output)


def alone(path):
    return json.loads(subprocess.run([f"{BUILD}/bench/inflate", path], check=True, capture_output=True).stdout)["seconds"]


def against_decompressing(name, path):
    ours, baseline, peak = [], [], 0
    inspect(path)   # reads the file into the page cache
    for _ in range(ROUNDS):
        seconds, bytes_ = inspect(path)
        ours.append(seconds)
        peak = max(peak, bytes_)
        baseline.append(alone(path))
    yield Row(f"{name}: all kernels' figures, seconds", min(ours), "{:.2f}")
    yield Row(f"{name}: speed, of that of decompressing alone", min(baseline) / min(ours), "{:.2f}", at_least=0.5)
    yield Row(f"{name}: resident memory at most, MiB", peak / MIB, "{:.1f}", at_most=64)


def figures_of_cuobjdump(text):
    """{(architecture, kernel, figures): how many}"""
    found, arch, name = collections.Counter(), None, None
    for line in text:
        if line.startswith("arch = "):
            arch = line.split()[2]
        elif line.startswith(" Function "):
            name = line[len(" Function "):].rstrip()[:-1]
        elif line.startswith("  REG:"):
            figures = dict(word.rsplit(":", 1) for word in line.split())
            if "CONSTANT[0]" in figures:    # others are device functions
                found[arch, name, *(figures[f] for f in ("REG", "STACK", "SHARED", "LOCAL", "CONSTANT[0]"))] += 1
    return found


def figures_of_inspect(document):
    found = collections.Counter()
    for kernel in document["kernels"]:
        stack = kernel["stack_bytes"]
        shared = kernel["static_shared_bytes"] + kernel["reserved_shared_bytes"]
        figures = (kernel["registers"], "UNKNOWN" if stack is None else stack, shared, kernel["local_bytes"], kernel["constant_bytes"])
        found[kernel["arch"], kernel["name"], *map(str, figures)] += 1
    return found


def against_cuobjdump(name, path, cuobjdump):
    ours, tables, theirs, peaks = [], [], [], []
    with tempfile.TemporaryFile("w+") as one, tempfile.TemporaryFile("w+") as other:
        for _ in range(ROUNDS):
            one.seek(0)
            other.seek(0)
            seconds, mine = inspect(path, one)
            ours.append(seconds)
            tables.append(timed(f"{BUILD}/gpusonde", "inspect", path)[0])
            seconds, its = timed(cuobjdump, "-res-usage", path, output=other)
            theirs.append(seconds)
            peaks.append((mine, its))
        one.seek(0)
        other.seek(0)
        mine, its = figures_of_inspect(json.load(one)), figures_of_cuobjdump(other)
    yield Row(f"{name}: kernels", sum(mine.values()), "{:,}")
    yield Row(f"{name}: kernels with other figures than cuobjdump -res-usage says", sum(((mine - its) + (its - mine)).values()), "{:,}",
              at_most=0)
    yield Row(f"{name}: cuobjdump, seconds", statistics.median(theirs), "{:.2f}")
    for what, seconds in (("--json", ours), ("table", tables)):
        yield Row(f"{name}: {what}, time, of cuobjdump's", statistics.median(seconds) / statistics.median(theirs), "{:.3f}", at_most=1 / 5)
    yield Row(f"{name}: memory, of cuobjdump's", max(p[0] for p in peaks) / max(p[1] for p in peaks), "{:.4f}", at_most=1 / 50)


def run():
    rows = []
    for name in LIBRARIES:
        path = f"{toolkit()}/lib{name}.so"
        if os.path.exists(path):
            rows += against_decompressing(f"lib{name}", path)
        else:
            rows.append(Row(f"lib{name}", skipped=f"no {path}: install a CUDA toolkit"))
    try:
        things = {name: fetch.get(name, f"{BUILD}/real") for name in ("cuobjdump", "torch")}
    except fetch.Unavailable as why:
        return rows + [Row("libtorch_cuda against cuobjdump", skipped=str(why))]
    torch = things["torch"]["libtorch_cuda.so"]
    rows += against_decompressing("libtorch_cuda", torch)
    rows += against_cuobjdump("libtorch_cuda", torch, things["cuobjdump"]["cuobjdump"])
    return rows
