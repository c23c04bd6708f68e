# SPDX-License-Identifier: Apache-2.0
"""CUPTI's own libraries, 11.7 to 13.0: its records are as the plugin declares them, and without a GPU the plugin stands down and says why.

    cupti.py BUILD SOURCE [words of names of tests]
"""
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

from lib import e2e

import real

VERSIONS = {"11.7": 17, "11.8": 18, "12.4": 22, "12.9": 28, "13.0": 130001}
# Of the plugin's struct, CUPTI's of each version that has it, and members: ours and theirs.
KERNEL = {"start_ns": "start", "end_ns": "end", "device": "deviceId", "context": "contextId", "stream": "streamId", "grid": "gridX", "block": "blockX",
          "correlation": "correlationId", "name": "name", "queued_ns": "queued", "submitted_ns": "submitted", "node": "graphNodeId", "graph": "graphId"}
MEMORY = {"bytes": "bytes", "start_ns": "start", "end_ns": "end", "device": "deviceId", "context": "contextId", "stream": "streamId",
          "correlation": "correlationId", "node": "graphNodeId", "graph": "graphId"}
GRAPH = {"correlation": "correlationId", "start_ns": "start", "end_ns": "end", "device": "deviceId", "graph": "graphId", "context": "contextId",
         "stream": "streamId"}
PEER = {k: MEMORY[k] for k in ("bytes", "start_ns", "end_ns", "device", "context", "stream")}
RECORDS = [("activity_kernel", [f"CUpti_ActivityKernel{n}" for n in range(5, 11)], KERNEL), ("activity_memory", ["CUpti_ActivityMemset4"], MEMORY),
           ("activity_memory", [f"CUpti_ActivityMemcpy{n}" for n in (5, 6)], MEMORY | {"copy": "copyKind"}),
           ("activity_peer", ["CUpti_ActivityMemcpyPtoP4"], PEER | {"copy": "copyKind"}),
           ("activity_graph", ["CUpti_ActivityGraphTrace", "CUpti_ActivityGraphTrace2"], GRAPH)]
CALLBACK = {"site": "callbackSite", "function": "functionName", "symbol": "symbolName", "context": "context", "correlation": "correlationId"}
NUMBERS = {"CUPTI_ERROR_MAX_LIMIT_REACHED": 12, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": 39, "CUPTI_ACTIVITY_KIND_MEMCPY": 1,
           "CUPTI_ACTIVITY_KIND_MEMSET": 2, "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL": 10, "CUPTI_ACTIVITY_KIND_MEMCPY2": 22,
           "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": 51, "CUPTI_CB_DOMAIN_DRIVER_API": 1, "CUPTI_API_ENTER": 0, "CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel": 307,
           "CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz": 442, "CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel": 477,
           "CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch": 514, "CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz": 515}


def cuda_headers():
    found = next((f for f in ("/usr/local/cuda/include", "/usr/include") if os.path.exists(f"{f}/cuda.h")), None)
    if not found:
        raise e2e.Skip("no cuda.h on this machine, which CUPTI's headers include")
    return found


def check_records(version):
    folder = os.path.dirname(real.thing(f"cupti-{version}")["libcupti.so"])
    with open(f"{folder}/cupti_activity.h", encoding="utf-8") as file:
        header = file.read()
    if os.path.exists(f"{folder}/cupti_activity_deprecated.h"):
        with open(f"{folder}/cupti_activity_deprecated.h", encoding="utf-8") as file:
            header += file.read()
    lines, checked = [], []
    for ours, theirs, members in RECORDS:
        for their in theirs:
            if f"}} {their};" not in header:
                continue
            checked.append(their)
            lines += [f"_Static_assert(offsetof(struct {ours}, {a}) == offsetof({their}, {b}), \"{their}.{b}\");" for a, b in members.items()]
            lines.append(f"_Static_assert(sizeof(struct {ours}) <= sizeof({their}), \"{their}\");")
    lines += [f"_Static_assert(offsetof(struct callback_data, {a}) == offsetof(CUpti_CallbackData, {b}), \"{b}\");" for a, b in CALLBACK.items()]
    lines += [f"_Static_assert((int){name} == {number}, \"{name}\");" for name, number in NUMBERS.items()]
    assert len(checked) >= 5, checked
    # The plugin's own names for CUPTI's numbers would be theirs twice.
    source = '#include <cupti.h>\n#define CUPTI_SUCCESS OUR_SUCCESS\n#define CUPTI_ERROR_INVALID_PARAMETER OUR_INVALID\n' \
             '#include "cupti_plugin/interface.h"\n' + "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/x.c", "w", encoding="ascii") as file:
            file.write(source)
        done = subprocess.run([shutil.which("cc") or "gcc", "-fsyntax-only", "-w", f"-I{folder}", f"-I{cuda_headers()}", f"-I{e2e.SOURCE}/src", f"{tmp}/x.c"],
                              capture_output=True, text=True, check=False)
    e2e.equal(done.returncode, 0, f"{version}: {done.stderr[:2000]}")
    print(f"# {version}: {', '.join(checked)}")


def test_records():
    for version in VERSIONS:
        check_records(version)


def told_by(library):
    """State, clock, version, error, as the plugin says of this CUPTI in a program without a GPU; what the program wrote."""
    program = f"import ctypes; ctypes.CDLL('{e2e.BUILD}/libgpusonde-cupti.so').InitializeInjection(); print('alive')"
    with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{tmp}/s")
        listener.listen(1)
        listener.settimeout(60)
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, GPUSONDE_CUPTI_SOCKET=f"{tmp}/s", GPUSONDE_CUPTI_LIBRARY=library)) as p:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                connection.send(struct.pack("=IHHIIII", 0x74707563, 1, 0, 1000, 1000, 0, 1))
                message = connection.recv(4096)
                wrote = p.communicate(timeout=60)
        e2e.equal((p.returncode, wrote), (0, ("alive\n", "")), f"the program with {library}")
    _, state, _, _, api, error = struct.unpack_from("=BBBBII", message, 16)
    return state, api, error


def test_without_a_gpu():
    if os.path.exists("/proc/driver/nvidia/version"):
        raise e2e.Skip("there is a GPU here")
    for version, api in VERSIONS.items():
        state, got, error = told_by(real.thing(f"cupti-{version}")["libcupti.so"])
        e2e.equal((state, got, error != 0), (5, api, True), f"{version}: refused, by CUPTI's own word")
        print(f"# {version}: CUPTI (API {got}) refuses with error {error}")


e2e.run()
