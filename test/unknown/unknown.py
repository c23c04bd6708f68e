#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A libcuda, and a libcudart, of an unknown generation: what is known of it is traced exactly, nothing is probed without proof, and what is left out is said.

    unknown.py BUILD SOURCE [words of names of tests]

The libraries are assembled here: shapes.py has their entry points.
"""
import contextlib
import functools
import json
import os
import platform
import subprocess
import tempfile

from lib import counts, e2e, rows

import shapes

DRIVER, RUNTIME = "libcuda.so.1", "libcudart.so.14"
CALLER = f"{e2e.BUILD}/test/unknown/caller"
X86, ARM64 = ["-fcf-protection=none"], ["-march=armv8.5-a"]
OWN = platform.machine() in ("x86_64", "AMD64")

# One function by two names; one that begins within another; one that is chosen when it is loaded; versions that have no rows.
MORE_X86 = """
.globl cuEventDestroy, cuEventDestroy_v2
.type cuEventDestroy, @function
.type cuEventDestroy_v2, @function
cuEventDestroy: cuEventDestroy_v2: push %rbx; pop %rbx; jmp body
.size cuEventDestroy, . - cuEventDestroy
.size cuEventDestroy_v2, . - cuEventDestroy_v2
.globl cuGraphDestroy, cuGraphExecDestroy
.type cuGraphDestroy, @function
.type cuGraphExecDestroy, @function
cuGraphDestroy: mov %edi, %eax
cuGraphExecDestroy: push %rbx; pop %rbx; jmp body
.size cuGraphExecDestroy, . - cuGraphExecDestroy
.size cuGraphDestroy, . - cuGraphDestroy
.globl cuMemFreeHost
.type cuMemFreeHost, @gnu_indirect_function
cuMemFreeHost: lea body(%rip), %rax; ret
.size cuMemFreeHost, . - cuMemFreeHost
"""
NEWER = "".join(shapes.function(name, shapes.X86[0]) for name in ("cuMemAlloc_v3", "cuMemFree_v2", "cuMemFree_v3_ptsz", "cuInit"))
LAUNCH = shapes.function("cuLaunchKernel", shapes.Shape("", "push $1; cmpl $1, {magic}(%rip); je 1f; 1: pop %rax; jmp body"))
EXTRA = {"cuEventDestroy": None, "cuGraphDestroy": "another function begins before", "cuGraphExecDestroy": "begins within another function",
         "cuMemFreeHost": "IFUNC"}


# No library and no header of the machine: of another one there are none, as a rule.
ALONE = ["-O1", "-fPIC", "-shared", "-ffreestanding", "-nostdlib"]


def why_not(command, arm64):
    """Why the command makes no library of the machine; None if it does."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-unknown-") as tmp:
        try:
            done = subprocess.run([*command, *(ARM64 if arm64 else X86), *ALONE, "-x", "c", "/dev/null", "-o", f"{tmp}/library"], capture_output=True, text=True,
                                  timeout=e2e.PATIENCE_S, check=False)
        except OSError as why:
            return f"{command[0]}: {why.strerror}"
    return f"{command[0]}: {(done.stderr.strip() or 'failed').splitlines()[0]}" if done.returncode else None


@functools.cache
def compiler(arm64):
    """The command that makes libraries of the machine."""
    own = "aarch64" if arm64 else "x86_64"
    if platform.machine() == own:
        return ["cc"]
    reasons = []
    for command in ([f"{own}-linux-gnu-gcc"], ["clang", f"--target={own}-linux-gnu", "-fuse-ld=lld"]):
        reasons.append(why_not(command, arm64))
        if not reasons[-1]:
            return command
    raise e2e.Skip(f"nothing here makes libraries of {own} (install gcc-{own.replace('_', '-')}-linux-gnu, or clang and lld): {'; '.join(reasons)}")


@contextlib.contextmanager
def library(source, arm64=False, name=DRIVER):
    """A folder with the library that @source becomes."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-unknown-") as tmp:
        with open(f"{tmp}/library.S", "w", encoding="ascii") as f:
            f.write(source + '\n.section .note.GNU-stack, "", %progbits\n')
        flags = ARM64 if arm64 else X86
        done = subprocess.run([*compiler(arm64), *flags, *ALONE, "-o", f"{tmp}/{name}", f"{tmp}/library.S",
                               f"{e2e.SOURCE}/test/unknown/body.c"], capture_output=True, text=True, timeout=e2e.PATIENCE_S, check=False)
        e2e.equal(done.returncode, 0, f"exit status of the compiler, which says {done.stderr}")
        yield tmp


def sites(tmp, name=DRIVER):
    done = e2e.command("probes", "--json", f"{tmp}/{name}")
    e2e.equal(done.returncode, 0, done.stderr)
    return {site["symbol"]: site for site in json.loads(done.stdout)["sites"]}


def check_shape(name, shape, site):
    where = f"{shape.what} ({name}): {site}"
    if shape.offset is None:
        assert not site["chosen"] and shape.reason in site["reason"], where
        return
    offsets = shape.offset if isinstance(shape.offset, tuple) else (shape.offset,)
    assert site["chosen"] and site["offset"] in offsets and site["returns"] == shape.returns, where


def check_shapes(tmp, table, extra):
    found = sites(tmp)
    named = shapes.named(table)
    e2e.equal(sorted(found), sorted([name for name, _, _ in named] + list(extra)), "functions that are listed")
    for name, _, shape in named:
        check_shape(name, shape, found[name])
    for name, reason in extra.items():
        assert found[name]["chosen"] == (reason is None) and (reason or "") in found[name]["reason"], found[name]
    return found


def call(tmp, plan, *flags, prefix=(), library_name=DRIVER):
    """What the caller says it did, under gpusonde trace with @prefix; and what that said."""
    truth = f"{tmp}/truth"
    done = subprocess.run([*prefix, *flags, *(["--"] if prefix else []), CALLER, f"{tmp}/{library_name}", truth], env=e2e.environment(),
                          input="".join(f"{name} {times}\n" for name, times in plan), capture_output=True, text=True, timeout=e2e.PATIENCE_S,
                          check=False)
    e2e.equal(done.returncode, 0, f"exit status of {done.args}, which says {done.stderr}")
    with open(truth, encoding="utf-8") as f:
        return json.load(f), done


def need_tracing():
    if not OWN:
        raise e2e.Skip("the shapes that are run are x86-64's")
    if os.geteuid() != 0:
        raise e2e.Skip("tracing needs root")
    done = e2e.command("trace", "--json", "--", "true")
    if done.returncode:
        raise e2e.Skip(f"gpusonde trace: {done.stderr.strip()}")


def traced(tmp, plan, *flags, library_name=DRIVER):
    """The truth, the calls of the document by name, the process's incompleteness, the document, standard error."""
    truth, done = call(tmp, plan, "--json", *flags, prefix=[e2e.GPUSONDE, "trace"], library_name=library_name)
    document = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    counts.check_events(document)
    ours = [p for p in document["processes"] if p["pid"] == truth["pid"]]
    calls = {c["api"]: c for c in ours[0]["calls"]} if ours else {}
    return truth, calls, ours[0]["incomplete"] if ours else None, document, done.stderr


def check_counts(truth, calls, probed, widths):
    """@probed: name -> whether its result is known; every call of them was seen, and nothing else."""
    made = {c["api"]: c for c in truth["calls"]}
    seen = {api for api in calls if calls[api]["count"]}
    e2e.equal(sorted(seen), sorted(set(made) & set(probed)), "functions that were seen to be called")
    for name in seen:
        results, size = made[name]["results"], made[name]["size"]
        e2e.equal(calls[name]["count"], sum(results.values()), f"calls of {name}")
        if probed[name]:
            e2e.equal(calls[name]["errors"], {code: n for code, n in results.items() if code != "0" and n}, f"results of {name}")
            e2e.equal(calls[name]["bytes"], size * widths[name], f"bytes of {name}")


def the_rest(truth):
    return [(c["api"], c["results"], c["size"]) for c in truth["calls"]]


def x86_source():
    return shapes.source(shapes.X86, MORE_X86)


def test_x86_64_shapes_are_traced_or_refused():
    """Each call that can be made is made: with no probes, with those that are safe, and with what single steps allow."""
    named = shapes.named(shapes.X86)
    callable_names = [name for name, _, shape in named if shape.called] + list(EXTRA)
    plan = [(name, 9 + 4 * i) for i, name in enumerate(callable_names)]
    widths = {name: width for name, width, _ in named} | dict.fromkeys(EXTRA, 0)
    with library(x86_source()) as tmp:
        found = check_shapes(tmp, shapes.X86, EXTRA)
        need_tracing()
        unprobed, _ = call(tmp, plan)
        truth, calls, incomplete, document, said = traced(tmp, plan)
        e2e.equal(the_rest(truth), the_rest(unprobed), "what the program did under probes, and without")
        chosen = {name: site["returns"] for name, site in found.items() if site["chosen"]}
        check_counts(truth, calls, chosen, widths)
        refused = len(found) - len(chosen)
        assert "sites_refused" in incomplete, incomplete
        e2e.contains(said, f"{refused} of {len(found)} entry points have no probe")
        e2e.equal(said.count("have no probe, calls of them"), 1, f"times that it is said in {said}")
        e2e.equal((document["probes"]["attached"], document["probes"]["refused"]), (len(chosen), refused), "probes")
    rows.say("unknown", "libcuda of other shapes, x86-64",
             served=f"{len(chosen)} of {len(found)} entry points: every call, {sum(sum(c['results'].values()) for c in truth['calls']):,} in all, "
                    "runs as without probes; those of known shape are counted with result and bytes",
             refused=f"{refused}, each with its reason: loops and tables to before the site, arguments overwritten, data, unknown instructions, "
                     "overlaps, IFUNC")


def test_x86_64_shapes_stand_single_steps():
    """With them the first byte is probed of functions whose code offers no better; what might be passed twice or is no code stays refused."""
    named = shapes.named(shapes.X86)
    plan = [(name, 6) for name, _, shape in named if shape.called] + [(name, 6) for name in EXTRA]
    need_tracing()
    with library(x86_source()) as tmp:
        safe = {name for name, site in sites(tmp).items() if site["chosen"]}
        unprobed, _ = call(tmp, plan)
        truth, calls, _, document, _ = traced(tmp, plan, "--trace-allow-single-step=yes")
        e2e.equal(the_rest(truth), the_rest(unprobed), "what the program did under probes, and without")
        never = {name for name, _, shape in named if shape.reason in (shapes.BACK, shapes.TABLE, shapes.DATA, "zero bytes", "may be data")}
        assert not never & set(calls), f"probed: {never & set(calls)}"
        assert safe < set(calls) | {"cuEventDestroy_v2"} and document["probes"]["attached"] > len(safe), sorted(calls)
        made = {c["api"]: sum(c["results"].values()) for c in truth["calls"]}
        made["cuEventDestroy"] += made.pop("cuEventDestroy_v2", 0)
        e2e.equal({api: c["count"] for api, c in calls.items()}, {api: made[api] for api in calls}, "calls")


def test_arguments_on_the_stack_are_where_the_site_says():
    """A launch whose probe sits behind a push."""
    need_tracing()
    with library(shapes.source([], LAUNCH)) as tmp:
        _, done = call(tmp, [("cuLaunchKernel", 3)], "--json", "--raw", prefix=[e2e.GPUSONDE, "trace"])
        launches = [e for e in map(json.loads, (line for line in done.stdout.splitlines() if line.startswith("{"))) if e.get("type") == "launch"]
        e2e.equal(len(launches), 3, "launches")
        for k, launch in enumerate(launches):
            # Arguments 6, 7 and 8 lie on the stack: the last dimension, shared memory, the stream.
            e2e.equal((launch["block"][2], launch["shared_bytes"], launch["stream"]), (6 + k, k, 0x7777777777777777), f"launch {k}: {launch}")


def test_newer_names_are_told_and_the_known_part_is_traced():
    with library(shapes.source([], NEWER)) as tmp:
        found = sites(tmp)
        e2e.equal({name: site["chosen"] for name, site in found.items()},
                  {"cuInit": True, "cuMemFree_v2": True, "cuMemAlloc_v3": False, "cuMemFree_v3_ptsz": False}, "functions")
        e2e.contains(found["cuMemAlloc_v3"]["reason"], shapes.NEWER)
        need_tracing()
        plan = [("cuInit", 2), ("cuMemAlloc_v3", 5), ("cuMemFree_v2", 4), ("cuMemFree_v3_ptsz", 3)]
        _, calls, incomplete, _, said = traced(tmp, plan)
        e2e.equal({api: c["count"] for api, c in calls.items()}, {"cuInit": 2, "cuMemFree_v2": 4}, "calls")
        assert "sites_refused" in incomplete, incomplete
        e2e.contains(said, "2 of 4 entry points have no probe")
    rows.say("unknown", "libcuda with newer names (cuMemAlloc_v3 without cuMemAlloc_v2)", served="names that are known: exact",
             refused="named as newer than this gpusonde; figures of its programs say sites_refused")


# Of a runtime after the newest: names that it keeps, and what each of these is; names that are new, of which some are versions and twins of such.
KEPT = {"cudaEventSynchronize": "hot-patchable", "cudaFree": "jump first", "cudaMemcpyAsync_ptsz": "thunk", "cudaStreamSynchronize": "endbr64, thunk",
        "cudaMemset": "jrcxz", "cudaDeviceSynchronize": "an argument clobbered", "cudaEventQuery": "a loop by a table behind the prologue"}
NEWER_RUNTIME, UNHEARD = ("cudaLaunchKernel_v9", "cudaMemcpyAsync_v14", "cudaMalloc_ptds"), ("cudaMallocEverywhere", "cudaTimeTravel")


def test_a_runtime_after_the_newest():
    by_what = {shape.what: shape for shape in shapes.X86}
    made = {name: by_what[what] for name, what in KEPT.items()} | dict.fromkeys(NEWER_RUNTIME + UNHEARD, by_what["thunk"])
    proven = {name for name in KEPT if made[name].offset is not None}
    with library(shapes.source([], "".join(shapes.function(*function) for function in made.items())), name=RUNTIME) as tmp:
        found = sites(tmp, RUNTIME)
        e2e.equal(set(found), {*KEPT, *NEWER_RUNTIME}, "functions that have a row, and newer versions of such")
        for name in KEPT:
            check_shape(name, made[name], found[name])
        for name in NEWER_RUNTIME:
            assert not found[name]["chosen"] and shapes.NEWER in found[name]["reason"], found[name]
        need_tracing()
        plan = [(name, 5 + 4 * i) for i, name in enumerate(made)]
        unprobed, _ = call(tmp, plan, library_name=RUNTIME)
        truth, calls, incomplete, document, _ = traced(tmp, plan, library_name=RUNTIME)
        e2e.equal(the_rest(truth), the_rest(unprobed), "what the program did under probes, and without")
        check_counts(truth, calls, dict.fromkeys(proven, True), dict.fromkeys(proven, 0) | {"cudaMemcpyAsync_ptsz": 1})
        refused = len(found) - len(proven)
        assert "sites_refused" in incomplete, incomplete
        e2e.equal((document["probes"]["attached"], document["probes"]["refused"]), (len(proven), refused), "probes")
    rows.say("unknown", RUNTIME, served=f"{len(proven)} functions that are known and of a proven shape: exact, with result",
             refused=f"{len(KEPT) - len(proven)} of another shape, each with its reason; {len(NEWER_RUNTIME)} newer versions, named; "
                     f"{len(UNHEARD)} functions that nobody knows are not taken for others")


@contextlib.contextmanager
def mapped(tmp):
    """Somebody has the library, and lives."""
    process = subprocess.Popen(["sleep", "600"], env=e2e.environment(LD_PRELOAD=f"{tmp}/libcuda.so.1"))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def refused_of(agent):
    return sum(e2e.values(agent.get("/metrics").text, "gpusonde_trace_sites", state="refused"))


def test_nothing_is_probed_of_a_library_that_is_all_unknown():
    """Said with the remedy: by trace, and by the agent once, however often it is mapped."""
    table = [shape for shape in shapes.X86 if shape.offset is None and shape.called]
    plan = [(name, 4) for name, _, _ in shapes.named(table)]
    need_tracing()
    with library(shapes.source(table)) as tmp:
        unprobed, _ = call(tmp, plan)
        truth, calls, _, document, said = traced(tmp, plan)
        e2e.equal(the_rest(truth), the_rest(unprobed), "what the program did")
        e2e.equal((calls, document["probes"]["attached"]), ({}, 0), "what is probed")
        none = f"none of its {len(table)} entry points can be probed"
        for part in (none, "gpusonde probes", "a newer gpusonde may know this library"):
            e2e.contains(said, part)
        with e2e.Agent(scenario=None, GPUSONDE_TRACE_ENABLED="yes") as agent:
            for _ in range(2):
                with mapped(tmp):
                    e2e.wait_for(lambda: refused_of(agent) == len(table), "the agent to look at the library")
                    e2e.equal(agent.log().count(none), 1, "times that it is said in the agent's log")
                e2e.wait_for(lambda: refused_of(agent) == 0, "the agent to let go of the library")
    rows.say("unknown", "libcuda, all unknown", served="device metrics; the programs run as without gpusonde",
             refused=f"all of its {len(table)} entry points: said once, with the remedy")


# In a mount namespace of its own, where the library lies where NixOS keeps it.
PLACED = 'mount -t tmpfs none /run && mkdir -p /run/opengl-driver/lib && cp "$1" /run/opengl-driver/lib/ && exec "$2" doctor --json'


def placed(tmp):
    """What doctor says of the machine's driver library, were it this one."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", PLACED, "sh", f"{tmp}/libcuda.so.1", e2e.GPUSONDE], env=e2e.environment(), capture_output=True,
                          text=True, timeout=e2e.PATIENCE_S, check=False)
    if not done.stdout.startswith("{"):
        raise e2e.Skip(f"no mount namespace: {done.stderr.strip()}")
    found = next(check for check in json.loads(done.stdout)["checks"] if check["check"] == "trace-driver")
    if "/run/opengl-driver" not in found["text"]:
        raise e2e.Skip(f"this machine has a driver: {found['text']}")
    return found


def test_doctor_counts_what_the_machines_driver_offers():
    need_tracing()
    refused = [shape for shape in shapes.X86 if shape.offset is None]
    for table, more, verdict, text, remedy in (
            ([shapes.X86[0]] * 3, "", "ok", "all 3 known entry points", None), ([], NEWER, "warning", "2 of 4 entry points", "a newer gpusonde"),
            (refused, "", "warning", f"0 of {len(refused)} entry points", "a newer gpusonde")):
        with library(shapes.source(table, more)) as tmp:
            found = placed(tmp)
        e2e.equal(found["verdict"], verdict, found)
        e2e.contains(found["text"], text)
        assert (remedy or "") in found.get("remedy", "") and bool(remedy) == bool(found.get("remedy")), found


def test_arm64_shapes_are_traced_or_refused():
    with library(shapes.source(shapes.ARM64), arm64=True) as tmp:
        found = check_shapes(tmp, shapes.ARM64, {})
    chosen = sum(site["chosen"] for site in found.values())
    rows.say("unknown", "libcuda of other shapes, arm64", served=f"{chosen} of {len(found)} entry points have a site without a single step (decoded, not run)",
             refused=f"{len(found) - chosen}, each with its reason: those of x86-64, and signed jumps, literals, exclusive loads")


if __name__ == "__main__":
    e2e.run()
