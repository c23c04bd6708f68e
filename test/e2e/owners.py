#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of containers and pods, as kubelet's and Docker's files tell them, in every view; processes lie in cgroups made like theirs."""
import contextlib
import json
import os
import signal
import tempfile
import time

from lib.cgroups import CGROUPS, cgroup, enter, remove
from lib.e2e import Agent, Worker, children, comm, contains, equal, run, values, wait_for
from lib.traced import SCENARIO, Workload, begun, probed_when_loaded, process_of

POD_UID = "11111111-2222-3333-4444-555555555555"
CONTAINER = "a5" * 32
OTHER = "b6" * 32
USERS = "user.slice/user-1000.slice/user@1000.service"


def touch(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


@contextlib.contextmanager
def node(path, *flags):
    """An agent on a node whose files are below agent.root, and one process on GPU 0, in that cgroup."""
    with tempfile.TemporaryDirectory() as tmp, cgroup(path) as folder, Worker(tmp) as worker:
        enter(folder, worker.pid)
        with Agent("--workload-root", tmp, *flags, scenario=worker.scenario(), tmp=None) as agent:
            agent.root = tmp
            yield agent, worker


def process(agent, pid):
    listed = agent.get("/api/v1/processes").json()["processes"]
    return next((p for p in listed if p["pid"] == pid), None)


def wait_for_readings(agent, more):
    begin = sum(values(agent.metrics(), "gpusonde_collections_total"))
    wait_for(lambda: sum(values(agent.metrics(), "gpusonde_collections_total")) > begin + more, "some readings", 30)


def named(agent, pid):
    return wait_for(lambda: (p := process(agent, pid)) and (p["pod"] or p["container"]) and p, "the names of the process's container")


def helper(agent):
    return next((pid for pid in children(agent.process.pid) if comm(pid) == "gpusonde-owners"), None)


def test_a_pod_is_named_within_two_seconds_of_its_log():
    with node(f"kubepods/burstable/pod{POD_UID}/{CONTAINER}") as (agent, worker):
        found = wait_for(lambda: process(agent, worker.pid), "the process")
        equal((found["container_id"], found["pod_uid"], found["pod"]), (CONTAINER, POD_UID, None))
        # The helper has its first answer, which has no names.
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [1.0], "the source of names")
        touch(f"{agent.root}/var/log/containers/train-0_ml_main-{CONTAINER}.log")
        begin = time.monotonic()
        found = named(agent, worker.pid)
        equal((found["namespace"], found["pod"], found["container"]), ("ml", "train-0", "main"))
        assert time.monotonic() - begin < 10, "names are asked for every second while one is missing" # 2 s; machines of tests are busy
        page = agent.metrics()
        labels = {"namespace": "ml", "pod": "train-0", "container": "main"}
        equal(len(values(page, "gpusonde_process_gpu_memory_bytes", pid=str(worker.pid), **labels)), 1)
        equal(len(values(page, "gpusonde_workload_gpu_memory_bytes", pod_uid=POD_UID, **labels)), 1)
        contains(agent.cli("ps").stdout, "pod ml/train-0 main")
        # What it did stays its pod's, though its process has ended and kubelet has removed its files.
        worker.end()
        os.unlink(f"{agent.root}/var/log/containers/train-0_ml_main-{CONTAINER}.log")
        wait_for(lambda: not process(agent, worker.pid), "the process to be gone")
        asked = time.monotonic()
        wait_for(lambda: time.monotonic() > asked + 12, "another question for names", 30)
        equal(len(values(agent.metrics(), "gpusonde_workload_gpu_busy_seconds_total", pod_uid=POD_UID, **labels)), 1)


def test_a_pods_folder_names_it_where_there_is_no_link():
    with node(f"kubepods/pod{POD_UID}/{CONTAINER}") as (agent, worker):
        os.makedirs(f"{agent.root}/var/log/pods/ml_train-0_{POD_UID}/main")
        found = named(agent, worker.pid)
        equal((found["namespace"], found["pod"], found["container"]), ("ml", "train-0", None))


def test_a_static_pod_is_one_pod():
    """Its cgroup and its folder have the hash of its manifest in the place of a UID."""
    hashed = "0123456789abcdef" * 2
    with node(f"kubepods/burstable/pod{hashed}/{CONTAINER}") as (agent, worker):
        os.makedirs(f"{agent.root}/var/log/pods/kube-system_trainer-node1_{hashed}/main")
        found = named(agent, worker.pid)
        equal((found["namespace"], found["pod"], found["pod_uid"]), ("kube-system", "trainer-node1", hashed))
        touch(f"{agent.root}/var/log/containers/trainer-node1_kube-system_main-{CONTAINER}.log")
        wait_for(lambda: process(agent, worker.pid)["container"] == "main", "the container's name")
        group, = ps(agent, "--by", "pod")["groups"]
        equal((group["pod"], group["pod_uid"], group["processes"]), ("trainer-node1", hashed, 1))


def test_a_process_that_leaves_its_cgroup_stays_in_its_pod():
    with node(f"kubepods/burstable/pod{POD_UID}/{CONTAINER}") as (agent, worker):
        wait_for(lambda: (p := process(agent, worker.pid)) and p["container_id"] == CONTAINER, "the process in its container")
        root = next(c for c in CGROUPS if os.path.exists(f"{c}/cgroup.procs"))
        enter(root, worker.pid)
        wait_for_readings(agent, 12) # its identity is looked at again after ten seconds
        equal(process(agent, worker.pid)["container_id"], CONTAINER)


def test_a_container_of_docker_is_named():
    with node(f"docker/{OTHER}") as (agent, worker):
        touch(f"{agent.root}/var/lib/docker/containers/{OTHER}/config.v2.json", json.dumps({"ID": OTHER, "Name": "/trainer"}))
        found = named(agent, worker.pid)
        equal((found["container_id"], found["namespace"], found["pod"], found["container"]), (OTHER, None, None, "trainer"))
        contains(agent.cli("ps").stdout, "container trainer")


def test_hostile_names_are_escaped():
    name = 'x"} 1\n# EOF\n\x1b[31m\\'
    with node(f"docker/{OTHER}") as (agent, worker):
        touch(f"{agent.root}/var/lib/docker/containers/{OTHER}/config.v2.json", json.dumps({"ID": OTHER, "Name": name}))
        equal(named(agent, worker.pid)["container"], name)
        contains(agent.metrics(), r'container="x\"} 1\n# EOF')
        assert "\x1b[31m" not in agent.cli("ps").stdout, "a terminal is not written to by a container's name"


def test_a_user_cannot_pose_as_a_pod():
    """A user names cgroups below its own service manager as it likes: that container is its own, and no pod's."""
    pod = POD_UID.replace("-", "_")
    with node(f"{USERS}/kubepods.slice/kubepods-pod{pod}.slice/docker-{CONTAINER}.scope") as (agent, worker):
        touch(f"{agent.root}/var/log/containers/train-0_ml_main-{CONTAINER}.log")
        touch(f"{agent.root}/var/lib/docker/containers/{CONTAINER}/config.v2.json", json.dumps({"ID": CONTAINER, "Name": "/trainer"}))
        found = wait_for(lambda: process(agent, worker.pid), "the process")
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [1.0], "the source of names")
        wait_for_readings(agent, 3)
        found = process(agent, worker.pid)
        equal((found["container_id"], found["pod_uid"], found["pod"], found["container"]), (f"user@1000.service/{CONTAINER}", None, None, None))
        equal(values(agent.metrics(), "gpusonde_workload_gpu_memory_bytes", pod="train-0"), [])
        contains(agent.cli("ps").stdout, "container user@1000.service/")


def test_a_user_leaves_places_to_others():
    """Of 16 workloads one user has two; another of the user's is named when one has ended, and a pod always."""
    names = ["a.service", "b.service", "c.service"]
    with tempfile.TemporaryDirectory() as tmp, cgroup(USERS) as users, contextlib.ExitStack() as stack:
        workers = []
        for name in names:
            os.mkdir(f"{users}/{name}")
            stack.callback(remove, f"{users}/{name}")
        for name in names:
            workers.append(stack.enter_context(Worker(tmp)))
            enter(f"{users}/{name}", workers[-1].pid)
        with Agent("--workload-root", tmp, "--workload-max", "16", scenario=workers[0].scenario(*workers[1:]), tmp=None) as agent:
            def units():
                return {p["pid"]: p["unit"] for p in agent.get("/api/v1/processes").json()["processes"]}

            found = wait_for(lambda: len(u := units()) == 3 and u, "the processes")
            equal(sorted(filter(None, found.values())), sorted(f"user@1000.service/{names[workers.index(w)]}" for w in workers if found[w.pid]))
            waiting, = (w for w in workers if not found[w.pid])
            page = agent.metrics()
            equal(values(page, "gpusonde_dropped_total", kind="user_workloads"), [1.0])
            equal(values(page, "gpusonde_dropped_total", kind="workloads"), [0.0])
            contains(agent.log(), "user 1000 has most, 2")
            contains(agent.cli("doctor").stdout, "1 time a workload of a user's own cgroups had to be added")
            next(w for w in workers if w is not waiting).end()
            wait_for(lambda: units()[waiting.pid] == f"user@1000.service/{names[workers.index(waiting)]}", "a place", 40)


def ps(agent, *flags):
    done = agent.cli("ps", "--json", *flags)
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def test_ps_selects_and_adds_up():
    with node(f"kubepods/burstable/pod{POD_UID}/{CONTAINER}") as (agent, worker):
        touch(f"{agent.root}/var/log/containers/train-0_ml_main-{CONTAINER}.log")
        named(agent, worker.pid)
        for flags in (["--pod", "train-0"], ["--pod", "ml/train-0"], ["--pod", POD_UID], ["--container", "main"], ["--container", CONTAINER[:12]],
                      ["--user", "root"], ["--user", "0", "--gpu", "0"]):
            equal([p["pid"] for p in ps(agent, *flags)["processes"]], [worker.pid], flags)
        for flags in (["--pod", "train-1"], ["--pod", "other/train-0"], ["--user", "65534"], ["--gpu", "1"], ["--job", "1"]):
            equal(ps(agent, *flags)["processes"], [], flags)
            contains(agent.cli("ps", *flags).stdout, "No GPU processes that match.")
        document = ps(agent, "--by", "pod")
        equal(document["by"], "pod")
        group, = document["groups"]
        equal((group["namespace"], group["pod"], group["pod_uid"], group["processes"], group["gpus"]), ("ml", "train-0", POD_UID, 1, [0]))
        equal(group["memory_bytes"], 2**30)
        contains(agent.cli("ps", "--by", "container").stdout, "ml/train-0 main")
        for flags, words in ((["--by", "cgroup"], "it must be container, pod, job or user"), (["--sort", "name"], 'nothing here has a field "name"'),
                             (["--user", "nobody-here"], "knows no user of that name"), (["--by", "pod", "--sort", "busy"], "leave --sort out"), (["--by", "pod", "--last", "1m"], "leave one of them out"),
                             (["--last", "1m", "--sort", "sm"], "leave one of them out")):
            done = agent.cli("ps", *flags)
            equal((done.returncode, done.stdout), (2, ""), flags)
            contains(done.stderr, words)


def test_names_survive_their_helper():
    with node(f"docker/{OTHER}") as (agent, worker):
        touch(f"{agent.root}/var/lib/docker/containers/{OTHER}/config.v2.json", json.dumps({"ID": OTHER, "Name": "/trainer"}))
        named(agent, worker.pid)
        first = helper(agent)
        os.kill(first, signal.SIGKILL)
        equal(process(agent, worker.pid)["container"], "trainer")
        wait_for(lambda: helper(agent) not in (None, first), "another helper", 30)
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [1.0], "the source of names")
        equal(process(agent, worker.pid)["container"], "trainer")
        contains(agent.log(), "the process that reads them, gpusonde-owners, ended")
        contains(agent.log(), "names of containers are read again")


def test_what_cannot_be_read_is_said():
    with node(f"docker/{OTHER}") as (agent, _):
        touch(f"{agent.root}/var/lib/docker/containers", "no folder")
        wait_for(lambda: values(agent.metrics(), "gpusonde_source_up", source="files") == [0.0], "the source of names to be down", 30)
        contains(agent.log(), "names of containers: /var/lib/docker/containers: Not a directory")
        contains(agent.cli("doctor").stdout, "the agent cannot read all names of pods and containers")


def test_traced_programs_are_of_their_pods():
    with tempfile.TemporaryDirectory() as tmp, cgroup(f"kubepods/pod{POD_UID}/{CONTAINER}") as folder, \
            Agent("--workload-root", tmp, "--trace-enabled", "yes", scenario=SCENARIO) as agent:
        begun(agent)
        touch(f"{tmp}/var/log/containers/train-0_ml_main-{CONTAINER}.log")
        with Workload(agent, "api driver; init; alloc 4096; pause") as workload:
            enter(folder, workload.process.pid)
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            found = wait_for(lambda: (p := process_of(agent, workload.process.pid)) and p["pod"] and p, "the traced program's pod")
            equal((found["namespace"], found["pod"], found["container"], found["container_id"], found["pod_uid"]),
                  ("ml", "train-0", "main", CONTAINER, POD_UID))
            page = agent.metrics()
            equal(sum(values(page, "gpusonde_process_cuda_allocations_total", pid=str(workload.process.pid), namespace="ml", pod="train-0",
                             container="main")), 1)


def test_names_can_be_left_out():
    with node(f"docker/{OTHER}", "--workload-names", "false") as (agent, worker):
        wait_for(lambda: process(agent, worker.pid), "the process")
        equal(helper(agent), None)
        contains(agent.cli("ps", "--pod", "train-0").stderr, "names of pods and containers are not known here")
        contains(agent.cli("ps", "--json", "--container", "x").stderr, "names of pods and containers are not known here")
        equal(values(agent.metrics(), "gpusonde_source_up", source="files"), [])


run()
