# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks of tracing."""
import json
import os
import shutil
import statistics
import subprocess

from lib import fetch

from common import BUILD, Skip

SIM = os.path.abspath(f"{BUILD}/sim/cuda")
TRACEFS = "/sys/kernel/tracing"


def need_tracing():
    if os.geteuid() != 0:
        raise Skip("probes need root: sudo make bench")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("this kernel has no BTF (/sys/kernel/btf/vmlinux)")
    if not os.path.exists(f"{TRACEFS}/uprobe_events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=False, stderr=subprocess.DEVNULL)


def real_driver():
    """The path of NVIDIA's libcuda 550."""
    try:
        return fetch.get("driver-550-" + ("arm64" if os.uname().machine == "aarch64" else "amd64"), f"{BUILD}/real")["libcuda.so.1"]
    except fetch.Unavailable as why:
        raise Skip(f"NVIDIA's libcuda 550 is not available: {why}") from None


def unwatched(path, folder, name):
    """A copy that other tracers on this machine do not recognise as CUDA."""
    return shutil.copy(path, f"{folder}/{name}")


def output_of(*command, timeout_s=300):
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def ratio(over, under):
    """The median of the rounds' ratios of two lists that were measured in turns."""
    return statistics.median(a / b for a, b in zip(over, under))


def sim_env(**extra):
    """For programs on the simulated CUDA, also on a copy of it, whose calls take no time."""
    return dict(os.environ, **{"LD_LIBRARY_PATH": SIM, "GPUSONDE_SIM_CUDA_KERNEL_US": "0",
                               "GPUSONDE_SIM_SCENARIO": os.path.abspath("sim/scenarios/node-8xh100.yaml")}, **extra)
