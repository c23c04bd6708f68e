# SPDX-License-Identifier: Apache-2.0
"""Images of containers in one OCI archive, made by hand: no registry is asked."""
import hashlib
import importlib.util
import io
import json
import re
import struct
import subprocess
import tarfile

from lib.e2e import BUILD, SOURCE

REGISTRY = "gpusonde.test"
PAUSE, WORK, AGENT = (f"{REGISTRY}/{name}:1" for name in ("pause", "work", "gpusonde"))
PREFIX = "gsw-" # of the names of programs that work, by which the scenario finds them
SCENARIO = "/etc/scenario.yaml" # of the simulated CUDA
MEDIA = "application/vnd.oci.image."


def pause_program():
    """A whole x86-64 program: pause() without end."""
    code = b"\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7"
    base, offset = 0x400000, 64 + 56
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + offset, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, offset + len(code), offset + len(code), 0x1000) + code


class Layer:
    """A tar archive; what is added twice is there once."""

    def __init__(self):
        self.bytes, self.names = io.BytesIO(), set()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.GNU_FORMAT)

    def add(self, path, data=b"", mode=0o755, kind=tarfile.REGTYPE, link=""):
        if path in self.names:
            return
        self.names.add(path)
        info = tarfile.TarInfo(path.lstrip("/"))
        info.mode, info.type, info.linkname, info.size = mode, kind, link, len(data)
        self.tar.addfile(info, io.BytesIO(data))

    def add_folders(self, *paths, mode=0o755):
        for path in paths:
            self.add(path, mode=mode, kind=tarfile.DIRTYPE)

    def add_file(self, path, source):
        with open(source, "rb") as f:
            self.add(path, f.read())

    def add_program(self, path, source):
        """With the libraries that it is linked to."""
        self.add_file(path, source)
        linked = subprocess.run(["ldd", source], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            self.add_file(library, library)

    def end(self):
        self.tar.close()
        return self.bytes.getvalue()


def pause_layer():
    layer = Layer()
    layer.add("/pause", pause_program())
    return layer.end()


def work_layer(busybox, scenario, programs):
    """A shell, simulated CUDA, and its program under each of these names."""
    layer = Layer()
    layer.add_folders("/proc", "/sys", "/dev", "/etc", "/bin")
    layer.add_folders("/tmp", mode=0o1777)
    layer.add_file("/bin/busybox", busybox)
    layer.add("/bin/sh", kind=tarfile.SYMTYPE, link="busybox")
    layer.add("/bin/sleep", kind=tarfile.SYMTYPE, link="busybox")
    layer.add(SCENARIO, scenario.encode(), 0o644)
    layer.add_program("/usr/bin/workload-late", f"{BUILD}/sim/cuda/workload-late")
    layer.add_program("/usr/lib/libcuda.so.1", f"{BUILD}/sim/cuda/libcuda.so.1")
    for name in programs:
        layer.add(f"/bin/{PREFIX}{name}", kind=tarfile.SYMTYPE, link="/usr/bin/workload-late")
    return layer.end()


def agent_image():
    """(layer, configuration) of what "make image" makes."""
    spec = importlib.util.spec_from_file_location("image", f"{SOURCE}/deploy/container/image.py")
    image = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(image)
    return image.Root(BUILD).tar(), image.configuration()


def write(path, images):
    """@images: name -> (layer, configuration), into an archive that "ctr images import" reads."""
    blobs, index = {}, []

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": MEDIA + kind, "digest": f"sha256:{digest}", "size": len(data)}

    for name, (layer, config) in images.items():
        diff = "sha256:" + hashlib.sha256(layer).hexdigest()
        of = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                              "rootfs": {"type": "layers", "diff_ids": [diff]}}).encode(), "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": of, "layers": [blob(layer, "layer.v1.tar")]}
        index.append({**blob(json.dumps(manifest).encode(), "manifest.v1+json"), "annotations": {"io.containerd.image.name": name}})
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps({"schemaVersion": 2, "manifests": index}).encode(),
             **{f"blobs/sha256/{digest}": data for digest, data in blobs.items()}}
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def write_all(path, busybox, scenario, programs):
    """All three."""
    write(path, {PAUSE: (pause_layer(), {"Entrypoint": ["/pause"]}),
                 WORK: (work_layer(busybox, scenario, programs), {"Env": ["PATH=/bin", f"GPUSONDE_SIM_SCENARIO={SCENARIO}"]}),
                 AGENT: agent_image()})
