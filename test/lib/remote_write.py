# SPDX-License-Identifier: Apache-2.0
"""A receiver of Prometheus' remote write, 1.0 and 2.0."""
import math
import re
import shutil
import subprocess
from collections import namedtuple

from lib.e2e import SOURCE, Skip
from lib.post_server import PostServer
from lib.protobuf import fields, packed, varint

Request = namedtuple("Request", "status headers samples metadata")  # samples: [(labels, value, ms, created ms)]
STALE = "stale"


def unsnappy(data):
    """What a block of Snappy's format holds."""
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                more = n - 59
                n = int.from_bytes(data[at:at + more], "little")
                at += more
            out += data[at:at + n + 1]
            at += n + 1
            continue
        if tag & 3 == 1:
            n, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            n, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + width], "little")
            at += width
        for _ in range(n):
            out.append(out[-offset])
    assert len(out) == size, (len(out), size)
    return bytes(out)


def one(body, number, default=None):
    return next((v for n, v in fields(body) if n == number), default)


def double(raw):
    """A stale marker is told by its bits alone."""
    import struct
    if raw is not None and struct.unpack("<Q", raw)[0] == 0x7ff0000000000002:
        return STALE
    return struct.unpack("<d", raw)[0] if raw is not None else 0.0


def decode_1(body):
    samples, metadata = [], {}
    for number, value in fields(body):
        if number == 1:
            labels = [(one(l, 1, b"").decode(), one(l, 2, b"").decode()) for n, l in fields(value) if n == 1]
            for n, sample in fields(value):
                if n == 2:
                    samples.append((labels, double(one(sample, 1)), one(sample, 2, 0), 0))
        elif number == 3:
            metadata[one(value, 2).decode()] = (one(value, 1, 0), one(value, 4, b"").decode(), one(value, 5, b"").decode())
    return samples, metadata


def decode_2(body):
    symbols = [v.decode() for n, v in fields(body) if n == 4]
    samples, metadata = [], {}
    for number, value in fields(body):
        if number != 5:
            continue
        refs = packed(one(value, 1) or b"")
        labels = [(symbols[a], symbols[b]) for a, b in zip(refs[::2], refs[1::2])]
        created = one(value, 6, 0)
        described = one(value, 5)
        if described is not None:
            metadata[dict(labels)["__name__"]] = (one(described, 1, 0), symbols[one(described, 3, 0)], symbols[one(described, 4, 0)])
        for n, sample in fields(value):
            if n == 2:
                assert one(sample, 3, 0) == created, "one start, said twice"
                samples.append((labels, double(one(sample, 1)), one(sample, 2, 0), created))
            if n == 3:
                samples.append((labels, double(one(sample, 3)), one(sample, 15, 0), created))
    return samples, metadata


def protoc(body, message):
    """The text of protoc, which knows the messages by their public names: no field that they do not have."""
    if not shutil.which("protoc"):
        raise Skip("protoc is missing: install protobuf-compiler")
    text = subprocess.run(["protoc", f"--decode=receiver.{message}", f"--proto_path={SOURCE}/test/lib", "remote_write.proto"],
                          input=body, capture_output=True, check=True).stdout.decode()
    assert not re.search(r"^\s*\d+(: | \{)", text, re.M), "a field that the public message does not have"
    return text


class Receiver(PostServer):
    """
    Takes requests. @statuses: what the next ones are answered with, in turn; then 204. @versions: that it knows. @headers, @body: of answers that refuse.
    """

    def __init__(self, *statuses, port=0, versions=(1, 2), headers=(), body=b""):
        self.bodies, self.versions, self.refusal = [], versions, (dict(headers), body)
        super().__init__(*statuses, port=port)

    def reply(self, path, headers, body):
        body = unsnappy(body)
        version = 2 if "write.v2.Request" in headers["Content-Type"] else 1
        samples, metadata = (decode_1 if version == 1 else decode_2)(body)
        status = self.next_status(204) if version in self.versions else 415
        self.bodies.append((version, body))
        self.requests.append(Request(status, dict(headers), samples, metadata))
        if status >= 300:
            return status, *self.refusal
        written = {"X-Prometheus-Remote-Write-Samples-Written": str(len(samples)), "X-Prometheus-Remote-Write-Histograms-Written": "0"}
        return status, written if version == 2 else {}, b""

    def taken(self):
        return [r for r in self.requests if r.status < 300]

    def pages(self):
        """{ms: {labels: value}} of what was taken: labels as a frozenset."""
        pages = {}
        for request in self.taken():
            for labels, value, ms, _ in request.samples:
                pages.setdefault(ms, {})[frozenset(labels)] = value
        return pages

    def check(self):
        """Of what was taken: labels sorted, none empty or twice; no sample twice, none before one that was taken already."""
        newest = {}
        for request in self.taken():
            for labels, _, ms, _ in request.samples:
                names = [name for name, _ in labels]
                assert names == sorted(set(names)) and all(value for _, value in labels), labels
                key = frozenset(labels)
                assert ms > newest.get(key, -math.inf), (labels, ms, newest[key])
                newest[key] = ms
        return newest
