# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --stacks: native frames are those that the C library's own unwinder has, and Python's stand in their place among them."""
import bisect
import os
import re
import shutil
import subprocess
import tempfile

from lib.e2e import BUILD, Skip, command, contains, environment, equal, run
from lib.traced import tracing

ENV = environment(LD_LIBRARY_PATH=f"{BUILD}/sim/cuda", GPUSONDE_SIM_CUDA_KERNEL_US="0", PYTHONDONTWRITEBYTECODE="1")
DEPTH = 127
FIRST, LOADED = 1001, 1011 # bytes; native.c


class Symbols:
    """nm's functions of a file."""

    def __init__(self, path):
        self.path = path
        found = set()
        for flags in ["-S"], ["-S", "-D"]:
            text = subprocess.run(["nm", "--defined-only", *flags, path], capture_output=True, text=True).stdout
            found |= {(int(a, 16), int(n, 16), name.split("@")[0]) for a, n, kind, name in re.findall(r"^(\w+) (\w+) ([tTwWiuV]) (\S+)$", text, re.M)}
        self.symbols = sorted(found)

    def at(self, offset):
        """The names that a function there has; none: it has none."""
        i = bisect.bisect(self.symbols, (offset + 1,))
        return {name for start, n, name in self.symbols[max(0, i - 64):i] if start <= offset < start + n}


def traced(program, *argv, of="all", flags=()):
    """bytes -> frames, the innermost first."""
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", f"--stacks={tmp}/x.folded", f"--stacks-of={of}", "--weight=bytes_held", *flags, "--", program, *argv, env=ENV)
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/x.folded") as file:
            lines = [line.rstrip("\n").rsplit(" ", 1) for line in file]
    return {int(weight): text.split(";")[1:-1][::-1] for text, weight in lines}


def check_frame(got, want, symbols):
    path, offset = want.rsplit("+", 1)
    name = os.path.basename(os.path.realpath(path))
    if path not in symbols:
        symbols[path] = Symbols(path)
    found = re.fullmatch(r"(.*) \((.*)\)", got)
    names = symbols[path].at(int(offset))
    if found:
        equal(found[2], name, f"file of {got}, {want}")
        # Debian's C library has its other symbols in a file of their own, if that is installed.
        assert found[1] in names or not names, f"{got}, and not one of {names}"
    else:
        equal(got, f"{name}+{int(offset):#x}", want)
        equal(names, set(), "names of what is shown by address")


def check_program(name):
    with tempfile.TemporaryDirectory() as tmp:
        got = traced(f"{BUILD}/test/e2e/native_{name}", f"{tmp}/truth", f"{BUILD}/test/e2e/libnative_through.so", of="native")
        with open(f"{tmp}/truth") as file:
            truth = {int(n): frames for n, *frames in (line.split() for line in file)}
    symbols = {}
    # Those of a library that is loaded later are whole once it is known; most of the same calls have one stack then.
    loaded = sorted(n for n in truth if n > LOADED)
    whole = [n for n in got if n >= LOADED and got[n][-1].startswith("_start ")]
    equal(len(whole), 1, f"stacks through the library: {got}")
    assert whole[0] > sum(loaded) / 2, f"{whole} of {sum(loaded)} bytes"
    got[loaded[-1]] = got[whole[0]]
    for n in [*range(FIRST, LOADED), loaded[-1]]:
        frames = truth[n]
        inner, *outer = got[n]
        contains(inner, "allocate (")
        if len(frames) >= DEPTH:
            equal(outer[-1], "[deeper stack]")
            outer, frames = outer[:-1], frames[:DEPTH - 1]
        equal(len(outer), len(frames), f"frames of {n}: {outer} of {frames}")
        for one, other in zip(outer, frames):
            check_frame(one, other, symbols)


def test_frames_without_frame_pointers():
    tracing()
    check_program("omitted")


def test_frames_with_frame_pointers():
    tracing()
    check_program("kept")


def test_through_a_return_probe():
    """The return address that a probe has replaced is told."""
    tracing()
    library = f"{BUILD}/test/e2e/libnative_probed.so"
    with tempfile.TemporaryDirectory() as tmp:
        stacks = traced(f"{BUILD}/test/e2e/native_omitted", f"{tmp}/truth", library, of="native",
                        flags=["--probe=libnative_probed.so:through returns"]).values()
        with open(f"{tmp}/truth") as file:
            assert file.read().splitlines()[-1].endswith(" ?"), "the C library's own unwinder passes the probe: is there one?"
    through = [[f.split(" ")[0] for f in s] for s in stacks if s[-1].startswith("_start ") and "through (libnative_probed.so)" in s]
    equal(len(through), 1, f"stacks through the library: {stacks}")
    equal(through[0][:5], ["allocate", "inner", "through", "pass", "run"])


def test_replaced_library():
    """A library that lies where another one was is not taken for that one."""
    tracing()
    libraries = [f"{BUILD}/test/e2e/libnative_{name}.so" for name in ("probed", "second")]
    with tempfile.TemporaryDirectory() as tmp:
        stacks = traced(f"{BUILD}/test/e2e/native_omitted", f"{tmp}/truth", *libraries, of="native").values()
        with open(f"{tmp}/truth") as file:
            if "moved\n" in file.read():
                raise Skip("the second library does not lie where the first one was")
    for library, inner, outer in ("probed", "inner", "through"), ("second", "other", "passing"):
        wanted = [f"{inner} (libnative_{library}.so)", f"{outer} (libnative_{library}.so)"]
        whole = [s for s in stacks if s[-1].startswith("_start ") and s[1:3] == wanted]
        assert whole, f"no stack through {wanted} in {stacks}"


def test_made_code():
    """Code that a program makes is named by its perf map, and followed by its frame pointer, which is said to be a guess."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        stacks = traced(f"{BUILD}/test/e2e/native_kept", f"{tmp}/truth", "-").values()
    made = [[f.split(" ")[0] for f in s] for s in stacks if "made_by_hand" in s and s[-1].startswith("_start ")]
    equal(len(made), 1, f"stacks with it: {stacks}")
    equal(made[0][:5], ["allocate", "made_by_hand", "[guessed", "made", "main"])


MIXED = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
def allocate(n):
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(n)) == 0
def key(x):
    if x == 2:
        allocate(700)
    return x
def generator():
    allocate(800)
    yield 1
class Object:
    def __init__(self):
        allocate(900)
def main():
    for i in range(100):
        allocate(1)
        time.sleep(0.01)
    allocate(5000)
    sorted([1, 2, 3], key=key)
    list(generator())
    Object()
main()
"""


def check_mixed(python):
    got = traced(python, "-c", MIXED)
    wanted = {
        5000: ["allocate", "main", "<module>"],
        700: ["allocate", "key", None, "main", "<module>"],
        800: ["allocate", "generator", None, "main", "<module>"],
        900: ["allocate", "__init__", None, "main", "<module>"],
    }
    for n, functions in wanted.items():
        frames = got[n]
        contains(frames[-1], "_start (")
        assert not [f for f in frames if f.startswith("[") or "_PyEval_EvalFrameDefault" in f], frames
        places = [("<string>" in f and f.split(" ")[0].split(".")[-1]) or None for f in frames]
        inner, outer = places.index("allocate"), places.index("<module>")
        assert inner > 0 and outer < len(frames) - 1, f"native frames on both sides: {frames}"
        between = places[inner:outer + 1]
        # Several native functions in a row count as one; before 3.11 there are some between any two.
        short = [p for i, p in enumerate(between) if p or i == 0 or between[i - 1]]
        if short != functions:
            equal([p for p in short if p], [p for p in functions if p], str(frames))
            for a, b in zip(functions, functions[1:]):
                assert b or short[short.index(a) + 1] is None, f"native frames outside of {a}: {frames}"


def test_mixed_with_python():
    """Each function of Python stands between the native ones that call it and that it calls."""
    tracing()
    check_mixed(shutil.which("python3", path="/usr/bin") or shutil.which("python3"))


def test_python_alone_and_native_alone():
    tracing()
    python = shutil.which("python3", path="/usr/bin") or shutil.which("python3")
    equal([f.split(" ")[0] for f in traced(python, "-c", MIXED, of="python")[5000]], ["allocate", "main", "<module>"])
    stacks = traced(python, "-c", MIXED, of="native").values()
    equal([f for native in stacks for f in native if "<string>" in f], [])
    native = [s for s in stacks if s[-1].startswith("_start (") and "_PyEval_EvalFrameDefault" in " ".join(s)]
    assert native, f"no whole stack in {stacks}"


if __name__ == "__main__":
    run()
