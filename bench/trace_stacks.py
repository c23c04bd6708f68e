# SPDX-License-Identifier: Apache-2.0
"""What the stack of a program costs it: an event with the stack of 20 functions, of Python or native ones, against the same event without one.

The CPU time of the calling thread for a call, the least of many rounds. Each function is another one: what is found twice in a stack is cheaper.
"""
import os
import re
import subprocess
import sys
import tempfile

from common import BUILD, Row
from tracing import SIM, need_tracing

DEPTH = 20
PROMISED_NS = 3000
PROGRAM = """
import ctypes, sys, time
call = ctypes.CDLL("libcudart.so.13").cudaDeviceSynchronize
def innermost():
    least = 1 << 60
    for _ in range(400):
        begin = time.thread_time_ns()
        for _ in range(100):
            call()
        least = min(least, time.thread_time_ns() - begin)
    return least / 100
# The module is one function, innermost() another.
between = int(sys.argv[1]) - 2
names = {f"f{between}": innermost}
for i in range(between):
    exec(f"def f{i}():\\n    return f{i + 1}()", names)
print(names["f0"]())
"""


def ns(program, *flags):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(SIM), GPUSONDE_SIM_CUDA_KERNEL_US="0")
    done = subprocess.run([f"{BUILD}/gpusonde", "trace", *flags, "--", *program, str(DEPTH)], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def run():
    need_tracing()
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        for python in os.environ.get("BENCH_PYTHONS", sys.executable).split(":"):
            version = re.search(r"3\.\d+\.\d+", subprocess.run([python, "-V"], stdout=subprocess.PIPE, text=True, check=True).stdout)[0]
            program = python, "-c", PROGRAM
            without = min(ns(program, "--raw", f"--output={tmp}/raw") for _ in range(3))
            with_stack = min(ns(program, f"--stacks={tmp}/x.folded", "--stacks-of=python") for _ in range(3))
            rows += [Row(f"CPython {version}: ns of a call with an event", without, "{:.0f}"),
                     Row(f"CPython {version}: ns more with the stack of {DEPTH} functions", with_stack - without, "{:.0f}", at_most=PROMISED_NS)]
        native = [f"{BUILD}/bench/native_stack"]
        without = min(ns(native, "--raw", f"--output={tmp}/raw") for _ in range(3))
        with_stack = min(ns(native, f"--stacks={tmp}/x.folded", "--stacks-of=native") for _ in range(3))
        rows += [Row("native: ns of a call with an event", without, "{:.0f}"),
                 Row(f"native: ns more with the stack of {DEPTH} functions, without frame pointers", with_stack - without, "{:.0f}")]
    return rows
