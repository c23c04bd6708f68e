#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/compatibility.md from what tests said in the last run of a build folder, and keeps what earlier runs saw.

    record.py BUILD SOURCE [--check]

seen.json, beside this, holds each cell with the day on which it was seen last, and the test that saw it. --check writes nothing, and speaks TAP: is the document
what seen.json says?
"""
import datetime
import json
import os
import sys

from lib import rows, tables

BUILD, SOURCE = sys.argv[1:3]
SEEN = f"{SOURCE}/test/matrix/seen.json"
DOCUMENT = f"{SOURCE}/docs/compatibility.md"
HEAD = """# Where gpusonde was seen to work

Written by the tests themselves (`make test-matrix`): a cell is there because a test saw it, on the day that the last column names. What could not be fetched or run
on that day keeps the day before; what failed is gone.
"""


class Outcome:
    """Of one test of the last run."""

    def __init__(self, test):
        self.name, output = test["name"].removeprefix("gpusonde:"), test.get("stdout") or ""
        self.rows = rows.said(output)
        self.skipped = test["result"] != "FAIL" and "# SKIP" in output or test["result"] == "SKIP"


def outcomes():
    with open(f"{BUILD}/meson-logs/testlog.json", encoding="utf-8", errors="replace") as f:
        return [Outcome(json.loads(line)) for line in f if line.strip()]


def load():
    """{table: {row: {column: [text, day, test]}}}"""
    if not os.path.exists(SEEN):
        return {}
    with open(SEEN, encoding="utf-8") as f:
        return json.load(f)


def forget(seen, test):
    """What @test said before."""
    for found in seen.values():
        for row, cells in list(found.items()):
            found[row] = {column: cell for column, cell in cells.items() if cell[2] != test}
            if not found[row]:
                del found[row]


def add(seen, outcome, day):
    if not outcome.skipped:
        forget(seen, outcome.name)
    for row in outcome.rows:
        cells = seen.setdefault(row["table"], {}).setdefault(row["row"], {})
        cells.update({column: [text, day, outcome.name] for column, text in row["cells"].items()})


def days(cells):
    """One day, or from when to when."""
    found = sorted({day for _, day, _ in cells.values()})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def order(name):
    """5.10 before 6.1 before 6.12."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.replace(".", " ").replace("-", " ").split()]


def section(table, found):
    columns = [c for c in table.columns if any(c in cells for cells in found.values())]
    lines = [f"## {table.title}", "", table.text, "",
             "| " + " | ".join([table.first, *(table.columns[c] for c in columns), "seen"]) + " |",
             "| " + " | ".join(["---"] * (len(columns) + 2)) + " |"]
    for name in sorted(found, key=order):
        cells = found[name]
        lines.append("| " + " | ".join([cell(name), *(cell(cells[c][0]) if c in cells else "" for c in columns), days(cells)]) + " |")
    return "\n".join(lines) + "\n"


def document(seen):
    return "\n".join([HEAD] + [section(table, seen[name]) for name, table in tables.TABLES.items() if seen.get(name)])


def check(text):
    with open(DOCUMENT, encoding="utf-8") as f:
        same = f.read() == text
    print("1..1")
    print(f"{'ok' if same else 'not ok'} 1 - docs/compatibility.md is what test/matrix/seen.json says")
    return 0 if same else 1


def main():
    seen = load()
    if "--check" in sys.argv:
        return check(document(seen))
    day = datetime.date.today().isoformat()
    for outcome in outcomes():
        add(seen, outcome, day)
    with open(SEEN, "w", encoding="utf-8") as f:
        json.dump(seen, f, indent=1, sort_keys=True)
        f.write("\n")
    with open(DOCUMENT, "w", encoding="utf-8") as f:
        f.write(document(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
