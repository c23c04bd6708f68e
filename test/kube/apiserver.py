#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde-kube beside a real API server of Kubernetes 1.20 with etcd, and no node: kubelet's part, what it says of pods, is the test's. So is that of the
controllers and the scheduler, where the API server alone was compiled. Neither root nor cgroups are needed.
"""
import base64
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from kube import components, etcd
from kube.api import Api, Refused
from lib import fetch
from lib.e2e import BUILD, Skip, contains, environment, equal, run, wait_for
from lib.kube_dump import asked, owners

NODE, OTHER = "node-a", "node-b"
START_S = 600 # the machine may be busy
STACK = contextlib.ExitStack()
UNAVAILABLE = []
IDS = {"n": 0}

ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gpusonde"}, "rules": [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}, {"apiGroups": [""], "resources": ["replicationcontrollers", "nodes"], "verbs": ["get"]},
    {"apiGroups": ["apps"], "resources": ["replicasets", "deployments", "statefulsets", "daemonsets"], "verbs": ["get"]},
    {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": ["get"]}]}
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "gpusonde"}, "subjects": [
    {"kind": "User", "name": "gpusonde"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gpusonde"}}
READY_NODE = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "5000"},
              "capacity": {"cpu": "64", "memory": "64Gi", "pods": "5000"}}
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "trainings.example.com"}, "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"plural": "trainings", "singular": "training", "kind": "Training"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Plane:
    """etcd, the API server, the controllers and the scheduler where they are, on ports that are free."""

    def __init__(self, parts):
        self.has_controllers = bool(parts.program("kube-controller-manager"))
        self.parts, self.running = parts, {}
        self.folder = tempfile.mkdtemp(prefix="gpusonde-apiserver-")
        os.chmod(self.folder, 0o755) # the process that asks may be nobody
        self.port, self.etcd_port, self.peer_port = free_port(), free_port(), free_port()
        self.tokens = {name: secrets.token_hex(16) for name in ("admin", "gpusonde", "stranger")}
        self.api = Api(self.port, self.tokens["admin"])

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        return f"{self.folder}/{name}"

    def spawn(self, name, *args):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen([self.parts.program(name), *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                  env=environment(LD_LIBRARY_PATH=self.parts.libraries))

    def stop(self, name):
        process = self.running.pop(name)
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_etcd(self):
        url, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        self.spawn("etcd", "--name=k", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
                   f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=k={peer}")

    def start_server(self):
        self.spawn("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                   "--insecure-port=0", f"--cert-dir={self.folder}/certificates", f"--tls-cert-file={self.folder}/server.crt",
                   f"--tls-private-key-file={self.folder}/server.key", f"--token-auth-file={self.folder}/tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
                   "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={self.folder}/accounts.key",
                   f"--service-account-signing-key-file={self.folder}/accounts.key", "--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
                   "--watch-cache-sizes=pods#100", "--etcd-compaction-interval=0")
        wait_for(self.is_ready, "the API server to be ready", START_S)

    def is_ready(self):
        if self.running["kube-apiserver"].poll() is not None:
            with open(f"{self.folder}/kube-apiserver.log", encoding="utf-8", errors="replace") as f:
                raise AssertionError(f"kube-apiserver ended: {f.read()[-2000:]}")
        return self.api.is_ready()

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

    def start(self):
        self.write("tokens.csv", "".join(f"{token},{name},{name}{',system:masters' * (name == 'admin')}\n" for name, token in self.tokens.items()))
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver", "-keyout", "server.key", "-out", "server.csr")
        self.write("server.ext", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        self.openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "server.ext",
                     "-out", "server.crt")
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        self.start_etcd()
        self.start_server()
        wait_for(lambda: self.api.get("Namespace", "default"), "the default namespace", START_S) # the server makes it, once it is ready
        if self.has_controllers:
            self.start_controllers()
        else:
            self.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
        for name in (NODE, OTHER):
            self.api.request("POST", "/api/v1/nodes", json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a"}}}))
            self.patch(f"/api/v1/nodes/{name}/status", {"status": READY_NODE})
            self.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"kubernetes.io/hostname": name}}, "spec": {"taints": None}})
        for document in (ROLE, BINDING, CRD):
            self.api.apply(document)
        wait_for(lambda: self.api.get("ServiceAccount", "default"), "the default service account")

    def start_controllers(self):
        config = self.kubeconfig("admin")
        for name in ("kube-controller-manager", "kube-scheduler"):
            # No node of these has a kubelet that says that it lives.
            more = [f"--service-account-private-key-file={self.folder}/accounts.key", "--use-service-account-credentials=false", "--controllers=*,-nodelifecycle"]
            self.spawn(name, f"--kubeconfig={config}", "--leader-elect=false", "--port=0", "--secure-port=0", *(more if "controller" in name else []))

    def patch(self, path, body):
        return self.api.request("PATCH", path, json.dumps(body), "application/merge-patch+json")

    def kubeconfig(self, user):
        with open(f"{self.folder}/ca.crt", "rb") as f:
            ca = base64.b64encode(f.read()).decode()
        return self.write(f"config-{user}", json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [
            {"name": "c", "context": {"cluster": "k", "user": "u"}}], "users": [{"name": "u", "user": {"token": self.tokens[user]}}], "clusters": [
                {"name": "k", "cluster": {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": ca}}]}))

    def close(self):
        for name in reversed(list(self.running)):
            self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def plane():
    if UNAVAILABLE:
        raise Skip(UNAVAILABLE[0])
    if not hasattr(plane, "one"):
        try:
            made = Plane(components.of_a_plane(f"{BUILD}/real"))
        except fetch.Unavailable as why:
            UNAVAILABLE.append(str(why))
            raise Skip(str(why)) from None
        STACK.callback(made.close)
        made.start()
        plane.one = made
    return plane.one


# ---- kubelet's part ----

def container_id():
    IDS["n"] += 1
    return f"{IDS['n']:064x}"


def run_pods(there, namespace="default"):
    """Says of each pod that is on a node and not running yet that it is, with a container."""
    for pod in there.api.list("Pod", namespace):
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            there.patch(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status", {"status": {
                "phase": "Running", "podIP": "10.1.2.3", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "c", "image": "x", "imageID": "x", "ready": True, "restartCount": 0, "containerID": f"containerd://{container_id()}"}]}})


def ids_of(there):
    return {status["containerID"].split("://")[1] for pod in there.api.list("Pod") if pod["spec"].get("nodeName") == NODE
            for status in pod["status"].get("containerStatuses", [])}


def workload(kind, name, api="apps/v1", **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": {
        "containers": [{"name": "c", "image": "x"}], "nodeSelector": {"kubernetes.io/hostname": NODE}, "automountServiceAccountToken": False}}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}}


def plain_pod(name, node=NODE, **meta):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **meta},
            "spec": {
        "nodeName": node, "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}}


def make(there, *documents):
    for document in documents:
        there.api.apply(document)


def remove(there, path):
    with contextlib.suppress(Refused):
        there.api.request("DELETE", path, json.dumps({"propagationPolicy": "Background", "gracePeriodSeconds": 0}), "application/json")


@contextlib.contextmanager
def kube(there, user="gpusonde", **settings):
    with asked(config=there.kubeconfig(user), node=NODE, **settings) as asker:
        yield asker


def of_pods(answer):
    """Pod -> (kind, name) of its workload."""
    return {r[0]: r[2:] for r in owners(answer, 2).values()}


# ---- the controllers' part ----

def controlled(there, owner, kind, name, api="apps/v1", **spec):
    """An object that a controller made of another one: as it makes it."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                 "controller": True, "blockOwnerDeletion": True}
    document = plain_pod(name) if kind == "Pod" else workload(kind, name, api, **spec)
    document["metadata"]["ownerReferences"] = [reference]
    return there.api.apply(document)


def make_what_controllers_make(there, job):
    """Of the workloads below: replica sets, jobs, pods; and gives their paths."""
    kinds = {"web": "Deployment", "db": "StatefulSet", "each": "DaemonSet", "once": "Job", "often": "CronJob"}
    owner = {name: there.api.get(kind, name) for name, kind in kinds.items()}
    for name, kind in kinds.items():
        owner[name].update(kind=kind, apiVersion={"Job": "batch/v1", "CronJob": "batch/v1beta1"}.get(kind, "apps/v1"))
    replicas = controlled(there, owner["web"], "ReplicaSet", "web-5d89", replicas=2)
    run_of = controlled(there, owner["often"], "Job", "often-1", "batch/v1", template=job, selector=None)
    pods = [(replicas, "web-5d89-a"), (replicas, "web-5d89-b"), (owner["db"], "db-0"), (owner["each"], "each-x"), (owner["once"], "once-x"), (run_of, "often-1-x")]
    for of, name in pods:
        controlled(there, of, "Pod", name)
    return ["/apis/apps/v1/namespaces/default/replicasets/web-5d89", "/apis/batch/v1/namespaces/default/jobs/often-1",
            *[f"/api/v1/namespaces/default/pods/{name}" for _, name in pods]]


# ---- the tests ----

def test_workloads_of_all_kinds():
    there = plane()
    batch = {"restartPolicy": "Never"}
    job = workload("Job", "once", "batch/v1")["spec"]["template"]
    job["spec"].update(batch)
    make(there, workload("Deployment", "web", replicas=2), workload("StatefulSet", "db", serviceName="db", replicas=1), workload("DaemonSet", "each"),
         {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": "default"}, "spec": {"template": job}},
         {"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"name": "often", "namespace": "default"}, "spec": {
             "schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": job["spec"]}}}}},
         plain_pod("bare"))
    made = [] if there.has_controllers else make_what_controllers_make(there, job)
    wanted = {("Deployment", "web"), ("StatefulSet", "db"), ("DaemonSet", "each"), ("Job", "once"), ("CronJob", "often"), ("Pod", "bare")}
    with kube(there) as k:
        def all_there(answer):
            run_pods(there)
            return set(of_pods(answer).values()) == wanted
        answer = k.until(all_there, "workloads of all kinds, which takes a CronJob a minute where controllers run", START_S)
        equal(len([p for p, of in of_pods(answer).items() if of == ("Deployment", "web")]), 2)
        # Containers are those that the API has.
        k.until(lambda a: set(owners(a)) == ids_of(there), "the containers that the API has")
        equal((k.counted["lists"], k.failures), (1, {}))
    for path in ("apps/v1/namespaces/default/deployments/web", "apps/v1/namespaces/default/statefulsets/db", "apps/v1/namespaces/default/daemonsets/each",
                 "batch/v1/namespaces/default/jobs/once", "batch/v1beta1/namespaces/default/cronjobs/often"):
        remove(there, f"/apis/{path}")
    for path in made:
        remove(there, path)


def test_a_custom_resource_is_found_by_what_the_api_says():
    there = plane()
    made = wait_for(lambda: custom(there), "the API of a custom resource")
    owner = {"apiVersion": "example.com/v1", "kind": "Training", "name": "run", "uid": made["metadata"]["uid"], "controller": True}
    make(there, plain_pod("trains", ownerReferences=[owner]))
    # Without the right to read it, it is what the reference says; it is seen either way.
    for user in ("gpusonde", "admin"):
        with kube(there, user) as k:
            k.until(lambda a: of_pods(a).get("trains") == ("Training", "run"), f"the owner as {user} sees it")
    remove(there, "/api/v1/namespaces/default/pods/trains")


def custom(there):
    with contextlib.suppress(Refused):
        return there.api.request("POST", "/apis/example.com/v1/namespaces/default/trainings",
                                 json.dumps({"apiVersion": "example.com/v1", "kind": "Training", "metadata": {"name": "run"}}), "application/json")
    return None


def test_a_watch_goes_on():
    """Ended by the server every five seconds, and never lists again."""
    there = plane()
    with kube(there, watch=5) as k:
        k.well()
        for n in range(4):
            make(there, plain_pod(f"w{n}"))
            k.until(lambda a, n=n: f"w{n}" in of_pods(a), "a pod that came")
            time.sleep(3)
        equal((k.counted["lists"], k.failures), (1, {}))
        for n in range(4):
            remove(there, f"/api/v1/namespaces/default/pods/w{n}")


def test_pods_elsewhere_cost_nothing():
    there = plane()
    with kube(there) as k:
        k.well()
        time.sleep(2)
        k.ask()
        before = k.counted["bytes"]
        for n in range(50):
            make(there, plain_pod(f"other-{n}", OTHER))
        time.sleep(2)
        k.ask()
        assert k.counted["bytes"] - before < 4096, f"{k.counted['bytes'] - before} bytes for pods of another node"
        for n in range(50):
            remove(there, f"/api/v1/namespaces/default/pods/other-{n}")


def test_the_server_is_away_and_etcd_compacted():
    there = plane()
    make(there, plain_pod("stays"), plain_pod("goes"))
    with kube(there) as k:
        k.until(lambda a: {"stays", "goes"} <= set(of_pods(a)), "two pods")
        there.stop("kube-apiserver")
        answer = k.until(lambda a: a["outcome"] == "failed", "that the server is away")
        assert {"stays", "goes"} <= set(of_pods(answer)), "what it said before stays"
        there.start_server()
        remove(there, "/api/v1/namespaces/default/pods/goes")
        make(there, plain_pod("comes"))
        etcd.compact(there.etcd_port)
        k.until(lambda a: a["outcome"] == "ok" and "comes" in of_pods(a), "that it goes on", START_S)
        equal(of_pods(k.ask())["stays"], ("Pod", "stays"))
        # Where it was is forgotten by etcd and by the server's cache, which is new.
        there.stop("kube-apiserver")
        k.until(lambda a: a["outcome"] == "failed", "that the server is away again")
        there.start_server()
        for n in range(150):
            make(there, plain_pod(f"more-{n}", OTHER))
        etcd.compact(there.etcd_port)
        k.until(lambda a: a["outcome"] == "ok", "that it goes on, or lists again", START_S)
        make(there, plain_pod("last"))
        k.until(lambda a: "last" in of_pods(a), "a pod that came later")
        for name in ("stays", "comes", "last", *[f"more-{n}" for n in range(150)]):
            remove(there, f"/api/v1/namespaces/default/pods/{name}")


def test_who_may_not_is_refused():
    there = plane()
    with kube(there, "stranger") as k:
        answer = k.until(lambda a: a["outcome"] == "refused", "a refusal")
        contains(answer["error"], 'User "stranger" cannot list resource "pods"')


def test_labels_of_the_node():
    there = plane()
    with kube(there, node_labels="zone,none") as k:
        answer = k.until(lambda a: a["labels"] is not None, "labels")
        equal({r["key"]: r["value"] for r in answer["labels"]}, {"zone": "a"})


def main():
    if not shutil.which("openssl"):
        UNAVAILABLE.append("no openssl on this machine")
    with STACK:
        run()


if __name__ == "__main__":
    sys.exit(main())
