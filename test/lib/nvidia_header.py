# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own nvml.h, for tests that compare: from GPUSONDE_NVML_HEADER, the cache, or PyPI.

GPUSONDE_NVML_PACKAGE names another package than the one that this tree was written by; without a version it is the newest, and is not
kept.
"""
import atexit
import contextlib
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "nvidia-nvml-dev==13.5.37"


KEPT = contextlib.ExitStack()   # until the program ends
atexit.register(KEPT.close)


class SkipTest(Exception):
    """Why something cannot be tested here."""


@functools.lru_cache(maxsize=None)
def header_path():
    given = os.environ.get("GPUSONDE_NVML_HEADER")
    if given:
        return given
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    package = os.environ.get("GPUSONDE_NVML_PACKAGE", PACKAGE)
    folder = os.path.join(cache, "gpusonde-test", package.replace("==", "-"))
    if "==" not in package:
        folder = KEPT.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(folder, "nvml.h")
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    pip = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--timeout", "20",
                          "--retries", "1", "-d", folder, package], capture_output=True, text=True, check=False)
    wheels = glob.glob(os.path.join(folder, "*.whl"))
    if pip.returncode != 0 or not wheels:
        raise SkipTest(f"NVIDIA's nvml.h cannot be had: {package} from PyPI: "
                       f"{(pip.stderr.strip().splitlines() or ['no output'])[-1]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        member = next(name for name in wheel.namelist() if name.endswith("/nvml.h"))
        with open(path + ".part", "wb") as out:
            out.write(wheel.read(member))
    os.replace(path + ".part", path)
    os.unlink(wheels[0])
    return path


def header_text():
    """Without its comments."""
    with open(header_path(), encoding="utf-8") as f:
        text = f.read()
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S))


@functools.lru_cache(maxsize=None)
def functions():
    """Names of all functions that it declares."""
    declared = re.findall(r"\b(nvml[A-Z]\w*)\s*\(", re.sub(r"#define.*", "", header_text()))
    return {name for name in declared if not name.endswith("_t")}


def value(expression):
    """What a compiler makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/value.c", "w", encoding="utf-8") as f:
            f.write(f'#include <stdio.h>\n#include "{header_path()}"\nint main(void) {{ printf("%u", (unsigned)({expression})); return 0; }}\n')
        subprocess.run(["cc", "-w", "-o", f"{folder}/value", f"{folder}/value.c"], check=True)
        return int(subprocess.run([f"{folder}/value"], check=True, capture_output=True, text=True).stdout)
