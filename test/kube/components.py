# SPDX-License-Identifier: Apache-2.0
"""The programs of a node. None is installed: packages are unpacked, Kubernetes is compiled, both once, where test/lib/fetch.py keeps what it fetches.

    components.py --cache FOLDER NAME...      as fetch.py, with "kubernetes", all of it, and "kubernetes-server", which is the API server alone

Debian 12's source package "kubernetes" builds kubectl alone, but its tarball is all of upstream's tree of 1.20.2 with what it needs, so that the rest compiles
from it without a download of any module; by Debian 11's golang-1.15, which upstream used for 1.20. $GPUSONDE_KUBE_BIN names a folder where the four are already.
"""
import glob
import os
import platform
import re
import shutil
import subprocess

from lib import fetch

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
VERSION = "1.20.2"
SERVER = "kube-apiserver"
PACKAGES = ("etcd-server", "containerd", "runc", "libseccomp2", "containernetworking-plugins", "busybox-static")
BUILD_S = 3600
TREE = "src/k8s.io/kubernetes"
OPENAPI = "pkg/generated/openapi"


def get_packages(folder, *packages):
    with fetch.side_apt("bookworm", "main", "amd64") as apt:
        for package in packages:
            apt.unpack(package, folder)


def unpack_sources(gopath):
    """Kubernetes' tree where Go of that time looks for it."""
    tree = f"{gopath}/{TREE}"
    os.makedirs(tree)
    with fetch.side_apt("bookworm", "main", "amd64", kind="deb-src") as apt:
        fetch.command("env", "-C", gopath, "apt-get", "-c", apt.config, "-q", "source", "--only-source", "--download-only", "kubernetes",
                      what=f"{apt.what}, sources: kubernetes")
    archive = fetch.one(gopath, f"kubernetes_*really{VERSION}*.orig.tar.gz")
    fetch.command("tar", "-xzf", archive, "-C", tree, "--strip-components=1", what="kubernetes' source package")
    return tree


def openapi_folders(tree):
    """Packages that upstream's Makefile.generated_files chooses."""
    found = set()
    for top in ("cmd", "pkg", "plugin", "staging/src/k8s.io"):
        for path in glob.glob(f"{tree}/{top}/**/*.go", recursive=True):
            if "/code-generator/" in path or "/sample-apiserver/" in path:
                continue
            with open(path, encoding="utf-8", errors="replace") as f:
                if re.search(r"^// *\+k8s:openapi-gen=", f.read(), re.M):
                    found.add(os.path.dirname(os.path.relpath(path, tree)))
    return sorted("k8s.io/kubernetes/" + re.sub("^staging/src/", "vendor/", folder) for folder in found)


class Go:
    """The compiler of that time."""

    def __init__(self, folder, tree):
        with fetch.side_apt("bullseye", "main", "amd64") as apt:
            for package in ("golang-1.15-src", "golang-1.15-go"):
                apt.unpack(package, f"{folder}/go")
        root = f"{folder}/go/usr/lib/go-1.15"
        os.makedirs(f"{folder}/tmp")
        self.tree = tree
        self.env = [f"GOROOT={root}", f"GOPATH={folder}", "GO111MODULE=off", "GOPROXY=off", "GOFLAGS=", "GOGC=400", "CGO_ENABLED=0", f"GOCACHE={folder}/cache",
                    f"GOTMPDIR={folder}/tmp", f"HOME={folder}", f"PATH={root}/bin:{os.environ['PATH']}"]

    def build(self, package, output, *flags):
        self.run("go", "build", *flags, "-o", output, package)

    def run(self, *args):
        """What was fetched compiles: anything else is a failure, and nothing that cannot be had."""
        try:
            fetch.command("env", "-C", self.tree, *self.env, *args, what=f"{args[0]} of kubernetes", limit_s=BUILD_S)
        except fetch.Unavailable as why:
            raise RuntimeError(str(why)) from None


def version_flags():
    """What upstream's build tells the programs of themselves."""
    of = [f"-X k8s.io/kubernetes/vendor/k8s.io/{package}.git{name}={value}" for package in ("client-go/pkg/version", "component-base/version")
          for name, value in (("Version", f"v{VERSION}"), ("Major", "1"), ("Minor", "20"), ("TreeState", "archive"))]
    return ["-ldflags", " ".join(["-s -w", *of])]


def get_kubernetes(folder, programs, *flags):
    work = f"{folder}/build"
    tree = unpack_sources(work)
    go = Go(work, tree)
    # The one file that upstream keeps out of its tree.
    if not os.path.exists(f"{tree}/{OPENAPI}/zz_generated.openapi.go"):
        go.build("./vendor/k8s.io/kube-openapi/cmd/openapi-gen", f"{work}/openapi-gen", *flags)
        go.run(f"{work}/openapi-gen", "--logtostderr", "-i", ",".join(openapi_folders(tree)), "-p", f"k8s.io/kubernetes/{OPENAPI}",
               "-O", "zz_generated.openapi", "-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt", "-r", f"{work}/violations")
    for program in programs:
        go.build(f"./cmd/{program}", f"{folder}/{program}", *flags, *version_flags())
    subprocess.run(["chmod", "-R", "u+w", work], check=True)
    shutil.rmtree(work)


fetch.THINGS["etcd"] = (get_packages, "etcd-server")
fetch.THINGS["kubernetes-packages"] = (get_packages, *PACKAGES)
fetch.THINGS["kubernetes"] = (get_kubernetes, PROGRAMS)
# Without the clouds' own libraries: some 150 s of a processor.
fetch.THINGS["kubernetes-server"] = (get_kubernetes, (SERVER,), "-tags", "providerless")


def needs_its_machine():
    if platform.machine() != "x86_64":
        raise fetch.Unavailable(f"the node's programs are fetched for x86-64 alone, and this machine is {platform.machine()}")


class Server:
    """Where an API server and its etcd are."""
    libraries = ""

    def __init__(self, cache):
        needs_its_machine()
        self.server = fetch.get("kubernetes-server", cache)[SERVER]
        self.etcd = fetch.one(os.path.dirname(fetch.get("etcd", cache)["usr"]), "**/bin/etcd")

    def program(self, name):
        return {SERVER: self.server, "etcd": self.etcd}.get(name)


def of_a_plane(cache):
    """What there is, or may be made here, of the programs that decide: all of them, or the API server alone."""
    how, there = os.environ.get("GPUSONDE_KUBE_COMPILE"), fetch.cache_of(cache)
    if how == "all" or os.environ.get("GPUSONDE_KUBE_BIN") or os.path.isdir(f"{there}/kubernetes"):
        return Components(cache)
    if how == "server" or os.path.isdir(f"{there}/kubernetes-server"):
        return Server(cache)
    raise fetch.Unavailable("Kubernetes is not compiled on this machine: GPUSONDE_KUBE_COMPILE=server has its API server compiled, once, in some minutes, make test-matrix all of it;"
                            " GPUSONDE_KUBE_BIN names a folder where it is")


class Components:
    """Where each program is."""

    def __init__(self, cache):
        needs_its_machine()
        prebuilt = os.environ.get("GPUSONDE_KUBE_BIN")
        self.folder = os.path.abspath(prebuilt) if prebuilt else os.path.dirname(fetch.get("kubernetes", cache)["kubelet"])
        self.root = os.path.dirname(fetch.get("kubernetes-packages", cache)["usr"])
        self.grpc = fetch.get("grpcio", cache)["site"]
        lacking = [name for name in PROGRAMS if not os.access(f"{self.folder}/{name}", os.X_OK)]
        if lacking:
            raise fetch.Unavailable(f"{self.folder} has no {', '.join(lacking)}" + ("; GPUSONDE_KUBE_BIN names it" if prebuilt else ""))
        self.cni = f"{self.root}/usr/lib/cni"
        self.libraries = f"{self.root}/usr/lib/x86_64-linux-gnu"
        self.path = f"{self.root}/usr/bin:{self.root}/usr/sbin:{self.root}/bin:/usr/bin:/bin"

    def program(self, name):
        if name in PROGRAMS:
            return f"{self.folder}/{name}"
        return fetch.one(self.root, f"**/bin/{name}") if name != "runc" else f"{self.root}/usr/sbin/runc"


if __name__ == "__main__":
    fetch.main()
