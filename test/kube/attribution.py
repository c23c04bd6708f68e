#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes of one node: the agent is the DaemonSet of deploy/, and says of every process whose it is.

    attribution.py BUILD SOURCE [WORD OF A NAME...]

Programs in pods call the simulated CUDA, which is traced, and are found by the simulated driver by their names. What the API server says of pods, and the
machine of processes, is compared with what the agent says in every view.
"""
import contextlib
import functools
import http.client
import json
import os
import re
import signal
import statistics
import sys

from deploy import manifests
from kube import components, images, node, reports, sandbox
from kube.images import PREFIX, WORK
from lib import e2e, fetch, rows
from lib.capabilities import missing
from lib.e2e import BUILD, SOURCE, Skip, equal, run, values, wait_for

IMAGE = {"repository": images.AGENT.rpartition(":")[0], "tag": images.AGENT.rpartition(":")[2]}
WITHIN_S = 2
GPUS = 4 # two of one container each, one that is shared, and that of all the rest
SHARERS = {"a": 60, "b": 20} # percent of the shared one
PROGRAMS = ["main", "side", "db", "each", "job", "cron", "static", "crowd", "own-0", "own-1", "share-a", "share-b"]
# Each calls CUDA five times a second.
BEGIN = "load /usr/lib/libcuda.so.1; api driver; init; alloc 1048576; "
CALLS_A_SECOND = 5
WORK_ON = f"launch; sync; sleep {1000 // CALLS_A_SECOND}; end; "
FOR_EVER = f"{BEGIN}repeat 100000000; {WORK_ON}"
COUNTED = f"{BEGIN}alloc 4096; repeat 3; launch; end; sync; sleep 100000000"
CALLS = {"cuLaunchKernel": 3, "cuMemAlloc_v2": 2}
CROWD = 30

ENTRIES = "".join(f"  - {{name: {name}, match: {PREFIX}{name}, gpus: {gpu}, count: {count}, memory: 256MiB, load: {{gpu: {load}}}}}\n"
                  for name, gpu, count, load in [("own-0", 0, 1, 40), ("own-1", 1, 1, 40), *[(f"share-{s}", 2, 1, load) for s, load in SHARERS.items()],
                                                 *[(name, 3, 4, 1) for name in ("main", "side", "db", "each", "job", "cron", "static")],
                                                 ("crowd", 3, CROWD, 1)])
SCENARIO = f"cycle: 60s\nseed: 17\ngpus:\n  - {{model: h100-sxm, count: {GPUS}}}\nprocesses:\n{ENTRIES}"


def container(name, program, steps=FOR_EVER, resources="", shell=""):
    """A line of YAML. @shell: what chooses the program, instead of @program."""
    command = f"[sh, -c, '{shell}', '{steps}']" if shell else f"[{PREFIX}{program}, '{steps}']"
    return f"{{name: {name}, image: {WORK}, command: {command}{resources}}}"


def spec(*containers, more=""):
    return f"{{terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers: [{', '.join(containers)}]{more}}}"


def pod(name, *containers):
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {spec(*containers)}\n"


def controlled(kind, name, *containers, more=""):
    return (f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n{more}"
            f"  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {spec(*containers)}\n")


def job_spec(name, seconds):
    """So many seconds after its start it has ended well."""
    steps = f"{BEGIN}repeat {seconds * CALLS_A_SECOND}; {WORK_ON}"
    return f"{{backoffLimit: 0, template: {{spec: {spec(container(name, name, steps), more=', restartPolicy: Never')}}}}}"


class Cluster:
    """The node, with the agent in it."""

    def __init__(self, found, stack):
        scenario = f"{BUILD}/kube-scenario.yaml"
        with open(scenario, "w", encoding="ascii") as f:
            f.write(SCENARIO)
        self.uuids = node.uuids(scenario)
        gpus = {"nvidia.com/gpu": self.uuids[:2], "nvidia.com/gpu.shared": [f"{self.uuids[2]}::{n}" for n in range(len(SHARERS))]}
        self.node = stack.enter_context(node.Node(found, SCENARIO, gpus, PROGRAMS))
        self.api = self.node.api
        wait_for(lambda: self.api.get("ServiceAccount", "default"), "the namespace's account")

        self.agent_pod = self.agent = None
        self.api.create("RuntimeClass", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: nvidia}\nhandler: nvidia\n")
        self.api.label_node(node.NAME, **{"nvidia.com/gpu.present": "true"})
        self.deploy()

    def deploy(self, **values):
        """The chart with all that it switches on by itself, and these values; its pod is a new one."""
        before = self.agent_pod["metadata"]["uid"] if self.agent_pod else None
        # Nobody answers at the Service's address here, which kube-proxy would lead to the server.
        server = {"GPUSONDE_KUBE_SERVER": f"https://{sandbox.ADDRESS}:{node.API_PORT}"}
        for document in rendered({"namespace": {"create": True}, "image": IMAGE, "env": server, **values}):
            self.api.apply(document)
        self.find_agent(before)

    def find_agent(self, before=None):
        """Waits for the agent in a pod of another UID than @before."""
        # What the API server says of a pod may be of before the node was lost: its address, too.
        wait_for(lambda: self.look_for_agent(before), "the agent in its pod, with all GPUs on its page", 600)

    def look_for_agent(self, before):
        pod_of = next((p for p in self.api.list("Pod", "gpusonde") if p["metadata"]["uid"] != before and p["status"].get("podIP") and is_ready(p)), None)
        if not pod_of:
            return False
        # A socket's path has room for 107 bytes.
        link = f"{self.node.folder}/agent-{pod_of['metadata']['name']}"
        if not os.path.lexists(link):
            os.symlink(f"{node.KUBELET}/pods/{pod_of['metadata']['uid']}/volumes/kubernetes.io~empty-dir/run", link)
        self.agent_pod, self.agent = pod_of, reports.Remote(pod_of["status"]["podIP"], f"{link}/gpusonde.sock")
        return is_ready_agent(self.agent) and len(values_of(self.agent, "gpusonde_gpu_present")) == GPUS

    def agent_log(self):
        name, uid = (self.agent_pod["metadata"][k] for k in ("name", "uid"))
        return reports.read(f"/var/log/pods/gpusonde_{name}_{uid}/gpusonde/0.log")

    def workers(self):
        """PID -> (namespace, pod, container), of all that work now."""
        owners = reports.owners(self.api.pods())
        return {pid: owners.get(reports.container_of(pid)) for pid in reports.working()}

    def wait_workers(self, *programs):
        """Until so many work, by program (without its prefix), each in a container that the API server knows."""
        def there():
            comms = sorted(comm.removeprefix(PREFIX) for comm in reports.working().values())
            return [c for c in comms if c in programs] == sorted(programs) and all(self.workers().values()) and self.workers()
        return wait_for(there, f"{len(programs)} programs to work in pods", 180)

    @contextlib.contextmanager
    def pod(self, name, text):
        """Its only process, as soon as that works; deleted at the end."""
        self.api.create("Pod", text)
        try:
            yield wait_for(lambda: next((pid for pid, owner in self.workers().items() if owner and owner[1] == name), None), f"pod {name} to work", 120)
        finally:
            self.api.delete("Pod", name)
            wait_for(lambda: not self.api.get("Pod", name), f"pod {name} to be gone", 120)

    def start_web(self):
        """Two pods of two containers each, unless they are there."""
        if not self.api.get("Deployment", "web"):
            self.api.create("Deployment", controlled("Deployment", "web", container("main", "main"), container("side", "side"), more="  replicas: 2\n"))

    def web(self):
        """PID -> owner of its processes, when all are there."""
        self.start_web()
        return wait_for(lambda: len(of := {pid: o for pid, o in self.workers().items() if o and o[1].startswith("web")}) == 4 and of, "the Deployment", 300)

    def gone(self, program):
        wait_for(lambda: f"{PREFIX}{program}" not in reports.working().values(), f"all of {program} to be gone", 120)


def rendered(of):
    """Documents of the chart, for this Kubernetes; without the Prometheus operator's, which is not there."""
    manifests.needs()
    made = manifests.CHART.render(of, kubernetes=f"v{components.VERSION}")
    return [document for document in made if not document["apiVersion"].startswith("monitoring.coreos.com")]


def values_of(agent, name):
    return values(agent.get("/metrics").text, name)


def is_ready(found):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", []))


def is_ready_agent(agent):
    with contextlib.suppress(OSError):
        return agent.get("/readyz").status == 200
    return False


def trace_of(agent, pid):
    return next((p for p in agent.get("/api/v1/trace").json()["trace"]["processes"] if p["pid"] == pid), None)


STACK = contextlib.ExitStack()
UNAVAILABLE = []
FAILED = []


@functools.cache
def cluster():
    """Of one that did not start every case says why; what it left makes a second one fail in another way."""
    if UNAVAILABLE:
        raise Skip(UNAVAILABLE[0])
    if FAILED:
        raise FAILED[0]
    try:
        return Cluster(components.Components(f"{BUILD}/real"), STACK)
    except Exception as why:
        FAILED.append(why)
        raise


def unnamed(watch):
    """What the API server, or a view, has not named yet."""
    if watch.failed:
        raise watch.failed
    owners = reports.owners(cluster().api.pods())
    strangers = [f"{p.comm} {pid}: the API server has no container {p.container}" for pid, p in watch.processes.items() if p.container not in owners]
    return strangers + [f"{p.comm} {pid}: {view} " + ("has no names of it" if told.listed_s else "does not list it")
                        for pid, p in watch.processes.items() for view, told in p.told.items() if not told.named_s]


def check_names(watch):
    """All that began to work is named in every view, and never called what it is not. (Seconds, view) of each."""
    with contextlib.suppress(AssertionError): # the next line says more
        wait_for(lambda: not unnamed(watch), "names in every view", 30)
    equal(unnamed(watch), [], "names that are missing")
    assert watch.processes, "nothing began to work"
    owners = reports.owners(cluster().api.pods())
    for pid, process in watch.processes.items():
        owner = owners[process.container]
        for view, told in process.told.items():
            # A pod may be known before its container is.
            equal(told.names - {owner, (*owner[:2], None)}, set(), f"{view}: PID {pid}, {process.comm}, of {owner}")
    return [(told.named_s - process.began_s, view) for process in watch.processes.values() for view, told in process.told.items()]


def punctual(watch):
    """Within two seconds of the program's start, and what this busy machine makes us and the agent late; the worst of all."""
    delays = check_names(watch)
    for view in reports.VIEWS:
        of = [seconds for seconds, v in delays if v == view]
        print(f"# {view}: {len(of)} processes named after {statistics.median(of):.2f} s, at most {max(of):.2f}", flush=True)
    print(f"# the machine is busy: the test is up to {watch.gap_s:.2f} s late, the agent {watch.age_s:.2f}", flush=True)
    late = [f"{seconds:.2f} s in {view}" for seconds, view in delays if seconds > WITHIN_S + watch.gap_s + watch.age_s]
    assert not late, f"{len(late)} of {len(delays)} names came late: {late[:10]}"
    return max(seconds for seconds, _ in delays)


def test_the_agent_runs_with_the_rights_that_are_documented():
    """It sees all GPUs, traces, reads names, and misses nothing."""
    there = cluster()
    agent = there.agent
    trace = wait_for(lambda: (t := agent.get("/api/v1/trace").json()["trace"]) and (t["enabled"] or t["why"]) and t, "tracing to begin")
    assert trace["enabled"], trace["why"]
    wait_for(lambda: values(agent.get("/metrics").text, "gpusonde_source_up", source="files") == [1.0], "the source of names")
    with there.pod("first", pod("first", container("main", "main"))) as pid:
        found = wait_for(lambda: (p := trace_of(agent, pid)) and p["pod"] and p, "a pod's library to be read and probed")
        equal((found["namespace"], found["pod"], found["container"]), ("default", "first", "main"))
    equal(missing(there.agent_log()), [], there.agent_log())


def test_every_kind_of_pod_is_named_within_two_seconds():
    """Deployment, StatefulSet, DaemonSet, Job, CronJob, a static pod; two containers in a pod."""
    there = cluster()
    with reports.Watch(there.agent) as watch:
        there.start_web()
        there.api.create("StatefulSet", controlled("StatefulSet", "db", container("db", "db"),
                                                       more="  serviceName: db\n  replicas: 2\n  podManagementPolicy: Parallel\n"))
        there.api.create("DaemonSet", controlled("DaemonSet", "each", container("each", "each")))
        there.api.create("Job", f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: job}}\nspec: {job_spec('job', 15)}\n")
        there.api.create("CronJob", "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: cron}\n"
                         f"spec: {{schedule: '* * * * *', jobTemplate: {{spec: {job_spec('cron', 10)}}}}}\n")
        with open(f"{node.MANIFESTS}/static.yaml", "w", encoding="ascii") as f:
            f.write(pod("static", container("static", "static")))
        there.wait_workers("main", "main", "side", "side", "db", "db", "each", "static")
        wait_for(lambda: any(p.comm == f"{PREFIX}cron" for p in watch.processes.values()), "the CronJob's next minute", 100)
        worst = punctual(watch)
        pods = {told for process in watch.processes.values() for told in process.told["/metrics"].names}
    kinds = {re.sub("-.*", "", name) for _, name, _ in pods}
    equal(kinds, {"web", "db", "each", "job", "cron", "static"}, "kinds of pods")
    there.api.delete("CronJob", "cron")
    equal([name for _, name, _ in pods if name.startswith("static")], [f"static-{node.NAME}"], "the static pod")
    by_pod = {(g["namespace"], g["pod"]): g["processes"] for g in there.agent.groups("pod") if g["pod"]}
    for name in {owner[:2] for owner in there.workers().values()}:
        equal(by_pod.get(name), 2 if "web" in name[1] else 1, f"ps --by pod: {name}")
    rows.say("kubernetes", ROW, names=f"Deployment, StatefulSet, DaemonSet, Job, CronJob, static pod, 2 containers a pod: /metrics, processes, trace, "
                                      f"ps --by pod; at most {worst:.1f} s after a program's start")


def test_calls_of_pods_are_counted():
    """Of a pod that begins when the library has its probes: every call."""
    there = cluster()
    with there.pod("counted", pod("counted", container("main", "main", COUNTED))) as pid:
        found = wait_for(lambda: (p := trace_of(there.agent, pid)) and p["pod"] and {c["api"]: c["count"] for c in p["calls"]}.items() >= CALLS.items() and p,
                         "its calls")
        equal((found["namespace"], found["pod"], found["container"]), ("default", "counted", "main"))
        page = there.agent.get("/metrics").text
        equal(sum(values(page, "gpusonde_process_cuda_launches_total", pid=str(pid), namespace="default", pod="counted", container="main")), 3, "launches")
    rows.say("kubernetes", ROW, traced=f"every one of {sum(CALLS.values())} calls of a pod that starts beside others, with its names")


def test_a_container_that_restarts_is_its_pods():
    there = cluster()
    pid, owner = next((pid, owner) for pid, owner in there.web().items() if owner[2] == "side")
    with reports.Watch(there.agent) as watch:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: owner in [o for p, o in there.workers().items() if p != pid], "the container's next process", 120)
        punctual(watch)
        named = [p for p in watch.processes.values() if owner in p.told["/metrics"].names]
        equal(len({p.container for p in named}), len(named), "a container of its own")


def names_in_views(agent, pid):
    """View -> names that it gives this PID now, if it lists it."""
    told = {view: dict(reports.rows(view, agent.get(view).text)) for view in reports.VIEWS}
    return {view: rows_of[pid] for view, rows_of in told.items() if pid in rows_of}


def test_nothing_is_said_of_who_has_the_pid_next():
    """A pod's process ends, and a process of the machine gets its PID, which uses the GPU and calls CUDA, too."""
    there = cluster()
    agent = there.agent
    with there.pod("brief", pod("brief", container("main", "main")).replace("spec: {", "spec: {restartPolicy: Never, ")) as pid:
        owner = ("default", "brief", "main")
        wait_for(lambda: names_in_views(agent, pid) == dict.fromkeys(reports.VIEWS, owner), "its names")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "its PID to be free")
        program = f"{there.node.folder}/{PREFIX}main"
        os.symlink(f"{BUILD}/sim/cuda/workload-late", program)
        os.environ["GPUSONDE_SIM_SCENARIO"] = f"{BUILD}/kube-scenario.yaml"
        sandbox.start_as(pid, program, FOR_EVER.replace("/usr/lib/", f"{BUILD}/sim/cuda/"))
        begin = reports.now()
        try:
            # What is told of the former one for a moment says that it has ended; then all views have the new one.
            wait_for(lambda: reports.now() > begin + 5 and names_in_views(agent, pid) == dict.fromkeys(reports.VIEWS, (None, None, None)),
                     "the PID's next process in all views, without names", 30)
            kept = values(agent.get("/metrics").text, "gpusonde_workload_gpu_memory_bytes", pod="brief")
            assert not any(kept), f"memory of a pod without processes: {kept}"
            assert not any(g["processes"] for g in agent.groups("pod") if g["pod"] == "brief"), "processes of a pod that has none"
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    rows.say("kubernetes", ROW, reused="another process of that PID has no pod, in any view")


def gpu_pod(name, resource, programs):
    """Runs the program of the GPU that it was given; CUDA sees that one alone, as in a container of NVIDIA's runtime."""
    choice = " ".join(f"{uuid}) exec {PREFIX}{program} \"$0\";;" for uuid, program in programs.items())
    shell = f"export CUDA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES; case $NVIDIA_VISIBLE_DEVICES in {choice} esac; exec sleep 100000000"
    return pod(name, container("cuda", "", FOR_EVER, f", resources: {{limits: {{{resource}: 1}}}}", shell))


def one(page, name, **labels):
    found = values(page, f"gpusonde_{name}", **labels)
    equal(len(found), 1, f"series {name} {labels}: {found}")
    return found[0]


def grown(pages, name, **labels):
    return one(pages[1], name, **labels) - one(pages[0], name, **labels)


def check_given(page, given):
    """@given: pod -> (UUIDs that it may have got, resource)."""
    series = [dict(reports.LABEL.findall(k)) for k in e2e.samples(page) if k.startswith("gpusonde_container_gpu_allocated{")]
    equal(sorted(labels["pod"] for labels in series), sorted(given), "pods that were given GPUs, each once")
    for labels in series:
        uuids, resource = given[labels["pod"]]
        assert labels["uuid"] in uuids, f"{labels}: not one of {uuids}"
        equal((labels["namespace"], labels["container"], labels["resource"], labels["source"]), ("default", "cuda", resource, "kubelet"), labels["pod"])
    alone = [labels["uuid"] for labels in series if given[labels["pod"]][1] == "nvidia.com/gpu"]
    equal(len(alone), len(set(alone)), "GPUs that are not shared")


def check_idle(pages):
    """Of ten seconds: one GPU was at work all the time, one never; sharers at their own rates."""
    seconds = grown(pages, "container_gpu_allocated_seconds_total", pod="idle")
    assert seconds >= 8, f"it was allocated for {seconds} s"
    equal(grown(pages, "container_gpu_idle_seconds_total", pod="idle"), seconds, "idle seconds of who does nothing")
    for name in ["busy", *[f"sharer-{s}" for s in SHARERS]]:
        equal(grown(pages, "container_gpu_idle_seconds_total", pod=name), 0, f"idle seconds of {name}")
        equal(one(pages[1], "workload_gpu_memory_bytes", pod=name), 256 << 20, f"memory of {name}")
    for name, percent in SHARERS.items():
        equal(one(pages[1], "container_gpu_slots", pod=f"sharer-{name}"), 1, f"slots of sharer-{name}")
        share = 100 * grown(pages, "workload_gpu_busy_seconds_total", pod=f"sharer-{name}") / seconds
        assert abs(share - percent) < percent / 4, f"sharer-{name} worked {share:.0f} % of the time, not {percent}"


def check_sums(page):
    """The memory that processes have and that they have not is what the GPU has."""
    for uuid in cluster().uuids:
        parts = {part: one(page, "gpu_attribution_memory_bytes", uuid=uuid, part=part) for part in ("processes", "unattributed", "overattributed")}
        equal(parts["processes"] + parts["unattributed"] - parts["overattributed"], one(page, "gpu_memory_used_bytes", uuid=uuid), f"memory of {uuid}: {parts}")
        equal(sum(values(page, "gpusonde_process_gpu_memory_bytes", uuid=uuid)), parts["processes"], f"memory of processes on {uuid}")


def test_gpus_that_pods_were_given():
    """One that works, one that does nothing and is idle, and two who share one: each has its own figures."""
    there = cluster()
    agent = there.agent
    given = {**dict.fromkeys(("busy", "idle"), (there.uuids[:2], "nvidia.com/gpu")),
             **dict.fromkeys([f"sharer-{s}" for s in SHARERS], (there.uuids[2:3], "nvidia.com/gpu.shared"))}
    with reports.Watch(agent) as watch:
        there.api.create("Pod", gpu_pod("busy", "nvidia.com/gpu", {uuid: f"own-{n}" for n, uuid in enumerate(there.uuids[:2])}))
        there.api.create("Pod", gpu_pod("idle", "nvidia.com/gpu", {}))
        for name in SHARERS:
            there.api.create("Pod", gpu_pod(f"sharer-{name}", "nvidia.com/gpu.shared", {there.uuids[2]: f"share-{name}"}))
        wait_for(lambda: {"busy", "sharer-a", "sharer-b"} <= {owner[1] for owner in there.workers().values() if owner}, "GPU pods", 120)
        wait_for(lambda: is_ready(there.api.get("Pod", "idle")), "the idle pod")
        punctual(watch)
    wait_for(lambda: len(values(agent.get("/metrics").text, "gpusonde_container_gpu_idle_seconds_total")) == len(given), "allocations")
    begin, pages = reports.now(), [agent.get("/metrics").text]
    check_given(pages[0], given)
    wait_for(lambda: reports.now() > begin + 10, "ten seconds")
    pages.append(agent.get("/metrics").text)
    check_idle(pages)
    check_sums(pages[1])
    groups = {g["pod"]: g for g in agent.groups("pod")}
    equal(groups["idle"]["processes"], 0, "ps --by pod: the idle pod")
    rows.say("kubernetes", ROW, allocated=f"from kubelet's socket: a pod that does nothing is idle all the time; {len(SHARERS)} sharers of a GPU each have "
                                          "their own memory and busy time; processes' memory and what is unattributed are the GPU's")


def test_thirty_pods_at_once():
    there = cluster()
    with reports.Watch(there.agent) as watch:
        there.api.create("Deployment", controlled("Deployment", "crowd", container("main", "crowd"), more=f"  replicas: {CROWD}\n"))
        wait_for(lambda: list(reports.working().values()).count(f"{PREFIX}crowd") == CROWD, f"{CROWD} pods", 300)
        there.wait_workers(*[comm.removeprefix(PREFIX) for comm in reports.working().values()])
        worst = punctual(watch)
        crowd = {told for p in watch.processes.values() if p.comm == f"{PREFIX}crowd" for told in p.told["/metrics"].names}
    equal(len(crowd), CROWD, "pods of their own")
    rows.say("kubernetes", ROW, crowd=f"{CROWD} pods at once: each named, at most {worst:.1f} s after its program's start, while the machine, busy "
                                      f"with starting them, was {watch.gap_s + watch.age_s:.1f} s late")


def test_what_pods_did_stays_when_they_are_deleted():
    there = cluster()
    agent = there.agent
    there.web()
    workers = {pid: owner for pid, owner in there.workers().items() if owner and owner[1].startswith(("crowd", "web"))}
    wait_for(lambda: dict(reports.rows("/metrics", agent.get("/metrics").text)).items() >= workers.items(), "the names of all")
    for name in ("crowd", "web"):
        if there.api.get("Deployment", name):
            there.api.delete("Deployment", name)
    for program in ("crowd", "main", "side"):
        there.gone(program)
    wait_for(lambda: not set(workers) & set(dict(reports.rows("/api/v1/processes", agent.get("/api/v1/processes").text))), "the processes to be gone")
    page = agent.get("/metrics").text
    equal([pid for pid in workers if values(page, "gpusonde_process_gpu_memory_bytes", pid=str(pid))], [], "processes that have ended")
    for namespace, name, of in set(workers.values()):
        kept = values(page, "gpusonde_workload_gpu_busy_seconds_total", namespace=namespace, pod=name, container=of)
        assert kept, f"nothing is left of what {name} {of} did" # a series for each ID that the container had
    assert not {g["pod"] for g in agent.groups("pod") if g["processes"]} & {name for _, name, _ in workers.values()}, "pods that are gone"


def collected(api):
    """As zxporter's collector asks: pods by their label, port 6061, 200 and a list, rows by container."""
    found = api.request("GET", "/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Dzxporter-gpu-exporter")["items"]
    rows_of = []
    for address in [p["status"]["podIP"] for p in found if p["status"].get("phase") == "Running" and is_ready(p)]:
        with contextlib.closing(http.client.HTTPConnection(address, 6061, timeout=15)) as connection:
            connection.request("GET", "/container/metrics")
            reply = connection.getresponse()
            equal((reply.status, reply.getheader("Content-Type")), (200, "application/json"), "the answer")
            rows_of += json.loads(reply.read())
    return rows_of


def test_a_rolling_update():
    """The pod is replaced, and the next one has all that the first had; now zxporter's collector finds it, too."""
    there = cluster()
    before = there.agent_pod["metadata"]["name"]
    there.deploy(config={"sample": {"period": "2s"}}, discoveryName="zxporter-gpu-exporter", containerMetrics={"compat": True})
    assert there.agent_pod["metadata"]["name"] != before, "it is the same pod"
    status = wait_for(lambda: (s := there.api.get("DaemonSet", "gpusonde", "gpusonde")["status"]).get("updatedNumberScheduled") == 1 and s, "the update")
    equal((status["numberReady"], status["desiredNumberScheduled"]), (1, 1), "pods")
    wait_for(lambda: there.agent.get("/api/v1/trace").json()["trace"]["enabled"], "tracing to begin again")
    wait_for(lambda: {row["device_uuid"] for row in collected(there.api)} == set(there.uuids), "the rows of all GPUs")
    equal({row["node_name"] for row in collected(there.api)}, {node.NAME}, "the node")


ROW = f"Kubernetes {components.VERSION}, containerd, cgroup v1"


def main():
    """Of this file's cases, and of another's that has the same node."""
    try:
        sandbox.needs()
        components.Components(f"{BUILD}/real") # downloads are the machine's, before we have a network of our own
        sandbox.enter()
    except (Skip, fetch.Unavailable) as why:
        UNAVAILABLE.append(str(why))
    with STACK:
        run()


if __name__ == "__main__":
    sys.exit(main())
