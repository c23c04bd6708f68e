# SPDX-License-Identifier: Apache-2.0
"""
Device cgroups for tests: NVIDIA's majors without NVIDIA, cgroups of our own, and whether a device may be opened in one.

A node of a major that no driver has can be made and opened as far as the cgroup is concerned: what is allowed then fails with ENXIO, what is
denied with EPERM. The list of majors, which is /proc/devices elsewhere, is a file of ours.
"""
import contextlib
import ctypes
import errno
import os
import subprocess
import sys
import tempfile

from lib.e2e import BUILD, Skip, command, environment, wait_for

TOOL = f"{BUILD}/test/tools/device_program"
LIST = """Character devices:
  1 mem
195 nvidia
195 nvidiactl
120 nvidia-nvswitch
121 nvidia-caps-imex-channels
122 nvidia-caps
123 nvidia-uvm

Block devices:
195 nvidia-is-no-block-device
"""
# 120 to 127 are for experiments: no driver of the kernel has them (admin-guide/devices.txt).
NVIDIA, OTHER = (195, 120, 121, 122, 123), 124
OPEN = """
import errno, os, sys
with open(sys.argv[1] + "/cgroup.procs", "w") as f:
    f.write(str(os.getpid()))
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        print("open")
    except OSError as why:
        print(errno.errorcode[why.errno])
try:
    os.mknod(os.path.dirname(sys.argv[2]) + "/made", 0o20600, os.makedev(195, 7))
    print("made")
    os.unlink(os.path.dirname(sys.argv[2]) + "/made")
except OSError as why:
    print(errno.errorcode[why.errno])
"""


def mounted(kind):
    """Where the file system is whose mount says so: "cgroup2", or a controller of version 1."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            before, _, after = line.partition(" - ")
            fstype, _, options = after.split(maxsplit=2)
            if fstype == kind or (fstype == "cgroup" and kind in options.strip().split(",")):
                return before.split()[4]
    return None


def hierarchy(kind):
    if os.geteuid() != 0:
        raise Skip("needs root")
    return mounted(kind) or skip(f"no cgroup file system of this machine is {kind}")


def skip(why):
    raise Skip(why)


@contextlib.contextmanager
def cgroup(kind, *names):
    """A cgroup of ours for as long as the block lasts: its folder. @names: of those below it."""
    path = f"{hierarchy(kind)}/gpusonde-test-{os.getpid()}"
    made = []
    try:
        for name in ("", *names):
            path = f"{path}/{name}".rstrip("/")
            try:
                os.mkdir(path)
            except OSError as why:
                if why.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                raise Skip(f"{path} cannot be made: {why.strerror}") from None
            made.append(path)
        yield path
    finally:
        for folder in reversed(made):
            # Processes that were killed may not have left yet.
            wait_for(lambda f=folder: remove(f), f"{folder} to be empty")


def remove(folder):
    try:
        os.rmdir(folder)
    except OSError as why:
        return why.errno != errno.EBUSY
    return True


class Devices:
    """Nodes and the list of majors, in a folder of ours."""

    def __enter__(self):
        self.owner = tempfile.TemporaryDirectory(prefix="gpusonde-devices-")
        self.folder = self.owner.name
        self.list = f"{self.folder}/devices"
        with open(self.list, "w", encoding="ascii") as f:
            f.write(LIST)
        for major in (*NVIDIA, OTHER):
            self.make_node(f"{self.folder}/{major}", major)
        return self

    def make_node(self, path, major):
        """That here, outside of any cgroup of ours, can be opened but for the missing driver."""
        try:
            os.mknod(path, 0o20666, os.makedev(major, 0))
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        except OSError as why:
            if why.errno in (errno.EPERM, errno.EACCES):
                self.owner.cleanup()
                raise Skip(f"devices cannot be made or opened here: {why}") from None

    def __exit__(self, *_):
        self.owner.cleanup()

    def opened(self, folder, *majors):
        """In this cgroup: what opening a device of each major says, "EPERM" if it is denied; and making a node."""
        out = subprocess.run([sys.executable, "-c", OPEN, folder, *(f"{self.folder}/{m}" for m in majors)], capture_output=True, text=True,
                             check=True)
        return out.stdout.split()

    def denied(self, folder, *majors):
        """Those of these majors that may not be opened in the cgroup."""
        return [m for m, said in zip(majors, self.opened(folder, *majors)) if said == "EPERM"]

    def cli(self, *args, **more):
        return command("cgroup", *args, "--cgroup-devices", self.list, env=environment(**more))

    def allow(self, target, *flags):
        """All devices: a cgroup of ours has no process whose /dev says what it was given."""
        return self.cli("allow", target, "--devices", "all", *flags)


CLONE_NEWNS = 0x20000
# A /dev below $1, with the nodes of the one that is there, in its place.
MAKE_DEV = """
set -e
mount --make-rprivate /
mkdir -p "$1"
mount -t tmpfs tmpfs "$1"
for name in null zero full random urandom tty; do
	touch "$1/$name"
	mount --bind /dev/$name "$1/$name"
done
ln -s /proc/self/fd "$1/fd"
"""
MOVE_DEV = """
mount --move "$1" /dev
"""


def enter(kind, how):
    if ctypes.CDLL(None, use_errno=True)[kind](*how) != 0:
        raise Skip(f"{kind}: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def own_dev(devices):
    """
    This process, and what it starts meanwhile, has a /dev with nodes of NVIDIA: nvidia0 to nvidia2, and one of each other major. Names: nvidia-MAJOR.
    """
    if os.geteuid() != 0:
        raise Skip("needs root")
    before, folder = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), os.getcwd()
    enter("unshare", (CLONE_NEWNS,))
    try:
        nodes = [(f"nvidia{n}", 195, n) for n in range(3)] + [(f"nvidia-{major}", major, 0) for major in NVIDIA[1:]]
        script = MAKE_DEV + "".join(f"mknod $1/{name} c {major} {minor}\n" for name, major, minor in nodes) + MOVE_DEV
        done = subprocess.run(["sh", "-c", script, "sh", f"{devices.folder}/dev"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skip(f"no /dev of our own can be made here: {done.stderr}")
        yield
    finally:
        enter("setns", (before, CLONE_NEWNS))
        os.close(before)
        os.chdir(folder)


@contextlib.contextmanager
def process_in(*folders, argv=("sleep", "1000"), **more):
    """Its PID, once it is in all of them."""
    def enter():
        for folder in folders:
            with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")
    process = subprocess.Popen(argv, preexec_fn=enter, stdin=subprocess.DEVNULL, **more) # pylint: disable=subprocess-popen-preexec-fn
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def with_given(devices, *names, made=()):
    """
    A command that sleeps in a /dev of its own, in which it was given these nodes, as NVIDIA's hook does, and has made others itself: (name, minor) of 195.
    """
    script = MAKE_DEV + "".join(f"touch $1/{name}\nmount --bind /dev/{name} $1/{name}\n" for name in names)
    script += "".join(f"mknod $1/{name} c 195 {minor}\n" for name, minor in made) + MOVE_DEV + "exec sleep 1000\n"
    return ["unshare", "--mount", "sh", "-c", script, "sh", f"{devices.folder}/given"]


def attach(folder, name, *majors, kind="multi"):
    done = subprocess.run([TOOL, "attach", folder, name, kind, ",".join(map(str, majors))], capture_output=True, text=True, check=False)
    if "loading: Operation not permitted" in done.stderr:
        raise Skip("BPF programs cannot be loaded here")
    assert done.returncode == 0, done.stderr


def attach_again(folder, number):
    """A program that is attached elsewhere."""
    done = subprocess.run([TOOL, "again", folder, str(number)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def programs(folder):
    """(number, name, instructions) of each program that is attached."""
    out = subprocess.run([TOOL, "list", folder], capture_output=True, text=True, check=True).stdout
    return [(int(number), name, code) for number, name, code in (line.split() for line in out.splitlines())]
