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
