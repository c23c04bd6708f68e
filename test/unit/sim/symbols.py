#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the simulated driver exports what NVIDIA's does.

    symbols.py LIBRARY LIBRARY_WITH_SYMBOLS_MISSING

Compared with NVIDIA's own header and with the real libraries; both are skipped, loudly, where they cannot be had. Speaks TAP.
"""
import glob
import os
import re
import subprocess
import sys

from nvidia_header import SkipTest, header_text

HERE = os.path.dirname(os.path.abspath(__file__))
SIM = os.path.join(HERE, "..", "..", "..", "sim")
OURS = {"gpusonde_sim_identity", "gpusonde_sim_advance"}


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TDBR"}


def listed(name):
    with open(os.path.join(SIM, name), encoding="utf-8") as f:
        return set(re.findall(r"^[A-Z]+\((nvml\w+)", f.read(), re.M))


def check_lists(library):
    implemented, unsupported = listed("functions.def"), listed("nvml_unsupported.def")
    if implemented & unsupported:
        return f"in both tables: {sorted(implemented & unsupported)}"
    return difference(implemented | unsupported | OURS, exported(library), "the tables and the library")


def difference(wanted, found, what):
    if wanted == found:
        return None
    return f"{what} differ: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}"


def check_header(library):
    declared = set(re.findall(r"\b(nvml[A-Z]\w*)\s*\(", re.sub(r"#define.*", "", header_text())))
    declared = {name for name in declared if not name.endswith("_t")}
    missing = declared - exported(library)
    return f"nvml.h declares what we do not export: {sorted(missing)}" if missing else None


def real_libraries():
    """Paths of three generations, 470, 535 and 550, from Debian's non-free component."""
    for suite in ("bullseye", "bookworm", "trixie"):
        fetch = subprocess.run([os.path.join(HERE, "fetch_debian"), suite, "non-free", "libnvidia-ml1"],
                               capture_output=True, text=True, check=False)
        if fetch.returncode != 0:
            raise SkipTest(fetch.stderr.strip())
        yield glob.glob(fetch.stdout.strip() + "/**/libnvidia-ml.so.[0-9]*.*", recursive=True)[0]


def check_real(library):
    for real in real_libraries():
        names = {name for name in exported(real) if name.startswith("nvml")}
        missing = names - exported(library)
        if len(names) < 200 or missing:
            return f"{os.path.basename(real)} exports {len(names)} functions, of which we lack {sorted(missing)}"
    return None


def check_missing(library, partial):
    gone = exported(library) - exported(partial)
    for name in ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlGpmSampleGet"]:
        if name not in gone:
            return f"{name} is still there"
    if "nvmlInit_v2" not in exported(partial) or len(gone) > 30:
        return f"too much is missing: {sorted(gone)}"
    return None


def check_soname(library):
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", out))
    if "[libnvidia-ml.so.1]" not in out:
        return "its soname is not libnvidia-ml.so.1"
    allowed = {"libc.so.6", "libm.so.6", "libyaml-0.so.2", "libasan.so.8", "libubsan.so.1"}
    return f"needs {sorted(needed - allowed)}" if needed - allowed else None


def main():
    library, partial = sys.argv[1:3]
    cases = [("tables are what it exports", lambda: check_lists(library)),
             ("all of NVIDIA's header", lambda: check_header(library)),
             ("all of the real libraries", lambda: check_real(library)),
             ("an old driver lacks symbols", lambda: check_missing(library, partial)),
             ("name and needs", lambda: check_soname(library))]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (name, check) in enumerate(cases, start=1):
        try:
            trouble = check()
        except SkipTest as why:
            print(f"ok {number} - {name} # SKIP {why}")
            continue
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {number} - {name}")
        if trouble:
            print(f"# {trouble}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
