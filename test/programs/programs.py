#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder do what tests of tracing count on.

    programs.py BUILD_ROOT SOURCE_ROOT

Speaks TAP; skips what could not be built.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from sim.cuda import truth

BUILD, SOURCE = sys.argv[1:3]

SIM = os.path.join(BUILD, "sim/cuda")
results = []


def program(name):
    path = os.path.join(BUILD, "test/programs", name)
    return path if os.path.exists(path) else None


def run(name, *arguments, told=None, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    done = subprocess.run([program(name), *arguments], env={**clean, **environment}, capture_output=True, text=True,
                          timeout=120, check=False, input=told)
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


def on_the_simulation(name, *arguments, told=None):
    """What each process says that it launched, and what the simulation says of each: [(truth, [event])], by pid."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        lines = run(name, *arguments, told=told, LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_LOG=log,
                    GPUSONDE_SIM_CUDA_LOG_EVENTS="1", GPUSONDE_SIM_CUDA_KERNEL_US="0").splitlines()
        expect(told is not None, "ready" in lines)
        both = []
        for line in lines:
            if line == "ready":
                continue
            said = json.loads(line)
            with open(f"{log}.{said['pid']}.events", encoding="utf-8") as f:
                events = [json.loads(event) for event in f]
            both.append((said, [e for e in events if e["api"].startswith("cuLaunch")]))
        return both


def agrees(said, events):
    """Each launch is of a kernel that it says it launched, as often as it says, with as many threads."""
    left = collections.Counter()
    for launch in said["launches"]:
        expect({}, launch["errors"])
        threads = 1
        for n in launch["grid"] + launch["block"]:
            threads *= n
        left[launch["match"], threads] += launch["count"]
    for event in events:
        match = [m for m, threads in left if threads == event["threads"] and re.fullmatch(m, event["name"])]
        expect(1, len(match))
        left[match[0], event["threads"]] -= 1
    expect({0}, set(left.values()))


def kernels(name, *arguments, kinds=23, rounds=1, processes=1, told=None):
    def check():
        both = on_the_simulation(name, *[argument_path(a) for a in arguments], told=told)
        expect(processes, len(both))
        for said, events in both:
            agrees(said, events)
            expect(kinds, len(said["launches"]))
            expect({rounds}, {launch["count"] for launch in said["launches"]})
    return check


def argument_path(argument):
    return argument if argument.startswith("--") else program(argument)


def kernels_without_driver():
    launches = json.loads(run("kernels-static", LD_LIBRARY_PATH=""))["launches"]
    expect(23, len(launches))
    for launch in launches:
        expect({"35": launch["count"]}, launch["errors"])


def stripped_alike():
    """The same program without its symbols: the same launches, of functions at the same addresses."""
    for name in ("kernels-shared", "kernels-sim", "kernels-no-pie", "kernels-rdc"):
        (full, _), (bare, _) = (on_the_simulation(name + suffix)[0] for suffix in ("", "-stripped"))
        expect(full["launches"], bare["launches"])


def plugin_elsewhere():
    """A library loaded again, at another address, has its functions where it had them in its file."""
    (said, events), = on_the_simulation("plugin_host", program("plugin.so"), "--reload")
    agrees(said, events)
    expect(["plugin.so"] * 4, [launch["object"] for launch in said["launches"]])
    expect([launch["host"] for launch in said["launches"][:2]], [launch["host"] for launch in said["launches"][2:]])


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
    ("kernels-shared", "kernels of all kinds, shared runtime", kernels("kernels-shared")),
    ("kernels-sim", "kernels of all kinds, runtime in the program", kernels("kernels-sim")),
    ("kernels-no-pie", "kernels of all kinds, at fixed addresses", kernels("kernels-no-pie")),
    ("kernels-rdc", "kernels of all kinds, relocatable device code", kernels("kernels-rdc")),
    ("kernels-static", "kernels of all kinds, real runtime without a driver", kernels_without_driver),
    ("kernels-shared", "kernels before and after a line", kernels("kernels-shared", "--wait", rounds=2, told="\n")),
    ("kernels-sim", "kernels in a child without a program of its own",
     kernels("kernels-sim", "--fork", rounds=2, processes=2)),
    ("kernels-rdc-stripped", "kernels without symbols", stripped_alike),
    ("plugin.so", "kernels of a library loaded later", kernels("plugin_host", "plugin.so", "--wait", kinds=2, rounds=2, told="\n")),
    ("plugin.so", "kernels of a library loaded twice", plugin_elsewhere),
    ("images.fatbin", "device code loaded by the driver's interface",
     kernels("modules", "images.cubin", "images.fatbin", kinds=5)),
    ("images.fatbin", "device code loaded before a line",
     kernels("modules", "images.cubin", "images.fatbin", "--wait", kinds=5, rounds=2, told="\n")),
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
