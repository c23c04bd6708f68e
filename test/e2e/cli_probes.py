#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde probes: the sites of libraries as NVIDIA makes them, and files that are none."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

from lib.e2e import BUILD, Skip, command, contains, environment, equal, run

PLAIN, THUNKS = f"{BUILD}/sim/cuda/libcuda.so.1", f"{BUILD}/sim/cuda/thunk/libcuda.so.1"
RUNTIME = "/usr/local/cuda/lib64/libcudart.so"
STATIC = f"{BUILD}/test/programs/calls-static"
CLASSES = {"emulated", "optimised", "single_step", "refused"}
SITE = {"symbol": str, "offset": int, "instruction": str, "class": str, "chosen": bool, "returns": bool, "reason": str,
        "expected_ns": (int, type(None))}


def probes(path, *flags):
    out = command("probes", *flags, path)
    equal((out.returncode, out.stderr), (0, ""), path)
    return out.stdout


def sites(path, *flags):
    """By symbol; every one of the documented shape."""
    document = json.loads(probes(path, "--json", *flags))
    equal(set(document), {"file", "measured", "sites"})
    equal(document["file"], path)
    assert isinstance(document["measured"], bool), document["measured"]
    for site in document["sites"]:
        equal(set(site), set(SITE))
        for key, types in SITE.items():
            assert isinstance(site[key], types), site
        assert site["class"] in CLASSES and site["reason"], site
        assert not site["chosen"] or site["class"] != "refused", site
        if site["class"] == "refused":
            equal(site["expected_ns"], None, site)
    return {s["symbol"]: s for s in document["sites"]}


def needed(path, what):
    if path == THUNKS and os.uname().machine != "x86_64":
        raise Skip("thunks are looked at on x86-64")
    if not os.path.exists(path):
        raise Skip(f"no {path}: {what}")
    return path


def test_entry_points_as_in_the_drivers_library_are_probed_behind_the_first_instruction():
    found = sites(needed(THUNKS, "this build has no simulated driver with thunks"))
    assert {"cuInit", "cuMemAlloc_v2", "cuLaunchKernel"} <= set(found), set(found)
    for site in found.values():
        equal((site["offset"], site["class"], site["chosen"]), (10, "emulated", True), site)
        assert site["instruction"].startswith("je "), site


def test_no_site_is_single_stepped_unless_allowed():
    for path in filter(os.path.exists, (PLAIN, RUNTIME)):
        for site in sites(path).values():
            assert not site["chosen"] or site["class"] in ("emulated", "optimised"), site


def test_the_real_runtime():
    found = sites(needed(RUNTIME, "NVIDIA's toolkit is not here"))
    assert {"cudaMalloc", "cudaFree", "cudaLaunchKernel", "cudaMemcpy", "cudaDeviceSynchronize"} <= set(found), set(found)
    assert all(s["chosen"] for s in found.values()), found


def test_a_program_that_carries_the_runtime():
    found = sites(needed(STATIC, "there is no nvcc here, or it cannot build"))
    assert {"cudaMalloc", "cudaFree", "cudaLaunchKernel", "cudaMemcpy"} <= set(found), set(found)
    assert all(s["chosen"] for s in found.values()), found
    with tempfile.TemporaryDirectory() as folder:
        stripped = f"{folder}/stripped"
        subprocess.run(["strip", "-o", stripped, STATIC], check=True)
        out = command("probes", stripped)
        equal((out.returncode, out.stdout), (1, ""))
        contains(out.stderr, "stripped")
        contains(out.stderr, "libcuda.so.1")


def test_the_table_says_what_the_json_says():
    path = needed(THUNKS, "this build has no simulated driver with thunks")
    found, table = sites(path), probes(path).split("\n")
    equal(table[0].split()[:5], ["SYMBOL", "OFFSET", "INSTRUCTION", "CLASS", "CHOSEN"])
    rows = {line.split()[0]: line for line in table[1:table.index("")]}
    equal(set(rows), set(found))
    for symbol, row in rows.items():
        assert re.match(rf"{symbol} +10 +je \S+ +emulated +yes ", row), row
        contains(row, found[symbol]["reason"])
    contains("\n".join(table), f"{len(found)} of {len(found)} can be probed: {len(found)} emulated, 0 optimised, 0 single-stepped")


def patched(folder, name, changes):
    """A copy of the simulated driver's library with other bytes at some places."""
    path = f"{folder}/{name}"
    shutil.copy(needed(PLAIN, "this build has no simulated driver"), path)
    with open(path, "r+b") as f:
        for at, value in changes:
            f.seek(at)
            f.write(value)
    return path


def test_single_steps_are_named_and_allowed_only_by_the_option():
    with tempfile.TemporaryDirectory() as folder:
        source, library = f"{folder}/a.s", f"{folder}/liba.so"
        with open(source, "w", encoding="ascii") as f:
            f.write(".globl cuInit\n.type cuInit,%function\ncuInit: xor %edi,%edi\nret\n.size cuInit,.-cuInit\n")
        if subprocess.run(["cc", "-shared", "-nostdlib", "-o", library, source], capture_output=True, check=False).returncode:
            raise Skip("cc makes no library of x86-64 assembly here")
        site = sites(library)["cuInit"]
        equal((site["class"], site["chosen"], site["offset"]), ("single_step", False, 0))
        contains(site["reason"], "allow_single_step")
        site = sites(library, "--trace-allow-single-step", "yes")["cuInit"]
        equal((site["class"], site["chosen"], site["offset"]), ("single_step", True, 0))


def test_files_of_another_machine_are_read_with_what_is_known_of_it():
    with tempfile.TemporaryDirectory() as folder:
        out = command("probes", patched(folder, "ppc", [(18, struct.pack("<H", 21))]))
        equal((out.returncode, out.stdout), (1, ""))
        contains(out.stderr, "x86-64 or arm64")
        with open(PLAIN, "rb") as f:
            f.seek(18)
            machine, = struct.unpack("<H", f.read(2))
        other = {62: 183, 183: 62}[machine]
        path = patched(folder, "other", [(18, struct.pack("<H", other))])
        equal(json.loads(probes(path, "--json"))["measured"], False)
        contains(probes(path), "not measured, typical of kernels in general (the file is for another architecture)")


def test_what_is_no_such_file_is_refused_with_the_remedy():
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(f"{folder}/fifo")
        with open(f"{folder}/empty", "wb"):
            pass
        with open(f"{folder}/secret", "wb"):
            pass
        cut, other = patched(folder, "libcuda.so.535", []), f"{folder}/libcuda.so.1"
        os.truncate(cut, 1000)
        shutil.copy("/bin/sh", other)
        cases = [(cut, "the file is damaged"), (other, "no function of the CUDA driver is in it: a stub"), (folder, "a directory: name a file"), (f"{folder}/fifo", "name a regular file"), ("/dev/null", "name a regular file"),
                 (f"{folder}/empty", "no 64-bit ELF"), (__file__, "no 64-bit ELF"), (f"{folder}/none", "no such file"),
                 (patched(folder, "32", [(4, b"\1")]), "no 64-bit ELF"), ("/bin/sh", "no function of the CUDA driver or runtime is in it")]
        for path, remedy in cases:
            for flags in ((), ("--json",)):
                out = command("probes", *flags, path)
                assert "libcuda" not in path or "stripped" not in out.stderr, out.stderr
                equal((out.returncode, out.stdout), (1, ""), path)
                contains(out.stderr, f"gpusonde probes: {path}: ")
                contains(out.stderr, remedy)
        equal(command("probes").returncode, 2)
        out = command("probes", f"{folder}/\x1b[1m")
        equal(out.returncode, 1)
        assert "\x1b" not in out.stderr, out.stderr


def test_a_file_cut_short_anywhere_does_no_harm():
    with tempfile.TemporaryDirectory() as folder:
        with open(needed(PLAIN, "this build has no simulated driver"), "rb") as f:
            whole = f.read()
        for part in range(1, 16):
            path = f"{folder}/cut"
            with open(path, "wb") as f:
                f.write(whole[:len(whole) * part // 16])
            out = command("probes", "--json", path, env=environment())
            assert out.returncode in (0, 1), out
            assert out.returncode == 0 or out.stderr.startswith("gpusonde probes: "), out


if __name__ == "__main__":
    run()
