#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A day in less than half an hour: the agent on an accelerated clock, faults of the simulated driver drawn at random, clients that come
and go, servers that are away or refuse what they are sent, reloads, and a full disk under its recording and its file for node_exporter.
Only the driver is not loaded anew, since its counters would begin at 0.

    PYTHONPATH=test:. test/soak/day.py BUILD_DIR SOURCE_DIR [HOURS [SEED]]

Memory, descriptors and threads stay flat, no counter falls, and at the end energy and ECC errors of every GPU are what the driver says, and
what was sent adds up. The clock is fast_clock.c's, in the agent and in what it starts. As root, the recording lies on a file system of its own
that becomes full; else on one that does not. Prints a line every ten seconds and, last, "N passed, N failed".
"""
import contextlib
import datetime
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import verdicts
from lib import atop
from outputs import Outputs
from lib.e2e import BUILD, SIMULATED, Agent, children, wait_for

FAST_CLOCK = f"{BUILD}/test/soak/fast_clock.so"
RATE = 60
GPUS = 8
STORE_MIB = 24
SAMPLE_S = 10
# After so long the driver is asked again for what it said it does not support.
ASKED_AGAIN_S = 600
ACTS_A_SECOND = 4
# Of a GPU that is read each second.
FRESH_S = 3
# ECC errors are read each ten seconds.
LATE_NS = 12_000_000_000
ESTIMATE = 0.98
SCENARIO = "cycle: 10m\nseed: 7\ngpus:\n  - {model: h100-sxm, count: 8}\nprocesses:\n" + """\
  - {name: /usr/bin/python3, gpus: "0-5", memory: {ramp: [18GiB, 34GiB], period: 60s}, load: {gpu: {square: [6, 42], period: 20s}}}
  - {name: /opt/vllm/bin/vllm, gpus: all, memory: 22GiB, load: {gpu: {sine: [2, 34], period: 2m, jitter: 5}}}
  - {name: /usr/bin/python3, gpus: all, memory: 1GiB, load: {gpu: 10}, every: 40s, for: 25s, stagger: 3s}
counters:
  - {kind: ecc_corrected, location: dram, gpus: all, count: 3, every: 7s}
  - {kind: ecc_uncorrected, location: dram, gpus: "0-3", count: 1, every: 5m}
xids:
  - {xid: 48, gpu: 1, at: 90s, every: 10m}
"""
FUNCTIONS = ("nvmlDeviceGet*", "nvmlDeviceGetPower*", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTotal*",
             "nvmlDeviceGetCompute*", "nvmlDeviceGetMemoryInfo*", "nvmlSystemGet*", "nvmlDeviceGetHandleBy*")
ERRORS = ("UNKNOWN", "TIMEOUT", "NO_PERMISSION", "NOT_SUPPORTED", "GPU_IS_LOST", "INSUFFICIENT_SIZE", "IN_USE")
# Of those that make numbers of another size than they are, counters are another story: what they say meanwhile is wrong for everybody.
LEVELS = ("nvmlDeviceGetPower*", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature*", "nvmlDeviceGetMemoryInfo*")
PAGES = ("/metrics", "/metrics/dcgm", "/api/v1/gpus", "/api/v1/processes", "/api/v1/node", "/container/metrics", "/", "/healthz", "/readyz", "/nothing")
# (what, how much more than in the second quarter the last quarter may have, besides a tenth)
FLAT = (("resident_kib", 1024), ("descriptors", 40), ("threads", 4), ("processes", 2))


def chosen_fault(draw):
    """One row of a control file."""
    gpus = draw.choice(("", f"gpus: {draw.randrange(GPUS)}, ", f'gpus: "{draw.randrange(4)}-{draw.randrange(4, GPUS)}", '))
    one = f"gpus: {draw.randrange(GPUS)}"
    return draw.choice((
        lambda: f"error: {draw.choice(ERRORS)}, {gpus}functions: {draw.choice(FUNCTIONS)}",
        lambda: f"hang: {draw.choice(('1s', '5s', '40s', 'while', 'forever'))}, {gpus}functions: {draw.choice(FUNCTIONS)}",
        lambda: f"crash: true, {gpus}functions: {draw.choice(FUNCTIONS)}",
        lambda: f"sentinel: {draw.choice(('default', '0', '12345'))}, {gpus}functions: {draw.choice(LEVELS)}",
        lambda: f"wrap: 32, {gpus}functions: {draw.choice(LEVELS)}",
        lambda: "stride: " + draw.choice(("24", "32")),
        lambda: "namespaced: true",
        lambda: f"lost: true, {one}",
        lambda: f"removed: true, {one}",
    ))()


class Clients:
    """That ask, stay, and say nothing."""

    def __init__(self, agent, draw):
        self.agent, self.draw, self.open, self.asked, self.refused = agent, draw, [], 0, 0

    def connect(self, text=b""):
        with contextlib.suppress(OSError):
            s = socket.create_connection(("127.0.0.1", self.agent.port()), timeout=5)
            self.open.append(s)
            s.sendall(text)

    def act(self):
        what = self.draw.random()
        try:
            if what < 0.6:
                self.asked += 1
                self.agent.get(self.draw.choice(PAGES), timeout=20, **{"Accept": self.draw.choice(("*/*", "application/openmetrics-text"))})
            elif what < 0.7:
                with atop.tcp(self.agent) as client:
                    atop.ask(client, b"S", self.draw.choice((1, 2)))
            elif what < 0.8: # a viewer
                self.connect(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            elif what < 0.9: # never says what it wants
                self.connect(b"GET /met")
            elif self.open:
                self.open.pop(self.draw.randrange(len(self.open))).close()
        except (OSError, ValueError, AssertionError):
            self.refused += 1
        while len(self.open) > 40:
            self.open.pop(0).close()


def tree(pid):
    found = [pid]
    for child in children(pid):
        found += tree(child)
    return found


def sample(agent):
    """Of the agent and of what it started."""
    figures = dict.fromkeys(("resident_kib", "descriptors", "threads", "processes"), 0)
    for pid in tree(agent.pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                status = dict(line.split(":", 1) for line in f)
            figures["resident_kib"] += int(status.get("VmRSS", "0 kB").split()[0])
            figures["threads"] += int(status["Threads"])
            figures["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
            figures["processes"] += 1
    return figures


class Counters:
    """Of the agent's page: they may end, and never fall. A process that a GPU has again, after it was gone, is a new one."""

    def __init__(self):
        self.seen, self.fallen = {}, []

    def look(self, text):
        for line in text.splitlines():
            if found := re.match(r"(gpusonde_(?!process_)\w+_total(?:\{.*\})?) (\S+)$", line):
                name, value = found[1], float(found[2])
                if value < self.seen.get(name, value):
                    self.fallen.append(f"{name} {self.seen[name]} -> {value}")
                self.seen[name] = value


# What the simulated driver of this moment says, in a process with the agent's clock: lines "ago in ns" -> one of JSON.
TRUTH = r"""
import ctypes, json, sys, time
nvml = ctypes.CDLL(sys.argv[1])
assert nvml.nvmlInit_v2() == 0
for line in sys.stdin:
    ago = int(line) - time.clock_gettime_ns(time.CLOCK_REALTIME)
    nvml.gpusonde_sim_advance(ctypes.c_int64(ago))
    rows = []
    for i in range(int(sys.argv[2])):
        gpu, energy, ecc = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
        assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(gpu)) == 0
        assert nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, ctypes.byref(energy)) == 0
        assert nvml.nvmlDeviceGetTotalEccErrors(gpu, 0, 1, ctypes.byref(ecc)) == 0
        rows.append([energy.value / 1000, ecc.value])
    nvml.gpusonde_sim_advance(ctypes.c_int64(-ago))
    print(json.dumps(rows), flush=True)
"""


def wall_ns(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e9)


def exact(agent):
    """Which counters are not what the driver said when they were sampled. Energy that was estimated for a while is called so, and about right."""
    wrong = []
    gpus = agent.get("/api/v1/gpus").json()["gpus"]
    with subprocess.Popen([sys.executable, "-c", TRUTH, SIMULATED, str(GPUS)], env=agent.env, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        for gpu in gpus:
            at, said = wall_ns(gpu["sampled_at"]), []
            for off in (-LATE_NS, LATE_NS):
                process.stdin.write(f"{at + off}\n")
                process.stdin.flush()
                said.append(json.loads(process.stdout.readline())[gpu["gpu"]])
            figures = {name: gpu[name] for name in ("energy_joules_total",)} | {"ecc": gpu["ecc_aggregate_errors_total"]["corrected"]["all"]}
            for (name, ours), low, high in zip(figures.items(), *said):
                if name in gpu.get("estimated", ()):
                    low *= ESTIMATE
                if ours is None or not low <= ours <= high:
                    wrong.append(f"GPU {gpu['gpu']}: {name} {ours}, and the driver has {low} to {high}")
        process.stdin.close()
    return wrong if len(gpus) == GPUS else wrong + [f"{len(gpus)} GPUs of {GPUS}"]


class Disk:
    """Where the recording lies; as root a file system of its own."""

    def __init__(self, folder):
        self.folder, self.mounted, self.fills = folder, os.geteuid() == 0, 0

    def __enter__(self):
        os.makedirs(self.folder)
        if self.mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={STORE_MIB}m", "gpusonde-soak", self.folder], check=True)
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", self.folder], check=True)

    def empty(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.folder}/rest")

    def toggle(self):
        """Full, if it was not."""
        path = f"{self.folder}/rest"
        if not self.mounted:
            return
        if os.path.exists(path):
            self.empty()
            return
        self.fills += 1
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
            while f.write(bytes(1 << 20)):
                pass


def settle(agent):
    """Without faults all GPUs are read again, recently."""
    agent.fault()

    def states():
        return [(gpu["present"], gpu["stale"], gpu["age_seconds"]) for gpu in agent.get("/api/v1/gpus").json()["gpus"]]

    def fresh():
        gpus = states()
        return len(gpus) == GPUS and all(present and not stale and age < FRESH_S for present, stale, age in gpus)
    wait_for(agent.is_ready, "the agent to be ready")
    time.sleep(ASKED_AGAIN_S / RATE)
    wait_for(fresh, "every GPU to be read again", otherwise=lambda: f"(present, stale, age): {states()}; the end of the log: {agent.log()[-4000:]}")


def live(agent, draw, seconds, disk, counters, outputs):
    """(samples, how often each thing was done)"""
    clients, samples, done = Clients(agent, draw), [], {"faults": 0, "reloads": 0}
    end, due = time.monotonic() + seconds, time.monotonic() + SAMPLE_S
    while time.monotonic() < end:
        what = draw.random()
        if what < 0.15:
            agent.fault(*(chosen_fault(draw) for _ in range(draw.randrange(3))))
            done["faults"] += 1
        elif what < 0.17:
            agent.signal(signal.SIGHUP)
            done["reloads"] += 1
        elif what < 0.19:
            disk.toggle()
        elif what < 0.2:
            outputs.act(draw)
        else:
            clients.act()
        if time.monotonic() >= due:
            due += SAMPLE_S
            counters.look(agent.metrics())
            samples.append(sample(agent))
            print(", ".join(f"{k} {v}" for k, v in samples[-1].items()), flush=True)
        time.sleep(1 / ACTS_A_SECOND)
    for s in clients.open:
        s.close()
    return samples, dict(done, asked=clients.asked, refused=clients.refused, disk_full=disk.fills, servers_changed=outputs.changes)


def judge(samples, counters, wrong, astray, alive):
    rows = [("the agent lived", alive, "yes" if alive else "no"),
            ("no counter fell", not counters.fallen, f"{len(counters.seen)} series{''.join('; ' + text for text in counters.fallen[:5])}"),
            ("counters are exact at the end", not wrong, "; ".join(wrong) or f"{2 * GPUS} of {2 * GPUS}"),
            ("what was sent adds up", not astray, "; ".join(astray) or "remote write, OTLP, StatsD, textfile")]
    return rows + list(verdicts.flat_rows(samples, FLAT))


def main():
    hours = float(sys.argv[3]) if len(sys.argv) > 3 else 24
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    print(f"{hours:g} hours at {RATE} times their speed; seed {seed}", flush=True)
    env = {"LD_PRELOAD": FAST_CLOCK, "FAST_CLOCK_RATE": str(RATE), "FAST_CLOCK_SINCE": str(time.monotonic_ns())}
    counters = Counters()
    with tempfile.TemporaryDirectory(prefix="gpusonde-soak-") as tmp, Disk(f"{tmp}/recording") as disk, Outputs(disk.folder) as outputs, \
            Agent("--recording-path", f"{disk.folder}/day", "--recording-size", "16MiB", *outputs.flags(), scenario=SCENARIO, tmp=tmp, **env) as agent:
        samples, done = live(agent, random.Random(seed), hours * 3600 / RATE, disk, counters, outputs)
        print(", ".join(f"{k} {v}" for k, v in done.items()))
        disk.empty()
        settle(agent)
        outputs.settle(agent)
        wrong = exact(agent)
        astray = outputs.wrong(agent)
        counters.look(agent.metrics())
        rows = judge(samples, counters, wrong, astray, agent.process.poll() is None) if len(samples) >= 8 else \
            [("at least two hours", False, f"{len(samples)} samples")]
    return verdicts.tell(rows)


if __name__ == "__main__":
    sys.exit(main())
