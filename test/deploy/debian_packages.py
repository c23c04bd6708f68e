#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: what is in them, what lintian says; and in a Debian of their own they are installed, upgraded, removed and purged.

    debian_packages.py BUILD SOURCE quick|full [WORD OF A NAME...]

quick: packages of the programs that are built already; full: built from nothing, as "make deb" does, and judged by lintian.
"""
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from lib import fetch
from deploy.installed import boards_and_rules
from lib.e2e import BUILD, SOURCE, Skip, contains, environment, equal, run
from matrix import root

FULL = sys.argv[3] == "full"
BUILD_S, APT_S = 3600, 600
UNITS = {"gpusonde.service", "gpusonde-web.service", "gpusonde-web.socket", "atopgpu.service"}
CONFIGURATION = "/etc/gpusonde/gpusonde.yaml"
# What every package has, or apt leaves.
OTHERS = r"/(var/(lib/(dpkg|apt)|cache|log)|etc/(ld\.so\.cache|systemd/system|resolv)|usr/(share/(doc|man|info|mime)|lib/python3|local)|root|tmp|run|dev|proc|sys)\b"


@functools.cache
def made():
    """Folder of the packages."""
    for tool in ("dpkg-buildpackage", "dh"):
        if not shutil.which(tool):
            raise Skip(f"no {tool} on this machine: install debhelper and dpkg-dev")
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-deb-")
    done = subprocess.run([f"{SOURCE}/deploy/debian/build", folder.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=BUILD_S, env=environment(DEB_BUILD_OPTIONS="", **({} if FULL else {"GPUSONDE_PREBUILT": BUILD})), check=False)
    if done.returncode and "Unmet build dependencies" in done.stdout:
        raise Skip(re.search(r".*Unmet build dependencies.*", done.stdout)[0])
    equal(done.returncode, 0, done.stdout[-3000:])
    return folder # which goes when we do


def package(name):
    return glob.glob(f"{made().name}/{name}_*.deb")[0]


def contents(name):
    """Paths of files and links, and their lines."""
    listed = subprocess.run(["dpkg-deb", "-c", package(name)], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 5) for line in listed.splitlines() if not line.startswith("d")]
    return {line[5].split(" -> ")[0].removeprefix("."): line for line in lines}


def field(name, key):
    return subprocess.run(["dpkg-deb", "-f", package(name), key], capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_in_them():
    found, simulated = contents("gpusonde"), contents("gpusonde-sim")
    equal({os.path.basename(p) for p in found if p.endswith((".service", ".socket"))}, UNITS, "units")
    with open(f"{SOURCE}/meson.build", encoding="utf-8") as f:
        helpers = re.findall(r"^gpusonde_\w+ = executable\('([\w-]+)'", f.read(), re.M)
    equal({p for p in found if "/libexec/" in p}, {f"/usr/libexec/gpusonde/{name}" for name in [*helpers, "dcgm-exporter", "libgpusonde-nccl.so", "libgpusonde-cupti.so"]}, "programs that it starts")
    for path in ("/usr/bin/gpusonde", "/usr/sbin/atopgpud", CONFIGURATION, "/usr/share/man/man8/gpusonde.8.gz", "/usr/share/man/man5/gpusonde.yaml.5.gz",
                 "/usr/share/man/man8/atopgpud.8.gz", "/usr/share/doc/gpusonde/copyright", "/usr/share/bash-completion/completions/gpusonde",
                 "/usr/share/fish/vendor_completions.d/gpusonde.fish", "/usr/share/zsh/vendor-completions/_gpusonde"):
        contains(found, path)
    equal({p for p in found if p.startswith("/usr/share/gpusonde/") and "." in p}, boards_and_rules(), "boards and rules")
    equal([p for p in found if "/sim/" in p or "local" in p], [], "files that are not its own")
    assert any(p.endswith("/gpusonde/sim/libnvidia-ml.so.1") for p in simulated), sorted(simulated)
    equal([p for p in simulated if "/bin/" in p or p.startswith("/etc")], [], "programs of the simulated driver's package")
    for path, line in {**found, **simulated}.items():
        equal(line[1], "root/root", path)
        assert "s" not in line[0], f"{path} is set-user-ID"


def test_versions_and_dependencies():
    """The version is meson's; what is needed to build is what the Makefile says; what is needed to run was found in the programs."""
    with open(f"{SOURCE}/meson.build", encoding="utf-8") as f:
        equal(field("gpusonde", "Version"), re.search(r"version: '([\d.]+)'", f.read())[1])
    with open(f"{SOURCE}/Makefile", encoding="utf-8") as f:
        lists = dict(re.findall(r"^(TOOLS|LIBRARIES) = ((?:.*\\\n)*.*)$", f.read(), re.M))
    wanted = set(" ".join(lists.values()).replace("\\", "").split()) - {"gcc", "libc6-dev"} # which every build has
    with open(f"{SOURCE}/deploy/debian/control", encoding="utf-8") as f:
        needed = re.search(r"^Build-Depends: ((?:.*,\n)*.*)$", f.read(), re.M)[1]
    names = {re.match(r"[\w.+-]+", word.strip())[0] for word in needed.split(",")} - {"debhelper-compat"}
    equal({n.replace("pkgconf", "pkg-config") for n in names}, wanted, "Build-Depends and the Makefile's packages")
    for library in ("libbpf1", "libyaml-0-2", "libmicrohttpd12", "libc6"):
        contains(field("gpusonde", "Depends"), library)


def test_lintian():
    if not shutil.which("lintian"):
        raise Skip("no lintian on this machine")
    changes = glob.glob(f"{made().name}/*.changes")[0]
    # The mirror of prebuilt programs says nothing of how they are built.
    suppressed = [] if FULL else ["--suppress-tags", "hardening-no-fortify-functions,hardening-no-bindnow"]
    done = subprocess.run(["lintian", "--allow-root", "--no-cfg", *suppressed, changes], capture_output=True, text=True, check=False)
    equal([line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")], [], "what lintian says")


def files(debian):
    """Of the whole system, but what packages and apt itself leave."""
    found = set()
    for at, folders, names in os.walk(debian.path):
        here = at.removeprefix(debian.path)
        folders[:] = [d for d in folders if not re.match(OTHERS, f"{here}/{d}")]
        found.update(f"{here}/{n}" for n in [*names, *folders] if not re.match(OTHERS, f"{here}/{n}"))
    return found


def apt(debian, *args):
    done = debian.run("apt-get", "-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *args, limit_s=APT_S)
    if done.returncode and re.search(r"Could not resolve|Failed to fetch|Unable to fetch|Unable to locate", done.stdout):
        raise Skip(f"packages cannot be had there: {done.stdout.strip().splitlines()[-1]}")
    equal(done.returncode, 0, f"apt-get {args}: {done.stdout[-2000:]}")
    return done.stdout


def newer(folder):
    """The same package, of a later version, and whose sample configuration differs."""
    tree = f"{folder}/newer"
    subprocess.run(["dpkg-deb", "-R", package("gpusonde"), tree], check=True)
    for path, old, new in ((f"{tree}/DEBIAN/control", f"Version: {field('gpusonde', 'Version')}", "Version: 99.0"), (f"{tree}{CONFIGURATION}", "", "# newer\n")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new) if old else new + text)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, f"{folder}/newer.deb"], check=True, capture_output=True)
    return f"{folder}/newer.deb"


def test_installed_upgraded_removed_and_purged():
    """It runs there; a changed configuration outlives an upgrade and a removal; nothing is enabled; after a purge nothing is left."""
    if os.geteuid() != 0:
        raise Skip("needs root, for a root folder of its own")
    try:
        archive = fetch.get("root-bookworm-amd64", f"{BUILD}/real")["root.tar"]
        with tempfile.TemporaryDirectory(prefix="gpusonde-newer-") as tmp, root.Root(archive, tmp) as debian:
            check(debian, tmp)
    except (fetch.Unavailable, root.Unusable) as why:
        raise Skip(str(why)) from None


def check(debian, tmp):
    shutil.copy(package("gpusonde"), f"{debian.path}/root/1.deb")
    shutil.copy(package("gpusonde-sim"), f"{debian.path}/root/sim.deb")
    shutil.copy(newer(tmp), f"{debian.path}/root/2.deb")
    apt(debian, "update")
    needed = re.sub(r" \([^)]*\)", "", field("gpusonde", "Depends")).split(", ")
    apt(debian, "install", *[name.split(" | ")[0] for name in needed], "init-system-helpers")
    os.makedirs(f"{debian.path}/var/lib/private", mode=0o700, exist_ok=True) # systemd's own
    before = files(debian)
    apt(debian, "install", "/root/1.deb", "/root/sim.deb")
    equal(debian.run("gpusonde", "--version").stdout.split()[1], field("gpusonde", "Version"))
    library = next(p for p in contents("gpusonde-sim") if p.endswith("libnvidia-ml.so.1"))
    # What is built already looks for scenarios elsewhere.
    scenario = [] if FULL else ["env", "GPUSONDE_SIM_SCENARIO=/usr/share/gpusonde/scenarios/node-8xh100.yaml"]
    table = debian.run(*scenario, "gpusonde", "gpus", "--nvml-library", library).stdout
    equal(table.count("H100"), 8, table)
    links = debian.run("find", "/etc/systemd", "-name", "*gpusonde*", "-o", "-name", "atopgpu*").stdout
    equal(links, "", "what is enabled")
    equal(debian.run("gpusonde", "agent", "--check-config", "--config", CONFIGURATION).returncode, 0, "the configuration that comes with it")
    check_configuration(debian)
    apt(debian, "purge", "gpusonde", "gpusonde-sim")
    equal(files(debian) - before, set(), "what is left after a purge")


def check_configuration(debian):
    """It is the administrator's. And what the agent wrote is there until the purge."""
    with open(debian.path + CONFIGURATION, "a", encoding="ascii") as f:
        f.write("# mine\n")
    os.mkdir(f"{debian.path}/var/lib/private/gpusonde")
    os.symlink("private/gpusonde", f"{debian.path}/var/lib/gpusonde")
    with open(f"{debian.path}/var/lib/gpusonde/xids.json", "w", encoding="ascii") as f:
        f.write("{}")
    apt(debian, "install", "/root/2.deb")
    def configuration():
        with open(debian.path + CONFIGURATION, encoding="utf-8") as f:
            return f.read()
    assert configuration().endswith("# mine\n") and not configuration().startswith("# newer"), "an upgrade changed the administrator's configuration"
    equal(debian.run("dpkg-query", "-W", "-f", "${Version}", "gpusonde").stdout, "99.0")
    apt(debian, "remove", "gpusonde")
    assert configuration().endswith("# mine\n"), "a removal took the configuration"
    assert os.path.exists(f"{debian.path}/var/lib/private/gpusonde/xids.json"), "a removal took what the agent wrote"
    equal(debian.run("sh", "-c", "command -v gpusonde").returncode != 0, True, "the program is gone")


if __name__ == "__main__":
    del sys.argv[3]
    run()
