#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Kubernetes API says of the node's pods: gpusonde-kube beside an API server of ours, and the agent with it."""
import contextlib
import http.server
import json
import os
import shutil
import signal
import tempfile
import threading
import time

from e2e.fake_kube import Api, Authority, Server, Tls
from lib.e2e import Agent, Skip, children, comm, contains, equal, run, values, wait_for
from lib.kube_dump import asked, owners
from lib.tls import need_reasons, tells_why

IDS = ["a1" * 32, "b2" * 32, "c3" * 32, "d4" * 32]
NODE = "node-1"


def uid(n):
    return f"0a0a0a0a-1111-2222-3333-{n:012d}"


def ref(kind, name, n, api="apps/v1"):
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid(n), "controller": True}


def pod(n=1, name="train-0", owner=None, containers=None, labels=None, **more):
    """A v1.Pod as far as anybody looks at it."""
    meta = {"uid": uid(n), "name": name, "namespace": "ml", "labels": labels or {}, **more.pop("metadata", {})}
    if owner:
        meta["ownerReferences"] = [owner]
    names = containers if containers is not None else {"main": IDS[0]}
    status = {"phase": "Running", "podIP": f"10.0.0.{n}", "conditions": [{"type": "Ready", "status": "True"}],
              "containerStatuses": [{"name": k, "containerID": f"containerd://{v}"} for k, v in names.items()], **more}
    return {"metadata": meta, "spec": {"nodeName": NODE}, "status": status}


def meta(kind, name, n, owner=None, api="apps/v1"):
    """Of an owner: its metadata alone."""
    made = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": name, "namespace": "ml", "uid": uid(n)}}
    if owner:
        made["metadata"]["ownerReferences"] = [owner]
    return {f"{'/apis/' if '/' in api else '/api/'}{api}/namespaces/ml/{kind.lower()}s/{name}": made}


@contextlib.contextmanager
def kube(api, **settings):
    """A server for it, without TLS."""
    server = Server(api)
    try:
        with asked(node=NODE, server=f"http://127.0.0.1:{server.port}", **settings) as asker:
            yield asker
    finally:
        server.stop()


def owner_is(*wanted):
    return lambda a: owners(a).get(IDS[0], ("", "", "", ""))[2:] == wanted


# ---- pods ----

def test_containers_of_all_kinds():
    api = Api()
    api.put(pod(containers={"main": IDS[0]}, initContainerStatuses=[{"name": "sidecar", "containerID": f"cri-o://{IDS[1]}"}, {"name": "waits"}],
                ephemeralContainerStatuses=[{"name": "debug", "containerID": f"docker://{IDS[2]}"}]))
    with kube(api) as k:
        answer = k.well()
        equal({i: r[:2] for i, r in owners(answer).items()}, {IDS[0]: ("train-0", "main"), IDS[1]: ("train-0", "sidecar"), IDS[2]: ("train-0", "debug")})
        equal(owners(answer, 2), {uid(1): ("train-0", "", "Pod", "train-0")})
        # Nothing but this node's pods that have not ended, and from the server's cache.
        path, query, _ = api.asked[0]
        equal((path, query["fieldSelector"], query["limit"], query["resourceVersion"]),
              ("/api/v1/pods", f"spec.nodeName={NODE},status.phase!=Succeeded,status.phase!=Failed", "500", "0"))
        watch = wait_for(lambda: next((q for _, q, _ in api.asked if q.get("watch")), None), "a watch")
        equal((watch["allowWatchBookmarks"], watch["timeoutSeconds"], watch["resourceVersion"]), ("true", "290", "101"))
        # A container that was restarted has another ID, and the old one is gone.
        api.put(pod(containers={"main": IDS[3]}))
        answer = k.until(lambda a: IDS[3] in owners(a), "the restarted container")
        equal(set(owners(answer)), {IDS[3]})


def test_static_pods_have_two_ids():
    api = Api()
    hashed = "f" * 32
    api.put(pod(owner={"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid(99), "controller": True}, containers={},
                metadata={"annotations": {"kubernetes.io/config.hash": hashed, "kubernetes.io/config.mirror": hashed}}))
    with kube(api) as k:
        equal(owners(k.well(), 2), {uid(1): ("train-0", "", "Node", NODE), hashed: ("train-0", "", "Node", NODE)})
        equal([p for p in api.paths() if p != "/api/v1/pods"], [])


def test_what_comes_and_goes():
    api = Api()
    with kube(api) as k:
        equal(k.well()["owners"], [])
        api.put(pod())
        k.until(lambda a: IDS[0] in owners(a), "a pod that came")
        for n in range(2, 30):
            api.put(pod(n, f"other-{n}", containers={}))
        k.until(lambda a: a["pods"] == 29, "pods that came")
        equal(k.counted["lists"], 1)


def test_a_watch_goes_on_where_it_was():
    api = Api()
    api.put(pod())
    with kube(api, watch=5) as k:
        k.well()
        for n in range(2, 5):
            wait_for(lambda: api.watches == 1, "an open watch")
            time.sleep(1.1)     # one that ends at once counts as a failure
            api.end_watches()
            api.put(pod(n, f"other-{n}", containers={}))
            k.until(lambda a, n=n: a["pods"] == n, "a pod that came between watches")
        equal((k.counted["lists"], k.failures), (1, {}))
        for version in ("101", "102", "103"):
            assert api.count(watch="1", resourceVersion=version), api.asked


def test_too_old_lists_again():
    api = Api()
    api.put(pod())
    api.put(pod(2, "gone", containers={}))
    with kube(api) as k:
        k.well()
        wait_for(lambda: api.watches == 1, "an open watch")
        api.put(pod(3, "new", containers={}))
        api.forget(quietly=uid(2))
        k.until(lambda a: k.counted["lists"] == 2 and a["outcome"] == "ok", "another list")
        # What etcd has, in pages, and not what a cache has.
        assert "resourceVersion" not in [q for p, q, _ in api.asked if p == "/api/v1/pods" and not q.get("watch")][-1], api.asked


def in_watch(data, answered=None):
    """Answers the first watch with these bytes, each item a piece; then ends it."""
    state = {"left": True}

    def answer(request, path, query):
        if path != "/api/v1/pods" or not query.get("watch") or not state["left"]:
            return False
        state["left"] = False
        request.begin_stream()
        for piece in data:
            request.piece(piece)
            request.wfile.flush()
        return answered(request) if answered else request.end_stream()
    return answer


def test_an_error_of_410_within_a_watch():
    api = Api()
    api.put(pod())
    api.answers.append(in_watch([b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n']))
    with kube(api) as k:
        k.until(lambda a: k.counted["lists"] == 2 and api.watches, "another list and a watch")


def test_watches_that_are_always_too_old():
    """A server is not asked for lists without end."""
    api = Api()
    api.put(pod())

    def expire(request, path, query):
        return path == "/api/v1/pods" and bool(query.get("watch")) and request.refuse(410, "too old")
    api.answers.append(expire)
    with kube(api) as k:
        contains(k.until(lambda a: a["outcome"] == "failed", "a failure")["error"], "too old (410)")
        time.sleep(2)
        lists = len([q for p, q, _ in api.asked if p == "/api/v1/pods" and not q.get("watch")])
        assert 2 <= lists <= 5, lists
        api.answers.clear()
        assert IDS[0] in owners(k.well())


def test_pieces_cut_anywhere():
    """Each byte by itself, through UTF-8 and escapes."""
    api = Api()
    api.put(pod(2, "other", containers={}))
    made = pod(name="train-\u00e4\u20ac", labels={"x": 'q"\\\u00e4'})
    made["metadata"]["resourceVersion"] = "200"
    text = json.dumps({"type": "ADDED", "object": made}, ensure_ascii=False).encode() + b"\n"
    api.answers.append(in_watch([bytes([b]) for b in text]))
    with kube(api) as k:
        answer = k.until(lambda a: IDS[0] in owners(a), "the pod in pieces")
        equal(owners(answer)[IDS[0]][0], "train-\u00e4\u20ac")
        wait_for(lambda: api.count(watch="1", resourceVersion="200"), "a watch that goes on after it")


def test_bookmarks_move_on():
    api = Api()
    api.put(pod())
    api.answers.append(in_watch([b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"777"}}}\n']))
    with kube(api) as k:
        k.well()
        wait_for(lambda: api.count(watch="1", resourceVersion="777"), "a watch from the bookmark on")


def test_what_is_no_event():
    for text, words in ((b'{"type":"ADDED","object":\xff}', "not what the API sends"), (b'{"type":"STRANGE","object":{}}', "not what the API sends"),
                        (b'{"type":"ADDED","object":' + b"[" * 100 + b"]" * 100 + b"}", "64 deep"), (b'{"type":"AD', "broke within an event"),
                        (b'{"type":"ADDED","object":{"x":"' + b"x" * (3 << 20), "2 MiB")):
        api = Api()
        api.put(pod())
        api.answers.append(in_watch([text]))
        with kube(api) as k:
            contains(k.until(lambda a: a["outcome"] == "failed", f"an error after {text[:40]}")["error"], words)
            answer = k.well()
            assert IDS[0] in owners(answer), answer


def test_a_key_that_comes_twice():
    """The later counts, as everywhere in Kubernetes."""
    api = Api()
    twice = json.dumps({"metadata": {"resourceVersion": "5"}, "items": ["POD"]}).replace('"POD"', (
        '{"metadata":{"uid":"old","uid":"u1","name":"n","namespace":"ml"},"status":{"containerStatuses":[{"name":"a","containerID":"x://' + IDS[1] + '"}],'
        '"containerStatuses":[{"name":"b","containerID":"x://' + IDS[0] + '"}]}}')).encode()
    api.answers.append(lambda request, path, query: not query.get("watch") and request.send(200, twice))
    with kube(api) as k:
        equal({i: r[:2] for i, r in owners(k.well()).items()}, {IDS[0]: ("n", "b")})


def test_pods_that_cannot_be_read_are_counted():
    api = Api()
    for n, change in enumerate(({"uid": "x" * 60}, {"name": ""}, {"namespace": 7})):
        bad = pod(n + 10, f"bad-{n}")
        bad["metadata"].update(change)
        api.pods[n] = bad
    api.put(pod())
    with kube(api) as k:
        answer = k.well()
        equal((answer["dropped"], set(owners(answer))), (3, {IDS[0]}))


def test_lists_in_pages():
    api = Api()
    api.page = 7
    for n in range(30):
        api.put(pod(n, f"p-{n}", containers={}))
    # Not from the cache, which gives all at once.
    api.answers.append(lambda request, path, query: query.get("resourceVersion") == "0" and not query.get("watch") and request.refuse(410, "expired"))
    with kube(api) as k:
        equal(len(owners(k.well(), 2)), 30)
        equal(sum("continue" in q for _, q, _ in api.asked), 4)
    # A page that is too old begins the list again, and no pod is lost or twice.
    api.asked.clear()
    expired = {"left": 1}

    def expire(request, _, query):
        if query.get("continue", "").startswith("14-") and expired["left"]:
            expired["left"] = 0
            return request.refuse(410, "the token is too old")
        return False
    api.answers.append(expire)
    with kube(api) as k:
        equal(len(owners(k.well(), 2)), 30)


def test_a_list_of_50_mb():
    api = Api()
    padding = "x" * 26000
    pods = [pod(n, f"p-{n}", containers={}, metadata={"annotations": {"filler": padding}}) for n in range(1000)]
    body = json.dumps({"metadata": {"resourceVersion": "5"}, "items": pods * 2}).encode()
    assert len(body) > 48 << 20, len(body)
    api.answers.append(lambda request, path, query: not query.get("watch") and request.send(200, body))
    small = Api()
    small.put(pod())
    with kube(small) as k:
        before = resident(k.well()["pid"])
    with kube(api) as k:
        answer = k.well()
        equal((len(owners(answer, 2)), answer["dropped"]), (1000, 0))
        after = resident(answer["pid"])
        assert after - before < 16 << 20, f"{before} bytes before, {after} after"


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))


def test_more_pods_than_fit_are_counted():
    api = Api()
    for n in range(1030):
        api.put(pod(n, f"p-{n}", containers={}))
    with kube(api) as k:
        answer = k.well()
        equal((answer["pods"], answer["dropped"]), (1024, 6))


# ---- a server in trouble ----

def fail_lists(status, times, message="", **headers):
    left = {"n": times}

    def answer(request, path, query):
        if path != "/api/v1/pods" or query.get("watch") or left["n"] == 0:
            return False
        left["n"] -= 1
        return request.refuse(status, message, **headers)
    return answer


def test_refusals_are_told_and_tried_again():
    for status, outcome, words in ((403, "refused", "pods is forbidden: User x"), (404, "refused", "no such thing"), (500, "failed", "status 500"),
                                   (503, "failed", "status 503")):
        api = Api()
        api.answers.append(fail_lists(status, 100, "pods is forbidden: User x" if status == 403 else ""))
        with kube(api) as k:
            answer = k.until(lambda a: a["outcome"] == outcome, f"what {status} means")
            contains(answer["error"], words)
            contains(answer["error"], "/api/v1/pods")
            equal(answer["owners"], None)


def test_too_many_requests():
    api = Api()
    api.put(pod())
    api.answers.append(fail_lists(429, 1, "slow down", Retry_After="3"))
    with kube(api) as k:
        begun = time.monotonic()
        contains(k.until(lambda a: a["outcome"] == "failed", "a refusal")["error"], "429")
        k.well()
        assert time.monotonic() - begun > 2.5, "it did not wait as it was told"


def test_a_watch_that_is_silent():
    api = Api()
    api.put(pod())
    stalled = {"n": 0}

    def stall(request, _, query):
        if not query.get("watch") or stalled["n"]:
            return False
        stalled["n"] = 1
        request.begin_stream()
        time.sleep(70)
        return True
    api.answers.append(stall)
    with kube(api, watch=5) as k:
        k.well()
        contains(k.until(lambda a: a["outcome"] == "failed", "a watch that was given up")["error"], "does not answer")
        answer = k.well()
        assert IDS[0] in owners(answer)
        equal(k.counted["lists"], 1)


def test_a_server_that_is_away():
    api = Api()
    api.put(pod())
    server = Server(api)
    port = server.port
    with asked(node=NODE, server=f"http://127.0.0.1:{port}") as k:
        k.well()
        server.stop()
        answer = k.until(lambda a: a["outcome"] == "failed", "that nobody answers")
        # What it said before stays.
        assert IDS[0] in owners(answer), answer
        api.put(pod(2, "came", containers={}))
        server = Server(api, port)
        try:
            k.until(lambda a: a["outcome"] == "ok" and a["pods"] == 2, "that it answers again, with what came meanwhile")
            equal(k.counted["lists"], 1)
        finally:
            server.stop()



# ---- owners ----

CRD = "example.com/v1"
RESOURCES = {f"/apis/{CRD}": {"kind": "APIResourceList", "groupVersion": CRD, "resources": [
    {"name": "trainings/status", "kind": "Training", "namespaced": True}, {"name": "trainings", "kind": "Training", "namespaced": True},
    {"name": "fleets", "kind": "Fleet", "namespaced": False}]}}
DEPLOYMENT, REPLICA_SET, JOB = ref("Deployment", "train", 20), ref("ReplicaSet", "train-1", 21), ref("Job", "nightly-1", 22, "batch/v1")
CRON, ROLLOUT = ref("CronJob", "nightly", 23, "batch/v1"), ref("Rollout", "roll", 24, "argoproj.io/v1alpha1")
TRAINING, FLEET = ref("Training", "run", 25, CRD), {"apiVersion": CRD, "kind": "Fleet", "name": "all", "uid": uid(26), "controller": True}

# What the pod has, the objects that there are, and whose it is: the rules that others resolve by, and what is above them.
CHAINS = {
    "nothing": (None, {}, ("Pod", "train-0")),
    "ReplicaSet, Deployment": (REPLICA_SET, {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)}, ("Deployment", "train")),
    "ReplicaSet alone": (REPLICA_SET, meta("ReplicaSet", "train-1", 21), ("ReplicaSet", "train-1")),
    "ReplicaSet, Rollout": (REPLICA_SET, {**meta("ReplicaSet", "train-1", 21, ROLLOUT), **meta("Rollout", "roll", 24, api="argoproj.io/v1alpha1")}, ("Rollout", "roll")),
    "ReplicaSet, Rollout that is not to be read": (REPLICA_SET, meta("ReplicaSet", "train-1", 21, ROLLOUT), ("Rollout", "roll")),
    "StatefulSet": (ref("StatefulSet", "db", 30), meta("StatefulSet", "db", 30), ("StatefulSet", "db")),
    "StatefulSet that is not to be read": (ref("StatefulSet", "db", 30), {}, ("StatefulSet", "db")),
    "DaemonSet": (ref("DaemonSet", "agent", 31), meta("DaemonSet", "agent", 31), ("DaemonSet", "agent")),
    "ReplicationController": (ref("ReplicationController", "old", 32, "v1"), meta("ReplicationController", "old", 32, api="v1"), ("ReplicationController", "old")),
    "Job, CronJob": (JOB, {**meta("Job", "nightly-1", 22, CRON, "batch/v1"), **meta("CronJob", "nightly", 23, api="batch/v1")}, ("CronJob", "nightly")),
    "Job alone": (JOB, meta("Job", "nightly-1", 22, api="batch/v1"), ("Job", "nightly-1")),
    "ReplicaSet that is not there": (REPLICA_SET, {}, ("Pod", "train-0")),
    "Job that is not there": (JOB, {}, ("Pod", "train-0")),
    "another ReplicaSet of that name": (REPLICA_SET, meta("ReplicaSet", "train-1", 99, DEPLOYMENT), ("Pod", "train-0")),
    "a custom resource": (TRAINING, {**RESOURCES, **meta("Training", "run", 25, api=CRD)}, ("Training", "run")),
    "a custom resource of the cluster above it": (TRAINING, {**RESOURCES, **meta("Training", "run", 25, FLEET, CRD), f"/apis/{CRD}/fleets/all": {
        "metadata": {"name": "all", "uid": uid(26)}}}, ("Fleet", "all")),
    "a custom resource without API": (TRAINING, {}, ("Training", "run")),
    "a kind that the API has not": (ref("Strange", "x", 27, CRD), RESOURCES, ("Strange", "x")),
    "owners in a circle": (TRAINING, {**RESOURCES, **meta("Training", "run", 25, dict(TRAINING, name="two", uid=uid(28)), CRD), **meta("Training", "two", 28, TRAINING, CRD)},
                           ("Training", "two")),
}


def serve_chain(owner, objects, **more):
    api = Api()
    api.objects = objects
    api.put(pod(owner=owner, **more))
    return api


def test_owner_chains():
    for what, (owner, objects, wanted) in CHAINS.items():
        with kube(serve_chain(owner, objects)) as k:
            answer = k.until(lambda a: owners(a).get(IDS[0], ("", "", ""))[2], f"an owner: {what}")
            equal(owners(answer)[IDS[0]][2:], wanted, what)
            equal(owners(answer, 2)[uid(1)][2:], wanted, what)


def test_a_chain_without_end():
    objects = dict(RESOURCES)
    for n in range(40, 60):
        objects.update(meta("Training", f"t{n}", n, dict(TRAINING, name=f"t{n + 1}", uid=uid(n + 1)), CRD))
    api = serve_chain(dict(TRAINING, name="t40", uid=uid(40)), objects)
    with kube(api) as k:
        k.until(owner_is("Training", "t47"), "the eighth owner")
        equal(len([p for p in api.paths() if "/trainings/" in p]), 8)


def test_labels_name_the_workload():
    objects = {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)}
    for labels, wanted in (({"app": "mine"}, ("Deployment", "mine")), ({"team": "", "app": "mine"}, ("Deployment", "mine")),
                           ({"team": "t", "app": "mine"}, ("Deployment", "t")), ({"other": "x"}, ("Deployment", "train"))):
        with kube(serve_chain(REPLICA_SET, objects, labels=labels), labels="team,app") as k:
            k.until(owner_is(*wanted), f"the owner of a pod with {labels}")
    with kube(serve_chain(None, {}, labels={"app": "mine"}), labels="team,app") as k:
        k.until(owner_is("Pod", "mine"), "the name of a pod that nobody controls")


def test_only_metadata_is_asked_for_and_once():
    api = Api()
    api.objects = {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)}
    for n in range(1, 40):
        api.put(pod(n, f"train-{n}", owner=REPLICA_SET, containers={}))
    with kube(api) as k:
        k.until(lambda a: {r[2:] for r in owners(a, 2).values()} == {("Deployment", "train")}, "owners of all pods")
        for path, query, headers in [a for a in api.asked if a[0] != "/api/v1/pods"]:
            contains(headers["Accept"], "as=PartialObjectMetadata")
            equal(query, {"resourceVersion": "0"}, path)
        equal(len([p for p in api.paths() if p != "/api/v1/pods"]), 2)


def test_a_refusal_poisons_nothing():
    """The server is back after a moment, and so is the owner."""
    for status in (403, 429, 500):
        api = serve_chain(REPLICA_SET, {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)})
        api.answers.append(lambda request, path, query, status=status: "/replicasets/" in path and request.refuse(status, "no"))
        with kube(api) as k:
            answer = k.until(owner_is("Pod", "train-0"), f"the pod itself after {status}")
            equal(answer["fallbacks"], 1)
            contains(answer["note"], "owners of 1 pods cannot be read")
            if status != 500:
                continue
            api.answers.clear()
            answer = k.until(owner_is("Deployment", "train"), "the owner, after half a minute")
            equal((answer["fallbacks"], answer["note"]), (0, ""))


def test_a_cache_that_is_behind_is_asked_twice():
    api = serve_chain(REPLICA_SET, {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)})
    api.answers.append(lambda request, path, query: query.get("resourceVersion") == "0" and "/replicasets/" in path and request.refuse(404, "not yet"))
    with kube(api) as k:
        k.until(owner_is("Deployment", "train"), "the owner that the cache does not have yet")


def test_owners_are_asked_for_at_a_bounded_rate():
    api = Api()
    for n in range(1, 101):
        api.objects.update(meta("StatefulSet", f"s{n}", 1000 + n))
        api.put(pod(n, f"p-{n}", owner=ref("StatefulSet", f"s{n}", 1000 + n), containers={}))
    with kube(api) as k:
        k.well()
        begun = time.monotonic()
        k.until(lambda a: sum(bool(r[2]) for r in owners(a, 2).values()) >= 20, "twenty owners")
        assert time.monotonic() - begun > 1.5, "ten at once, then five a second"


def test_more_owners_than_fit():
    api = Api()
    for n in range(1, 9):
        api.objects.update(meta("StatefulSet", f"s{n}", 1000 + n))
        api.put(pod(n, f"p-{n}", owner=ref("StatefulSet", f"s{n}", 1000 + n), containers={}))
    with kube(api, cache=4) as k:
        answer = k.until(lambda a: "too small" in a["note"] and sum(bool(r[2]) for r in owners(a, 2).values()) == 4, "a note, and four owners")
        equal(answer["dropped"], 4)


def test_the_owner_of_a_pod_that_is_gone():
    """It has ended before its owner was known, and what it did on a GPU has that owner all the same."""
    api = serve_chain(REPLICA_SET, {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)})
    api.answers.append(lambda request, path, query: "/replicasets/" in path and (time.sleep(2) or False))
    with kube(api) as k:
        k.well()
        wait_for(lambda: any("/replicasets/" in p for p in api.paths()), "a question")
        api.remove(uid(1))
        k.until(owner_is("Deployment", "train"), "the owner of a pod that is gone")


# ---- pods of exporters, labels of the node ----

def test_exporters_of_this_node():
    api = Api()
    labels = {"app.kubernetes.io/name": "dcgm-exporter"}
    api.put(pod(1, "dcgm-a", labels=labels))
    api.put(pod(2, "dcgm-b", labels=labels, podIP="fd00::2"))
    api.put(pod(3, "no-address", labels=labels, podIP=""))
    api.put(pod(4, "not-ready", labels=labels, conditions=[{"type": "Ready", "status": "False"}]))
    api.put(pod(5, "pending", labels=labels, phase="Pending"))
    api.put(pod(6, "other"))
    for selector in ("app.kubernetes.io/name:dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter", "app.kubernetes.io/name in (dcgm-exporter, x),!gone"):
        with kube(api, exporters=selector, exporter_namespaces="ml") as k:
            answer = k.well()
            equal(({(e["pod"], e["address"]) for e in answer["exporters"]}, answer["skipped"]), ({("dcgm-a", "10.0.0.1"), ("dcgm-b", "fd00::2")}, 3))
            # No question of its own.
            equal({p for p in api.paths() if "pods" not in p}, set())
    with kube(api, exporters="app in") as k:
        contains(k.ask()["error"], "label selector of exporters")
    with kube(api, exporters="app.kubernetes.io/name=dcgm-exporter", exporter_namespaces="ml") as k:
        k.well()
        api.remove(uid(2))
        k.until(lambda a: len(a["exporters"]) == 1, "an exporter that is gone")
        # A user who may make pods somewhere else could state numbers for any pod.
        stranger = pod(7, "dcgm-x", labels=labels)
        stranger["metadata"]["namespace"] = "tenant"
        api.put(stranger)
        answer = k.until(lambda a: a["note"], "a note")
        contains(answer["note"], "1 pod with the labels of exporters in other namespaces than dcgm.namespaces, tenant for example")
        equal([e["namespace"] for e in answer["exporters"]], ["ml"])


def test_one_namespace():
    """What a Role permits: nothing else is asked for."""
    api = Api()
    api.objects = {**meta("ReplicaSet", "train-1", 21)}
    api.put(pod(1, owner=REPLICA_SET))
    stranger = pod(2, "other", containers={"main": IDS[1]})
    stranger["metadata"]["namespace"] = "tenant"
    api.put(stranger)
    with kube(api, namespace="ml") as k:
        answer = k.until(owner_is("ReplicaSet", "train-1"), "the owner")
        equal(set(owners(answer)), {IDS[0]})
        api.remove(uid(1))
        k.until(lambda a: a["pods"] == 0 or not owners(a), "the pod to be gone", 120)
    assert all(p.startswith(("/api/v1/namespaces/ml/", "/apis/apps/v1/namespaces/ml/")) for p in api.paths()), api.paths()
    with kube(api, namespace="..") as k:
        equal(k.ask()["outcome"], "refused")


def test_labels_of_the_node():
    api = Api()
    api.objects[f"/api/v1/nodes/{NODE}"] = {"metadata": {"labels": {"zone": "a", "pool": "gpu", "secret": "x", "zo": "b"}}}
    with kube(api, node_labels="zone, pool") as k:
        answer = k.until(lambda a: a["labels"] is not None, "labels")
        equal({r["key"]: r["value"] for r in answer["labels"]}, {"zone": "a", "pool": "gpu"})
    api.objects.clear()
    with kube(api, node_labels="zone") as k:
        contains(k.until(lambda a: a["note"], "a note")["note"], "the node's labels")
        equal(k.ask()["outcome"], "ok")
    # A part of an answer, which says nothing of the labels behind it.
    api.answers.append(lambda request, path, query: path == f"/api/v1/nodes/{NODE}" and request.send(200, b'{"metadata":{"labels":{"zone":"a"'))
    with kube(api, node_labels="zone, pool") as k:
        answer = k.until(lambda a: a["note"], "a note")
        contains(answer["note"], "not whole")
        equal(answer["labels"], None)


def resource_slice(driver, pool, devices, basic=False):
    """With its names behind its devices, as no order is promised."""
    made = [{"name": name, ("basic" if basic else "attributes"): ({"attributes": a} if basic else a)} for name, a in
            ((name, {"uuid": {"string": uuid}, "index": {"int": 0}} if uuid else {}) for name, uuid in devices.items())]
    return {"metadata": {"name": f"{pool}-{driver}"}, "spec": {"devices": made, "nodeName": NODE, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "driver": driver}}


def resource_slices(*items):
    return {"kind": "ResourceSliceList", "metadata": {"resourceVersion": "7"}, "items": list(items)}


GPU = "GPU-11111111-2222-3333-4444-55555555555"


def test_devices_of_dra():
    """Asked for only while they are wanted; of the newest version that the server has; a slice's devices are not another's."""
    slices = resource_slices(resource_slice("gpu.nvidia.com", NODE, {"gpu-0": GPU + "0", "gpu-1": GPU + "1", "nothing": None}),
                             resource_slice("other.example.com", "rack", {"gpu-0": "GPU-x"}))
    for version, basic in (("v1", False), ("v1beta2", False), ("v1beta1", True)):
        api = Api()
        api.objects[f"/apis/resource.k8s.io/{version}/resourceslices"] = slices if not basic else resource_slices(
            resource_slice("gpu.nvidia.com", NODE, {"gpu-0": GPU + "0", "gpu-1": GPU + "1"}, True), resource_slice("other.example.com", "rack", {"gpu-0": "GPU-x"}, True))
        with kube(api, devices="1") as k:
            answer = k.until(lambda a: a["devices"] is not None, f"devices of {version}")
            equal(sorted((d["driver"], d["pool"], d["device"], d["uuid"]) for d in answer["devices"]),
                  [("gpu.nvidia.com", NODE, "gpu-0", GPU + "0"), ("gpu.nvidia.com", NODE, "gpu-1", GPU + "1"), ("other.example.com", "rack", "gpu-0", "GPU-x")])
            equal({q["fieldSelector"] for p, q, _ in api.asked if p.endswith("resourceslices")}, {f"spec.nodeName={NODE}"})
    api = Api()
    with kube(api) as k:
        k.well()
        equal([p for p, _, _ in api.asked if p.endswith("resourceslices")], [])
    with kube(api, devices="1") as k:
        contains(k.until(lambda a: a["note"], "a note")["note"], "devices of DRA (resourceslices)")
        equal(k.ask()["outcome"], "ok")


# ---- credentials ----

@contextlib.contextmanager
def account(authority, token="one"):
    """A service account's folder as kubelet makes it."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-kube-") as folder:
        os.chmod(folder, 0o755)
        swap_account(folder, authority.ca, token, "..0")
        for name in ("token", "ca.crt"):
            os.symlink(f"..data/{name}", f"{folder}/{name}")
        yield folder


def swap_account(folder, ca, token, version):
    os.makedirs(f"{folder}/{version}")
    shutil.copy(ca, f"{folder}/{version}/ca.crt")
    with open(f"{folder}/{version}/token", "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write(token)
    os.symlink(version, f"{folder}/..new")
    os.rename(f"{folder}/..new", f"{folder}/..data")


@contextlib.contextmanager
def authority():
    if not shutil.which("openssl"):
        raise Skip("no openssl")
    with tempfile.TemporaryDirectory(prefix="gpusonde-ca-") as folder:
        os.chmod(folder, 0o755)
        yield Authority(folder)


@contextlib.contextmanager
def in_cluster(tls, ca, api=None, token="one", host="127.0.0.1"):
    api = api or Api()
    server = Server(api, tls=tls, address=host)
    try:
        with account(ca, token) as folder:
            with asked(node=NODE, account=folder, host=host, port=server.port) as asker:
                asker.api, asker.folder = api, folder
                yield asker
    finally:
        server.stop()


def test_a_service_account():
    with authority() as ca:
        api = Api()
        api.put(pod())
        api.token = "one"
        for host, names in (("127.0.0.1", "IP:127.0.0.1"), ("::1", "IP:::1")):
            with in_cluster(Tls(*ca.sign(f"server{len(host)}", names)), ca, api, host=host) as k:
                assert IDS[0] in owners(k.well())


def test_a_token_that_is_rotated():
    with authority() as ca:
        api = Api()
        api.put(pod())
        api.token = "one"
        with in_cluster(Tls(*ca.sign("server")), ca, api) as k:
            k.well()
            wait_for(lambda: api.watches == 1, "a watch")
            api.token = "two"
            api.end_watches()
            contains(k.until(lambda a: a["outcome"] == "refused", "a refusal")["error"], "401")
            swap_account(k.folder, ca.ca, "two", "..1")
            api.put(pod(2, "new", containers={}))
            k.until(lambda a: a["outcome"] == "ok" and a["pods"] == 2, "the new token")
            equal(k.counted["lists"], 1)


def test_certificates_that_are_wrong():
    need_reasons()
    with authority() as ca:
        other = Authority(ca.folder, "other")
        for what, tls, reason, words in (
                ("another name", Tls(*ca.sign("wrong", "DNS:example.com,IP:10.1.1.1")), "tls_name", "set a name that it has by kube.server, or tls-server-name of the kubeconfig"),
                ("it has expired", Tls(*ca.sign("late", begin=True)), "tls_time", "expired, or is not valid yet (renew it, or set the clock"),
                ("another CA", Tls(*other.sign("foreign")), "tls_ca", "not of a CA that is trusted (name its CA by ca.crt of the service account"),
                ("no TLS", None, "tls", "no TLS was agreed upon")):
            with in_cluster(tls, ca) as k:
                answer = k.until(lambda a: a["outcome"] == "failed", what)
                contains(answer["error"], words)
                equal(set(k.failures), {reason}, what)
                equal(k.api.asked, [], what)


def test_a_ca_that_is_replaced():
    """Said, and mended as soon as the file is another one: a failure reads it again."""
    with authority() as ca:
        other = Authority(ca.folder, "other")
        api = Api()
        api.put(pod())
        with in_cluster(Tls(*other.sign("server")), ca, api) as k:
            k.until(lambda a: a["outcome"] == "failed", "a certificate of another CA")
            swap_account(k.folder, other.ca, "one", "..1")
            assert IDS[0] in owners(k.well())


def test_no_service_account():
    with asked(node=NODE, account="/nowhere", host="127.0.0.1", port=1) as k:
        answer = k.ask()
        equal((answer["outcome"], answer["replace"]), ("refused", True))
        contains(answer["error"], "/nowhere/ca.crt")
    with asked(node=NODE, account="/nowhere") as k:
        contains(k.ask()["error"], "KUBERNETES_SERVICE_HOST")


def test_a_node_of_another_name_is_said():
    with authority() as ca:
        api = Api()
        with in_cluster(Tls(*ca.sign("server")), ca, api) as k:
            contains(k.well()["note"], f'no pod on node "{NODE}"')


def kubeconfig(folder, server, user, **cluster):
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
              "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}], "users": [{"name": "u", "user": user}]}
    with open(f"{folder}/config.new", "w", encoding="utf-8") as f:
        json.dump(config, f)
    os.rename(f"{folder}/config.new", f"{folder}/config")
    return f"{folder}/config"


def test_a_kubeconfig():
    with authority() as ca:
        api = Api()
        api.put(pod())
        certificate, key = ca.sign("user", "")
        server = Server(api, tls=Tls(*ca.sign("server", "DNS:kube.example"), clients=ca.ca))
        url = f"https://127.0.0.1:{server.port}"
        try:
            user = {"client-certificate": os.path.basename(certificate), "client-key": key}
            with asked(node=NODE, config=kubeconfig(ca.folder, url, user, **{"certificate-authority": "ca.crt", "tls-server-name": "kube.example"})) as k:
                assert IDS[0] in owners(k.well())
            with asked(node=NODE, config=kubeconfig(ca.folder, url, user, **{"certificate-authority": "ca.crt"})) as k:
                k.until(lambda a: a["outcome"] == "failed", "a certificate of another name")
            with asked(node=NODE, config=kubeconfig(ca.folder, url, user, **{"insecure-skip-tls-verify": True})) as k:
                contains(k.well()["note"], "not verified")
            with asked(node=NODE, config=kubeconfig(ca.folder, url, {}, **{"insecure-skip-tls-verify": True})) as k:
                # The server may have gone before the question was written; then the connection broke, and no more is known.
                said = "client-certificate of the kubeconfig" if tells_why() else ""
                k.until(lambda a: a["outcome"] == "failed" and said in (a["error"] or ""), "no client certificate")
                equal(set(k.failures) <= {"tls_client", "transport", "tls"}, True, k.failures)
                equal("tls_client" in k.failures or not tells_why(), True, k.failures)
            with asked(node=NODE, config=kubeconfig(ca.folder, url, {"exec": {"command": "aws"}})) as k:
                contains(k.ask()["error"], "needs a program to be run (exec)")
            with asked(node=NODE, config=f"{ca.folder}/config", context="none") as k:
                contains(k.ask()["error"], 'no context "none"')
        finally:
            server.stop()


def test_a_kubeconfig_that_is_replaced():
    with tempfile.TemporaryDirectory(prefix="gpusonde-kube-") as folder:
        os.chmod(folder, 0o755)
        api, other = Api(), Api()
        other.put(pod())
        servers = [Server(a) for a in (api, other)]
        try:
            with asked(node=NODE, config=kubeconfig(folder, f"http://127.0.0.1:{servers[0].port}", {"token": "t"})) as k:
                contains(k.well()["note"], "no token is sent")
                assert "Authorization" not in api.asked[0][2], api.asked
                kubeconfig(folder, f"http://127.0.0.1:{servers[1].port}", {})
                k.until(lambda a: IDS[0] in owners(a), "what the other server has")
        finally:
            for server in servers:
                server.stop()


def test_what_the_process_may_not():
    """It has its filter, no user of ours, and no capability but those that read files."""
    api = Api()
    with kube(api) as k:
        with open(f"/proc/{k.well()['pid']}/status", encoding="ascii") as f:
            status = {name: value.strip() for name, _, value in (line.partition(":") for line in f)}
        equal(status["Seccomp"], "2")
        equal(int(status["CapEff"], 16) & ~0b110, 0)
        equal(status["NoNewPrivs"], "1")
        if os.geteuid() == 0:
            equal(status["Uid"].split()[0], "65534")


# ---- the agent ----

def helper(agent):
    return next((pid for pid in children(agent.process.pid) if comm(pid) == "gpusonde-kube"), None)


def up(agent):
    return values(agent.metrics(), "gpusonde_source_up", source="kube")


def one(agent, family):
    return (values(agent.metrics(), family) or [None])[0]


def test_the_agent():
    api = Api()
    api.put(pod())
    server = Server(api)
    url = f"http://127.0.0.1:{server.port}"
    try:
        with Agent("--kube-server", url, "--kube-node", NODE, "--workload-names", "no") as agent:
            wait_for(lambda: up(agent) == [1.0], "the source")
            wait_for(lambda: one(agent, "gpusonde_kube_pods") == 1.0, "a pod")
            assert one(agent, "gpusonde_kube_read_bytes_total") > 500
            equal(one(agent, "gpusonde_kube_lists_total"), 1.0)
            contains(agent.cli("doctor").stdout, "the agent asks the API server what controls pods")
            first = helper(agent)
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: helper(agent) not in (None, first), "another process")
            wait_for(lambda: up(agent) == [1.0], "the source")
            server.stop()
            wait_for(lambda: up(agent) == [0.0], "the source to be down")
            contains(agent.log(), "the Kubernetes API: watching /api/v1/pods")
            contains(agent.cli("doctor").stdout, "what controls pods is not known: Kubernetes API: watching /api/v1/pods")
            server = Server(api, int(url.rsplit(":", 1)[1]))
            wait_for(lambda: up(agent) == [1.0], "the source")
    finally:
        server.stop()


class Exporter(http.server.BaseHTTPRequestHandler):
    """A page as a DCGM exporter has it."""
    TEXT = (b"# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
            b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-x",device="nvidia0",modelName="M",Hostname="h",container="main",namespace="ml",pod="train-0"} 41\n')

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.TEXT)))
        self.end_headers()
        self.wfile.write(self.TEXT)


def test_exporters_are_read():
    """One that the API names, for as long as it is there; its row has the workload that the API knows."""
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    api = Api()
    api.objects = {**meta("ReplicaSet", "train-1", 21, DEPLOYMENT), **meta("Deployment", "train", 20)}
    api.put(pod(1, "dcgm-a", labels={"app": "dcgm"}, podIP="127.0.0.1", containers={}))
    api.put(pod(2, "train-0", owner=REPLICA_SET))
    server = Server(api)
    try:
        with Agent("--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", NODE, "--dcgm-port", str(exporter.server_port),
                   "--dcgm-namespaces", "ml", DCGM_LABELS="app:dcgm") as agent:
            wait_for(lambda: one(agent, "gpusonde_dcgm_rows") == 1.0, "the exporter's row")
            equal(one(agent, "gpusonde_dcgm_exporters"), 1.0)
            row = wait_for(lambda: next((r for r in agent.get("/container/metrics").json() if r.get("workload_name")), None), "a row with a workload")
            equal((row["pod"], row["workload_kind"], row["workload_name"], row["temperature"]), ("train-0", "Deployment", "train", 41))
            api.remove(uid(1))
            wait_for(lambda: one(agent, "gpusonde_dcgm_exporters") == 0.0, "the exporter to be gone")
    finally:
        server.stop()
        exporter.shutdown()


class Greedy(Exporter):
    """A page that never ends, each line of which is one that is read."""
    LINES = Exporter.TEXT.splitlines(True)[1] * 20000

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(self.LINES)


def test_a_page_has_a_share_of_the_cpu_time():
    """One that takes more is given up; what others say is read all the time."""
    port = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    greedy = http.server.ThreadingHTTPServer(("127.0.0.2", port.server_port), Greedy)
    for server in (port, greedy):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    api = Api()
    for n in (1, 2):
        api.put(pod(n, f"dcgm-{n}", labels={"app": "dcgm"}, podIP=f"127.0.0.{n}", containers={}))
    server = Server(api)
    try:
        # No account, so no namespace of its own.
        with Agent("--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", NODE, "--dcgm-port", str(port.server_port), "--dcgm-refresh", "5s",
                   "--dcgm-namespaces", "x,ml", DCGM_LABELS="app:dcgm") as agent:
            def ended():
                return values(agent.metrics(), "gpusonde_dcgm_scrape_failures_total", reason="cpu")
            wait_for(lambda: (ended() or [0])[0] >= 3, "three pages that took too much", 180)
            rows = [r for r in agent.get("/container/metrics").json() if r["pod"] == "train-0"]
            equal([r["temperature"] for r in rows], [41])
            contains(agent.log(), "its page takes more CPU time than its share")
    finally:
        server.stop()
        port.shutdown()
        greedy.shutdown()


def test_labels_are_tags_of_the_node():
    api = Api()
    api.objects[f"/api/v1/nodes/{NODE}"] = {"metadata": {"labels": {"zone": "a", "gpu_x": "b", "rack": "r:1", "pool": "two"}}}
    server = Server(api)
    try:
        with Agent("--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", NODE, "--kube-node-labels", "zone,gpu_x,pool", "--node-tags", "pool:one") as agent:
            wait_for(lambda: 'key="zone",value="a"' in agent.metrics(), "a label as a tag")
            contains(agent.metrics(), 'key="pool",value="one"')
            for absent in ('key="gpu_x"', 'value="two"'):
                assert absent not in agent.metrics(), absent
    finally:
        server.stop()


def test_who_asks_is_asked_for():
    """In a pod that may not read pods nothing is wrong; it is where somebody has asked for it, and nothing runs where nobody has."""
    with Agent() as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="nvml") == [1.0], "the driver")
        equal((helper(agent), up(agent)), (None, []))
    with Agent(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="1", GPUSONDE_KUBE_ACCOUNT="/nowhere") as agent:
        wait_for(lambda: "the Kubernetes API is not used: /nowhere/ca.crt" in agent.log(), "a line in the log")
        equal(up(agent), [])
    with Agent("--kube-enabled", "yes", KUBERNETES_SERVICE_HOST="127.0.0.1", GPUSONDE_KUBE_ACCOUNT="/nowhere") as agent:
        wait_for(lambda: up(agent) == [0.0], "the source to be down")
    with Agent("--kube-enabled", "no", KUBE_CONFIG_PATH="/nowhere") as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="nvml") == [1.0], "the driver")
        equal((helper(agent), up(agent)), (None, []))


if __name__ == "__main__":
    run()
