#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart in deploy/helm before a real API server: it takes every object, and the account may do what is used and nothing else.

    chart.py BUILD SOURCE [WORD OF A NAME...]
"""
import json
import sys

from deploy import manifests
from kube import apiserver, components
from kube.api import Refused
from lib import rows
from lib.e2e import contains, equal, run, wait_for

ROW = f"Kubernetes {components.VERSION}, containerd, cgroup v1" # of the node's tests, whose server is the same
ACCOUNT = "system:serviceaccount:gpusonde:gpusonde"
MAY = [("", "pods", "list"), ("", "pods", "watch"), ("", "replicationcontrollers", "get"), ("apps", "replicasets", "get"), ("apps", "deployments", "get"),
       ("apps", "statefulsets", "get"), ("apps", "daemonsets", "get"), ("batch", "jobs", "get"), ("batch", "cronjobs", "get"), ("argoproj.io", "rollouts", "get")]
MAY_NOT = [("", "pods", "get"), ("", "pods", "create"), ("", "pods", "delete"), ("", "pods/exec", "create"), ("", "secrets", "get"), ("", "secrets", "list"),
           ("", "configmaps", "get"), ("", "nodes", "get"), ("", "nodes/proxy", "get"), ("apps", "deployments", "list"), ("apps", "daemonsets", "patch"), ("*", "*", "*")]


def rendered(values):
    """Documents for this Kubernetes; without the Prometheus operator's, which is not there."""
    manifests.needs()
    made = manifests.CHART.render(values, kubernetes=f"v{components.VERSION}")
    return [document for document in made if not document["apiVersion"].startswith("monitoring.coreos.com")]


def applied(there, values):
    for document in rendered({"namespace": {"create": True}, **values}):
        there.api.apply(document)


def test_every_variant_is_taken():
    """A field that the server does not know would be refused. Each is installed anew: applying at the server's side does not take defaults
    of a probe away, so that it cannot become one of another kind; what Helm sends does."""
    there = apiserver.plane()
    applied(there, {})
    taken = 0
    for name, values in manifests.variants().items():
        for document in rendered(values):
            if document["kind"] != "Namespace":
                document["metadata"]["name"] += "-anew"
            try:
                there.api.apply(document, dry_run=True)
            except Refused as why:
                raise AssertionError(f"{name}: {document['kind']}: {why}") from None
            taken += 1
    wrong = rendered({})[0]
    wrong["metadata"]["label"] = {}
    try:
        there.api.apply(wrong, dry_run=True)
    except Refused as why:
        contains(str(why), "label")
    else:
        raise AssertionError("the server took a field that does not exist")
    rows.say("kubernetes", ROW, chart=f"{taken} objects of {len(manifests.variants())} sets of values are taken by the API server (dry run)")


def may(there, group, resource, verb):
    name, _, sub = resource.partition("/")
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": ACCOUNT, "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": {"group": group, "resource": name, "subresource": sub, "verb": verb}}}
    return there.api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json.dumps(review), "application/json")["status"]["allowed"]


def test_what_the_account_may():
    there = apiserver.plane()
    applied(there, {})
    wait_for(lambda: may(there, *MAY[0]), "the binding to count")
    equal([what for what in MAY if not may(there, *what)], [], "what is used and refused")
    equal([what for what in MAY_NOT if may(there, *what)], [], "what is allowed and not used")
    applied(there, manifests.NODE_LABELS)
    wait_for(lambda: may(there, "", "nodes", "get"), "nodes, for their labels")


def test_what_is_switched_off_has_no_rights():
    """Also after an upgrade that switches it off, as far as the chart goes: Helm deletes what is no longer rendered."""
    made = [d["kind"] for d in rendered({"kubernetesApi": {"enabled": False}})]
    equal([kind for kind in made if "Role" in kind], [])


if __name__ == "__main__":
    with apiserver.STACK:
        run()
    sys.exit()
