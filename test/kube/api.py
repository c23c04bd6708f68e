# SPDX-License-Identifier: Apache-2.0
"""What a test asks of the API server: objects as YAML, which the server reads itself, or as documents."""
import contextlib
import http.client
import json
import ssl

PATHS = {"Namespace": "/api/v1/namespaces", "Pod": "/api/v1/namespaces/{}/pods", "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
         "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets", "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
         "Job": "/apis/batch/v1/namespaces/{}/jobs", "CronJob": "/apis/batch/v1beta1/namespaces/{}/cronjobs",
         "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses", "Node": "/api/v1/nodes", "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts", "Secret": "/api/v1/namespaces/{}/secrets"}

APPLIED = "application/apply-patch+yaml"
OF_THE_CLUSTER = ("Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition")


class Refused(Exception):
    """With the server's status and words."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text[:1000]}")
        self.status = status


class Api:
    def __init__(self, port, token):
        self.port, self.token = port, token
        self.context = ssl._create_unverified_context() # pylint: disable=protected-access

    def request(self, method, path, body=None, kind="application/yaml"):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.context)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": "application/json"})
            reply = connection.getresponse()
            text = reply.read().decode()
        if reply.status >= 300:
            raise Refused(reply.status, text)
        return json.loads(text) if text.startswith("{") else text

    def create(self, kind, text, namespace="default"):
        return self.request("POST", PATHS[kind].format(namespace), text)

    def apply(self, document, dry_run=False):
        """As "kubectl apply --server-side" does; @dry_run: the server says what it would do, and does not."""
        kind, version, about = document["kind"], document["apiVersion"], document["metadata"]
        plural = kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
        inside = "" if kind in OF_THE_CLUSTER else f"/namespaces/{about['namespace']}"
        path = f"/{'apis' if '/' in version else 'api'}/{version}{inside}/{plural}/{about['name']}?fieldManager=test&force=true"
        return self.request("PATCH", path + ("&dryRun=All" if dry_run else ""), json.dumps(document), APPLIED)

    def list(self, kind, namespace="default"):
        return self.request("GET", PATHS[kind].format(namespace))["items"]

    def get(self, kind, name, namespace="default"):
        """None: there is none."""
        try:
            return self.request("GET", f"{PATHS[kind].format(namespace)}/{name}")
        except Refused as why:
            if why.status != 404:
                raise
            return None

    def merge(self, kind, name, changes, namespace="default"):
        self.request("PATCH", f"{PATHS[kind].format(namespace)}/{name}", json.dumps(changes), "application/merge-patch+json")

    def label_node(self, name, **labels):
        self.request("PATCH", f"{PATHS['Node']}/{name}", json.dumps({"metadata": {"labels": labels}}), "application/merge-patch+json")

    def scale(self, kind, name, replicas, namespace="default"):
        self.request("PATCH", f"{PATHS[kind].format(namespace)}/{name}", json.dumps({"spec": {"replicas": replicas}}), "application/merge-patch+json")

    def delete(self, kind, name, namespace="default"):
        self.request("DELETE", f"{PATHS[kind].format(namespace)}/{name}", json.dumps({"propagationPolicy": "Background"}), "application/json")

    def pods(self):
        return self.request("GET", "/api/v1/pods")["items"]

    def is_ready(self):
        with contextlib.suppress(OSError, Refused):
            return self.request("GET", "/readyz") == "ok"
        return False
