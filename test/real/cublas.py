#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own cuBLAS, cublasLt and cuDNN: what gpusonde trace --blas says of their arguments, and how often cuDNN is called.

    cublas.py BUILD SOURCE toolkit|11|12|newest [words of names of tests]

toolkit: what CUDA_HOME or /usr/local/cuda has; others: wheels of a generation. cuDNN is the newest's only.
"""
import collections
import functools
import glob
import json
import os
import sys
import tempfile

from lib import rows
from lib.e2e import SOURCE, Skip, command, environment, equal, run
from lib.traced import tracing

import real

WHICH = sys.argv.pop(3)
CALLS = f"{SOURCE}/test/real/cublas_calls.py"
# These look behind their arguments before they refuse them.
DEREFERENCED = {"cudnnCTCLoss", "cudnnCTCLoss_v8"}
CUDNN_CALLS = f"{SOURCE}/test/real/cudnn_calls.py"


@functools.lru_cache(maxsize=None)
def folder():
    if WHICH == "toolkit":
        return os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64"
    if WHICH == "newest":
        return real.thing("torch-newest")["site"] + "/nvidia/cu13/lib"
    return os.path.dirname(next(iter(real.thing(f"cublas-{WHICH}").values())))


def library(name):
    found = sorted(glob.glob(f"{folder()}/{name}.so*"))
    if not found:
        raise Skip(f"no {name} in {folder()}")
    return found[0]


@functools.lru_cache(maxsize=None)
def trace(*flags):
    tracing()
    done = command("trace", "--blas", *flags, "-o", "-", "--", sys.executable, CALLS, library("libcublas"), library("libcublasLt"),
                   env=environment(LD_LIBRARY_PATH=folder()))
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def test_arguments_are_told():
    events = [json.loads(line) for line in trace("--raw", "--json").splitlines()]
    sizes = [tuple(event.get(name) for name in ("api", "m", "n", "k", "batch", "a", "b", "c", "precision"))
             for event in events if "emm" in str(event.get("api")) or event.get("api") == "cublasLtMatmul"]
    layout = ("cublasLtMatmul", 32, 16, 64, 5, "bf16", "bf16", "bf16", "bf16")
    wide = [("cublasGemmStridedBatchedEx_64", 101, 201, 301, 12, "fp16", "fp16", "fp16", "fp16")] if WHICH != "11" else []
    wanted = [
        ("cublasGemmEx", 100, 200, 300, 1, "bf16", "bf16", "bf16", "bf16"), *wide,
        ("cublasGemmBatchedEx", 102, 202, 302, 13, "fp8_e4m3", "fp8_e5m2", "fp32", "fp8"),
        ("cublasSgemm_v2", 5, 6, 7, 1, "fp32", "fp32", "fp32", "fp32_or_tf32"),
        ("cublasZgemmStridedBatched", 8, 9, 10, 33, "c_fp64", "c_fp64", "c_fp64", "fp64"),
    ]
    equal({event["type"] for event in events if str(event.get("api")).startswith("cublasLt")}, {"call"}, "types of events")
    n = len(wanted)
    equal(sizes[:n], wanted, "cuBLAS")
    equal(sizes[n:n + 2], [layout, layout], "a layout and its copy")
    equal([size[1] for size in sizes[n + 2:]], [None, None], "contents that nobody saw being made")
    rows.say("blas", os.path.basename(os.path.realpath(library("libcublas"))) + f" of {WHICH}", arguments=f"exact: {n} functions, and cublasLt's layouts")


def test_calls_that_fail_ask_for_nothing():
    blas = json.loads(trace("--json"))["blas"]
    equal([process["failed_calls"] for process in blas["processes"]], [8 if WHICH == "11" else 9], "failed calls")
    equal(blas["precisions"], [], "FLOP")


def test_cudnn_is_counted():
    """Each function as often as it was called, with what it returned."""
    if WHICH != "newest":
        raise Skip("cuDNN is the newest's")
    tracing()
    libraries = real.thing("torch-newest")["site"] + "/nvidia/cudnn/lib"
    path = f"{libraries}/libcudnn.so.9"
    names = sorted(real.probed(path) - DEREFERENCED)
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", "--blas", "--json", f"--output={tmp}/x", "--", sys.executable, CUDNN_CALLS, path, *names,
                       env=environment(LD_LIBRARY_PATH=f"{libraries}:{folder()}"))
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/x", encoding="utf-8") as file:
            calls = {call["api"]: call for call in json.load(file)["calls"]}
    said = json.loads(done.stdout.splitlines()[-1])
    equal({name: calls[name]["count"] for name in names}, {name: len(results) for name, results in said.items()}, "calls")
    equal({name: calls[name]["errors"] for name in names}, {name: dict(collections.Counter(map(str, results))) for name, results in said.items()}, "what they return")
    rows.say("blas", "libcudnn.so.9 of newest", arguments=f"exact: {real.number(sum(map(len, said.values())), 'call')} of {real.number(len(names), 'function')}, counted with their errors")


if WHICH == "toolkit" and not os.path.exists(f"{folder()}/libcublas.so"):
    print(f"1..0 # SKIP no cuBLAS in {folder()} (CUDA_HOME names another toolkit)")
else:
    run()
