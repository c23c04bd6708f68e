#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the simulated CUDA was called for, from the files that GPUSONDE_SIM_CUDA_LOG=FILE makes it write.

    truth.py FILE           all processes, as JSON

    {"processes": [{"pid": 1, "comm": "workload", "calls": [
        {"api": "cudaMalloc", "library": "libcudart", "count": 3, "nested": 0, "bytes": 4096, "nested_bytes": 0,
         "errors": {"2": 1}, "nested_errors": {}}]}]}

"count" are all calls, "nested" those of them that another of the libraries' functions made; likewise "bytes" (only of
calls that succeeded) and "errors". Functions that were never called are left out. As a module: read(FILE).
"""
import glob
import json
import re
import struct
import sys

HEADER = struct.Struct("<8sIIQIIII16s16s")
ERROR = struct.Struct("<IIQQ")
CELL = struct.Struct("<QQQQ")


def text(field):
    return field.split(b"\0")[0].decode()


def read_file(path):
    """(pid, comm, [call]) of one file; None if it is not complete."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < HEADER.size:
        return None
    magic, version, pid, _, apis, shards, codes, name_size, library, comm = HEADER.unpack_from(data)
    if magic != b"gpstruth" or version != 1:
        return None
    errors_at = HEADER.size + apis * name_size
    cells_at = errors_at + apis * codes * ERROR.size
    calls = []
    for api in range(apis):
        sums = [0, 0, 0, 0]
        for shard in range(shards):
            cell = CELL.unpack_from(data, cells_at + (shard * apis + api) * CELL.size)
            sums = [a + b for a, b in zip(sums, cell)]
        if sums[0] + sums[1] == 0:
            continue
        name = text(data[HEADER.size + api * name_size:HEADER.size + (api + 1) * name_size])
        call = {"api": name, "library": text(library), "count": sums[0] + sums[1], "nested": sums[1],
                "bytes": sums[2] + sums[3], "nested_bytes": sums[3], "errors": {}, "nested_errors": {}}
        for i in range(codes):
            code, _, outer, nested = ERROR.unpack_from(data, errors_at + (api * codes + i) * ERROR.size)
            key = "other" if code == 0xffffffff else str(code)
            if outer + nested:
                call["errors"][key] = outer + nested
            if nested:
                call["nested_errors"][key] = nested
        calls.append(call)
    return pid, text(comm), calls


def read(base):
    """All processes of one log, by PID."""
    processes = {}
    for path in sorted(glob.glob(glob.escape(base) + ".*")):
        if not re.search(r"\.\d+\.libcuda(rt)?$", path):
            continue
        found = read_file(path)
        if found:
            pid, comm, calls = found
            process = processes.setdefault(pid, {"pid": pid, "comm": comm, "calls": []})
            process["calls"] += calls
    return {"processes": list(processes.values())}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(read(sys.argv[1]), sys.stdout, indent=1)
    print()
