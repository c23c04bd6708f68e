#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""atop: its protocol in both versions, as its own client speaks it, and Debian's atop itself."""
import shutil
import socket
import subprocess
import tempfile

from lib.atop import abstract, ask, tcp
from lib.e2e import Agent, Skip, Worker, contains, equal, run, wait_for

ATOP_PORT = 59123 # atop has no option for it


def test_version_1_over_tcp():
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker, Agent(scenario=worker.scenario()) as agent, tcp(agent) as client:
        types = ask(client, b"T", 1)
        equal(types.split("@")[0], "2", "GPUs")
        gpus = [gpu.split(" ") for gpu in types.split("@")[1:]]
        assert all(len(gpu) == 3 and "H100" in gpu[1] for gpu in gpus), types
        line = wait_for(lambda: next((p for p in ask(client, b"S", 1).split("#")[1:] if f" {worker.pid} " in p), None), "our process")
        equal(line.split("@")[0].split(" ")[:2], ["A", str(worker.pid)])
        stats = ask(client, b"S", 1)
        equal(len(stats.split("@")[1:]), 2, "GPUs in the statistics")


def test_version_2_over_the_abstract_socket():
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker, Agent(scenario=worker.scenario()) as agent, \
            abstract(agent) as client:
        equal(ask(client, b"T", 2).split("@")[0], "2", "GPUs")
        wait_for(lambda: f"#A {worker.pid} C " in ask(client, b"S", 2), "our process")
        worker.end()
        wait_for(lambda: f"#E {worker.pid} C " in ask(client, b"S", 2), "its exit record")
        assert str(worker.pid) not in ask(client, b"S", 2), "an exit record comes once"


def test_answers_fit_whatever_runs():
    with Agent() as agent, tcp(agent) as client:
        for _ in range(20):
            for version in (1, 2):
                equal(len(ask(client, b"S", version).split("@")[1:]), 8, "GPUs in the statistics")


def test_atopgpud_serves_both_addresses():
    with Agent(command_name="atopgpud", wait=False) as daemon:
        def connected():
            try:
                return abstract(daemon)
            except ConnectionRefusedError:
                return None
        with wait_for(connected, "the daemon to listen") as client:
            equal(ask(client, b"T", 2).split("@")[0], "8")
        seconds, status = daemon.stop()
        equal(status, 0)
        assert seconds < 10


def test_garbage_harms_nobody_else():
    with Agent() as agent, tcp(agent) as good:
        for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 1000, b"X", b""):
            with tcp(agent) as bad:
                bad.sendall(junk)
            equal(ask(good, b"T", 1).split("@")[0], "8")


def atop_output(reports):
    atop = shutil.which("atop")
    if not atop:
        raise Skip("atop is not installed")
    return subprocess.run([atop, "-k", "-P", reports, "1", "3"], capture_output=True, text=True, timeout=60, check=False).stdout


def test_atop_shows_gpus_and_processes():
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", ATOP_PORT))
        except OSError as error:
            raise Skip(f"port {ATOP_PORT} is taken: {error}") from error
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker, \
            Agent("--atop-listen", f"127.0.0.1:{ATOP_PORT}", scenario=worker.scenario()) as agent:
        wait_for(lambda: worker.comm in agent.cli("ps").stdout, "our process")
        out = atop_output("GPU,PRE")
        gpus = [line.split() for line in out.split("\n") if line.startswith("GPU ")]
        assert len(gpus) >= 4 and len(gpus) % 2 == 0, f"two GPUs in each sample: {out[:2000]}"
        contains(gpus[0][8], "simulated") # atop keeps the last twelve letters of a type
        mine = [line.split() for line in out.split("\n") if line.startswith("PRE ") and f"({worker.comm})" in line]
        assert mine, f"no line of PID {worker.pid}: {out[:2000]}"
        busy = [int(fields[11]) for fields in mine[1:]]
        assert busy and all(0 < b <= 100 for b in busy), f"GPU busy in percent: {mine}"


if __name__ == "__main__":
    run()
