#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent in a container that is what docs/containers.md shows, to the letter, and in containers to which one thing of it is not given.

    containers.py BUILD SOURCE [WORD OF A NAME...]

Started by runc. Programs that are traced run outside, and in a container of their own that has nothing.
"""
import contextlib
import copy
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types

from lib import rows, traced
from lib.capabilities import (LOST, has_multi, kernel_log_misses, kernel_log_verdict, missing, missing_of_ours, perf_level,
                              records_miss, tracing_needs)
from lib.e2e import BUILD, PATIENCE_S, SOURCE, Agent, Skip, command, contains, equal, run, values, wait_for
from lib.capabilities_run import decided, needs_btf

DOCUMENT = f"{SOURCE}/docs/containers.md"
LIBRARY = "/usr/lib/gpusonde/sim/libnvidia-ml.so.1"
SCENARIO = "/usr/lib/gpusonde/sim/scenarios/node-8xh100.yaml"
USER = 65534
# Where what lies in the image; with each program come the libraries that it is linked to.
PROGRAMS = {"gpusonde": "/usr/bin/gpusonde", "gpusonde-nvml": "/usr/libexec/gpusonde/gpusonde-nvml",
            "gpusonde-reader": "/usr/libexec/gpusonde/gpusonde-reader", "gpusonde-web": "/usr/libexec/gpusonde/gpusonde-web",
            "gpusonde-owners": "/usr/libexec/gpusonde/gpusonde-owners", "gpusonde-kubelet": "/usr/libexec/gpusonde/gpusonde-kubelet",
            "gpusonde-dcgm": "/usr/libexec/gpusonde/gpusonde-dcgm", "gpusonde-push": "/usr/libexec/gpusonde/gpusonde-push", "gpusonde-hosts": "/usr/libexec/gpusonde/gpusonde-hosts", "gpusonde-store": "/usr/libexec/gpusonde/gpusonde-store",
            "sim/cuda/workload-late": "/usr/bin/workload-late", "sim/libnvidia-ml.so.1": LIBRARY, "sim/cuda/libcuda.so.1": "/usr/lib/libcuda.so.1"}


def fenced(language):
    with open(DOCUMENT, encoding="utf-8") as f:
        return re.search(rf"^```{language}\n(.*?)^```$", f.read(), re.M | re.S)[1]


def documented():
    return json.loads(fenced("json"))


def capabilities(config):
    """Those of the document, without CAP_."""
    return [name.removeprefix("CAP_") for name in config["process"]["capabilities"]["effective"]]


def give(config, names):
    config["process"]["capabilities"] = {kind: [f"CAP_{name}" for name in names] for kind in ("bounding", "permitted", "effective")}


def add_file(root, path, source):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    shutil.copy(source, root + path)


@functools.cache
def image():
    """A root folder with nothing but our programs and what they are linked to."""
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-container-")
    os.chmod(folder.name, 0o755)
    for name, path in PROGRAMS.items():
        add_file(folder.name, path, f"{BUILD}/{name}")
        linked = subprocess.run(["ldd", f"{BUILD}/{name}"], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            add_file(folder.name, library, library)
    shutil.copytree(f"{SOURCE}/sim/scenarios", os.path.dirname(folder.name + SCENARIO))
    return folder # which goes when we do


class Containers:
    """Bundles of one test, and runc's own folder; at the end none of its containers is left."""

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("only root can start containers")
        if not shutil.which("runc"):
            raise Skip("no runc on this machine")
        if not os.path.exists("/dev/kmsg"):
            raise Skip("no /dev/kmsg here that a container could be given")
        needs_btf()
        self.folder = tempfile.TemporaryDirectory(prefix="gpusonde-runc-")
        self.names = []
        os.chmod(self.folder.name, 0o711)
        # The least that a container can be: where that does not start, it is not for what the document says.
        least = {"ociVersion": "1.0.2", "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}}, "root": {"readonly": True},
                 "mounts": [m for m in documented()["mounts"] if m["destination"] == "/proc"], "linux": {"namespaces": [{"type": "mount"}]}}
        tried = subprocess.run(self.command(least, {}) + ["/usr/bin/gpusonde", "--version"], capture_output=True, text=True, timeout=PATIENCE_S,
                               check=False)
        if tried.returncode:
            self.__exit__()
            raise Skip(f"runc starts no containers here: {tried.stderr.strip().splitlines()[-1]}")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run([*self.runc(), "delete", "--force", name], capture_output=True, check=False)
        self.folder.cleanup()

    def runc(self):
        return ["runc", "--root", f"{self.folder.name}/runc"]

    def command(self, config, env, shared=None):
        """The beginning of a command line: what follows runs in a container of this @config, and sees @shared at its own place."""
        name = f"gpusonde-test-{os.getpid()}-{len(self.names)}"
        bundle = f"{self.folder.name}/{name}"
        config = copy.deepcopy(config)
        config["root"]["path"] = image().name
        config["process"]["env"] = ["PATH=/usr/bin"] + [f"{k}={v}" for k, v in env.items() if k.startswith("GPUSONDE_")]
        if shared:
            config["mounts"].append({"destination": shared, "type": "bind", "source": shared, "options": ["bind", "rw"]})
        config["linux"]["cgroupsPath"] = f"/{name}"
        os.mkdir(bundle)
        with open(f"{bundle}/config.json", "w", encoding="ascii") as f:
            json.dump(config, f)
        self.names.append(name)
        return [sys.executable, os.path.abspath(__file__), BUILD, SOURCE, "--in", bundle, *self.runc(), "run", "--bundle", bundle,
                "--pid-file", f"{bundle}/pid", name]


class Contained(Agent):
    """Its network is its own, so that it is asked by its socket; its parent is runc."""

    @property
    def pid(self):
        with open(f"{self.containers.folder.name}/{self.name}/pid", encoding="ascii") as f:
            return int(f.read())

    def get(self, path, method="GET", unix=True, timeout=PATIENCE_S, **headers):
        return super().get(path, method, unix=True, timeout=timeout, **headers)


@contextlib.contextmanager
def agent_in(config, *flags):
    """An agent in a container of this @config."""
    with Containers() as containers, tempfile.TemporaryDirectory(prefix="gpusonde-shared-") as tmp:
        os.chmod(tmp, 0o777)
        env = {"GPUSONDE_NVML_LIBRARY": LIBRARY, "GPUSONDE_SIM_SCENARIO": SCENARIO, "GPUSONDE_SIM_CONTROL": f"{tmp}/control.yaml"}
        with Contained("--trace-enabled", "auto", *flags, scenario=None, tmp=tmp,
                       program=(*containers.command(config, env, tmp), "/usr/bin/gpusonde")) as agent:
            agent.containers, agent.name = containers, containers.names[-1]
            wait_for(lambda: len(values(agent.metrics(), "gpusonde_gpu_present")) == 8, "metrics of all GPUs")
            yield agent


def doctor(agent, config):
    env = {"GPUSONDE_NVML_LIBRARY": LIBRARY, "GPUSONDE_SIM_SCENARIO": SCENARIO}
    done = subprocess.run([*agent.containers.command(config, env), "/usr/bin/gpusonde", "doctor", "--json"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    return {c["check"]: c for c in json.loads(done.stdout)["checks"]}


def nothing_at_all():
    """A container like those that are traced: its own processes, and no capability."""
    config = documented()
    give(config, ())
    config["linux"]["namespaces"].append({"type": "pid"})
    return config


class Elsewhere(traced.Workload):
    """In a container of its own."""

    def __init__(self, agent, script): # pylint: disable=super-init-not-called
        number = len(agent.containers.names)
        self.log = f"{agent.tmp}/truth-{number}"
        self.library = shutil.copy(traced.DRIVER, f"{agent.tmp}/libcuda.so.{number}")
        command = agent.containers.command(nothing_at_all(), {"GPUSONDE_SIM_SCENARIO": SCENARIO, "GPUSONDE_SIM_CUDA_LOG": self.log}, agent.tmp)
        self.name = agent.containers.names[-1]
        started = subprocess.Popen([*command, "/usr/bin/workload-late", f"load {self.library}; pause; {script}"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.process = started
        pid_file = f"{agent.containers.folder.name}/{self.name}/pid"
        pid = wait_for(lambda: os.path.exists(pid_file) and open(pid_file, encoding="ascii").read(), "the container's process")
        self.process = types.SimpleNamespace(pid=int(pid), poll=started.poll, kill=started.kill, wait=started.wait, stdin=started.stdin,
                                             stdout=started.stdout)


def counted(agent, kind, incomplete=()):
    """A program is counted exactly; how many calls. Where it is found by scanning, nobody knows what it called before: that it is @incomplete."""
    with kind(agent, traced.BUSY + "; pause") as workload:
        traced.probed_when_loaded(agent, workload)
        workload.go_on()
        workload.ready()
        wanted = traced.all_counted(agent, workload)
        process = traced.process_of(agent, workload.process.pid)
        equal(process["incomplete"], list(incomplete), "incomplete")
        workload.end()
    return sum(count for count, _, _ in wanted.values())


def needs_multi():
    if not has_multi():
        raise Skip("this kernel has no uprobe_multi, which docs/containers.md is for")


def test_as_the_document_says():
    """Nothing is missing but what this machine's settings ask for; programs outside and in another container are counted to the call; it ends when told."""
    needs_multi()
    config = documented()
    with agent_in(config) as agent:
        found = decided(agent)
        if "PID namespace" in (found["why"] or ""):
            raise Skip(f"the tests themselves are in a container: {found['why']}")
        assert found["enabled"], found["why"]
        late = ["late"] if records_miss() else []
        outside, elsewhere = counted(agent, traced.Workload, late), counted(agent, Elsewhere, late)
        equal(missing(agent.log()), records_miss(), agent.log())
        equal(values(agent.metrics(), "gpusonde_source_up", source="trace"), [1])
        checks = {name: (c["verdict"], c["text"]) for name, c in doctor(agent, config).items()}
        for name in ("tracing", "trace-capabilities", "kernel-log"):
            equal(checks[name][0], kernel_log_verdict() if name == "kernel-log" else "ok", f"doctor's {name}: {checks[name]}")
        equal(agent.stop()[1], 0, "the container's status")
    rows.say("capabilities", "container: as docs/containers.md", devices="all",
             tracing=f"exact: {outside} calls of a program outside, {elsewhere} of one in another container",
             said=f"perf_event_paranoid {perf_level()}: scanning /proc (CAP_SYS_ADMIN)" if late else "nothing")


def test_a_user_without_any():
    """Metrics all the same, and what there is not is said."""
    config = documented()
    give(config, ())
    config["process"]["user"] = {"uid": USER, "gid": USER}
    with agent_in(config) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(found["why"])), (False, tracing_needs()))
        equal(missing(agent.log()), sorted(tracing_needs() + kernel_log_misses()), agent.log())
    said = [", ".join(f"CAP_{name}" for name in tracing_needs())] + [f"CAP_{name}" for name in kernel_log_misses()]
    rows.say("capabilities", "container: user 65534, no capability", devices="all", tracing="no", said="; ".join(said))


def without(name):
    config = documented()
    give(config, [n for n in capabilities(config) if n != name])
    return config


def test_without_bpf():
    check_without("BPF")


def check_without(name):
    """One sentence names it, and no other; device metrics go on, and so does of tracing what can."""
    needs_multi()
    late = ["late"] if records_miss() else []
    others = [] if name in tracing_needs() else records_miss()
    with agent_in(without(name)) as agent:
        found = decided(agent)
        tracing = "no"
        if name in ("BPF", "PERFMON"):
            equal((found["enabled"], missing(found["why"])), (False, [name]))
        elif name == "SYS_PTRACE":
            equal(found["enabled"], True)
            with traced.Workload(agent, traced.BUSY) as workload:
                workload.ready()
                tracing = f"exact: {counted(agent, Elsewhere, late)} calls of a program in another container; none of one that has more capabilities than itself"
                equal(traced.process_of(agent, workload.process.pid), None, "what has more capabilities")
                workload.end()
        else:
            tracing = f"exact: {counted(agent, traced.Workload, late)} calls of a program outside"
        if name == "CHECKPOINT_RESTORE": # wanted by nobody until a library is replaced: test/e2e/capabilities.py
            equal(missing_of_ours(agent.log()), others, agent.log())
            said = "nothing, until a program maps a library that was deleted or replaced"
        else:
            equal(missing(agent.log()), sorted([name] + others), agent.log())
            contains(agent.log(), LOST[name])
            contains(agent.log(), f"docker run --cap-add {name}")
            said = f"CAP_{name}: {LOST[name]}"
    rows.say("capabilities", f"container: without CAP_{name}", devices="all", tracing=tracing, said=said)


def test_without_each_other():
    for name in capabilities(documented()):
        if name != "BPF" and (name != "SYSLOG" or kernel_log_misses()):
            check_without(name)


def test_a_pid_namespace_of_its_own():
    """Who is outside cannot be traced, and that is said: in the log, in the page, and by doctor."""
    needs_multi()
    config = documented()
    config["linux"]["namespaces"].append({"type": "pid"})
    with agent_in(config) as agent:
        decided(agent)
        found = wait_for(lambda: (t := traced.trace_of(agent))["why"] and t, "the reason")
        with traced.Workload(agent, traced.BUSY + "; pause") as workload:
            workload.ready()
            time.sleep(2.5) # scans come each second
            workload.go_on()
            workload.ready()
            time.sleep(0.5)
            equal(traced.trace_of(agent)["processes"], [], "what is traced of programs outside")
            workload.end()
        for text in (found["why"], agent.log(), doctor(agent, config)["processes"]["text"]):
            equal(text.count("PID namespace of its own"), 1, text)
        equal(missing(agent.log()), records_miss(), agent.log())
    rows.say("capabilities", "container: in a PID namespace of its own", devices="all, without names of processes",
             tracing="programs of its own container only", said="the PID namespace")


def refusing(call):
    """A profile such as those that engines come with, for who has not the capability."""
    config = documented()
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW",
                                  "syscalls": [{"names": [call], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}
    return config


def test_seccomp_profiles():
    """No capability is blamed for what a profile refuses."""
    needs_multi()
    with agent_in(refusing("bpf")) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(agent.log())), (False, []), agent.log())
        contains(found["why"], "the container's seccomp profile")
    rows.say("capabilities", "container: a seccomp profile that refuses bpf", devices="all", tracing="no", said="the profile, no capability")
    with agent_in(refusing("perf_event_open")) as agent:
        equal(decided(agent)["enabled"], True)
        calls = counted(agent, traced.Workload, incomplete=["late"])
        why = traced.trace_of(agent)["why"]
        # From 3 on Debian's kernels refuse it to who has not CAP_SYS_ADMIN, profile or not.
        equal((why.count("seccomp filter"), missing(agent.log())), (0, ["SYS_ADMIN"]) if perf_level() >= 3 else (1, []), why)
    rows.say("capabilities", "container: a seccomp profile that refuses perf_event_open", devices="all",
             tracing=f"exact: {calls} calls, found by scanning /proc", said="the profile, no capability")


def without_mount(path):
    config = documented()
    config["mounts"] = [m for m in config["mounts"] if m["destination"] != path]
    return config


def without_devices():
    config = documented()
    config["linux"]["resources"]["devices"] = [d for d in config["linux"]["resources"]["devices"] if not d["allow"]]
    return config


def test_what_is_not_mounted():
    """What is missing of /sys and /dev is said by its name, and no capability is blamed."""
    needs_multi()
    for what, config, words, tracing in (("/sys", without_mount("/sys"), "/sys is not mounted here", False),
                                         ("/dev/kmsg", without_mount("/dev/kmsg"), "--device /dev/kmsg:/dev/kmsg:r", True),
                                         ("leave to open /dev/kmsg", without_devices(), "--device /dev/kmsg:/dev/kmsg:r", True)):
        with agent_in(config) as agent:
            equal((decided(agent)["enabled"], missing(agent.log())), (tracing, records_miss() if tracing else []), agent.log())
            equal(agent.log().count(words), 1, agent.log())
        rows.say("capabilities", f"container: without {what}", devices="all", tracing="begins all the same" if tracing else "no", said=words)


def test_the_examples_are_one():
    """Docker's line and Kubernetes' list give what the tested one has, and the systemd unit no other but what its processes change users with."""
    wanted = set(capabilities(documented()))
    equal({name.removeprefix("CAP_") for kind in documented()["process"]["capabilities"].values() for name in kind}, wanted, "kinds of capabilities")
    for args in (documented()["process"]["args"][2:], re.search(r"IMAGE agent (.*)", fenced("sh"))[1].split()):
        checked = command("agent", "--check-config", *args)
        equal(checked.returncode, 0, checked.stderr)
    equal(set(re.findall(r"--cap-add (\w+)", fenced("sh"))), wanted, "docker run")
    with open(f"{SOURCE}/deploy/kubernetes/base/gpusonde.yaml", encoding="utf-8") as f:
        equal(set(re.search(r"add: \[(.*)\]", f.read())[1].split(", ")), wanted - {"SYSLOG"}, "Kubernetes")
    with open(f"{SOURCE}/deploy/systemd/gpusonde.service", encoding="utf-8") as f:
        equal(set(re.search(r"^AmbientCapabilities=(.*)$", f.read(), re.M)[1].replace("CAP_", "").split()), wanted | {"SETUID", "SETGID"}, "the unit")


if __name__ == "__main__":
    if sys.argv[3:4] == ["--in"]:
        # What follows runc's own arguments is the program; its configuration wants to know it beforehand.
        bundle, arguments = sys.argv[4], sys.argv[5:]
        end = arguments.index("--pid-file") + 3
        with open(f"{bundle}/config.json", encoding="ascii") as written:
            settings = json.load(written)
        settings["process"]["args"] = arguments[end:]
        with open(f"{bundle}/config.json", "w", encoding="ascii") as written:
            json.dump(settings, written)
        os.execvp(arguments[0], arguments[:end])
    run()
