#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What to build for the tests of some suites, as ninja names it, and no more: goals.py BUILD SUITE...

A suite that is a folder of test/ has all that is made there, too: fuzzers are programs, and no tests, where they fuzz.
"""
import json
import os
import subprocess
import sys


def introspect(place, what):
    done = subprocess.run(["meson", "introspect", "--" + what, place], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def files_of(place, wanted):
    """Of the targets for which wanted(target) is true."""
    return sorted({os.path.relpath(t["filename"][0], place) for t in introspect(place, "targets") if wanted(t)})


def main():
    place, suites = os.path.abspath(sys.argv[1]), sys.argv[2:]
    ids = {i for test in introspect(place, "tests") if any(s.split(":")[-1] in suites for s in test["suite"]) for i in test["depends"]}
    folders = [f"/test/{suite}/meson.build" for suite in suites]
    print("\n".join(files_of(place, lambda t: t["id"] in ids or (t["build_by_default"] and t["defined_in"].endswith(tuple(folders))))))


if __name__ == "__main__":
    main()
