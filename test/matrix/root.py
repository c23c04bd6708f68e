# SPDX-License-Identifier: Apache-2.0
"""
A Debian of its own in a folder: commands run as root in it, with this machine's kernel, processes and network.

What is mounted for it is so in a mount namespace that ends with its last process; of /dev it has the harmless nodes only. Its files are
deleted at the end, and nothing runs in it any more by then.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time

ENVIRONMENT = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "DEBIAN_FRONTEND": "noninteractive"}
# How this machine reaches its mirrors. Its certificates have a second place, where no package puts others.
CERTIFICATES, CERTIFICATES_THERE = "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/of-the-machine.crt"
OF_THE_MACHINE = [(path, path) for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", CERTIFICATES)] + [(CERTIFICATES, CERTIFICATES_THERE)]
CACHE = "/var/cache/gpusonde-tests"
ENTER = r"""
set -e
root=$1 cache=$2 there=$3; shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for node in null zero full random urandom tty kmsg; do
	[ -e /dev/$node ] || continue
	touch "$root/dev/$node"
	mount --bind /dev/$node "$root/dev/$node"
done
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for i in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/${i%:*} "$root/dev/${i#*:}"; done
if [ -n "$cache" ]; then
	mkdir -p "$root$there"
	mount --bind "$cache" "$root$there"
fi
exec chroot "$root" "$@"
"""


class Unusable(Exception):
    """No such root can be used here; the text says why."""


class Root:
    def __init__(self, archive, parent, cache=""):
        """@archive: of test/lib/fetch.py; @parent: the folder to make it in; @cache: a folder of this machine that is CACHE there, too."""
        self.archive, self.parent, self.cache = archive, parent, cache

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="root-", dir=self.parent)
        try:
            self.fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def fill(self):
        os.chmod(self.path, 0o755)
        subprocess.run(["tar", "--numeric-owner", "-C", self.path, "-xf", self.archive], check=True)
        for path, there in OF_THE_MACHINE:
            if os.path.exists(path):
                os.makedirs(os.path.dirname(self.path + there), exist_ok=True)
                shutil.copyfile(path, self.path + there)
        # No package starts a daemon.
        with open(f"{self.path}/usr/sbin/policy-rc.d", "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexit 101\n")
            os.fchmod(f.fileno(), 0o755)
        tried = self.run("true")
        if tried.returncode:
            raise Unusable(f"no root folder of its own here: {tried.stdout.strip()}")

    def __exit__(self, *_):
        for _ in range(50):
            left = self.processes()
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        shutil.rmtree(self.path)

    def processes(self):
        """PIDs of all that run in it."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/root") == self.path:
                    found.append(int(pid))
        return found

    def popen(self, *args, folder="/", stdout=subprocess.PIPE):
        env = dict(ENVIRONMENT, **{k: v for k, v in os.environ.items() if k.startswith("PIP_")})
        if os.path.exists(self.path + CERTIFICATES_THERE):
            env.update(PIP_CERT=CERTIFICATES_THERE, SSL_CERT_FILE=CERTIFICATES_THERE)
        return subprocess.Popen(["unshare", "--mount", "sh", "-c", ENTER, "enter", self.path, self.cache, CACHE, "env", "-C", folder, *args], env=env,
                                stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, *args, folder="/", limit_s=60):
        """.returncode, and .stdout with what it said."""
        with self.popen(*args, folder=folder) as process:
            try:
                said = process.communicate(timeout=limit_s)[0]
            except subprocess.TimeoutExpired:
                for pid in self.processes():
                    os.kill(pid, signal.SIGKILL)
                said = process.communicate()[0] + f"\nended after {limit_s} s"
        return subprocess.CompletedProcess(args, process.returncode, said)
