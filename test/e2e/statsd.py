#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is sent to StatsD: a receiver of ours, of UDP and of a UNIX socket, compared with the agent's own JSON."""
import contextlib
import os
import re
import socket
import tempfile
import threading

from lib.e2e import Agent, Worker, contains, equal, run, values, wait_for

LINE = re.compile(r"([a-zA-Z_][\w.]*):(-?[\d.]+(?:e[-+]?\d+)?)\|([cg])(?:\|#([^|\n]*))?")


# A round of datagrams comes at once, on a machine where others run: what a socket has no room for, UDP loses and nobody is told.
RECEIVE_BYTES = 4 << 20


class Receiver:
    """Keeps every datagram."""

    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self.socket.bind(path or ("127.0.0.1", 0))
        self.address = path or f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.datagrams = []
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        with contextlib.suppress(OSError):
            while data := self.socket.recv(65536):
                self.datagrams.append(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def lines(self):
        """[(name, value, kind, {tag: value})], in their order."""
        found = []
        for line in b"".join(self.datagrams[:]).decode().splitlines():
            match = LINE.fullmatch(line)
            assert match, line
            found.append((match[1], float(match[2]), match[3], dict(t.split(":", 1) for t in (match[4] or "").split(",") if t)))
        return found

    def newest(self, name):
        """{uuid: value}"""
        return {tags.get("gpu_uuid"): value for n, value, _, tags in self.lines() if n == name}


def figure(agent, name, **labels):
    return (values(agent.metrics(), f"gpusonde_statsd_{name}", **labels) or [None])[0]


def test_names_and_units_of_the_check():
    with Receiver() as receiver, Agent("--statsd-address", receiver.address, "--statsd-interval", "1s") as agent:
        wait_for(lambda: receiver.newest("gpu.power.usage") and receiver.newest("gpu.clock.speed.sm.max"), "figures")
        gpus = {g["uuid"]: g for g in agent.get("/api/v1/gpus").json()["gpus"]}
        equal(receiver.newest("gpu.memory.limit"), {uuid: g["memory_total_bytes"] for uuid, g in gpus.items()})
        equal(receiver.newest("gpu.power.management_limit"), {uuid: values(agent.metrics(), "gpusonde_gpu_power_limit_watts", uuid=uuid, limit="management")[0] * 1000 for uuid in gpus})
        equal(receiver.newest("gpu.clock.speed.sm.max"), {uuid: values(agent.metrics(), "gpusonde_gpu_clock_max_hertz", uuid=uuid, clock="sm")[0] / 1e6 for uuid in gpus})
        lines = receiver.lines()
        assert all(0 <= v <= 100 for n, v, _, _ in lines if n == "gpu.gr_engine_active")
        assert all(100000 < v < 800000 for n, v, _, _ in lines if n == "gpu.power.usage") # milliwatts
        # Under these names all is a gauge, and nothing has another name.
        equal({(n.split(".")[0], kind) for n, _, kind, _ in lines}, {("gpu", "g")})
        tags = next(t for n, _, _, t in lines if n == "gpu.temperature")
        equal((tags["gpu_vendor"], tags["gpu_device"], tags["gpu_index"]), ("nvidia", "nvidia_h100_80gb_hbm3", "0"))
        assert "gpu_driver_version" in tags and "clock" not in tags, tags
        assert max(map(len, receiver.datagrams)) <= 1432 and len(receiver.datagrams) > 1
        wait_for(lambda: figure(agent, "up") == 1 and figure(agent, "packets_total", result="sent") > 1, "its figures")
        contains(agent.cli("doctor").stdout, "figures are sent to StatsD")


def test_processes():
    with Receiver() as receiver, tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker:
        with Agent("--statsd-address", receiver.address, "--statsd-interval", "1s", scenario=worker.scenario()):
            found = wait_for(lambda: [(v, t) for n, v, _, t in receiver.lines() if n == "gpu.process.memory.usage" and t.get("pid") == str(worker.pid)], "its memory")
            equal(found[-1][0], 1 << 30)


def test_counters_are_increases_that_add_up():
    family = "gpusonde_gpu_energy_joules_total"
    with Receiver() as receiver, Agent("--statsd-address", receiver.address, "--statsd-interval", "1s", "--statsd-families", f"{family}, gpusonde_gpu_info") as agent:
        first = wait_for(lambda: [i for i, l in enumerate(receiver.lines()) if l[0] == "gpu.total_energy_consumption"], "the first round")[0]
        start = {t["gpu_uuid"]: v / 1000 for n, v, _, t in receiver.lines()[first:][:2000][::-1] if n == "gpu.total_energy_consumption"}
        wait_for(lambda: sum(n == "gpusonde.gpu_energy_joules" for n, *_ in receiver.lines()) > 5 * 8, "increases")
        agent.stop()
        lines = receiver.lines()
        # Each round has the sum, and the increase since the round before: together they are what the sums say.
        for uuid, value in start.items():
            sums = [v / 1000 for n, v, _, t in lines if n == "gpu.total_energy_consumption" and t["gpu_uuid"] == uuid]
            added = [v for n, v, kind, t in lines if n == "gpusonde.gpu_energy_joules" and t["uuid"] == uuid and kind == "c"]
            equal(sums[0], value)
            assert abs(sums[-1] - sums[0] - sum(added)) < 1e-3, (sums, added)
        assert not any(n.startswith("gpusonde.gpu_info") for n, *_ in lines)


def test_a_unix_socket_whose_receiver_comes_late_and_again():
    with tempfile.TemporaryDirectory(prefix="gpusonde-statsd-") as at:
        path = f"{at}/dsd.socket"
        with Agent("--statsd-address", f"unix://{path}", "--statsd-interval", "1s") as agent:
            wait_for(lambda: figure(agent, "up") == 0, "gpusonde_statsd_up 0")
            contains(agent.log(), "sending to StatsD: there is no such socket: does the receiver run? (statsd.address)")
            assert figure(agent, "packets_total", result="lost") > 0
            for _ in range(2):
                with Receiver(path) as receiver:
                    wait_for(lambda: receiver.newest("gpu.temperature"), "figures")
                    assert max(map(len, receiver.datagrams)) <= 8192
                    wait_for(lambda: figure(agent, "up") == 1, "gpusonde_statsd_up 1")
                os.unlink(path)
                wait_for(lambda: figure(agent, "up") == 0, "gpusonde_statsd_up 0")


def test_nobody_listens():
    with Receiver() as receiver:
        address = receiver.address
    with Agent("--statsd-address", address, "--statsd-interval", "1s") as agent:
        wait_for(lambda: (figure(agent, "packets_total", result="lost") or 0) > 0, "lost datagrams")
        wait_for(lambda: "sending to StatsD: nobody receives there" in agent.cli("doctor").stdout, "doctor to say why")


def test_what_is_no_address():
    for address in ("localhost:8125", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "[::1:8125"):
        with Agent("--statsd-address", address) as agent:
            contains(agent.log(), "nothing is sent to StatsD: statsd.address is neither")


if __name__ == "__main__":
    run()
