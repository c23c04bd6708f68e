# SPDX-License-Identifier: Apache-2.0
"""Calls NVIDIA's cuDNN as a program would that has no device: every call fails, and says how.

    cudnn_calls.py LIBRARY FUNCTION...      prints {function: its results}; one to five times
"""
import ctypes
import json
import sys

cudnn = ctypes.CDLL(sys.argv[1])
said = {}
for number, name in enumerate(sys.argv[2:]):
    function = getattr(cudnn, name)
    # More arguments than any has: all are NULL or 0.
    said[name] = [function(*[ctypes.c_void_p(0)] * 32) for _ in range(number % 5 + 1)]
print(json.dumps(said))
