#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL's calls, traced: what gpusonde trace and the agent say of them, against what a program of the simulated NCCL calls."""
import json
import shutil
import subprocess

from lib.e2e import BUILD, Agent, command, contains, equal, run, values, wait_for
from lib.traced import SCENARIO, begun, trace_of, tracing

PROGRAM, LIBRARY = f"{BUILD}/test/e2e/collectives", f"{BUILD}/sim/nccl/libnccl.so.2"
MASK = (1 << 64) - 1

# Of `collectives operations`: (operation, ranks): calls, bytes of the argument, traffic (None: ranks not known).
OPERATIONS = {
    ("all_reduce", 8): (10, 40000, 40000),
    ("reduce_scatter", 8): (1, 200, 1600),
    ("reduce", 8): (1, 800, 800),
    ("broadcast", 8): (2, 100, 100),
    ("all_gather", 8): (1, 100, 800),
    ("all_to_all", 8): (1, 800, 6400),
    ("gather", 4): (1, 200, 800),
    ("scatter", 4): (1, 400, 1600),
    ("send", 8): (1, 28, 28),
    ("recv", 8): (1, 36, 36),
    ("all_reduce", 3): (3, 120, 120),
    ("all_gather", None): (1, 100, None),
    ("all_reduce", 6): (1, 1, 1),
}


def mix(words):
    """NCCL's hash of words of 8 or 4 bytes, each (value, bytes); a list of words of one piece."""
    a, b = 1, 1
    for piece, size in words:
        a ^= size
        for x in piece:
            a = (a + b) & MASK
            b ^= a
            a ^= a >> 31
            a = a * 0x9de62bbc8cef3ce3 & MASK
            b ^= b >> 32
            b = b * 0x485cd6311b599e79 & MASK
            a = (a + x) & MASK
    a ^= a >> 31
    a = a * 0xbac3bd562846de6b & MASK
    a = (a + b) & MASK
    a ^= a >> 32
    return f"0x{a * 0x995a187a14e7b445 & MASK:x}"


UNIQUE = bytes(range(128))
ID = mix([([int.from_bytes(UNIQUE[i:i + 8], "little") for i in range(0, 128, 8)], 128)])


def trace(what, *flags):
    tracing()
    done = command("trace", *flags, "-o", "-", "--", PROGRAM, what)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def traced(what):
    document = json.loads(trace(what, "--nccl", "--json"))
    equal(document["events"]["dropped"], 0, "events dropped")
    return document


def test_operations_and_bytes():
    document = traced("operations")
    nccl = document["nccl"]
    process, = nccl["processes"]
    seen = {(o["operation"], o["ranks"]): (o["calls"], o["argument_bytes"], o["traffic_bytes"]) for o in process["operations"]
            if o["calls"] > 0}
    # Of a half the number of ranks was asked for before the second operation.
    seen_half = seen.pop(("all_gather", 4))
    equal(seen_half, (1, 100, 400), "after ncclCommCount()")
    wanted = dict(OPERATIONS)
    equal(seen, wanted, "operations")
    equal(sum(o["failed"] for o in process["operations"]), 1, "failed")
    equal(sum(o["grouped"] for o in process["operations"]), 2, "grouped")
    equal((process["groups"], process["group_operations"]), (1, 2), "groups, nested ones not counted")
    equal({(o["operation"], o["ranks"]): o["calls"] for o in nccl["operations"]},
          {(o["operation"], o["ranks"]): o["calls"] for o in process["operations"]}, "the sums are the only process's")


def test_calls_and_errors():
    calls = {c["api"]: c for c in traced("operations")["calls"]}
    equal(calls["ncclAllReduce"]["errors"], {"4": 1}, "errors by code")
    equal(calls["ncclGroupEnd"]["errors"], {"5": 1}, "errors by code")
    equal(calls["ncclCommInitRankConfig"]["failed"], 0, "in progress is no failure")
    equal(calls["ncclAllReduce"]["bytes"], 40000 + 120 + 1, "bytes of those that succeeded")
    equal(calls["ncclBroadcast"]["count"], 2, "ncclBcast() counts once")
    assert "ncclBcast" not in calls, calls.keys()
    equal((calls["ncclAllGather"]["count"], calls["ncclAllGather"]["bytes"]), (3, 300), "pnccl..., too")


def test_communicators():
    communicators = traced("operations")["nccl"]["processes"][0]["communicators"]
    found = [(c["id"], c["ranks"], c["rank"], c["sequence"], c["point_to_point"], c["late"], c["ended"]) for c in communicators]
    half = mix([([int(ID, 16)], 8), ([1], 4), ([1], 4)])
    fewer = mix([([int(ID, 16)], 8), ([0], 4), ([0], 4)])
    equal(found[:2], [(ID, 8, 5, 16, 2, False, True), (ID, 4, 3, 2, 0, False, True)], "made by ncclCommInitRank()")
    equal(found[2:5], [(None, 3, i, 1, 0, False, True) for i in range(3)], "made by ncclCommInitAll()")
    equal([f for f in found[5:] if f[0]], [(half, 4, None, 2, 0, False, True), (fewer, 6, None, 1, 0, False, True)], "children")


def test_a_group_ends_with_its_thread():
    process, = traced("threads")["nccl"]["processes"]
    row, = process["operations"]
    equal((row["operation"], row["calls"], row["grouped"], process["groups"]), ("send", 20, 10, 0), "of 20 threads, 10 left a group open")


def test_a_fork_forgets():
    processes = traced("fork")["nccl"]["processes"]
    rows = sorted((o["ranks"] or 0, o["calls"], o["grouped"]) for p in processes for o in p["operations"])
    equal(rows, [(0, 1, 0), (6, 1, 1)], "the child knows neither the ranks nor the group")


def test_bounds():
    nccl = traced("many")["nccl"]
    process, = nccl["processes"]
    equal(len(process["communicators"]), 256, "communicators")
    equal(process["other_operations"], 400 - 256, "operations on those beyond")
    equal(sum(o["calls"] for o in process["operations"]), 400, "operations")
    equal(len(process["operations"]), 16, "sizes that are told apart, and the others together")


def test_raw():
    events = [e for e in map(json.loads, trace("operations", "--raw", "--json").splitlines()) if e.get("api", "").startswith("nccl")]
    of = {}
    for event in events:
        of.setdefault(event["api"], []).append(event)
    equal((of["ncclCommInitRank"][0]["id"], of["ncclCommInitRank"][0]["ranks"], of["ncclCommInitRank"][0]["rank"]), (ID, 8, 5), "init")
    comm = of["ncclCommInitRank"][0]["comm"]
    wanted = {"comm": comm, "bytes": 800, "type": "float64", "reduction": "max", "root": 3, "stream": 0x71}
    equal({k: of["ncclReduce"][0][k] for k in wanted}, wanted, "reduce")
    wanted = {"bytes": 28, "type": "float32", "peer": 6, "grouped": 1}
    equal({k: of["ncclSend"][0][k] for k in wanted}, wanted, "send")
    equal([e["rank"] for e in of["ncclCommInitAll"]], [0, 1, 2], "one event for each communicator")
    equal([e["depth"] for e in of["ncclGroupEnd"][:2]], [2, 1], "depth")
    contains(trace("operations", "--raw"), " ncclAllReduce comm 0x")


def test_table():
    text = trace("operations", "--nccl")
    contains(text, "COMMUNICATOR")
    contains(text, ID)
    contains(text, "all_to_all")
    contains(text, "1 groups, ")
    contains(command("trace", "--nccl", "--", "true").stderr, "No operation of NCCL was seen.")


def test_the_agent():
    tracing()
    with Agent("--trace-enabled", "yes", scenario=SCENARIO) as agent:
        begun(agent)
        folder = f"{agent.tmp}/nccl"
        subprocess.run(["mkdir", folder], check=True)
        shutil.copy(LIBRARY, folder)
        files = values(agent.metrics(), "gpusonde_trace_files")
        with subprocess.Popen([PROGRAM, "wait"], env={"LD_LIBRARY_PATH": folder}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            equal(p.stdout.readline(), "called\n", "the program")

            def seen():
                found = [t["nccl"] for t in (trace_of(agent) or {}).get("processes", []) if t["pid"] == p.pid]
                return found and found[0]
            # The library is found when it is mapped: the first calls may come before.
            wait_for(lambda: values(agent.metrics(), "gpusonde_trace_files") > files, "NCCL's library to be probed")
            p.stdin.close()
        with subprocess.Popen([PROGRAM, "wait"], env={"LD_LIBRARY_PATH": folder}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            wait_for(lambda: seen() and seen()["operations"], "the second to be seen")
            nccl = seen()
            row, = nccl["operations"]
            equal((row["operation"], row["ranks"], row["calls"], row["argument_bytes"], row["traffic_bytes"]),
                  ("reduce_scatter", 8, 100, 20000, 160000), "operation")
            equal(nccl["communicators"][0]["id"], ID, "communicator")

            labels = {"pid": str(p.pid), "comm_size": "8", "operation": "reduce_scatter"}
            wait_for(lambda: values(agent.metrics(), "gpusonde_process_nccl_operations_total", **labels), "series")
            page = agent.metrics()
            equal(values(page, "gpusonde_process_nccl_operations_total", **labels), [100], "operations")
            equal(values(page, "gpusonde_process_nccl_bytes_total", **labels), [160000], "traffic")
            equal(values(page, "gpusonde_process_nccl_communicators", pid=str(p.pid)), [1], "communicators")
            assert values(page, "gpusonde_nccl_calls_total", api="ncclReduceScatter")[0] >= 100
            p.stdin.close()
        wait_for(lambda: not values(agent.metrics(), "gpusonde_process_nccl_operations_total", **labels), "its series to end")
        assert values(agent.metrics(), "gpusonde_nccl_operations_total", comm_size="8", operation="reduce_scatter")[0] >= 100


run()
