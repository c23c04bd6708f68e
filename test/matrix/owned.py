#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that real runtimes and batch systems start: told with their container or job. HTCondor is not in Debian 12; LSF and PBS Pro are not free to install.

    owned.py BUILD SOURCE [WORD OF A NAME...]
"""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from lib.e2e import PATIENCE_S, Agent, Skip, Worker, alive, equal, run, wait_for


def need(*programs):
    missing = [p for p in programs if not shutil.which(p, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if missing:
        raise Skip(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise Skip("containers and jobs are started as root")


def rows(agent):
    return agent.get("/api/v1/processes").json()["processes"]


def found(agent, condition):
    """The process on the GPU, when what is asked for is known of it."""
    begin = time.monotonic()
    row = wait_for(lambda: next((p for p in rows(agent) if condition(p)), None), "the process and whose it is")
    print(f"# known after {time.monotonic() - begin:.1f} s", flush=True)
    return row


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="gs-", ignore_cleanup_errors=True) as tmp: # Podman takes 50 characters
        os.chmod(tmp, 0o755)
        yield tmp


def image(tmp, worker):
    """A root folder with the worker's program and what it is linked to."""
    root = f"{tmp}/image"
    linked = subprocess.run(["ldd", worker.path], capture_output=True, text=True, check=True).stdout
    for path in [worker.path] + re.findall(r"(/\S+) \(0x", linked):
        to = root + (f"/{os.path.basename(path)}" if path == worker.path else path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(path, to)
    for name in "proc", "dev", "sys":
        os.makedirs(f"{root}/{name}", exist_ok=True)
    return root


# ---- runc ----

def test_runc():
    need("runc")
    with folder() as tmp:
        worker, name = Worker(tmp), os.urandom(32).hex()
        root = image(tmp, worker)
        runc = ["runc", "--root", f"{tmp}/runc"]
        subprocess.run([*runc, "spec"], cwd=tmp, check=True)
        with open(f"{tmp}/config.json", encoding="utf-8") as f:
            config = json.load(f)
        config["root"]["path"] = root
        config["process"].update(args=[f"/{worker.comm}", "1000"], terminal=False, rlimits=[])
        with open(f"{tmp}/config.json", "w", encoding="utf-8") as f:
            json.dump(config, f)
        with subprocess.Popen([*runc, "run", name], cwd=tmp, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                with Agent("--workload-root", tmp, scenario=worker.scenario()) as agent:
                    row = found(agent, lambda p: p["container_id"])
                    equal((row["container_id"], row["ns_pid"]), (name, 1))
            finally:
                subprocess.run([*runc, "kill", name, "KILL"], check=False, capture_output=True)
                process.wait(PATIENCE_S)


# ---- Podman ----

def test_podman():
    need("podman", "runc", "conmon")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with folder() as tmp:
        worker = Worker(tmp)
        podman = ["podman", "--root", f"{tmp}/host/var/lib/containers/storage", "--runroot", f"{tmp}/run", "--cgroup-manager", "cgroupfs",
                  "--events-backend", "none", "--storage-driver", "overlay", "--runtime", "runc"]
        started = subprocess.run([*podman, "run", "-d", "--net", "none", "--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=1000:1000", "--name", "trainer",
                                  "--rootfs", image(tmp, worker), f"/{worker.comm}", "1000"], capture_output=True, text=True, check=False)
        try:
            if started.returncode != 0:
                raise Skip(f"podman starts no container here: {started.stderr.strip().splitlines()[-1]}")
            with Agent("--workload-root", f"{tmp}/host", scenario=worker.scenario()) as agent:
                row = found(agent, lambda p: p["container"])
                equal((row["container_id"], row["container"], row["ns_pid"]), (started.stdout.split()[-1], "trainer", 1))
        finally:
            subprocess.run([*podman, "rm", "-f", "-t", "0", "trainer"], check=False, capture_output=True)
            for mount in open("/proc/mounts", encoding="utf-8").read().split("\n")[::-1]: # pylint: disable=consider-using-with
                if f" {tmp}/" in mount:
                    subprocess.run(["umount", "-l", mount.split()[1]], check=False)


# ---- Slurm ----

SLURM = """
ClusterName=gpusonde
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={tmp}/munge.sock
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={tmp}/controller
SlurmdSpoolDir={tmp}/node
SlurmctldPidFile={tmp}/slurmctld.pid
SlurmdPidFile={tmp}/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmctldLogFile={tmp}/slurmctld.log
SlurmdLogFile={tmp}/slurmd.log
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN Gres=gpu:2
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
CGROUPS = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainDevices=no\nConstrainCores=no\nConstrainRAMSpace=no\n"


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def started(tmp, *args):
    done = subprocess.run(args, capture_output=True, text=True, check=False, env=dict(os.environ, SLURM_CONF=f"{tmp}/slurm.conf"), timeout=PATIENCE_S)
    if done.returncode != 0:
        raise Skip(f"{args[0]} does not start here: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@contextlib.contextmanager
def slurm(tmp):
    """A cluster of this machine alone, with two GPUs that are device nodes of nothing."""
    need("slurmctld", "slurmd", "sbatch", "munged")
    if not os.path.exists("/sys/fs/cgroup/freezer/cgroup.procs"):
        raise Skip("Slurm 22.05 tracks jobs by the freezer of cgroup v1 where there is no systemd")
    host = socket.gethostname().split(".")[0]
    os.mkdir(f"{tmp}/controller")
    os.mkdir(f"{tmp}/node")
    for name, text in (("slurm.conf", SLURM.format(tmp=tmp, host=host, ports=free_ports(2), cpus=os.cpu_count())), ("cgroup.conf", CGROUPS),
                       ("gres.conf", f"NodeName={host} Name=gpu File=/dev/null,/dev/zero\n")):
        with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    with open(f"{tmp}/munge.key", "wb") as f:
        os.chmod(f.name, 0o400)
        f.write(os.urandom(1024))
    try:
        started(tmp, "munged", "--force", f"--key-file={tmp}/munge.key", f"--socket={tmp}/munge.sock", f"--pid-file={tmp}/munged.pid", f"--log-file={tmp}/munged.log",
                f"--seed-file={tmp}/seed")
        started(tmp, "slurmctld", "-c")
        started(tmp, "slurmd")
        wait_for(lambda: "idle" in started(tmp, "sinfo", "-h", "-o", "%t"), "Slurm's node to be idle")
        yield
    finally:
        for name in "slurmd", "slurmctld", "munged":
            with contextlib.suppress(OSError, ValueError):
                pid = int(open(f"{tmp}/{name}.pid", encoding="ascii").read()) # pylint: disable=consider-using-with
                os.kill(pid, signal.SIGTERM)
                wait_for(lambda p=pid: not alive(p), f"{name} to end")


def test_slurm():
    with folder() as tmp, slurm(tmp):
        worker = Worker(tmp)
        with open(f"{tmp}/job.sh", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nsrun --ntasks=1 --gres=gpu:1 {worker.path} 1000\n")
        job = re.search(r"\d+", started(tmp, "sbatch", "-J", "train llm", "--gres=gpu:1", "-o", f"{tmp}/out", f"{tmp}/job.sh"))[0]
        try:
            with Agent(scenario=worker.scenario()) as agent:
                row = found(agent, lambda p: p["batch_job"] and p["batch_job"]["name"])
                equal(row["batch_job"], {"manager": "slurm", "id": job, "step": "0", "name": "train llm", "user": "root", "claimed": False,
                                         "name_claimed": True})
                equal((row["job"], row["rank"], row["local_rank"], row["world_size"]), (job, 0, 0, 1))
                given = wait_for(lambda: agent.get("/api/v1/processes").json()["allocations"], "what the job was given")
                equal([(a["job"], a["gpu"], a["claimed"]) for a in given], [(job, 0, True)])
        finally:
            started(tmp, "scancel", job)
            wait_for(lambda: not started(tmp, "squeue", "-h"), "the job to end")


run()
