#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each set of capabilities is enough for, as a user who has nothing else: what works, and what is said of the rest.

Root runs this; everything that is tested runs as a user without a name. Nothing of the machine's settings is touched; what follows from them
is in lib/capabilities.py. capabilities_filters.py has refusals that no capability is the cause of; test/kernels/capabilities_cases.py has the kernels and the
settings that this machine has not.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

from lib import rows, traced
from lib.capabilities import (ALL, LOST, OTHER, TRACING, USER, bits, has_multi, kernel_log_misses, kernel_log_verdict, missing, missing_of_ours, perf_level,
                              records_miss, tracing_needs)
from lib.e2e import GPUSONDE, PATIENCE_S, SOURCE, Skip, Worker, children, comm, contains, equal, run, values, wait_for
from lib.capabilities_run import (XIDS, agent_counts, agent_of, as_user, decided, denied, doctor, gpusonde, in_place, needs_btf, needs_root, place,
                            trace_checks, trace_command, trace_process)


# What the unit has so that its processes get another user than the agent's.
USERS = {"SETUID", "SETGID"}
NOBODY = 65534


def user_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"^Uid:\t\d+\t(\d+)", f.read(), re.M)[1])


def needs_multi():
    needs_root()
    if not has_multi():
        raise Skip("this kernel has no uprobe_multi and asks for other capabilities: test/kernels/capabilities_cases.py has those")


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
                    one, other = (subprocess.run([*who, in_place("gpusonde"), view, "--json"], env=dict(agent.env, GPUSONDE_CONTROL_SOCKET="none"), cwd="/",
                                                 capture_output=True, text=True, timeout=PATIENCE_S, check=False) for who in (user, ()))
                    equal((one.returncode, other.returncode), (0, 0), one.stderr + other.stderr)
                    equal(list(shape(json.loads(one.stdout))), list(shape(json.loads(other.stdout))), f"gpusonde {view}")
                    assert not missing(one.stderr), one.stderr
    rows.say("capabilities", "no capability", devices="all, and names of other users' processes")


def test_what_no_right_loses_is_said_once():
    """auto: no tracing, no kernel log, XIDs by the driver's events; each lack once in the log, and once in doctor with how to give it."""
    user = as_user(())
    needs_btf()
    with agent_of(user, scenario=XIDS) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(found["why"])), (False, tracing_needs()))
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", gpu="0", xid="79") >= [1], "XID 79 of the driver's events")
        equal(missing(agent.log()), sorted(tracing_needs() + kernel_log_misses()), agent.log())
    checks, others = doctor(user), ["SYS_PTRACE", "DAC_READ_SEARCH"]
    equal(missing(checks["trace-capabilities"]["text"]), sorted(tracing_needs() + others))
    equal(missing(checks["tracing"]["text"]), tracing_needs())
    equal(missing(checks["kernel-log"]["text"]), kernel_log_misses())
    for name in tracing_needs() + others:
        for way in (f"CAP_{name}", f"--cap-add {name}"):
            contains(checks["trace-capabilities"]["remedy"], way)
    said = [c["text"] for c in checks.values()]
    for lost in set(LOST.values()) - {LOST["CHECKPOINT_RESTORE"]}:
        open_to_all = lost == LOST["SYSLOG"] and not kernel_log_misses() and kernel_log_verdict() == "ok"
        equal(sum(text.count(lost) for text in said), 0 if open_to_all else 1, f"how often doctor says: {lost}")
    done, _ = trace_command(user)
    equal((done.returncode, missing(done.stderr), len(done.stderr.splitlines())), (1, tracing_needs(), 1))
    names = re.search(r"run it as root \(sudo\), or give the capabilities to a trusted group: sudo chgrp GROUP \S+; sudo chmod 0750 \S+; sudo setcap (\S+)\+ep (\S+)$", done.stderr.strip())
    assert names, done.stderr
    if has_multi():
        equal((sorted(names[1].split(",")), names[2]), (sorted(f"cap_{name.lower()}" for name in tracing_needs() + others), in_place("gpusonde")), "what is to be given")
    said = [", ".join(f"CAP_{name}" for name in names) for names in (tracing_needs(), others)]
    rows.say("capabilities", "no capability", tracing="no", said="; ".join(said + [f"CAP_{name} for the kernel log" for name in kernel_log_misses()]))


# ---- with what is named ----


def dropped(done):
    """What of the environment it says that a command does not get; nothing else is said."""
    lines = done.stderr.splitlines()
    for line in lines:
        contains(line, "is not passed to the command: the loader removes it, since gpusonde has file capabilities; gpusonde trace -- env 'LD_")
    return [line.split()[2] for line in lines]


def exact_with(user, program="gpusonde"):
    """Everything that tracing can do, each exact; nothing may be said to be missing but what this machine's settings ask for. Text for the table."""
    checks = doctor(user, program=program)
    for name, check in trace_checks(checks).items():
        lacks = records_miss() if name == "trace-records" else []
        equal((check["verdict"], missing(check["text"])), ("note" if lacks else "ok", lacks), f"{name}: {check}")
    done, command_calls = trace_command(user, program=program)
    equal((done.returncode, dropped(done)), (0, [] if program == "gpusonde" else ["LD_LIBRARY_PATH"]), "trace -- COMMAND")
    done, kernel_calls = trace_command(user, "--kernels", program=program)
    equal((done.returncode, dropped(done)), (0, [] if program == "gpusonde" else ["LD_LIBRARY_PATH"]), "trace --kernels -- COMMAND")
    for uid, flags in ((USER, ()), (OTHER, ("--kernels",))):
        status, errors, calls = trace_process(user, uid, *flags, program=program)
        equal((status, missing(errors), len(errors.splitlines())), (0, records_miss(), len(records_miss())), f"trace {flags} -p of user {uid}: {errors}")
        assert calls > 30, calls
    equal(command_calls, kernel_calls, "calls of the same program")
    return f"exact: {command_calls} calls"


def nothing_but_records():
    return f"perf_event_paranoid {perf_level()}: new programs are found by scanning /proc (CAP_SYS_ADMIN)" if records_miss() else "nothing"


def test_exactly_what_is_named():
    needs_multi()
    user = as_user(ALL)
    with agent_of(user) as agent:
        found = decided(agent)
        if not found["enabled"] or "PID namespace" in (found["why"] or ""):
            raise Skip(found["why"])
        calls, process = agent_counts(agent)
        equal(process["incomplete"], ["late"] if records_miss() else [])
        for text in (found["why"] or "", agent.log()):
            equal((missing_of_ours(text), text.count("scanning /proc")), (records_miss(), len(records_miss())), text)
        equal(values(agent.metrics(), "gpusonde_source_up", source="trace"), [1])
    text = exact_with(as_user(TRACING))
    equal(doctor(user)["kernel-log"]["verdict"], kernel_log_verdict())
    rows.say("capabilities", "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH", devices="all",
             tracing=f"agent exact: {calls} calls; trace -p, --, --kernels {text}", said=nothing_but_records())


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
        # Who is not looked into at all is told of that alone.
        lacks = sorted([name] + (records_miss() if status == 0 else []))
        equal((missing(errors), len(errors.splitlines())), (lacks, len(lacks)), errors)
        contains(errors, LOST[name])
        assert (status, calls) == (1, 0) or calls > 30, (status, calls, errors)
        status, errors, calls = trace_process(user, USER)
        equal((status, missing(errors)), (0, records_miss()), errors)
        return f"own programs, exact: {calls} calls; others' outside of containers, exact: {agent_counts(agent)[0]} calls"
    if name == "DAC_READ_SEARCH":
        status, errors, calls = trace_process(user, OTHER)
        lacks = sorted([name] + records_miss())
        equal((status, missing(errors), len(errors.splitlines())), (0, lacks, len(lacks)), errors)
        return f"exact: {calls} calls where libraries are open to all"
    calls, _ = agent_counts(agent)
    return f"exact: {calls} calls"


def test_each_one_taken_away():
    """One sentence names it, and no other, in the log, in doctor and by gpusonde trace; the rest goes on."""
    needs_multi()
    for name in [*TRACING, *kernel_log_misses()]:
        user = as_user([n for n in ALL if n != name])
        without_records = [] if name in tracing_needs() else records_miss()
        with agent_of(user, scenario=XIDS if name == "SYSLOG" else "node-8xh100") as agent:
            decided(agent)
            equal(missing_of_ours(agent.log()), sorted([name] + without_records), f"the log without CAP_{name}: {agent.log()}")
            equal(agent.log().count(LOST[name]), 1, f"what is lost without CAP_{name}")
            for way in (f"AmbientCapabilities=CAP_{name}", f"--cap-add {name}"):
                contains(agent.log(), way)
            assert values(agent.metrics(), "gpusonde_gpu_present"), "no device metrics"
            if name == "SYSLOG":
                wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", gpu="0", xid="79") >= [1], "XID 79 of the driver's events") # noqa: B023
            tracing = remains(user, name, agent)
        checks = doctor(user)
        where = "kernel-log" if name == "SYSLOG" else "trace-capabilities"
        equal(missing(checks[where]["text"]), [name], f"doctor without CAP_{name}: {checks[where]}")
        contains(checks[where]["remedy"], f"--cap-add {name}")
        others = {n: c["text"] for n, c in checks.items() if n not in (where, "tracing") and missing(c["text"]) != (without_records if n == "trace-records" else [])}
        equal(others, {}, f"doctor without CAP_{name}")
        rows.say("capabilities", f"without CAP_{name} alone", devices="all", tracing=tracing, said=f"CAP_{name}: {LOST[name]}")


def test_a_replaced_library():
    """Deleted while a program maps it: wanted by nobody until then, and said once; with the capability it is traced."""
    needs_multi()
    refused = ["SYS_ADMIN"] if perf_level() >= 3 else []
    for more, wanted in (((), ["CHECKPOINT_RESTORE", *refused]), (("CHECKPOINT_RESTORE",), records_miss())):
        user = as_user((*ALL, *more))
        if not more:
            user = denied("perf_event_open", user) # then /proc is read each second
        with agent_of(user, "--trace-enabled", "no") as elsewhere, \
             traced.Workload(elsewhere, "api driver; init; pause; repeat 50; launch; end; sync") as workload:
            workload.ready()
            os.unlink(workload.library)
            workload.go_on()
            workload.ready()
            with agent_of(user) as agent:
                decided(agent)
                if more:
                    wait_for(lambda: traced.patched(workload.process.pid, f"{os.path.basename(workload.library)} (deleted)"), "probes in it") # noqa: B023
                else:
                    wait_for(lambda: "CHECKPOINT_RESTORE" in missing(agent.log()), "the capability to be named") # noqa: B023
                    contains(agent.log(), LOST["CHECKPOINT_RESTORE"])
                    time.sleep(2.5) # scans come each second
                equal(missing(agent.log()), wanted, agent.log())
            workload.end()
    rows.say("capabilities", "with CAP_CHECKPOINT_RESTORE, too", tracing="also libraries that were deleted or replaced",
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
    needs_multi()
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
            equal((done.returncode, dropped(done)), (0, ["LD_LIBRARY_PATH"]), "trace -- COMMAND")
            text = f"own programs, exact: {calls} calls"
        rows.say("capabilities", f"setcap {','.join('cap_' + n.lower() for n in names)}+ep", devices="all", tracing=text, said=nothing_but_records() if names == TRACING else "nothing")


def test_file_capabilities_do_not_open_files():
    """Who may run such a gpusonde may not read other users' files through it."""
    lone = 54321  # other tests' processes are not this user's
    user = ["setpriv", f"--reuid={lone}", f"--regid={lone}", "--clear-groups"]
    place()
    shutil.copy(GPUSONDE, in_place("gpusonde-reads"))
    file_capabilities(in_place("gpusonde-reads"), TRACING)
    with tempfile.TemporaryDirectory(prefix="gpusonde-capabilities-") as tmp:
        os.chmod(tmp, 0o755)
        secret = shutil.copy(in_place("cuda/libcuda.so.1"), f"{tmp}/secret")
        os.chmod(secret, 0o600)
        for words in (["agent", "--check-config", "--config", secret], ["inspect", secret], ["probes", secret]):
            done = gpusonde(user, *words, program="gpusonde-reads")
            assert done.returncode != 0, words
            assert re.search("[Pp]ermission|not readable", done.stderr), (words, done.stderr)
        done = gpusonde(user, "trace", "-o", f"{tmp}/out", "--", "true", program="gpusonde-reads")
        assert done.returncode != 0 and not os.path.exists(f"{tmp}/out"), done.stderr
        # What is below a folder that is closed to him is not written either, though all may write it.
        os.makedirs(f"{tmp}/closed/open")
        os.chmod(f"{tmp}/closed/open", 0o777)
        for flag, name in (("--timeline", "x.json"), ("--stacks", "x.html")):
            with open(f"{tmp}/closed/open/{name}", "w", encoding="ascii") as f:
                f.write("root's")
            os.chmod(f"{tmp}/closed/open/{name}", 0o666)
            os.chmod(f"{tmp}/closed", 0o700)
            done = gpusonde(user, "trace", f"{flag}={tmp}/closed/open/{name}", "--", "true", program="gpusonde-reads")
            contains(done.stderr, f"cannot write {tmp}/closed/open/{name}: Permission denied")
            with open(f"{tmp}/closed/open/{name}", encoding="ascii") as f:
                equal(f.read(), "root's", flag)
        # Neither has its command any, nor the process that holds its calls.
        wait = f"until holder=$(pgrep -n -u {lone} trace-holder); do sleep 0.05; done"
        show = f"{wait}; grep -h Cap /proc/self/status /proc/$holder/status"
        done = gpusonde(user, "trace", "--json", "-o", "-", "--", "sh", "-c", f"{show} >&2", program="gpusonde-reads")
        sets = re.findall(r"^Cap(Inh|Prm|Eff|Amb):\t(\S+)$", done.stderr, re.M)
        equal((len(sets), {bits for _, bits in sets}), (8, {"0" * 16}), done.stderr)


def test_file_capabilities_of_an_agent():
    """It traces, and gives them to its own helper alone, not to what a user has put beside a hard link."""
    needs_multi()
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    shutil.copy(GPUSONDE, in_place("gpusonde-traces"))
    file_capabilities(in_place("gpusonde-traces"), TRACING)
    with agent_of(user, program="gpusonde-traces") as agent:
        found = decided(agent)
        if not found["enabled"]:
            raise Skip(found["why"])
        agent_counts(agent)
    theirs = in_place("theirs")
    os.mkdir(theirs)
    os.link(in_place("gpusonde-traces"), f"{theirs}/gpusonde")
    shutil.copy(in_place("gpusonde-nvml"), theirs)
    shutil.copy(in_place("gpusonde-web"), theirs) # which gets none
    with open(f"{theirs}/gpusonde-reader", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\ncat /proc/self/status >$(dirname $0)/started\n")
    os.chmod(f"{theirs}/gpusonde-reader", 0o755)
    os.chown(theirs, USER, USER)
    with agent_of(user, program="theirs/gpusonde") as agent:
        found = decided(agent)
        equal(found["enabled"], False)
        assert re.search("libexec/gpusonde/gpusonde-reader: No such file", found["why"]), found["why"]
    assert not os.path.exists(f"{theirs}/started"), "a user's program was given capabilities"


def test_a_set_user_id_bit():
    place()
    for bit, name in ((0o4755, "gpusonde-suid"), (0o2755, "gpusonde-sgid")):
        shutil.copy(GPUSONDE, in_place(name))
        os.chmod(in_place(name), bit)
        done = gpusonde(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"], "probes", "/etc/shadow", program=name)
        equal((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        contains(done.stderr, "chmod ug-s")


def test_a_user_namespace():
    """Root and all capabilities there, none of which the kernel's own things ask for."""
    inside = [*as_user(()), "unshare", "--user", "--map-root-user"]
    probe = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Skip(f"no user namespaces for users here: {probe.stderr.strip()}")
    checks = doctor(inside)
    done, _ = trace_command(inside)
    equal((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
    for text in (checks["trace-capabilities"]["text"], done.stderr, *([checks["kernel-log"]["text"]] if kernel_log_misses() else [])):
        contains(text, "user namespace")
        equal(missing(text), [])
    equal(gpusonde(inside, "gpus", "--json").returncode, 0)
    rows.say("capabilities", "root in a user namespace", devices="all", tracing="no", said="that its capabilities do not count")


# ---- what is shipped ----


def test_the_unit_names_what_is_needed():
    """
    The service has what docs/capabilities.md names for a kernel with uprobe_multi, and what its processes change users with, no more; and
    with that nothing is missing.
    """
    with open(f"{SOURCE}/deploy/systemd/gpusonde.service", encoding="utf-8") as f:
        unit = f.read()
    with open(f"{SOURCE}/docs/capabilities.md", encoding="utf-8") as f:
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in f if line.startswith("| `")]
    wanted = {row[0].strip("`").removeprefix("CAP_") for row in table if "without uprobe_multi" not in row[1] and "3 or more" not in row[1]}
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        equal({name.removeprefix("CAP_") for name in re.search(rf"^{key}=(.*)$", unit, re.M)[1].split()}, wanted | USERS, key)
    with open(f"{SOURCE}/docs/tracing.md", encoding="utf-8") as f:
        needs = re.search(r"^## What it needs\n(.*?)^## ", f.read(), re.M | re.S)[1]
    for name in {row[0] for row in table if "dmesg" not in row[1]}:
        contains(needs, name)
    needs_multi()
    for name in USERS:
        contains(needs, f"CAP_{name}")
    with agent_of(as_user(sorted(wanted | USERS), "--no-new-privs", uid=OTHER)) as agent:
        equal((decided(agent)["enabled"], missing(agent.log())), (True, records_miss()), agent.log())
        users = {comm(child): user_of(child) for child in children(agent.process.pid)}
        equal((users["gpusonde-web"], users["gpusonde-nvml"]), (NOBODY, user_of(agent.process.pid)), "users of the agent's processes")


if __name__ == "__main__":
    run()
