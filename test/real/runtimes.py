#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own runtimes, shared and linked into programs, over NVIDIA's libcuda without a GPU and over the simulated one.

    runtimes.py BUILD SOURCE [--all] [words of names of tests]

Every function that is probed is called, and each call has its name and result; of nested calls the outermost counts. Without --all, over the driver's
newest generation and the plain simulated driver; with it, over all of them.
"""
import functools
import os
import re
import subprocess
import sys
import tempfile

from lib import counts, e2e, rows
from sim.cuda import truth as simulated

import real

ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")

HERE = f"{e2e.SOURCE}/test/real"
TOOLKIT = "/usr/local/cuda/lib64/libcudart.so"
WORK = tempfile.TemporaryDirectory(prefix="gpusonde-runtimes-") # programs that several tests run
# Whether there is a device is asked only where the driver is not older than the runtime's major version.
NO_DEVICE, INSUFFICIENT_DRIVER, NOT_FOUND = "100", "35", "500"
DRIVERS = {"550": 12, "535": 12, "470": 11}
RUNTIMES = {"11.8": False, "12.4": False, "12.9": True, "13": True} # whether there is a static one
SIMULATED = {"the simulated driver": real.SIMULATED, "the simulated driver with thunks": f"{real.SIMULATED}/thunk"}


def shared(version):
    path, = [path for name, path in real.thing(f"runtime-{version}").items() if name.startswith("libcudart.so")]
    return path


@functools.lru_cache(maxsize=None)
def linked(version, stripped):
    """A program that carries the runtime and calls each of its functions that the shared one has probed."""
    archive = real.thing(f"runtime-{version}")["libcudart_static.a"]
    output, functions = f"{WORK.name}/calls-{version}", f"{WORK.name}/functions-{version}.h"
    if stripped:
        subprocess.run(["strip", "-o", f"{output}-stripped", linked(version, False)], check=True)
        return f"{output}-stripped"
    with open(functions, "w", encoding="ascii") as f:
        f.writelines(f"F({name})\n" for name in names_of(version))
    return real.compiled(output, f'-DFUNCTIONS="{functions}"', f"{HERE}/driver_calls.c", archive, "-lpthread", "-ldl", "-lrt")


def names_of(version):
    return counts.callable_names(real.sites(shared(version)))


def error_over(version, generation):
    return NO_DEVICE if int(float(version)) <= DRIVERS[generation] else INSUFFICIENT_DRIVER


def check_results(wanted, error):
    """All that needs a device fails so; a few look at their arguments before."""
    for name in ("cudaMalloc", "cudaLaunchKernel", "cudaMemcpy", "cudaDeviceSynchronize"):
        e2e.equal(list(wanted[name][1]), [error], f"{name}'s results")


def exact_version(version):
    """13.5 of 13, as its headers say: the oldest does not tell without a driver."""
    with open(f"{real.thing(f'runtime-{version}')['include']}/cuda_runtime_api.h", encoding="utf-8") as f:
        number = int(re.search(r"^#define CUDART_VERSION\s+(\d+)$", f.read(), re.M)[1])
    return f"{number // 1000}.{number % 1000 // 10}"


def say(version, how, **cells):
    rows.say("runtimes", f"{version} {how}", version=exact_version(version), **cells)


def over_driver(version, how, command, generation):
    folder = os.path.dirname(real.driver(generation))
    wanted = counts.check(*real.traced(command, plan=real.plan_of(names_of(version)), LD_LIBRARY_PATH=folder)[:2])
    check_results(wanted, error_over(version, generation))
    return real.exact(wanted)


def simulated_calls(base):
    """Of the simulated driver: api -> (count, errors) of calls that no other of its calls made, in the only process."""
    process, = simulated.read(base)["processes"]
    return {c["api"]: {"count": c["count"], "errors": c["errors"]} for c in process["calls"]}


def over_simulated(version, command, where):
    """(the program's truth, gpusonde's document, what the simulated driver was called for)."""
    if command[0] != real.CALLS:
        real.need_plain_build()
    if not os.path.exists(f"{SIMULATED[where]}/libcuda.so.1"):
        raise e2e.Skip(f"this build has no {SIMULATED[where]}/libcuda.so.1")
    with tempfile.TemporaryDirectory() as tmp:
        truth, document, _ = real.traced(command, plan=real.plan_of(names_of(version)), LD_LIBRARY_PATH=SIMULATED[where],
                                         GPUSONDE_SIM_SCENARIO=real.SCENARIO, GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log")
        inner = simulated_calls(f"{tmp}/log")
    # How far NVIDIA's runtime gets, by the driver that it called.
    e2e.equal(inner["cuInit"], {"count": 1, "errors": {}}, "cuInit")
    e2e.equal(list(inner["cuGetExportTable"]["errors"]), [NOT_FOUND], "cuGetExportTable's results")
    e2e.equal({api for api in inner if not api.startswith("cuGetProcAddress")}, {"cuInit", "cuGetExportTable", "cuDriverGetVersion"}, "what else it called")
    return truth, document, inner


def check_shared(version):
    path = shared(version)
    names = real.cheap(path)
    say(version, "shared", functions=f"{len(names)}, each at its first instruction" if {s["offset"] for s in real.sites(path)} == {0} else str(len(names)),
        real=over_driver(version, "shared", [real.CALLS, path], "550"))
    others = [f"{g}: {over_driver(version, 'shared', [real.CALLS, path], g)}" for g in ("535", "470") if ALL]
    if others:
        say(version, "shared", others="; ".join(others))


def check_shared_simulated(version):
    for where in SIMULATED if ALL else list(SIMULATED)[:1]:
        truth, document, inner = over_simulated(version, [real.CALLS, shared(version)], where)
        wanted = counts.check(truth, document)
        check_results(wanted, NOT_FOUND)
    lookups = sum(call["count"] for api, call in inner.items() if api.startswith("cuGetProcAddress"))
    say(version, "shared", simulated=f"{real.exact(wanted)}; {lookups} lookups")


def check_linked(version):
    program = linked(version, False)
    names = real.cheap(program)
    assert set(names_of(version)) <= set(names), f"not probed in the program: {set(names_of(version)) - set(names)}"
    say(version, "in a program", functions=str(len(names)), real=over_driver(version, "in a program", [program, "none"], "550"))
    others = [f"{g}: {over_driver(version, 'in a program', [program, 'none'], g)}" for g in ("535", "470") if ALL]
    if others:
        say(version, "in a program", others="; ".join(others))
    for where in SIMULATED if ALL else list(SIMULATED)[:1]:
        truth, document, _ = over_simulated(version, [program, "none"], where)
        wanted = counts.check(truth, document)
        check_results(wanted, NOT_FOUND)
    say(version, "in a program", simulated=real.exact(wanted))


def check_stripped(version):
    """Its own calls have no names any more, and none is made up: the driver's calls are what is seen."""
    program = linked(version, True)
    done = e2e.command("probes", program)
    e2e.equal((done.returncode, done.stdout), (1, ""), "gpusonde probes of a stripped program")
    e2e.contains(done.stderr, "stripped")
    e2e.contains(done.stderr, "libcuda.so.1")
    for where, folder in list(SIMULATED.items()) if ALL else list(SIMULATED.items())[:1]:
        truth, document, inner = over_simulated(version, [program, "none"], where)
        probed = real.probed(f"{folder}/libcuda.so.1")
        wanted = counts.check({"pid": truth["pid"], "calls": {api: call for api, call in inner.items() if api in probed}}, document)
    truth, document, _ = real.traced([program, "none"], plan=real.plan_of(names_of(version)), LD_LIBRARY_PATH=os.path.dirname(real.driver("550")))
    # An older driver is asked for its version, and for nothing that is probed.
    calls = {"cuInit": {"count": 1, "errors": {NO_DEVICE: 1}}} if error_over(version, "550") == NO_DEVICE else {}
    if calls:
        counts.check({"pid": truth["pid"], "calls": calls}, document)
    e2e.equal([p["calls"] for p in document["processes"]] if not calls else [], [], "calls, where the driver is too old to be called")
    say(version, "in a stripped program", functions="none: said, with where its calls are seen", simulated=f"in the driver, {real.exact(wanted)}",
        real="in the driver, exact: cuInit, results 100" if calls else "nothing that is probed is called: the driver is too old")


# What default_streams.c calls, in this order: the suffix of the twin, the kind of the event, and what it must say.
STREAMS = (("cudaMalloc", "", "call", {"size": 64}), ("cudaMemcpy", "_ptds", "call", {"size": 64, "kind": 0}),
           ("cudaMemcpyAsync", "_ptsz", "call", {"size": 64, "kind": 0, "stream": None}), ("cudaMemcpy2D", "_ptds", "call", {"size": 64, "kind": 0}),
           ("cudaMemset", "_ptds", "call", {"size": 64}), ("cudaMemsetAsync", "_ptsz", "call", {"size": 64, "stream": None}),
           ("cudaMallocAsync", "_ptsz", "call", {"size": 64, "stream": None}), ("cudaFreeAsync", "_ptsz", "call", {"stream": None}),
           ("cudaLaunchKernel", "_ptsz", "launch", {"stream": None, "grid": [1, 2, 3], "block": [4, 5, 6], "shared_bytes": 7}),
           ("cudaStreamQuery", "_ptsz", "call", {"stream": None}), ("cudaStreamSynchronize", "_ptsz", "call", {"stream": None}),
           ("cudaDeviceSynchronize", "", "call", {}), ("cudaFree", "", "call", {"addr": 0}))
STREAM_HANDLES = (0, 0, 0, 1, 2) # what it passes: the default one of its headers, cudaStreamLegacy, cudaStreamPerThread


def check_streams_of(version, per_thread, library, folders):
    """Each call under the name that the headers make of it, with its arguments, in its order."""
    program = f"{WORK.name}/streams"
    define = ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"] if per_thread else []
    real.compiled(program, *define, f"-I{HERE}/include", f"-I{real.thing(f'runtime-{version}')['include']}", f"{HERE}/default_streams.c", library,
                  "-lpthread", "-ldl", "-lrt")
    truth, document, events = real.traced([program], "--raw", LD_LIBRARY_PATH=":".join(folders))
    wanted = counts.check(truth, document)
    events = [e for e in events if e["type"] in ("call", "launch")]
    expected = [(name + (twin if per_thread else ""), kind, {key: stream if value is None else value for key, value in says.items()})
                for stream in STREAM_HANDLES for name, twin, kind, says in STREAMS]
    e2e.equal([(e["api"], e["type"]) for e in events], [(name, kind) for name, kind, _ in expected], "calls in their order")
    for event, (_, _, says) in zip(events, expected):
        e2e.equal({key: event.get(key) for key in says}, says, f"what is told of {event}")
    return sum(count for count, _ in wanted.values())


def check_streams(version, how):
    folder = os.path.dirname(real.driver("550"))
    library = shared(version) if how == "shared" else real.thing(f"runtime-{version}")["libcudart_static.a"]
    legacy, own = (check_streams_of(version, per_thread, library, (folder, os.path.dirname(library))) for per_thread in (False, True))
    say(version, how, streams=f"legacy {legacy}, per thread {own} calls, each by its name and arguments")


def check_toolkit():
    if not os.path.exists(TOOLKIT):
        raise e2e.Skip(f"no CUDA toolkit here: {TOOLKIT}")
    path = os.path.realpath(TOOLKIT)
    plan = real.plan_of(counts.callable_names(real.sites(path)))
    major, = re.findall(r"\.so\.(\d+)", path)
    wanted = counts.check(*real.traced([real.CALLS, path], plan=plan, LD_LIBRARY_PATH=os.path.dirname(real.driver("550")))[:2])
    check_results(wanted, error_over(major, "550"))


TESTS = {}
for runtime, static in RUNTIMES.items():
    TESTS[f"{runtime}_shared_over_the_driver"] = (check_shared, runtime)
    TESTS[f"{runtime}_shared_over_the_simulated_driver"] = (check_shared_simulated, runtime)
    TESTS[f"{runtime}_shared_default_streams"] = (check_streams, runtime, "shared")
    if static:
        TESTS[f"{runtime}_in_a_program"] = (check_linked, runtime)
        TESTS[f"{runtime}_in_a_stripped_program"] = (check_stripped, runtime)
        if ALL:
            TESTS[f"{runtime}_in_a_program_default_streams"] = (check_streams, runtime, "in a program")
TESTS["toolkits_runtime_over_the_driver"] = (check_toolkit,)
globals().update({f"test_{name}": functools.partial(*what) for name, what in TESTS.items()})


if __name__ == "__main__":
    e2e.run()
