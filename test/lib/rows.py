# SPDX-License-Identifier: Apache-2.0
"""How a test says what it has seen of a combination: a row of docs/compatibility.md.

A row is said when what it claims has been seen to hold, and not before. tables.py has the tables; record.py collects the rows.
"""
import json

from lib import tables

MARK = "# row "


def say(table, row, **cells):
    """@cells: column -> text. The row may be said in parts, by several tests."""
    columns = tables.TABLES[table].columns
    unknown = set(cells) - set(columns)
    assert not unknown, f"table {table} has no columns {sorted(unknown)}, but {list(columns)}"
    print(MARK + json.dumps({"table": table, "row": row, "cells": cells}), flush=True)


def said(output):
    """The rows in what a test printed."""
    return [json.loads(line[len(MARK):]) for line in output.split("\n") if line.startswith(MARK)]
