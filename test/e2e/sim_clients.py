#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other people's programs on the simulated driver: they must not be able to tell.

Each comes from where its users get it: PyPI (into a virtual environment in the user's cache), Debian (unpacked there, not
installed). What cannot be had is skipped, loudly. ATOPGPUD names the Python atopgpud of the atop project, where there is one.
"""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

from lib.e2e import BUILD, PATIENCE_S, SOURCE, Skip, contains, environment, equal, run, wait_for

PACKAGES = ["nvidia-ml-py==12.575.51", "gpustat==1.1.1", "nvitop==1.5.3"]
# A process of this machine that works on the GPU, for programs that look up whatever NVML lists.
WITH_SLEEP = """
gpus: [{model: h100-sxm, mig: [3g.40gb]}, {model: l4}]
processes:
  - {name: sleep, match: gs-sleep*, gpus: 1, memory: 6GiB, load: {gpu: 60, memory: 20}}
  - {name: sleep, match: gs-sleep*, gpus: 0, instance: 0, memory: 9GiB}
"""


def sim_environment(scenario="node-8xh100", **more):
    return environment(LD_LIBRARY_PATH=f"{BUILD}/sim", GPUSONDE_SIM_SCENARIO=scenario, **more)


def cache(*parts):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "gpusonde-test", *parts)


def client(name):
    """A program of the virtual environment, which is made on first use."""
    folder = cache("clients-" + "-".join(p.replace("==", "-") for p in PACKAGES))
    if not os.path.exists(f"{folder}/complete"):
        shutil.rmtree(folder, ignore_errors=True)
        for args in ([sys.executable, "-m", "venv", folder],
                     [f"{folder}/bin/python", "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "1", *PACKAGES]):
            made = subprocess.run(args, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise Skip(f"{', '.join(PACKAGES)} cannot be had from PyPI: {(made.stderr or made.stdout).strip().splitlines()[-1:]}")
        with open(f"{folder}/complete", "w", encoding="ascii"):
            pass
    return f"{folder}/bin/{name}"


def output(*args, scenario="node-8xh100"):
    done = subprocess.run(args, env=sim_environment(scenario), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, f"{args[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


@contextlib.contextmanager
def sleeping_scenario():
    """The path of WITH_SLEEP, while a process runs that it matches; and its PID."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-sim-") as folder:
        with open(f"{folder}/sleep.yaml", "w", encoding="ascii") as f:
            f.write(WITH_SLEEP)
        shutil.copy(shutil.which("sleep"), f"{folder}/gs-sleep")
        with subprocess.Popen(["gs-sleep", "600"], executable=f"{folder}/gs-sleep") as process:
            try:
                yield f"{folder}/sleep.yaml", process.pid
            finally:
                process.kill()


# Every call of the binding that takes a device and nothing else: it answers or says why not.
SWEEP = r"""
import inspect, json, pynvml as n
n.nvmlInit()
report = {"count": n.nvmlDeviceGetCount(), "driver": n.nvmlSystemGetDriverVersion(), "gpus": [], "answered": [], "refused": []}
for i in range(report["count"]):
    h = n.nvmlDeviceGetHandleByIndex(i)
    m = n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)
    report["gpus"].append({
        "name": n.nvmlDeviceGetName(h), "uuid": n.nvmlDeviceGetUUID(h), "bus": n.nvmlDeviceGetPciInfo(h).busId,
        "total": m.total, "sum": m.used + m.free + m.reserved, "util": n.nvmlDeviceGetUtilizationRates(h).gpu,
        "power": n.nvmlDeviceGetPowerUsage(h), "limit": n.nvmlDeviceGetEnforcedPowerLimit(h),
        "temperature": n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
        "processes": len(n.nvmlDeviceGetComputeRunningProcesses(h)) + len(n.nvmlDeviceGetMPSComputeRunningProcesses(h)),
        "working": len({s.pid for s in n.nvmlDeviceGetProcessUtilization(h, 0)}),
        "samples": len(n.nvmlDeviceGetSamples(h, n.NVML_GPU_UTILIZATION_SAMPLES, 0)[1]),
        "links": sum(n.nvmlDeviceGetNvLinkState(h, link) for link in range(18))})
h = n.nvmlDeviceGetHandleByIndex(0)
for name, call in inspect.getmembers(n, inspect.isfunction):
    if name.startswith("nvmlDeviceGet") and len(inspect.signature(call).parameters) == 1:
        if next(iter(inspect.signature(call).parameters)) not in ("handle", "device"):
            continue
        try:
            call(h)
            report["answered"].append(name)
        except n.NVMLError as why:
            report["refused"].append([name, why.value])
n.nvmlShutdown()
print(json.dumps(report))
"""


def test_nvidia_ml_py():
    report = json.loads(output(client("python"), "-c", SWEEP))
    equal(report["count"], 8)
    equal(sum(g["processes"] for g in report["gpus"]), 64)
    equal(len({g["uuid"] for g in report["gpus"]} | {g["bus"] for g in report["gpus"]}), 16)
    for gpu in report["gpus"]:
        equal(gpu["name"], "NVIDIA H100 80GB HBM3")
        equal(gpu["sum"], gpu["total"])
        assert 0 <= gpu["util"] <= 100 and 72000 <= gpu["power"] <= gpu["limit"] == 700000, gpu
        assert 26 <= gpu["temperature"] <= 68 and gpu["samples"] > 50 and gpu["links"] == 18 and gpu["working"] > 3, gpu
    assert len(report["answered"]) > 60, report["answered"]
    # Not supported or an argument of the wrong version; never an unknown error.
    equal([r for r in report["refused"] if r[1] not in (2, 3, 25)], [])


def test_gpustat():
    with sleeping_scenario() as (scenario, pid):
        found = json.loads(output(client("gpustat"), "--json", "-c", "-u", scenario=scenario))["gpus"]
        equal([g["name"] for g in found], ["NVIDIA H100 80GB HBM3", "NVIDIA L4"])
        equal([(p["pid"], p["gpu_memory_usage"], p["command"]) for p in found[1]["processes"]], [(pid, 6144, "gs-sleep")])
        equal(found[1]["utilization.gpu"], 60)
        equal(found[1]["memory.total"], 23034)
        equal(found[1]["enforced.power.limit"], 72)
        assert 12 < found[1]["power.draw"] <= 72 and 28 <= found[1]["temperature.gpu"] <= 78, found[1]
    equal(len(json.loads(output(client("gpustat"), "--json"))["gpus"]), 8)


def test_nvitop():
    with sleeping_scenario() as (scenario, pid):
        screen = output(client("nvitop"), "-1", "--ascii", "--colorful", scenario=scenario)
        screen = re.sub(r"\x1b\[[0-9;]*m", "", screen)
        for part in ("Driver Version: 615.71", "H100 80GB HBM3", "3g.40gb @ GI/CI: 1/0", str(pid), "gs-sleep", "6144MiB"):
            contains(screen, part)
    screen = output(client("nvitop"), "-1", "--ascii")
    equal(screen.count("H100 80GB HBM3"), 8)
    assert len(re.findall(r"\d+W / 700W", screen)) == 8, screen


def nvtop():
    if shutil.which("nvtop"):
        return shutil.which("nvtop")
    with open("/etc/os-release", encoding="utf-8") as f:
        suite = dict(line.rstrip().split("=", 1) for line in f if "=" in line).get("VERSION_CODENAME", "").strip('"')
    fetched = subprocess.run([f"{SOURCE}/test/unit/sim/fetch_debian", suite, "contrib", "nvtop"], capture_output=True, text=True,
                             check=False)
    if fetched.returncode != 0:
        raise Skip(fetched.stderr.strip())
    return fetched.stdout.strip() + "/usr/bin/nvtop"


def test_nvtop():
    """It draws on a terminal; what it writes is searched for what it shows."""
    program = nvtop()
    with sleeping_scenario() as (scenario, pid):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(program, [program, "-d", "5"], sim_environment(scenario, TERM="xterm", LINES="50", COLUMNS="160",
                                                                    HOME=tempfile.gettempdir()))
        seen = bytearray()

        def screen():
            with contextlib.suppress(OSError):
                if select.select([terminal], [], [], 0)[0]:
                    seen.extend(os.read(terminal, 65536))
            return re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\(B|[=>])", "", seen.decode(errors="replace"))

        try:
            for part in ("NVIDIA H100 80GB HBM3", "NVIDIA L4", str(pid), "gs-sleep", "6144MiB", "60%"):
                wait_for(lambda p=part: p in screen(), f"{part!r} on nvtop's screen")
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(terminal)


ATOPGPUD_CLIENT = r"""
import socket, struct, sys, time
def connect():
    for family, address, version in ((socket.AF_UNIX, "\0atopgpud_nvidia", 2), (socket.AF_INET, ("127.0.0.1", 59123), 1)):
        s = socket.socket(family)
        try:
            s.connect(address)
            return s, version
        except OSError:
            s.close()
for _ in range(600):
    found = connect()
    if found:
        break
    time.sleep(0.1)
s, version = found
for request in b"TS":
    time.sleep(2)
    s.sendall(bytes([request, version]))
    head = s.recv(4, socket.MSG_WAITALL)
    print(s.recv(struct.unpack(">I", head)[0] & 0xffffff, socket.MSG_WAITALL).decode())
"""


def test_atopgpud():
    """In a network of its own, because its addresses are fixed."""
    daemon = os.environ.get("ATOPGPUD")
    if not daemon:
        raise Skip("ATOPGPUD names no Python atopgpud (atopgpud in the repository Atoptool/atop)")
    # It goes to the background; with its PID namespace it ends.
    alone = ["unshare", "-n", "-p", "-f", "--kill-child"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no permission for namespaces of its own (unshare)")
    python = client("python")
    script = f'ip link set lo up; "{python}" "{daemon}" >/dev/null 2>&1 & "{python}" -c "$CLIENT"'
    done = subprocess.run([*alone, "sh", "-c", script], env=sim_environment(CLIENT=ATOPGPUD_CLIENT), capture_output=True,
                          text=True, timeout=2 * PATIENCE_S, check=False)
    types, status = done.stdout.strip().split("\n")
    assert types.startswith("8@") and types.count("NVIDIA_H100_80GB_HBM3") == 8, types
    gpus = status.split("@")[1:]
    equal(len(gpus), 8)
    for gpu in gpus:
        busy, memory_busy, total, used = map(int, gpu.split("#")[0].split()[:4])
        assert 0 < busy <= 100 and 0 < memory_busy <= 100 and 0 < used <= total == 81559 * 1024, gpu
        assert gpu.count("#A ") >= 5, gpu
        # Every process that works has a busy percentage.
        assert re.search(r"#A \d+ C [1-9]\d* ", gpu), gpu


if __name__ == "__main__":
    run()
