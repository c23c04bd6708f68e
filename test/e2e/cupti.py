# SPDX-License-Identifier: Apache-2.0
"""CUPTI's plugin (libgpusonde-cupti.so) with the simulated driver and CUPTI: gpusonde trace --cupti."""
import collections
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

from lib import perfetto
from lib.e2e import BUILD, PATIENCE_S, SIMULATED, Agent, children, comm, command, contains, environment, equal, run, values, wait_for
from lib.traced import DRIVER, SCENARIO, begun, probed, tracing

SIM, PLUGIN, CUPTI = f"{BUILD}/sim/cuda", f"{BUILD}/libgpusonde-cupti.so", f"{BUILD}/sim/cupti/libcupti.so.13"
US = 500
COMPARED = "gpusonde_process_cuda_busy_measured"
ENV = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_KERNEL_US=str(US),
                  GPUSONDE_CUPTI_LIBRARY=CUPTI)
SCRIPT = "alloc 4096; copy h2d 4096; repeat 30; launch 3 64; end; sync; stream create; graph 5 3; sync; memset 100; launch; sync"
VERSIONS = (12, 17, 18, 22, 28, 130001)
# model/cupti_wire.h
MAGIC, HEADER, WANTED, WORK = 0x74707563, struct.Struct("=IHHQ"), struct.Struct("=IHHIIII"), struct.Struct("=BBHIIIIIIIQQQQQQ")
TID, START, END, LAUNCH, NAMED = 7, 10, 11, 12, 13  # places in it
KERNEL, GRAPH, COPY, SET, NAME, DEVICE, SLICE = range(7)
BUFFER_BYTES, KERNEL_BYTES = 256 << 10, 216  # of CUPTI's newest record of one
ON, OVER, SPENT, OTHER, NO_LIBRARY, REFUSED = range(6)


def traced(script=SCRIPT, flags=("--json",), status=0, **env):
    tracing()
    done = command("trace", "--socket=none", "--cupti", *flags, "--output=-", "--", f"{SIM}/workload", script, env=dict(ENV, **env))
    equal(done.returncode, status, done.stderr)
    return done


def measured(stdout):
    """The process and its kernels."""
    found = json.loads(stdout.splitlines()[-1])["cupti"]
    process, = found["processes"]
    return process, {k["name"]: k for k in found["kernels"]}


def loaded(script, path, **env):
    return subprocess.Popen([f"{SIM}/workload", script], env=dict(ENV, CUDA_INJECTION64_PATH=PLUGIN, GPUSONDE_CUPTI_SOCKET=path, **env),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Told:
    """
    What the plugin in a program says to who listens: works by kind, names, slices, lost. @until: the script ends with a pause, which lasts until this is
    true; at its end a program waits for nobody long.
    """

    def __init__(self, script=SCRIPT, wanted=(1000, 1000, 0, 1), until=None, **env):
        self.works, self.names, self.slices, self.lost = [], {}, [], 0
        with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"{tmp}/socket")
            listener.listen(1)
            listener.settimeout(60)
            with loaded(script, f"{tmp}/socket", **env) as self.process:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    connection.send(WANTED.pack(MAGIC, 1, 0, *wanted))
                    end = time.monotonic() + PATIENCE_S
                    while message := connection.recv(4096):
                        self.take(message)
                        assert not until or time.monotonic() < end, f"{len(self.works)} works, {self.slices[-1:]}, {self.lost} lost"
                        if until and until(self):
                            until = None
                            self.process.stdin.write("\n")
                            self.process.stdin.flush()
                self.process.communicate(timeout=60)
        equal(self.process.returncode, 0, "exit status")

    def take(self, message):
        magic, version, n, self.lost = HEADER.unpack_from(message)
        equal((magic, version, len(message)), (MAGIC, 1, HEADER.size + 80 * n), "message")
        for at in range(HEADER.size, len(message), 80):
            kind = message[at]
            if kind == NAME:
                _, n, begin, _, _, name, text = struct.unpack_from("=BBHHHQ64s", message, at)
                equal(begin, len(self.names.get(name, "")), "parts in order")
                self.names[name] = self.names.get(name, "") + text[:n].decode()
            elif kind == SLICE:
                self.slices.append(struct.unpack_from("=BBBBIIIQQQQQQ", message, at))
            elif kind < NAME:
                self.works.append(WORK.unpack_from(message, at))

    def kernels(self):
        """Names of kernels, and their durations in us."""
        return [(self.names[w[NAMED]], (w[END] - w[START]) / 1000) for w in self.works if w[0] == KERNEL]

    def count(self, kind):
        return sum(w[0] == kind for w in self.works)

    def missing(self):
        """dropped, unknown, bad of the last slice."""
        return self.slices[-1][9:12]


def test_each_version():
    """Whatever the length of its records: each kernel with its time, each graph's too, and whose call it was."""
    for version in VERSIONS:
        told = Told(GPUSONDE_SIM_CUPTI_VERSION=str(version))
        # 5 kernels of a graph that is launched 3 times; the other 31 have a call each.
        equal(collections.Counter(told.kernels()), {("work", US): 31, ("node", US): 15}, f"version {version}")
        equal((told.count(GRAPH), told.count(COPY), told.count(SET), told.lost, told.missing()), (0, 1, 1, 0, (0, 0, 0)), f"version {version}")
        equal({(s[1], s[2], s[4]) for s in told.slices[-1:]}, {(OVER, 0, version)}, "state, clock, version")
        first, last = told.slices[0][7], told.slices[-1][8]
        for w in told.works:
            assert first <= w[START] <= w[END] <= last, f"{w} is not within {first}, {last}"
            if w[0] == KERNEL:
                # Its call was before it, in the program's thread.
                equal((w[TID], first <= w[LAUNCH] <= w[START]), (told.process.pid, True), "call")


def test_graphs_as_a_whole():
    told = Told(wanted=(1000, 1000, 0, 0))
    equal((told.count(KERNEL), told.count(GRAPH)), (31, 3), "kernels and graphs")
    equal({w[END] - w[START] for w in told.works if w[0] == GRAPH}, {5 * US * 1000}, "durations")


def test_a_clock_of_its_own():
    """A CUPTI that takes no clock of ours has CLOCK_REALTIME; the offset is measured."""
    told = Told(GPUSONDE_SIM_CUPTI_FAIL="ActivityRegisterTimestampCallback:1")
    equal(told.slices[-1][2], 1, "clock")
    first, last, unsure = told.slices[0][7], told.slices[-1][8], 10_000_000
    for w in told.works:
        assert first - unsure <= w[START] <= w[END] <= last + unsure, f"{w} is not within {first}, {last}"


def test_slices():
    """On for a part of the time, and off after so many launches."""
    told = Told("repeat 40; launch; sync; sleep 100; end", wanted=(300, 2000, 0, 1))
    ended = [s[1] for s in told.slices if s[1] != ON]
    assert len(ended) >= 2 and set(ended) == {OVER}, f"slices in four seconds: {ended}"
    assert 2 <= told.count(KERNEL) < 40, told.count(KERNEL)
    told = Told("repeat 40; launch; sync; sleep 20; end", wanted=(5000, 10000, 5, 1))
    equal(told.slices[-1][1], SPENT, "state")
    assert 3 <= told.count(KERNEL) < 40, told.count(KERNEL)


def test_why_it_does_not_measure():
    for state, error, env in ((OTHER, 39, {"GPUSONDE_SIM_CUPTI_OTHER": "1"}), (REFUSED, 35, {"GPUSONDE_SIM_CUPTI_FAIL": "Subscribe:35"}),
                              (REFUSED, 15, {"GPUSONDE_SIM_CUPTI_FAIL": "ActivityEnable:15"}),
                              (REFUSED, 1, {"GPUSONDE_SIM_CUPTI_FAIL": "ActivityRegisterCallbacks:1"}),
                              (NO_LIBRARY, 0, {"GPUSONDE_CUPTI_LIBRARY": "/nonexistent"})):
        told = Told(**env)
        equal(([(s[1], s[5]) for s in told.slices], told.works), ([(state, error)], []), f"{env}")


def test_records_that_make_no_sense():
    """What comes before is taken, what is missing is counted, and the program does not notice."""
    for records, taken in (("short", 46), ("backwards", 1), ("far", 1)):
        told = Told(GPUSONDE_SIM_CUPTI_RECORDS=records)
        dropped, unknown, bad = told.missing()
        equal((0 < len(told.works) <= taken + 1, dropped, unknown, bad > 0), (True, 0, 0, True), f"{records}: {len(told.works)} works, {bad} bad")
    told = Told(GPUSONDE_SIM_CUPTI_RECORDS="unknown")
    equal((len(told.works), told.missing()), (48, (0, 48, 0)), "unknown kinds")


def test_what_finds_no_room_is_counted():
    """64 buffers of 256 KiB: of a graph of 140,000 kernels some find no place, in CUPTI or in a buffer."""
    def known(told):
        return told.count(KERNEL) + told.missing()[0] + told.lost

    told = Told("stream create; graph 140000; sync; pause", until=lambda told: told.slices and known(told) >= 140000, GPUSONDE_SIM_CUDA_KERNEL_US="1")
    dropped, _, bad = told.missing()
    equal((known(told), dropped, bad), (140000, 140000 - 64 * (BUFFER_BYTES // KERNEL_BYTES), 0), f"{told.count(KERNEL)} told, {dropped} dropped, {told.lost} lost")


def test_the_listener_goes_and_comes_back():
    """The program works on; CUPTI is off until somebody listens again."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{tmp}/socket")
        listener.listen(1)
        listener.settimeout(60)
        with loaded("repeat 1000; launch; sync; sleep 20; end", f"{tmp}/socket") as p:
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(60)
                    connection.send(WANTED.pack(MAGIC, 1, 0, 1000, 1000, 0, 1))
                    kinds = set()
                    while KERNEL not in kinds:
                        message = connection.recv(4096)
                        kinds |= {message[at] for at in range(HEADER.size, len(message), 80)}
                    # Names are told again.
                    equal(NAME in kinds, True, "the kernel's name")
            p.kill()


def test_the_listener_comes_late():
    """CUPTI is loaded long after the program began, and so registers its end later: it is not used after that (the simulated one aborts)."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        with loaded("launch; sync; pause; launch; sync", f"{tmp}/socket") as p:
            equal(p.stdout.readline(), "ready\n", "the program")
            listener.bind(f"{tmp}/socket")
            listener.listen(1)
            listener.settimeout(60)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                connection.send(WANTED.pack(MAGIC, 1, 0, 1000, 1000, 0, 1))
                records = bytearray(connection.recv(4096)[HEADER.size:])
                equal(list(records[:2]), [SLICE, ON], "it is on")
                p.stdin.write("\n")
                p.stdin.flush()
                while message := connection.recv(4096):
                    records += message[HEADER.size:]
            p.communicate(timeout=60)
            kinds = records[::80]
            equal((kinds.count(KERNEL), list(records[-80:-78]), p.returncode), (1, [SLICE, OVER], 0), "what was told, and the program's end")


def test_a_listener_that_talks():
    """The plugin leaves a listener that says more than is understood: its thread does not read on and on."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{tmp}/socket")
        listener.listen(1)
        listener.settimeout(60)
        with loaded("launch; sync; pause", f"{tmp}/socket") as p:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                connection.send(WANTED.pack(MAGIC, 1, 0, 10, 600_000, 0, 1))
                connection.send(b"more")
                with contextlib.suppress(ConnectionResetError):
                    while connection.recv(4096):
                        pass
            p.communicate("\n", timeout=60)
            equal(p.returncode, 0, "exit status")


def test_in_gpusonde_trace():
    done = traced(flags=("--json", "--kernels"))
    process, kernels = measured(done.stdout)
    equal((process["state"], process["clock"], process["reason"]), ("over", "monotonic", None), "state")
    equal((process["kernels"], process["graphs"], process["copies"], process["sets"], process["bytes"]), (46, 0, 1, 1, 4196), "work")
    equal((kernels["work"]["count"], kernels["work"]["correlated"], kernels["node"]["count"]), (31, 31, 15), "kernels")
    equal({round(k[of] * 1e6) for k in kernels.values() for of in ("least_seconds", "most_seconds")}, {US}, "durations")
    equal(round(process["busy_seconds"] * 1e6), 46 * US, "one after the other, so busy is their sum")
    assert process["busy_seconds"] <= process["observed_seconds"], process
    # What is estimated from outside stands beside it, and how far it is off.
    estimated, busy = process["busy_estimated_seconds"], process["busy_seconds"]
    equal(round(process["busy_estimate_error"], 6), round(abs(estimated - busy) / max(estimated, busy), 6), "error of the estimate")
    equal((process["lost"], process["dropped"], process["unknown"], process["bad"]), (0, 0, 0, 0), "missing")


@contextlib.contextmanager
def agent(*flags, listens=True, **kwargs):
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        with Agent(*(("--cupti-socket", f"{tmp}/cupti.sock") if listens else ()), *flags, tmp=tmp, **kwargs) as a:
            yield a


def cupti_of(a):
    return a.get("/api/v1/trace").json()["cupti"] or {"processes": []}


def rows(a, pid):
    return [r for r in cupti_of(a)["processes"] if r["pid"] == pid]


def test_in_the_agent():
    """All the time: each kernel that a program runs is in JSON and on /metrics, until the program has gone."""
    with agent("--cupti-slice", "60s", "--cupti-period", "60s") as a, loaded(f"alloc 64; pause; {SCRIPT}; pause", f"{a.tmp}/cupti.sock") as p:
        equal(p.stdout.readline(), "ready\n", "the program")
        wait_for(lambda: any(r["state"] == "on" for r in rows(a, p.pid)), "CUPTI to be on")
        p.stdin.write("\n")
        p.stdin.flush()
        equal(p.stdout.readline(), "ready\n", "its work")
        wait_for(lambda: any(r["graphs"] == 3 for r in rows(a, p.pid)), "what was measured")
        row, = rows(a, p.pid)
        equal((row["comm"], row["uid"], row["state"], row["reason"], row["device"]), ("workload", os.getuid(), "on", None, 0), "row")
        equal((row["kernels"], row["graphs"], row["copies"], row["sets"], row["lost"], row["bad"]), (31, 3, 1, 1, 0, 0), "work")
        wait_for(lambda: round(rows(a, p.pid)[0]["busy_seconds"] * 1e6) == 46 * US, "a slice that covers all of it")
        assert row["observed_seconds"] > 0, row
        page, labels = a.metrics(), {"pid": str(p.pid), "comm": "workload", "uuid": row["uuid"], "device": "0"}
        equal(values(page, "gpusonde_process_gpu_measured_launches_total", **labels), [34], "launches")
        equal(round(values(page, "gpusonde_process_gpu_measured_seconds_total", **labels)[0] * 1e6), 46 * US, "busy")
        assert values(page, "gpusonde_process_gpu_measured_observed_seconds_total", **labels)[0] >= row["observed_seconds"]
        equal(values(page, "gpusonde_process_gpu_measured_missing_total", **labels), [0], "missing")
        p.stdin.close()
        p.wait(60)
        wait_for(lambda: not rows(a, p.pid), "the process's rows to go")


def slices_of(path):
    with open(path, "rb") as file:
        timeline = perfetto.read(file.read(), True)
    return timeline, [s for s in timeline.slices if "times" in s.args], [s for s in timeline.slices if "(estimate)" in s.name]


def test_the_agents_timeline():
    """What CUPTI measured is in it, with arrows from its launches, and no estimate of the same time; what it did not measure is estimated."""
    tracing()
    program = f"load {DRIVER}; pause; alloc 64; pause; {SCRIPT}; pause; repeat 5; launch; end; sync; pause"
    with agent("--trace-enabled", "yes", "--cupti-slice", "60s", "--cupti-period", "60s", scenario=SCENARIO) as a:
        begun(a)
        with loaded(program, f"{a.tmp}/cupti.sock") as p, loaded("pause; launch; sync; pause", "/nonexistent") as other:
            equal((p.stdout.readline(), other.stdout.readline()), ("ready\n", "ready\n"), "the programs")
            # Its device is known if its first call was seen.
            probed(a, p.pid, DRIVER)
            p.stdin.write("\n")
            p.stdin.flush()
            equal(p.stdout.readline(), "ready\n", "its context")
            wait_for(lambda: any(r["state"] == "on" for r in rows(a, p.pid)), "CUPTI to be on")
            path = a.cli("record", "start").stdout.split()[-1]
            for q in (p, other):
                q.stdin.write("\n")
                q.stdin.flush()
                equal(q.stdout.readline(), "ready\n", "its work")
            wait_for(lambda: any(r["graphs"] == 3 for r in rows(a, p.pid)), "what was measured")
            # An estimate waits for what is measured; what is on its way now is told after it.
            told = rows(a, p.pid)[0]["observed_seconds"]
            wait_for(lambda: rows(a, p.pid)[0]["observed_seconds"] > told + 6, "estimates to be told")
            equal(a.cli("record", "stop").returncode, 0, "stop")
            # The estimate of the same time is compared with it; nothing is said of a process in which nothing was measured.
            p.stdin.write("\n")
            p.stdin.flush()
            equal(p.stdout.readline(), "ready\n", "more work")
            wait_for(lambda: values(a.metrics(), f"{COMPARED}_error_ratio", pid=str(p.pid)), "the estimate's error")
            page = a.metrics()
            error, seconds, age = (values(page, f"{COMPARED}_{name}", pid=str(p.pid))[0] for name in ("error_ratio", "compared_seconds", "age_seconds"))
            assert 0 <= error <= 1 <= seconds and 0 <= age < 60, (error, seconds, age)
            equal([values(page, f"{COMPARED}_{name}", pid=str(other.pid)) for name in ("error_ratio", "compared_seconds", "age_seconds")], [[], [], []], "the other's")
            for q in (p, other):
                q.kill()
        timeline, measured_slices, estimates = slices_of(path)
    equal(collections.Counter(s.name for s in measured_slices), {"work": 31, "graph": 3, "copy": 1, "set": 1}, "slices")
    equal({s.args["duration_ns"] for s in measured_slices if s.name == "work"}, {US * 1000}, "durations")
    equal({timeline.tracks[s.track.parent].pid for s in measured_slices}, {p.pid}, "whose they are")
    estimated = collections.Counter(timeline.tracks[s.track.parent].pid for s in estimates)
    equal((estimated[p.pid], estimated[other.pid] > 0), (0, True), "estimates, of the other program alone")
    launches = {flow: s for s in timeline.named("cuLaunchKernel") for flow in s.flows}
    for s in measured_slices:
        if s.name == "work":
            flow, = s.flows
            assert launches[flow].begin <= s.begin, (launches[flow], s)


def test_who_lies_lies_of_himself():
    """Times that cannot be are counted and not believed; what a client claims of another's device changes nothing of the other."""
    tracing()
    with agent("--trace-enabled", "yes", "--cupti-slice", "60s", "--cupti-period", "60s", scenario=SCENARIO) as a:
        begun(a)
        with loaded(f"alloc 64; pause; {SCRIPT}; pause", f"{a.tmp}/cupti.sock") as p, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            equal(p.stdout.readline(), "ready\n", "the program")
            wait_for(lambda: any(r["state"] == "on" for r in rows(a, p.pid)), "CUPTI to be on")
            p.stdin.write("\n")
            p.stdin.flush()
            equal(p.stdout.readline(), "ready\n", "its work")
            wait_for(lambda: any(r["graphs"] == 3 and round(r["busy_seconds"] * 1e6) == 46 * US for r in rows(a, p.pid)), "what was measured")
            uuid = rows(a, p.pid)[0]["uuid"]
            s.settimeout(60)
            s.connect(f"{a.tmp}/cupti.sock")
            s.recv(100)
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            works = [(KERNEL, now - 500_000, now), (KERNEL, now - 3600 * 10**9, now - 3599 * 10**9), (KERNEL, now + 10**12, now + 10**12)]
            records = struct.pack("=BBHI16s56x", DEVICE, 0, 0, 0, bytes.fromhex(uuid.removeprefix("GPU-").replace("-", "")))
            records += b"".join(WORK.pack(kind, 0, 0, 0, 1, 7, 1, p.pid, 0, 0, start, end, 0, 0, 0, 0) for kind, start, end in works)
            records += b"".join(struct.pack("=BBBBIIIQQ48x", SLICE, ON, 0, 0, 22, 0, 0, *times) for times in ((now - 10**6, now), (now - 10**6, now), (now, now + 10**12)))
            s.send(HEADER.pack(MAGIC, 1, len(records) // 80, 0) + records)
            wait_for(lambda: [(r["kernels"], r["bad"]) for r in rows(a, os.getpid())] == [(2, 2)], "what was claimed")
            wait_for(lambda: cupti_of(a)["dropped"] >= 1, "the work of the time before to be counted")
            own, = rows(a, os.getpid())
            assert own["busy_seconds"] <= own["observed_seconds"] <= 0.0011, own
            row, = rows(a, p.pid)
            equal((row["kernels"], row["graphs"], round(row["busy_seconds"] * 1e6), row["bad"]), (31, 3, 46 * US, 0), "the other's")
            equal(values(a.metrics(), f"{COMPARED}_compared_seconds", pid=str(os.getpid())), [], "one that is not traced")
            p.kill()


def test_slices_of_the_agent():
    """As its options say; hostile clients are refused, and counted."""
    with agent("--cupti-slice", "200ms", "--cupti-period", "2s", "--cupti-launches", "3") as a:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(60)
            s.connect(f"{a.tmp}/cupti.sock")
            equal(s.recv(100), WANTED.pack(MAGIC, 1, 0, 200, 2000, 3, 0), "what is wanted")
            slice_of = struct.pack("=BBBBIIIQQ48x", SLICE, OTHER, 0, 0, 22, 0, 0, 5, 5)
            s.send(HEADER.pack(MAGIC, 1, 1, 2) + slice_of)
            wait_for(lambda: [(r["state"], r["lost"]) for r in rows(a, os.getpid())] == [("other", 2)], "the row")
            contains(rows(a, os.getpid())[0]["reason"], "stands down")
            s.send(HEADER.pack(MAGIC, 1, 1, 2) + b"\xff" * 80)
            with contextlib.suppress(ConnectionResetError):
                equal(s.recv(100), b"", "it is closed")
        wait_for(lambda: cupti_of(a).get("refused") == 1, "the message that was refused")
        equal(cupti_of(a)["lost"], 2, "lost")
        page = a.metrics()
        equal((values(page, "gpusonde_cupti_plugin_refused_total"), values(page, "gpusonde_cupti_plugin_lost_total")), ([1], [2]), "on /metrics")
        receiver = next(p for p in children(a.process.pid) if comm(p) == "gpusonde-cupti")
        os.kill(receiver, signal.SIGKILL)
        wait_for(lambda: any(comm(p) == "gpusonde-cupti" and p != receiver for p in children(a.process.pid)), "another process that receives")
        wait_for(lambda: cupti_of(a)["processes"] == [], "its first answer")
        equal((cupti_of(a)["lost"], cupti_of(a)["refused"]), (2, 1), "counters do not fall")


def test_an_agent_that_does_not_listen():
    with agent(listens=False) as a:
        equal(a.get("/api/v1/trace").json()["cupti"], None, "nothing")
        equal("gpusonde_process_gpu_measured" in a.metrics(), False, "no family")


def test_the_timeline():
    """Each kernel is a slice with its true times, and an arrow leads to it from the call that launched it."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        done = traced(flags=("--json", f"--timeline={tmp}/x.pftrace"))
        with open(f"{tmp}/x.pftrace", "rb") as file:
            timeline = perfetto.read(file.read(), True)
    equal(done.stderr, "")
    found = [s for s in timeline.slices if "times" in s.args]
    equal(collections.Counter(s.name for s in found), {"work": 31, "node": 15, "copy": 1, "set": 1}, "slices")
    equal({s.args["duration_ns"] for s in found if s.name in ("work", "node")}, {US * 1000}, "durations")
    equal({s.end - s.begin for s in found if s.name in ("work", "node")}, {US * 1000}, "slices")
    equal({s.track.name.split(" stream")[0] for s in found}, {"GPU 0 measured,"}, "tracks")
    launches = {flow: s for s in timeline.named("cudaLaunchKernel") for flow in s.flows}
    for s in found:
        if s.name == "work":
            flow, = s.flows
            launch = launches.pop(flow)
            # A kernel may begin before its call has returned.
            assert launch.begin <= s.begin and s.args["queued_ns"] <= s.begin - launch.begin, (launch, s)
    equal(len(launches), 5, "those that were captured in a graph")
    # What was measured has no estimate beside it, and all of it was.
    equal([s for s in timeline.slices if "(estimate)" in s.name], [], "estimates")
    times = [s for s in timeline.slices if s.track.name == "time that CUPTI measured"]
    assert all(any(t.begin <= s.begin and s.end <= t.end for t in times) for s in found), (times, found)


def test_a_timeline_of_what_cannot_be_measured():
    """Another tool has CUPTI: all is estimated, as without it."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        traced("alloc 64; repeat 3; launch; sync; end", flags=("--json", f"--timeline={tmp}/x.pftrace"), GPUSONDE_SIM_CUPTI_OTHER="1")
        _, measured_slices, estimates = slices_of(f"{tmp}/x.pftrace")
    equal(([s for s in measured_slices if s.name == "work"], sum(s.args["launches"] for s in estimates)), ([], 3), "slices and estimates")


def sync_in_loop(*argv):
    """The finding."""
    done = command(*argv, env=dict(ENV, GPUSONDE_SIM_CUDA_KERNEL_US="2000"))
    equal(done.returncode, 0, done.stderr)
    (found,) = [f for f in json.loads(done.stdout.splitlines()[-1])["findings"] if f["finding"] == "sync_in_loop"]
    return found


def test_findings_by_true_times():
    """Of a command's timeline, and as it runs: that the GPU did nothing was seen, not estimated. Without CUPTI it is, and that is said."""
    tracing()
    program = ["--", f"{SIM}/workload", "alloc 4096; repeat 100; copy h2d 64; repeat 4; launch; sync; end; sleep 8; end; free"]
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp:
        done = command("trace", "--socket=none", "--cupti", f"--timeline={tmp}/x.pftrace", *program, env=dict(ENV, GPUSONDE_SIM_CUDA_KERNEL_US="2000"))
        equal(done.returncode, 0, done.stderr)
        found = [sync_in_loop("analyze", "--json", f"{tmp}/x.pftrace"),
                 sync_in_loop("analyze", "--socket=none", "--json", "--output=-", "--cupti", *program),
                 sync_in_loop("analyze", "--socket=none", "--json", "--output=-", *program)]
    equal([f["evidence"].get("work_measured_share") for f in found], [1, 1, None])
    equal([any("CUPTI" in text for text in f["surer_with"]) for f in found], [False, False, True])
    assert all(f["evidence"]["device_idle_share"] > 0.1 and round(f["evidence"]["waits_per_step"]) == 4 for f in found), found


def test_streams_at_once():
    """Busy is a union: streams that work at once are busy once."""
    process, _ = measured(traced("threads 4; stream create; repeat 10; launch; end; sync stream; end; sync", GPUSONDE_SIM_CUDA_KERNEL_US="20000").stdout)
    equal((process["kernels"], round(process["kernel_seconds"], 3)), (40, 0.8), "sums")
    assert 0.2 <= process["busy_seconds"] < 0.8, process["busy_seconds"]


def test_the_table():
    text = traced(flags=("--kernels",)).stdout
    contains(text, "500.0 us  500.0 us  500.0 us  work")
    contains(text, "31 x 500.0 us")
    contains(text, "46 kernels, 0 graphs, 1 copies, 1 sets")
    contains(traced(flags=(), GPUSONDE_SIM_CUPTI_OTHER="1").stdout, "another tool has subscribed to CUPTI: the plugin stands down")


def test_a_killed_program_and_a_child():
    process, _ = measured(traced("launch; sync; sleep 1500; kill", status=128 + signal.SIGKILL).stdout)
    equal((process["kernels"], process["ended"]), (1, True), "what was told before")
    contains(process["reason"], "before it told all")
    process, _ = measured(traced("launch; sync; fork; launch; sync; end; launch; sync").stdout)
    equal(process["kernels"], 2, "a child of fork says nothing")


def test_another_tool_is_to_be_loaded():
    done = command("trace", "--socket=none", "--cupti", "--", "true", env=dict(ENV, CUDA_INJECTION64_PATH="/other.so"))
    assert done.returncode != 0
    contains(done.stderr, "CUDA_INJECTION64_PATH is set")
    done = command("trace", "--cupti", "-p", str(os.getpid()))
    contains(done.stderr, "--cupti needs a command")


def test_it_holds_no_program_up():
    """Whatever process is at the other end, the program does all, says nothing of its own, and ends."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-e2e-") as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.bind(f"{tmp}/silent")
        silent.listen(1)
        os.mkfifo(f"{tmp}/fifo")
        for path in (f"{tmp}/silent", f"{tmp}/fifo", tmp, f"{tmp}/none", "/" + "x" * 4000):
            with loaded("repeat 100; launch; end; sync", path) as p:
                out, err = p.communicate(timeout=60)
            equal((p.returncode, err), (0, ""), path[:100])
            equal(json.loads(out)["calls"]["cudaLaunchKernel"]["count"], 100, "calls")


def test_cupti_is_not_loaded_unless_somebody_listens():
    with loaded("launch; sync; pause", "/nonexistent") as p:
        equal(p.stdout.readline(), "ready\n", "the program")
        with open(f"/proc/{p.pid}/maps", encoding="utf-8") as file:
            maps = file.read()
        equal((PLUGIN in maps, CUPTI in maps), (True, False), "what is loaded")
        p.communicate("\n", timeout=60)
        equal(p.returncode, 0, "exit status")


def test_what_it_exports():
    found = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
    equal([line.split()[-1] for line in found.splitlines()], ["InitializeInjection"], "and nothing else")


run()
