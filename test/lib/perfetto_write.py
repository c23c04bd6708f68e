# SPDX-License-Identifier: Apache-2.0
"""Writes timelines with known truth: packets of Perfetto's format, plain, as programs other than gpusonde write them."""
import struct

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


class Writer:
    """Times are CLOCK_MONOTONIC's, in nanoseconds."""

    def __init__(self, real_offset=0):
        clocks = b"".join(data(1, number(1, clock) + number(2, at)) for clock, at in ((3, 10**9), (1, 10**9 + real_offset)))
        self.out = bytearray()
        self.tracks = self.stacks = 0
        self.packet(data(6, clocks + number(2, 3)))

    def packet(self, content):
        self.out += data(1, content)

    def track(self, content, parent=0):
        self.tracks += 1
        self.packet(data(60, number(1, self.tracks) + (number(5, parent) if parent else b"") + content))
        return self.tracks

    def process(self, pid, name):
        return self.track(data(3, number(1, pid) + data(6, name)))

    def thread(self, process, pid, tid):
        return self.track(data(4, number(1, pid) + number(2, tid) + data(5, "thread")), process)

    def group(self, name, parent=0):
        return self.track(data(2, name), parent)

    def counter(self, name, parent):
        return self.track(data(2, name) + data(8, b""), parent)

    def event(self, track, kind, time, content=b""):
        self.packet(number(8, time) + number(58, 3) + data(11, number(9, kind) + number(11, track) + content))

    def stack(self, *frames):
        """(function, file, line), the innermost first."""
        self.stacks += 1
        texts = frame_entries = b""
        for i, (function, file, line) in enumerate(frames):
            iid = self.stacks * 1000 + i
            texts += data(5, number(1, iid) + data(2, function)) + data(18, number(1, iid) + data(2, file))
            frame_entries += data(6, number(1, iid) + number(2, iid) + number(5, iid) + number(6, line))
        order = b"".join(number(2, self.stacks * 1000 + i) for i in reversed(range(len(frames))))
        self.packet(data(12, texts + frame_entries + data(7, number(1, self.stacks) + order)))
        return self.stacks

    def slice(self, track, category, name, begin, end, stack=0, **args):
        content = data(22, category) + data(23, name) + (number(56, stack) if stack else b"")
        for key, value in args.items():
            content += data(4, data(10, key) + (data(6, value) if isinstance(value, str) else number(3, value)))
        self.event(track, BEGIN, begin, content)
        self.event(track, END, end)

    def instant(self, track, category, name, time):
        self.event(track, INSTANT, time, data(22, category) + data(23, name))

    def value(self, track, time, value):
        self.event(track, COUNTER, time, varint(44 << 3 | 1) + struct.pack("<d", value))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.out)
