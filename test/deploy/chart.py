#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart in deploy/helm, rendered without Helm; and the manifests in deploy/kubernetes, which are what it renders with these values.

    chart.py SOURCE      writes these manifests, and the chart's copy of the rules
"""
import copy
import glob
import json
import os
import re
import sys

import jsonschema
import yaml

from deploy.gotemplate import Templates

NEWEST = "v1.32.0"
HEADER = "# SPDX-License-Identifier: Apache-2.0\n#\n# Made of deploy/helm/gpusonde by test/deploy/chart.py; `ninja -C build manifests` writes it.\n"
OWN_NAMESPACE = {"namespace": {"create": True}}
DEVICES = {"processes": {"enabled": False}, "pods": {"enabled": False}, "tracing": {"enabled": False}, "kubernetesApi": {"enabled": False}}
OPERATOR = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}

# Folder of deploy/kubernetes -> (values, kinds that it has of what is rendered; none: all).
MANIFESTS = {
    "base": (OWN_NAMESPACE, ()),
    "devices": ({**OWN_NAMESPACE, **DEVICES}, ()),
    "eks": ({**OWN_NAMESPACE, "provider": "eks"}, ()),
    "gke": ({**OWN_NAMESPACE, "provider": "gke"}, ()),
    "zxporter": ({**OWN_NAMESPACE, "discoveryName": "zxporter-gpu-exporter", "containerMetrics": {"compat": True}}, ()),
    "network-policy": ({"networkPolicy": {"enabled": True}}, ("NetworkPolicy",)),
    "prometheus-operator": (OPERATOR, ("ServiceMonitor", "PrometheusRule")),
}
# These go with one of the others.
COMPONENTS = ("network-policy", "prometheus-operator")
# And this, which changes it: before 1.30 the AppArmor profile is an annotation, and kubectl refuses the field.
BEFORE_1_30 = "before-1.30"
ANNOTATION = """patches:
  - target: {kind: DaemonSet, name: gpusonde}
    patch: |-
      - op: remove
        path: /spec/template/spec/containers/0/securityContext/appArmorProfile
      - op: add
        path: /spec/template/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1gpusonde
        value: unconfined
"""


class Files:
    """What Helm calls .Files."""

    def __init__(self, folder):
        self.folder = folder

    def Get(self, name): # pylint: disable=invalid-name
        return read(f"{self.folder}/{name}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def merged(values, others):
    """As Helm does: maps are merged, all else is replaced."""
    result = copy.deepcopy(values)
    for key, value in others.items():
        result[key] = merged(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else copy.deepcopy(value)
    return result


class Chart:
    def __init__(self, source):
        self.folder = f"{source}/deploy/helm/gpusonde"
        self.about = yaml.safe_load(read(f"{self.folder}/Chart.yaml"))
        self.values = yaml.safe_load(read(f"{self.folder}/values.yaml"))
        self.schema = json.loads(read(f"{self.folder}/values.schema.json"))
        self.files = {os.path.basename(path): read(path) for path in sorted(glob.glob(f"{self.folder}/templates/*"))}
        self.templates = Templates(**self.files)

    def data(self, values, kubernetes=NEWEST, service="kubectl", namespace="gpusonde"):
        """What templates see. jsonschema.ValidationError: values that the schema refuses."""
        full = merged(self.values, values)
        jsonschema.Draft7Validator(self.schema).validate(full)
        return {"Values": full, "Chart": {"Name": self.about["name"], "AppVersion": self.about["appVersion"], "Version": self.about["version"]},
                "Release": {"Name": "gpusonde", "Namespace": namespace, "Service": service}, "Files": Files(self.folder),
                "Capabilities": {"KubeVersion": {"Version": kubernetes}}}

    def texts(self, values, **how):
        """The documents, as text, the namespace first."""
        data = self.data(values, **how)
        names = sorted((n for n in self.files if n.endswith(".yaml")), key=lambda name: (name != "namespace.yaml", name))
        whole = "\n---\n".join(self.templates.render(name, data) for name in names)
        parts = (re.sub(r"\s*\n(\s*\n)+", "\n", part).strip() for part in re.split(r"^---$", whole, flags=re.M))
        return [re.sub(r"[ \t]+$", "", part, flags=re.M) for part in parts if part]

    def render(self, values=None, **how):
        return [yaml.safe_load(text) for text in self.texts(values or {}, **how)]


def kustomization(component, what):
    kind, version = ("Component", "v1alpha1") if component else ("Kustomization", "v1beta1")
    return f"{HEADER}apiVersion: kustomize.config.k8s.io/{version}\nkind: {kind}\n{what}"


def manifests(source):
    """Path -> text, of all that is made."""
    chart, files = Chart(source), {}
    for name, (values, kinds) in MANIFESTS.items():
        texts = [t for t in chart.texts(values) if not kinds or yaml.safe_load(t)["kind"] in kinds]
        files[f"deploy/kubernetes/{name}/gpusonde.yaml"] = HEADER + "---\n" + "\n---\n".join(texts) + "\n"
        files[f"deploy/kubernetes/{name}/kustomization.yaml"] = kustomization(name in COMPONENTS, "resources: [gpusonde.yaml]\n")
    files[f"deploy/kubernetes/{BEFORE_1_30}/kustomization.yaml"] = kustomization(True, ANNOTATION)
    return files


def copy_rules(source):
    """Helm packs what lies in the chart, and links do not outlive every checkout."""
    with open(f"{source}/deploy/helm/gpusonde/rules.yaml", "w", encoding="utf-8") as f:
        f.write(read(f"{source}/deploy/prometheus/rules.yaml"))


def main():
    source = sys.argv[1]
    copy_rules(source)
    for path, text in manifests(source).items():
        os.makedirs(os.path.dirname(f"{source}/{path}"), exist_ok=True)
        with open(f"{source}/{path}", "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
