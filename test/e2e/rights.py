#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each set of capabilities is enough for, as a user who has nothing else: what works, and what is said of the rest.

Root runs this; everything that is tested runs as a user without a name. Nothing of the machine's settings is touched: where perf events are to be
refused, a filter of system calls does it. test/kernels/rights_cases.py has the kernels and the settings that this machine has not.
"""
import contextlib
import ctypes
import functools
import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import agent_trace
from e2e import BUILD, GPUSONDE, PATIENCE_S, SIMULATED, SOURCE, Agent, Skip, Worker, contains, environment, equal, run, values, wait_for

sys.path += [f"{SOURCE}/test/matrix", f"{SOURCE}/sim/cuda"]
import rows  # noqa: E402
import truth  # noqa: E402

USER = 65534
OTHER = 65533
NUMBERS = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYSLOG": 34, "PERFMON": 38, "BPF": 39,
           "CHECKPOINT_RESTORE": 40}
TRACING = ("BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH")
ALL = (*TRACING, "SYSLOG")
LOST = {
    "BPF": "CUDA calls are not traced",
    "PERFMON": "CUDA calls are not traced",
    "SYS_PTRACE": "of other users' programs only calls of libraries outside of containers",
    "DAC_READ_SEARCH": "libraries in folders that are closed to others",
    "SYSLOG": "XID errors come from the driver's events alone",
    "CHECKPOINT_RESTORE": "libraries that were deleted or replaced",
}
XIDS = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 3s}\n"
CALLS = "alloc 4096; repeat 30; launch 2 64; end; sync; bad alloc; free all"


def needs_root():
    if os.geteuid() != 0:
        raise Skip("only root can become a user without rights, or give it some")


def bits(names):
    return sum(1 << NUMBERS[name] for name in names)


def held(pid="self"):
    """The capabilities that a process may give on."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
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


@functools.cache
def place():
    """The programs and the simulated libraries where every user may read them."""
    needs_root()
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-rights-")
    os.chmod(folder.name, 0o755)
    os.mkdir(f"{folder.name}/cuda")
    for path in (GPUSONDE, f"{BUILD}/gpusonde-nvml", SIMULATED):
        shutil.copy(path, folder.name)
    shutil.copytree(f"{os.path.dirname(SIMULATED)}/scenarios", f"{folder.name}/scenarios")
    for name in ("libcuda.so.1", "libcudart.so.13", "workload", "workload-late"):
        shutil.copy(f"{BUILD}/sim/cuda/{name}", f"{folder.name}/cuda")
    return folder # which goes when we do


def in_place(name):
    return f"{place().name}/{name}"


def settings(**more):
    return environment(LD_LIBRARY_PATH=in_place("cuda"), GPUSONDE_NVML_LIBRARY=in_place("libnvidia-ml.so.1"), GPUSONDE_SIM_CUDA_KERNEL_US="0",
                       GPUSONDE_SIM_SCENARIO="node-8xh100", GPUSONDE_SOCKET="none", **more)


def gpusonde(user, *args, program="gpusonde", **env):
    return subprocess.run([*user, in_place(program), *args], env=settings(**env), cwd="/", capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False)


def doctor(user, **kwargs):
    found = json.loads(gpusonde(user, "doctor", "--json", **kwargs).stdout)
    return {c["check"]: c for c in found["checks"]}


def missing(text):
    """The capabilities that it says are missing, each as often as it does."""
    return sorted(name for said in re.findall(r"((?:CAP_[A-Z_]+(?: and )?)+) (?:is|are) missing", text) for name in re.findall(r"CAP_([A-Z_]+)", said))


def trace_checks(checks):
    """Those that have to do with what one may."""
    return {name: checks[name] for name in ("tracing", "trace-rights", "trace-records", "tracefs", "trace-sites")}


@contextlib.contextmanager
def agent_of(user, *flags, program="gpusonde", scenario="node-8xh100", **env):
    with tempfile.TemporaryDirectory(prefix="gpusonde-rights-") as tmp:
        os.chmod(tmp, 0o777)
        with Agent("--trace-enabled", "auto", *flags, scenario=scenario, tmp=tmp, program=(*user, in_place(program)),
                   GPUSONDE_NVML_LIBRARY=in_place("libnvidia-ml.so.1"), **env) as agent:
            yield agent


def decided(agent):
    """What the agent says of tracing once it knows."""
    return wait_for(lambda: (t := agent_trace.trace_of(agent)) and (t["enabled"] or t["why"]) and t, "tracing to begin, or not")


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
    with tempfile.TemporaryDirectory(prefix="gpusonde-rights-") as tmp:
        os.chmod(tmp, 0o777)
        done = gpusonde(user, "trace", "--json", *flags, "--", in_place("cuda/workload-late"), f"load {in_place('cuda/libcudart.so.13')}; {CALLS}", program=program,
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
    """A program of that user that has mapped the libraries and waits."""
    with subprocess.Popen([*as_user((), uid=uid), in_place("cuda/workload-late"), f"load {in_place('cuda/libcudart.so.13')}; pause; {script}; pause"],
                          cwd="/", env=settings(GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log", **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            equal(process.stdout.readline(), "ready\n", "the program")
            yield process
        finally:
            process.kill()


def mapped(pid):
    """CUDA's libraries that it has."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return set(re.findall(r"/(libcuda(?:rt)?\.so[^/\n]*)$", f.read(), re.M))


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def trace_process(user, uid, *flags, program="gpusonde"):
    """gpusonde trace -p PID of a program of @uid: (status, stderr, how many calls it counted, exactly)."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-rights-") as tmp:
        os.chmod(tmp, 0o777)
        with paused(uid, CALLS, tmp) as process, \
             running([*user, in_place(program), "trace", "--json", *flags, "-p", str(process.pid)]) as tracer:
            wait_for(lambda: tracer.poll() is not None or all(agent_trace.patched(process.pid, name) for name in mapped(process.pid)),
                     "probes in the process")
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
    with agent_trace.Workload(agent, agent_trace.BUSY + "; pause") as workload:
        agent_trace.probed_when_loaded(agent, workload)
        workload.go_on()
        workload.ready()
        wanted = agent_trace.all_counted(agent, workload)
        process = agent_trace.process_of(agent, workload.process.pid)
        workload.end()
    return sum(count for count, _, _ in wanted.values()), process


# ---- without any ----


def shape(value):
    """Names, and where nothing is; not the numbers, which change."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items() if k not in ("first_seen", "last_seen", "age_seconds", "traced", "unavailable", "estimated")}
    if isinstance(value, list):
        return [shape(v) for v in value]
    return value if isinstance(value, str) else None


def series(page):
    names = {line.rpartition(" ")[0] for line in page.splitlines() if line and not line.startswith("#")}
    return {re.sub(r'\{.*', "", name) for name in names if "trace" not in name and "gpusonde_cuda" not in name and "kmsg" not in name}


def test_device_metrics_need_no_right():
    user = as_user(())
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        with Worker(tmp) as worker:
            scenario = worker.scenario()
            with agent_of((), "--trace-enabled", "no", scenario=scenario) as root, \
                 agent_of(user, "--trace-enabled", "no", "--kmsg-enabled", "false", scenario=scenario) as agent:
                for one in (root, agent):
                    wait_for(lambda o=one: values(o.metrics(), "gpusonde_process_gpu_memory_bytes", pid=str(worker.pid)), "the worker")
                wait_for(lambda: series(agent.metrics()) == series(root.metrics()),
                         f"the same metrics as root's; now {sorted(series(agent.metrics()) ^ series(root.metrics()))}", 15)
                by_root, by_user = ([p for p in o.get("/api/v1/processes").json()["processes"] if p["pid"] == worker.pid] for o in (root, agent))
                equal(shape(by_user), shape(by_root), "the worker of another user, as both see it")
                equal([(p["comm"], p["uid"]) for p in by_user][:1], [(worker.comm, 0)], "its name and user")
                assert not missing(agent.log()), f"something is missed that was not asked for: {agent.log()}"
                for view in ("gpus", "ps"):
                    one, other = (subprocess.run([*who, in_place("gpusonde"), view, "--json"], env=dict(agent.env, GPUSONDE_SOCKET="none"), cwd="/",
                                                 capture_output=True, text=True, timeout=PATIENCE_S, check=False) for who in (user, ()))
                    equal((one.returncode, other.returncode), (0, 0), one.stderr + other.stderr)
                    equal(list(shape(json.loads(one.stdout))), list(shape(json.loads(other.stdout))), f"gpusonde {view}")
                    assert not missing(one.stderr), one.stderr
    rows.say("rights", "no capability", devices="all, and names of other users' processes")


def test_what_no_right_loses_is_said_once():
    """auto: no tracing, no kernel log, XIDs by the driver's events; each lack once in the log, and once in doctor with how to give it."""
    user = as_user(())
    with agent_of(user, scenario=XIDS) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(found["why"])), (False, ["BPF", "PERFMON"]))
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", gpu="0", xid="79") >= [1], "XID 79 of the driver's events")
        equal(missing(agent.log()), ["BPF", "PERFMON", "SYSLOG"], agent.log())
    checks = doctor(user)
    equal(missing(checks["trace-rights"]["text"]), sorted(TRACING))
    equal(missing(checks["tracing"]["text"]), ["BPF", "PERFMON"])
    equal(missing(checks["kernel-log"]["text"]), ["SYSLOG"])
    for name in TRACING:
        for way in (f"CAP_{name}", f"--cap-add {name}", f"cap_{name.lower()}"):
            contains(checks["trace-rights"]["remedy"], way)
    said = [c["text"] for c in checks.values()]
    for lost in set(LOST.values()) - {LOST["CHECKPOINT_RESTORE"]}:
        equal(sum(text.count(lost) for text in said), 1, f"how often doctor says: {lost}")
    done, _ = trace_command(user)
    equal((done.returncode, missing(done.stderr), len(done.stderr.splitlines())), (1, ["BPF", "PERFMON"], 1))
    rows.say("rights", "no capability", tracing="no", said="CAP_BPF, CAP_PERFMON; CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH; CAP_SYSLOG for the kernel log")


# ---- with what is named ----


def exact_with(user, program="gpusonde"):
    """Everything that tracing can do, each exact; nothing may be said to be missing. Text for the table."""
    checks = doctor(user, program=program)
    for name, check in trace_checks(checks).items():
        equal((check["verdict"], missing(check["text"])), ("ok", []), f"{name}: {check}")
    done, command_calls = trace_command(user, program=program)
    equal((done.returncode, done.stderr), (0, ""), "trace -- COMMAND")
    done, kernel_calls = trace_command(user, "--kernels", program=program)
    equal((done.returncode, done.stderr), (0, ""), "trace --kernels -- COMMAND")
    for uid, flags in ((USER, ()), (OTHER, ("--kernels",))):
        status, errors, calls = trace_process(user, uid, *flags, program=program)
        equal((status, errors), (0, ""), f"trace {flags} -p of user {uid}")
        assert calls > 30, calls
    equal(command_calls, kernel_calls, "calls of the same program")
    return f"exact: {command_calls} calls"


def test_exactly_what_is_named():
    user = as_user(ALL)
    with agent_of(user) as agent:
        found = decided(agent)
        if not found["enabled"] or "PID namespace" in (found["why"] or ""):
            raise Skip(found["why"])
        calls, process = agent_counts(agent)
        equal(process["incomplete"], [])
        equal((found["why"] or "", missing(agent.log())), ("", []), agent.log())
        equal(values(agent.metrics(), "gpusonde_source_up", source="trace"), [1])
    text = exact_with(as_user(TRACING))
    equal(doctor(user)["kernel-log"]["verdict"], "ok")
    rows.say("rights", "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH", devices="all",
             tracing=f"agent exact: {calls} calls; trace -p, --, --kernels {text}", said="nothing")


def remains(user, name, agent):
    """What must go on without that one capability."""
    if name in ("BPF", "PERFMON"):
        found = decided(agent)
        equal(found["enabled"], False)
        done, _ = trace_command(user)
        equal((done.returncode, missing(done.stderr), len(done.stderr.splitlines())), (1, [name], 1), done.stderr)
        equal(done.stderr.count(LOST[name]), 1, done.stderr)
        return "no"
    if name == "SYS_PTRACE":
        # Whether CAP_PERFMON is enough to read what others map depends on the kernel.
        status, errors, calls = trace_process(user, OTHER)
        equal((missing(errors), len(errors.splitlines())), ([name], 1), errors)
        contains(errors, LOST[name])
        assert (status, calls) == (1, 0) or calls > 30, (status, calls, errors)
        status, errors, calls = trace_process(user, USER)
        equal((status, errors), (0, ""))
        return f"own programs, exact: {calls} calls; others' outside of containers, exact: {agent_counts(agent)[0]} calls"
    if name == "DAC_READ_SEARCH":
        status, errors, calls = trace_process(user, OTHER)
        equal((status, missing(errors), len(errors.splitlines())), (0, [name], 1), errors)
        return f"exact: {calls} calls where libraries are open to all"
    calls, _ = agent_counts(agent)
    return f"exact: {calls} calls"


def test_each_one_taken_away():
    """One sentence names it, and no other, in the log, in doctor and by gpusonde trace; the rest goes on."""
    for name in ALL:
        user = as_user([n for n in ALL if n != name])
        with agent_of(user, scenario=XIDS if name == "SYSLOG" else "node-8xh100") as agent:
            decided(agent)
            equal(missing(agent.log()), [name], f"the log without CAP_{name}: {agent.log()}")
            equal(agent.log().count(LOST[name]), 1, f"what is lost without CAP_{name}")
            for way in (f"AmbientCapabilities=CAP_{name}", f"--cap-add {name}", f"cap_{name.lower()}"):
                contains(agent.log(), way)
            assert values(agent.metrics(), "gpusonde_gpu_present"), "no device metrics"
            if name == "SYSLOG":
                wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", gpu="0", xid="79") >= [1], "XID 79 of the driver's events") # noqa: B023
            tracing = remains(user, name, agent)
        checks = doctor(user)
        where = "kernel-log" if name == "SYSLOG" else "trace-rights"
        equal(missing(checks[where]["text"]), [name], f"doctor without CAP_{name}: {checks[where]}")
        contains(checks[where]["remedy"], f"--cap-add {name}")
        others = {n: c["text"] for n, c in checks.items() if n not in (where, "tracing") and missing(c["text"])}
        equal(others, {}, f"doctor without CAP_{name}")
        rows.say("rights", f"without CAP_{name} alone", devices="all", tracing=tracing, said=f"CAP_{name}: {LOST[name]}")


def test_a_replaced_library():
    """Deleted while a program maps it: wanted by nobody until then, and said once; with the capability it is traced."""
    for more, wanted in (((), ["CHECKPOINT_RESTORE"]), (("CHECKPOINT_RESTORE",), [])):
        user = as_user((*ALL, *more))
        if not more:
            user = denied("perf_event_open", user) # then /proc is read each second
        with agent_of(user, "--trace-enabled", "no") as elsewhere, \
             agent_trace.Workload(elsewhere, "api driver; init; pause; repeat 50; launch; end; sync") as workload:
            workload.ready()
            os.unlink(workload.library)
            workload.go_on()
            workload.ready()
            with agent_of(user) as agent:
                decided(agent)
                if more:
                    wait_for(lambda: agent_trace.patched(workload.process.pid, f"{os.path.basename(workload.library)} (deleted)"), "probes in it") # noqa: B023
                else:
                    wait_for(lambda: missing(agent.log()), "the capability to be named") # noqa: B023
                    contains(agent.log(), LOST["CHECKPOINT_RESTORE"])
                    time.sleep(2.5) # scans come each second
                equal(missing(agent.log()), wanted, agent.log())
            workload.end()
    rows.say("rights", "with CAP_CHECKPOINT_RESTORE, too", tracing="also libraries that were deleted or replaced",
             said="without, CAP_CHECKPOINT_RESTORE, when a program maps such a library")


def file_capabilities(path, names):
    """As setcap NAMES+ep does it: struct vfs_cap_data of include/uapi/linux/capability.h, revision 2, effective."""
    low, high = bits(names) & 0xFFFFFFFF, bits(names) >> 32
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, low, 0, high, 0))
    except OSError as why:
        raise Skip(f"capabilities cannot be given to a file here: {why}") from None


def test_file_capabilities():
    """Given to the file, as setcap does: such a process may not be looked into by its own user, and hands on none of them."""
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    place()
    for names in (TRACING, ("BPF", "PERFMON")):
        name = f"gpusonde-{len(names)}"
        shutil.copy(GPUSONDE, in_place(name))
        file_capabilities(in_place(name), names)
        if names == TRACING:
            text = exact_with(user, program=name)
        else:
            done, calls = trace_command(user, program=name)
            equal((done.returncode, done.stderr), (0, ""), "trace -- COMMAND")
            text = f"own programs, exact: {calls} calls"
        rows.say("rights", f"setcap {','.join('cap_' + n.lower() for n in names)}+ep", devices="all", tracing=text, said="nothing")


def test_a_user_namespace():
    """Root and all capabilities there, none of which the kernel's own things ask for."""
    inside = [*as_user(()), "unshare", "--user", "--map-root-user"]
    probe = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(f"no user namespaces for users here: {probe.stderr.strip()}")
    checks = doctor(inside)
    done, _ = trace_command(inside)
    equal((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
    for text in (checks["trace-rights"]["text"], done.stderr, checks["kernel-log"]["text"]):
        contains(text, "user namespace")
        equal(missing(text), [])
    equal(gpusonde(inside, "gpus", "--json").returncode, 0)
    rows.say("rights", "root in a user namespace", devices="all", tracing="no", said="that its capabilities do not count")


# ---- filters of system calls ----

# prctl(2), seccomp(2), linux/filter.h, linux/seccomp.h, linux/audit.h.
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO, EPERM = 0x7FFF0000, 0x00050000, 1
LOAD_NR, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
SYSCALLS = {"x86_64": {"bpf": 321, "perf_event_open": 298}, "aarch64": {"bpf": 280, "perf_event_open": 241}}


def deny(call):
    """For a child before it executes: the call is refused with EPERM from here on."""
    number = SYSCALLS[platform.machine()][call]
    code = b"".join(struct.pack("<HBBI", *i) for i in ((LOAD_NR, 0, 0, 0), (JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | EPERM),
                                                      (RETURN, 0, 0, RET_ALLOW)))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def denied(call, user):
    """The beginning of a command line, behind which the call is refused."""
    if platform.machine() not in SYSCALLS:
        raise Skip("the numbers of system calls of this machine are not here")
    return [sys.executable, os.path.abspath(__file__), BUILD, SOURCE, "--deny", call, *user]


def test_a_filter_that_refuses_bpf():
    user = denied("bpf", as_user(ALL))
    with agent_of(user) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(agent.log())), (False, []), agent.log())
        contains(found["why"], "seccomp filter")
        equal(agent.log().count("seccomp filter"), 1, agent.log())
        assert values(agent.metrics(), "gpusonde_gpu_present"), "no device metrics"
    checks = doctor(user)
    equal([checks[n]["verdict"] for n in ("tracing", "trace-rights")], ["warning", "ok"])
    contains(checks["tracing"]["text"], "seccomp filter")
    done, _ = trace_command(user)
    equal((done.returncode, len(done.stderr.splitlines()), missing(done.stderr)), (1, 1, []), done.stderr)
    contains(done.stderr, "seccomp filter")
    rows.say("rights", "all, and a filter that refuses bpf()", devices="all", tracing="no", said="the filter, no capability")


def test_perf_events_refused():
    """New programs are found by scanning, which is said once: in the log, in doctor, in /api/v1; and they are counted."""
    user = denied("perf_event_open", as_user(ALL))
    with agent_of(user) as agent:
        found = decided(agent)
        equal(found["enabled"], True)
        calls, _ = agent_counts(agent)
        why = wait_for(lambda: agent_trace.trace_of(agent)["why"], "the reason")
        for text in (why, agent.log(), doctor(user)["trace-records"]["text"]):
            equal((text.count("scanning /proc"), text.count("seccomp filter"), missing(text)), (1, 1, []), text)
    done, _ = trace_command(user)
    equal((done.returncode, done.stderr), (0, ""), "a command is held, and needs no perf events")
    rows.say("rights", "all, and a filter that refuses perf events", devices="all", tracing=f"exact: {calls} calls, found by scanning /proc",
             said="that new programs are found up to a second late, and the filter")


# ---- what is shipped ----


def test_the_unit_names_what_is_needed():
    """The service has what docs/rights.md names for a kernel with uprobe_multi, no more; and with that nothing is missing."""
    with open(f"{SOURCE}/deploy/systemd/gpusonde.service", encoding="utf-8") as f:
        unit = f.read()
    with open(f"{SOURCE}/docs/rights.md", encoding="utf-8") as f:
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in f if line.startswith("| `")]
    wanted = {row[0].strip("`").removeprefix("CAP_") for row in table if "without uprobe_multi" not in row[1] and "3 or more" not in row[1]}
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        equal({name.removeprefix("CAP_") for name in re.search(rf"^{key}=(.*)$", unit, re.M)[1].split()}, wanted, key)
    with open(f"{SOURCE}/docs/tracing.md", encoding="utf-8") as f:
        needs = re.search(r"^## What it needs\n(.*?)^## ", f.read(), re.M | re.S)[1]
    for name in {row[0] for row in table if "dmesg" not in row[1]}:
        contains(needs, name)
    with agent_of(as_user(sorted(wanted), "--no-new-privs")) as agent:
        equal((decided(agent)["enabled"], missing(agent.log())), (True, []), agent.log())


if __name__ == "__main__":
    if sys.argv[3:4] == ["--deny"]:
        deny(sys.argv[4])
        os.execvp(sys.argv[5], sys.argv[5:])
    run()
