#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde doctor --pid: what of each layer can be seen of a process, and why not."""
import contextlib
import json
import subprocess
import sys

from lib.e2e import BUILD, command, contains, equal, run

MAPS = "import ctypes, sys\nfor path in sys.argv[1:]: ctypes.CDLL(path)\nprint('mapped', flush=True)\nsys.stdin.read()"


@contextlib.contextmanager
def program(*argv, says):
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if says:
            process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait()


def doctor(pid):
    done = command("doctor", "--pid", str(pid), "--json", "--control-socket", "none")
    equal(done.returncode, 0, done.stderr)
    return {check["check"]: check for check in json.loads(done.stdout)["checks"]}


def test_what_is_mapped_can_be_seen():
    libraries = f"{BUILD}/sim/cuda/libcuda.so.1", f"{BUILD}/sim/nccl/libnccl.so.2"
    with program(sys.executable, "-c", MAPS, *libraries, says=True) as pid:
        checks = doctor(pid)
    contains(checks["CUDA"]["text"], "entry points can be probed")
    contains(checks["NCCL"]["text"], "entry points can be probed")
    equal([checks[name]["verdict"] for name in ("cuBLAS", "cuDNN", "PyTorch")], ["note"] * 3, "what is not mapped")
    contains(checks["CPython"]["text"], f"CPython {sys.version_info[0]}.{sys.version_info[1]}: its frames can be read")


def test_what_is_not_mapped_is_said_to_be():
    with program("cat", says=False) as pid:
        checks = doctor(pid)
    equal({check["verdict"] for check in checks.values()}, {"note"}, "a program without any of it")
    contains(checks["CPython"]["text"], "no CPython")


def test_there_must_be_such_a_process():
    for text in ("0", "nobody", "2147483647"):
        done = command("doctor", "--pid", text)
        equal(done.returncode, 2, f"status for {text}")
        contains(done.stderr, f'there is no process "{text}": check the process ID')


run()
