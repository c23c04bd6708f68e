#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libcuda, without a GPU: every probed entry point has a cheap site, and every call is counted with its result.

    drivers.py BUILD SOURCE [words of names of tests]

What is called is not a list of ours: it is each function that gpusonde says it probes, so a new row in its table is tested here by itself.
Without a device they give an error each, of some ten different codes, always the same one; driver_calls keeps the truth.
"""
import collections
import functools
import os
import re

from lib import counts, e2e, rows

import real

MACHINES = {"amd64": "x86-64", "arm64": "arm64"}
NOT_INITIALIZED, NO_DEVICE = 3, 100
NONE, LEGACY, PER_THREAD = 0, 1, 2      # flags of cuGetProcAddress
TWIN = re.compile("_pt(sz|ds)$")


def check_sites(version, arch, expected_offset):
    path = real.driver(version, arch)
    names = real.cheap(path)
    for wanted in ("cuInit", "cuMemAlloc_v2", "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"):
        assert wanted in names, f"{wanted} is not probed"
    found = collections.Counter((s["instruction"].split()[0], s["offset"]) for s in real.sites(path))
    if expected_offset is not None:
        e2e.equal({offset for _, offset in found}, {expected_offset}, "bytes from the thunks' entry to their sites")
    text = ", ".join(f"{n} at {name}, {offset} bytes on" for (name, offset), n in found.most_common())
    rows.say("libcuda", f"{version} {MACHINES[arch]}", functions=str(len(names)), site=text)


def check_calls(version):
    path = real.driver(version)
    names = [n for n in counts.callable_names(real.sites(path)) if n != "cuInit"]
    plan = [(name, 1 + i % 5) for i, name in enumerate(names)]
    plan += [("cuInit", 7)] + [(name, 1 + i % 3) for i, name in enumerate(reversed(names))] + [("cuCtxSynchronize", 10000)]
    wanted = counts.check(*real.traced([real.CALLS, path], plan=counts.lines(plan))[:2])
    e2e.equal(wanted["cuInit"], [7, {str(NO_DEVICE): 7}], "cuInit's results")
    for name in ("cuMemAlloc_v2", "cuLaunchKernel", "cuCtxSynchronize"): # after cuInit has failed some give 400 instead
        e2e.contains(wanted[name][1], str(NOT_INITIALIZED))
    rows.say("libcuda", f"{version} x86-64", counted=real.exact(wanted))


def base_name(symbol):
    """As programs ask for it: cuMemcpyHtoD for cuMemcpyHtoD_v2_ptds."""
    return re.sub(r"_v\d+$", "", TWIN.sub("", symbol))


def check_lookups(path, **env):
    """What cuGetProcAddress gives is what is exported, so it is probed, however it is asked for; the truth of all that was called."""
    names = counts.callable_names(real.sites(path))
    bases = sorted({base_name(n) for n in names} - {"cuInit"})
    plan = "".join(f"{base} {1 + i % 3} {function} {version} {flags}\n" for i, base in enumerate(bases)
                   for function, version in (("cuGetProcAddress", 11030), ("cuGetProcAddress_v2", 12000), ("cuGetProcAddress_v2", 13000))
                   for flags in (NONE, LEGACY, PER_THREAD))
    truth, document, _ = real.traced([real.CALLS, path], plan=plan + "cuInit 2 cuGetProcAddress_v2 12000 0\n", **env)
    found = [look for look in truth["lookups"] if look["api"]]
    apis = {look["api"] for look in found}
    assert "not exported" not in apis, f"given, but not exported: {[look for look in found if look['api'] == 'not exported'][:5]}"
    # By its version it may be a form that has no row: those have names of their own, which are told, never others'.
    unseen = apis - set(names)
    assert len(unseen) < 10, f"forms that are not probed: {unseen}"
    for look in found:
        e2e.equal(base_name(look["api"]), look["name"], "the name that was asked for")
        twins = [n for n in names if TWIN.search(n) and base_name(n) == look["name"]]
        e2e.equal(bool(TWIN.search(look["api"])), bool(twins) and look["flags"] == PER_THREAD, f"{look}: has a twin for threads' own streams")
    wanted = counts.check(truth, document, unseen)
    missed = set(bases) - {look["name"] for look in found}
    assert len(missed) < len(bases) / 20, f"not found by any version: {missed}"
    return wanted, unseen


def check_real_lookups(version):
    wanted, unseen = check_lookups(real.driver(version))
    rows.say("libcuda", f"{version} x86-64", lookups=real.exact(wanted) + (f"; not probed: {', '.join(sorted(unseen))}" if unseen else ""))


def check_simulated_lookups(library):
    """Whose functions would believe their arguments: each but cuGet... fails before it looks."""
    path = f"{real.SIMULATED}/{library}"
    if not os.path.exists(path):
        raise e2e.Skip(f"this build has no {path}")
    wanted, unseen = check_lookups(path, GPUSONDE_SIM_SCENARIO=real.SCENARIO, GPUSONDE_SIM_CUDA_FAIL="cu[!G]*:code=201,cuGr*:code=201")
    e2e.equal({code for _, errors in wanted.values() for code in errors} - {"201"}, set(), "results")
    e2e.equal(unseen, set(), "functions that are not probed")


TESTS = {}
for generation in ("470", "535", "550"):
    for architecture, thunk in (("amd64", 10), ("arm64", None)):
        TESTS[f"{architecture}_driver_{generation}_has_a_cheap_site_for_every_entry_point"] = (check_sites, generation, architecture, thunk)
for generation in ("470", "535", "550"):
    TESTS[f"driver_{generation}_counts_every_call_and_code"] = (check_calls, generation)
for generation in ("470", "535", "550"):
    TESTS[f"driver_{generation}_counts_what_is_called_by_pointers"] = (check_real_lookups, generation)
for kind in ("libcuda.so.1", "thunk/libcuda.so.1"):
    TESTS[f"simulated_{kind}_counts_what_is_called_by_pointers"] = (check_simulated_lookups, kind)
globals().update({f"test_{name}": functools.partial(*what) for name, what in TESTS.items()})


if __name__ == "__main__":
    e2e.run()
