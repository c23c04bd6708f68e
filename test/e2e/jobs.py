#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose job a process on a GPU is: its cgroup and its environment, in every view. Made like those of batch systems; test/matrix has real ones."""
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile

from e2e.fake_kube import Api, Server
from lib.cgroups import cgroup, enter
from lib.e2e import BUILD, Agent, Skip, Worker, contains, equal, run, values, wait_for

SLURM = {"SLURM_JOB_ID": "42", "SLURM_JOB_NAME": 'train "llm"\n\x1b[31m', "SLURM_JOB_USER": "alice", "SLURM_STEP_ID": "1", "SLURM_PROCID": "3", "SLURM_NTASKS": "8",
         "SLURM_LOCALID": "1"}


@contextlib.contextmanager
def node(path, env, *flags):
    """An agent, and one process on GPU 0 with this environment and in this cgroup, if any."""
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        folder = stack.enter_context(cgroup(path)) if path else None
        worker = stack.enter_context(Worker(tmp, env=dict(env, PATH="/bin")))
        if folder:
            enter(folder, worker.pid)
        with Agent("--workload-root", tmp, *flags, scenario=worker.scenario()) as agent:
            agent.root = tmp
            yield agent, worker


def process(agent, pid):
    listed = agent.get("/api/v1/processes").json()["processes"]
    return next((p for p in listed if p["pid"] == pid), None)


def known(agent, pid, member="batch_job"):
    """The process, when its environment has been read."""
    return wait_for(lambda: (p := process(agent, pid)) and p[member] is not None and p, f"the process's {member}")


def named(agent, pid):
    return wait_for(lambda: (p := process(agent, pid)) and p["batch_job"] and p["batch_job"]["name"] and p, "the name of the process's job")


def test_a_job_of_slurm_has_its_name():
    with node("slurm/uid_1000/job_42/step_0/task_0", SLURM) as (agent, worker):
        found = named(agent, worker.pid)
        equal(found["batch_job"], {"manager": "slurm", "id": "42", "step": "0", "name": SLURM["SLURM_JOB_NAME"], "user": "alice", "claimed": False,
                                   "name_claimed": True})
        equal((found["job"], found["rank"], found["local_rank"], found["world_size"]), ("42", 3, 1, 8))
        metrics = agent.metrics()
        contains(metrics, r'gpusonde_job_info{job="42",job_name="train \"llm\"\n\\x1b[31m",job_user="alice",claimed="true"} 1')
        contains(metrics, f'gpusonde_job_info{{job="42",job_uid="{os.getuid()}",claimed="false"}} 1')
        # What a process says is on no series of figures.
        equal([line for line in metrics.splitlines() if "job_name" in line and "gpusonde_job_info{" not in line], [])
        assert "\x1b" not in metrics + agent.get("/metrics/dcgm").text + agent.get("/api/v1/processes").text, "a terminal is not written to by a job's name"
        table = agent.cli("ps").stdout
        contains(table, 'job 42.0 (claimed: train "llm"')
        contains(table, "3/8")
        assert "\x1b[31m" not in table, "a terminal is not written to by a job's name"
        # A job is told with what its ended processes did.
        worker.end()
        wait_for(lambda: not process(agent, worker.pid), "the process to be gone")
        group, = json.loads(agent.cli("ps", "--by", "job", "--json").stdout)["groups"]
        equal((group["job"], group["job_name"], group["processes"], group["processes_exited"], group["claimed"], group["name_claimed"], group["uid"]),
              ("42", SLURM["SLURM_JOB_NAME"], 0, 1, False, True, os.getuid()))
        assert group["busy_seconds_total"] > 0


def test_what_a_process_says_does_not_replace_its_cgroup():
    with node("slurm/uid_1000/job_17/step_0", SLURM) as (agent, worker):
        found = wait_for(lambda: (p := process(agent, worker.pid)) and p["rank"] == 3 and p, "the environment")
        equal((found["job"], found["batch_job"]["id"], found["batch_job"]["name"], found["batch_job"]["claimed"]), ("17", "17", None, False))


def test_without_a_cgroup_a_job_is_claimed():
    with node(None, {"PBS_JOBID": "7.server", "PBS_JOBNAME": "fft", "LOGNAME": "bob"}) as (agent, worker):
        found = known(agent, worker.pid)
        equal(found["batch_job"], {"manager": "pbs", "id": "7.server", "step": None, "name": "fft", "user": "bob", "claimed": True, "name_claimed": True})
        equal(found["job"], None)
        equal([p["pid"] for p in json.loads(agent.cli("ps", "--json", "--job", "claimed:7.server").stdout)["processes"]], [worker.pid])
        of_the_job = agent.cli("ps", "--job", "7.server")
        contains(of_the_job.stdout, "No GPU processes that match")
        contains(of_the_job.stderr, "1 left out that only claims to be of job 7.server: --job claimed:7.server shows them")
        contains(agent.cli("ps").stdout, "claimed job 7.server fft")
        contains(agent.cli("ps", "--by", "job").stdout, "\nclaimed 7.server")
        equal(values(agent.metrics(), "gpusonde_workload_gpu_busy_seconds_total", job="7.server"), [])


def test_who_claims_to_be_of_a_job_is_told_apart_from_it():
    """In every view alike: one process is in the job's cgroup, and another one's environment alone says that it is of that job."""
    with tempfile.TemporaryDirectory() as tmp, cgroup("slurm/uid_1000/job_42/step_0") as inside, Worker(tmp, env=dict(SLURM, PATH="/bin")) as own, \
            Worker(tmp, env=dict(SLURM, SLURM_JOB_NAME="mine too", PATH="/bin")) as claimant:
        enter(inside, own.pid)
        also = f"  - {{name: claimant, match: {claimant.comm}, gpus: 1, memory: 3GiB, load: {{gpu: 10}}}}\n"
        with Agent(scenario=own.scenario() + also) as agent:
            named(agent, own.pid)
            named(agent, claimant.pid)
            groups = json.loads(agent.cli("ps", "--by", "job", "--json").stdout)["groups"]
            equal(sorted((g["job"], g["claimed"], g["processes"], g["job_name"]) for g in groups),
                  [("42", False, 1, SLURM["SLURM_JOB_NAME"]), ("42", True, 1, "mine too")])
            job, = (g for g in groups if not g["claimed"])
            equal(values(agent.metrics(), "gpusonde_workload_gpu_memory_bytes", job="42"), [job["memory_bytes"]])
            equal([p["pid"] for p in json.loads(agent.cli("ps", "--job", "42", "--json").stdout)["processes"]], [own.pid])
            equal([p["pid"] for p in json.loads(agent.cli("ps", "--job", "claimed:42", "--json").stdout)["processes"]], [claimant.pid])
            contains(agent.cli("ps", "--by", "job").stdout, "\nclaimed 42 ")


def test_a_slot_of_htcondor_gets_its_job():
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        with open(f"{scratch}/.job.ad", "w", encoding="utf-8") as f:
            f.write('ClusterId = 17\nProcId = 2\nOwner = "carol"\nCmd = "/home/carol/train.sh"\n')
        with node("htcondor/condor_var_lib_condor_execute_slot1_2@n7", {"_CONDOR_JOB_AD": f"{scratch}/.job.ad"}) as (agent, worker):
            found = named(agent, worker.pid)
            equal(found["batch_job"], {"manager": "htcondor", "id": "17.2", "step": None, "name": "train.sh", "user": "carol", "claimed": True,
                                       "name_claimed": True})
            equal(found["job"], "slot1_2@n7")


def test_a_run_is_told_by_the_variables_that_are_asked_for():
    with node(None, {"WANDB_RUN_ID": "r-17", "GROUP": "sweep"}, "--workload-run", "WANDB_RUN_ID", "--workload-group", "GROUP") as (agent, worker):
        found = known(agent, worker.pid, "run")
        equal((found["run"], found["run_group"], found["batch_job"]), ("r-17", "sweep", None))
        contains(agent.cli("ps").stdout, "sweep/r-17")


def test_environments_can_be_left_alone():
    with node("slurm/uid_1000/job_42/step_0", SLURM, "--workload-jobs", "false") as (agent, worker):
        found = known(agent, worker.pid)
        equal((found["batch_job"]["id"], found["batch_job"]["step"], found["batch_job"]["name"]), ("42", "0", None))
        equal(found["rank"], None)


def test_a_prologs_folder_says_which_job_has_which_gpu():
    with node(None, {}, "--workload-job-dir", "/run/jobs") as (agent, _):
        os.makedirs(f"{agent.root}/run/jobs")
        with open(f"{agent.root}/run/jobs/1", "w", encoding="utf-8") as f:
            f.write('99\n"7"\n')
        given = wait_for(lambda: agent.get("/api/v1/processes").json()["allocations"], "the jobs' GPUs", 30)
        equal(sorted((a["job"], a["gpu"]) for a in given), [('"7"', 1), ("99", 1)])
        contains(agent.metrics(), 'job="99"')


USER = 12345


@contextlib.contextmanager
def withholding(tmp):
    """A process of USER whose job's file is in a file system that it serves itself, and that never answers."""
    device, program = f"{tmp}/fuse", shutil.copy(f"{BUILD}/test/e2e/withhold", f"{tmp}/withhold")
    library = shutil.copy("/etc/passwd", f"{tmp}/file")
    os.chmod(tmp, 0o755)
    os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(10, 229))
    os.chmod(device, 0o666)
    with subprocess.Popen([program, "open", device, library, "300"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=USER, group=USER,
                          extra_groups=[], start_new_session=True, env={"_CONDOR_JOB_AD": "libcuda.so.1"}) as process_:
        try:
            if not process_.stdout.readline():
                raise Skip(f"an ordinary user cannot mount FUSE here: {process_.stderr.read()}")
            yield process_.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process_.pid, signal.SIGKILL)


def test_a_file_that_is_withheld_holds_up_nobody():
    if os.geteuid() != 0:
        raise Skip("other users' environments need root")
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory() as theirs, withholding(theirs) as pid, \
            Worker(tmp, env={"SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "other", "PATH": "/bin"}) as worker:
        scenario = worker.scenario() + "  - {name: withhold, match: withhold, gpus: 0, memory: 1GiB, load: {gpu: 10}}\n"
        with Agent(scenario=scenario) as agent:
            contains(wait_for(lambda: "hung" in agent.log() and agent.log(), "the helper to hang"), "reading environments")
            equal(named(agent, worker.pid)["batch_job"]["name"], "other")
            equal(process(agent, pid)["batch_job"], None)
            begin = readings(agent)
            wait_for(lambda: readings(agent) >= begin + 3, "the agent to go on", 10)


def readings(agent):
    return sum(values(agent.metrics(), "gpusonde_collections_total"))


def test_a_pods_run():
    """Its label names the run, before its process does; the group, of which the pod says nothing, is the process's word."""
    container, uid = "c5" * 32, "0a0a0a0a-1111-2222-3333-444444444444"
    api = Api()
    api.put({"metadata": {"uid": uid, "name": "train-0", "namespace": "ml", "labels": {"job-name": "llm-7b"}, "annotations": {"sweep": "s-1"}},
             "spec": {"nodeName": "node-1"}, "status": {"phase": "Running", "containerStatuses": [{"name": "main", "containerID": f"containerd://{container}"}]}})
    server = Server(api)
    flags = ["--kube-server", f"http://127.0.0.1:{server.port}", "--kube-node", "node-1", "--workload-run", "RUN", "--workload-group", "GROUP"]
    own, path = {"RUN": "mine", "GROUP": "ours"}, f"kubepods/pod{uid}/{container}"
    try:
        for pod_flags, wanted in ((["--workload-pod-run", "label:job-name"], ("llm-7b", "ours", True)),
                                  (["--workload-pod-run", "job-name", "--workload-pod-group", "annotation:sweep"], ("llm-7b", "s-1", False)),
                                  (["--workload-pod-run", "annotation:job-name"], ("mine", "ours", True))):
            with node(path, own, *flags, *pod_flags) as (agent, worker):
                wait_for(lambda: (p := process(agent, worker.pid)) and (p["run"], p["run_group"], p["run_claimed"]) == wanted, f"run and group {wanted}") # noqa: B023
                run_name, group, claimed = wanted
                contains(agent.cli("ps").stdout, f"{group}/{run_name}")
                info = [line for line in agent.metrics().splitlines() if line.startswith("gpusonde_pod_run_info{")]
                of_pod = 'namespace="ml",pod="train-0",run="llm-7b"'
                # What a process says is on no series.
                equal(info, [] if run_name == "mine" else [f'gpusonde_pod_run_info{{{of_pod}' + ('' if claimed else ',run_group="s-1"') + '} 1'])
    finally:
        server.stop()
    with node(None, own, "--workload-pod-run", "label:x") as (agent, worker):
        contains(agent.log(), "workload.pod_run and workload.pod_group have no effect: the Kubernetes API is not asked")


run()
