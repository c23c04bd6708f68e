# SPDX-License-Identifier: Apache-2.0
"""Unwind rules of real files, of either machine, are those that readelf has: the C library's, the C++ library's, Python's."""
import bisect
import glob
import os
import re
import shutil
import subprocess
import sys

from lib.e2e import BUILD, Skip, equal, run

NONE, END, SP, FP, SP_AT, FP_AT, PLT, SIGNAL = range(8)
SAME, AT_CFA, AT_FP = range(3)
NAMES = {62: ("rsp", "rbp"), 183: ("sp", "x29")} # by e_machine
FILES = ["/lib/*/libc.so.6", "/usr/lib/*/libstdc++.so.6", "/usr/local/cuda*/lib64/libcudart.so.1?", os.path.realpath(sys.executable)]


def rows_of(path):
    done = subprocess.run([f"{BUILD}/test/e2e/unwind_rows", path], capture_output=True, text=True, check=True)
    return [(int(pc, 16), *map(int, rest)) for pc, *rest in (line.split() for line in done.stdout.splitlines())]


def readelf_rows(path):
    """(address, {column: rule}, of a signal) of each function's rows; those of several words, as of registers in others, are left out."""
    columns, of_function, signal, letters = None, False, False, {}
    for line in subprocess.run(["readelf", "-wF", path], capture_output=True, text=True).stdout.splitlines():
        if " FDE " in line or " CIE" in line:
            of_function, columns = " FDE " in line, None
            common = re.match(r'(\w+) \w+ \w+ CIE "(\w*)"', line)
            if common:
                letters[common[1]] = common[2]
            else:
                of = re.search(r" cie=(\w+)", line)
                signal = of is not None and "S" in letters[of[1]]
        elif line.strip().startswith("LOC"):
            columns = line.split()[1:]
        else:
            found = re.match(r"([0-9a-f]{16}) (.*)$", line)
            values = found and found[2].split()
            if found and of_function and columns and len(values) == len(columns) and "(" not in line:
                yield int(found[1], 16), dict(zip(columns, values)), signal


def is_saved(saved, offset, want):
    return (saved, offset) == (AT_CFA, int(want[1:])) if want[0] == "c" else saved == SAME


def is_right(row, want, names, signal):
    _, kind, cfa, saved, fp, ra_saved, ra = row
    sp_name, fp_name = names
    if signal:
        return kind == SIGNAL
    if want.get("ra") == "u" and "ra" in want and kind == END:
        return True
    if want["CFA"] == "exp":
        return kind == NONE or kind in (SP_AT, FP_AT, PLT) and is_saved(ra_saved, ra, want.get("ra", "u"))
    reg, offset = re.fullmatch(r"(\w+)([+-]\d+)", want["CFA"]).groups()
    fp_wanted = want.get(fp_name, "u")
    if reg not in names or not re.fullmatch(r"c[+-]\d+|u|s", want.get("ra", "u")):
        return kind == NONE
    if fp_wanted in ("exp", "vexp"):
        return kind == NONE or saved == AT_FP
    if not re.fullmatch(r"c[+-]\d+|u|s", fp_wanted):
        return kind == NONE
    if kind != (SP if reg == sp_name else FP) or cfa != int(offset):
        return False
    return is_saved(saved, fp, fp_wanted) and is_saved(ra_saved, ra, want.get("ra", "u"))


def test_rows():
    if not shutil.which("readelf"):
        raise Skip("no readelf: install the package binutils")
    for path in sorted({os.path.realpath(p) for pattern in FILES for p in glob.glob(pattern)}):
        with open(path, "rb") as file:
            names = NAMES.get(int.from_bytes(file.read(20)[18:], "little"))
        if not names:
            continue
        rows, n, wrong = rows_of(path), 0, []
        pcs = [row[0] for row in rows]
        for pc, want, signal in readelf_rows(path):
            i = bisect.bisect(pcs, pc) - 1
            n += 1
            if i < 0 or not is_right(rows[i], want, names, signal):
                wrong.append((hex(pc), want, rows[max(i, 0)]))
        print(f"# {path}: {n} rows", flush=True)
        equal(wrong[:5], [], path)
        equal(n > 0 or not rows, True, f"{path}: rows in readelf's output")


if __name__ == "__main__":
    run()
