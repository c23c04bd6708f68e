#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a real node, and is right again by itself: the API server is away, etcd forgets, keys are changed, power is lost.

    outage.py BUILD SOURCE [WORD OF A NAME...]

All the time the pages are as fast as before, and nobody is called what he is not.
"""
import base64
import contextlib
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

from kube import etcd, node, reports
from kube.attribution import cluster, main
from lib.e2e import contains, equal, values, wait_for

AWAY_S = 60
SAMPLES = 30
SLOWER = 5 # times as long, which no wait for somebody else would keep
LEAST_MS = 100 # of a page, whatever else this machine does: less than any wait for a server
PAGES = ("/metrics", "/container/metrics", "/api/v1/processes")
OWNER = ("Deployment", "web")


def page_ms(path):
    """Median of some requests."""
    times = []
    for _ in range(SAMPLES):
        begin = time.monotonic()
        equal(cluster().agent.get(path).status, 200, path)
        times.append(1000 * (time.monotonic() - begin))
    return statistics.median(times)


def speeds():
    return {path: page_ms(path) for path in PAGES}


def is_paced(before, now):
    return all(now[path] <= max(SLOWER * before[path], LEAST_MS) for path in PAGES)


def paced_again(before):
    """What has just started has work to do for a while."""
    wait_for(lambda: is_paced(before, speeds()), "pages as fast as before", 300)


def kept_pace(before, now):
    for path in PAGES:
        print(f"# {path}: {before[path]:.2f} ms before, {now[path]:.2f} ms now", flush=True)
    assert is_paced(before, now), f"ms: {now} now, {before} before"


def named():
    """PID -> (namespace, pod, container) on /metrics, of those that are named."""
    return {pid: name for pid, name in reports.rows("/metrics", cluster().agent.get("/metrics").text) if name[1]}


class Witness(threading.Thread):
    """While its block lasts it reads every view each second, and what a container was called: at the end that is compared with what the API server says."""

    def __init__(self):
        super().__init__(daemon=True)
        self.told, self.pages, self.ended, self.failed = set(), 0, threading.Event(), None

    def run(self):
        while not self.ended.wait(1):
            try:
                self.look()
            except (OSError, http.client.HTTPException):
                pass # nobody answers: no page is no wrong one
            except Exception as e: # pylint: disable=broad-exception-caught
                self.failed = e
                return

    def look(self):
        for view in reports.VIEWS:
            reply = cluster().agent.get(view)
            self.pages += reply.status == 200
            self.told.update((view, reports.container_of(pid), names) for pid, names in reports.rows(view, reply.text) if names[1])

    def sees(self):
        """Waits until it has read every view once more: it may still wait for an answer of one that is gone."""
        before = self.pages
        wait_for(lambda: self.failed or self.pages >= before + len(reports.VIEWS), "pages that the witness reads", 300)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        self.join()
        if kind:
            return
        if self.failed:
            raise self.failed
        owners = reports.owners(cluster().api.pods())
        known = [(view, owners[container], names) for view, container, names in self.told if container in owners]
        wrong = [k for k in known if k[2] not in (k[1], (*k[1][:2], None))]
        print(f"# {self.pages} pages, {len(known)} names of containers: {len(wrong)} wrong", flush=True)
        assert self.pages > 0 and known and not wrong, wrong[:10]


def check_attribution():
    """Nobody is called what he is not; all who work are named, in the end."""
    wait_for(lambda: set(cluster().workers()) <= set(named()), "names of all that work", 300)
    told, workers = named(), cluster().workers()
    for pid, owner in workers.items():
        equal(told.get(pid), owner, f"PID {pid}")


def workloads():
    """(pod, kind, name) of rows of /container/metrics that have an owner."""
    return {(r["pod"], r["workload_kind"], r["workload_name"]) for r in cluster().agent.get("/container/metrics").json() if r.get("workload_name")}


def wait_owner(what):
    pods = {owner[1] for owner in cluster().web().values()}
    wait_for(lambda: {(p, *OWNER) for p in pods} <= workloads(), what, 300)


def up(name="kube"):
    return values(cluster().agent.get("/metrics").text, "gpusonde_source_up", source=name) == [1.0]


def proxied(path, port):
    """The agent's page through the API server, as `kubectl get --raw` asks."""
    name = cluster().agent_pod["metadata"]["name"]
    return cluster().api.request("GET", f"/api/v1/namespaces/gpusonde/pods/{name}:{port}/proxy{path}")


def container_rows(text):
    """What does not change from one second to the next."""
    return sorted((r["device_uuid"], r.get("mig_instance_id", ""), r["namespace"], r["pod"], r["container"], r["framebuffer_total"])
                  for r in (json.loads(text) if isinstance(text, str) else text))


def test_pages_agree():
    """/metrics, the JSON, /container/metrics on both ports, and what the API server's proxy says of it."""
    cluster().web()
    wait_owner("the owner of the pods")
    check_attribution()
    agent = cluster().agent
    direct = container_rows(agent.get("/container/metrics").text)
    equal({(r[2], r[3], r[4]) for r in direct if r[3]} & set(cluster().workers().values()), {o for o in cluster().workers().values()}, "rows of those that work")
    equal({r[0] for r in direct}, set(cluster().uuids), "GPUs")
    equal(container_rows(proxied("/container/metrics", 9470)), direct, "through the API's proxy")
    equal(container_rows(proxied("/container/metrics", 6061)), direct, "through the API's proxy, on the collectors' port")
    contains(str(proxied("/metrics", 9470)), "gpusonde_gpu_present")
    told = {(r["namespace"], r["pod"], r["container"]) for r in agent.get("/api/v1/processes").json()["processes"] if r.get("pod")}
    equal(told, {r[2:5] for r in direct if r[3]}, "the JSON")


def begin_anew(pid, owner):
    """A container's process ends, and kubelet starts another one without an API server: it is named, too."""
    before = set(named())
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: any(name == owner and of not in before for of, name in named().items()), f"the next container of {owner}", 300)


def while_it_is_away():
    """Median times of the pages, over a minute of rounds."""
    began, rounds = time.monotonic(), []
    while time.monotonic() - began < AWAY_S:
        rounds.append(speeds())
        time.sleep(1) # ports of closed connections are not free at once
    return {path: statistics.median(now[path] for now in rounds) for path in PAGES}


def web_pods(n):
    """Their names, when there are so many at work."""
    def pods():
        found = {owner[1] for owner in cluster().workers().values() if owner and owner[1].startswith("web")}
        return len(found) == n and found
    return wait_for(pods, f"{n} pods of the Deployment", 300)


@contextlib.contextmanager
def no_api_server():
    """It is started again also after a failure, for the tests that follow."""
    there = cluster().node
    there.kill("kube-apiserver")
    try:
        yield
    finally:
        there.start_api_server()


def test_the_api_server_is_away_and_etcd_forgets():
    """A minute without it, in which a pod's container begins anew; then watches from before are too old."""
    there = cluster()
    pid, owner = next(iter(there.web().items()))
    wait_owner("the owner of the pods")
    with Witness():
        before = speeds() # the witness takes time of its own
        with no_api_server():
            wait_for(lambda: not up(), "the source to be down", 300)
            kept_pace(before, while_it_is_away())
            begin_anew(pid, owner)
            assert workloads(), "what it said before is gone"
            etcd.compact(node.ETCD_PORT)
        back = time.monotonic()
        wait_for(up, "the source to be up again", 300)
        print(f"# found again after {time.monotonic() - back:.1f} s", flush=True)
        there.api.scale("Deployment", "web", 3)
        pods = web_pods(3)
        wait_for(lambda: {(p, *OWNER) for p in pods} <= workloads(), "the owner of a new pod", 300)
        check_attribution()
        kept_pace(before, speeds())
    there.api.scale("Deployment", "web", 2)
    web_pods(2)


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed(claims):
    """A token of a service account as the controller manager of 1.20 makes them, by the key that the API server has now."""
    text = encoded(json.dumps({"alg": "RS256"}).encode()) + b"." + encoded(json.dumps(claims).encode())
    made = subprocess.run(["openssl", "dgst", "-sha256", "-sign", cluster().node.signing_key], input=text, capture_output=True, check=True)
    return text + b"." + encoded(made.stdout)


def rotate_token():
    """That of the agent's account: kubelet puts it into the pod within some minutes."""
    there = cluster()
    secret = next(s for s in there.api.list("Secret", "gpusonde") if s["type"] == "kubernetes.io/service-account-token" and
                  s["metadata"]["annotations"]["kubernetes.io/service-account.name"] == there.agent_pod["spec"]["serviceAccountName"])
    payload = base64.b64decode(secret["data"]["token"]).split(b".")[1]
    token = signed(json.loads(base64.urlsafe_b64decode(payload + b"==")))
    there.api.merge("Secret", secret["metadata"]["name"], {"data": {"token": base64.b64encode(token).decode()}}, "gpusonde")


def test_the_signing_key_is_another():
    """Tokens of before are worth nothing; what kubelet puts in their place is read."""
    cluster().web()
    wait_owner("the owner of the pods")
    with Witness():
        with no_api_server():
            cluster().node.make_signing_key()
        wait_for(lambda: not up(), "the old token to be refused", 300)
        check_attribution()
        rotate_token()
        wait_for(up, "the new token to be used", 600)
        wait_owner("the owner of the pods")
        check_attribution()


def reboot(orderly):
    there = cluster()
    there.web()
    with Witness() as witness:
        witness.sees()
        before = speeds()
        there.node.reboot(orderly)
        there.find_agent()
        wait_for(up, "the source to be up", 300)
        wait_owner("the owner of the pods")
        check_attribution()
        paced_again(before)
        witness.sees()


def test_the_node_is_rebooted():
    reboot(orderly=True)


def test_power_is_lost():
    """All processes of the node end at once; what comes back after it is right by itself."""
    reboot(orderly=False)


if __name__ == "__main__":
    sys.exit(main())
