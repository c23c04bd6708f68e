#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libraries, without a GPU: every probed entry point has a cheap site, and every call is counted with its result.

    drivers.py BUILD SOURCE [words of names of tests]

What is called is not a list of ours: it is each function that gpusonde says it probes, so a new row in its table is tested here by itself.
Without a device they give an error each, of some ten different codes, always the same one; driver_calls keeps the truth.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [f"{sys.argv[2]}/test/e2e", f"{sys.argv[2]}/test/real"]
import counts # noqa: E402 pylint: disable=wrong-import-position
import e2e # noqa: E402 pylint: disable=wrong-import-position
import fetch # noqa: E402 pylint: disable=wrong-import-position

CALLS = f"{e2e.BUILD}/test/real/driver_calls"
TOOLKIT = "/usr/local/cuda/lib64/libcudart.so"
TRACE_S = 300 # a whole traced run, on a busy machine

NOT_INITIALIZED, NO_DEVICE, INSUFFICIENT_DRIVER = 3, 100, 35


@functools.lru_cache(maxsize=None)
def real(name, file):
    try:
        return fetch.get(name, f"{e2e.BUILD}/real")[file]
    except fetch.Unavailable as why:
        raise e2e.Skip(str(why)) from None


@functools.lru_cache(maxsize=None)
def sites(path):
    done = e2e.command("probes", path, "--json")
    e2e.equal(done.returncode, 0, f"exit status of gpusonde probes {path}, which says {done.stderr}")
    found = json.loads(done.stdout)["sites"]
    assert found, f"{path}: not one site"
    return found


def check_sites(path, expected_offset=None):
    """None refused, none single-stepped; @expected_offset(site) says where it should be."""
    bad = [s for s in sites(path) if not s["chosen"] or s["class"] not in ("emulated", "optimised")]
    assert not bad, f"{len(bad)} of {len(sites(path))} entry points have no cheap site: {bad[:5]}"
    names = [s["symbol"] for s in sites(path)]
    e2e.equal(len(names), len(set(names)), "names, each once")
    for wanted in ("cuInit", "cuMemAlloc_v2", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"):
        assert wanted in names, f"{wanted} is not probed"
    if expected_offset is not None:
        off = [s for s in sites(path) if s["offset"] != expected_offset]
        assert not off, f"thunks whose site is not {expected_offset} bytes on: {off[:5]}"


def need_tracing():
    if os.geteuid() != 0:
        raise e2e.Skip("tracing needs root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise e2e.Skip("this kernel has no BTF: /sys/kernel/btf/vmlinux is missing")


def traced(library, plan, folder):
    """Calls what @plan says, traced: (the truth, the document of gpusonde trace)."""
    with tempfile.TemporaryDirectory() as tmp:
        env = e2e.environment(LD_LIBRARY_PATH=folder)
        done = subprocess.run([e2e.GPUSONDE, "trace", "--json", "--", CALLS, library, f"{tmp}/truth"], env=env, text=True,
                              input=counts.lines(plan), capture_output=True, timeout=TRACE_S, check=False)
        e2e.equal(done.returncode, 0, f"exit status of the traced command, which says {done.stderr[-2000:]}")
        with open(f"{tmp}/truth", encoding="ascii") as f:
            truth = json.load(f)
    return truth, json.loads(done.stdout)


def check_driver(version):
    need_tracing()
    path = real(f"driver-{version}-amd64", "libcuda.so.1")
    names = [n for n in counts.callable_names(sites(path)) if n != "cuInit"]
    plan = [(name, 1 + i % 5) for i, name in enumerate(names)]
    plan += [("cuInit", 7)] + [(name, 1 + i % 3) for i, name in enumerate(reversed(names))] + [("cuCtxSynchronize", 10000)]
    wanted = counts.check(*traced(path, plan, os.path.dirname(path)))
    e2e.equal(wanted["cuInit"], [7, {str(NO_DEVICE): 7}], "cuInit's results")
    for name in ("cuMemAlloc_v2", "cuLaunchKernel", "cuCtxSynchronize"): # after cuInit has failed some give 400 instead
        e2e.contains(wanted[name][1], str(NOT_INITIALIZED))


def check_runtime(path, error):
    """The runtime calls the driver in each of these; what counts is the name that the program called."""
    need_tracing()
    driver = real("driver-550-amd64", "libcuda.so.1")
    plan = [(name, 1 + i % 5) for i, name in enumerate(counts.callable_names(sites(path)))]
    wanted = counts.check(*traced(path, plan, os.path.dirname(driver)))
    for name in ("cudaMalloc", "cudaLaunchKernel", "cudaMemcpy", "cudaDeviceSynchronize"):
        e2e.equal(list(wanted[name][1]), [str(error)], f"{name}'s results")


def test_driver_470_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-470-amd64", "libcuda.so.1"), expected_offset=10)


def test_driver_535_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-535-amd64", "libcuda.so.1"), expected_offset=10)


def test_driver_550_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-550-amd64", "libcuda.so.1"), expected_offset=10)


def test_arm64_driver_470_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-470-arm64", "libcuda.so.1"))


def test_arm64_driver_535_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-535-arm64", "libcuda.so.1"))


def test_arm64_driver_550_has_a_cheap_site_for_every_entry_point():
    check_sites(real("driver-550-arm64", "libcuda.so.1"))


def test_driver_470_counts_every_call_and_code():
    check_driver("470")


def test_driver_535_counts_every_call_and_code():
    check_driver("535")


def test_driver_550_counts_every_call_and_code():
    check_driver("550")


def test_runtime_11_8_over_driver_550_counts_outer_calls_once():
    check_runtime(real("runtime-11.8", "libcudart.so.11.0"), NO_DEVICE)


def test_runtime_12_4_over_driver_550_counts_outer_calls_once():
    check_runtime(real("runtime-12.4", "libcudart.so.12"), NO_DEVICE)


def test_runtime_12_9_over_driver_550_counts_outer_calls_once():
    check_runtime(real("runtime-12.9", "libcudart.so.12"), NO_DEVICE)


def test_runtime_13_over_driver_550_counts_outer_calls_once():
    check_runtime(real("runtime-13", "libcudart.so.13"), INSUFFICIENT_DRIVER)


def test_toolkit_runtime_over_driver_550_counts_outer_calls_once():
    if not os.path.exists(TOOLKIT):
        raise e2e.Skip(f"no CUDA toolkit here: {TOOLKIT}")
    check_runtime(os.path.realpath(TOOLKIT), INSUFFICIENT_DRIVER)


if __name__ == "__main__":
    e2e.run()
