# SPDX-License-Identifier: Apache-2.0
"""The node: etcd, the API server, controller manager, scheduler, containerd, kubelet and a device plugin, in the sandbox that this program is in."""
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

from kube import api, images, sandbox
from lib.e2e import BUILD, Skip, environment, wait_for

NAME = "gpusonde-node"
API_PORT, ETCD_PORT = 6443, 2379
SUBNET = "10.244.0.0/24"
KUBELET = "/var/lib/kubelet"
MANIFESTS = "/var/lib/kubelet-manifests"
CONTAINERD = "/run/containerd/containerd.sock"
START_S = 600 # of a part; the machine may be busy
HERE = os.path.dirname(os.path.abspath(__file__))

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: node, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: "{token}"}}}}]
contexts: [{{name: node, context: {{cluster: node, user: admin}}}}]
current-context: node
"""

CNI = {"cniVersion": "0.4.0", "name": "node", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": {
    "type": "host-local", "dataDir": "/var/lib/cni/addresses", "ranges": [[{"subnet": SUBNET}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}

# Paths that are the runtime's own are left as they are: they are what gpusonde looks for.
CONTAINERD_CONFIG = """version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  disable_apparmor = true
  restrict_oom_score_adj = {oom}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
        BinaryName = "{folder}/nvidia-container-runtime"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{folder}/cni"
"""

# Nothing can be pulled again here: images are never collected, and nothing is evicted for the disk.
KUBELET_CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
readOnlyPort: 0
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}}}
authorization: {{mode: Webhook}}
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
failSwapOn: false
makeIPTablesUtilChains: false
hairpinMode: none
staticPodPath: {manifests}
fileCheckFrequency: 1s
nodeStatusUpdateFrequency: 5s
maxPods: 110
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {{memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%"}}
"""


class Node:
    """@gpus: resource -> IDs of the device plugin; @scenario: of the simulated driver; @programs: names of those that work in pods."""

    def __init__(self, components, scenario, gpus, programs):
        self.components, self.scenario, self.gpus, self.programs = components, scenario, gpus, programs
        self.started = {}

    def __enter__(self):
        self.folder = sandbox.temporary()
        try:
            self.cgroup = sandbox.make_cgroup()
            self.guardian = subprocess.Popen([sys.executable, f"{HERE}/guardian.py", self.cgroup, self.folder], stdin=subprocess.PIPE,
                                             start_new_session=True, env=dict(os.environ, PYTHONPATH=os.path.dirname(HERE)))
            os.set_inheritable(self.guardian.stdin.fileno(), False)
            sandbox.overlay(self.folder)
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, why, *_):
        # The runner of tests ends by sys.exit(), with 0 when all is well.
        if kind and not issubclass(kind, Skip) and getattr(why, "code", 1) != 0:
            print("\n".join(f"# {line}" for line in self.ends_of_logs()), flush=True)
        if getattr(self, "guardian", None):
            self.guardian.stdin.close() # it does the rest
            self.guardian.wait()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- files ----

    def write(self, name, text):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def ends_of_logs(self):
        for name in self.started:
            with contextlib.suppress(OSError), open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as f:
                yield from (f"{name}: {line.rstrip()[:300]}" for line in f.readlines()[-8:])

    # ---- processes ----

    def spawn(self, name, *args, **env):
        """In the node's cgroup, so that what it leaves behind is found by that."""
        clean = {"PATH": self.components.path, "HOME": self.folder, "LD_LIBRARY_PATH": self.components.libraries, **env}
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.started[name] = subprocess.Popen(args, env=clean, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True, preexec_fn=lambda: sandbox.enter_cgroup(self.cgroup))

    def until(self, name, condition, what):
        def holds():
            if self.started[name].poll() is not None:
                raise AssertionError(f"{name} ended with {self.started[name].returncode}: {' / '.join(list(self.ends_of_logs())[-4:])}")
            return condition()
        return wait_for(holds, what, START_S)

    # ---- the parts, in their order ----

    def start(self):
        begin = time.monotonic()
        self.control_plane()
        self.runtime()
        self.kubelet()
        self.device_plugin()
        self.seconds = time.monotonic() - begin

    def control_plane(self):
        token = secrets.token_hex(16)
        self.api = api.Api(API_PORT, token)
        self.kubeconfig = self.write("kubeconfig", KUBECONFIG.format(port=API_PORT, token=token))
        self.write("tokens.csv", f'{token},admin,admin,"system:masters"\n')
        self.make_signing_key()
        self.start_control_plane()

    @property
    def signing_key(self):
        return f"{self.folder}/accounts.key"

    def make_signing_key(self):
        """Of service accounts' tokens."""
        subprocess.run(["openssl", "genrsa", "-out", self.signing_key, "2048"], check=True, capture_output=True)

    def start_control_plane(self):
        program = self.components.program
        url = f"http://127.0.0.1:{ETCD_PORT}"
        self.spawn("etcd", program("etcd"), "--name=k", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={url}",
                   f"--advertise-client-urls={url}", "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
                   "--initial-cluster=k=http://127.0.0.1:2380")
        self.start_api_server()
        self.spawn("kube-controller-manager", program("kube-controller-manager"), f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--port=0",
                   "--secure-port=0", "--use-service-account-credentials=false", f"--service-account-private-key-file={self.signing_key}",
                   f"--root-ca-file={self.folder}/certificates/apiserver.crt")
        self.spawn("kube-scheduler", program("kube-scheduler"), f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--port=0", "--secure-port=0")

    def start_api_server(self):
        self.spawn("kube-apiserver", self.components.program("kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}", "--bind-address=0.0.0.0",
                   f"--advertise-address={sandbox.ADDRESS}", f"--secure-port={API_PORT}",
                   "--insecure-port=0", f"--cert-dir={self.folder}/certificates", f"--token-auth-file={self.folder}/tokens.csv", "--authorization-mode=RBAC",
                   "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.signing_key}",
                   f"--service-account-signing-key-file={self.signing_key}", "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
                   "--allow-privileged=true")
        self.until("kube-apiserver", self.api.is_ready, "the API server to be ready")

    def kill(self, name):
        self.started[name].kill()
        self.started[name].wait()

    def reboot(self, orderly):
        """All that runs ends, pods too, and begins again; files stay. Not orderly: at once, as when power is lost."""
        for process in self.started.values() if orderly else []:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        while left := sandbox.members(self.cgroup):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.started.values():
                process.poll()
            time.sleep(0.1)
        self.start_control_plane()
        self.start_containerd()
        self.kubelet()
        self.device_plugin()

    def runtime(self):
        self.write("cni/10-node.conflist", json.dumps(CNI))
        self.write("nvidia/scenario.yaml", self.scenario)
        shutil.copy(f"{BUILD}/sim/libnvidia-ml.so.1", f"{self.folder}/nvidia/libnvidia-ml.so.1")
        runc = self.components.program("runc")
        wrapper = self.write("nvidia-container-runtime", f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/nvidia.py" "{runc}" "{self.folder}/nvidia" "$@"\n')
        os.chmod(wrapper, 0o755)
        config = CONTAINERD_CONFIG.format(folder=self.folder, socket=CONTAINERD, pause=images.PAUSE, runc=runc, cni=self.components.cni,
                                          oom="false" if may_lower_oom() else "true")
        self.write("containerd.toml", config)
        self.start_containerd()
        images.write_all(f"{self.folder}/images.tar", self.components.program("busybox"), self.scenario, self.programs)
        done = self.ctr("images", "import", f"{self.folder}/images.tar")
        if done.returncode:
            raise AssertionError(f"ctr images import: {done.stderr}")

    def start_containerd(self):
        self.spawn("containerd", self.components.program("containerd"), "-c", f"{self.folder}/containerd.toml")
        self.until("containerd", lambda: self.ctr("version").returncode == 0, "containerd to answer")

    def ctr(self, *args):
        return subprocess.run([self.components.program("ctr"), "-a", CONTAINERD, "-n", "k8s.io", *args], capture_output=True, text=True, check=False,
                              env={"PATH": self.components.path})

    def kubelet(self):
        os.makedirs(MANIFESTS, exist_ok=True)
        config = self.write("kubelet.yaml", KUBELET_CONFIG.format(cgroup=self.cgroup, manifests=MANIFESTS))
        # Without /usr/sbin in its path, so that it finds no iptables: it would add chains, whatever it is told.
        self.spawn("kubelet", self.components.program("kubelet"), f"--config={config}", f"--kubeconfig={self.kubeconfig}", "--container-runtime=remote",
                   f"--container-runtime-endpoint=unix://{CONTAINERD}", f"--root-dir={KUBELET}", f"--cert-dir={self.folder}/kubelet-certificates",
                   f"--hostname-override={NAME}", f"--node-ip={sandbox.ADDRESS}", f"--containerd={CONTAINERD}", "--logtostderr=true", "--v=2", PATH="/usr/bin:/bin")
        self.until("kubelet", self.is_ready, "the node to be ready")

    def status(self):
        node = self.api.get("Node", NAME)
        return node["status"] if node else {}

    def is_ready(self):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in self.status().get("conditions", []))

    def device_plugin(self):
        # Its file may be there of before.
        self.until("kubelet", lambda: connects(f"{KUBELET}/device-plugins/kubelet.sock"), "kubelet to listen to device plugins")
        self.spawn("plugin", sys.executable, f"{HERE}/plugin.py", f"{KUBELET}/device-plugins", *[f"{name}={','.join(ids)}" for name, ids in self.gpus.items()],
                   PYTHONPATH=self.components.grpc, LD_LIBRARY_PATH="", GRPC_VERBOSITY="NONE")
        wanted = {name: str(len(ids)) for name, ids in self.gpus.items()}
        self.until("plugin", lambda: wanted.items() <= self.status().get("allocatable", {}).items(), "the node's GPUs")

    # ---- what tests look at ----

    def tasks(self):
        """Container ID -> PID of its first process, of those that run, as containerd has it."""
        rows = [line.split() for line in self.ctr("tasks", "ls").stdout.splitlines()[1:]]
        return {row[0]: int(row[1]) for row in rows if len(row) >= 3 and row[2] == "RUNNING"}


def connects(path):
    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
        s.connect(path)
        return True
    return False


def may_lower_oom():
    """Without CAP_SYS_RESOURCE a container's oom_score_adj cannot be below ours."""
    try:
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as f:
            own = f.read()
            f.write("-1")
            f.flush()
            f.seek(0)
            f.write(own)
        return True
    except OSError:
        return False


def uuids(scenario):
    """Of the simulated GPUs, in their order."""
    done = subprocess.run([f"{BUILD}/gpusonde", "gpus", "--json", "--nvml-library", f"{BUILD}/sim/libnvidia-ml.so.1"],
                          env=environment(GPUSONDE_SIM_SCENARIO=scenario), capture_output=True, text=True, check=True)
    return [gpu["uuid"] for gpu in json.loads(done.stdout)["gpus"]]
