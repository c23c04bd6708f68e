#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde doctor --pid: what of each layer can be seen of a process, and why not."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from lib.e2e import BUILD, GPUSONDE, Skip, command, contains, equal, run

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
    markers = {10: "all functions enter its loop at one place", 11: "its markers want a write into it"}.get(max(sys.version_info[1], 10), "has no markers for them")
    contains(checks["Python functions"]["text"], markers)
    contains(checks["asyncio"]["text"], "before 3.14 the interpreter does not say" if sys.version_info < (3, 14) else "that await the running one")


def test_what_is_linked_into_another_library():
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copy(f"{BUILD}/sim/cuda/libcudart.so.13", f"{tmp}/libapp.so")
        with program(sys.executable, "-c", MAPS, f"{BUILD}/sim/cuda/libcuda.so.1", f"{tmp}/libapp.so", says=True) as pid:
            contains(doctor(pid)["CUDA"]["text"], "in 2 files, linked in: only gpusonde trace -p looks there")


def test_what_is_stripped():
    """Exported functions stay, and so does what is seen."""
    found = []
    with tempfile.TemporaryDirectory() as tmp:
        for strip in (False, True):
            shutil.copy(f"{BUILD}/sim/nccl/libnccl.so.2", tmp)
            if strip:
                subprocess.run(["strip", f"{tmp}/libnccl.so.2"], check=True)
            with program(sys.executable, "-c", MAPS, f"{tmp}/libnccl.so.2", says=True) as pid:
                found.append(doctor(pid)["NCCL"]["text"])
    equal(found[1], found[0], "stripped")
    contains(found[0], "entry points can be probed")


def test_what_cannot_be_unwound():
    with tempfile.TemporaryDirectory() as tmp:
        for flags, verdict in ([], "ok"), (["-R", ".eh_frame"], "note"):
            subprocess.run(["objcopy", *flags, f"{BUILD}/sim/nccl/libnccl.so.2", f"{tmp}/libother.so"], check=True)
            with program(sys.executable, "-c", MAPS, f"{tmp}/libother.so", says=True) as pid:
                native = doctor(pid)["native"]
            equal(native["verdict"], verdict, native)
            equal("; not libother.so" in native["text"], verdict == "note", native)


def test_what_only_a_container_has():
    if os.getuid() != 0:
        raise Skip("root only: only root can make a mount namespace")
    with tempfile.TemporaryDirectory() as tmp:
        script = f'mount -t tmpfs none {tmp} && cp {BUILD}/sim/nccl/libnccl.so.2 {tmp} && exec "$@"'
        with program("unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", MAPS, f"{tmp}/libnccl.so.2", says=True) as pid:
            equal(os.listdir(tmp), [], "what this mount namespace has of it")
            contains(doctor(pid)["NCCL"]["text"], "entry points can be probed")


def test_another_users_process():
    if os.getuid() != 0:
        raise Skip("root only: only root can become another user")
    library = f"{BUILD}/sim/nccl/libnccl.so.2"
    with program(sys.executable, "-c", MAPS, library, says=True) as pid, tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        shutil.copy(GPUSONDE, tmp)
        done = subprocess.run([f"{tmp}/gpusonde", "doctor", "--pid", str(pid), "--json", "--control-socket", "none"], user=65534, group=65534,
                              extra_groups=[], env={}, capture_output=True, text=True, check=False)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        for layer in ("CUDA", "NCCL", "PyTorch", "CPython", "asyncio", "Python functions", "native"):
            equal(checks[layer]["verdict"], "warning", layer)
            contains(checks[layer]["remedy"], "run gpusonde doctor as root")


def test_what_is_not_mapped_is_said_to_be():
    with program("cat", says=False) as pid:
        checks = doctor(pid)
    contains(checks.pop("native")["text"], "files with code say how their frames are unwound")
    equal({check["verdict"] for check in checks.values()}, {"note"}, "a program without any of it")
    contains(checks["CPython"]["text"], "no CPython")


def test_there_must_be_such_a_process():
    for text in ("0", "nobody", "2147483647"):
        done = command("doctor", "--pid", text)
        equal(done.returncode, 2, f"status for {text}")
        contains(done.stderr, f'there is no process "{text}": check the process ID')


run()
