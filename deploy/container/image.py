#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image, without a container engine: gpusonde, the libraries that it is linked to, certificates, descriptions of terminals, a user, and nothing else.

    image.py BUILD --root FOLDER       the root folder
    image.py BUILD --oci FOLDER        an OCI layout with it in one layer, FOLDER.tar with the same in a file, and FOLDER.sbom.json

Two images have that layer: gpusonde, and gpusonde-dcgm-exporter, which is started as the DCGM exporter's is.

Libraries are this machine's, which is a Debian: its packages are listed in the image where scanners look for them, with their licences, and in the
SBOM. The same programs and packages make the same bytes. How an image is started is read from the Dockerfile beside this file.
"""
import argparse
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MEDIA = "application/vnd.oci.image."
# What the driver's library, which the toolkit mounts, is linked to.
FOR_THE_DRIVER = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")
# Descriptions of the terminals that "gpusonde top" is mostly run on.
TERMINALS = ("l/linux", "s/screen", "s/screen-256color", "t/tmux-256color", "v/vt100", "x/xterm", "x/xterm-256color")
FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\ngpusonde:x:65532:65532:gpusonde:/:/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\ngpusonde:x:65532:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# (mode, owner); engines mount what must be written over the last two.
FOLDERS = {"/proc": (0o555, 0), "/sys": (0o555, 0), "/dev": (0o755, 0), "/tmp": (0o1777, 0), "/run": (0o755, 0), "/var/lib": (0o755, 0), "/etc/gpusonde": (0o755, 0),
           "/run/gpusonde": (0o755, 65532), "/var/lib/gpusonde": (0o755, 65532)}
COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
LINKS = {"/bin": "usr/bin", "/lib": "usr/lib", "/lib64": "usr/lib64", "/sbin": "usr/sbin",
         "/usr/bin/dcgm-exporter": "gpusonde", "/etc/dcgm-exporter/dcp-metrics-included.csv": "default-counters.csv"}
STAGES = ("gpusonde", "dcgm-exporter")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def output(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def merged(path):
    """Where a path of this machine lies: /lib is /usr/lib."""
    return re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", path)


class Root:
    """What the image has: path -> (mode, owner, bytes), or a link's target."""

    def __init__(self, build):
        self.files, self.links, self.packages = {}, dict(LINKS), {}
        self.version = output(f"{build}/gpusonde", "--version").split()[1]
        for path, text in FILES.items():
            self.add(path, text.encode())
        self.add(COUNTERS, read(f"{HERE}/counters.csv"))
        self.add_programs(build)
        self.add_certificates()
        self.add_terminals()
        for name in ("/etc/os-release", "/etc/debian_version"): # by the latter the toolkit knows where libraries belong
            self.add(name, read(name))
        self.add_packages()

    def add(self, path, data, mode=0o644):
        self.files[path] = (mode, 0, data)

    # ---- what it has ----

    def add_programs(self, build):
        programs = {f"{build}/gpusonde": "/usr/bin/gpusonde"}
        for path in sorted(glob.glob(f"{build}/gpusonde-*")):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                programs[path] = f"/usr/libexec/gpusonde/{os.path.basename(path)}"
        # What users' programs load, copied or mounted from here.
        programs.update({path: f"/usr/libexec/gpusonde/{os.path.basename(path)}" for path in sorted(glob.glob(f"{build}/libgpusonde-*.so"))})
        with tempfile.TemporaryDirectory(prefix="gpusonde-image-") as tmp:
            for path, there in programs.items():
                subprocess.run(["strip", "-o", f"{tmp}/stripped", path], check=True)
                self.add(there, read(f"{tmp}/stripped"), 0o755)
                self.add_libraries(path)

    def add_libraries(self, program):
        """With the names that they are looked for by."""
        told = output("ldd", program)
        found = re.findall(r"(/\S+) \(0x", told)
        folder = os.path.dirname(next(path for path in found if path.endswith("/libc.so.6")))
        for path in [*found, *[f"{folder}/{name}" for name in FOR_THE_DRIVER]]:
            real = os.path.realpath(path)
            if real not in self.files: # another program's, too: dpkg-query reads all of its lists each time
                self.add(real, read(real), 0o755)
                self.of_package(real)
            if merged(path) != real:
                self.links[merged(path)] = os.path.relpath(real, os.path.dirname(merged(path)))

    def add_certificates(self):
        """Those of the package, not what an administrator has added on this machine."""
        listed = sorted(p for p in output("dpkg-query", "-L", "ca-certificates").split() if p.endswith(".crt"))
        self.add(BUNDLE, b"".join(read(p) for p in listed))
        self.of_package(listed[0])

    def add_terminals(self):
        for name in TERMINALS:
            self.add(f"/usr/lib/terminfo/{name}", read(os.path.realpath(f"/lib/terminfo/{name}")))
            self.of_package(f"/usr/lib/terminfo/{name}")

    # ---- of which packages that is ----

    def of_package(self, path):
        for spelt in (path, path.removeprefix("/usr")):
            done = subprocess.run(["dpkg-query", "-S", spelt], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                package = done.stdout.split(": ")[0].split(",")[0]
                self.packages.setdefault(package, []).append(path)
                return
        raise SystemExit(f"{path} is of no package: what is in the image could not be said")

    def add_packages(self):
        for package in sorted(self.packages):
            name = package.split(":")[0]
            self.add(f"/var/lib/dpkg/status.d/{name}", output("dpkg-query", "-s", package).encode())
            licence = f"/usr/share/doc/{name}/copyright"
            self.add(licence, read(os.path.realpath(licence)))
        self.add("/usr/share/doc/gpusonde/copyright", read(f"{HERE}/../../LICENSE"))

    def sbom(self):
        """CycloneDX."""
        system = re.search(rb"^ID=(\w+)", read("/etc/os-release"), re.M)[1].decode()
        components = []
        for package in sorted(self.packages):
            name, version, arch, source = output("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}\t${source:Package}", package).split("\t")
            components.append({"type": "library", "name": name, "version": version, "purl": f"pkg:deb/{system}/{name}@{version}?arch={arch}",
                               "properties": [{"name": "source", "value": source}, *[{"name": "file", "value": p} for p in sorted(self.packages[package])]]})
        return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components,
                "metadata": {"component": {"type": "container", "name": "gpusonde", "version": self.version, "licenses": [{"license": {"id": "Apache-2.0"}}]}}}

    # ---- as an archive ----

    def tar(self):
        """One layer. Times are none, so that the same makes the same."""
        entries = {path: (mode, owner, None) for path, (mode, owner) in FOLDERS.items()}
        for path in [*self.files, *self.links]:
            while (path := os.path.dirname(path)) != "/":
                entries.setdefault(path, (0o755, 0, None))
        entries.update(self.files)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path in sorted([*entries, *self.links]):
                info = tarfile.TarInfo(path.lstrip("/"))
                if path in self.links:
                    info.type, info.linkname, info.mode = tarfile.SYMTYPE, self.links[path], 0o777
                    tar.addfile(info)
                    continue
                info.mode, info.uid, data = entries[path]
                info.gid = info.uid
                info.type, info.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
                tar.addfile(info, io.BytesIO(data or b""))
        return buffer.getvalue()


def configuration(stage="gpusonde"):
    """Of a stage of the Dockerfile and the one that it begins with, as OCI has it."""
    with open(f"{HERE}/Dockerfile", encoding="utf-8") as f:
        stages = {re.match(r".* AS ([\w-]+)", text)[1]: text for text in f.read().split("\nFROM ")[1:]}
    said = dict(re.findall(r"^(ENV|USER|ENTRYPOINT|CMD) (.*)$", stages["root"] + stages[stage], re.M))
    return {"Env": shlex.split(said["ENV"]), "User": said["USER"], "Entrypoint": json.loads(said["ENTRYPOINT"]), "Cmd": json.loads(said["CMD"])}


def image(root):
    """(path -> bytes) of an OCI layout."""
    layer = root.tar()
    packed = gzip.compress(layer, mtime=0)
    files, index = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}, []

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": MEDIA + kind, "digest": f"sha256:{digest}", "size": len(data)}

    for stage in STAGES:
        name = "gpusonde" if stage == "gpusonde" else f"gpusonde-{stage}"
        labels = {"org.opencontainers.image.title": name, "org.opencontainers.image.version": root.version, "org.opencontainers.image.licenses": "Apache-2.0"}
        about = {"architecture": ARCHITECTURES[os.uname().machine], "os": "linux", "config": {**configuration(stage), "Labels": labels},
                 "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
                 "history": [{"created_by": "deploy/container/image.py"}]}
        manifest = {"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": blob(json.dumps(about).encode(), "config.v1+json"),
                    "layers": [blob(packed, "layer.v1.tar+gzip")], "annotations": labels}
        named = {"io.containerd.image.name": f"localhost/{name}:{root.version}", "org.opencontainers.image.ref.name": f"{name}:{root.version}"}
        index.append({**blob(json.dumps(manifest).encode(), "manifest.v1+json"), "annotations": named,
                      "platform": {"architecture": about["architecture"], "os": "linux"}})
    files["index.json"] = json.dumps({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": index}).encode()
    return files


def write_layout(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)
    with tarfile.open(f"{folder}.tar", "w") as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))


def main():
    parser = argparse.ArgumentParser(description="makes the container image")
    parser.add_argument("build", help="a build folder in which all is built")
    parser.add_argument("--root", help="a folder to fill")
    parser.add_argument("--oci", help="an OCI layout to write")
    args = parser.parse_args()
    root = Root(os.path.abspath(args.build))
    if args.root:
        os.makedirs(args.root, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(root.tar())) as tar:
            tar.extractall(args.root, numeric_owner=True)
    if args.oci:
        files = image(root)
        write_layout(args.oci, files)
        with open(f"{args.oci}.sbom.json", "w", encoding="utf-8") as f:
            json.dump(root.sbom(), f, indent=1)
            f.write("\n")
        unpacked, packed = sum(len(data) for _, _, data in root.files.values()), sum(map(len, files.values()))
        print(f"{args.oci}.tar: {packed / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB, of {len(root.packages)} packages ({args.oci}.sbom.json)")


if __name__ == "__main__":
    sys.exit(main())
