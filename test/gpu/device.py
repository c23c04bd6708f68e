# SPDX-License-Identifier: Apache-2.0
"""What gpusonde says of the GPUs, beside nvidia-smi, NVML and DCGM: while nothing runs, and under a load that is known."""
import contextlib
import datetime
import json
import subprocess
import time
from collections import namedtuple

import tools
from machine import KERNEL_MS
from programs import Program
from rows import EXACT, LIE, Check, NotCompared, Tolerance

MIB = 1 << 20
LOAD_BYTES = 1024 * MIB

# @ours takes a GPU of the JSON; @moves: compared under load, too.
Field = namedtuple("Field", "key what ours tolerance unit moves", defaults=(False,))
FIELDS = [
    Field("name", "name", lambda g: g["name"], EXACT, "text"),
    Field("uuid", "UUID", lambda g: g["uuid"], EXACT, "text"),
    Field("pci_bus_id", "PCI id", lambda g: g["pci_bus_id"], EXACT, "text"),
    Field("vbios", "VBIOS", lambda g: g["vbios"], EXACT, "text"),
    Field("memory_total_bytes", "memory, total", lambda g: g["memory_total_bytes"], Tolerance(MIB), "bytes"),
    Field("memory_used_bytes", "memory, used", lambda g: g["memory_used_bytes"], Tolerance(2 * MIB, 0.01), "bytes", True),
    Field("memory_reserved_bytes", "memory, reserved", lambda g: g["memory_reserved_bytes"], Tolerance(MIB), "bytes"),
    Field("utilization_ratio", "utilisation", lambda g: g["utilization_ratio"]["gpu"], Tolerance(0.05), "ratio", True),
    Field("power_watts", "power", lambda g: g["power_watts"], Tolerance(5, 0.1), "W", True),
    Field("power_limit_watts", "power limit", lambda g: g["power_limit_watts"]["enforced"], Tolerance(0.01), "W"),
    Field("temperature_celsius", "temperature", lambda g: g["temperature_celsius"], Tolerance(2), "°C", True),
    Field("sm_clock_mhz", "SM clock", lambda g: mega(g["clock_hertz"]["sm"]), Tolerance(15, 0.03), "MHz", True),
    Field("memory_clock_mhz", "memory clock", lambda g: mega(g["clock_hertz"]["memory"]), Tolerance(1), "MHz", True),
    Field("clocks_event_reasons", "throttle reasons", lambda g: g["clocks_event_reasons"], EXACT, "bits", True),
    Field("performance_state", "performance state", lambda g: g["performance_state"], EXACT, "count", True),
    Field("pcie_generation", "PCIe generation", lambda g: g["pcie_link_generation"]["current"], EXACT, "count", True),
    Field("pcie_width", "PCIe width", lambda g: g["pcie_link_width"]["current"], EXACT, "count"),
    Field("ecc_mode", "ECC mode", lambda g: g["ecc_mode"]["current"], EXACT, "count"),
    Field("ecc_corrected", "ECC errors, corrected", lambda g: g["ecc_errors_total"]["corrected"]["all"], EXACT, "count"),
    Field("ecc_uncorrected", "ECC errors, uncorrected", lambda g: g["ecc_errors_total"]["uncorrected"]["all"], EXACT, "count"),
    Field("mig_mode", "MIG mode", lambda g: g["mig_mode"]["current"], EXACT, "count"),
    Field("persistence_mode", "persistence mode", lambda g: g["persistence_mode"], EXACT, "count"),
    Field("compute_mode", "compute mode", lambda g: g["compute_mode"], EXACT, "count"),
]


def mega(value):
    return None if value is None else value / 1e6


def shown(value, unit):
    if value is None:
        return "absent"
    return {"bytes": lambda: f"{value / MIB:,.0f} MiB", "ratio": lambda: f"{value:.0%}", "bits": lambda: f"{int(value):#x}",
            "text": lambda: str(value), "count": lambda: f"{value:g}"}.get(unit, lambda: f"{value:.4g} {unit}")()


def tolerance_text(tolerance, unit):
    if unit == "text" or tolerance == EXACT:
        return "exactly"
    parts = [shown(tolerance.absolute, unit)] + ([f"{tolerance.relative:.0%}"] if tolerance.relative else [])
    return " or ".join(parts)


def checks():
    rows = [Check("count", "GPUs", LIE, "exactly"), Check("driver_version", "driver version", LIE, "exactly")]
    for when in ("idle", "load"):
        rows += [Check(f"{when}_{f.key}", f"{f.what}, {'under load' if when == 'load' else 'idle'}", LIE, tolerance_text(f.tolerance, f.unit))
                 for f in FIELDS if f.moves or when == "idle"]
    return rows + [
        Check("process_memory", "the load's process: memory", LIE, "2 MiB or 2%"),
        Check("process_list", "processes: who uses which GPU", LIE, "exactly"),
        Check("busy_full", "busy seconds under full load, to those that the device measured", LIE, "5% or 0.3 s"),
        Check("busy_half", "busy seconds under half load, to those that the device measured", LIE, "8% or 0.4 s"),
        Check("busy_process", "busy seconds of the load's process, to those that the device measured", LIE, "10% or 0.6 s", True),
        Check("energy_counter", "energy over the load, to the driver's counter", LIE, "3% or 2 s of it"),
        Check("energy_power", "energy over the load, to power integrated at 10 Hz", LIE, "10% or 2 s of it"),
        Check("gpm_utilization", "graphics engine activity (GPM) under full load, to utilisation", LIE, "10%"),
        Check("gpm_second", "the same while a second program reads GPM", LIE, "10%"),
        Check("dcgm_profile", "SM and graphics engine activity, to DCGM's profiling fields", LIE, "10%"),
    ]


class References:
    """All tools to compare with; those that are missing are left out, and their rows say why."""

    def __init__(self, machine):
        self.machine = machine
        self.tools = [tools.Smi(machine), tools.Dcgm(machine)]

    def read(self):
        """[(tool, [one dict for each GPU])]"""
        direct = self.machine.nvml("state")
        gpus = [dict(g, driver_version=direct["driver_version"]) for g in direct["gpus"]]
        found = [(direct["by"], gpus)]
        for tool in self.tools:
            with contextlib.suppress(NotCompared):
                found.append((tool.name, tool.read()))
        return found


def snapshot(agent):
    return agent.get("/api/v1/snapshot").json()


def normal(value):
    return value.lower() if isinstance(value, str) else value


def agrees(field, before, after, theirs):
    """Of one GPU: what the agent said before and after the tool was read."""
    ours = [normal(v) for v in (before, after)]
    theirs = normal(theirs)
    if None in ours:
        return ours == [None, None] and theirs is None
    if field.unit == "text" or field.tolerance == EXACT:
        return theirs in ours
    return any(field.tolerance.agree(v, theirs) for v in ours) or min(ours) <= theirs <= max(ours)


def compare_field(table, key, field, before, after, readings):
    ours = [(field.ours(a), field.ours(b)) for a, b in zip(before, after)]
    good, words, compared = True, [], 0
    for tool, gpus in readings:
        theirs = [g.get(field.key) for g in gpus]
        if all(v is None for v in theirs):
            continue
        compared += 1
        good = good and len(theirs) == len(ours) and all(agrees(field, a, b, v) for (a, b), v in zip(ours, theirs) if v is not None)
        words.append(f"{', '.join(shown(v, field.unit) for v in theirs)} ({tool})")
    said = ", ".join(shown(b, field.unit) for _, b in ours)
    if compared:
        table.put(key, good, said, "; ".join(words))
    else:
        table.skip(key, "no other tool has it", said)


def compare_all(table, when, agent, references):
    before, readings = snapshot(agent)["gpus"], references.read()
    time.sleep(1.2)     # a reading of the agent's that is newer than theirs
    after = snapshot(agent)["gpus"]
    for field in FIELDS:
        if field.moves or when == "idle":
            with table.part(f"{when}_{field.key}"):
                compare_field(table, f"{when}_{field.key}", field, before, after, readings)
    return readings


def idle(table, agent, references):
    keys = ["count", "driver_version"] + [f"idle_{f.key}" for f in FIELDS]
    with table.part(*keys):
        seen = snapshot(agent)
        readings = compare_all(table, "idle", agent, references)
        counts = {tool: len(gpus) for tool, gpus in readings}
        table.put("count", all(n == len(seen["gpus"]) for n in counts.values()), len(seen["gpus"]),
                  "; ".join(f"{n} ({tool})" for tool, n in counts.items()))
        versions = {tool: gpus[0]["driver_version"] for tool, gpus in readings if gpus and gpus[0].get("driver_version")}
        table.put("driver_version", all(v == seen["node"]["driver_version"] for v in versions.values()), seen["node"]["driver_version"],
                  "; ".join(f"{v} ({tool})" for tool, v in versions.items()))


def compare_processes(table, machine, agent, references, pid):
    with table.part("process_list", "process_memory"):
        direct = machine.nvml("state")
        mine = {(p["uuid"], p["pid"]): p["memory_bytes"] for p in snapshot(agent)["processes"] if "compute" in p["types"]}
        lists = [(direct["by"], {(g["uuid"], int(p)): used for g in direct["gpus"] for p, used in (g["processes"] or {}).items()})]
        with contextlib.suppress(NotCompared):
            lists.append(("nvidia-smi", references.tools[0].processes()))
        if not any(p == pid for theirs in (mine, *(listed for _, listed in lists)) for _, p in theirs):
            raise NotCompared("nobody lists the load's PID: this is not the machine's own PID namespace")
        table.put("process_list", all(set(mine) == set(theirs) for _, theirs in lists), f"{len(mine)} processes",
                  "; ".join(f"{len(theirs)} ({tool})" for tool, theirs in lists))
        key = next((k for k in mine if k[1] == pid), None)
        if not key:
            raise NotCompared("gpusonde does not list the load's PID")
        values = [(tool, theirs.get(key)) for tool, theirs in lists if theirs.get(key) is not None]
        if not values:
            raise NotCompared("no other tool has the memory of a process")
        near = Tolerance(2 * MIB, 0.02)
        table.put("process_memory", all(near.agree(mine[key] or 0, v) for _, v in values), shown(mine[key], "bytes"),
                  "; ".join(f"{shown(v, 'bytes')} ({tool})" for tool, v in values))


def delta(before, after, *path):
    a, b = before, after
    for word in path:
        a, b = (x if x is None else x[word] for x in (a, b))
    return None if a is None or b is None else b - a


def gpu_of(doc):
    """The one that programs use without being told: CUDA's first, which is the first here unless somebody ordered otherwise."""
    return doc["gpus"][0]


def process_busy(doc, pid):
    return next((p["busy_seconds_total"] for p in doc["processes"] if p["pid"] == pid), None)


def seconds_between(before, after):
    """Of two readings of the agent's."""
    times = [datetime.datetime.fromisoformat(gpu_of(doc)["sampled_at"].replace("Z", "+00:00")) for doc in (before, after)]
    return (times[1] - times[0]).total_seconds()


def energy(table, before, after, watched):
    """Both of a steady load, and of nearly the same time: each as it would be for the agent's."""
    ours, window = delta(gpu_of(before), gpu_of(after), "energy_joules_total"), seconds_between(before, after)
    seen = [s for s in watched["seen"] if s["power_watts"] is not None]
    if ours is None or len(seen) < 2 or window <= 0:
        raise NotCompared("no energy or power here")
    span = seen[-1]["at"] - seen[0]["at"]
    watts = sum((a["power_watts"] + b["power_watts"]) / 2 * (b["at"] - a["at"]) for a, b in zip(seen, seen[1:])) / span
    table.put("energy_power", Tolerance(2 * watts, 0.1).agree(ours, watts * window), f"{ours:.0f} J",
              f"{watts * window:.0f} J ({watched['by']})")
    counters = [s["energy_joules"] for s in seen if s["energy_joules"] is not None]
    if len(counters) < 2:
        raise NotCompared("this driver has no counter of energy")
    counted = (counters[-1] - counters[0]) / span * window
    table.put("energy_counter", Tolerance(2 * watts, 0.03).agree(ours, counted), f"{ours:.0f} J", f"{counted:.0f} J ({watched['by']})")


def energy_read(agent):
    """The next snapshot in which the counter has been read anew: agents read one that is costly every few seconds."""
    first = snapshot(agent)
    for _ in range(50):
        newer = snapshot(agent)
        if gpu_of(newer)["energy_joules_total"] != gpu_of(first)["energy_joules_total"]:
            return newer
        time.sleep(0.2)
    return newer


def gpm(table, agent, key):
    gpu = gpu_of(snapshot(agent))
    ours, theirs = gpu["graphics_engine_active_ratio"], gpu["utilization_ratio"]["gpu"]
    if ours is None:
        raise NotCompared("no GPM: before Hopper, or the driver is older than 520")
    table.put(key, abs(ours - theirs) <= 0.1, shown(ours, "ratio") + f", SM activity {shown(gpu['sm_active_ratio'], 'ratio')}",
              f"{shown(theirs, 'ratio')} (utilisation)")


def profile(table, agent, references):
    found = references.tools[1].fields((1001, 1002), seconds=3)
    texts = found.get(0) or []
    values = [tools.parsed(t, float) for t in texts[:2]]
    gpu = gpu_of(snapshot(agent))
    ours = [gpu["graphics_engine_active_ratio"], gpu["sm_active_ratio"]]
    if None in ours or len(values) < 2 or None in values:
        raise NotCompared("DCGM or gpusonde has no profiling figures here")
    table.put("dcgm_profile", all(abs(a - b) <= 0.1 for a, b in zip(ours, values)), ", ".join(shown(v, "ratio") for v in ours),
              ", ".join(shown(v, "ratio") for v in values) + " (DCGM)")


@contextlib.contextmanager
def second_reader(machine):
    """Another gpusonde, which samples for itself while the block lasts."""
    command = [machine.gpusonde, "gpus", "--json", "--watch", "1", "--socket", "none"]
    with subprocess.Popen(command, env={**machine.reference_env, **machine.agent_env}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def busy_row(table, machine, key, doc_before, doc_after, result, slack, part):
    ours = delta(gpu_of(doc_before), gpu_of(doc_after), "busy_seconds_total", "gpu")
    if ours is None:
        raise NotCompared("this driver gives no utilisation")
    wanted, by = result["device_seconds"], "the program's CUDA events"
    if machine.simulated:
        if key == "busy_half":
            raise NotCompared("the simulated board's load is its scenario's, not the program's")
        wanted, by = delta(gpu_of(doc_before), gpu_of(doc_after), "observed_seconds_total"), "the scenario: always busy"
    table.put(key, Tolerance(slack, part).agree(ours, wanted), f"{ours:.2f} s", f"{wanted:.2f} s ({by})")


def process_row(table, doc_before, doc_after, pid, result):
    ours = process_busy(doc_after, pid)
    if ours is None:
        raise NotCompared("the driver does not list the load's PID, or gives no utilisation of processes")
    ours -= process_busy(doc_before, pid) or 0
    wanted = result["device_seconds"]
    table.put("busy_process", Tolerance(0.6, 0.1).agree(ours, wanted), f"{ours:.2f} s", f"{wanted:.2f} s (the program's CUDA events)")


def full_load(table, machine, agent, references, seconds):
    moving = [f"load_{f.key}" for f in FIELDS if f.moves]
    with table.part("busy_full", "energy_counter", "energy_power", "gpm_utilization", "gpm_second", "dcgm_profile", "process_list",
                    "process_memory", *moving):
        before = snapshot(agent)
        with Program(machine, "busy", seconds, KERNEL_MS, 0, LOAD_BYTES) as program:
            program.go()
            begin = time.monotonic()
            time.sleep(machine.settle_s)
            begun = energy_read(agent)
            watcher = machine.start_nvml("watch", 0, seconds / 3)
            compare_all(table, "load", agent, references)
            compare_processes(table, machine, agent, references, program.pid)
            with table.part("dcgm_profile"):
                profile(table, agent, references)
            with table.part("energy_counter", "energy_power"):
                watched = json.loads(watcher.communicate(timeout=60)[0])
                energy(table, begun, energy_read(agent), watched)
            with table.part("gpm_utilization"):
                gpm(table, agent, "gpm_utilization")
            with table.part("gpm_second"), second_reader(machine):
                time.sleep(machine.settle_s)
                gpm(table, agent, "gpm_second")
            time.sleep(max(0, begin + seconds - time.monotonic()))
            result = program.stop()
            time.sleep(machine.settle_s)
            busy_row(table, machine, "busy_full", before, snapshot(agent), result, 0.3, 0.05)


def half_load(table, machine, agent, seconds):
    with table.part("busy_half", "busy_process"):
        before = snapshot(agent)
        with Program(machine, "busy", seconds, KERNEL_MS, KERNEL_MS, 0) as program:
            program.go()
            time.sleep(seconds)
            result = program.stop()
            time.sleep(machine.settle_s)
            after = snapshot(agent)     # while the process still lives
        with table.part("busy_process"):
            process_row(table, before, after, program.pid, result)
        busy_row(table, machine, "busy_half", before, after, result, 0.4, 0.08)
