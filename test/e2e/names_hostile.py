#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that make the naming of kernels wait, or name files that they may not read: others' kernels are named all the same."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

from lib.e2e import Agent, Skip, equal, run, values, wait_for

from agent_kernels import begun, rows_of, tracing
from launches import Waiting, environment, program

NOBODY = 64123 # nobody has this user ID

# A driver of the user's own, which believes everything.
DRIVER = """
static void *made[64];
static unsigned n;
int cuInit(unsigned flags) { return 0; }
int cuModuleLoad(void **module, const char *path) { *module = &made[n++ % 64]; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = &made[n++ % 64]; return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
	void *stream, void **parameters, void **extra) { return 0; }
"""

# Launches a handle, a pointer into memory whose pages never come (userfaultfd): naming reads what a handle points to.
WITHHOLDS = """
import ctypes, fcntl, mmap, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
uffd = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], os.O_CLOEXEC)
if uffd < 0:
    sys.exit("userfaultfd: " + os.strerror(ctypes.get_errno()))
page = os.sysconf("SC_PAGESIZE")
fcntl.ioctl(uffd, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0)) # UFFDIO_API
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(16 * page), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
fcntl.ioctl(uffd, 0xc020aa00, struct.pack("QQQQ", at, 16 * page, 1, 0)) # UFFDIO_REGISTER, missing pages
os.setgroups([])
os.setresgid(*[int(sys.argv[2])] * 3)
os.setresuid(*[int(sys.argv[2])] * 3)
cuda = ctypes.CDLL(sys.argv[1])
cuda.cuInit(0)
print("ready", flush=True)
for i in range(100000):
    cuda.cuLaunchKernel(ctypes.c_void_p(at + i % 16 * page), 1, 1, 1, 32, 1, 1, 0, None, None, None)
    time.sleep(0.02)
"""

# Loads a module from a file and launches its kernel, again and again: what precedes the probes is not seen.
LOADS = """
import ctypes, os, sys, time
os.setgroups([])
os.setresgid(*[int(sys.argv[2])] * 3)
os.setresuid(*[int(sys.argv[2])] * 3)
cuda = ctypes.CDLL(sys.argv[1])
cuda.cuInit(0)
print("ready", flush=True)
function, module = ctypes.c_void_p(), ctypes.c_void_p()
while True:
    cuda.cuModuleLoad(ctypes.byref(module), sys.argv[3].encode())
    cuda.cuModuleGetFunction(ctypes.byref(function), module, sys.argv[4].encode())
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    time.sleep(0.1)
"""


def skip(why):
    raise Skip(why)


@contextlib.contextmanager
def neighbour(text, *arguments, user=NOBODY):
    """A program of another user, once it is ready."""
    with tempfile.TemporaryDirectory() as tmp:
        os.chmod(tmp, 0o755)
        library = f"{tmp}/libcuda.so.1"
        subprocess.run([shutil.which("cc") or skip("no C compiler"), "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-x", "c",
                        "-o", library, "-"], input=DRIVER, text=True, check=True)
        os.chmod(library, 0o755)
        process = subprocess.Popen([sys.executable, "-c", text, library, str(user), *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(CUDA_VISIBLE_DEVICES="0"))
        try:
            if process.stdout.readline() != "ready\n":
                raise Skip(process.communicate()[1].strip().splitlines()[-1])
            yield process
        finally:
            process.kill()
            process.communicate()


def metric(agent, name, **labels):
    return sum(values(agent.metrics(), f"gpusonde_trace_kernel_{name}", **labels))


def helper_of(agent):
    """PIDs of the agent's children that name kernels."""
    children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(agent.process.pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in children.stdout.splitlines() if line.split()[1].startswith("gpusonde-symbol")]


def bystander_is_named(agent):
    with tempfile.TemporaryDirectory() as tmp, Waiting(tmp, "kernels-shared") as program_:
        program_.probed("libcuda.so.1")
        program_.go_on()
        # Its first launches may precede the probes.
        wait_for(lambda: sum(row["source"] in ("registered", "handle") for row in rows_of(agent, program_.pid)) >= 10,
                 "a bystander's kernels to be named", 20)


def test_a_page_that_never_comes():
    program("kernels-shared")
    with tracing() as agent:
        begun(agent)
        with neighbour(WITHHOLDS) as first:
            wait_for(lambda: metric(agent, "helpers_lost_total", reason="hung") >= 1, "a helper that hung to be replaced", 20)
            bystander_is_named(agent)
            equal(metric(agent, "users_withheld"), 1, "users of whom nothing is asked")
            assert f"at process {first.pid}" in agent.log(), agent.log()
            # Another one of the same user is not even asked about.
            lost = metric(agent, "helpers_lost_total", reason="hung")
            withheld = metric(agent, "questions_withheld_total")
            with neighbour(WITHHOLDS):
                wait_for(lambda: metric(agent, "questions_withheld_total") > withheld, "questions that are not asked", 20)
                bystander_is_named(agent)
            equal(metric(agent, "helpers_lost_total", reason="hung"), lost, "helpers that hung")
        equal(len(helper_of(agent)), 1, "helpers")


def test_a_helper_that_is_killed():
    program("kernels-shared")
    with tracing() as agent:
        begun(agent)
        bystander_is_named(agent)
        killed, = helper_of(agent)
        os.kill(killed, 9)
        bystander_is_named(agent)
        assert killed not in helper_of(agent)
        equal(metric(agent, "helpers_lost_total", reason="crashed"), 1, "helpers that crashed")


def figures_of(agent, process):
    """Registers of its kernel, once it is named and the answer has come."""
    def answered():
        named = [row for row in rows_of(agent, process.pid) if row["source"] == "handle" and row["launches_total"] > 20]
        return named and named[0]
    return wait_for(answered, "its kernel", 40).get("registers")


def test_files_are_read_with_the_rights_of_who_names_them():
    cubin = program("images.cubin")
    symbol = next(word for word in subprocess.run(["strings", cubin], capture_output=True, text=True, check=True).stdout.split()
                  if word.startswith(".text.")).removeprefix(".text.")
    with tempfile.TemporaryDirectory() as folder, tracing() as agent:
        os.chmod(folder, 0o755)
        begun(agent)
        for name, owner, mode, readable in (("secret", 0, 0o600, False), ("own", NOBODY, 0o600, True), ("public", 0, 0o644, True)):
            path = shutil.copy(cubin, f"{folder}/{name}")
            os.chown(path, owner, owner)
            os.chmod(path, mode)
            with neighbour(LOADS, path, symbol) as process:
                found = figures_of(agent, process)
            equal(found is not None, readable, f"{name}: figures of its kernel are known")


if __name__ == "__main__":
    run()
