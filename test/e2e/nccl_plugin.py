#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL's profiler plugin (libgpusonde-nccl.so), called as NCCL calls it, and what receives it: the agent and gpusonde trace --nccl."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile

from lib.e2e import BUILD, Agent, alive, children, comm, command, contains, equal, run, values, wait_for
from lib.traced import tracing

HOST, PLUGIN = f"{BUILD}/test/e2e/profiler_host", f"{BUILD}/libgpusonde-nccl.so"
VERSIONS = range(1, 7)
# Of one all-gather: 4 ranks, 4,000 bytes each, 1,000 ns; of a send: 10 bytes in 900 ns.
HEADER, OPERATION = struct.Struct("=IHHQ"), struct.Struct("=QQQQQIiIIBBBBB3x")
MAGIC = 0x6c63636e


def operation(op=4, ranks=4, duration_ns=1000, timing=1, algorithm=2, protocol=2, size=100):
    return OPERATION.pack(0xabc, 1, size, 0, duration_ns, ranks, 0, 0, 1, op, algorithm, protocol, timing, 2)


def message(*operations, magic=MAGIC, version=1, n=None, lost=0):
    return HEADER.pack(magic, version, len(operations) if n is None else n, lost) + b"".join(operations)


@contextlib.contextmanager
def agent():
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        with Agent("--nccl-socket", f"{tmp}/nccl.sock", tmp=tmp) as a:
            yield a


def rows(a, pid=None):
    found = a.get("/api/v1/trace").json()["nccl_measured"]
    return [r for r in found or [] if pid in (None, r["pid"])]


def host(a, *args):
    return subprocess.Popen([HOST, PLUGIN, *map(str, args)], env={"GPUSONDE_NCCL_SOCKET": f"{a.tmp}/nccl.sock"}, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


def receiver(a):
    return next((p for p in children(a.process.pid) if comm(p) == "gpusonde-nccl"), None)


def connected(a):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(f"{a.tmp}/nccl.sock")
    s.settimeout(30)
    return s


def closed(s):
    """Whether the other end closes it."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def test_each_version_in_gpusonde_trace():
    tracing()
    for version in VERSIONS:
        done = command("trace", "--nccl", "--json", "-o", "-", "--", HOST, PLUGIN, str(version), "1000")
        equal(done.returncode, 0, done.stderr)
        found = {r["operation"]: r for r in json.loads(done.stdout)["nccl_measured"]}
        gather, send = found["all_gather"], found["send"]
        equal((gather["calls"], gather["algorithm"], gather["protocol"], gather["channels"], gather["argument_bytes"], gather["lost"]),
              (1000, "RING", "LL128", 2, 4000 * 1000, 0), f"version {version}")
        equal((send["calls"], send["algorithm"], send["argument_bytes"]), (1000, None, 10 * 1000), f"version {version}")
        equal(gather["proxy_operations"] <= 1000, True, "network transfers")
        if version < 4:
            equal((gather["timed"], gather["algbw"], gather["ranks"]), (0, None, None), f"version {version} tells neither ranks nor GPU time")
            continue
        equal((gather["timed"], gather["ranks"], gather["clock"]), (1000, 4, "gpu"), f"version {version}")
        equal((round(gather["algbw"]), round(gather["busbw"])), (16_000_000_000, 12_000_000_000), "bandwidth")
        equal((send["timed"], round(send["seconds"] * 1e9)), (1000, 900 * 1000), f"version {version}")


def test_the_agent():
    with agent() as a:
        with host(a, 6, 500, "wait") as p:
            equal(p.stdout.readline(), "done\n", "the host")
            wait_for(lambda: sum(r["calls"] for r in rows(a, p.pid)) == 1000, "what was measured")
            gather, = (r for r in rows(a, p.pid) if r["operation"] == "all_gather")
            equal((gather["comm"], gather["uid"], gather["timed"]), ("profiler_host", os.getuid(), 500), "row")
            page = a.metrics()
            labels = {"pid": str(p.pid), "comm_size": "4", "operation": "all_gather", "algorithm": "RING", "protocol": "LL128"}
            equal(values(page, "gpusonde_process_nccl_measured_total", **labels), [500], "operations")
            equal(round(values(page, "gpusonde_process_nccl_measured_bytes_total", **labels)[0]), 500 * 16000, "traffic")
            equal(round(values(page, "gpusonde_process_nccl_bus_bandwidth_bytes_per_second", **labels)[0]), 12_000_000_000, "busbw")
            equal(values(page, "gpusonde_process_nccl_channels", **labels), [2], "channels")
            equal(values(page, "gpusonde_nccl_plugin_lost"), [0], "lost")
            p.stdin.close()
        wait_for(lambda: not rows(a, p.pid), "the process's rows to go")
        path = f"{a.tmp}/nccl.sock"
        equal(os.stat(path).st_mode & 0o777, 0o666, "every user may connect")
        a.stop()
        assert not os.path.exists(path), "the socket is left"


def test_a_child_of_fork_says_nothing():
    with agent() as a:
        with host(a, 5, 10, "fork") as p:
            p.wait(timeout=60)
        equal(p.returncode, 0, "exit status")


def test_flood():
    """Far more than there is room for: the program is not held up, and what is missing is counted."""
    with agent() as a:
        pid = receiver(a) or wait_for(lambda: receiver(a), "the process that receives")
        os.kill(pid, signal.SIGSTOP)
        try:
            with host(a, 6, 20000, "flood") as p:
                equal(p.stdout.readline(), "done\n", "the host is not held up by who does not read")
                os.kill(pid, signal.SIGCONT)
                total = 8 * 2 * 20000

                def all_told():
                    found = rows(a, p.pid)
                    return found and sum(r["calls"] for r in found) + found[0]["lost"] == total and found
                found = wait_for(all_told, "received and lost to be all")
                assert sum(r["lost"] for r in found) > 0, found
                p.stdin.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_whoever_is_killed():
    with agent() as a:
        with host(a, 6, 100, "wait") as p:
            equal(p.stdout.readline(), "done\n", "the host")
            wait_for(lambda: rows(a, p.pid), "its rows")
            p.kill()
        wait_for(lambda: not rows(a, p.pid), "the rows of one that was killed to go")
        pid = receiver(a)
        with host(a, 6, 100, "wait") as p:
            equal(p.stdout.readline(), "done\n", "the host")
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: receiver(a) not in (None, pid), "another process that receives")
            p.stdin.close()
            equal(p.wait(timeout=60), 0, "the program is not harmed")
        with host(a, 6, 100, "wait") as p:
            wait_for(lambda: rows(a, p.pid), "rows again")
            a.process.kill()
            p.stdin.close()
            equal(p.wait(timeout=60), 0, "nor without an agent")


def test_hostile_clients():
    wrong = {
        "magic": message(operation(), magic=1), "version": message(operation(), version=2), "number": message(operation(), n=2),
        "too many": message(*[operation()] * 33), "short": message(operation())[:-1], "header": b"n", "operation": message(operation(op=200)),
        "algorithm": message(operation(algorithm=99)), "protocol": message(operation(protocol=99)), "timing": message(operation(timing=9)),
        "an hour": message(operation(duration_ns=4 * 3600 * 10**9)), "no duration": message(operation(duration_ns=0)),
        "ranks": message(operation(ranks=1 << 31)), "long": message(operation()) + bytes(100000),
    }
    with agent() as a:
        for what, data in wrong.items():
            with connected(a) as s:
                s.send(data)
                assert closed(s), what
        wait_for(lambda: values(a.metrics(), "gpusonde_nccl_plugin_refused_total") == [len(wrong)], "refused messages to be counted")
        with connected(a) as s:
            s.send(message(*(operation(ranks=r + 1) for r in range(32))))
            s.send(message(*(operation(ranks=r + 1000, size=2**64 - 1) for r in range(32))))
            s.send(message(*(operation(ranks=r + 2000) for r in range(32)), lost=7))
            wait_for(lambda: sum(r["calls"] for r in rows(a)) == 96, "operations")
            found = rows(a)
            equal((len(found), found[-1]["operation"] == "other" or any(r["operation"] == "other" for r in found)), (64, True), "bounded")
            equal({r["pid"] for r in found}, {os.getpid()}, "whose it is the kernel says")
            equal(sum(r["lost"] for r in found), 7, "lost")
        assert receiver(a), "it lives"


def test_a_user_has_only_a_share():
    with agent() as a:
        held = []
        try:
            for _ in range(256):
                held.append(connected(a))
            with connected(a) as one_more:
                assert closed(one_more), "more than its share"
            held.pop().close()

            def again():
                with connected(a) as s:
                    try:
                        s.settimeout(2)
                        s.send(message(operation(op=9)))
                        return any(r["operation"] == "recv" for r in rows(a))
                    except OSError:
                        return False
            wait_for(again, "room again")
        finally:
            for s in held:
                s.close()
        assert alive(a.process.pid)


def test_where_it_cannot_listen():
    done = command("agent", "--nccl-socket", "/nonexistent/x", "--listen", "127.0.0.1:0", "--nvml-library", "/nonexistent")
    assert done.returncode != 0
    contains(done.stderr, "choose another place with nccl.socket")


run()
