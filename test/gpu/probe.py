# SPDX-License-Identifier: Apache-2.0
"""How the installed driver answers calls whose details no document states: what gpusonde relies on, found out without it."""
import ctypes
import statistics
import struct
import time

from nvml import Refused, ULONG, UINT

TIMEOUT, XID_EVENT = 10, 8                  # nvmlReturn_t, nvmlEventType
POWER_SAMPLES, UTILIZATION_SAMPLES = 0, 1   # nvmlSamplingType_t
SAMPLES, LIST_BYTES = 4096, 1 << 16
STRIDES = (24, 32)                          # nvmlProcessInfo_v2_t, and what some drivers of 2023 wrote
PCIE_TX, PCIE_RX = 197, 198                 # NVML_FI_DEV_PCIE_COUNT_TX_BYTES, _RX_BYTES
EVENT_WAITS = 20
WIDE = (2, 3)                               # nvmlValueType_t: unsigned long, unsigned long long


class Sample(ctypes.Structure):
    """nvmlSample_t"""
    _fields_ = [("time_us", ULONG), ("value", ULONG)]


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t"""
    _fields_ = [("id", UINT), ("scope", UINT), ("time_us", ctypes.c_longlong), ("latency_us", ctypes.c_longlong),
                ("kind", UINT), ("result", UINT), ("value", ULONG)]


class ProcessesUtilization(ctypes.Structure):
    """nvmlProcessesUtilizationInfo_v1_t"""
    _fields_ = [("version", UINT), ("count", UINT), ("last_us", ULONG), ("processes", ctypes.c_void_p)]
    VERSION = 24 | 1 << 24


def events(nvml, device):
    """nvmlEventSetWait_v2 with a timeout of 0, as gpusonde's helper calls it once a tick."""
    events_set, data = ctypes.c_void_p(), (ctypes.c_ubyte * 64)()
    nvml.call("nvmlEventSetCreate", ctypes.byref(events_set))
    try:
        nvml.call("nvmlDeviceRegisterEvents", device, ULONG(XID_EVENT), events_set)
        took, codes = [], set()
        for _ in range(EVENT_WAITS):
            begin = time.monotonic()
            codes.add(nvml.library.nvmlEventSetWait_v2(events_set, data, UINT(0)))
            took.append(time.monotonic() - begin)
        return {"codes": sorted(codes), "longest_ms": max(took) * 1e3}
    finally:
        nvml.library.nvmlEventSetFree(events_set)


def buffered(nvml, device, kind):
    """How deep the driver's buffer of samples is, how far they are apart, and what their time stamps are."""
    value_kind, count, samples = UINT(), UINT(SAMPLES), (Sample * SAMPLES)()
    nvml.call("nvmlDeviceGetSamples", device, UINT(kind), ULONG(0), ctypes.byref(value_kind), ctypes.byref(count), samples)
    now_us = time.time() * 1e6
    stamps = [s.time_us for s in samples[:count.value] if s.time_us]
    gaps = [b - a for a, b in zip(stamps, stamps[1:])]
    return {"count": len(stamps), "interval_ms": statistics.median(gaps) / 1e3 if gaps else None,
            "greatest_interval_ms": max(gaps) / 1e3 if gaps else None, "in_order": all(g > 0 for g in gaps),
            "span_s": (stamps[-1] - stamps[0]) / 1e6 if gaps else None,
            "newest_age_s": (now_us - stamps[-1]) / 1e6 if stamps else None}


def strides(nvml, device, pids):
    """The distances of records at which all these processes are found in the list that _v3 writes; 24 is documented."""
    room = (ctypes.c_ubyte * LIST_BYTES)()
    count = UINT(LIST_BYTES // max(STRIDES))
    nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), room)
    content = bytes(room)
    found = {s: {struct.unpack_from("<I", content, i * s)[0] for i in range(count.value)} for s in STRIDES}
    return {"count": count.value, "strides": [s for s in STRIDES if pids and found[s].issuperset(pids)]}


def process_utilization(nvml, device):
    """The older call beside the newer one: how many processes each knows of."""
    count, room = UINT(SAMPLES), (ctypes.c_ubyte * LIST_BYTES * 4)()
    old = nvml.library.nvmlDeviceGetProcessUtilization(device, room, ctypes.byref(count), ULONG(0))
    pids = {struct.unpack_from("<I", bytes(room), 32 * i)[0] for i in range(count.value)} if not old else set()
    found = {"old_code": old, "old": sorted(pids)}
    function = getattr(nvml.library, "nvmlDeviceGetProcessesUtilizationInfo", None)
    if not function:
        return {**found, "new_code": 13, "new": []}
    request = ProcessesUtilization(ProcessesUtilization.VERSION, LIST_BYTES // 40, 0, ctypes.addressof(room))
    new = function(device, ctypes.byref(request))
    pids = {struct.unpack_from("<I", bytes(room), 40 * i + 8)[0] for i in range(request.count)} if not new else set()
    return {**found, "new_code": new, "new": sorted(pids)}


def pcie_bytes(nvml, device):
    """{field: value}, where the driver has it."""
    values = (FieldValue * 2)(FieldValue(id=PCIE_TX), FieldValue(id=PCIE_RX))
    nvml.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(2), values)
    return {str(v.id): v.value if v.kind in WIDE else v.value & 0xffffffff for v in values if v.result == 0}


def everything(nvml, gpu, *pids):
    nvml.nvmlInit()
    device = nvml.nvmlDeviceGetHandleByIndex(gpu)
    found = {}
    for name, function in {
        "events": lambda: events(nvml, device),
        "utilization_samples": lambda: buffered(nvml, device, UTILIZATION_SAMPLES),
        "power_samples": lambda: buffered(nvml, device, POWER_SAMPLES),
        "strides": lambda: strides(nvml, device, pids),
        "process_utilization": lambda: process_utilization(nvml, device),
        "pcie_bytes": lambda: pcie_bytes(nvml, device),
    }.items():
        try:
            found[name] = function()
        except (Refused, AttributeError) as why:
            found[name] = {"refused": str(why)}
    return found
