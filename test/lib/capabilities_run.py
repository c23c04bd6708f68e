# SPDX-License-Identifier: Apache-2.0
"""gpusonde and programs that it traces, as users who have exactly some capabilities."""
import contextlib
import functools
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from lib import filters, traced
from lib.capabilities import USER, bits
from lib.e2e import BUILD, GPUSONDE, PATIENCE_S, SIMULATED, Agent, Skip, environment, equal, wait_for
from sim.cuda import truth

XIDS = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 1s}\n"
CALLS = "alloc 4096; repeat 30; launch 2 64; end; sync; bad alloc; free all"


def needs_root():
    if os.geteuid() != 0:
        raise Skip("only root can become a user without capabilities, or give it some")


def needs_btf():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("the kernel does not describe itself, so nothing can be traced")


def held():
    """The capabilities that we may give on."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as f:
        found = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    return int(found["CapBnd"], 16)


def as_user(capabilities, *options, uid=USER):
    """The beginning of a command line: as @uid with exactly these."""
    needs_root()
    lacking = [name for name in capabilities if not held() & bits([name])]
    if lacking:
        raise Skip(f"who runs the tests may not give CAP_{', CAP_'.join(lacking)}")
    given = "".join(f",+{name.lower()}" for name in capabilities)
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", f"--inh-caps=-all{given}", f"--ambient-caps=-all{given}",
            f"--bounding-set=-all{given}", *options]


def denied(call, user):
    """The beginning of a command line, behind which the call is refused."""
    if platform.machine() not in filters.SYSCALLS:
        raise Skip("the numbers of system calls of this machine are not here")
    return [sys.executable, filters.__file__, call, *user]


@functools.cache
def place():
    """The programs and the simulated libraries where every user may read them."""
    needs_root()
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-capabilities-")
    os.chmod(folder.name, 0o755)
    os.mkdir(f"{folder.name}/cuda")
    for path in (GPUSONDE, f"{BUILD}/gpusonde-nvml", f"{BUILD}/gpusonde-reader", f"{BUILD}/gpusonde-web", f"{BUILD}/gpusonde-owners", f"{BUILD}/gpusonde-kubelet", f"{BUILD}/gpusonde-kube", f"{BUILD}/gpusonde-push", f"{BUILD}/gpusonde-hosts", f"{BUILD}/gpusonde-store", f"{BUILD}/gpusonde-dcgm", f"{BUILD}/gpusonde-inference", SIMULATED):
        shutil.copy(path, folder.name)
    shutil.copytree(f"{os.path.dirname(SIMULATED)}/scenarios", f"{folder.name}/scenarios")
    for name in ("libcuda.so.1", "libcudart.so.13", "workload", "workload-late"):
        shutil.copy(f"{BUILD}/sim/cuda/{name}", f"{folder.name}/cuda")
    return folder # which goes when we do


def in_place(name):
    return f"{place().name}/{name}"


def settings(**more):
    return environment(LD_LIBRARY_PATH=in_place("cuda"), GPUSONDE_NVML_LIBRARY=in_place("libnvidia-ml.so.1"), GPUSONDE_SIM_CUDA_KERNEL_US="0",
                       GPUSONDE_SIM_SCENARIO="node-8xh100", GPUSONDE_CONTROL_SOCKET="none", **more)


def gpusonde(user, *args, program="gpusonde", **env):
    return subprocess.run([*user, in_place(program), *args], env=settings(**env), cwd="/", capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False)


def doctor(user, **kwargs):
    found = json.loads(gpusonde(user, "doctor", "--json", **kwargs).stdout)
    return {c["check"]: c for c in found["checks"]}


def trace_checks(checks):
    """Those that have to do with what one may."""
    return {name: checks[name] for name in ("tracing", "trace-capabilities", "trace-records", "tracefs", "trace-sites")}


@contextlib.contextmanager
def agent_of(user, *flags, program="gpusonde", scenario="node-8xh100", **env):
    with tempfile.TemporaryDirectory(prefix="gpusonde-capabilities-") as tmp:
        os.chmod(tmp, 0o777)
        with Agent("--trace-enabled", "auto", *flags, scenario=scenario, tmp=tmp, program=(*user, in_place(program)),
                   GPUSONDE_NVML_LIBRARY=in_place("libnvidia-ml.so.1"), **env) as agent:
            yield agent


def decided(agent):
    """What the agent says of tracing once it knows."""
    return wait_for(lambda: (t := traced.trace_of(agent)) and (t["enabled"] or t["why"]) and t, "tracing to begin, or not")


@functools.cache
def probed(file):
    listed = json.loads(gpusonde((), "probes", "--json", in_place(f"cuda/{file}")).stdout)
    return {site["symbol"] for site in listed["sites"] if site["chosen"]}


def traced_exactly(document, log):
    """A document of "gpusonde trace --json" against what the simulated CUDA says that it was called for."""
    names, wanted = {"libcuda": probed("libcuda.so.1"), "libcudart": probed("libcudart.so.13")}, {}
    for process in truth.read(log)["processes"]:
        for call in process["calls"]:
            count = call["count"] - call["nested"]
            if count > 0 and call["api"] in names[call["library"]]:
                wanted[call["api"]] = count
    found = {c["api"]: c["count"] for p in document["processes"] for c in p["calls"]}
    assert wanted, "nothing was called"
    equal(found, wanted, "calls")
    return sum(wanted.values())


def trace_command(user, *flags, program="gpusonde"):
    """gpusonde trace -- CMD: (what it ended with, how many calls it counted, exactly)."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-capabilities-") as tmp:
        os.chmod(tmp, 0o777)
        done = gpusonde(user, "trace", "--json", "-o", "-", *flags, "--", in_place("cuda/workload-late"), f"load {in_place('cuda/libcudart.so.13')}; {CALLS}", program=program,
                        GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log")
        if done.returncode != 0:
            return done, 0
        return done, traced_exactly(json.loads(done.stdout.splitlines()[-1]), f"{tmp}/log")


@contextlib.contextmanager
def running(command):
    with subprocess.Popen(command, env=settings(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill() # or its end would be waited for, whatever went wrong


@contextlib.contextmanager
def paused(uid, script, tmp, **env):
    """A program of that user that has mapped libraries of its own, in which no probe of anybody is left, and waits."""
    for name in ("libcuda.so.1", "libcudart.so.13"):
        shutil.copy(in_place(f"cuda/{name}"), tmp)
    theirs = {"LD_LIBRARY_PATH": tmp, "GPUSONDE_SIM_SCENARIO": in_place("scenarios/node-8xh100.yaml")}
    with subprocess.Popen([*as_user((), uid=uid), in_place("cuda/workload-late"), f"load {tmp}/libcudart.so.13; pause; {script}; pause"],
                          cwd="/", env=dict(settings(GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log", **env), **theirs), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            equal(process.stdout.readline(), "ready\n", "the program")
            yield process
        finally:
            process.kill()


def mapped(pid):
    """CUDA's libraries that it has, and how many functions are probed in each."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return {path: traced.chosen_sites(path) for path in set(re.findall(r" (/\S*/libcuda(?:rt)?\.so\S*)$", f.read(), re.M))}


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def trace_process(user, uid, *flags, program="gpusonde"):
    """gpusonde trace -p PID of a program of @uid: (status, stderr, how many calls it counted, exactly)."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-capabilities-") as tmp:
        os.chmod(tmp, 0o777)
        with paused(uid, CALLS, tmp) as process, \
             running([*user, in_place(program), "trace", "--json", *flags, "-p", str(process.pid)]) as tracer:
            wanted = mapped(process.pid).items()
            wait_for(lambda: tracer.poll() is not None or all(traced.patched(process.pid, path) and traced.holds_links(tracer.pid, path, sites)
                                                              for path, sites in wanted), "probes in the process")
            if tracer.poll() is None:
                go_on(process)
                equal(process.stdout.readline(), "ready\n", "the program")
                tracer.send_signal(signal.SIGINT)
            out, errors = tracer.communicate(timeout=PATIENCE_S)
            if tracer.returncode != 0:
                return tracer.returncode, errors, 0
            go_on(process)
            equal(process.wait(PATIENCE_S), 0, "the program's status")
        document = json.loads(out)
        if "--kernels" in flags:
            launches = [k["launches_total"] for p in document["kernels"]["processes"] for k in p["kernels"]]
            equal(sum(launches), 30, f"launches of kernels: {document['kernels']}")
        return 0, errors, traced_exactly(document, f"{tmp}/log")


def agent_counts(agent):
    """A program of another user, root, is counted exactly, from its first call."""
    with traced.Workload(agent, traced.BUSY + "; pause") as workload:
        traced.probed_when_loaded(agent, workload)
        workload.go_on()
        workload.ready()
        wanted = traced.all_counted(agent, workload)
        process = traced.process_of(agent, workload.process.pid)
        workload.end()
    return sum(count for count, _, _ in wanted.values()), process
