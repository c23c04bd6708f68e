# SPDX-License-Identifier: Apache-2.0
"""Breakpoints as they lie in a process's memory, and a count of a function's calls that is not gpusonde's."""
import contextlib
import ctypes
import os
import struct
import subprocess

from lib import e2e

import real

BREAKPOINT = b"\xcc"    # x86-64
PERF_EVENT_OPEN = 298   # the number of the system call on x86-64
PERF_ATTR_SIZE = 128
PT_LOAD = 1


def symbols(path):
    """{function: address}, of both tables; the dynamic one's names may carry a version."""
    found = {}
    for table in ([], ["-D"]):
        done = subprocess.run(["nm", "--defined-only", *table, path], capture_output=True, text=True, errors="replace", check=False)
        for line in done.stdout.splitlines():
            address, _, name = line.partition(" ")
            found[name[2:].split("@")[0]] = int(address, 16)
    assert found, f"nm finds no symbol in {path}"
    return found


def segments(path):
    """[(offset in the file, address, bytes)] of what is loaded."""
    with open(path, "rb") as f:
        head = f.read(64)
        at, size, n = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        f.seek(at)
        table = f.read(size * n)
    found = [struct.unpack_from("<IIQQQQQQ", table, i * size) for i in range(n)]
    return [(offset, address, length) for kind, _, offset, address, _, length, _, _ in found if kind == PT_LOAD]


def file_offset(path, address):
    return next(address - start + offset for offset, start, length in segments(path) if start <= address < start + length)


class Sites:
    """Where gpusonde says that it puts its probes in a library, as offsets in the file; and what lies there in a process."""

    def __init__(self, path):
        addresses = symbols(path)
        self.path, self.name = os.path.realpath(path), os.path.basename(path)
        self.offsets = sorted(file_offset(path, addresses[s["symbol"]] + s["offset"]) for s in real.sites(path) if s["chosen"])

    def places(self, pid):
        """Addresses in the process; none where it does not map the library."""
        found = []
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
            for line in f:
                words = line.split(None, 5)
                if "x" not in words[1] or len(words) < 6 or words[5].rstrip("\n") != self.path:
                    continue
                start, end = (int(word, 16) for word in words[0].split("-"))
                offset = int(words[2], 16)
                found += [start + o - offset for o in self.offsets if offset <= o < offset + end - start]
        return found

    def breakpoints(self, pid):
        """(how many of its sites are breakpoints now, how many it maps)."""
        places = self.places(pid)
        with open(f"/proc/{pid}/mem", "rb") as memory:
            return sum(os.pread(memory.fileno(), 1, place) == BREAKPOINT for place in places), len(places)

    def all_there(self, pid):
        return self.breakpoints(pid) == (len(self.offsets), len(self.offsets))

    def all_gone(self, pid):
        return self.breakpoints(pid) == (0, len(self.offsets))


def attribute(path, offset):
    """A perf_event_attr (linux/perf_event.h) of a uprobe that only counts."""
    with open("/sys/bus/event_source/devices/uprobe/type", encoding="ascii") as f:
        kind = int(f.read())
    name = ctypes.create_string_buffer(os.fsencode(path))
    attr = bytearray(PERF_ATTR_SIZE)
    struct.pack_into("<II", attr, 0, kind, PERF_ATTR_SIZE)
    struct.pack_into("<QQ", attr, 56, ctypes.addressof(name), offset)
    return name, (ctypes.c_char * PERF_ATTR_SIZE).from_buffer(attr)


@contextlib.contextmanager
def counted(paths, symbol):
    """Counts calls of a function of these files, by whomever, while the block lasts: a function that tells how many so far."""
    libc, fds = ctypes.CDLL(None, use_errno=True), []
    try:
        for path in paths:
            name, attr = attribute(path, file_offset(path, symbols(path)[symbol]))
            for cpu in sorted(os.sched_getaffinity(0)):
                fd = libc.syscall(PERF_EVENT_OPEN, attr, -1, cpu, -1, 8) # closed in what is executed
                if fd < 0:
                    raise e2e.Skip(f"perf_event_open refuses to count {symbol} of {name.value}: {os.strerror(ctypes.get_errno())}")
                fds.append(fd)
        yield lambda: sum(struct.unpack("<Q", os.read(fd, 8))[0] for fd in fds)
    finally:
        for fd in fds:
            os.close(fd)
