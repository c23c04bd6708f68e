#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, or know no better: the agent goes on serving everybody else, and nothing of them stays behind."""
import contextlib
import os
import random
import resource
import socket
import time

from lib.e2e import Agent, equal, run, values, wait_for

GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def tell(connection, data):
    """Sends it, or as much of it as the agent lets us."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)


def listen_to(connection):
    """Everything until the agent hangs up."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            data += part
    return data


def descriptors(agent):
    return len(os.listdir(f"/proc/{agent.process.pid}/fd"))


def resident_kib(agent):
    with open(f"/proc/{agent.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


@contextlib.contextmanager
def unharmed(agent):
    """What is true before the block is true after it."""
    agent.metrics()
    before = descriptors(agent)
    yield
    equal(agent.get("/metrics").status, 200)
    wait_for(lambda: descriptors(agent) <= before, f"descriptors to be {before} again")
    equal(agent.process.poll(), None, "exit status of the agent")


def test_broken_requests():
    cases = [
        (b"GARBAGE\r\n\r\n", b"400"), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", b"400"), (b"\n \n", b"400"),
        (b"GET /metrics\r\n\r\n", b"400"), (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", b"400"),
        (b"GET /metrics%00.txt HTTP/1.0\r\n\r\n", b"400"), (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", b"404"), (b"GET /metrics/ HTTP/1.0\r\n\r\n", b"404"),
        (b"DELETE /metrics HTTP/1.0\r\n\r\n", b"405"), (b"TRACE /metrics HTTP/1.0\r\n\r\n", b"405"),
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n", b"413"),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000 + b"\r\n\r\n", b"431"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 50000 + b"\r\n", b"431"),
        (b"GET /metrics HTTP/3.1\r\n\r\n", b"505"),
    ]
    with Agent() as agent, unharmed(agent):
        for request, status in cases:
            with dial(agent.port()) as connection:
                tell(connection, request)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                reply = listen_to(connection)
                equal(reply.split(b" ")[1:2], [status], f"{request[:60]!r}")


def test_noise():
    noise = random.Random(1)
    with Agent() as agent, unharmed(agent):
        for port in (agent.port(), agent.atop_port()):
            for _ in range(200):
                with dial(port) as connection:
                    tell(connection, noise.randbytes(noise.randrange(3000)))


def test_a_thousand_requests_in_one_go():
    with Agent() as agent, unharmed(agent), dial(agent.port()) as connection:
        tell(connection, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 999 + b"HEAD /metrics HTTP/1.0\r\n\r\n")
        equal(listen_to(connection).count(b"HTTP/1.1 200 OK\r\n"), 1000)


def test_a_flood_of_stuck_clients():
    """Far more connections than the agent keeps, in every way of being stuck, and scrapes in between that must all succeed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
                                                resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    ways = [b"", b"GET /metrics HT", b"POST /api/v1/gpus HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n", GET * 20]
    with Agent() as agent, unharmed(agent):
        begin_kib = resident_kib(agent)
        with contextlib.ExitStack() as stuck:
            for i in range(800):
                connection = stuck.enter_context(dial(agent.port()))
                tell(connection, ways[i % len(ways)])
                if i % 20 == 0:
                    equal(agent.get("/metrics").status, 200)
            assert descriptors(agent) < 300, f"{descriptors(agent)} descriptors"
            # 160 connections of 16 KiB, a few old pages, and what malloc keeps.
            assert resident_kib(agent) - begin_kib < 12 << 10, f"grew by {resident_kib(agent) - begin_kib} KiB"
            equal(agent.get("/healthz", unix=True).status, 200)


def test_slow_readers_over_many_ticks():
    with Agent("--sample-period", "100ms") as agent, unharmed(agent), contextlib.ExitStack() as stuck:
        begin_kib = resident_kib(agent)
        for _ in range(60):
            connection = stuck.enter_context(dial(agent.port()))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            tell(connection, GET * 20)
            time.sleep(0.1)
        assert resident_kib(agent) - begin_kib < 12 << 10, f"grew by {resident_kib(agent) - begin_kib} KiB"
        assert values(agent.metrics(), "gpusonde_gpu_present")


def test_stuck_atop_clients_do_not_keep_others_out():
    with Agent() as agent, unharmed(agent), contextlib.ExitStack() as stuck:
        for i in range(100):
            connection = stuck.enter_context(dial(agent.atop_port()))
            tell(connection, (b"", b"S", b"S\x01" * 400)[i % 3])
        with dial(agent.atop_port()) as client:
            client.sendall(b"T\x01")
            equal(client.recv(1), b"\x01", "version of the answer")


def test_ends_at_once_with_stuck_clients():
    with Agent() as agent, contextlib.ExitStack() as stuck:
        for i in range(100):
            tell(stuck.enter_context(dial(agent.port())), (b"GET", GET * 20)[i % 2])
        seconds, status = agent.stop()
        equal(status, 0)
        assert seconds < 2, f"took {seconds} s"


if __name__ == "__main__":
    run()
