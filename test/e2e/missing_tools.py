#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tool that is not installed makes the cases that want it skip and say so; none fails. Each test's script is run with a PATH that lacks what it asks for.

    missing_tools.py BUILD SOURCE [words of names of tests]

What a whole system without them does is for suite "matrix" to see (matrix/distributions.py).
"""
import atexit
import contextlib
import fnmatch
import functools
import os
import re
import subprocess
import sys
import tempfile

from lib.e2e import BUILD, SOURCE, contains, equal, run

LIMIT_S = 300
BROKEN = "#!/bin/sh\necho \"fatal error: bits/libc-header-start.h: No such file or directory\" >&2\nexit 1\n"


@functools.cache
def mirror():
    """Folders of links to all that PATH leads to. Thousands of links: made once."""
    top = tempfile.TemporaryDirectory(prefix="gpusonde-tools-")
    atexit.register(top.cleanup)
    folders = []
    for number, folder in enumerate(filter(os.path.isdir, os.environ["PATH"].split(":"))):
        folders.append(f"{top.name}/{number}")
        os.mkdir(folders[-1])
        for name in os.listdir(folder):
            os.symlink(os.path.abspath(f"{folder}/{name}"), f"{folders[-1]}/{name}")
    return folders


@contextlib.contextmanager
def path_without(patterns, broken=()):
    """A PATH that leads to all that ours does but programs of these patterns; @broken: programs that are there and fail, as a compiler without headers."""
    links = [f"{folder}/{name}" for folder in mirror() for name in os.listdir(folder) if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    gone = {link: os.readlink(link) for link in links}
    with tempfile.TemporaryDirectory(prefix="gpusonde-tools-") as tmp:
        for name in broken:
            with open(f"{tmp}/{name}", "w", encoding="ascii") as f:
                f.write(BROKEN)
                os.fchmod(f.fileno(), 0o755)
        for link in gone:
            os.unlink(link)
        try:
            yield ":".join((tmp, *mirror()))
        finally:
            for link, target in gone.items():
                os.symlink(target, link)


def check(script, *args, without, broken=(), least=1):
    """@least: so many cases skip."""
    with path_without(without, broken) as path:
        done = subprocess.run([sys.executable, f"{SOURCE}/test/{script}", *args], env=dict(os.environ, PATH=path), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    equal(done.returncode, 0, f"exit status of {script}, which says {done.stdout[-3000:]}{done.stderr[-1000:]}")
    equal(re.findall(r"^not ok.*", done.stdout, re.M), [], "cases that fail")
    skipped = re.findall(r"# SKIP *(.*)", done.stdout)
    assert len(skipped) >= least and all(skipped), f"{script}: {least} cases should skip, each with its reason: {done.stdout[-3000:]}"
    return "\n".join(skipped)


CROSS = ("aarch64-linux-gnu-*", "clang*", "ld.lld*", "lld*")


def test_without_compilers_for_arm64():
    """Of libraries that are only looked at, and of programs that an emulator runs."""
    if os.uname().machine == "x86_64":
        contains(check("unknown/unknown.py", BUILD, SOURCE, "arm64", without=CROSS), "install gcc-aarch64-linux-gnu, or clang and lld")
    check("unit/sim/abi.py", "--run", "qemu-aarch64-static", "aarch64-linux-gnu-gcc", without=CROSS, least=3)
    check("unit/cubin/stubs.py", BUILD, SOURCE, f"{BUILD}/test/tools/stub_dump", "lld", "arm64", without=("ld.lld*", "lld*"), least=2)


def test_with_compilers_that_lack_headers():
    """As Debian's come, where nothing recommended is installed."""
    broken = ("aarch64-linux-gnu-gcc", "clang", "qemu-aarch64-static")
    if os.uname().machine == "x86_64":
        contains(check("unknown/unknown.py", BUILD, SOURCE, "arm64", without=CROSS, broken=broken), "bits/libc-header-start.h")
    check("unit/sim/abi.py", "--run", "qemu-aarch64-static", "aarch64-linux-gnu-gcc", without=CROSS, broken=broken, least=3)


def test_without_an_emulator():
    check("matrix/arm64_unit.py", BUILD, SOURCE, "quick", without=("qemu-*",))
    check("kernels/run.py", BUILD, SOURCE, "--quick", without=("qemu-*",))
    check("kernels/run.py", BUILD, SOURCE, "--quick", without=("busybox",))


def test_without_clients():
    for script, words, tools in (("e2e/prometheus_clients.py", (), ("prometheus", "promtool")), ("e2e/prometheus_clients.py", ("alertmanager",), ("prometheus-alertmanager",)),
                                 ("e2e/atop_clients.py", ("atop_shows",), ("atop*",)),
                                 ("e2e/agent_pages.py", ("curl",), ("curl",))):
        check(script, BUILD, SOURCE, *words, without=tools)


def test_without_a_container_runtime():
    check("matrix/containers.py", BUILD, SOURCE, "without_any", without=("runc",))
    check("e2e/devices_given.py", BUILD, SOURCE, "idle", without=("runc",))
    check("kube/attribution.py", BUILD, SOURCE, "documented", without=("unshare",))


def test_without_promtool():
    programs = [f"{BUILD}/test/golden/{name}" for name in ("golden_render", "metrics_md", "json_schema")]
    check("golden/golden.py", *programs, SOURCE, without=("promtool",))


def test_without_what_packages_are_made_by():
    contains(check("deploy/manifests.py", BUILD, SOURCE, "kustomize", without=("kubectl",)), "kubectl")
    contains(check("deploy/container_image.py", BUILD, SOURCE, "libraries", without=("strip",)), "strip")
    contains(check("deploy/debian_packages.py", BUILD, SOURCE, "quick", "what_is_in", "lintian", without=("dpkg-buildpackage", "dh"), least=2), "debhelper")
    contains(check("deploy/rpm_packages.py", BUILD, SOURCE, "quick", without=("rpmbuild",), least=2), "rpmbuild")


if __name__ == "__main__":
    run()
