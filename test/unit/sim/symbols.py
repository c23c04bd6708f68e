#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the simulated driver, and that of each generation, offers what NVIDIA's does.

    symbols.py BUILD SOURCE

Compared with NVIDIA's own header, with the real libraries and with NVIDIA's bindings of each generation; skipped, loudly, where
they cannot be had. Speaks TAP.
"""
import re
import struct
import subprocess
import sys

from lib import checks, fetch, nvidia_header
from lib.nvidia_header import SkipTest

BUILD, SOURCE = sys.argv[1:3]

SIM = f"{SOURCE}/sim/nvml"
PLAIN = f"{BUILD}/sim/libnvidia-ml.so.1"
OURS = {"gpusonde_sim_identity", "gpusonde_sim_advance"}
GENERATIONS_DEF = f"{SOURCE}/sim/scenario/generations.def"
GENERATIONS = ("470", "535", "550")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TDBRW"}
    return {name for name in names if not name.startswith("__odr_asan_gen_")} # clang's address sanitizer adds one for each variable


def real(thing, file):
    try:
        return fetch.get(thing, f"{BUILD}/real")[file]
    except fetch.Unavailable as why:
        raise SkipTest(str(why)) from None


def listed(name):
    return set(re.findall(r"^[A-Z]+\((nvml\w+)", read(f"{SIM}/{name}"), re.M))


def check_lists():
    implemented, unsupported = listed("functions.def"), listed("nvml_unsupported.def")
    if implemented & unsupported:
        return f"in both tables: {sorted(implemented & unsupported)}"
    return difference(implemented | unsupported | OURS, exported(PLAIN), "the tables and the library")


def difference(wanted, found, what):
    if wanted == found:
        return None
    return f"{what} differ: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}"


def check_header():
    missing = nvidia_header.functions() - exported(PLAIN)
    return f"nvml.h declares what we do not export: {sorted(missing)}" if missing else None


def check_generation(name):
    """The library of a generation exports what the real one does, no name more and none less, on both machines."""
    ours = exported(f"{BUILD}/sim/driver-{name}/libnvidia-ml.so.1") - OURS
    for machine in ("amd64", "arm64"):
        theirs = exported(real(f"driver-{name}-{machine}", "libnvidia-ml.so.1"))
        if len(theirs) < 200:
            return f"{machine}: only {len(theirs)} names were found in NVIDIA's library"
        trouble = difference(theirs, ours, f"NVIDIA's {machine} library of {name} and ours")
        if trouble:
            return trouble
    return None


def generation(name):
    """The numbers of a row of generations.def."""
    row = re.search(rf'^GENERATION\((\w+), \.name = "{name}",(.*?)\)$', read(GENERATIONS_DEF), re.M | re.S)
    return row[1], dict(re.findall(r"\.(\w+) = \"?([\w.]+)", row[2]))


def constant(text, name):
    found = re.search(rf"^{name}\s*=\s*(\d+)", text, re.M)
    return int(found[1]) if found else 0


def their_fields(name):
    return {int(n) for n in re.findall(r"^NVML_FI_DEV_\w+\s*=\s*(\d+)", read(real(f"nvml-bindings-{name}", "pynvml.py")), re.M)}


def check_fields(name):
    """The bindings of 535 are older than its library, which took over some ids of 550's."""
    table = read(GENERATIONS_DEF)
    order = re.findall(r"^GENERATION\((\w+),", table, re.M)
    now = order.index(generation(name)[0])
    ours = {n for id, first, last in re.findall(r"^FIELDS\((\w+), (\d+), (\d+)\)", table, re.M)
            if order.index(id) <= now for n in range(int(first), int(last) + 1)}
    theirs, most = their_fields(name), their_fields("550" if name == "535" else name)
    if theirs <= ours <= most:
        return None
    return f"fields: we lack {sorted(theirs - ours)}, and have too many {sorted(ours - most)}"


def check_bindings(name):
    """How many fields, samples and metrics a generation knows, as NVIDIA's bindings of that time say, and its version."""
    text = read(real(f"nvml-bindings-{name}", "pynvml.py"))
    row = generation(name)[1]
    trouble = check_fields(name)
    if trouble:
        return trouble
    found = {"samplings": constant(text, "NVML_SAMPLINGTYPE_COUNT"),
             "gpm_metrics": constant(text, "NVML_GPM_METRIC_MAX")}
    ours = {key: int(row[key]) for key in found}
    if ours != found:
        return f"generations.def says {ours}, NVIDIA's bindings {found}"
    with open(real(f"driver-{name}-amd64", "libnvidia-ml.so.1"), "rb") as f:
        code = f.read()
    for version in (row["driver"], row["nvml"]):
        if version.encode() + b"\0" not in code:
            return f"NVIDIA's library of {name} does not name the version {version}"
    return None


def version_words():
    """{(function, version): word} of structs whose version is not the first: small words lie in code for other reasons, too."""
    found = {}
    for function, struct_name, version in (("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2", 2),
                                           ("nvmlDeviceGetGpuFabricInfoV", "nvmlGpuFabricInfo_v2", 2),
                                           ("nvmlDeviceGetGpuFabricInfoV", "nvmlGpuFabricInfo_v3", 3),
                                           ("nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlGpuInstanceProfileInfo_v2", 2),
                                           ("nvmlDeviceGetPlatformInfo", "nvmlPlatformInfo_v2", 2)):
        found[function, version] = nvidia_header.value(struct_name)
    return found


def knows(order, now, function, version):
    """Whether a generation takes this version of the function's struct, by our tables."""
    tables = read(f"{SIM}/functions.def") + read(GENERATIONS_DEF)
    since = re.search(rf"^FUNCTION\({function}, \w+, (\w+)\)", tables, re.M)[1]
    if order.index(since) > order.index(now):
        return False
    row = re.search(rf"^STRUCT_VERSION\({function}, {version}, (\w+),", tables, re.M)
    return not row or order.index(row[1]) <= order.index(now)


def check_versions(name):
    """The version words of later structs are in the code of exactly the libraries that we say know them."""
    order = re.findall(r"^GENERATION\((\w+),", read(GENERATIONS_DEF), re.M)
    with open(real(f"driver-{name}-amd64", "libnvidia-ml.so.1"), "rb") as f:
        code = f.read()
    for (function, version), word in version_words().items():
        ours, theirs = knows(order, generation(name)[0], function, version), struct.pack("<I", word) in code
        # 535 has the code of the fabric's version 2, but not yet the function that takes it.
        if ours != theirs and not (function not in exported(real(f"driver-{name}-amd64", "libnvidia-ml.so.1")) and not ours):
            return f"{function}, version {version} ({word:#x}): we say {ours}, NVIDIA's library of {name} {theirs}"
    return None


def check_soname():
    out = subprocess.run(["readelf", "-d", PLAIN], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", out))
    if "[libnvidia-ml.so.1]" not in out:
        return "its soname is not libnvidia-ml.so.1"
    allowed = {"libc.so.6", "libm.so.6", "libyaml-0.so.2", "libasan.so.8", "libubsan.so.1"}
    return f"needs {sorted(needed - allowed)}" if needed - allowed else None


def main():
    cases = [("tables are what it exports", check_lists), ("all of NVIDIA's header", check_header), ("name and needs", check_soname)]
    for name in GENERATIONS:
        cases += [(f"{name} exports what NVIDIA's library does", lambda name=name: check_generation(name)),
                  (f"{name} knows the fields, samples and metrics of its time", lambda name=name: check_bindings(name)),
                  (f"{name} knows the versions of structs that are in NVIDIA's code", lambda name=name: check_versions(name))]
    return checks.run(cases)


if __name__ == "__main__":
    sys.exit(main())
