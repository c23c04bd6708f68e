#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde cgroup: NVIDIA's devices in cgroups of both versions, as the kernel sees them; what is refused; the agent's option; doctor."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from lib.devices import NVIDIA, OTHER, Devices, attach, attach_again, cgroup, hierarchy, mounted, own_dev, process_in, programs, with_given
from lib.e2e import BUILD, GPUSONDE, SOURCE, Agent, Skip, command, contains, environment, equal, run, values, wait_for

SECONDS = 1000


def checked(devices, target, status, *flags):
    out = devices.cli("check", target, "--json", *flags)
    equal((out.returncode, out.stderr), (status, ""), target)
    document = json.loads(out.stdout)
    equal(document["allowed"], status == 0, document)
    return document


def states(document):
    """major -> allowed, denied, unknown; of several minors the worst."""
    worst = {}
    for device in document["devices"]:
        if device["matters"]:
            worst[device["major"]] = max(worst.get(device["major"], "allowed"), device["open"], key=("allowed", "denied", "unknown").index)
    return worst


def changed(out, status=0):
    equal((out.returncode, out.stderr), (status, ""))
    return json.loads(out.stdout)["changed"]


# ---- version 2 ----

def test_version_2_allows_and_undoes_and_the_rest_of_the_policy_holds():
    with Devices() as devices, cgroup("cgroup2", "a.service") as folder:
        attach(folder, "owner", *NVIDIA, OTHER)
        before = programs(folder)
        equal(devices.denied(folder, *NVIDIA, OTHER), [*NVIDIA, OTHER])
        equal(set(states(checked(devices, folder, 1)).values()), {"denied"})

        assert changed(devices.allow(folder, "--json"))
        equal(devices.opened(folder, *NVIDIA, OTHER)[-2:], ["EPERM", "EPERM"], "another's device, and making a node")
        equal(devices.denied(folder, *NVIDIA, OTHER), [OTHER])
        equal(set(states(checked(devices, folder, 0)).values()), {"allowed"})
        (_, name, code), = programs(folder)
        equal(name, "gpusonde_allow")
        assert code.endswith(before[0][2]), "the copy does not end with the original"

        assert not changed(devices.allow(folder, "--json")), "what is allowed already is changed"
        assert changed(devices.cli("allow", folder, "--undo", "--json"))
        equal([p[1:] for p in programs(folder)], [p[1:] for p in before], "name and instructions")
        equal(devices.denied(folder, *NVIDIA, OTHER), [*NVIDIA, OTHER])
        assert not changed(devices.cli("allow", folder, "--undo", "--json"))


def opened_minors(devices, folder, *minors):
    """Of 195, those that may be opened in a cgroup."""
    for minor in minors:
        if not os.path.exists(f"{devices.folder}/gpu{minor}"):
            os.mknod(f"{devices.folder}/gpu{minor}", 0o20666, os.makedev(195, minor))
    said = devices.opened(folder, *(f"gpu{m}" for m in minors))
    return [m for m, answer in zip(minors, said) if answer != "EPERM"]


def test_a_cgroup_gets_the_devices_that_its_processes_were_given():
    """And those that every program needs: nvidiactl (255), nvidia-modeset (254), nvidia-uvm (123 here)."""
    minors = (0, 1, 2, 3, 254, 255)
    with Devices() as devices, own_dev(devices), cgroup("cgroup2", "given.scope") as folder:
        with process_in(folder, argv=with_given(devices, "nvidia0", made=[("nvidia1", 1)])) as pid:
            wait_for(lambda: os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "sleep", "its /dev")
            attach(folder, "owner", *NVIDIA, OTHER)
            equal(opened_minors(devices, folder, *minors), [])
            for target in (str(pid), folder):
                out = devices.cli("allow", target)
                # A process is in a cgroup of version 1, too, whose list says nothing.
                equal(out.returncode, 1 if target != folder and mounted("devices") else 0, out)
                contains(out.stderr, "1 nodes of its /dev are left out")
                equal(opened_minors(devices, folder, *minors), [0, 254, 255], target)
                equal(devices.denied(folder, *NVIDIA, OTHER), [120, 121, 122, OTHER], target)
                assert changed(devices.cli("allow", target, "--undo", "--json"))
            assert changed(devices.cli("allow", folder, "--json"))
            assert not changed(devices.cli("allow", folder, "--json"))
            assert changed(devices.cli("allow", folder, "--undo", "--json"))
            assert changed(devices.cli("allow", folder, "--devices", "nvidia1,/dev/nvidia2", "--json"))
            equal(opened_minors(devices, folder, *minors), [1, 2, 254, 255])
            assert changed(devices.cli("allow", folder, "--undo", "--json"))
            # What a runtime runs there sees this machine's /dev still; and whatever else does, what all see counts.
            shutil.copy(shutil.which("sleep"), f"{devices.folder}/runc")
            for program in (f"{devices.folder}/runc", "sleep"):
                with process_in(folder, argv=[program, "1000"]):
                    assert changed(devices.cli("allow", folder, "--json"))
                    equal(opened_minors(devices, folder, *minors), [0, 254, 255], program)
                    assert changed(devices.cli("allow", folder, "--undo", "--json"))
            out = devices.cli("allow", folder, "--devices", "nvidia7")
            equal((out.returncode, out.stdout), (1, ""))
            contains(out.stderr, 'no node "nvidia7" of NVIDIA')


def test_where_it_cannot_be_known_what_was_given_it_is_refused():
    with Devices() as devices, cgroup("cgroup2", "empty.scope") as folder:
        attach(folder, "owner", *NVIDIA)
        before = programs(folder)
        out = devices.cli("allow", folder)
        equal((out.returncode, out.stdout), (1, ""))
        for words in ("no process of its own is in cgroup", "--devices all"):
            contains(out.stderr, words)
        with process_in(folder, argv=with_given(devices)) as pid:
            wait_for(lambda: os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "sleep", "its /dev")
            out = devices.cli("allow", folder)
            equal((out.returncode, out.stdout), (1, ""))
            contains(out.stderr, "its /dev has no node of NVIDIA")
        equal(programs(folder), before)


def test_one_program_in_two_places():
    """Attached to a cgroup and the one above: it is in the list twice, and one of them is not the cgroup's own."""
    with Devices() as devices, cgroup("cgroup2", "twice.slice", "twice.service") as folder:
        above = os.path.dirname(folder)
        attach(folder, "owner", *NVIDIA)
        attach_again(above, programs(folder)[0][0])
        refused(devices, folder, "twice.slice", "a cgroup above")


def test_more_programs_than_are_read():
    names = [f"l{n}" for n in range(9)]
    with Devices() as devices, cgroup("cgroup2", *names) as folder:
        place = folder
        for _ in names:
            for _ in range(58):
                attach(place, "owner", OTHER)
            place = os.path.dirname(place)
        attach(folder, "denies", *NVIDIA)
        refused(devices, folder, "more than 512 BPF programs")


def test_another_program_stays_attached_and_denies_what_it_denied():
    with Devices() as devices, cgroup("cgroup2", "below") as folder:
        above = os.path.dirname(folder)
        attach(above, "above", OTHER)
        other = programs(above)
        attach(folder, "owner", *NVIDIA)
        assert changed(devices.allow(folder, "--json"))
        equal(devices.denied(folder, *NVIDIA, OTHER), [OTHER])
        equal(programs(above), other)
        assert changed(devices.cli("allow", folder, "--undo", "--json"))
        equal(programs(above), other)


def refused(devices, folder, *words):
    """And nothing has changed."""
    before = programs(folder)
    out = devices.allow(folder)
    equal((out.returncode, out.stdout), (1, ""))
    for word in words:
        contains(out.stderr, word)
    equal(programs(folder), before)


def test_several_programs_are_left_alone_and_the_drop_in_is_offered():
    with Devices() as devices, cgroup("cgroup2", "b.scope") as folder:
        attach(folder, "first", *NVIDIA)
        attach(folder, "second", OTHER)
        refused(devices, folder, "2 BPF programs", "--systemd b.scope")
        equal(devices.denied(folder, *NVIDIA, OTHER), [*NVIDIA, OTHER])


def test_a_program_that_cannot_be_copied_is_left_alone():
    with Devices() as devices, cgroup("cgroup2", "c.service") as folder:
        attach(folder, "owner", *NVIDIA, kind="random")
        equal(set(states(checked(devices, folder, 1)).values()), {"unknown"})
        refused(devices, folder, "it calls functions of the kernel", "--systemd c.service")
    with Devices() as devices, cgroup("cgroup2", "d.service") as folder:
        attach(folder, "owner", *NVIDIA, kind="exclusive")
        refused(devices, folder, "BPF_F_ALLOW_MULTI")


def test_a_cgroup_above_that_denies_is_named():
    with Devices() as devices, cgroup("cgroup2", "e.slice", "e.service") as folder:
        above = os.path.dirname(folder)
        attach(above, "slice", *NVIDIA)
        attach(folder, "owner", *NVIDIA)
        refused(devices, folder, "e.slice", "a cgroup above")
        assert changed(devices.allow(above, "--json"))
        assert changed(devices.allow(folder, "--json"))
        equal(devices.denied(folder, *NVIDIA), [])


def test_the_owner_attaches_its_program_anew():
    """systemd does, at a daemon-reload: it cannot detach the copy, which then stands for nothing."""
    with Devices() as devices, cgroup("cgroup2", "f.service") as folder:
        attach(folder, "owner", *NVIDIA, OTHER)
        assert changed(devices.allow(folder, "--json"))
        attach(folder, "owner", *NVIDIA, OTHER)
        equal(devices.denied(folder, 195), [195])
        assert changed(devices.allow(folder, "--json"))
        equal((len(programs(folder)), devices.denied(folder, *NVIDIA, OTHER)), (1, [OTHER]))
        attach(folder, "owner", *NVIDIA, OTHER)
        assert changed(devices.cli("allow", folder, "--undo", "--json"))
        equal(([name for _, name, _ in programs(folder)], devices.denied(folder, 195, OTHER)), (["owner"], [195, OTHER]))


# ---- version 1 ----

def listed(folder):
    with open(f"{folder}/devices.list", encoding="ascii") as f:
        return f.read()


def write(folder, name, *rules):
    for rule in rules:
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(rule)


def test_version_1_allows_and_undoes():
    with Devices() as devices, cgroup("devices", "g.service") as folder:
        write(folder, "devices.deny", "a")
        write(folder, "devices.allow", "c 1:* rwm", "c 195:* r", "c 123:3 rw")
        before = listed(folder)
        equal(devices.denied(folder, *NVIDIA, OTHER), [*NVIDIA, OTHER])
        equal(set(states(checked(devices, folder, 1)).values()), {"denied"})
        assert changed(devices.allow(folder, "--json"))
        equal(devices.denied(folder, *NVIDIA, OTHER), [OTHER])
        equal(devices.opened(folder, 195)[-1], "EPERM", "making a node")
        equal(set(states(checked(devices, folder, 0)).values()), {"allowed"})
        assert not changed(devices.allow(folder, "--json"))
        assert changed(devices.cli("allow", folder, "--undo", "--json"))
        equal(listed(folder), before)
        equal(devices.denied(folder, *NVIDIA), [*NVIDIA])
        assert not changed(devices.cli("allow", folder, "--undo", "--json"))


def test_version_1_hides_exceptions():
    """A list that allows all by default shows nothing else, whatever is denied in it."""
    with Devices() as devices, cgroup("devices", "h.service") as folder:
        write(folder, "devices.deny", "c 195:* rwm")
        equal(listed(folder), "a *:* rwm\n")
        equal(devices.denied(folder, *NVIDIA), [195])
        document = checked(devices, folder, 1)
        equal(set(states(document).values()), {"unknown"})
        for device in document["devices"]:
            contains(device["why"], "does not show what is denied as an exception")
            equal(device["access"], "")
        out = devices.allow(folder, "--json")
        equal((out.returncode, out.stderr), (1, ""))
        document = json.loads(out.stdout)
        equal(document["changed"], False)
        contains(document["note"], "nothing is known to deny the devices, but whether they may be opened is not")


def test_version_1_says_which_right_is_missing():
    """The kernel says that nothing is noted to a process that may not see it; and it refuses even root without the capability."""
    with Devices() as devices, cgroup("devices", "i.service") as folder:
        write(folder, "devices.deny", "a")
        assert changed(devices.allow(folder, "--json"))
        os.chmod(devices.folder, 0o755)
        program = f"{devices.folder}/gpusonde"
        shutil.copy(GPUSONDE, program)
        for rights in (("--reuid", "65534", "--clear-groups"), ("--inh-caps=-sys_admin", "--bounding-set=-sys_admin")):
            for flags in (("--undo",), ("--devices", "all")):
                if "--undo" not in flags:
                    assert changed(devices.cli("allow", folder, "--undo", "--json"))
                out = subprocess.run(["setpriv", *rights, program, "cgroup", "allow", folder, *flags, "--cgroup-devices", devices.list], capture_output=True,
                                     text=True, env=environment(), cwd="/", check=False)
                equal((out.returncode, out.stdout), (1, ""), (rights, flags))
                contains(out.stderr, "run as root (CAP_SYS_ADMIN)")
            assert changed(devices.allow(folder, "--json"))


def test_version_1_cannot_give_more_than_the_cgroup_above_has():
    with Devices() as devices, cgroup("devices") as above:
        write(above, "devices.deny", "a")
        folder = f"{above}/below"
        os.mkdir(folder)
        try:
            out = devices.allow(folder)
            equal((out.returncode, out.stdout), (1, ""))
            contains(out.stderr, "may not have more devices than the one above it")
        finally:
            os.rmdir(folder)


# NVIDIA's hook mounts nodes of the machine; a device of the configuration is made by runc.
GIVEN = {"destination": "/dev/nvidia0", "type": "bind", "source": "/dev/nvidia0", "options": ["bind"]}
MADE = {"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0, "fileMode": 0o666}
CONFIG = {
    "ociVersion": "1.0.2", "hostname": "x", "root": {"path": "rootfs"},
    "process": {"cwd": "/", "args": ["/bin/sleep", str(SECONDS)], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0},
                "capabilities": {k: ["CAP_MKNOD"] for k in ("bounding", "effective", "permitted")}},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
    "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts")],
              "resources": {"devices": [{"allow": False, "access": "rwm"}]}},
}


@contextlib.contextmanager
def container(mounts=(), **linux):
    """A container of runc's, whose devices its cgroup denies: what runs a command in it, its PID, and its name."""
    if not shutil.which("runc") or not shutil.which("busybox"):
        raise Skip("no runc, or no busybox")
    hierarchy("devices" if not os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "cgroup2")
    name = f"gpusonde-test-{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="gpusonde-runc-") as bundle:
        os.makedirs(f"{bundle}/rootfs/bin")
        for applet in ("busybox", "sleep", "cat", "sh", "mknod"):
            shutil.copy(shutil.which("busybox"), f"{bundle}/rootfs/bin/{applet}")
        with open(f"{bundle}/config.json", "w", encoding="ascii") as f:
            json.dump(dict(CONFIG, mounts=[*CONFIG["mounts"], *mounts], linux=dict(CONFIG["linux"], cgroupsPath=f"/{name}", **linux)), f)
        runc = ["runc", "--root", f"{bundle}/state"]
        with open(f"{bundle}/log", "w+", encoding="utf-8") as log:
            started = subprocess.run([*runc, "run", "-d", "-b", bundle, name], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
            log.seek(0)
            if started.returncode:
                raise Skip(f"runc starts no container here: {log.read()}")
        try:
            state = json.loads(subprocess.run([*runc, "state", name], capture_output=True, check=True).stdout)
            yield lambda *argv: subprocess.run([*runc, "exec", name, *argv], capture_output=True, text=True, check=False), state["pid"], name
        finally:
            subprocess.run([*runc, "delete", "-f", name], check=False, capture_output=True)


def opens(inside, name):
    return inside("cat", f"/dev/{name}").stderr.strip().rsplit(": ", 1)[-1]


DENIED, NO_DRIVER = "Operation not permitted", "No such device or address"


def test_a_container_of_runc_gets_what_it_was_given():
    """And not what it makes nodes of itself, which it may: it has CAP_MKNOD, and runc allows containers to make any node."""
    with Devices() as devices, own_dev(devices), container([GIVEN]) as (inside, pid, name):
        equal(inside("mknod", "/dev/nvidia1", "c", "195", "1").returncode, 0)
        equal([opens(inside, n) for n in ("nvidia0", "nvidia1")], [DENIED, DENIED])
        document = checked(devices, str(pid), 1)
        contains(document["cgroup_v1"] or document["cgroup_v2"], name)
        nvidia0, = (d for d in document["devices"] if d["device"] == "/dev/nvidia0")
        equal((nvidia0["node_of_process"], nvidia0["matters"], nvidia0["open"]), (True, True, "denied"), nvidia0)
        out = devices.cli("allow", str(pid))
        equal(out.returncode, 0, out)
        contains(out.stderr, "1 nodes of its /dev are left out")
        equal([opens(inside, n) for n in ("nvidia0", "nvidia1")], [NO_DRIVER, DENIED])
        assert not changed(devices.cli("allow", str(pid), "--json"))
        made, = (d for d in checked(devices, str(pid), 0)["devices"] if d["device"] == "/dev/nvidia1")
        equal((made["node_of_process"], made["matters"], made["open"]), (True, False, "denied"), made)
        assert changed(devices.cli("allow", str(pid), "--undo", "--json"))
        equal(opens(inside, "nvidia0"), DENIED)
        assert changed(devices.cli("allow", str(pid), "--devices", "nvidia1", "--json"))
        equal([opens(inside, n) for n in ("nvidia0", "nvidia1")], [DENIED, NO_DRIVER])


def test_a_container_whose_nodes_prove_nothing_is_refused():
    with Devices() as devices, own_dev(devices), container(devices=[MADE]) as (inside, pid, _):
        out = devices.cli("allow", str(pid))
        equal((out.returncode, out.stdout), (1, ""))
        for words in ("may have made that themselves", "--devices nvidia0"):
            contains(out.stderr, words)
        equal(opens(inside, "nvidia0"), DENIED)
        assert changed(devices.cli("allow", str(pid), "--devices", "nvidia0", "--json"))
        equal(opens(inside, "nvidia0"), NO_DRIVER)
        equal(checked(devices, str(pid), 0)["pid"], pid)


# ---- paths ----

def test_paths_that_leave_the_root_are_refused():
    point = hierarchy("cgroup2")
    with Devices() as devices:
        leaves, follows = "leaves the root of the cgroup file system", "is not followed: name the cgroup by a path without it"
        for path, words in (*((p, leaves) for p in ("..", "../x", "/a/../../b", f"{point}/../devices", f"{point}/..")),
                            *((p, follows) for p in ("a/..", "/a/./..//b", f"{point}/a/../b"))):
            for action in ("check", "allow"):
                out = devices.cli(action, path)
                equal((out.returncode, out.stdout), (1, ""), path)
                contains(out.stderr, words)
        for path, words in (("/no/such", "no such cgroup"), ("no-such.service", "no such cgroup"), ("4194999", "no process has this PID"),
                            ("0", "no process has this PID"), (".", "relative to the current folder"), ("./a", "relative to the current folder"), ("/" + "x" * 5000, "cannot be opened: File name too long")):
            out = devices.cli("check", path)
            equal((out.returncode, out.stdout), (1, ""), path)
            contains(out.stderr, words)


def test_a_process_in_another_cgroup_namespace_is_found():
    """A path that begins with /../, as a container sees its neighbour's: by the host's file system, if that is mounted there, and not at all without."""
    point = hierarchy("cgroup2")
    with Devices() as devices, cgroup("cgroup2") as folder:
        for name in ("ours", "theirs"):
            os.mkdir(f"{folder}/{name}")
        try:
            attach(f"{folder}/theirs", "owner", *NVIDIA)
            with process_in(f"{folder}/theirs") as pid:
                script = (f"mount --make-rprivate / && mkdir {devices.folder}/host && mount --bind {point} {devices.folder}/host && "
                          f"umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec {GPUSONDE} cgroup check {pid} --json "
                          f"--cgroup-devices {devices.list} --cgroup-root ")
                argv = ["sh", "-c", f"echo 0 >{folder}/ours/cgroup.procs && exec unshare --mount --cgroup sh -c \"$0\"", ""]
                out = subprocess.run([*argv[:3], script + f"{devices.folder}/host"], capture_output=True, text=True, check=False)
                equal(out.stderr, "")
                equal(json.loads(out.stdout)["cgroup_v2"], folder.removeprefix(point) + "/theirs")
                equal(out.returncode, 1, "denied")
                out = subprocess.run([*argv[:3], script.replace("mkdir", "true") + "/sys/fs/cgroup"], capture_output=True, text=True, check=False)
                equal((out.returncode, out.stdout), (1, ""))
                contains(out.stderr, "another cgroup namespace")
        finally:
            for name in ("ours", "theirs"):
                wait_for(lambda n=name: not os.path.exists(f"{folder}/{n}") or os.rmdir(f"{folder}/{n}") is None, "the cgroup to be empty")


def test_hostile_names():
    name = "a\x1b[31m b\"\\\xff".encode("latin-1") + b".service"
    with Devices() as devices, cgroup("cgroup2") as above:
        folder = os.fsencode(above) + b"/" + name
        os.mkdir(folder)
        try:
            attach(os.fsdecode(folder), "owner", *NVIDIA)
            for action, flags in (("check", ()), ("check", ("--json",)), ("allow", ("--devices", "all", "--json")), ("allow", ("--undo", "--json"))):
                out = subprocess.run([GPUSONDE, "cgroup", action, folder, *flags, "--cgroup-devices", devices.list], capture_output=True, env=environment(),
                                     check=False)
                assert b"\x1b" not in out.stdout + out.stderr and b"\xff" not in out.stdout + out.stderr, out
                out.stdout.decode()
                if "--json" in flags:
                    json.loads(out.stdout)
        finally:
            os.rmdir(folder)


def test_without_rights_it_says_which_are_missing():
    with Devices() as devices, cgroup("cgroup2", "h.service") as folder:
        attach(folder, "owner", *NVIDIA)
        os.chmod(devices.folder, 0o755)
        program = f"{devices.folder}/gpusonde"
        shutil.copy(GPUSONDE, program)
        for action in ("check", "allow"):
            out = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", program, "cgroup", action, folder, "--cgroup-devices", devices.list], capture_output=True,
                                 text=True, env=environment(), cwd="/", check=False)
            equal((out.returncode, out.stdout), (1, ""))
            contains(out.stderr, "run as root (CAP_SYS_ADMIN)")


def test_the_command_line():
    with Devices() as devices:
        for args in ((), ("check",), ("chek", "1"), ("check", "1", "2"), ("check", "1", "--undo"), ("check", "1", "--devices", "all"),
                     ("allow", "1", "--undo", "--devices", "all")):
            equal(devices.cli(*args).returncode, 2, args)
        for action in ("check", "allow"): # not the root cgroup
            out = devices.cli(action, "")
            equal((out.returncode, out.stdout), (2, ""), action)
            contains(out.stderr, "the cgroup's name is empty")
            contains(out.stderr, "name a PID")
        with open(devices.list, "w", encoding="ascii") as f:
            f.write("Character devices:\n  1 mem\n")
        out = devices.cli("check", "self")
        equal((out.returncode, out.stdout), (1, ""))
        contains(out.stderr, "lists no device of NVIDIA: the driver is not loaded")
    table = command("cgroup", "--help").stdout
    contains(table, "--devices")
    contains(table, "check|allow PID|CGROUP")


def test_what_the_readme_tries_works_without_a_driver():
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        line, = (l for l in f if "gpusonde cgroup" in l)
    words = line.split("#")[0].split()
    equal(words[:3], ["sudo", "build/gpusonde", "cgroup"])
    hierarchy("devices" if mounted("devices") else "cgroup2") # or there is no cgroup here
    out = subprocess.run([GPUSONDE, *words[2:]], capture_output=True, text=True, cwd=SOURCE, env=environment(), check=False)
    equal(out.stderr, "")
    contains(out.stdout, "/dev/nvidiactl")


# ---- agent and doctor ----

def test_the_agent_allows_what_it_is_told_to():
    with Devices() as devices, own_dev(devices), cgroup("cgroup2", "i.service") as folder, process_in(folder):
        attach(folder, "owner", *NVIDIA, OTHER)
        with Agent("--cgroup-allow", "i.service, no-such.service", "--cgroup-devices", devices.list) as agent:
            wait_for(lambda: devices.denied(folder, *NVIDIA, OTHER) == [OTHER], "the agent to allow it")
            wait_for(lambda: values(agent.metrics(), "gpusonde_cgroup_allowed_total") == [1], "the agent to count it")
            equal(values(agent.metrics(), "gpusonde_cgroup_denied"), [0])
            contains(agent.log(), "cgroup.allow: i.service was denied NVIDIA's devices")
        with Agent("--cgroup-devices", devices.list) as agent:
            equal(values(agent.metrics(), "gpusonde_cgroup_allowed_total"), [0])
        out = command("agent", "--check-config", "--cgroup-interval", "29s")
        equal(out.returncode, 2)
        contains(out.stderr, "30s")


def test_the_agent_says_what_it_cannot_do_once():
    with Devices() as devices, own_dev(devices), cgroup("cgroup2", "j.service") as folder, process_in(folder):
        attach(folder, "first", *NVIDIA)
        attach(folder, "second", *NVIDIA)
        with Agent("--cgroup-allow", folder, "--cgroup-devices", devices.list) as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_cgroup_denied") == [1], "the agent to count it")
            equal(agent.log().count(f"cgroup.allow: {folder}: 2 BPF programs"), 1)


def opened_by(pid):
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError): # closed meanwhile
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def test_doctor_names_the_fault():
    holder = "import os, sys, time; os.open('/dev/nvidia-test', os.O_RDONLY); time.sleep(1000)"
    with Devices() as devices, cgroup("cgroup2", "k.scope") as folder:
        def doctor():
            out = command("doctor", "--json", "--socket", "none", "--cgroup-devices", devices.list, env=environment(GPUSONDE_NVML_LIBRARY=f"{BUILD}/sim/none"))
            check, = (c for c in json.loads(out.stdout)["checks"] if c["check"] == "device-cgroups")
            return check
        # A file of that name will do: it is opened before the cgroup denies it.
        argv = ["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs tmpfs /dev && touch /dev/nvidia-test && exec \"$0\" -c \"$1\"",
                sys.executable, holder]
        with process_in(folder, argv=argv) as pid:
            wait_for(lambda: "/dev/nvidia-test" in opened_by(pid), "the device to be open")
            before = doctor()
            attach(folder, "owner", *NVIDIA)
            check = doctor()
            equal((before["verdict"], check["verdict"]), ("ok", "warning"), (before, check))
            contains(check["text"], f"PID {pid} uses a GPU")
            contains(check["text"], "Failed to initialize NVML: Unknown Error")
            contains(check["remedy"], f"gpusonde cgroup allow {pid}")


if __name__ == "__main__":
    run()
