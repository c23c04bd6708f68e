# SPDX-License-Identifier: Apache-2.0
"""What was cross-built for arm64 beside a build folder, for the tests of it.

    arm64.py BUILD quick|all    builds there what those tests want, for the Makefile
"""
import os
import subprocess
import sys

from lib.goals import files_of, introspect

# Folders of test/unit whose tests take next to no time in the emulator; a test of another folder by name, where it is about this machine.
QUICK = ["base", "cmd", "cuda", "elf", "kmsg", "model", "proc", "sim"]
QUICK_TESTS = [("trace", "site"), ("trace", "probes"), ("trace", "ring"), ("trace", "sums"), ("cubin", "arch"), ("cubin", "read")]
REMEDY = "nothing was cross-built for arm64: make test-deps ARCH=arm64 installs what it takes, and make test builds it then"


def folder(build):
    """Where it is, whether or not anything is there: build-arm64 beside build, unless $GPUSONDE_ARM64_BUILD names another place."""
    return os.environ.get("GPUSONDE_ARM64_BUILD") or build.rstrip("/") + "-arm64"


def names(test):
    """(folder, name) of a unit test; None for another."""
    suites = [suite.split(":")[-1] for suite in test["suite"]]
    return (suites[1], test["name"]) if suites[0] == "unit" else None


def quick(test):
    return names(test)[0] in QUICK or names(test) in QUICK_TESTS


def unit_tests(place, wanted):
    return [test for test in introspect(place, "tests") if names(test) and wanted(test)]


def targets(place, tests):
    """The files that @tests want, as ninja names them; and the programs, which other tests start."""
    ids = {i for test in tests for i in test["depends"]}
    return files_of(place, lambda t: t["id"] in ids or "/test/kernels/" in t["defined_in"] or
                    t["type"] in ("executable", "shared library") and "/test/unit" not in t["defined_in"] and "/test/fuzz" not in t["defined_in"])


def main():
    place = folder(sys.argv[1])
    goals = targets(place, unit_tests(place, quick)) if sys.argv[2] == "quick" else []
    return subprocess.run(["ninja", "-C", place, *goals], stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
