# SPDX-License-Identifier: Apache-2.0
"""Other programs that read GPUs: nvidia-smi and dcgmi. Each reading is a list, one {key: value} for a GPU, with the keys and units of nvml.py."""
import re
import xml.etree.ElementTree as ElementTree

from machine import run
from rows import NotCompared

MIB = 1 << 20
MODES = {"Disabled": 0, "Enabled": 1, "Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}


def mode(text):
    return MODES[text]


def mebibytes(text):
    return int(text) * MIB


def percent(text):
    return float(text) / 100


# key: (field of --query-gpu, and what it was called before; how its text is read)
SMI = {
    "name": (("name",), str),
    "uuid": (("uuid",), str),
    "pci_bus_id": (("pci.bus_id",), str),
    "vbios": (("vbios_version",), str),
    "driver_version": (("driver_version",), str),
    "memory_total_bytes": (("memory.total",), mebibytes),
    "memory_used_bytes": (("memory.used",), mebibytes),
    "memory_reserved_bytes": (("memory.reserved",), mebibytes),
    "power_watts": (("power.draw",), float),
    "power_limit_watts": (("enforced.power.limit",), float),
    "temperature_celsius": (("temperature.gpu",), int),
    "sm_clock_mhz": (("clocks.sm",), int),
    "memory_clock_mhz": (("clocks.mem",), int),
    "clocks_event_reasons": (("clocks_event_reasons.active", "clocks_throttle_reasons.active"), lambda text: int(text, 16)),
    "ecc_mode": (("ecc.mode.current",), mode),
    "ecc_corrected": (("ecc.errors.corrected.volatile.total",), int),
    "ecc_uncorrected": (("ecc.errors.uncorrected.volatile.total",), int),
    "mig_mode": (("mig.mode.current",), mode),
    "persistence_mode": (("persistence_mode",), mode),
    "accounting_mode": (("accounting.mode",), mode),
    "compute_mode": (("compute_mode",), mode),
    "performance_state": (("pstate",), lambda text: int(text.lstrip("P"))),
    "pcie_generation": (("pcie.link.gen.current",), int),
    "pcie_width": (("pcie.link.width.current",), int),
    "utilization_ratio": (("utilization.gpu",), percent),
    "memory_utilization_ratio": (("utilization.memory",), percent),
}
# key: (id of DCGM's field, factor)
DCGM = {
    "sm_clock_mhz": (100, 1), "memory_clock_mhz": (101, 1), "temperature_celsius": (150, 1), "power_watts": (155, 1),
    "utilization_ratio": (203, 1e-2), "memory_total_bytes": (250, MIB), "memory_used_bytes": (252, MIB),
}
# What somebody sets; all that "nvidia-smi -q -x" has of these, wherever they stand.
SETTINGS = {"persistence_mode", "accounting_mode", "accounting_mode_buffer_size", "compute_mode", "current_mig", "pending_mig",
            "current_ecc", "pending_ecc", "current_gom", "pending_gom", "current_driver_model", "driver_model", "current_dm", "graphics_clock",
            "mem_clock", "auto_boost", "auto_boost_default", "current_power_limit", "requested_power_limit", "enforced_power_limit",
            "power_limit", "virtualization_mode", "persistenced", "display_mode", "display_active"}
SET_WITHIN = ("applications_clocks", "default_applications_clocks", "clock_policy", "mig_mode", "ecc_mode", "gpu_operation_mode", "driver_model",
              "power_readings", "gpu_power_readings", "module_power_readings")


def parsed(text, parse):
    """None where nvidia-smi has nothing: [N/A], [Not Supported], [Unknown Error]."""
    text = text.strip()
    if text.startswith("[") or text in ("N/A", ""):
        return None
    try:
        return parse(text)
    except (ValueError, KeyError):
        return None


class Smi:
    name = "nvidia-smi"

    def __init__(self, machine):
        self.machine = machine
        self.fields = {key: names[0] for key, (names, _) in SMI.items()}

    def query(self, what, fields):
        """Lists of texts, one for each line."""
        out = run(self.machine.smi, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits", env=self.machine.reference_env)
        return [line.split(", ") for line in out.splitlines() if line.strip()]

    def read(self):
        if not self.machine.smi:
            raise NotCompared("no nvidia-smi here")
        # A driver without one of the fields refuses the whole question, and names it.
        while True:
            try:
                lines = self.query("gpu", self.fields.values())
                break
            except NotCompared as why:
                unknown = re.search(r'Field "([^"]+)" is not a valid field', str(why))
                key = unknown and next((k for k, f in self.fields.items() if f == unknown[1]), None)
                if not key:
                    raise
                older = [n for n in SMI[key][0][1:] if n != unknown[1]]
                self.fields.pop(key)
                if older:
                    self.fields[key] = older[0]
        return [{key: parsed(text, SMI[key][1]) for key, text in zip(self.fields, line)} for line in lines]

    def processes(self):
        """{(uuid, pid): bytes or None}"""
        if not self.machine.smi:
            raise NotCompared("no nvidia-smi here")
        lines = self.query("compute-apps", ("gpu_uuid", "pid", "used_memory"))
        return {(uuid, int(pid)): parsed(used, mebibytes) for uuid, pid, used in lines}

    def settings(self):
        """All that can be set, as {path: text}."""
        if not self.machine.smi:
            raise NotCompared("no nvidia-smi here")
        found = {}

        def walk(element, path):
            for number, child in enumerate(element):
                here = f"{path}/{child.tag}" + (f"[{number}]" if child.tag == "gpu" else "")
                if child.tag in SETTINGS and not len(child) and (path.count("/") < 2 or path.rsplit("/", 1)[1] in SET_WITHIN):
                    found[here] = (child.text or "").strip()
                walk(child, here)
        walk(ElementTree.fromstring(run(self.machine.smi, "-q", "-x", env=self.machine.reference_env)), "")
        return found


class Dcgm:
    name = "DCGM"

    def __init__(self, machine):
        self.machine = machine

    def fields(self, ids, seconds=1):
        """{gpu: [texts]} of the newest line of each."""
        if not self.machine.dcgmi:
            raise NotCompared("no dcgmi here")
        out = run(self.machine.dcgmi, "dmon", "-e", ",".join(map(str, ids)), "-c", str(seconds), env=self.machine.reference_env)
        return {int(m[1]): m[2].split() for m in re.finditer(r"^\s*GPU\s+(\d+)\s+(.*)$", out, re.M)}

    def read(self):
        found = self.fields([number for number, _ in DCGM.values()])
        if not found:
            raise NotCompared("dcgmi dmon shows no GPU")
        result = []
        for _, texts in sorted(found.items()):
            values = (parsed(text, float) for text in texts)
            result.append({key: None if v is None else v * factor for (key, (_, factor)), v in zip(DCGM.items(), values)})
        return result
