#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""assets.py FOLDER OUTPUT FILE...: the files of the web page, compressed, as rows ASSET(path, type, tag, plain bytes, bytes, data)."""
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

folder, output, *paths = sys.argv[1:]
with open(output, "w", encoding="ascii") as out:
    for path in sorted(paths):
        with open(path, "rb") as f:
            plain = f.read()
        name = os.path.relpath(path, folder)
        # The time of day is left out, so that the same files always make the same program.
        packed = gzip.compress(plain, 9, mtime=0)
        tag = hashlib.sha256(plain).hexdigest()[:16]
        mime = f"{TYPES[os.path.splitext(name)[1]]}; charset=utf-8"
        data = "".join(f"\\{byte:03o}" for byte in packed)
        out.write(f'ASSET("/page/{name}", "{mime}", "\\"{tag}\\"", {len(plain)}, {len(packed)}, "{data}")\n')
