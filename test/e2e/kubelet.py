#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kubelet says of the node's pods: gpusonde-kubelet beside a kubelet of ours, and the agent with it.

With $GPUSONDE_KUBELET_SOCKET, a real kubelet's pod-resources socket, that one is asked, too.
"""
import contextlib
import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from e2e.fake_kube import Api, Server
from lib import fetch
from lib.e2e import BUILD, SIMULATED, SOURCE, Agent, Skip, children, comm, command, contains, environment, equal, run, values, wait_for

DUMP = f"{BUILD}/test/tools/kubelet_dump"
HELPER = f"{BUILD}/gpusonde-kubelet"
FOLDER = "var/lib/kubelet"
SOCKET = f"/{FOLDER}/pod-resources/kubelet.sock"
OK, FAILED, BUSY = range(3)
UNIMPLEMENTED = 12
GPU = "GPU-11111111-2222-3333-4444-55555555555"
IDS = ["a1" * 32, "b2" * 32, "c3" * 32]
UID = "0a0a0a0a-1111-2222-3333-444444444444"
BOTH = ["v1.PodResourcesLister", "v1alpha1.PodResourcesLister"]
POD = {"name": "train-0", "namespace": "ml", "uid": UID, "owner": ["StatefulSet", "train"], "containers": [
    {"name": "setup", "kind": "init", "id": IDS[2]},
    {"name": "main", "id": IDS[0], "devices": {"nvidia.com/gpu": [GPU + "0", GPU + "1"], "cpu.example.com/core": ["7"]}},
    {"name": "side", "id": IDS[1]}]}


class Kubelet:
    """The fake one, in a process of its own with grpcio. A node has its sockets where kubelet has them, as links."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gpusonde-kubelet-")
        self.control = f"{self.folder.name}/control.json"
        self.process = self.now = None
        self.counted = {}

    def say(self, **now):
        self.now = {**(self.now or {}), **now}
        with open(self.control + ".new", "w", encoding="utf-8") as f:
            json.dump(self.now, f)
        os.rename(self.control + ".new", self.control)

    def start(self):
        try:
            site = fetch.get("grpcio", f"{BUILD}/real")["site"]
        except fetch.Unavailable as why:
            raise Skip(f"no grpcio for the kubelet that is asked: {why}") from None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.control}.ready")
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([sys.executable, f"{SOURCE}/test/e2e/fake_kubelet.py", self.folder.name, self.control],
                                        env=dict(os.environ, PYTHONPATH=site, GRPC_VERBOSITY="NONE"))
        wait_for(lambda: os.path.exists(f"{self.control}.ready"), "the fake kubelet's sockets")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
        self.process = None

    def link(self, name, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.link(f"{self.folder.name}/{name}.sock", path)

    def calls(self):
        """Since the test began."""
        try:
            with open(f"{self.control}.calls", encoding="ascii") as f:
                return {k: v - self.counted.get(k, 0) for k, v in json.load(f).items() if v > self.counted.get(k, 0)}
        except FileNotFoundError:
            return {}


THE_KUBELET = Kubelet()


@contextlib.contextmanager
def kubelet(pods_api=None, **now):
    """The one process; its node, fake.root, is new, and so is what it says."""
    fake = THE_KUBELET
    fake.now = None
    fake.say(**{"services": BOTH, "pods": [copy.deepcopy(POD)], **now})
    if not fake.process:
        fake.start()
    fake.counted = {}
    fake.counted = fake.calls()
    with tempfile.TemporaryDirectory(prefix="gpusonde-kubelet-") as fake.root:
        fake.link("pod-resources", f"{fake.root}{SOCKET}")
        if pods_api:
            fake.link("pods-api", f"{fake.root}/{FOLDER}/{pods_api}")
        yield fake


def ask(root, *more, path=SOCKET):
    """(owners, allocations, ends) of a fresh process."""
    done = subprocess.run([DUMP, HELPER, root, path, *more], capture_output=True, text=True, timeout=60, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    tables = [[{k: v for k, v in r.items() if k != "table"} for r in rows if r["table"] == table] for table in ("owners", "allocations", "end")]
    assert tables[2], f"no answer: {done.returncode} {done.stderr}"
    return tables


def devices(allocations):
    return sorted(((r["container"], r["resource"], r["uuid"] or (r["by"], r["index"], r["gi"]), r["slots"]) for r in allocations), key=str)


def test_what_a_pod_was_given():
    with kubelet() as fake:
        owners, rows, (end,) = ask(fake.root)
        equal(devices(rows), [("main", "nvidia.com/gpu", GPU + "0", 0), ("main", "nvidia.com/gpu", GPU + "1", 0)])
        equal({(r["namespace"], r["pod"], r["pod_uid"]) for r in rows}, {("ml", "train-0", "")})
        equal((owners, end["outcome"], end["error"], end["note"], end["pods_api"], end["allocatable"]), ([], OK, "", "", False, 2))
        # A table that has not changed is not sent again.
        _, rows, ends = ask(fake.root, "", "3")
        equal((len(rows), [e["allocations"] for e in ends]), (2, [True] * 3))


def test_an_old_kubelet():
    with kubelet(services=["v1alpha1.PodResourcesLister"]) as fake:
        _, rows, ends = ask(fake.root, "", "2")
        equal((len(rows), [e["outcome"] for e in ends], ends[1]["allocatable"]), (2, [OK, OK], None))
        equal(fake.calls(), {"List": 2})


def test_names_of_resources():
    ids = {"nvidia.com/gpu.shared": [GPU + "0::0", GPU + "0::3", GPU + "1::1"], "nvidia.com/mig-1g.10gb": ["MIG-22222222-2222-3333-4444-555555555555"],
           "nvidia.com/a100": [GPU + "2"], "example.com/nic": [GPU + "3"], "nvidia.com/gpu": ["nvidia3/vgpu1", "nvidia4/gi7", "what?"]}
    with kubelet(pods=[dict(POD, containers=[{"name": "c", "devices": ids}])]) as fake:
        _, rows, (end,) = ask(fake.root)
        wanted = [("c", "nvidia.com/gpu", ("minor", 3, None), 1), ("c", "nvidia.com/gpu", ("minor", 4, 7), 0),
                  ("c", "nvidia.com/gpu.shared", GPU + "0", 2), ("c", "nvidia.com/gpu.shared", GPU + "1", 1),
                  ("c", "nvidia.com/mig-1g.10gb", "MIG-22222222-2222-3333-4444-555555555555", 0)]
        equal(devices(rows), sorted(wanted, key=str))
        equal((end["outcome"], end["unmatched"]), (OK, 1))
        contains(end["note"], "what? of nvidia.com/gpu")
        _, rows, _ = ask(fake.root, "other.com/x, nvidia.com/a*")
        assert ("c", "nvidia.com/a100", GPU + "2", 0) in devices(rows), rows


def test_dra():
    spec = {"cdiVersion": "0.5.0", "kind": "k8s.gpu.nvidia.com/claim", "devices": [
        {"name": "claim-gpu-3", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia3"}, {"path": "/dev/nvidiactl"}]}}]}
    claims = [{"driver": "gpu.nvidia.com", "device": "gpu-3", "cdi": ["k8s.gpu.nvidia.com/claim=claim-gpu-3"]},
              {"driver": "gpu.nvidia.com", "device": "whatever", "cdi": [f"nvidia.com/gpu={GPU}0"], "share": "s1"},
              {"driver": "gpu.nvidia.com", "device": "gpu-5"},
              {"driver": "gpu.nvidia.com", "device": "gpu-9-mig-what", "pool": "node-a"},
              {"driver": "compute-domain.nvidia.com", "device": "channel-0"}]
    with kubelet(pods=[dict(POD, containers=[{"name": "c", "claims": claims}])]) as fake:
        os.makedirs(f"{fake.root}/var/run/cdi")
        with open(f"{fake.root}/var/run/cdi/claim.json", "w", encoding="utf-8") as f:
            json.dump(spec, f)
        _, rows, (end,) = ask(fake.root)
        wanted = [("c", "gpu.nvidia.com", GPU + "0", 1), ("c", "gpu.nvidia.com", ("minor", 3, None), 0), ("c", "gpu.nvidia.com", ("minor", 5, None), 0)]
        # What the API may know is told apart.
        equal(devices([r for r in rows if r["by"] != "claimed"]), sorted(wanted, key=str))
        equal((end["unmatched"], end["claimed"], len([r for r in rows if r["by"] == "claimed"])), (1, 1, 1))
        contains(end["note"], "node-a/gpu-9-mig-what of gpu.nvidia.com")


def test_the_pods_api():
    hashed = "f" * 32
    pods = [POD, {"name": "etcd-node", "namespace": "kube-system", "uid": "1" * 36, "annotations": {"kubernetes.io/config.hash": hashed, "kubernetes.io/config.mirror": hashed}, "containers": []}]
    for place in ("pods-api/pods-api.sock", "pods/kubelet.sock"):
        with kubelet(pods_api=place, services=BOTH + ["v1alpha1.Pods"], pods=pods) as fake:
            owners, rows, (end,) = ask(fake.root)
            equal((end["pods_api"], end["owners"], end["dropped_owners"], {r["pod_uid"] for r in rows}), (True, True, 0, {UID}))
            equal(sorted((o["id"], o["pod"], o["container"], o["owner_kind"], o["owner_name"]) for o in owners),
                  sorted([(UID, "train-0", "", "StatefulSet", "train"), (IDS[0], "train-0", "main", "StatefulSet", "train"),
                          (IDS[1], "train-0", "side", "StatefulSet", "train"), (IDS[2], "train-0", "setup", "StatefulSet", "train"),
                          ("1" * 36, "etcd-node", "", "", ""), (hashed, "etcd-node", "", "", "")]))


def test_a_pod_that_has_ended_has_no_device():
    for phase, n in (("Succeeded", 0), ("Failed", 0), ("Pending", 2)):
        with kubelet(pods_api="pods-api/pods-api.sock", services=BOTH + ["v1alpha1.Pods"], pods=[dict(POD, phase=phase)]) as fake:
            equal(len(ask(fake.root)[1]), n, phase)


def test_a_pod_without_cgroup_has_ended():
    other = "0b0b0b0b-1111-2222-3333-444444444444"
    with kubelet() as fake:
        os.makedirs(f"{fake.root}/var/log/pods/ml_train-0_{UID}")
        os.makedirs(f"{fake.root}/sys/fs/cgroup/kubepods/burstable/pod{other}")
        equal(ask(fake.root)[1], [])
        # One of that name lives: a StatefulSet's is made again under its name.
        os.makedirs(f"{fake.root}/var/log/pods/ml_train-0_{other}")
        equal({r["pod_uid"] for r in ask(fake.root)[1]}, {other})
        # Where it is not known it counts.
        os.rename(f"{fake.root}/var/log/pods", f"{fake.root}/var/log/none")
        equal({r["pod_uid"] for r in ask(fake.root)[1]}, {""})


def test_systemds_names_of_cgroups():
    with kubelet() as fake:
        os.makedirs(f"{fake.root}/var/log/pods/ml_train-0_{UID}")
        slices = f"{fake.root}/sys/fs/cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice"
        os.makedirs(slices)
        equal(ask(fake.root)[1], [])
        os.makedirs(f"{slices}/kubelet-kubepods-besteffort-pod{UID.replace('-', '_')}.slice")
        equal({r["pod_uid"] for r in ask(fake.root)[1]}, {UID})


def test_a_long_list():
    with kubelet(pad=16 << 20) as fake:
        _, rows, (end,) = ask(fake.root)
        equal((len(rows), end["outcome"], end["error"]), (2, OK, ""))
        fake.say(pad=80 << 20)
        _, rows, (end,) = ask(fake.root)
        equal((rows, end["outcome"], end["replace"]), ([], FAILED, True))
        contains(end["error"], "sends more than 64 MiB")


def test_a_pod_that_is_too_long_is_counted():
    long = "0a" + "80808002" + "00" * (4 << 20) + "0a00" + "0a02ff07"
    with kubelet(raw={"List": long}) as fake:
        _, rows, (end,) = ask(fake.root)
        equal((rows, end["outcome"], end["allocations"], end["dropped_allocations"]), ([], OK, True, 3))


def test_a_kubelet_that_has_just_started_knows_no_pods_yet():
    with kubelet(pods=[]) as fake:
        _, _, ends = ask(fake.root, "", "2")
        equal([(e["outcome"], e["allocations"]) for e in ends], [(OK, False), (OK, True)])


def test_kubelet_refuses():
    with kubelet(fail={"List": [8, "too many%20questions"]}) as fake:
        _, rows, (end,) = ask(fake.root)
        equal((rows, end["outcome"], end["allocations"], end["replace"]), ([], BUSY, False, False))
        fake.say(fail={"List": [13, "no\x01such\u00fcthing"]})
        _, _, (end,) = ask(fake.root)
        equal(end["outcome"], FAILED)
        contains(end["error"], "code 13: no such\u00fcthing")
    with kubelet(services=[]) as fake:
        _, _, (end,) = ask(fake.root)
        contains(end["error"], f"code {UNIMPLEMENTED}")


def test_a_reply_that_is_none():
    for raw in ("0b", "0aff", "07", "0a" + "ff" * 11):
        with kubelet(raw={"List": raw}) as fake:
            _, rows, (end,) = ask(fake.root)
            equal((rows, end["outcome"], end["allocations"], end["replace"]), ([], FAILED, False, True), raw)


def test_a_kubelet_that_stalls():
    with kubelet(stall=["List"]) as fake:
        _, _, (end,) = ask(fake.root)
        equal((end["outcome"], end["replace"]), (FAILED, True))
        contains(end["error"], "it does not answer")


@contextlib.contextmanager
def garbage(*pieces):
    """A server that sends these bytes to each client that connects, and closes."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with contextlib.suppress(OSError):
                    for piece in pieces:
                        connection.sendall(piece)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                connection.close()
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(f"{root}/{FOLDER}/pod-resources")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{root}{SOCKET}")
            server.listen()
            threading.Thread(target=serve, daemon=True).start()
            yield root
            server.shutdown(socket.SHUT_RDWR)


def test_what_is_no_kubelet():
    settings = b"\0\0\0\4\0\0\0\0\0"
    for pieces, words in (((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "no gRPC"), ((b"\xff" * 65536,), "no gRPC"), ((), "closed the connection"),
                          ((settings,), "closed the connection"), ((settings, b"\0\0\0\1\5\0\0\0\1"), ""), ((settings * 70000,), "")):
        with garbage(*pieces) as root:
            _, _, (end,) = ask(root)
            equal((end["outcome"], end["allocations"], end["replace"]), (FAILED, False, True))
            contains(end["error"], words)


def test_a_socket_that_is_not_there():
    with tempfile.TemporaryDirectory() as root:
        _, _, (end,) = ask(root)
        equal((end["outcome"], end["replace"]), (FAILED, True))
        contains(end["error"], f"{SOCKET}: No such file or directory")


def helper(agent):
    return next((pid for pid in children(agent.process.pid) if comm(pid).startswith("gpusonde-kubel")), None)


def up(agent):
    return values(agent.metrics(), "gpusonde_source_up", source="kubelet")


def unhealthy(agent, by):
    """GPU -> what is said of it."""
    return {gpu: values(agent.metrics(), "gpusonde_gpu_unhealthy", gpu=str(gpu), by=by) for gpu in range(4)}


def test_health_of_devices():
    """What kubelet lists, what it listed once, and what the status of pods says, by kubelet's Pods API or by the API server: told apart."""
    api = Api()
    api.objects = {}
    server = Server(api)
    try:
        with kubelet(services=[*BOTH, "v1alpha1.Pods"], pods_api="pods-api/pods-api.sock") as fake, \
                Agent("--workload-root", fake.root, "--workload-names", "no", "--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", "node-1") as agent:
            gpus = [g["uuid"] for g in agent.get("/api/v1/gpus").json()["gpus"]]
            # GPU 2 was given, and is not among those that can be; GPU 3 is none of kubelet's.
            pod = {**POD, "containers": [{"name": "main", "id": IDS[0], "devices": {"nvidia.com/gpu": [gpus[0], gpus[2]]},
                                          "health": {"nvidia.com/gpu": {gpus[0]: "Healthy", gpus[2]: "Unhealthy", gpus[1]: "Unknown"}, "example.com/nic": {gpus[3]: "Unhealthy"}}}]}
            fake.say(allocatable=gpus[:2], pods=[pod])
            os.kill(wait_for(lambda: helper(agent), "the process that asks"), signal.SIGKILL)
            wait_for(lambda: unhealthy(agent, "allocatable") == {0: [0], 1: [0], 2: [1], 3: []}, "what kubelet can give")
            wait_for(lambda: unhealthy(agent, "pod_status") == {0: [0], 1: [], 2: [1], 3: []}, "what the pod's status says")
            fake.say(allocatable=gpus[:1], pods=[{**pod, "phase": "Failed"}])
            os.kill(wait_for(lambda: helper(agent), "the process that asks"), signal.SIGKILL)
            wait_for(lambda: unhealthy(agent, "allocatable")[1] == [1], "a GPU that kubelet does not list any more")
            wait_for(lambda: unhealthy(agent, "pod_status")[2] == [], "a pod that has ended to say nothing")
            api.put({"metadata": {"uid": UID, "name": "train-1", "namespace": "ml"}, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "containerID": f"containerd://{IDS[1]}", "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [
                    {"resourceID": gpus[3], "health": "Unhealthy"}]}]}]}})
            wait_for(lambda: unhealthy(agent, "pod_status")[3] == [1], "the status that the API server has")
            page = {g["gpu"]: (g["unhealthy_by_allocatable"], g["unhealthy_by_pod_status"]) for g in agent.get("/api/v1/gpus").json()["gpus"]}
            equal({gpu: page[gpu] for gpu in (0, 1, 3)}, {0: (False, None), 1: (True, None), 3: (None, True)})
            server.stop()
            wait_for(lambda: unhealthy(agent, "pod_status")[3] == [], "what nobody says to be gone")
    finally:
        server.stop()


def test_the_agent():
    with kubelet() as fake, Agent("--workload-root", fake.root, "--workload-names", "no") as agent:
        wait_for(lambda: up(agent) == [1.0], "the source")
        wait_for(lambda: values(agent.metrics(), "gpusonde_kubelet_allocatable_devices") == [2.0], "what kubelet can give")
        equal(values(agent.metrics(), "gpusonde_kubelet_unmatched_devices"), [0.0])
        contains(agent.cli("doctor").stdout, "the agent asks kubelet what pods were given")
        first = helper(agent)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: helper(agent) not in (None, first), "another process")
        wait_for(lambda: up(agent) == [1.0], "the source")
        # A kubelet that restarts: said once, and asked again over another connection.
        os.unlink(f"{fake.root}{SOCKET}")
        fake.stop()
        wait_for(lambda: up(agent) == [0.0], "the source to be down")
        # A question that was under way fails first.
        wait_for(lambda: "its socket is gone" in agent.cli("doctor").stdout, "doctor to tell why")
        fake.start()
        fake.link("pod-resources", f"{fake.root}{SOCKET}")
        wait_for(lambda: up(agent) == [1.0], "the source")
        contains(agent.log(), "kubelet answers again")
        assert "gpusonde-kubelet, ended" not in agent.log(), "one that ends between questions is no failure"


def test_what_was_given_in_the_views():
    node = command("gpus", "--json", "--socket", "none", env=environment(GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO="node-8xh100"))
    uuids = [g["uuid"] for g in json.loads(node.stdout)["gpus"]]
    shared = {"nvidia.com/gpu.shared": [f"{uuids[2]}::1", f"{uuids[2]}::4"]}
    pods = [dict(POD, containers=[{"name": "main", "id": IDS[0], "devices": {"nvidia.com/gpu": uuids[:2]}}, {"name": "side", "id": IDS[1], "devices": shared}]),
            dict(POD, name="done", uid="1" * 36, phase="Succeeded", containers=[{"name": "c", "devices": {"nvidia.com/gpu": uuids[3:]}}])]
    with kubelet(pods=pods, pods_api="pods-api/pods-api.sock", services=BOTH + ["v1alpha1.Pods"]) as fake, Agent("--workload-root", fake.root) as agent:
        labels = {"namespace": "ml", "pod": "train-0", "pod_uid": UID, "source": "kubelet"}
        wait_for(lambda: len(values(agent.metrics(), "gpusonde_container_gpu_allocated", **labels)) == 3, "what kubelet gave", 30)
        page = agent.metrics()
        for uuid in uuids[:2]:
            equal(values(page, "gpusonde_container_gpu_allocated", uuid=uuid, container="main", container_id=IDS[0], **labels), [1.0])
        equal(values(page, "gpusonde_container_gpu_slots", uuid=uuids[2], container="side", container_id=IDS[1]), [2.0])
        equal(values(page, "gpusonde_container_gpu_allocated", pod="done"), [])


def test_claims_that_the_api_resolves():
    """A device of DRA that no CDI specification tells: of the GPU that a ResourceSlice says, once the API has said it."""
    node = command("gpus", "--json", "--socket", "none", env=environment(GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO="node-8xh100"))
    uuids = [g["uuid"] for g in json.loads(node.stdout)["gpus"]]
    claims = [{"driver": "gpu.nvidia.com", "pool": "n", "device": "first"}, {"driver": "gpu.nvidia.com", "pool": "n", "device": "unknown"}]
    api = Api()
    server = Server(api)
    try:
        with kubelet(pods=[dict(POD, containers=[{"name": "c", "id": IDS[0], "claims": claims}])]) as fake, \
                Agent("--workload-root", fake.root, "--workload-names", "no", "--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", "n") as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_kubelet_unmatched_devices") == [2.0], "devices that nobody knows")
            equal(values(agent.metrics(), "gpusonde_container_gpu_allocated"), [])
            api.objects["/apis/resource.k8s.io/v1/resourceslices"] = {"items": [{"spec": {"driver": "gpu.nvidia.com", "pool": {"name": "n"}, "devices": [
                {"name": "first", "attributes": {"uuid": {"string": uuids[3]}}}]}}]}
            # Where there was no such API it is asked for again after a minute.
            os.kill(next(pid for pid in children(agent.process.pid) if comm(pid) == "gpusonde-kube"), signal.SIGKILL)
            wait_for(lambda: values(agent.metrics(), "gpusonde_container_gpu_allocated", uuid=uuids[3], container="c", resource="gpu.nvidia.com") == [1.0], "its GPU")
            wait_for(lambda: values(agent.metrics(), "gpusonde_kubelet_unmatched_devices") == [1.0], "the one that is known no more to be counted")
    finally:
        server.stop()


def test_with_the_rights_of_the_unit():
    """The agent is no root; its capabilities are those of gpusonde.service. kubelet's socket and folder are closed to it."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("only root, with setpriv of util-linux, can start an agent with these rights")
    names = "+setuid,+setgid,+dac_read_search"
    with kubelet() as fake, tempfile.TemporaryDirectory() as programs:
        os.chmod(f"{fake.root}{SOCKET}", 0o755)
        os.chmod(os.path.dirname(f"{fake.root}{SOCKET}"), 0o750)
        os.chmod(programs, 0o755)
        for name in ("gpusonde", "gpusonde-kubelet", "gpusonde-web", "gpusonde-nvml"): # the checkout may lie in a home
            shutil.copy(f"{BUILD}/{name}", programs)
        for drop, wanted in (((), 1.0), (("+setuid,",), 0.0)):
            caps = names
            for one in drop:
                caps = caps.replace(one, "")
            program = ("setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--inh-caps", caps, "--ambient-caps", caps, f"{programs}/gpusonde")
            with tempfile.TemporaryDirectory() as tmp:
                os.chown(tmp, 12345, 12345)
                with Agent("--workload-root", fake.root, "--workload-names", "no", "--workload-jobs", "no", scenario=None, wait=False, tmp=tmp, program=program) as agent:
                    wait_for(agent.port, "the agent")
                    wait_for(lambda w=wanted: up(agent) == [w], f"the source to be {wanted}")
                    if not wanted:
                        contains(agent.log(), "permission denied; run the agent as root, or with CAP_SETUID")


def test_no_kubelet_no_process():
    with tempfile.TemporaryDirectory() as root, Agent("--workload-root", root) as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [1.0], "the source of names")
        equal((helper(agent), up(agent)), (None, []))
        said = agent.cli("doctor", GPUSONDE_WORKLOAD_ROOT=root).stdout
        for text in ("no kubelet: this is no node of Kubernetes", f"{root}{SOCKET}"):
            contains(said, text)
    with kubelet() as fake, Agent("--workload-root", fake.root, "--workload-kubelet", "none") as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [1.0], "the source of names")
        equal((helper(agent), up(agent), fake.calls()), (None, [], {}))
        contains(agent.cli("doctor", GPUSONDE_WORKLOAD_KUBELET="none").stdout, "not asked (workload.kubelet)")


def test_a_real_kubelet():
    path = os.environ.get("GPUSONDE_KUBELET_SOCKET")
    if not path:
        raise Skip("no $GPUSONDE_KUBELET_SOCKET: name the pod-resources socket of a real kubelet")
    _, rows, (end,) = ask("/", path=path)
    equal((end["outcome"], end["error"], end["unmatched"]), (OK, "", 0))
    print(f"# {len(rows)} devices are allocated: {rows}")


try:
    run()
finally:
    THE_KUBELET.stop()
    THE_KUBELET.folder.cleanup()
