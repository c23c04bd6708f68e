#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder do what tests of tracing count on.

    programs.py BUILD_ROOT SOURCE_ROOT

Speaks TAP; skips what could not be built.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD, SOURCE = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "sim/cuda"))
import truth  # noqa: E402

SIM = os.path.join(BUILD, "sim/cuda")
results = []


def program(name):
    path = os.path.join(BUILD, "test/programs", name)
    return path if os.path.exists(path) else None


def run(name, *arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    done = subprocess.run([program(name), *arguments], env={**clean, **environment}, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, f"{name}: exit status {done.returncode}, {done.stderr}"
    return done.stdout


def expect(want, got):
    assert want == got, f"expected {want!r}, got {got!r}"


def cuda_folder():
    """Where the real libcudart lies, for programs that share it."""
    out = subprocess.run(["sh", "-c", "readlink -f $(command -v nvcc || echo /usr/local/cuda/bin/nvcc)"],
                         capture_output=True, text=True, check=False).stdout.strip()
    root = os.path.dirname(os.path.dirname(out))
    return ":".join(os.path.join(root, p) for p in ("lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"))


def real_runtime_counts_errors(name):
    """Without a driver every call fails, with one code, and is counted."""
    def check():
        calls = json.loads(run(name, "7", LD_LIBRARY_PATH=cuda_folder()))["calls"]
        expect({"cudaMalloc", "cudaMemcpy", "cudaLaunchKernel", "cudaDeviceSynchronize", "cudaFree"}, set(calls))
        for call in calls.values():
            expect(7, call["count"])
    return check


def over_the_simulation():
    """nvcc's program with the simulated runtime: its stubs and registrations work, and both count the same."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        calls = json.loads(run("calls-shared", "5", LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_LOG=log,
                               GPUSONDE_SIM_CUDA_KERNEL_US="0"))["calls"]
        logged = {c["api"]: c for c in truth.read(log)["processes"][0]["calls"]}
        for name, call in calls.items():
            expect({"count": 5, "errors": {}}, call)
            expect(5, logged[name]["count"])
        expect((5, 5), (logged["cuLaunchKernel"]["count"], logged["cuLaunchKernel"]["nested"]))


def vector_add():
    expect(0, json.loads(run("vector_add-shared", LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0"))["error"])


def driver():
    expect([f"{n} 0" for n in ("cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
                               "cuCtxSynchronize", "cuMemFree_v2")],
           run("driver", LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0").splitlines())


def exceptions():
    expect({"thrown": 50, "caught": 50, "cleaned": 20}, json.loads(run("exceptions", "10")))


TESTS = [
    ("calls-static", "static runtime without a driver", real_runtime_counts_errors("calls-static")),
    ("calls-shared", "shared runtime without a driver", real_runtime_counts_errors("calls-shared")),
    ("calls-shared", "nvcc's program over the simulation", over_the_simulation),
    ("vector_add-shared", "<<<>>> over the simulation", vector_add),
    ("driver", "the driver's interface over the simulation", driver),
    ("exceptions", "exceptions pass through the library", exceptions),
]
print(f"1..{len(TESTS)}")
failed = False
for number, (needs, name, test) in enumerate(TESTS, start=1):
    if not program(needs):
        print(f"ok {number} - {name} # SKIP {needs} was not built: no nvcc, no C++ compiler, or a build with sanitizers")
        continue
    try:
        test()
        print(f"ok {number} - {name}")
    except (AssertionError, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        failed = True
        print(f"not ok {number} - {name}\n# {error!r}")
sys.exit(failed)
