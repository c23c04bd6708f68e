#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own cuBLAS and cublasLt, of the toolkit here: what gpusonde trace --blas says of their arguments."""
import json
import os
import sys

from lib.e2e import BUILD, SOURCE, command, equal, run
from lib.traced import tracing

FOLDER = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64"
CALLS = f"{SOURCE}/test/real/cublas_calls.py"


def trace(*flags):
    tracing()
    done = command("trace", "--blas", *flags, "-o", "-", "--", sys.executable, CALLS, FOLDER)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def test_arguments_are_told():
    events = [json.loads(line) for line in trace("--raw", "--json").splitlines()]
    sizes = [tuple(event.get(name) for name in ("api", "m", "n", "k", "batch", "a", "b", "c", "precision"))
             for event in events if "emm" in str(event.get("api")) or event.get("api") == "cublasLtMatmul"]
    layout = ("cublasLtMatmul", 32, 16, 64, 5, "bf16", "bf16", "bf16", "bf16")
    equal(sizes[:5], [
        ("cublasGemmEx", 100, 200, 300, 1, "bf16", "bf16", "bf16", "bf16"),
        ("cublasGemmStridedBatchedEx_64", 101, 201, 301, 12, "fp16", "fp16", "fp16", "fp16"),
        ("cublasGemmBatchedEx", 102, 202, 302, 13, "fp8_e4m3", "fp8_e5m2", "fp32", "fp8"),
        ("cublasSgemm_v2", 5, 6, 7, 1, "fp32", "fp32", "fp32", "fp32_or_tf32"),
        ("cublasZgemmStridedBatched", 8, 9, 10, 33, "c_fp64", "c_fp64", "c_fp64", "fp64"),
    ], "cuBLAS")
    equal(sizes[5:7], [layout, layout], "a layout and its copy")
    equal([size[1] for size in sizes[7:]], [None, None], "contents that nobody saw being made")


def test_calls_that_fail_ask_for_nothing():
    blas = json.loads(trace("--json"))["blas"]
    equal([process["failed_calls"] for process in blas["processes"]], [9], "failed calls")
    equal(blas["precisions"], [], "FLOP")


if os.path.exists(f"{FOLDER}/libcublas.so"):
    run()
else:
    print(f"1..0 # SKIP no cuBLAS in {FOLDER} (CUDA_HOME names another toolkit)")
