#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The RPM packages, by Debian's rpmbuild: what is in them, and that nothing but a changed configuration is left by a removal.

    rpm_packages.py BUILD SOURCE quick|full [WORD OF A NAME...]

quick: packages of the programs that are built already; full: built from nothing.
"""
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from deploy.installed import boards_and_rules
from lib.e2e import BUILD, SOURCE, Skip, contains, environment, equal, run

FULL = sys.argv[3] == "full"
BUILD_S = 3600
CONFIGURATION = "/etc/gpusonde/gpusonde.yaml"
UNITS = {"gpusonde.service", "gpusonde-web.service", "gpusonde-web.socket", "atopgpu.service"}


@functools.cache
def made():
    """Folder of the packages."""
    if not shutil.which("rpmbuild"):
        raise Skip("no rpmbuild on this machine: install rpm")
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-rpm-")
    done = subprocess.run([f"{SOURCE}/deploy/rpm/build", folder.name, *([] if FULL else ["--define", f"prebuilt {BUILD}"])], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_S, env=environment(), check=False)
    equal(done.returncode, 0, done.stdout[-3000:])
    return folder # which goes when we do


def package(name):
    return glob.glob(f"{made().name}/{name}-[0-9]*.rpm")[0]


def rpm(*args):
    if not shutil.which("rpm"):
        raise Skip("no rpm on this machine: install rpm")
    done = subprocess.run(["rpm", *args], capture_output=True, text=True, env=environment(LC_ALL="C"), check=False)
    equal(done.returncode, 0, f"rpm {args}: {done.stderr}")
    return done.stdout


def test_what_is_in_them():
    found, simulated = (set(rpm("-qpl", package(name)).split()) for name in ("gpusonde", "gpusonde-sim"))
    equal({os.path.basename(p) for p in found if p.endswith((".service", ".socket"))}, UNITS, "units")
    with open(f"{SOURCE}/meson.build", encoding="utf-8") as f:
        text = f.read()
    helpers = re.findall(r"^gpusonde_\w+ = executable\('([\w-]+)'", text, re.M)
    equal({p for p in found if "/libexec/gpusonde/" in p}, {f"/usr/libexec/gpusonde/{name}" for name in [*helpers, "dcgm-exporter", "libgpusonde-nccl.so", "libgpusonde-cupti.so"]}, "programs that it starts")
    for path in ("/usr/bin/gpusonde", "/usr/sbin/atopgpud", CONFIGURATION):
        contains(found, path)
    equal({p for p in found if p.startswith("/usr/share/gpusonde/") and "." in p}, boards_and_rules(), "boards and rules")
    equal([p for p in found if "/sim/" in p or "local" in p], [], "files that are not its own")
    contains(simulated, "/usr/lib/gpusonde/sim/libnvidia-ml.so.1")
    equal(rpm("-qp", "--qf", "%{VERSION}", package("gpusonde")), re.search(r"version: '([\d.]+)'", text)[1])
    equal(rpm("-qpc", package("gpusonde")).split(), [CONFIGURATION], "configuration")
    assert "libnvidia-ml" not in rpm("-qp", "--provides", package("gpusonde-sim")), "the simulated driver would stand for the real one"
    contains(rpm("-qp", "--requires", package("gpusonde")), "libbpf.so.1")


def test_installed_and_removed():
    """In a folder of its own; what it needs is not looked for, since Debian's packages are not known to rpm."""
    if os.geteuid() != 0:
        raise Skip("only root can install below another root folder")
    with tempfile.TemporaryDirectory(prefix="gpusonde-rpm-root-") as tmp:
        there = ["--root", tmp, "--nodeps", "--noscripts"]
        rpm("--root", tmp, "--initdb")
        rpm(*there, "--install", package("gpusonde"), package("gpusonde-sim"))
        done = subprocess.run([f"{tmp}/usr/bin/gpusonde", "gpus", "--nvml-library", f"{tmp}/usr/lib/gpusonde/sim/libnvidia-ml.so.1"], capture_output=True, text=True,
                              env=environment(GPUSONDE_SIM_SCENARIO=f"{tmp}/usr/share/gpusonde/scenarios/node-8xh100.yaml"), check=False)
        equal((done.returncode, done.stdout.count("H100")), (0, 8), done.stderr)
        with open(tmp + CONFIGURATION, "a", encoding="ascii") as f:
            f.write("# mine\n")
        rpm(*there, "--erase", "gpusonde", "gpusonde-sim")
        left = [os.path.join(at, name).removeprefix(tmp) for at, _, names in os.walk(tmp) for name in names]
        equal([p for p in left if "/lib/rpm" not in p and "/.rpmdb" not in p], [f"{CONFIGURATION}.rpmsave"], "what is left")


if __name__ == "__main__":
    del sys.argv[3]
    run()
