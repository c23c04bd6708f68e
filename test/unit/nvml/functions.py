#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether every function of NVML is used (nvml.def) or not used for a reason (unused.def).

    functions.py BUILD SOURCE [--newest]

Compared with NVIDIA's header and with the real libraries of three generations. --newest: with the header of the newest release instead
of the one that this tree was written by, so that a new function of NVIDIA's is noticed. Skips, loudly, what cannot be had. Speaks TAP.
"""
import os
import re
import subprocess
import sys

from lib import checks, fetch, nvidia_header, rows

BUILD, SOURCE = sys.argv[1:3]
if "--newest" in sys.argv:
    os.environ["GPUSONDE_NVML_PACKAGE"] = "nvidia-nvml-dev"

GENERATIONS = ("470", "535", "550")


def table(name):
    with open(f"{SOURCE}/src/nvml/{name}", encoding="utf-8") as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


USED = [(kind, re.findall(r"nvml\w+", names)) for kind, names in
        re.findall(r"^NVML_(FUNCTION|LATER)\((.*?)\)$", table("nvml.def"), re.M | re.S)]
UNUSED = re.findall(r"^NVML_UNUSED\((nvml\w+), (\w+)\)$", table("unused.def"), re.M)
REASONS = dict(re.findall(r'^NVML_REASON\((\w+), "(.+?)"\)$', table("unused.def"), re.M | re.S))


def exported(name):
    """Of NVIDIA's library; its own version's name with it."""
    try:
        library = fetch.get(f"driver-{name}-amd64", f"{BUILD}/real")["libnvidia-ml.so.1"]
    except fetch.Unavailable as why:
        raise nvidia_header.SkipTest(str(why)) from None
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    found = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TWBD"}
    assert len(found) > 200, f"only {len(found)} functions were found in {library}"
    return found


def check_tables():
    used, unused = [n for _, names in USED for n in names], [n for n, _ in UNUSED]
    twice = {n for n in used + unused if (used + unused).count(n) > 1}
    wrong = {id for _, id in UNUSED} ^ set(REASONS)
    if len(used) < 100 or len(unused) < 200:
        return f"only {len(used)} and {len(unused)} functions were found in nvml.def and unused.def"
    if twice:
        return f"more than once in nvml.def and unused.def: {sorted(twice)}"
    return f"reasons without functions, or functions without: {sorted(wrong)}" if wrong else None


def everything():
    found = set(nvidia_header.functions())
    for name in GENERATIONS:
        found |= exported(name)
    return found


def check_all():
    ours, theirs = {n for _, names in USED for n in names} | {n for n, _ in UNUSED}, everything()
    if theirs - ours:
        return f"neither used (nvml.def) nor said why not (unused.def): {sorted(theirs - ours)}"
    return f"in no header and no library any more: {sorted(ours - theirs)}" if ours - theirs else None


def check_later():
    old = exported("470")
    wrong = [names[0] for kind, names in USED if (kind == "LATER") == any(n in old for n in names)]
    return f"NVML_LATER is for what driver 470 does not export: {wrong}" if wrong else None


def numbers(text):
    """{number: names} of fields."""
    found = {}
    for name, number in re.findall(r"^(?:#define )?(NVML_FI_\w+)[ =]+(\d+)", text, re.M):
        if name != "NVML_FI_MAX":
            found.setdefault(int(number), set()).add(name)
    return found


def fields_asked():
    """{number: driver from which on it is asked} of the rows of metrics.def, and of what fields.c asks besides."""
    with open(f"{SOURCE}/src/model/metrics.def", encoding="utf-8") as f:
        rows = re.findall(r"^GPU_METRIC_NVML\(\w+, \w+, \(\.field = (\d+)(?:, \.since = (\d+))?", f.read(), re.M)
    asked = {int(field): int(since or 0) for field, since in rows}
    with open(f"{SOURCE}/src/nvml/fields.c", encoding="utf-8") as f:
        names = set(re.findall(r"NVML_FI_DEV_\w+", f.read()))
    for number, called in numbers(nvidia_header.header_text()).items():
        if called & names:
            asked.setdefault(number, 0)
    return asked


def check_numbers():
    """NVIDIA gives numbers of fields new meanings: one that meant something else in a driver is not asked of it."""
    now, asked = numbers(nvidia_header.header_text()), fields_asked()
    if len(asked) < 60:
        return f"only {len(asked)} fields were found"
    for release in (*GENERATIONS, "580"):
        try:
            with open(fetch.get(f"nvml-bindings-{release}", f"{BUILD}/real")["pynvml.py"], encoding="utf-8") as f:
                then = numbers(f.read())
        except fetch.Unavailable as why:
            raise nvidia_header.SkipTest(str(why)) from None
        wrong = [f"{n} was {sorted(then[n])} and is {sorted(now[n])}" for n, since in sorted(asked.items())
                 if n in then and not then[n] & now[n] and since <= int(release)]
        if wrong:
            return f"driver {release}: {'; '.join(wrong)}"
    return None


def check_generation(name):
    """What we find in it: the row of the document."""
    theirs = exported(name)
    found = [names for _, names in USED if any(n in theirs for n in names)]
    older = [names for names in found if names[0] not in theirs]
    with open(f"{SOURCE}/sim/scenario/generations.def", encoding="utf-8") as f:
        version = re.search(rf'\.name = "{name}", \.driver = "([\d.]+)"', f.read())[1]
    rows.say("nvml", f"NVIDIA {version}",
             functions=f"{len(found)} of {len(USED)} that gpusonde asks for, {len(older)} by an older name; it exports {len(theirs)}")
    return None if len(found) > 80 else f"only {len(found)}"


def main():
    cases = [("no function is in two tables, no reason without one", check_tables), ("every function of NVML is in one", check_all)]
    if "--newest" not in sys.argv:
        cases += [("what came after driver 470 is marked", check_later),
                  ("fields mean what they do in every driver that is asked", check_numbers)]
        cases += [(f"{name} has what is used", lambda name=name: check_generation(name)) for name in GENERATIONS]
    return checks.run(cases)


if __name__ == "__main__":
    sys.exit(main())
