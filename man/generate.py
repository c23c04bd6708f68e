#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what is generated from gpusonde's own tables into the man pages and docs/configuration.md and docs/capabilities.md, or checks that it is there.

    generate.py GPUSONDE SOURCE_ROOT [--check]

In a man page a generated part stands between its BEGIN and END comments. --check speaks TAP and changes nothing.
"""
import os
import re
import subprocess
import sys

PART = re.compile(r'(?P<begin>\.\\" BEGIN GENERATED (?P<name>\S+)\n).*?(?P<end>\.\\" END GENERATED\n)', re.S)


def part(gpusonde, name):
    return subprocess.run([gpusonde, "help", "--generate", name], check=True, capture_output=True, text=True).stdout


def wanted(gpusonde, root):
    """path -> what it should hold"""
    files = {f"docs/{name}": part(gpusonde, name) for name in ("configuration.md", "capabilities.md")}
    for path in ("man/gpusonde.8", "man/gpusonde.yaml.5"):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            files[path] = PART.sub(lambda m: m["begin"] + part(gpusonde, m["name"]) + m["end"], f.read())
    return files


def is_current(path, text):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read() == text
    except FileNotFoundError:
        return False


def main():
    gpusonde, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    check = "--check" in sys.argv
    files = wanted(gpusonde, root)
    bad = 0
    if check:
        print(f"1..{len(files)}")
    for n, (path, text) in enumerate(files.items(), start=1):
        current = is_current(os.path.join(root, path), text)
        if check:
            bad += not current
            print(f"{'ok' if current else 'not ok'} {n} - {path} is what the tables say")
            if not current:
                print(f"# {path}: run ninja -C build docs")
        elif not current:
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
