#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What listens as a service of its own: systemd starts it when the agent connects, with another user; and the units say what it may."""
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from lib.e2e import BUILD, SOURCE, Agent, Skip, alive, children, comm, contains, equal, run, values, wait_for

NOBODY_ELSE = 65533
EXPOSURE_MAX = 2.5 # of 10, as systemd-analyze security computes it


class Service:
    """What systemd does for gpusonde-web.socket and gpusonde-web.service: a process for each connection, one at a time."""

    def __init__(self, tmp):
        self.path, self.ends = f"{tmp}/web.sock", False
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        self.news = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.news.bind(f"{tmp}/notify")
        os.chmod(f"{tmp}/notify", 0o666)
        os.chmod(tmp, 0o755)
        self.env = {"NOTIFY_SOCKET": f"{tmp}/notify", "WATCHDOG_USEC": "30000000"}
        self.program = shutil.copy(f"{BUILD}/gpusonde-web", tmp)
        self.process, self.starts = None, 0
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        user = ["setpriv", f"--reuid={NOBODY_ELSE}", f"--regid={NOBODY_ELSE}", "--clear-groups", "--bounding-set=-all"] if os.geteuid() == 0 else []
        self.listener.settimeout(0.1)
        while not self.ends:
            ready = wait_readable(self.listener)
            if ready and not self.ends:
                self.process = subprocess.Popen([*user, self.program, "service"], env=self.env, stdin=subprocess.DEVNULL,
                                                preexec_fn=lambda: os.dup2(self.listener.fileno(), 3), pass_fds=[3])
                self.starts += 1
                self.process.wait()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        if self.process and self.process.poll() is None:
            self.process.kill()
        self.thread.join()


def wait_readable(listener):
    return select.select([listener], [], [], 0.1)[0]


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def served(agent):
    try:
        return agent.get("/healthz", timeout=5).status == 200
    except OSError:
        return False


def test_it_is_another_user_and_no_child():
    with tempfile.TemporaryDirectory() as tmp, Service(tmp) as service, Agent("--web-socket", service.path) as agent:
        equal([child for child in children(agent.process.pid) if comm(child) == "gpusonde-web"], [], "children that listen")
        with open(f"/proc/{service.process.pid}/status", encoding="ascii") as f:
            fields = {name: value.strip() for name, value in (line.split(":", 1) for line in f)}
        equal((fields["CapPrm"], fields["Seccomp"]), ("0" * 16, "2"))
        if os.geteuid() == 0:
            equal(fields["Uid"].split(), [str(NOBODY_ELSE)] * 4)
        assert values(agent.metrics(), "gpusonde_gpu_present")
        with socket.create_connection(("127.0.0.1", agent.atop_port()), timeout=60) as client:
            client.sendall(b"T\x01")
            assert client.recv(4), "atop is not answered"


def test_one_that_ends_is_replaced():
    with tempfile.TemporaryDirectory() as tmp, Service(tmp) as service, Agent("--web-socket", service.path) as agent:
        first, port = service.process.pid, agent.port()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: not alive(first) and served(agent), "the port to be served again")
        equal((agent.port(), service.starts), (port, 2))
        wait_for(lambda: values(agent.metrics(), "gpusonde_web_replaced_total")[0] == 1, "the replacement to be counted")


def test_its_watchdog_is_told():
    """By both threads: systemd ends one that is stopped, and the agent then has another one."""
    with tempfile.TemporaryDirectory() as tmp, Service(tmp) as service, Agent("--web-socket", service.path) as agent:
        service.news.settimeout(25)
        for _ in range(2):
            equal(service.news.recv(64), b"WATCHDOG=1")
        os.kill(service.process.pid, signal.SIGSTOP)
        service.news.settimeout(15)
        try:
            raise AssertionError(f"{service.news.recv(64)!r} of a stopped process")
        except TimeoutError:
            service.process.kill()
        wait_for(lambda: served(agent), "the port to be served again")


def test_it_ends_with_the_agent():
    with tempfile.TemporaryDirectory() as tmp, Service(tmp) as service, Agent("--web-socket", service.path) as agent:
        port, pid = agent.port(), service.process.pid
        agent.signal(signal.SIGKILL)
        wait_for(lambda: not alive(pid), "its end", 2)
        wait_for(lambda: is_free(port), "the port to be free", 2)


def test_an_agent_that_comes_first_is_told_what_to_do():
    with tempfile.TemporaryDirectory() as tmp:
        with Agent("--web-socket", f"{tmp}/none", wait=False) as agent:
            wait_for(lambda: agent.process.poll() is not None, "the agent to end")
            assert agent.process.returncode != 0
            contains(agent.log(), f"cannot reach the process that listens at {tmp}/none: No such file or directory; start gpusonde-web.socket")


def test_the_unit_exposes_little():
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is missing: install systemd")
    unit = f"{SOURCE}/deploy/systemd/gpusonde-web.service"
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", unit], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"exposure level for gpusonde-web.service: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE_MAX, found[0]


def test_the_units_are_valid():
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is missing: install systemd")
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("gpusonde.service", "gpusonde-web.service", "gpusonde-web.socket"):
            with open(f"{SOURCE}/deploy/systemd/{name}", encoding="utf-8") as f:
                text = f.read().replace("/usr/bin/", f"{BUILD}/").replace("/usr/libexec/gpusonde/", f"{BUILD}/")
            with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"{tmp}/gpusonde.service", f"{tmp}/gpusonde-web.socket"],
                              capture_output=True, text=True, timeout=60, check=False)
        equal((done.returncode, [line for line in (done.stdout + done.stderr).splitlines() if "gpusonde" in line]), (0, []))


if __name__ == "__main__":
    run()
