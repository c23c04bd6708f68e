#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The unit tests, cross-built for arm64, under qemu's user emulation: every case that fails here is one of ours.

    arm64_unit.py BUILD SOURCE quick|rest

Speaks TAP, a case for each of theirs. What the emulator cannot do a test finds out when it begins (test/unit/needs.h), and says so.
"""
import json
import os
import re
import shutil
import subprocess
import sys

from lib import arm64, rows

BUILD, SOURCE, PART = sys.argv[1:4]

PLACE = arm64.folder(BUILD)
EM_AARCH64 = 183
EMULATOR = "qemu-aarch64-static"
CASE = re.compile(r"(not )?ok\b\s*\d*\s*(?:- )?([^#]*)(?:#\s*SKIP\s*(.*))?$")
LOGS = f"arm64-{PART}"
# For a busy machine that emulates another.
PATIENCE = "10"


class Tap:
    """Lines are said as they are known; the plan comes at the end."""

    def __init__(self):
        self.n = self.passed = self.failed = self.skipped = 0

    def say(self, name, good=True, skip="", log=""):
        self.n += 1
        self.passed += good and not skip
        self.failed += not good
        self.skipped += bool(skip)
        print(f"{'ok' if good else 'not ok'} {self.n} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)
        for line in [] if good else log.splitlines()[-40:]:
            print(f"# {line}")


def why_not():
    """What is missing for running anything at all."""
    if not os.path.exists(f"{PLACE}/build.ninja"):
        return arm64.REMEDY
    if not os.path.isdir(f"{PLACE}/test/unit"):
        return f"{PLACE} was built without tests: make build-tests ARCH=arm64"
    if not shutil.which(EMULATOR):
        return f"no {EMULATOR}: make test-deps ARCH=arm64"
    return None


def programs(build):
    """What is no test: {relative path: path as built}"""
    return {os.path.relpath(target["filename"][0], os.path.realpath(build)): target for target in arm64.introspect(build, "targets")
            if target["type"] in ("executable", "shared library") and f"{os.sep}test{os.sep}" not in target["defined_in"]}


def machine(path):
    with open(path, "rb") as f:
        head = f.read(20)
    return int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None


def say_built(tap):
    """All that is built for this machine is built for arm64, and lies where it does here."""
    here, there = programs(BUILD), programs(PLACE)
    lacking = sorted(set(here) ^ set(there))
    wrong = [name for name in sorted(set(here) & set(there)) if machine(f"{PLACE}/{name}") != EM_AARCH64]
    good = not lacking and not wrong and len(there) > 10
    tap.say("laid out as the build folder, for arm64", good, log=f"only in one: {lacking}; of another machine: {wrong}; {len(there)} in all")
    if good:
        compiler = there["gpusonde"]["target_sources"][0]["compiler"][0]
        version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
        rows.say("machines", "arm64", built=f"{len(there)} programs and libraries, {os.path.basename(compiler)} {version}")


def is_script(test):
    return not test["cmd"][0].startswith(os.path.realpath(PLACE) + os.sep)


def run(tests):
    """{(folder, name): what Meson says of it}"""
    log = f"{PLACE}/meson-logs/testlog-{LOGS}.json"
    if os.path.exists(log):
        os.unlink(log)
    # By their names, of which other folders may have the same.
    wanted = {arm64.names(test)[0] for test in tests}
    others = {arm64.names(test)[0] for test in arm64.unit_tests(PLACE, lambda _: True)} - wanted
    command = ["meson", "test", "-C", PLACE, "--suite", "unit", *[f"--no-suite={other}" for other in sorted(others)], "--logbase", f"testlog-{LOGS}", "--timeout-multiplier", PATIENCE,
               *sorted({test["name"] for test in tests})]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False)
    if not os.path.exists(log):
        print("# " + done.stdout.replace("\n", "\n# "))
        return {}
    with open(log, encoding="utf-8", errors="replace") as f:
        results = [json.loads(line) for line in f if line.strip()]
    # "gpusonde:unit+base / fd", "gpusonde:unit+model+threads / publisher"
    words = ((r, *r["name"].split(" / ", 1)) for r in results)
    return {(suites.split("+")[1], name): r for r, suites, name in words if "+" in suites}


def say_cases(tap, name, result):
    """Of one test; cmocka reports a skipped case as "not ok # SKIP"."""
    output, errors = result.get("stdout") or "", result.get("stderr") or ""
    reason, failed, said = "", 0, 0
    for line in output.splitlines():
        if line.startswith("# SKIP"):
            reason = line.removeprefix("# SKIP").strip(": ")
        case = CASE.match(line)
        if not case:
            continue
        title, skip = case[2].strip(), case[3]
        if skip is not None:
            told = [x for x in errors.splitlines() if x.startswith("# SKIP")]
            tap.say(f"{name}: {title or skip}", skip=reason or (told[-1].removeprefix("# SKIP").strip(": ") if told else skip))
        else:
            tap.say(f"{name}: {title}", good=not case[1], log=output + errors if case[1] else "")
            failed += bool(case[1])
        said += 1
        reason = ""
    if result["returncode"] != 0 and not failed:
        tap.say(name, False, log=f"{result['result'].lower()}, status {result['returncode']}\n{output}{errors}")
    elif result["result"] == "SKIP" or not said:
        tap.say(name, skip=(output.strip().splitlines() or ["no case was run"])[-1].removeprefix("1..0 # SKIP "))


def say_row(tap, tests):
    """Only of what passed whole."""
    if not tap.failed:
        text = f"{len(tests)} programs: {tap.passed} cases pass, {tap.skipped} want what the emulator lacks"
        rows.say("machines", "arm64", **{PART: text})


def main():
    missing = why_not()
    if missing:
        print(f"1..0 # SKIP {missing}")
        return 0
    tap = Tap()
    tests = arm64.unit_tests(PLACE, lambda test: arm64.quick(test) == (PART == "quick"))
    if PART == "quick":
        say_built(tap)
    for test in filter(is_script, tests):
        tap.say(" ".join(arm64.names(test)), skip="a script of this machine's, which starts programs of its own kind")
    tests = [test for test in tests if not is_script(test)]
    results = run(tests)
    for name in map(arm64.names, tests):
        if name in results:
            say_cases(tap, " ".join(name), results[name])
        else:
            tap.say(" ".join(name), False, log="Meson did not run it")
    say_row(tap, tests)
    print(f"1..{tap.n}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
