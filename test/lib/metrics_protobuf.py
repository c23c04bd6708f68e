# SPDX-License-Identifier: Apache-2.0
"""Prometheus' protobuf of metrics as what its text says: by the numbers of fields of client_model, nothing of ours."""
import re
import struct

from lib.protobuf import fields, varint

TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
ACCEPT = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
TYPES = {0: "counter", 1: "gauge", 3: "untyped", 4: "histogram"}
VALUES = {2: "gauge", 3: "counter", 5: "untyped", 7: "histogram"}


def number(data):
    return struct.unpack("<d", data)[0]


def time_of(message):
    found = dict(fields(message))
    return found.get(1, 0) + found.get(2, 0) / 1e9


def samples_of(name, metric):
    """(name, labels, value) of each sample of the text, and when the series began or None."""
    pairs = {p[1].decode(): p[2].decode() for p in (dict(fields(v)) for n, v in metric if n == 1)}
    ((kind, value),) = [(VALUES[n], fields(v)) for n, v in metric if n in VALUES]
    labels, one = frozenset(pairs.items()), dict(value)
    if kind != "histogram":
        return kind, [(name, labels, number(one[1]))], time_of(one[3]) if 3 in one else None
    found = []
    for bucket in (dict(fields(v)) for n, v in value if n == 3):
        found.append((f"{name}_bucket", labels | {("le", number(bucket[2]))}, bucket.get(1, 0)))
    found.append((f"{name}_bucket", labels | {("le", float("inf"))}, one.get(1, 0)))
    return kind, found + [(f"{name}_sum", labels, number(one[2])), (f"{name}_count", labels, one.get(1, 0))], time_of(one[15]) if 15 in one else None


def signed(value):
    return value >> 1 ^ -(value & 1)


def native_of(metric):
    """(labels, native histogram) of a metric: {"schema", "zero_threshold", "zero_count", "count", "sum", "buckets": {index: count}}; None: it is none."""
    pairs = {p[1].decode(): p[2].decode() for p in (dict(fields(v)) for n, v in metric if n == 1)}
    ((_, value),) = [(n, fields(v)) for n, v in metric if n in VALUES]
    one = dict(value)
    if 5 not in one:
        return frozenset(pairs.items()), None
    deltas, buckets, at, count = [signed(v) for n, v in value if n == 13], {}, 0, 0
    for span in (dict(fields(v)) for n, v in value if n == 12):
        at += signed(span.get(1, 0))
        for _ in range(span.get(2, 0)):
            count += deltas.pop(0)
            buckets[at], at = count, at + 1
    assert not deltas, "more deltas than the spans have buckets"
    return frozenset(pairs.items()), {"schema": signed(one[5]), "zero_threshold": number(one[6]), "zero_count": one.get(7, 0), "count": one.get(1, 0), "sum": number(one[2]),
                                      "buckets": buckets}


def natives(data):
    """{(name, labels): native histogram} of all histograms of a page; of those without one None."""
    found, at = {}, 0
    while at < len(data):
        n, at = varint(data, at)
        message, at = fields(data[at:at + n]), at + n
        one = dict(message)
        if TYPES[one[3]] == "histogram":
            found.update({(one[1].decode(), labels): native for labels, native in (native_of(fields(v)) for number_, v in message if number_ == 4)})
    return found


def within(native, bound):
    """How many values of a native histogram are up to @bound, one of its own."""
    assert bound >= native["zero_threshold"], bound
    base = 2 ** 2 ** -native["schema"]
    return native["zero_count"] + sum(count for i, count in native["buckets"].items() if base ** i <= bound)


def families(data):
    """[(name, help, type, unit, {(sample, labels): value}, {labels: when it began})]"""
    found, at = [], 0
    while at < len(data):
        n, at = varint(data, at)
        message, at = fields(data[at:at + n]), at + n
        one = dict(message)
        name, kind = one[1].decode(), TYPES[one[3]]
        values, began = {}, {}
        for metric in (fields(v) for number_, v in message if number_ == 4):
            of, samples, created = samples_of(name, metric)
            assert of == kind, (name, of, kind)
            for sample, labels, value in samples:
                assert (sample, labels) not in values, f"twice: {sample} {labels}"
                values[sample, labels] = value
            if created is not None:
                began[samples[0][1]] = created
        found.append((name, one[2].decode(), kind, one.get(5, b"").decode(), values, began))
    return found


def text_samples(page):
    """{(sample, labels): value} of a page of text."""
    found = {}
    for line in page.split("\n"):
        if not line or line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line).groups()
        pairs = {k: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], v) for k, v in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")}
        if "le" in pairs and name.endswith("_bucket"):
            pairs["le"] = float(pairs["le"])
        found[name, frozenset(pairs.items())] = float(value)
    return found
