#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the version script of a library that exports what one generation of the driver did.

    exports.py GENERATION FUNCTIONS.DEF GENERATIONS.DEF UNSUPPORTED.DEF
"""
import re
import sys

OURS = ("gpusonde_sim_identity", "gpusonde_sim_advance")


def read(paths):
    tables = ""
    for path in paths:
        with open(path, encoding="utf-8") as f:
            tables += re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return tables


def exported(tables, wanted):
    """Names, of the generation of this id."""
    order = re.findall(r"^GENERATION\((\w+),", tables, re.M)
    gone = dict(reversed(found) for found in re.findall(r"^GONE\((\w+), (nvml\w+)\)", tables, re.M))
    since = re.findall(r"^(?:FUNCTION|UNSUPPORTED)\((nvml\w+),(?: \w+,)? (\w+)\)", tables, re.M)
    now = order.index(wanted)
    return [name for name, id in since
            if order.index(id) <= now and (name not in gone or now < order.index(gone[name]))]


def main():
    names = exported(read(sys.argv[2:]), sys.argv[1])
    print("{\nglobal:\n" + "".join(f"\t{name};\n" for name in [*names, *OURS]) + "local:\n\t*;\n};")


if __name__ == "__main__":
    main()
