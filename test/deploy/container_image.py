#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image that deploy/container/image.py makes of this build: what is in it, and that it runs with no rights at all.

    container_image.py BUILD SOURCE [WORD OF A NAME...]
"""
import contextlib
import functools
import glob
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from lib.e2e import BUILD, PATIENCE_S, SOURCE, Skip, UnixConnection, equal, run, values, wait_for

LIMIT_BYTES = 60_000_000
LIBRARY, SCENARIO = "/usr/lib/gpusonde/libnvidia-ml.so.1", "/usr/lib/gpusonde/scenario.yaml"
USER = 65532
# Of which gpusonde top knows the keys and colours.
TERMINALS = ("l/linux", "s/screen", "s/screen-256color", "t/tmux-256color", "v/vt100", "x/xterm", "x/xterm-256color")


@functools.cache
def program():
    """deploy/container/image.py."""
    spec = importlib.util.spec_from_file_location("image", f"{SOURCE}/deploy/container/image.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def made():
    for tool in ("dpkg-query", "strip", "ldd", "readelf"):
        if not shutil.which(tool):
            raise Skip(f"no {tool} on this machine")
    if not glob.glob("/usr/share/ca-certificates/mozilla/*.crt"):
        raise Skip("the package ca-certificates is not installed")
    return program().Root(BUILD)


@functools.cache
def unpacked():
    """The root folder; it goes when we do."""
    folder = tempfile.TemporaryDirectory(prefix="gpusonde-image-")
    os.chmod(folder.name, 0o755)
    with tarfile.open(fileobj=io.BytesIO(made().tar())) as tar:
        tar.extractall(folder.name, numeric_owner=os.geteuid() == 0)
    return folder


def inside(path):
    """Where a path of the image lies, by its links."""
    root, done = unpacked().name, ""
    parts = path.strip("/").split("/")
    while parts:
        part = parts.pop(0)
        done = os.path.normpath(f"{done}/{part}")
        if os.path.islink(root + done):
            target = os.readlink(root + done)
            parts = [*target.strip("/").split("/"), *parts]
            done = "" if target.startswith("/") else os.path.dirname(done)
    return root + done


def test_every_program_has_its_libraries():
    triplet = os.path.dirname(next(p for p in made().files if "/libc.so" in p))
    for path, (mode, _, data) in made().files.items():
        if data[:4] != b"\x7fELF":
            continue
        told = subprocess.run(["readelf", "--dynamic", "--program-headers", inside(path)], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", told):
            assert os.path.exists(inside(f"{triplet}/{name}")) or os.path.exists(inside(f"/lib64/{name}")), f"{path} wants {name}, which is not there"
        for name in re.findall(r"Requesting program interpreter: (\S+)\]", told):
            assert os.path.exists(inside(name)), f"{path} wants {name}"
        equal(mode, 0o755, path)
    for name in program().FOR_THE_DRIVER:
        assert os.path.exists(inside(f"{triplet}/{name}")), f"the driver's library wants {name}"
    with open(f"{SOURCE}/meson.build", encoding="utf-8") as f:
        helpers = re.findall(r"^gpusonde_\w+ = executable\('([\w-]+)'", f.read(), re.M)
    wanted = {"/usr/bin/gpusonde", *[f"/usr/libexec/gpusonde/{name}" for name in [*helpers, "libgpusonde-nccl.so", "libgpusonde-cupti.so"]]}
    equal({p for p in made().files if p.startswith(("/usr/bin", "/usr/libexec"))}, wanted, "programs")


def test_nothing_else_is_in_it():
    kinds = r"/usr/(bin|libexec/gpusonde)/(lib)?gpusonde|/usr/lib/[\w.-]+/[\w.-]+\.so|/usr/share/doc/[\w.+-]+/copyright$|/var/lib/dpkg/status\.d/"
    others = [p for p in made().files if not re.match(kinds, p)]
    equal(sorted(others), ["/etc/dcgm-exporter/default-counters.csv", "/etc/debian_version", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt",
                           *(f"/usr/lib/terminfo/{name}" for name in TERMINALS)])
    with tarfile.open(fileobj=io.BytesIO(made().tar())) as tar:
        for member in tar:
            assert member.issym() or not member.mode & 0o6022 or member.name == "tmp", f"{member.name}: {member.mode:o}"
            assert member.uid == 0 or member.isdir(), f"{member.name} is not root's"
    size = sum(len(data) for _, _, data in made().files.values())
    assert size <= LIMIT_BYTES, f"{size / 1e6:.1f} MB, more than {LIMIT_BYTES / 1e6}"
    print(f"# unpacked {size / 1e6:.1f} MB")


def test_packages_are_listed_with_their_licences():
    sbom = made().sbom()
    listed = {p["value"] for c in sbom["components"] for p in c["properties"] if p["name"] == "file"}
    libraries = {p for p in made().files if re.match(r"/usr/lib/.*\.so", p)}
    equal(libraries - listed, set(), "files of no package")
    for component in sbom["components"]:
        status = made().files[f"/var/lib/dpkg/status.d/{component['name']}"][2].decode()
        equal(re.search(r"^Version: (.*)$", status, re.M)[1], component["version"], component["name"])
        assert f"/usr/share/doc/{component['name']}/copyright" in made().files, f"{component['name']} without its licence"
    equal(sbom["metadata"]["component"]["version"], made().version)


def test_the_layout_is_what_it_says():
    """Every digest and size, the file with the same, and how it is started; made twice it is the same."""
    files = program().image(made())
    equal(files, program().image(program().Root(BUILD)), "made again")
    def blob(descriptor):
        data = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        equal((len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"), (descriptor["size"], descriptor["digest"]), descriptor["mediaType"])
        return data
    starts = {}
    for entry in json.loads(files["index.json"])["manifests"]:
        manifest = json.loads(blob(entry))
        config = json.loads(blob(manifest["config"]))
        layer = gzip.decompress(blob(manifest["layers"][0]))
        equal([f"sha256:{hashlib.sha256(layer).hexdigest()}"], config["rootfs"]["diff_ids"])
        starts[entry["annotations"]["io.containerd.image.name"]] = [config["config"][key] for key in ("User", "Entrypoint", "Cmd")]
    user, version = f"{USER}:{USER}", made().version
    equal(starts, {f"localhost/gpusonde:{version}": [user, ["/usr/bin/gpusonde"], ["agent"]],
                   f"localhost/gpusonde-dcgm-exporter:{version}": [user, ["/usr/bin/dcgm-exporter"], []]})
    equal(len(files), 7, "files of the layout")
    with tempfile.TemporaryDirectory(prefix="gpusonde-oci-") as tmp:
        program().write_layout(f"{tmp}/oci", files)
        with tarfile.open(f"{tmp}/oci.tar") as tar:
            equal({m.name: tar.extractfile(m).read() for m in tar}, files, "the archive")


def bundle(tmp, stage, *arguments):
    """A container of the image as it is started by itself: its user, no capability, a read-only root, and the simulated driver mounted as the toolkit mounts one."""
    config = program().configuration(stage)
    user, group = map(int, config["User"].split(":"))
    def bind(source, destination, *options):
        return {"destination": destination, "type": "bind", "source": source, "options": ["bind", *options]}
    os.makedirs(f"{tmp}/run", exist_ok=True)
    os.chmod(f"{tmp}/run", 0o777)
    settings = {
        "ociVersion": "1.0.2",
        "process": {"args": [*config["Entrypoint"], *arguments], "cwd": "/", "user": {"uid": user, "gid": group}, "noNewPrivileges": True,
                    "capabilities": {}, "env": [*config["Env"], f"GPUSONDE_NVML_LIBRARY={LIBRARY}", f"GPUSONDE_SIM_SCENARIO={SCENARIO}"]},
        "root": {"path": unpacked().name, "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                   bind(f"{tmp}/run", "/run/gpusonde", "rw"), {"destination": "/var/lib/gpusonde", "type": "tmpfs", "source": "tmpfs", "options": ["nodev", "mode=777"]},
                   {"destination": "/usr/lib/gpusonde", "type": "bind", "source": f"{tmp}/driver", "options": ["bind", "ro"]}],
        "linux": {"namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts", "network")], "cgroupsPath": f"/gpusonde-image-{os.getpid()}"},
    }
    os.makedirs(f"{tmp}/driver", exist_ok=True)
    shutil.copy(f"{BUILD}/sim/libnvidia-ml.so.1", f"{tmp}/driver/libnvidia-ml.so.1")
    shutil.copy(f"{SOURCE}/sim/scenarios/node-8xh100.yaml", f"{tmp}/driver/scenario.yaml")
    with open(f"{tmp}/config.json", "w", encoding="ascii") as f:
        json.dump(settings, f)


@contextlib.contextmanager
def container(*arguments, stage="gpusonde"):
    if os.geteuid() != 0:
        raise Skip("only root can start containers")
    if not shutil.which("runc"):
        raise Skip("no runc on this machine")
    # What is mounted over must be there in a root that is read-only.
    os.makedirs(f"{unpacked().name}/usr/lib/gpusonde", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpusonde-runc-") as tmp:
        os.chmod(tmp, 0o755)
        bundle(tmp, stage, *arguments)
        name = f"gpusonde-image-{os.getpid()}"
        runc = ["runc", "--root", f"{tmp}/runc"]
        started = subprocess.Popen([*runc, "run", "--bundle", tmp, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            yield tmp, started, [*runc, "kill", name]
        finally:
            subprocess.run([*runc, "delete", "--force", name], capture_output=True, check=False)
            started.kill()
            started.communicate()


def get(tmp, path):
    with contextlib.suppress(OSError), contextlib.closing(UnixConnection(f"{tmp}/run/gpusonde.sock", PATIENCE_S)) as connection:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    return None, ""


def test_it_runs_as_it_is_started():
    """As user 65532 with nothing: all GPUs, ready, and it ends when told."""
    with container("--version") as (_, started, _):
        said = started.communicate(timeout=PATIENCE_S)[0]
        if started.returncode and "runc" in said + "runc" and made().version not in said:
            raise Skip(f"runc starts no containers here: {said.strip().splitlines()[-1]}")
        equal((started.returncode, said.split()[1]), (0, made().version), said)
    with container("agent", "--listen=:9470", "--web-open=true") as (tmp, started, kill):
        def ready():
            if started.poll() is not None:
                raise AssertionError(f"the agent ended: {started.stdout.read()}")
            return get(tmp, "/readyz")[0] == 200
        wait_for(ready, "the agent in the container to be ready")
        equal(get(tmp, "/healthz")[0], 200)
        page = wait_for(lambda: (p := get(tmp, "/metrics")[1]) and len(values(p, "gpusonde_gpu_present")) == 8 and p, "all GPUs")
        equal(values(page, "gpusonde_up"), [1])
        subprocess.run([*kill, "TERM"], check=True, capture_output=True)
        said = started.communicate(timeout=PATIENCE_S)[0]
        equal(started.returncode, 0, said)


def test_in_the_dcgm_exporters_place():
    """With the arguments of its own DaemonSet; on its own page are the fields that it has by default, of all GPUs."""
    with container("--collectors=/etc/dcgm-exporter/dcp-metrics-included.csv", "--address=:9400", stage="dcgm-exporter") as (tmp, started, _):
        def ready():
            if started.poll() is not None:
                raise AssertionError(f"it ended: {started.stdout.read()}")
            return get(tmp, "/readyz")[0] == 200
        wait_for(ready, "it to be ready")
        wanted = set(re.findall(r"^(DCGM_\w+), (?:gauge|counter),", made().files[program().COUNTERS][2].decode(), re.M))
        def fields():
            page = get(tmp, "/metrics/dcgm")[1]
            return set(re.findall(r"^# TYPE (DCGM_\w+)", page, re.M)) if len(values(page, "DCGM_FI_DEV_GPU_TEMP")) == 8 else set()
        # An XID is there once there was one, and rates when there are two readings.
        wait_for(lambda: fields() >= wanted - {"DCGM_FI_DEV_XID_ERRORS"}, "all fields of all GPUs")
        equal(fields() - wanted, set(), "fields that nobody asked for")


if __name__ == "__main__":
    run()
