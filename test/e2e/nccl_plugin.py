#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL's profiler plugin (libgpusonde-nccl.so), called as NCCL calls it, and what receives it: the agent and gpusonde trace --nccl."""
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from lib.e2e import BUILD, Agent, Skip, alive, children, comm, command, contains, equal, run, values, wait_for
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


def totals(a, operation="all_gather"):
    found = a.get("/api/v1/trace").json()["nccl_measured_totals"]
    return sum(r["calls"] for r in found or [] if r["operation"] == operation)


def host(a, *args, path=None, folder=None, **more):
    """The test's host of the interface; @path: the socket, if not the agent's. @folder: with copies of it and the plugin."""
    program, plugin = (f"{folder}/{os.path.basename(p)}" if folder else p for p in (HOST, PLUGIN))
    return subprocess.Popen([program, plugin, *map(str, args)], env={"GPUSONDE_NCCL_SOCKET": path or f"{a.tmp}/nccl.sock"}, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, **more)


def done(p, what="the host"):
    equal(p.stdout.readline(), "done\n", what)


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
            equal((gather["timed"], gather["algbw"], gather["ranks"], gather["traffic_bytes"]), (1000 if version == 3 else 0, None, None, None),
                  f"version {version} does not tell ranks")
            equal((gather["seconds"] > 0, gather["clock"]), (True, "host") if version == 3 else (False, "gpu"), f"version {version} tells no GPU time")
            continue
        equal((gather["timed"], gather["ranks"], gather["clock"]), (1000, 4, "gpu"), f"version {version}")
        equal((round(gather["algbw"]), round(gather["busbw"])), (16_000_000_000, 12_000_000_000), "bandwidth")
        equal((send["timed"], round(send["seconds"] * 1e9)), (1000, 900 * 1000), f"version {version}")


def test_the_agent():
    with agent() as a:
        with host(a, 6, 500, "wait") as p:
            done(p)
            wait_for(lambda: sum(r["calls"] for r in rows(a, p.pid)) == 1000, "what was measured")
            gather, = (r for r in rows(a, p.pid) if r["operation"] == "all_gather")
            equal((gather["comm"], gather["uid"], gather["timed"]), ("profiler_host", os.getuid(), 500), "row")
            page = a.metrics()
            labels = {"pid": str(p.pid), "comm_size": "4", "operation": "all_gather", "algorithm": "RING", "protocol": "LL128"}
            equal(values(page, "gpusonde_process_nccl_measured_total", **labels), [500], "operations")
            equal(round(values(page, "gpusonde_process_nccl_measured_bytes_total", **labels)[0]), 500 * 16000, "traffic")
            equal(round(values(page, "gpusonde_process_nccl_bus_bandwidth_bytes_per_second", **labels)[0]), 12_000_000_000, "busbw")
            equal(values(page, "gpusonde_process_nccl_channels", **labels), [2], "channels")
            equal(values(page, "gpusonde_nccl_plugin_lost_total"), [0], "lost")
            p.stdin.close()
        wait_for(lambda: not rows(a, p.pid), "the process's rows to go")
        # What it did stays.
        labels = {"comm_size": "4", "operation": "all_gather"}
        page = a.metrics()
        equal(values(page, "gpusonde_nccl_measured_total", **labels), [500], "operations of all that were")
        equal(round(values(page, "gpusonde_nccl_measured_bytes_total", **labels)[0]), 500 * 16000, "their traffic")
        equal(round(values(page, "gpusonde_nccl_measured_bus_bytes_total", **labels)[0]), 500 * 12000, "bus traffic")
        equal((totals(a), totals(a, "send")), (500, 500), "in JSON, too")
        path = f"{a.tmp}/nccl.sock"
        equal(os.stat(path).st_mode & 0o777, 0o666, "every user may connect")
        a.stop()
        assert not os.path.exists(path), "the socket is left"


def test_a_child_of_fork_says_nothing():
    with agent() as a:
        with host(a, 5, 10, "fork") as p:
            done(p)
            # After what the child might have said.
            print("", file=p.stdin, flush=True)
            done(p)
            wait_for(lambda: sum(r["calls"] for r in rows(a)) >= 40, "what the parent did")
            p.stdin.close()
            equal(p.wait(timeout=60), 0, "exit status")
        wait_for(lambda: not rows(a, p.pid), "its rows to go")
        equal((totals(a), totals(a, "send")), (20, 20), "what the parent did, and no more")


def test_ranks_by_themselves():
    with agent() as a:
        for version in (1, max(VERSIONS)):
            with host(a, version, 100, "ranks") as p:
                done(p)
                # The others have ended, or will: what they did is in the totals.
                wait_for(lambda: totals(a) == 400 * (1 if version == 1 else 2), f"all ranks, version {version}")
                equal([r["pid"] for r in rows(a) if not r["ended"] and r["operation"] == "send"], [p.pid], "the one that lives")
                p.stdin.close()
                equal(p.wait(timeout=60), 0, "exit status")
        equal(totals(a, "send"), 800, "sends")
        equal(values(a.metrics(), "gpusonde_nccl_plugin_lost_total"), [0], "lost")


def measured(*args):
    tracing()
    done_ = command("trace", "--nccl", "--json", "-o", "-", "--", HOST, PLUGIN, *map(str, args))
    equal(done_.returncode, 0, done_.stderr)
    return {r["operation"]: (r["calls"], r["timed"]) for r in json.loads(done_.stdout)["nccl_measured"]}


def test_handles_that_are_none():
    for version in (3, max(VERSIONS)):
        equal({k: v[0] for k, v in measured(version, 100, "bad").items()}, {"all_gather": 100, "send": 100}, f"version {version}: nothing is added")


def test_events_out_of_order():
    """Each operation is told once, with a duration only where its channels began and ended."""
    for version, timed in ((2, 0), (3, 300), (max(VERSIONS), 200)):
        found = measured(version, 300, "disorder")
        equal(found, {"all_gather": (300, timed), "send": (1, 0)}, f"version {version}")


def test_it_stays_when_it_is_closed():
    equal(measured(6, 100, "close"), {"all_gather": (100, 100), "send": (100, 100)}, "after dlclose()")


def test_what_it_exports():
    found = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
    equal(sorted(line.split()[-1] for line in found.splitlines()), [f"ncclProfiler_v{v}" for v in VERSIONS], "the interface, and nothing else")


def test_it_holds_no_program_up():
    """Whatever process is at the other end, and whether or not communicators end: the program does all, and ends."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, contextlib.ExitStack() as stack:
        def listening(name, kind):
            s = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            s.bind(f"{tmp}/{name}")
            s.listen(1)
            return f"{tmp}/{name}"

        os.mkfifo(f"{tmp}/fifo")
        os.symlink("loop", f"{tmp}/loop")
        with open(f"{tmp}/file", "w", encoding="ascii"):
            pass
        paths = [listening("silent", socket.SOCK_SEQPACKET), listening("stream", socket.SOCK_STREAM), f"{tmp}/fifo", f"{tmp}/loop", f"{tmp}/file",
                 tmp, f"{tmp}/none", "relative", "/" + "x" * 4000]
        for path in paths:
            for what in ("", "exit"):
                with host(None, 6, 5000, what, path=path) as p:
                    equal(p.wait(timeout=60), 0, f"{path[:100]} {what}")


def test_a_path_that_is_too_long_is_none():
    """And not that of what it begins with."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        path = f"{tmp}/".ljust(107, "x")
        s.bind(path)
        s.listen(1)
        for tried, connects in ((path + "x", False), (path, True)):
            with host(None, 6, 10, path=tried) as p:
                equal(p.wait(timeout=60), 0, "exit status")
            s.setblocking(False)
            try:
                s.accept()[0].close()
                equal(connects, True, "too long")
            except BlockingIOError:
                equal(connects, False, "as long as may be")


def test_another_user():
    if os.getuid() != 0:
        raise Skip("root only: only root can become another user")
    with agent() as a:
        os.chmod(a.tmp, 0o755)
        for path in (HOST, PLUGIN):
            shutil.copy(path, a.tmp)
        with host(a, 6, 100, "wait", folder=a.tmp, user=65534, group=65534) as p:
            done(p)
            wait_for(lambda: sum(r["calls"] for r in rows(a, p.pid)) == 200, "another user's operations")
            equal({r["uid"] for r in rows(a, p.pid)}, {65534}, "whose they are")
            p.stdin.close()


def test_the_agent_is_restarted():
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        with Agent("--nccl-socket", f"{tmp}/nccl.sock", tmp=tmp) as a, contextlib.ExitStack() as stack:
            p = stack.enter_context(host(a, 6, 100, "wait"))
            done(p)
            wait_for(lambda: sum(r["calls"] for r in rows(a, p.pid)) == 200, "the first operations")
            a.stop()
            with Agent("--nccl-socket", f"{tmp}/nccl.sock", tmp=tmp) as b:
                print("", file=p.stdin, flush=True)
                done(p)
                wait_for(lambda: sum(r["calls"] for r in rows(b, p.pid)) == 200, "those for the second")
                p.stdin.close()


def test_flood():
    """Far more than there is room for: the program is not held up, and what is missing is counted."""
    with agent() as a:
        pid = receiver(a) or wait_for(lambda: receiver(a), "the process that receives")
        os.kill(pid, signal.SIGSTOP)
        try:
            with host(a, 6, 20000, "flood") as p:
                done(p, "the host is not held up by who does not read")
                os.kill(pid, signal.SIGCONT)
                total = 8 * 2 * 20000

                def all_told():
                    found = rows(a, p.pid)
                    return found and sum(r["calls"] for r in found) + found[0]["lost"] == total and found
                found = wait_for(all_told, "received and lost to be all")
                assert sum(r["lost"] for r in found) > 0, found
                p.stdin.close()
            wait_for(lambda: not rows(a, p.pid), "its rows to go")
            equal(totals(a) + totals(a, "send") + values(a.metrics(), "gpusonde_nccl_plugin_lost_total")[0], total, "the totals are all, too")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_a_program_that_is_killed():
    with agent() as a:
        with host(a, 6, 100, "wait") as p:
            done(p)
            wait_for(lambda: rows(a, p.pid), "its rows")
            p.kill()
        wait_for(lambda: not rows(a, p.pid), "the rows of one that was killed to go")
        pid = receiver(a)
        with host(a, 6, 100, "wait") as p:
            done(p)
            wait_for(lambda: sum(r["calls"] for r in rows(a, p.pid)) == 200, "all that it did")
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: receiver(a) not in (None, pid), "another process that receives")
            before = totals(a)
            print("", file=p.stdin, flush=True)
            done(p)
            wait_for(lambda: totals(a) == before + 100, "totals to go on from where they were")
            equal(before >= 100, True, "what the first was told")
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
