#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL's own libraries, 2.18 to the newest: where their probes are, and that arguments are read right; without a GPU all calls fail.

    nccl.py BUILD SOURCE [words of names of tests]
"""
import json
import subprocess
import sys
import tempfile

from lib import e2e

import real

VERSIONS = {"2.18": False, "2.21": False, "2.26": True, "newest": True} # whether a communicator that is none may be given
# NCCL's hash of the bytes 0 to 127.
ID = "0x6afe1cc17717e1f4"
# (bytes, type, what else), by the stream that tells the call.
WANTED = {
    0x71: ("ncclSend", {"bytes": 20, "type": "bfloat16", "peer": 3, "grouped": 1}),
    0x72: ("ncclRecv", {"bytes": 22, "type": "float16", "peer": 2, "grouped": 1}),
    0x73: ("ncclAllReduce", {"bytes": 4000, "type": "float32", "reduction": "sum"}),
    0x74: ("ncclReduceScatter", {"bytes": 8008, "type": "float64", "reduction": "avg"}),
    0x75: ("ncclReduce", {"bytes": 8016, "type": "int64", "reduction": "max", "root": 7}),
    0x76: ("ncclBroadcast", {"bytes": 1003, "type": "int8", "root": 6}),
    0x77: ("ncclBroadcast", {"bytes": 1004, "type": "uint8", "root": 5}),
    0x78: ("ncclAllGather", {"bytes": 4020, "type": "int32"}),
    0x79: ("ncclAllGather", {"bytes": 4024, "type": "uint32"}),
}
SINCE_2_28 = {
    0x7a: ("ncclAlltoAll", {"bytes": 1007, "type": "float8e4m3"}),
    0x7b: ("ncclGather", {"bytes": 1008, "type": "float8e5m2", "root": 1}),
    0x7c: ("ncclScatter", {"bytes": 8072, "type": "uint64", "root": 2}),
}


def library(version):
    return real.thing(f"nccl-{version}")["libnccl.so.2"]


def events(version, has_comm):
    real.need_tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run([e2e.GPUSONDE, "trace", "--raw", "--json", "-o", f"{tmp}/events", "--", sys.executable,
                               f"{e2e.SOURCE}/test/real/calls_nccl.py", library(version), *(["--comm"] if has_comm else [])],
                              env=e2e.environment(), capture_output=True, text=True, timeout=real.TRACE_S, check=False)
        e2e.equal(done.returncode, 0, f"exit status with NCCL {version}, which says {done.stderr[-2000:]}")
        with open(f"{tmp}/events", encoding="ascii") as f:
            return [e for e in map(json.loads, f) if e.get("api", "").startswith("nccl")]


def check_arguments(version):
    found = events(version, VERSIONS[version])
    inits = [(e["id"], e["ranks"], e["rank"]) for e in found if e["api"].startswith("ncclCommInitRank")]
    e2e.equal(inits, [(ID, 8, 5), (ID, 6, 4)], f"{version}: ranks, and one ID")
    exported = real.probed(library(version))
    for stream, (api, wanted) in (WANTED | (SINCE_2_28 if "ncclAlltoAll" in exported else {})).items():
        of = [e for e in found if e.get("stream") == stream]
        e2e.equal([e["api"] for e in of], [api], f"{version}: calls with stream {stream:#x}")
        e2e.equal({k: of[0].get(k) for k in wanted}, wanted, f"{version}: {api}")
        assert of[0]["result"] != 0 and (of[0]["comm"] != 0) == VERSIONS[version], of


def test_arguments_of_2_18():
    check_arguments("2.18")


def test_arguments_of_2_21():
    check_arguments("2.21")


def test_arguments_of_2_26():
    check_arguments("2.26")


def test_arguments_of_the_newest():
    check_arguments("newest")


def test_every_site_is_cheap():
    for version in VERSIONS:
        names = real.cheap(library(version))
        assert {"ncclAllReduce", "ncclSend", "ncclGroupEnd", "ncclCommInitRank"} <= set(names), names


def test_arm64s_are_refused_where_they_would_be_stepped():
    """Most begin with what the kernel single-steps there, which is never done: said, not hidden."""
    path = real.thing("nccl-arm64")["libnccl.so.2"]
    found = {s["symbol"]: s for s in real.sites(path)}
    assert len(found) >= 30, found.keys()
    for site in found.values():
        assert site["chosen"] == (site["class"] in ("emulated", "optimised")) and site["reason"], site
    print(f"# {sum(s['chosen'] for s in found.values())} of {len(found)} functions of arm64's NCCL can be probed")


e2e.run()
