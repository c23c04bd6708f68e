#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""page_text.py FILE HEAD TAIL: writes what is before and after @DATA@ in an HTML page as C string literals."""
import json
import sys

path, *outputs = sys.argv[1:]
with open(path, encoding="ascii") as f:
    parts = f.read().split("@DATA@\n")
for part, output in zip(parts, outputs, strict=True):
    with open(output, "w", encoding="ascii") as f:
        for line in part.splitlines(keepends=True):
            f.write(json.dumps(line) + "\n")
