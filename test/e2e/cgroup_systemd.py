#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
gpusonde cgroup beside a real systemd, which is process 1 of namespaces of its own here, on cgroup version 2: what a daemon-reload takes away,
what stays, and whose processes are.
"""
import json
import os
import shutil
import subprocess
import tempfile

from lib.devices import LIST, Devices, cgroup, hierarchy
from lib.e2e import BUILD, Skip, contains, equal, run

BOOT_S = 120
SYSTEMD = "/usr/lib/systemd/systemd"
MAKE = r"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs $ROOT
cd $ROOT
mkdir -p usr etc/systemd/system proc sys dev run tmp var root host build
for name in bin sbin lib lib64; do
	[ ! -e /usr/$name ] || ln -s usr/$name $name
done
mount --rbind /usr usr
mount --rbind $FILES host
mount --rbind $BUILD build
mount -t proc proc proc
mount --bind $FILES/devices proc/devices
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs dev
for name in null zero full random urandom tty; do
	touch dev/$name
	mount --bind /dev/$name dev/$name
done
mkdir dev/shm
mount -t tmpfs tmpfs dev/shm
mknod dev/nvidia0 c 195 0
mount -t tmpfs tmpfs run
echo 0123456789abcdef0123456789abcdef >etc/machine-id
cp /etc/passwd /etc/group /etc/nsswitch.conf etc/
cat >etc/systemd/system/test.target <<END
[Unit]
Requires=dbus.socket dbus.service test.service
END
cat >etc/systemd/system/test.service <<END
[Unit]
DefaultDependencies=no
After=dbus.service
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/sh /host/script
StandardOutput=file:/host/out
StandardError=file:/host/err
END
mkdir old
pivot_root . old
umount -l old
exec env -i container=lxc PATH=/usr/bin:/usr/sbin SYSTEMD_LOG_TARGET=console %s --system --unit=test.target
""" % SYSTEMD
# What a script may use: try UNIT says whether it may open a device; sections of its output begin with "@NAME".
BEGIN = r"""
G="/build/gpusonde cgroup"
at() {
	systemctl show -P ControlGroup $1
}
try() {
	sh -c 'echo $$ >/sys/fs/cgroup'$(at $1)'/cgroup.procs; cat /dev/nvidia0' 2>&1 | sed 's/.*: //'
}
listed() {
	/build/test/tools/device_program list /sys/fs/cgroup$(at $1) | cut -d' ' -f2
}
reload() {
	systemctl daemon-reload
}
scope() {
	systemd-run -q --unit=$1 --scope -p DevicePolicy=closed -p "DeviceAllow=/dev/null rw" sleep 1000 &
	until systemctl -q is-active $1; do
		sleep 0.1
	done
}
service() {
	unit=$1
	shift
	systemd-run -q --unit=$unit --service-type=exec "$@" sleep 1000
}
"""
DENIED, ALLOWED = "Operation not permitted", "No such device or address"


def systemd(script, **files):
    """The sections of what a script said that systemd's process 1 ran: name -> lines."""
    hierarchy("cgroup2")
    for program in (SYSTEMD, "/usr/bin/systemd-run", "/usr/bin/dbus-daemon", "/usr/bin/unshare"):
        if not os.path.exists(program):
            raise Skip(f"no {program}")
    with Devices() as devices, cgroup("cgroup2") as folder, tempfile.TemporaryDirectory(prefix="gpusonde-systemd-") as root:
        for name, text in dict(files, script=BEGIN + script, devices=LIST).items():
            with open(f"{devices.folder}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        inside = ["unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", MAKE]
        # systemd ends with its namespaces, and its cgroups are removed with them.
        done = subprocess.run(["timeout", "-s", "KILL", str(BOOT_S), "sh", "-c", f"echo $$ >{folder}/cgroup.procs && exec \"$@\"", "sh", *inside],
                              env=dict(os.environ, ROOT=root, FILES=devices.folder, BUILD=BUILD), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        remove_below(folder)
        if not os.path.exists(f"{devices.folder}/out"):
            raise Skip(f"systemd does not start in namespaces here: status {done.returncode}; {done.stdout[-600:]!r}")
        out, err = (open(f"{devices.folder}/{n}", encoding="utf-8").read() for n in ("out", "err")) # pylint: disable=consider-using-with
    found, name = {}, ""
    for line in out.splitlines():
        if line.startswith("@"):
            name = line[1:]
            found[name] = []
        else:
            found.setdefault(name, []).append(line)
    found["stderr"] = err
    return found


def remove_below(folder):
    for path, _, _ in os.walk(folder, topdown=False):
        if path != folder:
            try:
                os.rmdir(path)
            except OSError:
                pass # the block's end waits for them


def test_what_a_reload_takes_away_is_allowed_again():
    for make in ("service t.service -p DevicePolicy=closed", "scope t.scope"):
        unit = make.split()[1]
        said = systemd(make + f"""
echo @before; try {unit}
$G allow {unit} >/dev/null
echo @allowed; try {unit}
reload
echo @reloaded; try {unit}; listed {unit}
$G allow {unit} >/dev/null
echo @again; try {unit}; listed {unit}
$G allow {unit} --undo >/dev/null
echo @undone; try {unit}; listed {unit}
systemctl set-property --runtime {unit} "DeviceAllow=char-nvidia* rw"
echo @systemd; try {unit}; listed {unit}
""")
        equal(said["stderr"], "", unit)
        equal(said["before"], [DENIED], unit)
        equal(said["allowed"], [ALLOWED], unit)
        equal(said["reloaded"], [DENIED, "gpusonde_allow", "sd_devices"], unit)
        equal(said["again"], [ALLOWED, "gpusonde_allow"], unit)
        equal(said["undone"], [DENIED, "sd_devices"], unit)
        equal(said["systemd"], [ALLOWED, "sd_devices"], f"{unit}: systemd no longer has a hold on its program")


# /dev has nvidia0 alone.
GIVEN = ["/dev/nvidia0", "/dev/char/195:255", "/dev/char/195:254", "/dev/char/123:0", "/dev/char/123:1"]
ALL = ["char-nvidia*"]


def told(devices, what, unit):
    rules = ", ".join(f"DeviceAllow={d} rw" for d in devices)
    return f"{rules} {'were' if len(devices) > 1 else 'was'} {what} {unit}"


def test_systemd_is_told_and_a_reload_takes_nothing_away():
    for make, place, devices in (("service t.service -p DevicePolicy=closed", "transient", GIVEN), ("scope t.scope", "transient", GIVEN),
                                 ("systemctl set-property --runtime system.slice DevicePolicy=closed; set system.slice", "system.control", ALL)):
        unit = make.split()[-1] if "slice" in make else make.split()[1]
        allow = f"$G allow {unit} --systemd" + (" --devices all" if devices is ALL else "")
        said = systemd(make + f"""
echo @before; try {unit}; listed {unit}
echo @told; {allow}; try {unit}
reload
echo @reloaded; try {unit}; systemctl show -P DeviceAllow {unit}
echo @again; {allow}
echo @file; grep -Fxc 'DeviceAllow={devices[0]} rw' /run/systemd/{place}/{unit}.d/50-DeviceAllow.conf
echo @undone; $G allow {unit} --systemd --undo; systemctl show -P DeviceAllow {unit}; try {unit}
echo @nothing; $G allow {unit} --systemd --undo
""")
        equal(said["stderr"], "", unit)
        equal(said["before"], [DENIED, "sd_devices"], unit)
        equal(said["told"], [told(devices, "added to", unit), ALLOWED], unit)
        equal(said["reloaded"][0], ALLOWED, unit)
        for device in devices:
            contains(said["reloaded"], f"{device} rw")
        contains(said["again"][0], "nothing was changed")
        equal(said["file"], ["1"], unit)
        contains(said["undone"][0], f"taken away from {unit}")
        assert not any(f"{d} rw" in said["undone"][1:] for d in devices) and said["undone"][-1] == DENIED, said
        contains(said["nothing"][0], "nothing of gpusonde's is there")


def test_rules_that_its_owner_has_stay():
    said = systemd("""
service t.service -p DevicePolicy=closed -p "DeviceAllow=/dev/nvidia0 rw"
echo @told; $G allow t.service --systemd
$G allow t.service --systemd --undo >/dev/null
echo @undone; systemctl show -P DeviceAllow t.service
echo @unknown; $G allow t.service --systemd --undo 2>&1; echo $?
""")
    equal(said["told"], [told(GIVEN[1:], "added to", "t.service")])
    equal(said["undone"], ["/dev/nvidia0 rw"])
    contains(said["unknown"][0], "is not noted with its cgroup")
    contains(said["unknown"][0], "systemctl revert t.service")
    equal(said["unknown"][1], "1")


def test_a_drop_in_by_hand_and_units_that_need_none():
    said = systemd("""
scope t.scope
mkdir -p /run/systemd/system.control/t.scope.d
printf '[Scope]\\nDeviceAllow=char-nvidia* rw\\n' >/run/systemd/system.control/t.scope.d/50-gpusonde-devices.conf
reload
echo @hand; try t.scope
service free.service -p Description=x
echo @free; try free.service
$G allow free.service --systemd 2>&1
$G allow /sys/fs/cgroup --systemd --devices all 2>&1
""")
    equal(said["hand"], [ALLOWED])
    equal(said["free"][0], ALLOWED)
    contains(said["free"][1], "restricts no device")
    contains(said["free"][2], "is no service, scope or slice")


CONTAINER = """{
 "ociVersion": "1.0.2", "root": {"path": "rootfs"},
 "process": {"cwd": "/", "args": ["/bin/sleep", "1000"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/dev/nvidia0", "type": "bind", "source": "/dev/nvidia0", "options": ["bind"]}],
 "linux": {"cgroupsPath": "system.slice:docker:abc", "namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}],
           "resources": {"devices": [{"allow": false, "access": "rwm"}]}}
}
"""


def test_a_container_of_runc_that_loses_its_gpu_at_a_reload():
    """The fault as people meet it: devices are allowed behind systemd's back, and a reload attaches systemd's own program beside."""
    for program in ("runc", "busybox"):
        if not shutil.which(program):
            raise Skip(f"no {program}")
    said = systemd("""
mkdir -p /run/b/rootfs/bin
for name in busybox sleep cat; do
	cp $(command -v busybox) /run/b/rootfs/bin/$name
done
cp /host/config.json /run/b/
cd /run/b
runc --systemd-cgroup run -d abc </dev/null >/run/runc.log 2>&1 || { echo @runc; cat /run/runc.log; exit; }
trap 'runc delete -f abc' EXIT # it ignores SIGTERM, as process 1 of its namespace
unit=docker-abc.scope
pid=$(cat /sys/fs/cgroup$(at $unit)/cgroup.procs)
inside() {
	runc exec abc cat /dev/nvidia0 2>&1 | sed 's/.*: //'
}
echo @before; inside; listed $unit
echo @allowed; $G allow $pid >/dev/null; inside
reload
echo @reloaded; inside; listed $unit
$G check $pid >/dev/null 2>&1; echo $?
echo @refused; $G allow $pid 2>&1
echo @told; $G allow $pid --systemd; inside; reload; inside; listed $unit
$G check $pid >/dev/null 2>&1; echo $?
""", **{"config.json": CONTAINER})
    if "runc" in said:
        raise Skip(f"runc starts no container here: {said['runc'][-1]}")
    equal(said["stderr"], "")
    equal(said["before"], [DENIED, "-"], "runc has put its program in the place of systemd's")
    equal(said["allowed"], [ALLOWED])
    equal(said["reloaded"], [DENIED, "gpusonde_allow", "sd_devices", "1"])
    contains(said["refused"][0], "2 BPF programs")
    contains(said["refused"][0], "--systemd docker-abc.scope")
    equal(said["told"][1:], [ALLOWED, ALLOWED, "gpusonde_allow", "sd_devices", "0"])


SCENARIO = """cycle: 60s
seed: 1
gpus:
  - {model: h100-sxm}
processes:
  - {name: train, match: gs-train, gpus: 0, memory: 1GiB, load: {gpu: 60, memory: 30}}
  - {name: login, match: gs-login, gpus: 0, memory: 1GiB, load: {gpu: 30, memory: 30}}
"""


def test_processes_of_units_are_told_with_their_units():
    said = systemd("""
export GPUSONDE_NVML_LIBRARY=/build/sim/libnvidia-ml.so.1 GPUSONDE_SIM_SCENARIO=/host/scenario.yaml
cp $(command -v sleep) /run/gs-train
cp /run/gs-train /run/gs-login
systemd-run -q --unit=train --service-type=exec /run/gs-train 1000
systemd-run -q --unit=login --scope --slice=user-1000.slice /run/gs-login 1000 &
until systemctl -q is-active login.scope && grep -q gs-login /proc/$(cat /sys/fs/cgroup$(at login.scope)/cgroup.procs)/comm; do
	sleep 0.1
done
echo @ps; /build/gpusonde ps --json 2>/dev/null | tr -d '\\n'
""", **{"scenario.yaml": SCENARIO})
    processes = json.loads(said["ps"][0])["processes"]
    equal(sorted((p["comm"], p["unit"]) for p in processes), [("gs-login", "login.scope"), ("gs-train", "train.service")])


if __name__ == "__main__":
    run()
