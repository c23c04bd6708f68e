# SPDX-License-Identifier: Apache-2.0
"""The agent as a neighbour: what it sets, takes and holds, and how it stands when its helper dies, hangs or lets go."""
import json
import os
import signal
import statistics
import time

from device import snapshot
from programs import plain
from rows import HARM, OUTAGE, Check, NotCompared
from tools import Smi

MIB = 1 << 20
COST_S, LATENCY_TURNS, PAGES = 10, 200000, 20
HANG_S, SIMULATED_HANG_S = 10, 5    # after which the agent replaces a helper; figures are stale after 3
CPU_LIMIT, MEMORY_LIMIT_MIB, LATENCY_LIMIT, PAGE_LIMIT_S = 0.003, 12, 1.05, 1
DRIVER_SETTINGS = ("persistence_mode", "accounting_mode", "compute_mode", "mig_mode", "ecc_mode", "power_limit_watts", "application_sm_clock_mhz")

CHECKS = [
    Check("settings_nvml", "settings of the GPUs before and after, by NVML", HARM, "equal"),
    Check("settings_smi", "settings of the GPUs before and after, by nvidia-smi -q", HARM, "equal"),
    Check("latency", "launch and wait of an empty kernel, with the agent to without: median", HARM, f"at most {LATENCY_LIMIT:.2f} times", True),
    Check("latency_p99", "the same, 99th percentile"),
    Check("agent_cpu", "agent and helper: CPU, of one core", HARM, f"at most {CPU_LIMIT:.1%}", True),
    Check("agent_memory", "agent and helper: resident memory", HARM, f"at most {MEMORY_LIMIT_MIB} MiB", True),
    Check("killed", "helper killed: fresh figures again, from a new one", OUTAGE, "counters go on"),
    Check("hangs", "helper stopped as in a hung driver: pages answer, say so, and recover", OUTAGE, f"each page within {PAGE_LIMIT_S} s", True),
    Check("release", "gpusonde release: no process of gpusonde has the driver open", HARM, "none"),
    Check("resume", "gpusonde resume: fresh figures again", OUTAGE, "fresh"),
]


class Settings:
    """Of the whole run: read before anything of gpusonde's was started, and at the end."""

    def __init__(self, machine):
        self.machine = machine
        self.before = self.read()

    def read(self):
        found = {"nvml": {g["uuid"]: {k: g[k] for k in DRIVER_SETTINGS} for g in self.machine.nvml("state")["gpus"]}}
        try:
            found["smi"] = Smi(self.machine).settings()
        except NotCompared as why:
            found["smi"] = why
        return found

    def compare(self, table):
        with table.part("settings_nvml", "settings_smi"):
            after = self.read()
            for key in ("nvml", "smi"):
                with table.part(f"settings_{key}"):
                    for found in (self.before[key], after[key]):
                        if isinstance(found, NotCompared):
                            raise found
                    changed = [k for k in self.before[key] if self.before[key][k] != after[key].get(k)]
                    count = sum(len(v) if isinstance(v, dict) else 1 for v in after[key].values())
                    table.put(f"settings_{key}", not changed and self.before[key].keys() == after[key].keys(), f"{count} after",
                              "equal before" if not changed else f"changed: {changed[:5]}")


def tree(e2e, agent):
    return [agent.process.pid, *e2e.children(agent.process.pid)]


def helper_of(e2e, agent):
    """The process that holds the driver's library."""
    for pid in e2e.children(agent.process.pid):
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            if f.read().startswith("gpusonde-nvml"):
                return pid
    raise AssertionError("the agent has no helper")


def cpu_seconds(pids):
    """To the nanosecond; /proc/PID/stat has hundredths of a second, which an idle agent does not use in ten."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
    return total / 1e9


def resident_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            total += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return total / 1024


def cost(table, machine, e2e, agent, seconds):
    with table.part("agent_cpu", "agent_memory"):
        pids, begin = tree(e2e, agent), time.monotonic()
        before = cpu_seconds(pids)
        time.sleep(seconds)
        share = (cpu_seconds(pids) - before) / (time.monotonic() - begin)
        table.put("agent_cpu", share <= CPU_LIMIT, f"{share:.3%}", f"{seconds:g} s, {len(pids)} processes")
        resident, nvml = resident_mib(pids), machine.nvml("resident")["mib"]
        table.put("agent_memory", resident <= MEMORY_LIMIT_MIB, f"{resident:.1f} MiB",
                  f"NVML alone: {nvml:.1f} MiB; both proportional shares (PSS) of all pages")


def latency(table, machine, make_agent):
    """With an agent and without, in turns."""
    with table.part("latency", "latency_p99"):
        runs, turns = {True: [], False: []}, LATENCY_TURNS // (100 if machine.simulated else 1)
        for _ in range(machine.rounds):
            for with_agent in (False, True):
                if not with_agent:
                    runs[False].append(json.loads(plain(machine, machine.program(), "latency", turns)[0]))
                    continue
                with make_agent("--sample-period", "100ms"):
                    runs[True].append(json.loads(plain(machine, machine.program(), "latency", turns)[0]))
        middle = {k: [statistics.median(r[f] for r in found) for f in ("p50_us", "p99_us")] for k, found in runs.items()}
        (p50, p99), (p50_alone, p99_alone) = middle[True], middle[False]
        table.put("latency", p50 <= p50_alone * LATENCY_LIMIT, f"{p50:.2f} us, {p50 / p50_alone:.3f} times",
                  f"{p50_alone:.2f} us without; ten readings a second")
        table.put("latency_p99", True, f"{p99:.2f} us, {p99 / p99_alone:.3f} times", f"{p99_alone:.2f} us without")


def counters(doc):
    return [(g["energy_joules_total"] or 0, g["busy_seconds_total"]["gpu"] or 0) for g in doc["gpus"]]


def fresh(doc):
    return doc["node"]["fresh"]


def killed(table, e2e, agent):
    with table.part("killed"):
        before, starts = counters(snapshot(agent)), snapshot(agent)["node"]["agent"]["driver_child_starts_total"]
        helper = helper_of(e2e, agent)
        begin = time.monotonic()
        os.kill(helper, signal.SIGKILL)

        def back():
            doc = snapshot(agent)
            return fresh(doc) and doc["node"]["agent"]["driver_child_starts_total"] > starts and doc
        doc = e2e.wait_for(back, "figures of a new helper")
        took = time.monotonic() - begin
        after = counters(doc)
        good = len(after) == len(before) and all(b >= a for x, y in zip(before, after) for a, b in zip(x, y))
        table.put("killed", good, f"fresh after {took:.1f} s", "no counter went back" if good else f"counters {before} became {after}")


def hangs(table, e2e, make_agent):
    """Long enough for figures to become stale; what answers then is the agent alone."""
    with table.part("hangs"), make_agent() as agent:
        helper = helper_of(e2e, agent)
        os.kill(helper, signal.SIGSTOP)
        agent.wait_not_ready()
        took = []
        for _ in range(PAGES):
            begin = time.monotonic()
            status = agent.get("/metrics").status
            took.append(time.monotonic() - begin)
            assert status == 200, f"/metrics gives {status}"
        stale = all(g["stale"] for g in snapshot(agent)["gpus"])
        agent.wait_ready()
        assert not e2e.alive(helper), "the helper that hung is still there"
        table.put("hangs", max(took) <= PAGE_LIMIT_S and stale, f"/metrics in at most {max(took) * 1e3:.1f} ms, values "
                  f"{'marked stale' if stale else 'NOT marked stale'}", "ready again with a new helper")


def opened(pids):
    """What these processes have of the driver: devices open, its library mapped."""
    found = []
    for pid in pids:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except FileNotFoundError:
                continue
            if target.startswith("/dev/nvidia"):
                found.append(target)
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
            found += ["libnvidia-ml mapped"] if "libnvidia-ml" in f.read() else []
    return sorted(set(found))


def release(table, e2e, agent):
    with table.part("release", "resume"):
        before = opened(tree(e2e, agent))
        done = agent.cli("release")
        assert done.returncode == 0, f"gpusonde release ends with {done.returncode}: {done.stderr}"
        held = opened(tree(e2e, agent))
        table.put("release", not held and bool(before), ", ".join(held) or "nothing", f"before: {', '.join(before)}")
        done = agent.cli("resume")
        assert done.returncode == 0, f"gpusonde resume ends with {done.returncode}: {done.stderr}"
        begin = time.monotonic()
        e2e.wait_for(lambda: fresh(snapshot(agent)), "fresh figures")
        table.put("resume", True, f"fresh after {time.monotonic() - begin:.1f} s", f"gpusonde resume: {(done.stdout or done.stderr).strip()[:100]}")
