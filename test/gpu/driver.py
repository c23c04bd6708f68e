# SPDX-License-Identifier: Apache-2.0
"""What gpusonde assumes of the driver and no document states: each assumption beside what the installed driver does."""
import time

from device import delta, gpu_of, snapshot
from machine import KERNEL_MS
from programs import Program
from rows import HARM, LIE, Check, NotCompared

COPIED = 128 << 30      # more than 32 bits hold, and some seconds of copying
WRAP = 1 << 32
SIMULATED_COPIED = 1 << 28
WORK_S = 3
EVENT_LIMIT_MS, NEWEST_LIMIT_S, PASS_LIMIT = 5, 5, 0.02

CHECKS = [
    Check("events", "nvmlEventSetWait with a timeout of 0 returns at once", HARM, f"{EVENT_LIMIT_MS} ms, result 0 or 10 (timeout)", True),
    Check("utilization_samples", "samples of utilisation: time stamps are CPU time in microseconds", LIE,
          f"newest at most {NEWEST_LIMIT_S} s old, in order, deeper than 2 s"),
    Check("power_samples", "samples of power: the same"),
    Check("stride", "records of nvmlDeviceGetComputeRunningProcesses_v3 are 24 bytes apart", LIE, "every PID of two programs found"),
    Check("process_utilization", "nvmlDeviceGetProcessesUtilizationInfo knows the processes of the older call", LIE, "the load's PID in both"),
    Check("pass", "one pass over the devices, of the time between two", HARM, f"at most {PASS_LIMIT:.0%}", True),
    Check("rejected", "figures refused as impossible, of this driver"),
    Check("pcie_counter", "PCIe bytes received while programs copy, to field 198, which counts in 32 bits", LIE, "64 MiB, or 2 s of what was copied before"),
    Check("pcie_copied", "the same, to what a program copied: more than 32 bits hold", LIE, "at least as much, at most 25% more"),
    Check("pcie_rate", "PCIe bytes per second (GPM 21) while it copies, to the program's own rate", LIE, "25%"),
]


def refused(found, name):
    answer = found[name]
    if "refused" in answer:
        raise NotCompared(answer["refused"])
    return answer


def samples(table, key, found):
    seen = refused(found, key)
    if not seen["count"]:
        raise NotCompared("the buffer is empty")
    if seen["span_s"] is None:
        raise NotCompared("the buffer has one sample")
    good = abs(seen["newest_age_s"]) <= NEWEST_LIMIT_S and seen["in_order"] and seen["span_s"] > 2
    table.put(key, good, "read once a second", f"{seen['count']} samples, {seen['interval_ms']:.1f} ms apart (at most "
              f"{seen['greatest_interval_ms']:.1f}), {seen['span_s']:.1f} s deep, newest {seen['newest_age_s'] * 1e3:.0f} ms old")


def events(table, found):
    seen = refused(found, "events")
    good = set(seen["codes"]) <= {0, 10} and seen["longest_ms"] <= EVENT_LIMIT_MS
    table.put("events", good, "polled once a tick", f"{seen['longest_ms']:.3f} ms at most, results {seen['codes']} (NVML by ctypes)")


def stride(table, found, pids):
    seen = refused(found, "strides")
    if not seen["strides"]:
        raise NotCompared(f"no record of {seen['count']} has the PIDs {pids}: another PID namespace, or records of another size")
    table.put("stride", 24 in seen["strides"], "24 bytes, checked at each reading", f"{' or '.join(map(str, seen['strides']))} bytes")


def process_utilization(table, found, pids):
    seen = refused(found, "process_utilization")
    if seen["old_code"] or seen["new_code"]:
        raise NotCompared(f"the older call gives NVML error {seen['old_code']}, the newer {seen['new_code']}")
    if not set(pids) & set(seen["old"] + seen["new"]):
        raise NotCompared("neither lists the load: another PID namespace, or nothing sampled yet")
    both = set(pids) & set(seen["old"]) & set(seen["new"])
    table.put("process_utilization", bool(both), "the newer, else the older", f"{len(seen['old'])} and {len(seen['new'])} processes")


def answers(table, machine):
    """Asked while two programs work."""
    with table.part("events", "utilization_samples", "power_samples", "stride", "process_utilization"):
        with Program(machine, "busy", 0, KERNEL_MS, 0, 0) as one, Program(machine, "busy", 0, KERNEL_MS, 0, 0) as two:
            one.go()
            two.go()
            time.sleep(WORK_S)
            pids = [one.pid, two.pid]
            found = machine.nvml("probe", 0, *pids)
            for program in (one, two):
                program.stop()
        with table.part("events"):
            events(table, found)
        for key in ("utilization_samples", "power_samples"):
            with table.part(key):
                samples(table, key, found)
        with table.part("stride"):
            stride(table, found, pids)
        with table.part("process_utilization"):
            process_utilization(table, found, pids)


def one_pass(table, agent):
    with table.part("pass"):
        node = snapshot(agent)["node"]
        took = node["agent"]["collect_duration_seconds"]["nvml"]
        table.put("pass", took <= PASS_LIMIT * node["period_seconds"], f"{took * 1e3:.2f} ms", f"{node['period_seconds']:g} s")


def rejected(table, agent):
    with table.part("rejected"):
        node = snapshot(agent)["node"]
        figures = ", ".join(f"{name} {count}" for name, count in node["rejected"].items())
        table.put("rejected", True, figures or "none", node["unrecognised"] or "")


def pcie(table, machine, agent):
    with table.part("pcie_counter", "pcie_copied", "pcie_rate"):
        before, direct_before = snapshot(agent), machine.nvml("probe", 0)["pcie_bytes"]
        with Program(machine, "copy", SIMULATED_COPIED if machine.simulated else COPIED) as program:
            program.go()
            rates = [0]
            while not program.says(0.5):
                rates.append(gpu_of(snapshot(agent))["pcie_rx_bytes_per_second"])
            result = program.result()
            time.sleep(2.5)
        after, direct_after = snapshot(agent), machine.nvml("probe", 0)["pcie_bytes"]
        ours = delta(gpu_of(before), gpu_of(after), "pcie_rx_bytes_total")
        if ours is None:
            raise NotCompared("this board has no counter of PCIe bytes")
        with table.part("pcie_copied"):
            if machine.simulated:
                raise NotCompared("the simulated board's PCIe traffic is its scenario's, not the program's")
            copied = result["copied_bytes"]
            table.put("pcie_copied", copied * 0.98 <= ours <= copied * 1.25, f"{ours / 1e9:.2f} GB", f"{copied / 1e9:.2f} GB (the program)")
        with table.part("pcie_counter"):
            if not {"197", "198"} <= direct_before.keys():
                raise NotCompared("this driver has no fields 197 and 198")
            # The fields are of 32 bits: what they have counted is known but for a multiple of that.
            counted = (direct_after["198"] - direct_before["198"]) % WRAP
            slack = (64 << 20) + 2 * (gpu_of(before)["pcie_rx_bytes_per_second"] or 0)
            apart = (ours - counted + WRAP / 2) % WRAP - WRAP / 2
            table.put("pcie_counter", abs(apart) <= slack, f"{ours / 1e9:.2f} GB",
                      f"{counted / 1e9:.2f} GB and a multiple of 2^32 bytes (NVML by ctypes)")
        with table.part("pcie_rate"):
            if machine.simulated or result["seconds"] < 2 or None in rates:
                raise NotCompared("no GPM here" if None in rates else "the copies took less than 2 seconds")
            wanted = result["copied_bytes"] / result["seconds"]
            table.put("pcie_rate", abs(max(rates) - wanted) <= 0.25 * wanted, f"{max(rates) / 1e9:.2f} GB/s",
                      f"{wanted / 1e9:.2f} GB/s (the program)")


def everything(table, machine, agent):
    answers(table, machine)
    one_pass(table, agent)
    pcie(table, machine, agent)
    rejected(table, agent)
