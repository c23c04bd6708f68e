#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver and a runtime of a generation that is not there yet: what is known of them is served, and nothing else is touched.

    unknown.py BUILD SOURCE [words of names of tests]

Libraries are made here: functions missing, functions that nobody knows, entry points of other shapes. Each is called; what is probed is counted exactly.
"""
import os
import sys
import tempfile

sys.path.insert(0, f"{sys.argv[2]}/test/real")
import real # noqa: E402 pylint: disable=wrong-import-position
import counts # noqa: E402 pylint: disable=wrong-import-position
import e2e # noqa: E402 pylint: disable=wrong-import-position
import rows # noqa: E402 pylint: disable=wrong-import-position

# Entry points, each of which ends in "mov $CODE, %eax; ret": how it begins, and whether that is a shape that is proven.
SHAPES = {
    "push": ("push %rbp\nmov %rsp, %rbp\npop %rbp", True),
    "thunk": ("cmpl $0x321cba01, word(%rip)\nje 1f\n1:", True),
    "longer thunk": ("cmpq $0x12345, word(%rip)\njne 1f\n1:", True),
    "tail": ("jmp 1f\n.skip 64, 0x90\n1:", True),
    # Arguments are changed before there is anything that is cheap to probe.
    "moves arguments": ("mov %rdi, %rax\nxor %edi, %edi\nje 1f\n1:", False),
    "stack": ("mov %rsp, %rax\nsub $64, %rsp\nand $-64, %rsp\nje 1f\n1: mov %rax, %rsp", False),
    "nothing cheap": ("lea word(%rip), %rax\nadd $1, %rax", False),
    # What is nothing to this processor, and may mean something to the next one.
    "hints": ("endbr32\n.byte 0x0f, 0x1f, 0xc0\nadd $1, %eax", False),
}
# Of the runtime after the newest: some that it keeps, some with new names and old ones gone; of the driver the same. api: (shape, result).
RUNTIME = {
    "cudaMalloc": ("push", 35), "cudaFree": ("tail", 35), "cudaMemcpyAsync_ptsz": ("longer thunk", 1), "cudaStreamSynchronize": ("thunk", 700),
    "cudaMemset": ("nothing cheap", 2), "cudaDeviceSynchronize": ("moves arguments", 3), "cudaEventQuery": ("stack", 600), "cudaLaunchKernel": ("hints", 4),
    "cudaLaunchKernel_v9": ("push", 5), "cudaMallocEverywhere": ("push", 6), "cudaMemcpyAsync_v14": ("push", 7), "cudaMalloc_ptds": ("push", 8),
}
DRIVER = {
    "cuInit": ("longer thunk", 0), "cuMemAlloc_v2": ("thunk", 2), "cuLaunchKernel_ptsz": ("push", 201), "cuStreamSynchronize": ("moves arguments", 3),
    "cuMemFree_v2": ("stack", 4), "cuMemAlloc_v3": ("thunk", 9), "cuLaunchKernelEx_v2": ("push", 9), "cuTimeTravel": ("push", 9),
}
# Of those that have no row: versions and twins of such as have, which are named, but not probed.
NEWER = {"cudaLaunchKernel_v9", "cudaMemcpyAsync_v14", "cudaMalloc_ptds", "cuMemAlloc_v3", "cuLaunchKernelEx_v2"}


def library(folder, name, functions):
    lines = [".data", "word: .quad 0x12345", ".text"]
    for api, (shape, code) in functions.items():
        lines += [".p2align 4", f".globl {api}", f".type {api},%function", f"{api}:", SHAPES[shape][0], f"mov ${code}, %eax", "ret", f".size {api}, .-{api}"]
    source = f"{folder}/library.s"
    with open(source, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + '\n.section .note.GNU-stack,"",%progbits\n')
    return real.compiled(f"{folder}/{name}", "-shared", "-nostdlib", source)


def known_names():
    """Of the newest that there is: every name that gpusonde has a row for is in one of them."""
    return {s["symbol"] for path in (f"{real.SIMULATED}/libcuda.so.1", f"{real.SIMULATED}/libcudart.so.13") for s in real.sites(path)}


def check(name, functions, row):
    if os.uname().machine != "x86_64":
        raise e2e.Skip("the libraries are made of x86-64 instructions")
    known = {api for api in functions if api in known_names()}
    newer = NEWER & set(functions)
    proven = {api for api in known if SHAPES[functions[api][0]][1]}
    assert proven and known - proven and set(functions) - known, "the library does not have one of each kind"
    with tempfile.TemporaryDirectory() as folder:
        path = library(folder, name, functions)
        sites = {s["symbol"]: s for s in real.sites(path)}
        e2e.equal(set(sites), known | newer, "functions that have a row, and newer versions of such")
        e2e.equal({api for api, s in sites.items() if s["chosen"]}, proven, "functions with a probe")
        assert all(s["reason"] for s in sites.values()), sites
        truth, document, _ = real.traced([real.CALLS, path], plan=counts.lines((api, 3 + i) for i, api in enumerate(functions)))
    wanted = counts.check(truth, document, unseen=set(functions) - proven)
    e2e.equal(sorted(wanted), sorted(proven), "functions that were counted")
    e2e.equal((document["probes"]["attached"], document["probes"]["refused"]), (len(proven), len(known - proven) + len(newer)), "sites attached, refused")
    e2e.equal(document["processes"][0]["incomplete"], ["sites_refused"], "what is said of the process")
    rows.say("unknown", row, served=f"{len(proven)} functions that are known and of a proven shape; {real.exact(wanted)}",
             refused=f"{len(known - proven)} entry points of another shape: not touched, said by gpusonde probes, the process is marked; "
                     f"{len(newer)} newer versions, named; {len(set(functions) - known - newer)} functions that nobody knows: not taken for others")


def test_a_runtime_after_the_newest():
    check("libcudart.so.14", RUNTIME, "libcudart.so.14")


def test_a_driver_after_the_newest():
    check("libcuda.so.1", DRIVER, "libcuda.so.1 with entry points of other shapes")


def test_a_driver_of_which_nothing_is_known():
    """No probe, and that is said."""
    real.need_tracing()
    functions = {"cuMemAlloc_v2": ("moves arguments", 3), "cuInit": ("stack", 100)}
    with tempfile.TemporaryDirectory() as folder:
        path = library(folder, "libcuda.so.1", functions)
        done = e2e.command("trace", "--", real.CALLS, path, f"{folder}/truth", input="cuInit 3\ncuMemAlloc_v2 4\n")
        e2e.equal(done.returncode, 0, done.stderr)
    e2e.contains(done.stderr, "none of its 2 entry points can be probed")
    e2e.contains(done.stderr, "gpusonde probes")
    rows.say("unknown", "libcuda.so.1 of none but other shapes", served="nothing", refused="all of it: said, with how to see why")


if __name__ == "__main__":
    e2e.run()
