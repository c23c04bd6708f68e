#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME FILE: prints a C header that defines NAME as the file's bytes, aligned for ELF."""
import sys

name, path = sys.argv[1:]
with open(path, "rb") as f:
    data = f.read()
print("// SPDX-License-Identifier: Apache-2.0")
print("#pragma once\n")
print(f"static const unsigned char {name}[{len(data)}] __attribute__((aligned(8))) = {{")
for i in range(0, len(data), 16):
    print("\t" + " ".join(f"{byte}," for byte in data[i:i + 16]))
print("};")
