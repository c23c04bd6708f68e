# SPDX-License-Identifier: Apache-2.0
"""Reads timelines in Perfetto's format, written from Perfetto's .proto files and what its documentation says of sequences, interned data and tracks.

read(bytes) -> Timeline, or an AssertionError that names what a viewer would stumble over: a slice that is not closed or is closed before it
begins, an interned number that nothing defines, a track without a descriptor, a field that is not known.
"""
import collections
import struct
import zlib

from lib.protobuf import BYTES, fields, varint

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2
MONOTONIC = 3

Slice = collections.namedtuple("Slice", "track name category begin end args flows stack depth")
Instant = collections.namedtuple("Instant", "track name category time args stack")
Frame = collections.namedtuple("Frame", "function file line kind") # a stack is a tuple of them, the outermost first
Value = collections.namedtuple("Value", "track time value")
Track = collections.namedtuple("Track", "uuid parent kind name pid tid")


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


class Parsed(dict):
    """Bytes -> what @parse makes of them, once: most of what a timeline has is in it thousands of times."""

    def __init__(self, parse):
        super().__init__()
        self.parse = parse

    def __missing__(self, data):
        found = self[data] = self.parse(data)
        return found


def inflated(data):
    """The blocks of a file, each as a trace of its own."""
    for number, packet in fields(data):
        assert number == 1, f"field {number} of a trace"
        yield zlib.decompress(message(packet)[50][0])


def packets(data, whole):
    """Of a file, deflated ones too. Not @whole: the last one may have been cut off."""
    at = 0
    while at < len(data):
        try:
            tag, after = varint(data, at)
            n, after = varint(data, after)
        except IndexError:
            tag, n, after = 10, len(data), at
        assert tag == 1 << 3 | BYTES, f"field {tag >> 3} of a trace"
        if after + n > len(data):
            assert not whole, "the last packet is cut off"
            return
        packet = message(data[after:after + n])
        at = after + n
        if 50 not in packet:
            yield packet
            continue
        assert set(packet) == {50}, f"fields beside deflated packets: {sorted(packet)}"
        assert n < 512 << 10, f"{n} bytes of deflated packets"
        for number, inner in fields(zlib.decompress(packet[50][0])):
            assert number == 1, f"field {number} of deflated packets"
            yield message(inner)


class Timeline:
    def __init__(self):
        self.tracks, self.slices, self.instants, self.values, self.clocks = {}, [], [], [], []

    def on(self, **wanted):
        """Slices whose track has these members."""
        return [s for s in self.slices if all(getattr(s.track, key) == value for key, value in wanted.items())]

    def named(self, name):
        return [s for s in self.slices if s.name == name]


def text(value):
    return value.decode("utf-8")


def descriptor(data):
    found = message(data)
    assert set(found) <= {1, 2, 3, 4, 5, 8}, sorted(found)
    uuid, parent, name = found[1][0], found[5][0] if found[5] else None, text(found[2][0]) if found[2] else ""
    if found[3]:
        process = message(found[3][0])
        return Track(uuid, parent, "process", text(process[6][0]), process[1][0], None)
    if found[4]:
        thread = message(found[4][0])
        return Track(uuid, parent, "thread", text(thread[5][0]), thread[1][0], thread[2][0])
    return Track(uuid, parent, "counter" if found[8] else "plain", name, None, None)


def argument(data, keys, texts):
    found = message(data)
    (kind,) = set(found) - {1}
    value = found[kind][0]
    if kind == 17:
        value = texts[value]
    elif kind == 4:
        value -= (value >> 63) << 64
    else:
        assert kind in (3, 7), f"an argument's field {kind}"
    return keys[found[1][0]], value


class Reader:
    def __init__(self):
        self.timeline, self.valid, self.points, self.clock = Timeline(), False, [], None
        self.incremental = {}
        self.events = Parsed(message)
        self.forget()

    def forget(self):
        """What numbers stand for, and what was read by that."""
        self.interned = {1: {}, 2: {}, 3: {}, 5: {}, 6: {}, 7: {}, 18: {}, 29: {}}
        self.arguments = Parsed(lambda data: argument(data, self.interned[3], self.interned[29]))

    def frame(self, entry):
        assert set(entry) <= {1, 2, 5, 6, 7}, f"fields of a frame: {sorted(entry)}"
        return Frame(self.interned[5][entry[2][0]], self.interned[18][entry[5][0]] if entry[5] else "", entry[6][0] if entry[6] else 0, entry[7][0])

    def intern(self, data):
        for number, value in fields(data):
            entry = message(value)
            if number in (6, 7):
                what = self.frame(entry) if number == 6 else tuple(self.interned[6][i] for i in entry[2])
                assert self.interned[number].setdefault(entry[1][0], what) == what, f"{entry[1][0]} is {what} and {self.interned[number][entry[1][0]]}"
                continue
            iid, name = entry[1][0], text(entry[2][0])
            assert self.interned[number].setdefault(iid, name) == name, f"{iid} is {name} and {self.interned[number][iid]}"

    def packet(self, packet):
        assert set(packet) <= {6, 8, 10, 11, 12, 13, 58, 59, 60}, f"fields of a packet: {sorted(packet)}"
        assert packet[10] == [1], packet[10]
        flags = packet[13][0] if packet[13] else 0
        if flags & CLEARED:
            self.forget()
            self.valid = True
            clocks = [message(c) for c in message(packet[6][0])[1]]
            self.timeline.clocks.append({c[1][0]: c[2][0] for c in clocks})
            self.incremental = {c[1][0]: c[2][0] for c in clocks if c[3] == [1]}
            (self.clock,) = message(packet[59][0])[58]
        if flags & NEEDS_STATE:
            assert self.valid, "a packet that needs what came before, and nothing did"
        for data in packet[12]:
            self.intern(data)
        for data in packet[60]:
            track = descriptor(data)
            assert self.timeline.tracks.setdefault(track.uuid, track) == track, f"{track} and {self.timeline.tracks[track.uuid]}"
            assert track.parent is None or track.parent in self.timeline.tracks, f"{track} before its parent"
        for data in packet[11]:
            self.event(self.time(packet), self.events[data])

    def time(self, packet):
        """CLOCK_MONOTONIC; times of incremental clocks are differences to their previous one."""
        clock, time = packet[58][0] if packet[58] else self.clock, packet[8][0]
        if clock in self.incremental:
            self.incremental[clock] += time
            return self.incremental[clock]
        assert clock == MONOTONIC, clock
        return time

    def event(self, time, event):
        assert set(event) <= {3, 4, 9, 10, 11, 44, 47, 56}, f"fields of an event: {sorted(event)}"
        track, kind = self.timeline.tracks[event[11][0]], event[9][0]
        name = self.interned[2][event[10][0]] if event[10] else None
        category = self.interned[1][event[3][0]] if event[3] else None
        args = dict(self.arguments[data] for data in event[4])
        stack = self.interned[7][event[56][0]] if event[56] else ()
        flows = [struct.unpack("<Q", f)[0] for f in event[47]]
        assert (track.kind == "counter") == (kind == COUNTER), f"an event of type {kind} on {track}"
        if kind == COUNTER:
            self.timeline.values.append(Value(track, time, struct.unpack("<d", event[44][0])[0]))
        elif kind == INSTANT:
            self.timeline.instants.append(Instant(track, name, category, time, args, stack))
        else:
            self.points.append((time, kind, track, name, category, args, flows, stack))

    def close(self):
        """As a viewer does: by time, and what has the same time in the order of the file."""
        open_ = collections.defaultdict(list)
        for time, kind, track, *rest in sorted(self.points, key=lambda p: p[0]):
            if kind == BEGIN:
                open_[track.uuid].append((time, *rest))
                continue
            assert kind == END, f"an event of type {kind}"
            assert open_[track.uuid], f"a slice of {track} ends at {time} and never began"
            begin, name, category, args, flows, stack = open_[track.uuid].pop()
            self.timeline.slices.append(Slice(track, name, category, begin, time, args, flows, stack, len(open_[track.uuid])))
        left = {uuid: stack for uuid, stack in open_.items() if stack}
        assert not left, f"slices without an end: {left}"
        return self.timeline


def read(data, whole=True):
    reader = Reader()
    for packet in packets(data, whole):
        reader.packet(packet)
    return reader.close()
