#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that containers were given, by the runtimes' files: allocations, and which GPU a program in a container means by device 0."""
import contextlib
import functools
import json
import os
import shutil
import subprocess
import tempfile
import time

from lib.e2e import BUILD, PATIENCE_S, SOURCE, Agent, Skip, equal, run, values, wait_for
from lib.traced import DRIVER, LATE, SCENARIO, begun, probed, trace_of, view_time

TASKS = "run/containerd/io.containerd.runtime.v2.task/k8s.io"
ROOTS = (BUILD, SOURCE, "/usr")
# Where libraries and programs are in a root that has /usr alone.
LINKS = ("bin", "lib", "lib64", "sbin")
IDS = {name: format(0xa0 + i, "02x") * 32 for i, name in enumerate(("nodes", "hook", "idle", "void", "least"))}

ENDED_LAST = contextlib.ExitStack()


def touch(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Container:
    """A container that runc runs from a bundle where containerd would have it, with a program of simulated CUDA calls, or an idle one."""

    def __init__(self, tmp, name, args, devices=(), env=(), **more):
        self.tmp, self.id, self.folder = tmp, IDS[name], f"{tmp}/{TASKS}/{IDS[name]}"
        self.log = f"{tmp}/truth-{name}"
        self.library = shutil.copy(DRIVER, f"{tmp}/libcuda.so.{name}")
        args = [word.replace("LIBRARY", self.library) for word in args]
        rootfs = f"{tmp}/rootfs"
        if not os.path.exists(rootfs):
            for path in (*ROOTS, tmp, "/proc", "/dev"):
                os.makedirs(rootfs + path, exist_ok=True)
            for link in LINKS:
                os.symlink(f"usr/{link}", f"{rootfs}/{link}")
        numbers = [{"type": "c", "major": 195, "minor": n} for n in devices]
        config = {
            "ociVersion": "1.0.2",
            "process": {"args": args, "cwd": "/", "user": {"uid": 0, "gid": 0},
                        "env": ["PATH=/usr/bin", f"GPUSONDE_SIM_SCENARIO={SCENARIO}", f"GPUSONDE_SIM_CUDA_LOG={self.log}", *env]},
            "root": {"path": rootfs, "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                       *({"destination": path, "type": "bind", "source": path, "options": ["rbind"]} for path in (*ROOTS, tmp))],
            "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}], "cgroupsPath": f"/gpusonde-e2e-{os.getpid()}/{self.id}",
                      "devices": [{"path": f"/dev/nvidia{n['minor']}", **n} for n in numbers],
                      "resources": {"devices": [{"allow": False, "access": "rwm"}, *({"allow": True, "access": "rwm", **n} for n in numbers)]}},
            **more,
        }
        touch(f"{self.folder}/config.json", json.dumps(config))
        self.runc = ["runc", "--root", f"{tmp}/runc"]
        self.pid_file = f"{self.folder}/init.pid"
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen([*self.runc, "run", "--bundle", self.folder, "--pid-file", self.pid_file, self.id],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self

    def ready(self):
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"the container said {line!r}: {self.process.stderr.read()}")
        self.pid = int(wait_for(lambda: os.path.exists(self.pid_file) and read(self.pid_file), "the file with the container's PID"))

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """Its process; its files stay."""
        subprocess.run([*self.runc, "kill", self.id, "KILL"], capture_output=True, check=False)
        self.process.wait(PATIENCE_S)

    def __exit__(self, *_):
        self.end()
        subprocess.run([*self.runc, "delete", "--force", self.id], capture_output=True, check=False)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


@contextlib.contextmanager
def node():
    """An agent that traces, on a node whose files are below agent.root."""
    if os.geteuid() != 0:
        raise Skip("only root can start containers")
    if not shutil.which("runc"):
        raise Skip("no runc on this machine")
    with tempfile.TemporaryDirectory(prefix="gpusonde-given-") as tmp:
        with Container(tmp, "least", ["/bin/sh", "-c", "echo ready; read x"]) as least:
            line = least.process.stdout.readline()
            least.go_on()
            if line != "ready\n":
                raise Skip(f"runc starts no containers here: {least.process.stderr.read().strip()}")
        shutil.rmtree(least.folder)
        with Agent("--workload-root", tmp, "--trace-enabled", "yes", scenario=SCENARIO) as agent:
            agent.root = tmp
            begun(agent)
            told(agent)
            yield agent


@functools.cache
def shared():
    """One for all tests."""
    return ENDED_LAST.enter_context(node())


def allocations(agent, container):
    return [a for a in agent.get("/api/v1/snapshot").json()["allocations"] if a["container_id"] == container.id]


def allocated(agent, container, *gpus):
    """Its allocations, when they are of these GPUs."""
    wanted = sorted(gpus)
    with contextlib.suppress(AssertionError): # the comparison below says more
        wait_for(lambda: sorted(a["gpu"] for a in allocations(agent, container)) == wanted, f"allocations of GPUs {wanted}", 30)
    found = allocations(agent, container)
    equal(sorted(a["gpu"] for a in found), wanted, "allocated GPUs")
    return found


PROGRAM = [LATE, "load LIBRARY; pause; api driver; init; alloc 4096; pause"]


def used(agent, container):
    """(uuid or "" for not known, why) of the device where its program has memory."""
    def found():
        for p in trace_of(agent)["processes"]:
            at = [d for d in p["devices"] if d["allocations_total"]]
            if p["pid"] == container.pid and at:
                equal(len(at), 1, "devices")
                return at[0]["uuid"], p["device_unknown"]
        return None
    return wait_for(found, "memory of the container's program")


def call(agent, container):
    """What its program calls, once all probes are there."""
    probed(agent, container.pid, container.library)
    container.go_on()
    container.ready()
    return used(agent, container)


def told(agent):
    """Until the tracing thread knows what is known of the node now."""
    seen = time.time()
    wait_for(lambda: view_time(agent) > seen + 2, "views of what is traced")


def uuid_of(agent, gpu):
    return next(g["uuid"] for g in agent.get("/api/v1/gpus").json()["gpus"] if g["gpu"] == gpu)


SPECIFICATION = """cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "2"
  containerEdits: {deviceNodes: [{path: /dev/nvidia2}]}
- name: UUID
  containerEdits: {deviceNodes: [{path: /dev/nvidia2}]}
"""


def test_device_0_of_a_container_is_the_gpu_that_it_was_given():
    """By its nodes, whatever its environment says; with a CDI annotation."""
    agent = shared()
    gpu = uuid_of(agent, 2)
    touch(f"{agent.root}/etc/cdi/nvidia.yaml", SPECIFICATION.replace("UUID", gpu))
    with Container(agent.root, "nodes", PROGRAM, devices=[2], env=["NVIDIA_VISIBLE_DEVICES=void"],
                   annotations={"cdi.k8s.io/plugin": "nvidia.com/gpu=2"}) as container:
        container.ready()
        equal(call(agent, container), (gpu, None))
        found, = allocated(agent, container, 2)
        equal((found["resource"], found["uuid"]), ("nvidia.com/gpu", gpu))


def hooks(agent):
    """NVIDIA's hook, which does nothing here."""
    hook = touch(f"{agent.root}/nvidia-container-runtime-hook", "#!/bin/sh\nexit 0\n")
    os.chmod(hook, 0o755)
    return {"prestart": [{"path": hook, "args": [hook, "prestart"]}]}


def test_a_program_does_not_choose_what_its_container_was_given():
    """By the runtime's files alone: there are no nodes, and the program has changed the variable."""
    agent = shared()
    with Container(agent.root, "hook", ["/usr/bin/env", "NVIDIA_VISIBLE_DEVICES=0", *PROGRAM], env=["NVIDIA_VISIBLE_DEVICES=5,3"],
                   hooks=hooks(agent)) as container:
        container.ready()
        allocated(agent, container, 3, 5)
        told(agent)
        equal(call(agent, container), (uuid_of(agent, 3), None)) # in the driver's order


def test_what_a_container_was_given_is_not_guessed():
    """Its devices come from elsewhere, says the variable, and nobody tells from where."""
    agent = shared()
    with Container(agent.root, "void", PROGRAM, env=["NVIDIA_VISIBLE_DEVICES=void"]) as container:
        container.ready()
        equal(call(agent, container), (None, "container"))
        equal(values(agent.metrics(), "gpusonde_process_cuda_device_unknown", pid=str(container.pid), reason="container"), [1])


def test_an_idle_container_has_its_gpu_as_long_as_it_runs():
    agent = shared()
    # Another one has asked for all, and nobody has given it any: no hook, no nodes.
    touch(f"{agent.root}/{TASKS}/{'c7' * 32}/config.json", json.dumps({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}))
    with Container(agent.root, "idle", ["/bin/sh", "-c", "echo ready; read x"], env=["NVIDIA_VISIBLE_DEVICES=4"], hooks=hooks(agent)) as container:
        container.ready()
        found, = allocated(agent, container, 4)
        equal((found["resource"], found["processes"]), ("NVIDIA_VISIBLE_DEVICES", 0))
        equal(values(agent.metrics(), "gpusonde_container_gpu_allocated", gpu="4", container_id=container.id), [1])
        container.end()
        assert os.path.exists(f"{container.folder}/config.json"), "its files are there"
        wait_for(lambda: not allocations(agent, container), "the end of its allocation", 30)
    # Nor have those of the other tests any, which have ended, or the one that asked.
    equal(agent.get("/api/v1/snapshot").json()["allocations"], [])


with ENDED_LAST:
    run()
