# SPDX-License-Identifier: Apache-2.0
"""The one place that finds what tests of several kinds share (test/lib)."""
import importlib
import sys


def e2e(build, source):
    """lib.e2e: an agent, clients, patience. It reads the build folder and the checkout from the command line."""
    words, sys.argv = sys.argv, [sys.argv[0], build, source]
    sys.path.insert(0, f"{source}/test")
    try:
        return importlib.import_module("lib.e2e")
    finally:
        sys.argv = words
