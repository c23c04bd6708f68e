#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart and the manifests: each is what the other is, valid for every Kubernetes, and gives the pod the rights that it needs and no other.

    manifests.py BUILD SOURCE [WORD OF A NAME...]
"""
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

from lib import fetch
from lib.e2e import BUILD, SOURCE, Skip, command, contains, environment, equal, run

try:
    import jsonschema
    import yaml
    from deploy import chart
    from deploy.gotemplate import TemplateError, Templates
    CHART = chart.Chart(SOURCE)
except ImportError as why: # cases skip
    chart, CHART, LACKING = None, None, str(why)

TRACING = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE"]
READ = ["/var/log/pods", "/var/log/containers", "/run/containerd/io.containerd.runtime.v2.task", "/var/lib/kubelet/pod-resources"]
OLDEST_FIELD = "v1.30.0" # of appArmorProfile
NODE_LABELS = {"kubernetesApi": {"nodeLabels": ["topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"]}}
PUSH = {"push": {"url": "https://push.example/x", "cluster": "c-1", "keySecret": {"name": "push", "key": "k"}, "caConfigMap": {"name": "gpusonde"}}}
OUTPUTS = {"remoteWrite": {"url": "https://prometheus.example:9090/api/v1/write?tenant=a", "username": "node",
                           "secret": {"name": "rw", "password": "password", "ca": "ca.crt", "certificate": "tls.crt", "key": "tls.key"}},
           "otlp": {"endpoint": "http://collector.example:4318", "logsEndpoint": "http://logs.example:4318", "secret": {"name": "otlp", "token": "token", "ca": "ca.crt"}},
           "statsd": {"address": "$(HOST_IP):8125"}}
ASKED = {"web": {"configSecret": {"name": "web"}, "tls": True, "tokensSecret": {"name": "tokens"}, "views": "prometheus,ops", "recordings": "ops", "control": "ops"}}
VARIANTS = { # beside those of deploy/kubernetes
    "all": {"config": {"sample": {"period": "2s"}}, "env": {"GPUSONDE_LOG_LEVEL": "debug", "SOME": 1}, "dra": {"enabled": True}, "imagePullSecrets": [{"name": "s"}],
            "dcgmExporter": {"enabled": True, "image": {"tag": "1"}, "env": {"DCGM_EXPORTER_LISTEN": ":9400"}}, "networkPolicy": {"enabled": True, "egress": True},
            "prometheusRule": {"enabled": True, "labels": {"release": "p"}}, "serviceMonitor": {"enabled": True, "labels": {"release": "p"}},
            "podLabels": {"a": "b"}, "podAnnotations": {"c": "d"}, "nodeSelector": {"e": "f"}, "priorityClassName": "high", "fullnameOverride": "other",
            "serviceAccount": {"annotations": {"g": "h"}}, "extraArgs": ["--trace-buffer=1MiB"], "pods": {"runtime": "crio"}},
    "own namespace alone": {"rbac": {"clusterWide": False}, "podMonitor": {"enabled": True}, "dcgm": {"discover": True}, "config": {"log": {"level": "info"}}, **PUSH},
    "others' account": {"serviceAccount": {"create": False, "name": "others"}, "rbac": {"create": False}, "dcgm": {"host": "dcgm.example"},
                        "service": {"enabled": False}, "containerMetrics": {"enabled": False}, "affinity": {"nodeAffinity": {}}, "runtimeClassName": "-"},
    "labels": {"kubernetesApi": {**NODE_LABELS["kubernetesApi"], "workloadLabels": ["app.kubernetes.io/name", "app"]}},
    "sent": {**OUTPUTS, "textfile": {"folder": "/var/lib/node_exporter"}, "networkPolicy": {"enabled": True, "egress": True, "egressTo": [{"ports": [{"protocol": "UDP", "port": 8125}]}]}},
    "sent without rights": {**{name: {"enabled": False} for name in ("processes", "pods", "tracing", "kubernetesApi")}, "stateSize": "1Gi",
                            "remoteWrite": {"url": "http://rw.example/", "secret": {"name": "rw", "token": "t"}}, "statsd": {"socket": {"folder": "/var/run/datadog"}}},
    "asked": {**ASKED, "serviceMonitor": {"enabled": True, "access": {"authorization": {"credentials": {"name": "scrape", "key": "token"}}, "tlsConfig": {"insecureSkipVerify": True}}}},
    "asked for certificates": {"web": {"configSecret": {"name": "web"}, "tls": True, "clientCertificates": True}, "podMonitor": {"enabled": True}},
    "asked for tokens": {"web": {"tokensSecret": {"name": "tokens"}}},
    "gke with a sidecar": {"provider": "gke", "dcgmExporter": {"enabled": True, "image": {"tag": "1"}}, "pods": {"enabled": False}},
}


def needs():
    if not CHART:
        raise Skip(f"{LACKING}: install python3-yaml and python3-jsonschema")


def variants():
    needs()
    return {**{name: values for name, (values, _) in chart.MANIFESTS.items()}, **VARIANTS}


def of_kind(documents, kind):
    return [d for d in documents if d["kind"] == kind]


def pod(values=None, **how):
    return of_kind(CHART.render(values, **how), "DaemonSet")[0]["spec"]["template"]


def agent(spec):
    return next(c for c in spec["containers"] if c["name"] == "gpusonde")


def switched(**on):
    """All switches that give rights off but these."""
    return {name: {"enabled": on.get(name, False)} for name in ("processes", "pods", "tracing", "kubernetesApi")}


def test_manifests_are_the_charts():
    needs()
    made = chart.manifests(SOURCE)
    for path, text in made.items():
        assert os.path.exists(f"{SOURCE}/{path}") and chart.read(f"{SOURCE}/{path}") == text, f"{path} is old: ninja -C build manifests"
    equal(sorted(os.path.relpath(p, SOURCE) for p in glob.glob(f"{SOURCE}/deploy/kubernetes/*/*")), sorted(made), "files of deploy/kubernetes")


def test_the_charts_rules_are_prometheus_own():
    needs()
    ours, wanted = (chart.read(f"{SOURCE}/deploy/{path}/rules.yaml") for path in ("helm/gpusonde", "prometheus"))
    assert ours == wanted, "deploy/helm/gpusonde/rules.yaml is old: ninja -C build manifests"
    rules = of_kind(CHART.render({"prometheusRule": {"enabled": True}}), "PrometheusRule")[0]["spec"]
    equal(rules, yaml.safe_load(wanted), "the PrometheusRule")


def test_kustomize_takes_them():
    """Each folder by itself, and the components with one of them, of which the image is another."""
    needs()
    if not shutil.which("kubectl"):
        raise Skip("no kubectl on this machine")
    def build(folder):
        done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, env=environment(HOME=folder))
        equal(done.returncode, 0, done.stderr)
        return list(yaml.safe_load_all(done.stdout))
    def by_name(document):
        return document["kind"], document["metadata"]["name"]
    for name in chart.MANIFESTS:
        written = list(yaml.safe_load_all(chart.read(f"{SOURCE}/deploy/kubernetes/{name}/gpusonde.yaml")))
        if name not in chart.COMPONENTS:
            equal(sorted(build(f"{SOURCE}/deploy/kubernetes/{name}"), key=by_name), sorted(written, key=by_name), name)
    with tempfile.TemporaryDirectory(prefix="gpusonde-kustomize-") as tmp:
        there = {name: os.path.relpath(f"{os.path.realpath(SOURCE)}/deploy/kubernetes/{name}", os.path.realpath(tmp)) for name in chart.MANIFESTS}
        with open(f"{tmp}/kustomization.yaml", "w", encoding="ascii") as f:
            json.dump({"resources": [there["gke"]], "components": [there[name] for name in chart.COMPONENTS],
                       "images": [{"name": "gpusonde", "newName": "registry.example/gpusonde", "newTag": "7"}]}, f)
        built = build(tmp)
        equal({d["kind"] for d in built} >= {"NetworkPolicy", "ServiceMonitor", "PrometheusRule", "DaemonSet"}, True, "kinds")
        equal(agent(of_kind(built, "DaemonSet")[0]["spec"]["template"]["spec"])["image"], "registry.example/gpusonde:7")
        # What the chart makes for such a cluster.
        for name in ("base", "eks", "zxporter"):
            with open(f"{tmp}/kustomization.yaml", "w", encoding="ascii") as f:
                json.dump({"resources": [there[name]], "components": [os.path.join(os.path.dirname(there["base"]), chart.BEFORE_1_30)]}, f)
            wanted = CHART.render(chart.MANIFESTS[name][0], kubernetes="v1.29.0")
            equal(sorted(build(tmp), key=by_name), sorted(wanted, key=by_name), name)


def test_gos_own_templates_say_the_same():
    """Every template and variant, by Go's text/template itself. It has no include, and no methods: texts are put in their place."""
    needs()
    try:
        site = fetch.get("gotemplate", f"{BUILD}/real")["site"]
    except fetch.Unavailable as unavailable:
        raise Skip(str(unavailable)) from None
    def real(text):
        return re.sub(r'include "([\w.]+)" \.', r'tpl (index $.T "\1") .', text).replace('.Files.Get "rules.yaml"', 'index .Files "rules.yaml"')
    blocks = re.finditer(r'\{\{- define "([\w.]+)" -\}\}\n(.*?)\n\{\{- end -\}\}\n(?=\n|\{\{- (?:if|define|/\*|\$)|$)', "".join(CHART.files.values()), re.S)
    extra = {"Files": {"rules.yaml": chart.read(f"{CHART.folder}/rules.yaml")}, "T": {m[1]: real(m[2]) for m in blocks}}
    program = ("import json, pathlib, sys; sys.path.insert(0, sys.argv[1]); import go_template\n"
               "for name, data in json.load(sys.stdin): print(json.dumps(go_template.render(pathlib.Path(name), data).decode()))")
    with tempfile.TemporaryDirectory(prefix="gpusonde-chart-") as tmp:
        jobs, ours = [], []
        for name, text in CHART.files.items():
            with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
                f.write(real(text))
        for (values, version), name in itertools.product(itertools.product(variants().values(), ("v1.25.3", "v1.33.1")), CHART.files):
            if name.endswith((".yaml", ".txt")):
                data = CHART.data(values, kubernetes=version)
                jobs.append((f"{tmp}/{name}", {**data, **extra}))
                ours.append((name, CHART.templates.render(name, data)))
        done = subprocess.run([sys.executable, "-c", program, site], input=json.dumps(jobs), capture_output=True, text=True, check=False)
        theirs = [json.loads(line) for line in done.stdout.splitlines()]
        equal(len(theirs), len(jobs), f"texts rendered by Go: {done.stderr[-500:]}{done.stdout[-500:]}")
    # Its toYaml ends with a newline, which Helm takes away.
    checksum = re.compile(r"checksum/config: \w+")
    def read(name, text):
        return list(yaml.safe_load_all(checksum.sub("", text))) if name.endswith(".yaml") else text
    for (name, mine), other in zip(ours, theirs):
        equal(read(name, mine), read(name, other), name)


def test_what_the_templates_cannot_be():
    """The renderer finds what Go's would."""
    needs()
    for text, words in (("{{ if .a }}", "end is missing"), ("{{ end }}", "too many"), ("{{ nothing }}", "no function"), ("{{ .a.b }}", "nil has no b"),
                        ("{{ $x }}", "undefined variable"), ("{{ (.a }}", "is missing"), ("{{ .c 1 }}", "is no function"), ("{{ fail \"so\" }}", "so")):
        try:
            Templates(x=text).render("x", {"a": None, "c": 1})
        except (TemplateError, IndexError) as refused:
            contains(str(refused) + "is missing" * isinstance(refused, IndexError), words)
            continue
        raise AssertionError(f"{text} was rendered")
    for text, wanted in (("{{- range $k, $v := .m }}{{ $k }}={{ $v }},{{ end -}} ", "a=1,b=2,"), ("{{ with .none }}x{{ else }}y{{ end }}", "y"),
                         ("{{ if .none }}1{{ else if .m }}2{{ else }}3{{ end }}", "2"), ("{{ range .l }}{{ . | quote }}{{ end }}", '"p""q"'),
                         ("a {{- /* no }} word */ -}} b", "ab"), ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
                         ("{{ and .m.a (or .none 3) }}", "3"), ("{{ not (eq .m.a 1 5) }}", "false"), ('{{ printf "%s-%s" "a" .m.b }}', "a-2")):
        equal(Templates(x=text).render("x", {"m": {"b": 2, "a": 1}, "none": None, "l": ["p", "q"]}), wanted, text)


def test_values_are_described_and_wrong_ones_refused():
    needs()
    def check(values, schema, path):
        for key, value in values.items():
            contains(schema["properties"], key)
            if isinstance(value, dict) and "properties" in schema["properties"][key]:
                check(value, schema["properties"][key], f"{path}{key}.")
    check(CHART.values, CHART.schema, "")
    for wrong in ({"provider": "azure"}, {"imag": {}}, {"image": {"tag": 1}}, {"service": {"port": 70000}}, {"tracing": {"enabled": "yes"}},
                  {"tracing": True}, {"pods": {"runtime": "docker"}}, {"image": {"digest": "sha256:1"}}, {"env": {"A B": "x"}}, {"stateFolder": "here"},
                  {"resources": {"limits": {"nvidia.com/gpu": 1}}}, {"serviceMonitor": {"interval": "15"}}, {"extraArgs": ["agent"]},
                  {"stateFolder": "/a, type: x}"}, {"discoveryName": "no name"}, {"remoteWrite": {"url": "https://user:password@prometheus.example"}},
                  {"remoteWrite": {"secret": {"name": "rw", "token": "a/b"}}}, {"otlp": {"endpoint": "collector:4318"}}, {"otlp": {"logsEndpoint": "collector:4318"}}, {"statsd": {"address": "127.0.0.1"}},
                  {"textfile": {"folder": "here"}}, {"web": {"views": ""}}, {"web": {"tls": "yes"}}, {"stateSize": "64MiB"}):
        try:
            CHART.render(wrong)
        except jsonschema.ValidationError:
            continue
        raise AssertionError(f"{wrong} was taken")


def test_what_does_not_go_together_is_said():
    needs()
    for values, words in (({"dcgm": {"discover": True}, "kubernetesApi": {"enabled": False}}, "dcgm.host"),
                          ({"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}, "enable one"),
                          ({"serviceMonitor": {"enabled": True}, "service": {"enabled": False}}, "podMonitor"),
                          ({**NODE_LABELS, "rbac": {"clusterWide": False}}, "rbac.clusterWide"),
                          ({"dcgm": {"discover": True, "namespaces": ["gpusonde", "gpu-operator"]}, "rbac": {"clusterWide": False}}, "namespace gpu-operator: set rbac.clusterWide"),
                          ({"dcgm": {"discover": True, "namespaces": ["*"]}, "rbac": {"clusterWide": False}}, "namespace *: set rbac.clusterWide"),
                          ({"push": {"url": "https://push.example"}}, "push.cluster"),
                          ({"statsd": {"address": "127.0.0.1:1", "socket": {"folder": "/s"}}}, "name one"),
                          ({**chart.DEVICES, "textfile": {"folder": "/t"}}, "set pods.enabled or tracing.enabled"),
                          ({"web": {"tls": True}}, "set web.configSecret.name"),
                          ({"web": {"configSecret": {"name": "web"}, "clientCertificates": True}}, "set web.tls"),
                          ({"web": {"tokensSecret": {"name": "tokens"}, "control": "ops"}}, "set web.tls"),
                          ({"web": {"views": "ops"}}, "nobody is asked"),
                          ({"dcgmExporter": {"enabled": True}}, "dcgmExporter.image.tag")):
        try:
            CHART.render(values)
        except TemplateError as refused:
            contains(str(refused), words)
            continue
        raise AssertionError(f"{values} was rendered")


def test_every_kubernetes_knows_every_field():
    """By its own schemas, which are strict."""
    needs()
    try:
        folder = fetch.get("kubernetes-schemas", f"{BUILD}/real")["schemas"]
    except fetch.Unavailable as unavailable:
        raise Skip(str(unavailable)) from None
    versions = sorted(glob.glob(f"{folder}/v*-local-strict"), key=lambda p: [int(n) for n in re.findall(r"\d+", os.path.basename(p))])
    assert len(versions) >= 5, versions
    # The oldest and the newest, and those between which the AppArmor profile becomes a field.
    for path in [versions[0], *[p for p in versions if "/v1.29." in p or "/v1.30." in p], versions[-1]]:
        version = re.match(r"v[\d.]+", os.path.basename(path))[0]
        checks = {}
        for name, values in variants().items():
            for document in CHART.render(values, kubernetes=version):
                if document["apiVersion"].startswith("monitoring.coreos.com"):
                    continue
                validator(path, document, checks).validate(document)
        document["metadata"]["label"] = {}
        assert not validator(path, document, checks).is_valid(document), f"{path}: a field that does not exist is taken"


def validator(folder, document, made):
    group, _, version = document["apiVersion"].rpartition("/")
    name = "-".join(filter(None, (document["kind"].lower(), group.split(".")[0], version)))
    if name not in made:
        schema, definitions = (json.loads(chart.read(f"{folder}/{n}.json")) for n in (name, "_definitions"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore") # Debian 12 has nothing newer
            resolver = jsonschema.RefResolver.from_schema(schema, store={"https://kubernetes.io/api/_definitions.json": definitions})
        made[name] = jsonschema.Draft7Validator(schema, resolver=resolver)
    return made[name]


def test_rights_follow_the_switches():
    """hostPID, the user, capabilities and folders of the host: what each switch needs."""
    needs()
    for processes, pods, tracing in itertools.product((False, True), repeat=3):
        what = f"processes {processes}, pods {pods}, tracing {tracing}"
        spec = pod(switched(processes=processes, pods=pods, tracing=tracing))["spec"]
        context = agent(spec)["securityContext"]
        equal(spec.get("hostPID", False), processes or tracing, what)
        wanted = TRACING if tracing else ["SYS_PTRACE"] * (processes and pods) + ["DAC_READ_SEARCH"] * pods
        equal((context["capabilities"]["drop"], context["capabilities"].get("add", [])), (["ALL"], wanted), what)
        equal(context["runAsUser"], 0 if pods or tracing else 65532, what)
        equal((context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"], spec["securityContext"]["seccompProfile"]),
              (True, False, {"type": "RuntimeDefault"}), what)
        equal("appArmorProfile" in context, tracing, what)
        folders = {v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v}
        equal(folders, {*(["/var/lib/gpusonde"] if pods or tracing else []), *(READ if pods else [])}, what)
        equal({m["name"] for m in agent(spec)["volumeMounts"] if not m.get("readOnly")}, {"run", "state"}, f"{what}: what may be written")
        equal(spec["automountServiceAccountToken"], False, what)


def test_device_metrics_are_restricted():
    """Pod Security's strictest level takes it, and the namespace says so; the other needs more, and its namespace says that."""
    needs()
    spec = pod(chart.DEVICES)["spec"]
    context = agent(spec)["securityContext"]
    equal({key: spec.get(key) for key in ("hostPID", "hostNetwork", "hostIPC")}, dict.fromkeys(("hostPID", "hostNetwork", "hostIPC")))
    equal((context["runAsNonRoot"], context["allowPrivilegeEscalation"], context["capabilities"]), (True, False, {"drop": ["ALL"]}))
    equal({tuple(v)[1] for v in spec["volumes"]}, {"emptyDir"}, "kinds of volumes")
    for values, level in ((chart.DEVICES, "restricted"), ({}, "privileged"), ({**chart.DEVICES, "provider": "gke"}, "privileged")):
        made = of_kind(CHART.render({**values, "namespace": {"create": True}}), "Namespace")[0]
        equal(made["metadata"]["labels"], {"pod-security.kubernetes.io/enforce": level})


def rights(role):
    return {(group, resource): rule["verbs"] for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]}


def test_the_account_may_do_what_is_used():
    needs()
    wanted = {("", "pods"): ["list", "watch"], ("", "replicationcontrollers"): ["get"], **{("apps", r): ["get"] for r in ("replicasets", "deployments", "statefulsets", "daemonsets")},
              **{("batch", r): ["get"] for r in ("jobs", "cronjobs")}, ("argoproj.io", "rollouts"): ["get"]}
    for cluster_wide, kind in ((True, "ClusterRole"), (False, "Role")):
        made = CHART.render({"rbac": {"clusterWide": cluster_wide}})
        equal([d["kind"] for d in made if "Role" in d["kind"]], [kind, f"{kind}Binding"], "kinds")
        equal(rights(of_kind(made, kind)[0]), wanted)
        account = of_kind(made, "ServiceAccount")[0]
        equal((account["metadata"]["name"], account["automountServiceAccountToken"]), (of_kind(made, f"{kind}Binding")[0]["subjects"][0]["name"], False))
        equal(pod()["spec"]["automountServiceAccountToken"], True)
    equal([d["kind"] for d in CHART.render(switched()) if "Role" in d["kind"]], [], "without the API")
    documented = yaml.safe_load(re.search(r"^```yaml\n(.*?)^```", chart.read(f"{SOURCE}/docs/kubernetes.md"), re.M | re.S)[1])
    everything = {"kubernetesApi": {**NODE_LABELS["kubernetesApi"], "dra": True}}
    equal(rights(documented), rights(of_kind(CHART.render(everything), "ClusterRole")[0]), "docs/kubernetes.md")
    nodes = [rule["verbs"] for rule in of_kind(CHART.render(NODE_LABELS), "ClusterRole")[0]["rules"] if "nodes" in rule["resources"]]
    equal(nodes, [["get"]], "for labels of nodes")


def test_what_is_asked_for_follows_the_role():
    """A Role permits one namespace's pods; exporters are believed in the release's alone, unless others are named."""
    needs()
    def flags(values):
        return [a for a in agent(pod(values)["spec"])["args"] if a.startswith(("--kube-namespace", "--dcgm-namespaces"))]
    equal(flags({}), [])
    equal(flags({"rbac": {"clusterWide": False}}), ["--kube-namespace=gpusonde"])
    equal(flags({"dcgm": {"discover": True, "namespaces": ["gpu-operator", "*"]}}), ["--dcgm-namespaces=gpu-operator,*"])
    equal(flags({"dcgm": {"discover": True, "namespaces": ["gpusonde"]}, "rbac": {"clusterWide": False}}), ["--kube-namespace=gpusonde", "--dcgm-namespaces=gpusonde"])


def test_pushing():
    """The key is a file of a secret, which neither an argument nor a variable has; nothing of it is there by default."""
    needs()
    assert not any("push" in str(part) for d in CHART.render({}) for part in (d.get("spec"),)), "something of pushing"
    spec = pod(PUSH)["spec"]
    equal([a for a in agent(spec)["args"] if a.startswith("--push")],
          ["--push-url=https://push.example/x", "--push-cluster=c-1", "--push-key-file=/var/run/secrets/gpusonde-push/k", "--push-interval=15s",
           "--push-ca-file=/var/run/gpusonde-push-ca/ca.crt"])
    volumes = {v["name"]: v for v in spec["volumes"]}
    equal(volumes["push-key"]["secret"], {"secretName": "push", "defaultMode": 0o440})
    equal(volumes["push-ca"]["configMap"], {"name": "gpusonde"})
    mounts = {m["name"]: m["mountPath"] for m in agent(spec)["volumeMounts"]}
    equal((mounts["push-key"], mounts["push-ca"]), ("/var/run/secrets/gpusonde-push", "/var/run/gpusonde-push-ca"))


def arguments(spec, *of):
    return [a for a in agent(spec)["args"] if a.startswith(tuple(f"--{o}" for o in of))]


def mounted(spec):
    """{name: (its volume, where, whether it may be written to)}"""
    volumes = {v["name"]: {k: x for k, x in v.items() if k != "name"} for v in spec["volumes"]}
    return {m["name"]: (volumes[m["name"]], m["mountPath"], not m.get("readOnly")) for m in agent(spec)["volumeMounts"]}


def secret(name):
    return {"secret": {"secretName": name, "defaultMode": 0o440}}


def test_outputs():
    """What is secret is files of secrets alone; by default nothing is sent, and nothing mounted for it."""
    needs()
    kinds = ("remote-write", "otlp", "statsd", "textfile")
    equal((arguments(pod()["spec"], *kinds), mounted(pod()["spec"]).keys() & set(kinds)), ([], set()), "by default")
    spec = pod(VARIANTS["sent"])["spec"]
    equal(arguments(spec, *kinds),
          ["--remote-write-url=https://prometheus.example:9090/api/v1/write?tenant=a", "--remote-write-username=node",
           *[f"--remote-write-{what}-file=/var/run/secrets/gpusonde-remote-write/{key}" for what, key in
             (("password", "password"), ("ca", "ca.crt"), ("certificate", "tls.crt"), ("key", "tls.key"))],
           "--otlp-endpoint=http://collector.example:4318", "--otlp-logs-endpoint=http://logs.example:4318", "--otlp-token-file=/var/run/secrets/gpusonde-otlp/token", "--otlp-ca-file=/var/run/secrets/gpusonde-otlp/ca.crt",
           "--statsd-address=$(HOST_IP):8125", "--textfile-path=/host/textfile"])
    contains(agent(spec)["env"], {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}})
    equal({k: v for k, v in mounted(spec).items() if k in kinds},
          {"remote-write": (secret("rw"), "/var/run/secrets/gpusonde-remote-write", False), "otlp": (secret("otlp"), "/var/run/secrets/gpusonde-otlp", False),
           "textfile": ({"hostPath": {"path": "/var/lib/node_exporter"}}, "/host/textfile", True)})
    policy = of_kind(CHART.render(VARIANTS["sent"]), "NetworkPolicy")[0]["spec"]["egress"]
    contains(policy, {"ports": [{"protocol": "UDP", "port": 8125}]})
    spec = pod(VARIANTS["sent without rights"])["spec"]
    equal(arguments(spec, "statsd"), ["--statsd-address=/host/statsd/dsd.socket"])
    equal(mounted(spec)["statsd"], ({"hostPath": {"path": "/var/run/datadog"}}, "/host/statsd", False))


def test_queues_fit_into_where_they_lie():
    """A pod whose emptyDir outgrows its limit is evicted."""
    needs()
    def limit(values):
        return mounted(pod({**switched(), **values})["spec"])["state"][0]["emptyDir"]["sizeLimit"]
    equal([limit(values) for values in ({}, PUSH, {"otlp": {"logsEndpoint": "http://logs.example"}}, OUTPUTS, {**OUTPUTS, "stateSize": "1Gi"})],
          ["16Mi", "320Mi", "320Mi", "320Mi", "1Gi"])
    with open(f"{SOURCE}/src/config/options.def", encoding="utf-8") as f:
        queues = dict(re.findall(r'OPTION\((\w+), queue, .type = OPTION_SIZE, .initial = "(\d+)MiB"', f.read()))
    # Two have otlp's: of metrics, and of events.
    equal((len(queues), sum(map(int, queues.values())) + int(queues["otlp"]) + 16 <= 320), (3, True), f"queues of {queues} MiB, and 16 of the rest")


def test_who_may_ask():
    """With secrets clients are asked, by probes that can be answered; without, everybody may, and it is said."""
    needs()
    def probes(spec):
        return [[{k: v for k, v in agent(spec)[f"{kind}Probe"].items() if k in ("httpGet", "tcpSocket")}] for kind in ("startup", "liveness", "readiness")]
    equal(arguments(pod()["spec"], "web"), ["--web-open=true"])
    spec = pod(ASKED)["spec"]
    equal(arguments(spec, "web"), ["--web-config-file=/var/run/secrets/gpusonde-web/web.yml", "--web-tokens=/var/run/secrets/gpusonde-tokens",
                                   "--web-views=prometheus,ops", "--web-recordings=ops", "--web-control=ops"])
    equal((mounted(spec)["web"], mounted(spec)["tokens"]),
          ((secret("web"), "/var/run/secrets/gpusonde-web", False), (secret("tokens"), "/var/run/secrets/gpusonde-tokens", False)))
    equal([p[0]["httpGet"] for p in probes(spec)], [{"path": path, "port": "metrics", "scheme": "HTTPS"} for path in ("/healthz", "/healthz", "/readyz")])
    equal(probes(pod(VARIANTS["asked for certificates"])["spec"]), [[{"tcpSocket": {"port": "metrics"}}]] * 3)
    equal(arguments(pod(VARIANTS["asked for tokens"])["spec"], "web"),
          ["--web-tokens=/var/run/secrets/gpusonde-tokens", "--web-views=*", "--web-recordings=*", "--web-control=none"])
    endpoint = of_kind(CHART.render(VARIANTS["asked"]), "ServiceMonitor")[0]["spec"]["endpoints"][0]
    equal((endpoint["scheme"], endpoint["authorization"], endpoint["tlsConfig"]),
          ("https", {"credentials": {"name": "scrape", "key": "token"}}, {"insecureSkipVerify": True}))
    equal(of_kind(CHART.render(VARIANTS["asked for certificates"]), "PodMonitor")[0]["spec"]["podMetricsEndpoints"][0]["scheme"], "https")
    notes = [CHART.templates.render("NOTES.txt", CHART.data(values)) for values in ({}, ASKED)]
    equal(["no authentication" in text for text in notes], [True, False])


def test_providers():
    needs()
    gke, eks, other = (pod({"provider": p})["spec"] for p in ("gke", "eks", ""))
    def terms(spec):
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return {term["matchExpressions"][0]["key"] for term in required["nodeSelectorTerms"]}
    equal(terms(gke), {"cloud.google.com/gke-accelerator"})
    contains(terms(eks), "k8s.amazonaws.com/accelerator")
    contains(terms(other), "nvidia.com/gpu.present")
    equal([s.get("runtimeClassName") for s in (gke, eks, other)], [None, None, "nvidia"])
    equal([s.get("priorityClassName") for s in (gke, eks, other)], [None, "system-node-critical", None])
    contains([v.get("hostPath", {}).get("path") for v in gke["volumes"]], "/home/kubernetes/bin/nvidia")
    equal(agent(gke)["securityContext"].get("privileged"), True)
    contains(agent(gke)["env"], {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"})
    equal([agent(s)["securityContext"].get("privileged") for s in (eks, other)], [None, None])


def test_nothing_asks_for_a_gpu_and_every_node_is_tolerated():
    for name, values in variants().items():
        for document in CHART.render(values):
            assert "nvidia.com/gpu:" not in yaml.safe_dump(document), f"{name}: {document['kind']} asks for a GPU"
            if document["kind"] == "DaemonSet":
                equal(document["spec"]["template"]["spec"]["tolerations"], [{"operator": "Exists"}], name)


def test_selectors_select():
    """The DaemonSet its pods, which the Service, the policy and the monitors select, too; ports are those of the container."""
    for name, values in variants().items():
        made = CHART.render({**values, "networkPolicy": {"enabled": True}})
        template = of_kind(made, "DaemonSet")[0]["spec"]["template"]
        labels, ports = template["metadata"]["labels"], {p["name"] for p in agent(template["spec"])["ports"]}
        selectors = [d["spec"].get("selector") or d["spec"].get("podSelector") for d in made if d["kind"] in
                     ("DaemonSet", "Service", "NetworkPolicy", "ServiceMonitor", "PodMonitor")]
        for selector in selectors:
            assert selector.get("matchLabels", selector).items() <= labels.items(), f"{name}: {selector} of {labels}"
        for port in [p["targetPort"] for d in of_kind(made, "Service") for p in d["spec"]["ports"]] + [
                p["port"] for d in of_kind(made, "NetworkPolicy") for r in d["spec"]["ingress"] for p in r["ports"]]:
            contains(ports, port)
        names = [d["metadata"]["name"] for d in made]
        for volume in [v["configMap"]["name"] for v in template["spec"]["volumes"] if "configMap" in v]:
            contains(names, volume)
    needs()
    found = pod({"discoveryName": "zxporter-gpu-exporter"})
    equal(found["metadata"]["labels"]["app.kubernetes.io/name"], "zxporter-gpu-exporter")
    equal({p["name"]: p["containerPort"] for p in agent(found["spec"])["ports"]}, {"metrics": 9470, "container": 6061})


def test_the_agent_takes_its_arguments():
    """And what stands in its environment and its configuration, in every variant."""
    for name, values in variants().items():
        made = CHART.render(values)
        container = agent(of_kind(made, "DaemonSet")[0]["spec"]["template"]["spec"])
        settings = {v["name"]: v.get("value", "a-node") for v in container["env"] if v["name"] != "LD_LIBRARY_PATH"}
        with tempfile.TemporaryDirectory(prefix="gpusonde-config-") as tmp:
            with open(f"{tmp}/gpusonde.yaml", "w", encoding="utf-8") as f:
                f.write("".join(d["data"]["gpusonde.yaml"] for d in of_kind(made, "ConfigMap")))
            taken = [a.replace("/etc/gpusonde", tmp).replace("$(HOST_IP)", "192.0.2.1") for a in container["args"]]
            done = command(*taken, "--check-config", env=environment(**settings))
        equal(done.returncode, 0, f"{name}: {container['args']} {settings}: {done.stderr}")


def test_changed_configuration_starts_the_pods_anew():
    needs()
    sums = [pod({"config": {"sample": {"period": p}}})["metadata"]["annotations"]["checksum/config"] for p in ("1s", "2s", "1s")]
    assert sums[0] == sums[2] != sums[1], sums


def test_old_clusters_get_the_annotation():
    """appArmorProfile is unknown before 1.30."""
    needs()
    key = "container.apparmor.security.beta.kubernetes.io/gpusonde"
    for version, field in (("v1.29.9", False), (OLDEST_FIELD, True), ("v1.31.2-gke.1", True)):
        found = pod(kubernetes=version)
        equal(("appArmorProfile" in agent(found["spec"])["securityContext"], key in found["metadata"]["annotations"]), (field, not field), version)


def test_versions_are_one():
    needs()
    version = re.search(r"version: '([\d.]+)'", chart.read(f"{SOURCE}/meson.build"))[1]
    equal((CHART.about["version"], CHART.about["appVersion"]), (version, version), "Chart.yaml")


if __name__ == "__main__":
    run()
