# SPDX-License-Identifier: Apache-2.0
"""Cgroups made like those of container runtimes and batch systems."""
import contextlib
import os

from lib.e2e import Skip, wait_for

CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")


@contextlib.contextmanager
def cgroup(path):
    """A cgroup of this name, from the first hierarchy where we may make one."""
    if os.geteuid() != 0:
        raise Skip("only root can make cgroups")
    root = next((c for c in CGROUPS if os.path.exists(f"{c}/cgroup.procs")), None)
    if not root:
        raise Skip("no hierarchy of cgroups is mounted")
    base = f"{root}/gpusonde-e2e-{os.getpid()}"
    folder = f"{base}/{path}"
    os.makedirs(folder)
    try:
        yield folder
    finally:
        while folder != root:
            if next(os.walk(folder))[1]: # another one lies beside it, and goes later
                break
            remove(folder)
            folder = os.path.dirname(folder)


def remove(folder):
    wait_for(lambda: not open(f"{folder}/cgroup.procs").read(), "the cgroup to be empty") # pylint: disable=consider-using-with
    os.rmdir(folder)


def enter(folder, pid):
    with open(f"{folder}/cgroup.procs", "w", encoding="utf-8") as f:
        f.write(str(pid))
