# SPDX-License-Identifier: Apache-2.0
"""What this machine has: a GPU or the simulated node, the tools to compare with, compilers; and environments for programs."""
import datetime
import glob
import json
import os
import platform
import shutil
import subprocess
import sys

from rows import NotCompared

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 60
CUPTI_PLACES = ("/usr/local/cuda*", "/usr/local/cuda*/extras/CUPTI", "/usr/local", "/usr", "/opt/cuda/extras/CUPTI")
# How long kernels of program.c take on the simulated node: KERNEL_MS of "program busy" must say the same.
KERNEL_MS = 20


def run(*args, env=None, limit_s=LIMIT_S):
    """A command to its end; what it says when it fails is the reason for not comparing."""
    try:
        done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise NotCompared(f"{os.path.basename(args[0])}: {why}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "it does not say why").splitlines()[-1]
        raise NotCompared(f"{os.path.basename(args[0])} ends with {done.returncode}: {said[:200]}")
    return done.stdout


class Machine:
    def __init__(self, build, source, tmp, simulated, smi, dcgmi):
        self.build, self.source, self.tmp, self.simulated = build, source, tmp, simulated
        self.smi, self.dcgmi = smi, dcgmi
        self.gpusonde = f"{build}/gpusonde"
        self.rounds = 1 if simulated else 3     # of what is timed with and without, in turns
        # Until what the driver samples of the last second is in a reading of the agent's, which may be made every five seconds.
        self.settle_s = 2.5 if simulated else 7
        base = {k: v for k, v in os.environ.items() if not k.startswith("GPUSONDE_")}
        common = {}
        if simulated:
            os.mkdir(f"{tmp}/live")
            common = {"GPUSONDE_SIM_SCENARIO": f"{HERE}/scenario.yaml", "GPUSONDE_SIM_CUDA_DIR": f"{tmp}/live"}
            base.pop("LD_LIBRARY_PATH", None)
        # Of a real machine's programs, all may need what the environment says of libraries: in containers the driver's are found by it.
        libraries = {"LD_LIBRARY_PATH": base["LD_LIBRARY_PATH"]} if "LD_LIBRARY_PATH" in base else {}
        self.agent_env = {**libraries, **common}
        self.reference_env, self.program_env = dict(base), dict(base)
        if simulated:
            self.agent_env["GPUSONDE_NVML_LIBRARY"] = f"{build}/sim/libnvidia-ml.so.1"
            self.reference_env.update(common, LD_LIBRARY_PATH=f"{build}/sim")
            self.program_env.update(common, LD_LIBRARY_PATH=f"{build}/sim/cuda/thunk:{build}/sim/cuda", GPUSONDE_SIM_CUDA_COPY_GBPS="20",
                                    **self.kernels_of(KERNEL_MS))
        self.trace_env = {**self.program_env, **self.agent_env}

    def kernels_of(self, milliseconds):
        """What makes the simulated device take so long; a real one takes as long as the program says."""
        return {"GPUSONDE_SIM_CUDA_KERNEL_US": f"1,gpusonde_spin={milliseconds * 1000}"} if self.simulated else {}

    def nvml(self, *words):
        """NVML asked directly, by a process of its own."""
        return json.loads(run(sys.executable, "-B", f"{HERE}/nvml.py", *map(str, words), env=self.reference_env))

    def start_nvml(self, *words):
        return subprocess.Popen([sys.executable, "-B", f"{HERE}/nvml.py", *map(str, words)], env=self.reference_env,
                                stdout=subprocess.PIPE, text=True)

    def compiled(self, name, *sources, compiler="cc", flags=()):
        """A program of ours; made once."""
        path = f"{self.tmp}/{name}"
        if not os.path.exists(path):
            if not shutil.which(compiler):
                raise NotCompared(f"no {compiler} here")
            run(compiler, "-o", path, *(f"{HERE}/{s}" if not os.path.isabs(s) else s for s in sources), *flags, limit_s=120)
        return path

    def program(self):
        return self.compiled("program", "program.c", flags=("-D_GNU_SOURCE", "-std=gnu17", "-O2", "-ldl"))

    def nvcc(self):
        found = shutil.which("nvcc") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/nvcc"))), None)
        if not found:
            raise NotCompared("no nvcc here")
        return found

    def cupti(self):
        """(folder of cupti.h, folder of libcupti.so), or why not."""
        if self.simulated:
            raise NotCompared("CUPTI refuses the simulated driver")
        places = [p for pattern in CUPTI_PLACES for p in sorted(glob.glob(pattern), reverse=True)]
        headers = [f"{p}/include" for p in places if os.path.exists(f"{p}/include/cupti.h")]
        libraries = [os.path.dirname(f) for p in places for f in sorted(glob.glob(f"{p}/lib*/libcupti.so"))]
        if not headers or not libraries:
            raise NotCompared("no CUPTI here: cupti.h or libcupti.so is missing")
        return headers[0], libraries[0]

    def need_root(self):
        if os.geteuid() != 0:
            raise NotCompared("tracing needs root")

    def torch(self):
        """PyTorch's version, where it can use the GPU."""
        if self.simulated:
            raise NotCompared("PyTorch cannot compute on the simulated driver")
        said = run(sys.executable, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())", limit_s=120).split()
        if said[-1:] != ["True"]:
            raise NotCompared("this PyTorch cannot use the GPU")
        return said[0]

    def describe(self, snapshot):
        """[(what, it)] of what the table is true of."""
        names = [g["name"] for g in snapshot["gpus"]]
        node = snapshot["node"]
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            processor = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
        return [("date", datetime.date.today().isoformat()),
                ("boards", ", ".join(f"{names.count(n)} x {n}" for n in dict.fromkeys(names)) or "none"),
                ("driver", node["driver_version"]),
                ("CUDA of the driver", node["cuda_version"]), ("kernel", platform.release()),
                ("processor", f"{os.cpu_count()} x {processor}"), ("gpusonde", node["agent"]["version"]),
                ("user", "root" if os.geteuid() == 0 else "not root")]


def has_gpu():
    """A kernel driver with a GPU, or the library that WSL has without one."""
    return bool(glob.glob("/proc/driver/nvidia/gpus/*") or glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg"))
