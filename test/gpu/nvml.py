#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVML without gpusonde: what the driver's library answers when it is asked directly, as one line of JSON.

    nvml.py state                   of every GPU, by nvidia-ml-py where that can be imported, else by ctypes
    nvml.py watch GPU SECONDS       power, utilisation, clocks and energy ten times a second
    nvml.py resident                what initialising NVML adds to a process's resident memory
    nvml.py probe GPU PID...        how this driver answers calls whose details are not documented (probe.py)

A process of its own, because a call may hang, and a hung one cannot be ended.
"""
import ctypes
import json
import sys
import time

try:
    import pynvml
except ImportError:
    pynvml = None

NAME_SIZE = 96
PERIOD_S = 0.1
UINT, ULONG = ctypes.c_uint, ctypes.c_ulonglong


class Memory(ctypes.Structure):
    """nvmlMemory_v2_t"""
    _fields_ = [("version", UINT), ("total", ULONG), ("reserved", ULONG), ("free", ULONG), ("used", ULONG)]
    VERSION = 40 | 2 << 24


class Pci(ctypes.Structure):
    """nvmlPciInfo_t"""
    _fields_ = [("busIdLegacy", ctypes.c_char * 16), ("numbers", UINT * 5), ("busId", ctypes.c_char * 32)]


class Utilization(ctypes.Structure):
    """nvmlUtilization_t"""
    _fields_ = [("gpu", UINT), ("memory", UINT)]


class Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v3 takes, too"""
    _fields_ = [("pid", UINT), ("usedGpuMemory", ULONG), ("gi", UINT), ("ci", UINT)]


class Refused(Exception):
    """NVML gave another code than 0."""

    def __init__(self, name, code):
        super().__init__(f"{name} gives NVML error {code}")
        self.code = code


# name: (symbol, type of the result); of two numbers a list. The names, arguments and results are those of nvidia-ml-py.
GETTERS = {
    "nvmlDeviceGetPowerUsage": (None, UINT),
    "nvmlDeviceGetEnforcedPowerLimit": (None, UINT),
    "nvmlDeviceGetTemperature": (None, UINT),
    "nvmlDeviceGetClockInfo": (None, UINT),
    "nvmlDeviceGetMaxClockInfo": (None, UINT),
    "nvmlDeviceGetApplicationsClock": (None, UINT),
    "nvmlDeviceGetCurrentClocksThrottleReasons": (None, ULONG),
    "nvmlDeviceGetTotalEnergyConsumption": (None, ULONG),
    "nvmlDeviceGetPersistenceMode": (None, UINT),
    "nvmlDeviceGetAccountingMode": (None, UINT),
    "nvmlDeviceGetComputeMode": (None, UINT),
    "nvmlDeviceGetPerformanceState": (None, UINT),
    "nvmlDeviceGetCurrPcieLinkGeneration": (None, UINT),
    "nvmlDeviceGetCurrPcieLinkWidth": (None, UINT),
    "nvmlDeviceGetTotalEccErrors": (None, ULONG),
    "nvmlDeviceGetEccMode": (None, (UINT, UINT)),
    "nvmlDeviceGetMigMode": (None, (UINT, UINT)),
    "nvmlDeviceGetUtilizationRates": (None, Utilization),
    "nvmlDeviceGetPciInfo": ("nvmlDeviceGetPciInfo_v3", Pci),
    "nvmlDeviceGetCount": ("nvmlDeviceGetCount_v2", UINT),
    "nvmlDeviceGetHandleByIndex": ("nvmlDeviceGetHandleByIndex_v2", ctypes.c_void_p),
}
TEXTS = ("nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetVbiosVersion", "nvmlSystemGetDriverVersion")


def plain(arguments):
    return [a if isinstance(a, ctypes.c_void_p) else ctypes.c_uint(a) for a in arguments]


class Direct:
    """The part of nvidia-ml-py that is used here, by ctypes."""
    nvmlMemory_v2 = Memory.VERSION
    __version__ = None

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")

    def call(self, symbol, *arguments):
        function = getattr(self.library, symbol, None)
        code = function(*arguments) if function else 13
        if code:
            raise Refused(symbol, code)

    def __getattr__(self, name):
        if name in TEXTS:
            return lambda *arguments: self.text(name, arguments)
        if name not in GETTERS:
            raise AttributeError(name)
        symbol, kind = GETTERS[name]
        return lambda *arguments: self.get(symbol or name, kind, arguments)

    def get(self, symbol, kind, arguments):
        results = [k() for k in kind] if isinstance(kind, tuple) else [kind()]
        self.call(symbol, *plain(arguments), *map(ctypes.byref, results))
        if isinstance(kind, tuple):
            return [r.value for r in results]
        if kind is ctypes.c_void_p or issubclass(kind, ctypes.Structure):
            return results[0]
        return results[0].value

    def text(self, symbol, arguments):
        text = ctypes.create_string_buffer(NAME_SIZE)
        self.call(symbol, *plain(arguments), text, ctypes.c_uint(NAME_SIZE))
        return text.value.decode(errors="replace")

    def nvmlInit(self): # pylint: disable=invalid-name
        self.call("nvmlInit_v2")

    def nvmlDeviceGetMemoryInfo(self, device, version): # pylint: disable=invalid-name
        memory = Memory(version=version)
        self.call("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(memory))
        return memory

    def nvmlDeviceGetComputeRunningProcesses(self, device): # pylint: disable=invalid-name
        processes, count = (Process * 1024)(), ctypes.c_uint(1024)
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), processes)
        return processes[:count.value]


# What is asked for one GPU: key: (function, further arguments, factor). Clocks in MHz, as nvidia-smi has them.
NUMBERS = {
    "power_watts": ("nvmlDeviceGetPowerUsage", (), 1e-3),
    "power_limit_watts": ("nvmlDeviceGetEnforcedPowerLimit", (), 1e-3),
    "temperature_celsius": ("nvmlDeviceGetTemperature", (0,), 1),
    "sm_clock_mhz": ("nvmlDeviceGetClockInfo", (1,), 1),
    "memory_clock_mhz": ("nvmlDeviceGetClockInfo", (2,), 1),
    "max_sm_clock_mhz": ("nvmlDeviceGetMaxClockInfo", (1,), 1),
    "application_sm_clock_mhz": ("nvmlDeviceGetApplicationsClock", (1,), 1),
    "clocks_event_reasons": ("nvmlDeviceGetCurrentClocksThrottleReasons", (), 1),
    "energy_joules": ("nvmlDeviceGetTotalEnergyConsumption", (), 1e-3),
    "persistence_mode": ("nvmlDeviceGetPersistenceMode", (), 1),
    "accounting_mode": ("nvmlDeviceGetAccountingMode", (), 1),
    "compute_mode": ("nvmlDeviceGetComputeMode", (), 1),
    "performance_state": ("nvmlDeviceGetPerformanceState", (), 1),
    "pcie_generation": ("nvmlDeviceGetCurrPcieLinkGeneration", (), 1),
    "pcie_width": ("nvmlDeviceGetCurrPcieLinkWidth", (), 1),
    "ecc_corrected": ("nvmlDeviceGetTotalEccErrors", (0, 0), 1),
    "ecc_uncorrected": ("nvmlDeviceGetTotalEccErrors", (1, 0), 1),
}
# Functions that give more than a number, and what is taken of it.
OTHERS = {
    "name": ("nvmlDeviceGetName", lambda v: v),
    "uuid": ("nvmlDeviceGetUUID", lambda v: v),
    "vbios": ("nvmlDeviceGetVbiosVersion", lambda v: v),
    "pci_bus_id": ("nvmlDeviceGetPciInfo", lambda v: text_of(v.busId)),
    "ecc_mode": ("nvmlDeviceGetEccMode", lambda v: v[0]),
    "mig_mode": ("nvmlDeviceGetMigMode", lambda v: v[0]),
    "utilization_ratio": ("nvmlDeviceGetUtilizationRates", lambda v: v.gpu / 100),
    "memory_utilization_ratio": ("nvmlDeviceGetUtilizationRates", lambda v: v.memory / 100),
    "processes": ("nvmlDeviceGetComputeRunningProcesses", lambda v: {p.pid: memory_of(p.usedGpuMemory) for p in v}),
}


def text_of(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def memory_of(value):
    return None if value is None or value >= 1 << 62 else value


def answer(function, *arguments):
    """What it gives, or None where the driver refuses."""
    try:
        return function(*arguments)
    except Exception: # pylint: disable=broad-except
        return None     # Refused, or nvidia-ml-py's own kinds of error; a function that it lacks


def number(nvml, device, key):
    name, arguments, factor = NUMBERS[key]
    value = answer(lambda: getattr(nvml, name)(device, *arguments))
    return None if value is None else value * factor


def state_of(nvml, device):
    state = {key: number(nvml, device, key) for key in NUMBERS}
    for key, (name, take) in OTHERS.items():
        state[key] = answer(lambda name=name, take=take: take(getattr(nvml, name)(device)))
    state = {key: text_of(value) for key, value in state.items()}
    memory = answer(lambda: nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2))
    for part in ("total", "used", "free", "reserved"):
        state[f"memory_{part}_bytes"] = getattr(memory, part) if memory else None
    return state


def opened():
    """nvidia-ml-py, or ours; initialised. Its name, too."""
    nvml = pynvml or Direct()
    nvml.nvmlInit()
    version = getattr(nvml, "__version__", None)
    return nvml, "NVML by ctypes" if isinstance(nvml, Direct) else f"nvidia-ml-py {version or ''}".strip()


def state():
    nvml, by = opened()
    devices = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    return {"by": by, "driver_version": text_of(nvml.nvmlSystemGetDriverVersion()),
            "gpus": [state_of(nvml, device) for device in devices]}


def resident_kib():
    with open("/proc/self/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def resident():
    before = resident_kib()
    Direct().nvmlInit()
    return {"mib": (resident_kib() - before) / 1024}


def watch(gpu, seconds):
    nvml, by = opened()
    device = nvml.nvmlDeviceGetHandleByIndex(gpu)
    begin, seen = time.monotonic(), []
    while time.monotonic() < begin + seconds:
        at = time.monotonic() - begin
        values = {key: number(nvml, device, key) for key in ("power_watts", "sm_clock_mhz", "energy_joules")}
        rates = answer(nvml.nvmlDeviceGetUtilizationRates, device)
        seen.append({"at": at, "utilization_ratio": rates.gpu / 100 if rates else None, **values})
        time.sleep(PERIOD_S)
    return {"by": by, "seen": seen}


def main():
    words = sys.argv[1:]
    if words == ["state"]:
        found = state()
    elif words == ["resident"]:
        found = resident()
    elif len(words) == 3 and words[0] == "watch":
        found = watch(int(words[1]), float(words[2]))
    elif len(words) >= 2 and words[0] == "probe":
        import probe # pylint: disable=import-outside-toplevel
        found = probe.everything(Direct(), *map(int, words[1:]))
    else:
        sys.exit(__doc__)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
