#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA has the binary interface of the real one, and the entry points have the real ones' shape.

    abi.py CC...

Speaks TAP. Structs and names are compared with the CUDA toolkit where there is one.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

CC = sys.argv[1:]
BUILD, SOURCE = os.environ["GPUSONDE_TEST_BUILD"], os.environ["GPUSONDE_TEST_SOURCE"]
SIM = os.path.join(BUILD, "sim/cuda")

# ours: (theirs, {our member: their member})
STRUCTS = {
    "cu_launch_config": ("CUlaunchConfig", {"grid": "gridDimX", "block": "blockDimX", "shared_bytes": "sharedMemBytes",
                                            "stream": "hStream", "attributes": "attrs", "attribute_count": "numAttrs"}),
    "cu_memcpy_2d": ("CUDA_MEMCPY2D", {"src_type": "srcMemoryType", "src_array": "srcArray", "dst_type": "dstMemoryType",
                                       "dst_device": "dstDevice", "width_bytes": "WidthInBytes", "height": "Height"}),
    "cu_memcpy_3d": ("CUDA_MEMCPY3D", {"src_type": "srcMemoryType", "src_reserved": "reserved0", "dst_type": "dstMemoryType",
                                       "width_bytes": "WidthInBytes", "height": "Height", "depth": "Depth"}),
    "cu_location": ("CUmemLocation", {"type": "type", "id": "id"}),
    "cu_batch_3d": ("CUDA_MEMCPY3D_BATCH_OP", {"dst": "dst", "extent": "extent", "flags": "flags"}),
    "cu_array_descriptor": ("CUDA_ARRAY_DESCRIPTOR", {"height": "Height", "format": "Format", "channels": "NumChannels"}),
    "cu_array_descriptor_3d": ("CUDA_ARRAY3D_DESCRIPTOR", {"depth": "Depth", "format": "Format",
                                                           "channels": "NumChannels", "flags": "Flags"}),
    "cu_allocation_prop": ("CUmemAllocationProp", {"location": "location", "flags": "allocFlags"}),
    "cu_pool_props": ("CUmemPoolProps", {"location": "location", "max_size": "maxSize", "usage": "usage"}),
    "cu_kernel_node": ("CUDA_KERNEL_NODE_PARAMS", {"grid": "gridDimX", "block": "blockDimX", "parameters": "kernelParams",
                                                   "kernel": "kern", "context": "ctx"}),
    "cu_instantiate_params": ("CUDA_GRAPH_INSTANTIATE_PARAMS", {"upload": "hUploadStream", "error_node": "hErrNode_out",
                                                                "result": "result_out"}),
    "cuda_dim3": ("struct dim3", {"z": "z"}),
    "cuda_launch_config": ("cudaLaunchConfig_t", {"block": "blockDim", "shared_bytes": "dynamicSmemBytes",
                                                  "stream": "stream", "attribute_count": "numAttrs"}),
    "cuda_pitched": ("struct cudaPitchedPtr", {"address": "ptr", "pitch": "pitch", "height": "ysize"}),
    "cuda_memcpy_3d": ("struct cudaMemcpy3DParms", {"src": "srcPtr", "dst_array": "dstArray", "dst": "dstPtr",
                                                    "extent": "extent", "kind": "kind"}),
    "cuda_memcpy_3d_peer": ("struct cudaMemcpy3DPeerParms", {"src_device": "srcDevice", "dst": "dstPtr",
                                                             "extent": "extent"}),
    "cuda_channels": ("struct cudaChannelFormatDesc", {"bits": "x", "kind": "f"}),
    "cuda_kernel_node": ("struct cudaKernelNodeParams", {"function": "func", "block": "blockDim",
                                                         "parameters": "kernelParams"}),
}
# Results: ours and theirs.
RESULTS = {"CU_INVALID_VALUE": "CUDA_ERROR_INVALID_VALUE", "CU_OUT_OF_MEMORY": "CUDA_ERROR_OUT_OF_MEMORY",
           "CU_NOT_INITIALIZED": "CUDA_ERROR_NOT_INITIALIZED", "CU_NO_DEVICE": "CUDA_ERROR_NO_DEVICE",
           "CU_INVALID_DEVICE": "CUDA_ERROR_INVALID_DEVICE", "CU_INVALID_IMAGE": "CUDA_ERROR_INVALID_IMAGE",
           "CU_INVALID_CONTEXT": "CUDA_ERROR_INVALID_CONTEXT", "CU_INVALID_HANDLE": "CUDA_ERROR_INVALID_HANDLE",
           "CU_NOT_FOUND": "CUDA_ERROR_NOT_FOUND", "CU_NOT_READY": "CUDA_ERROR_NOT_READY",
           "CU_ILLEGAL_ADDRESS": "CUDA_ERROR_ILLEGAL_ADDRESS", "CU_NOT_SUPPORTED": "CUDA_ERROR_NOT_SUPPORTED",
           "CU_CONTEXT_IS_DESTROYED": "CUDA_ERROR_CONTEXT_IS_DESTROYED",
           "CU_HOST_MEMORY_ALREADY_REGISTERED": "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
           "CU_HOST_MEMORY_NOT_REGISTERED": "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
           "CU_CAPTURE_UNSUPPORTED": "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
           "CU_CAPTURE_UNMATCHED": "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
           "CU_CAPTURE_IMPLICIT": "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
           "CU_INSUFFICIENT_DRIVER": "cudaErrorInsufficientDriver",
           "CU_INVALID_CONFIGURATION": "cudaErrorInvalidConfiguration",
           "CU_INVALID_DEVICE_FUNCTION": "cudaErrorInvalidDeviceFunction"}


class Skip(Exception):
    """What is missing for this test."""


def toolkit():
    for root in (os.environ.get("CUDA_HOME"), shutil.which("nvcc") and
                 os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc")))), "/usr/local/cuda"):
        if root and os.path.exists(os.path.join(root, "include/cuda.h")):
            return root
    raise Skip("no CUDA toolkit here")


def toolkit_library(name):
    root = toolkit()
    for folder in ("lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
        path = os.path.join(root, folder, name)
        if os.path.exists(path):
            return path
    raise Skip(f"the toolkit has no {name}")


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[2].split("@")[0] for line in out.splitlines() if " T " in line}


def structs():
    root = toolkit()
    lines = ['#include <cuda.h>', '#include <driver_types.h>', f'#include "{SOURCE}/sim/cuda/abi.h"']
    for ours, (theirs, members) in STRUCTS.items():
        lines.append(f'_Static_assert(sizeof(struct {ours}) == sizeof({theirs}), "{ours}");')
        for mine, other in members.items():
            lines.append(f'_Static_assert(offsetof(struct {ours}, {mine}) == offsetof({theirs}, {other}), "{ours}.{mine}");')
    for ours, theirs in RESULTS.items():
        lines.append(f'_Static_assert((int){ours} == (int){theirs}, "{ours}");')
    with tempfile.NamedTemporaryFile("w", suffix=".c") as unit:
        unit.write("\n".join(lines) + "\n")
        unit.flush()
        done = subprocess.run([*CC, "-std=gnu17", "-fsyntax-only", "-I", os.path.join(root, "include"), unit.name],
                              capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def names(ours, theirs):
    def check():
        made_up = {n for n in exported(os.path.join(SIM, ours)) if re.match(r"_*cu", n)} - exported(toolkit_library(theirs))
        assert not made_up, f"{ours} exports what the toolkit's {theirs} does not: {sorted(made_up)}"
    return check


def code(path):
    """The first instructions of each exported function, as bytes."""
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    with open(path, "rb") as f:
        data = f.read()
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    loads = [[int(w, 16) for w in m.groups()]
             for m in re.finditer(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)]
    for line in out.splitlines():
        address, kind, name = line.split()
        if kind == "T" and name.startswith("cu"):
            for offset, start, size in loads:
                if start <= int(address, 16) < start + size:
                    at = int(address, 16) - start + offset
                    yield name, data[at:at + 32]


def prologues(name):
    def check():
        if platform.machine() != "x86_64":
            raise Skip("x86-64's instructions")
        wrong = [n for n, first in code(os.path.join(SIM, name)) if first[0] != 0x55]
        assert not wrong, f"do not begin with push %rbp: {wrong}"
    return check


def thunks():
    path = os.path.join(SIM, "thunk/libcuda.so.1")
    found = dict(code(path))
    assert len(found) > 200, f"only {len(found)} functions"
    assert set(found) == {n for n in exported(os.path.join(SIM, "libcuda.so.1")) if n.startswith("cu")}
    if platform.machine() != "x86_64":
        raise Skip("x86-64's instructions")
    for name, first in found.items():
        assert first[0:2] == b"\x81\x3d" and first[6:10] == b"\x00\xba\x1c\x32" and first[10] == 0x74 and \
            first[12:14] == b"\xff\x25", f"{name} begins with {first.hex()}"


TESTS = [
    ("structs and results are those of the toolkit", structs),
    ("libcuda exports the toolkit's names", names("libcuda.so.1", "stubs/libcuda.so")),
    ("libcudart exports the toolkit's names", names("libcudart.so.13", "libcudart.so.13")),
    ("libcuda's functions begin with a push", prologues("libcuda.so.1")),
    ("libcudart's functions begin with a push", prologues("libcudart.so.13")),
    ("the thunk variant has the driver's entry points", thunks),
]
print(f"1..{len(TESTS)}")
failed = False
for number, (title, test) in enumerate(TESTS, start=1):
    try:
        test()
        print(f"ok {number} - {title}")
    except Skip as why:
        print(f"ok {number} - {title} # SKIP {why}")
    except AssertionError as error:
        failed = True
        print(f"not ok {number} - {title}")
        for line in str(error).splitlines():
            print(f"# {line}")
sys.exit(failed)
