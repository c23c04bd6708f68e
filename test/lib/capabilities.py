# SPDX-License-Identifier: Apache-2.0
"""Capabilities by name, and which ones this machine's kernel and settings ask for: what must be said to be missing follows from that."""
import ctypes
import errno
import functools
import os
import platform
import re
import struct

USER = 65534
OTHER = 65533
NUMBERS = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYSLOG": 34, "PERFMON": 38, "BPF": 39,
           "CHECKPOINT_RESTORE": 40}
TRACING = ("BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH")
ALL = (*TRACING, "SYSLOG")
LOST = {
    "BPF": "CUDA calls are not traced",
    "PERFMON": "CUDA calls are not traced",
    "SYS_PTRACE": "of other users' programs only calls of libraries outside of containers",
    "DAC_READ_SEARCH": "libraries in folders that are closed to others",
    "SYSLOG": "XID errors come from the driver's events alone",
    "CHECKPOINT_RESTORE": "libraries that were deleted or replaced",
}


def bits(names):
    return sum(1 << NUMBERS[name] for name in names)


def missing(text):
    """The capabilities that it says are missing, each as often as it does."""
    return sorted(name for said in re.findall(r"((?:CAP_[A-Z_]+(?: and )?)+) (?:is|are) missing", text) for name in re.findall(r"CAP_([A-Z_]+)", said))


def missing_of_ours(text):
    """The same without what any program of this machine may ask for, other tests' for example: to read a library that was replaced."""
    return [name for name in missing(text) if name != "CHECKPOINT_RESTORE"]


# ---- this machine ----


@functools.cache
def has_multi():
    """Whether the kernel has uprobe_multi: not by its version, since vendors take it into older ones."""
    try:
        with open("/sys/kernel/btf/vmlinux", "rb") as f:
            return b"\0BPF_TRACE_UPROBE_MULTI\0" in f.read()
    except OSError:
        return False


def tracing_needs():
    """Without these nothing is traced."""
    return ["BPF", "PERFMON"] if has_multi() else ["DAC_OVERRIDE", "SYS_ADMIN"]


def enough():
    """With these all is traced, but for what others ask for: records_miss(), a library that was replaced."""
    return (*tracing_needs(), "SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG")


def perf_level():
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
            return int(f.read())
    except OSError:
        return 0


def in_child(names, uid, attempt):
    """What @attempt returns, a number of errors or 0, in a child of ours that has exactly these capabilities and is that user."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            # PR_SET_KEEPCAPS of prctl(2); the rest are struct __user_cap_header_struct and _data_struct of linux/capability.h, version 3.
            libc.prctl(8, 1, 0, 0, 0)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            low, high = bits(names) & 0xFFFFFFFF, bits(names) >> 32
            if libc.capset(struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", low, low, 0, high, high, 0)) == 0:
                status = attempt(libc)
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 0 <= status < 255, "an attempt with few capabilities could not be made"
    return status


def open_perf_event(libc):
    """PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY for all processes on one processor, as records of mappings are asked for."""
    attr = struct.pack("<IIQ", 1, 64, 9).ljust(64, b"\0")
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    return 0 if libc.syscall(number, attr, -1, sorted(os.sched_getaffinity(0))[0], -1, 8) >= 0 else ctypes.get_errno()


def open_kernel_log(_libc):
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
        return 0
    except OSError as why:
        return why.errno


@functools.cache
def records_miss():
    """What CAP_PERFMON is not enough for, where new programs are to be found at once: Debian's kernels ask for more from perf_event_paranoid 3 on."""
    if perf_level() < 3 or "PERFMON" not in tracing_needs():
        return []
    return ["SYS_ADMIN"] if in_child(("PERFMON",), USER, open_perf_event) else []


@functools.cache
def kernel_log_misses():
    """What a user without any is told of the kernel's log: nothing where it is open to all, or is not there."""
    return ["SYSLOG"] if in_child((), USER, open_kernel_log) in (errno.EPERM, errno.EACCES) else []


@functools.cache
def kernel_log_verdict():
    """What doctor says of it to who has what is named."""
    return "ok" if in_child(("SYSLOG",), USER, open_kernel_log) == 0 else "warning"
