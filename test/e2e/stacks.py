# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --stacks: each call's stack is the one that the program's own frames say, on each CPython that is here."""
import collections
import difflib
import glob
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import tempfile

from lib.e2e import BUILD, SOURCE, Skip, command, contains, environment, equal, run
from lib.protobuf import fields, packed
from lib.sampling import unbiased
from lib.traced import tracing

SIM = f"{BUILD}/sim/cuda"
CALLS = f"{SOURCE}/test/e2e/stacks_calls.py"
ENV = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_KERNEL_US="0", PYTHONDONTWRITEBYTECODE="1")


def interpreters():
    """version -> path, of 3.8 and later: Debian's, and what pyenv or GPUSONDE_TEST_PYTHONS (a list of paths) has."""
    paths = [*glob.glob("/usr/bin/python3.*"), *glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3.*")),
             *filter(None, os.environ.get("GPUSONDE_TEST_PYTHONS", "").split(":"))]
    found = {}
    for path in paths:
        name = re.search(r"/python3\.(\d+)t?$", path)
        if not name or int(name[1]) < 8:
            continue
        done = subprocess.run([path, "-c", "import ctypes, platform; print(platform.python_version())"], capture_output=True, text=True)
        if done.returncode == 0:
            found[path] = done.stdout.strip()
    return found


def traced(path, *argv, python="/usr/bin/python3", flags=()):
    return command("trace", f"--stacks={path}", "--stacks-of=python", "--weight=bytes_held", *flags, "--", python, *argv, env=ENV)


def folded(path, process="python"):
    """stack, outermost first -> weight; without the process and the function of CUDA."""
    stacks = collections.Counter()
    with open(path) as file:
        for line in file:
            text, weight = line.rstrip("\n").rsplit(" ", 1)
            first, *frames, last = text.split(";")
            contains(first, process)
            equal(last, "cudaMalloc")
            stacks[tuple(frames)] += int(weight)
    return stacks


def wanted(*paths):
    stacks = collections.Counter()
    for path in paths:
        with open(path) as file:
            for frames, number in json.load(file):
                stacks[tuple(frames)] += number
    return stacks


def compare(got, want):
    for frames in want:
        if got.get(frames) != want[frames]:
            near = difflib.get_close_matches(";".join(frames), [";".join(f) for f in got], 3)
            raise AssertionError("\n".join(["of", *frames, f"{got.get(frames)} bytes instead of {want[frames]}; the nearest:", *near]))
    equal(sorted(set(got) - set(want)), [], "stacks that no call had")


def check(python):
    with tempfile.TemporaryDirectory() as tmp:
        done = traced(f"{tmp}/x.folded", CALLS, f"{tmp}/said", python=python)
        equal(done.returncode, 0, done.stderr)
        compare(folded(f"{tmp}/x.folded"), wanted(f"{tmp}/said", f"{tmp}/said.child"))


def test_stacks_of_each_python():
    tracing()
    pythons = interpreters()
    if not pythons:
        raise Skip("no CPython 3.8 or later with ctypes")
    for python, version in pythons.items():
        print(f"# CPython {version}: {python}", flush=True)
        check(python)


def test_in_a_virtual_environment():
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp], capture_output=True, text=True, check=False)
        equal(made.returncode, 0, made.stderr)
        check(f"{tmp}/bin/python3")


def test_what_only_a_container_has():
    """The interpreter lies where only its own mount namespace has it."""
    tracing()
    program = os.path.realpath("/usr/bin/python3")
    with tempfile.TemporaryDirectory() as tmp:
        at = f"{tmp}/root"
        os.mkdir(at)
        script = f'mount -t tmpfs none {at} && cp {program} {at} && PYTHONHOME=/usr exec {at}/{os.path.basename(program)} "$@"'
        done = traced(f"{tmp}/x.folded", "-m", "sh", "-c", script, "sh", CALLS, f"{tmp}/said", python="unshare")
        equal(done.returncode, 0, done.stderr)
        equal(os.listdir(at), [], "what this mount namespace has of it")
        compare(folded(f"{tmp}/x.folded"), wanted(f"{tmp}/said", f"{tmp}/said.child"))


PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
def allocate(n):
    address = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(n)) == 0
    return address
def copy(to, n):
    host = ctypes.create_string_buffer(n)
    assert cuda.cudaMemcpy(to, host, ctypes.c_size_t(n), 1) == 0
def main():
    kept, freed = allocate(5000), allocate(700)
    copy(kept, 300)
    copy(kept, 40)
    assert cuda.cudaFree(freed) == 0
    cuda.cudaDeviceSynchronize()
main()
"""


def written(name, *flags):
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", f"--stacks={tmp}/{name}", "--stacks-of=python", *flags, "--", shutil.which("python3", path="/usr/bin") or "python3", "-c", PROGRAM, env=ENV)
        equal(done.returncode, 0, done.stderr)
        equal(os.listdir(tmp), [name], "what was written")
        with open(f"{tmp}/{name}", "rb") as file:
            return file.read()


def test_weights():
    tracing()
    held = written("x.folded", "--weight", "bytes_held").decode()
    contains(held, "<module> (<string>:17);main (<string>:12);allocate (<string>:6);cudaMalloc 5000\n")
    equal(held.count("\n"), 1, held)
    copied = written("x.folded", "--weight=bytes_copied").decode()
    contains(copied, "main (<string>:13);copy (<string>:10);cudaMemcpy 300\n")
    contains(copied, "main (<string>:14);copy (<string>:10);cudaMemcpy 40\n")
    equal(copied.count("\n"), 2, copied)
    contains(written("x.folded", "--weight=sync_wait").decode(), "main (<string>:16);cudaDeviceSynchronize ")
    equal(written("x.folded"), b"", "launches")


def test_pprof():
    tracing()
    profile = collections.defaultdict(list)
    for field, value in fields(gzip.decompress(written("x.pb.gz"))):
        profile[field].append(value)
    strings = [s.decode() for s in profile[6]]
    equal(strings[0], "", "the first string")
    kinds = [strings[dict(fields(kind))[1]] for kind in profile[1]]
    functions = {f[1]: (strings[f[2]], strings[f.get(4, 0)]) for f in (dict(fields(f)) for f in profile[5])}
    places = {}
    for location in (dict(fields(l)) for l in profile[4]):
        line = dict(fields(location[4]))
        places[location[1]] = (*functions[line[1]], line.get(2, 0))
    found = {}
    for sample in (dict(fields(s)) for s in profile[2]):
        found[tuple(places[i] for i in packed(sample[1]))[:-1]] = dict(zip(kinds, packed(sample[2])))
    stack = ("cudaMalloc", "", 0), ("allocate", "<string>", 6), ("main", "<string>", 12), ("<module>", "<string>", 17)
    equal(found[stack]["bytes_held"], 5000, str(found))
    pprof = shutil.which("pprof")
    if not pprof:
        print("# no pprof to read it with", flush=True)


def test_page():
    """It has all rows, and nothing in it can be taken for HTML."""
    tracing()
    page = written("x.html").decode()
    rows = json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)</script>', page, re.S)[1])
    row, = [r for r in rows["rows"] if rows["texts"][r[2]] == "cudaMalloc" and r[6] == 5000]
    places = [rows["places"][place] for place in row[3 + len(rows["weights"]):]]
    equal([(rows["texts"][name], rows["texts"][file], line) for name, file, line in places],
          [("<module>", "<string>", 17), ("main", "<string>", 12), ("allocate", "<string>", 6)])
    equal(len(set(rows["texts"])), len(rows["texts"]), "texts")
    for bad in "http:", "https:", "<string>", "<module>":
        assert bad not in page, f"{bad} in the page"


REPEATED = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def often():
    for i in range(20000):
        cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1))
def seldom():
    for i in range(5000):
        cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1))
often()
seldom()
"""


def test_sample():
    """What is told of a sample is right on average: here within six standard deviations."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = traced(f"{tmp}/x.folded", "-c", REPEATED, flags=["--sample=8"])
        equal(done.returncode, 0, done.stderr)
        sums = collections.Counter()
        for frames, weight in folded(f"{tmp}/x.folded").items():
            equal(weight % 8, 0, "each counts eight times")
            sums[frames[-1].split()[0]] += weight
    for name, calls in ("often", 20000), ("seldom", 5000):
        deviation = math.sqrt(calls * (8 - 1))
        assert abs(sums[name] - calls) < 6 * deviation, f"{name}: {sums[name]} of {calls}, +- {deviation:.0f}"
    # One of them may be hit by chance.
    assert (sums["often"], sums["seldom"]) != (20000, 5000), "all of them: no sample was taken"


# With rests, so that the budget is judged meanwhile also on a fast machine.
FLOOD = REPEATED.replace("\noften()\n", """
import time
for part in range(10):
    often()
    time.sleep(0.3)
""").replace("5000", "50000")


LINES = 100
SPREAD = """
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
address, one = ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1)
def flood():
    for i in range(2000):
        time.sleep(0.3 if i % 200 == 0 else 0)
""" + "        cuda.cudaMalloc(address, one)\n" * LINES + "flood()\n"


def test_adapted_sample():
    """A flood: the sample becomes smaller at once, and each call counts for as many as were meant when it was made."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = traced(f"{tmp}/x.folded", "-c", SPREAD, flags=["--sample=auto"])
        equal(done.returncode, 0, done.stderr)
        sums = [weight for frames, weight in folded(f"{tmp}/x.folded").items() if frames[-1].startswith("flood ")]
    if sums == [2000] * LINES:
        raise Skip("the calls did not exceed the budget")
    unbiased(sums + [0] * (LINES - len(sums)), 2000)


def test_given_up():
    """Where the probes alone take more than the budget, stacks are what is given up, and no call is."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = traced(f"{tmp}/x.folded", "-c", FLOOD, flags=["--max-overhead=0.01%", "--json", f"--output={tmp}/json"])
        equal(done.returncode, 0, done.stderr)
        sums = {frames[-1].split()[0]: weight for frames, weight in folded(f"{tmp}/x.folded").items()}
        with open(f"{tmp}/json") as file:
            process, = json.load(file)["processes"]
    contains(done.stderr, "its stacks are not taken for 30s")
    contains(done.stderr, f"the stacks of {sums['[given']} calls were not taken, for trace.max_overhead")
    assert sums["[given"] > 0 and sums["often"] > 0, sums
    equal(sum(sums.values()), 250000, "bytes")
    contains(process["incomplete"], "stacks")


LAUNCHES = """
import ctypes, sys, threading
cuda = ctypes.CDLL("libcudart.so.13")
class dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]
register = getattr(cuda, "__cudaRegisterFatBinary")
register.restype = ctypes.c_void_p
image = (ctypes.c_uint * 16)(0xba55ed50)
wrapper = (ctypes.c_ulong * 3)(0x1466243b1, ctypes.addressof(image), 0)
stub = ctypes.create_string_buffer(64)
handle = ctypes.c_void_p(register(wrapper))
name = ctypes.c_char_p(b"_Z4spinv")
getattr(cuda, "__cudaRegisterFunction")(handle, stub, name, name, -1, None, None, None, None, None)
def launch():
    assert cuda.cudaLaunchKernel(stub, dim3(8, 1, 1), dim3(64, 1, 1), None, ctypes.c_size_t(0), None) == 0
def often():
    for i in range(30):
        launch()
def seldom():
    for i in range(10):
        launch()
often()
seldom()
assert cuda.cudaDeviceSynchronize() == 0
"""


def test_gpu_time():
    """The estimate of --kernels, to the nanosecond, split among the stacks."""
    tracing()
    env = dict(ENV, GPUSONDE_SIM_CUDA_KERNEL_US="2000")
    with tempfile.TemporaryDirectory() as tmp:
        python = shutil.which("python3", path="/usr/bin") or "python3"
        done = command("trace", f"--stacks={tmp}/x.folded", "--stacks-of=python", "--weight=gpu_time", "--kernels", "--json", f"--output={tmp}/json", "--",
                       python, "-c", LAUNCHES, env=env)
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/json") as file:
            kernels = [k for process in json.load(file)["kernels"]["processes"] for k in process["kernels"]]
        with open(f"{tmp}/x.folded") as file:
            times = {re.search(r";(often|seldom) ", line)[1]: int(line.rsplit(" ", 1)[1]) for line in file}
    total = sum(k["busy_seconds_total"] for k in kernels)
    assert total > 0, kernels
    assert abs(sum(times.values()) - total * 1e9) < 2, f"{times}, not {total} s"
    assert times["often"] > times["seldom"] > 0, times


def test_lines():
    """--python alone: which line calls what, itself and by what it calls."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        python = shutil.which("python3", path="/usr/bin") or "python3"
        done = command("trace", "--python", "--json", f"--output={tmp}/x", "--", python, "-c", PROGRAM, env=ENV)
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/x", encoding="utf-8") as file:
            lines = json.load(file)["lines"]
        table = command("trace", "--python", "--output=-", "--", python, "-c", PROGRAM, env=ENV).stdout
    equal([(l["line"], l["function"], l["calls_itself"], l["calls"], l["bytes_held"], l["bytes_copied"]) for l in lines],
          [(6, "allocate", 2, 2, 5000, 0), (10, "copy", 2, 2, 0, 340), (16, "main", 1, 1, 0, 0), (17, "<module>", 0, 5, 5000, 340), (12, "main", 0, 2, 5000, 0),
           (13, "main", 0, 1, 0, 300), (14, "main", 0, 1, 0, 40)], "lines")
    equal([l["apis"] for l in lines[:3]], [[{"api": api, "count": n}] for api, n in (("cudaMalloc", 2), ("cudaMemcpy", 2), ("cudaDeviceSynchronize", 1))], "functions of CUDA")
    assert lines[2]["sync_wait"] > 0 and all(l["file"] == "<string>" for l in lines), lines
    assert re.search(r"<string>:6 +allocate +2 +2 +0 +- +4\.9 KiB", table), table


def test_refused():
    for flags, why in ((["--stacks=x.txt"], "it must be a file whose name ends in"), (["--weight=launches"], "--weight is of --stacks"),
                       (["--stacks=x.html", "--weight=launches"], "other files have all"),
                       (["--stacks-of=all"], "--stacks-of is of --stacks"), (["--stacks=x.html", "--stacks-of=c"], "it must be python, native or all"),
                       (["--sample=2"], "--sample is of --stacks and --python"), (["--stacks=x.html", "--sample=3"], "it must be 2, 4, 8, ... 32768, or auto"),
                       (["--stacks=x.folded", "--weight=time"], "it must be launches, bytes_copied, bytes_held, sync_wait, calls, or with --kernels gpu_time"),
                       (["--stacks=x.folded", "--weight=gpu_time"], "or with --kernels gpu_time")):
        done = command("trace", *flags, "--", "true")
        equal(done.returncode, 2, done.stderr)
        contains(done.stderr, why)


if __name__ == "__main__":
    run()
