# SPDX-License-Identifier: Apache-2.0
"""The namespaces that the node and its test live in, and the cgroup that all of the node is below.

kubelet, containerd and CNI have paths and ports that nobody can choose. In namespaces of mounts and of the network they are nobody else's: /var/lib, /var/log
and /run are overlays that end with the last process, ports are the namespace's, and kubelet writes its sysctls into files that lie over those of /proc.
PIDs are the machine's, as tracing wants it. Only cgroups are left, all below one of a name of ours, as kind has them below /kubelet.
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from lib.e2e import Skip

MARK = "GPUSONDE_KUBE_SANDBOX"
OVERLAID = ("/var/lib", "/var/log", "/run")
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")
HIERARCHIES = "/sys/fs/cgroup"
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids")
PREFIX = "gpusonde-kube-"
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 1
ADDRESS = "192.0.2.1" # the node's, of those for documents: kubelet takes none of loopback


def needs():
    """A skip where no such node can be."""
    if os.geteuid() != 0:
        raise Skip("only root can run a Kubernetes node")
    for tool in ("unshare", "mount", "openssl"):
        if not shutil.which(tool):
            raise Skip(f"no {tool} on this machine")
    lacking = [c for c in NEEDED if not os.path.exists(f"{HIERARCHIES}/{c}/cgroup.procs")]
    if lacking:
        raise Skip(f"kubelet 1.20 is run with the cgroup hierarchies of v1, and {HIERARCHIES} has none of {', '.join(lacking)}")


def enter():
    """Starts this program again in namespaces of its own, unless it is that already."""
    if os.environ.get(MARK):
        return
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])


def give_addresses():
    with socket.socket() as s:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(s, SIOCGIFFLAGS, name))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))
        fcntl.ioctl(s, SIOCSIFADDR, struct.pack("16sHH4s8x", b"lo:0", socket.AF_INET, 0, socket.inet_aton(ADDRESS)))


def mount(*args):
    done = subprocess.run(["mount", *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"mount {' '.join(args)}: {done.stderr.strip()}")


def overlay(folder):
    """What a node makes and changes lies below @folder from now on."""
    mount("--make-rprivate", "/")
    for path in OVERLAID:
        base = f"{folder}/overlay{path.replace('/', '-')}"
        os.makedirs(f"{base}/upper")
        os.makedirs(f"{base}/work")
        mount("-t", "overlay", "-o", f"lowerdir={path},upperdir={base}/upper,workdir={base}/work", "overlay", path)
    for name in SYSCTLS:
        path = f"{folder}/sysctl-{name.replace('/', '-')}"
        with open(f"/proc/sys/{name}", encoding="ascii") as f, open(path, "w", encoding="ascii") as copy:
            copy.write(f.read())
        mount("--bind", path, f"/proc/sys/{name}")
    mount("--make-rshared", "/") # kubelet wants it so
    give_addresses()


def hierarchies():
    """Those of v1, by their folders."""
    found = [f"{HIERARCHIES}/{name}" for name in sorted(os.listdir(HIERARCHIES))]
    return [path for path in found if os.path.exists(f"{path}/cgroup.procs") and not os.path.exists(f"{path}/cgroup.controllers")
            and not os.path.islink(path)]


def start_time(pid):
    """In clock ticks since boot; 0: no such process."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[19])
    return 0


def make_cgroup():
    """Its name, in every hierarchy; what tests left that were killed goes before. The name tells the test's process."""
    sweep()
    name = f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}"
    for path in hierarchies():
        os.mkdir(f"{path}/{name}")
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if os.path.exists(f"{path}/{setting}"):
                with open(f"{path}/{setting}", encoding="ascii") as f, open(f"{path}/{name}/{setting}", "w", encoding="ascii") as new:
                    new.write(f.read())
    return name


def everywhere():
    """Hierarchies of v1, and that of v2 beside them, where runc makes cgroups, too."""
    return [*hierarchies(), *[path for path in (HIERARCHIES, f"{HIERARCHIES}/unified") if os.path.exists(f"{path}/cgroup.controllers")]]


def sweep():
    for name in {name for path in everywhere() for name in os.listdir(path) if name.startswith(PREFIX)}:
        pid, started = name.removeprefix(PREFIX).split("-")
        if start_time(pid) != int(started):
            remove_cgroup(name)


def members(name):
    """PIDs of all below it: all that the node starts, and all that is in its pods, is in this hierarchy."""
    found = set()
    for folder, _, files in os.walk(f"{HIERARCHIES}/pids/{name}"):
        if "cgroup.procs" in files:
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as f:
                found.update(int(pid) for pid in f.read().split())
    return found - {os.getpid()}


def enter_cgroup(name):
    """All of us and of those that we start; one hierarchy is enough to find them by."""
    with open(f"{HIERARCHIES}/pids/{name}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


def remove_cgroup(name, patience_s=60):
    """Kills all that is below it, and removes it; what of it could not be removed."""
    end = time.monotonic() + patience_s
    while True:
        for pid in members(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        left = [f"{path}/{name}" for path in everywhere() if remove_tree(f"{path}/{name}")]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def remove_tree(path):
    """Whether anything is left of this cgroup."""
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return os.path.exists(path)


def temporary():
    """A folder for all that the node has, that can take overlays and whose sockets' names are short enough."""
    return tempfile.mkdtemp(prefix=PREFIX, dir="/tmp")


class Clone(ctypes.Structure):
    """struct clone_args of clone3(2)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal", "stack", "stack_size", "tls",
                                                     "set_tid", "set_tid_size", "cgroup")]


def start_as(pid, *args):
    """Starts a program with a PID that we choose, which nobody may have. OSError EEXIST: somebody has."""
    wanted = ctypes.c_int(pid)
    clone = Clone(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(wanted), set_tid_size=1)
    libc = ctypes.PyDLL(None, use_errno=True) # with the interpreter locked: the child has this thread alone
    child = libc.syscall(435, ctypes.byref(clone), ctypes.c_size_t(ctypes.sizeof(clone)))
    if child == 0:
        try:
            os.execv(args[0], list(args))
        finally:
            os._exit(127)
    if child < 0:
        raise OSError(ctypes.get_errno(), f"clone3 as {pid}: {errno.errorcode[ctypes.get_errno()]}")
    return child
