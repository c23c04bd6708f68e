# SPDX-License-Identifier: Apache-2.0
"""What cli_kernels.py and agent_kernels.py share: nvcc's programs over the simulated CUDA, and what they say that they launched."""
import collections
import fcntl
import json
import os
import re
import shutil
import subprocess
import time

from lib.e2e import BUILD, SOURCE, PATIENCE_S, Skip, environment, equal, wait_for
from lib.traced import patched

SIM = f"{BUILD}/sim/cuda"
PROGRAMS = f"{BUILD}/test/programs"
SCENARIO = f"{SOURCE}/sim/scenarios/node-8xh100.yaml"
SIMULATION = {"GPUSONDE_SIM_SCENARIO": SCENARIO, "GPUSONDE_SIM_CUDA_KERNEL_US": "0"}


def program(name):
    path = f"{PROGRAMS}/{name}"
    if not os.path.exists(path):
        raise Skip(f"test/programs/{name} was not built: no nvcc, no C++ compiler, or a build with sanitizers")
    return path


def argv(name, *arguments):
    """The program; arguments that are no flags are files beside it."""
    return [program(name), *[a if a.startswith("-") else program(a) for a in arguments]]


def truths(lines):
    return [json.loads(line) for line in lines if line.startswith('{"pid":') and '"launches":' in line]


def wanted(said, part=1):
    """match -> {(grid, block, dynamic shared memory): launches}; @part of them."""
    found = collections.defaultdict(collections.Counter)
    for launch in said["launches"]:
        equal(launch["errors"], {}, "failed launches")
        found[launch["match"]][tuple(launch["grid"]), tuple(launch["block"]), launch["shared"]] += int(launch["count"] * part)
    return found


def shapes(row):
    return {(tuple(s["grid"]), tuple(s["block"]), s["dynamic_shared_bytes"]): s["launches"] for s in row["shapes"]}


def agrees(rows, said, part=1):
    """Every launch is of the kernel, and in the shape, that the program says; and nothing else was launched."""
    left = list(rows)
    for match, launched in wanted(said, part).items():
        of = [row for row in left if row["symbol"] and re.fullmatch(match, row["symbol"])]
        assert of, f"nobody launched {match}: {[r['symbol'] for r in rows]}"
        got = collections.Counter()
        for row in of:
            left.remove(row)
            got.update(shapes(row))
            assert row["source"] != "unresolved", row
            equal(row["launches_total"], sum(row["shapes"][i]["launches"] for i in range(len(row["shapes"]))) + row["other_shapes"], match)
            equal(row["threads_total"], sum(n * threads(shape) for shape, n in shapes(row).items()), match)
        equal(dict(got), dict(launched), match)
    equal([row["name"] for row in left], [], "launched by nobody")


def nameless(rows, said, part=1):
    """Every launch is counted, in its shape, and said to have no name."""
    launched = collections.Counter()
    for shapes_ in wanted(said, part).values():
        launched.update(shapes_)
    got = collections.Counter()
    for row in rows:
        equal(row["source"], "unresolved", row["name"])
        got.update(shapes(row))
    equal(dict(got), dict(launched), "launches")


# Those that run over the simulated driver (the real static runtime of kernels-static does not): what they are given.
KERNELS = [(f"kernels-{kind}{stripped}",) for kind in ("shared", "sim", "no-pie", "rdc") for stripped in ("", "-stripped")]
KERNELS += [("plugin_host", "plugin.so")]
# Device code that is in memory, or in a file that is not mapped.
MODULES = ("modules", "images.cubin", "images.fatbin")


def launches_of(name, *arguments):
    """How many there are when it launches everything once."""
    done = subprocess.run(argv(name, *arguments), env=environment(LD_LIBRARY_PATH=SIM, **SIMULATION), capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    return sum(launch["count"] for said in truths(done.stdout.splitlines()) for launch in said["launches"])


def threads(shape):
    total = 1
    for n in shape[0] + shape[1]:
        total *= n
    return total


def described(row):
    """What is known of a kernel from an image for the device."""
    assert row["arch"] and row["registers"] > 0 and row["code_bytes"] > 0 and row["constant_bytes"] > 0, row
    assert 0 < row["theoretical_occupancy_ratio"] <= 1 and row["occupancy_limiter"], row
    equal(row["warps_per_sm"] / row["warps_per_sm_max"], row["theoretical_occupancy_ratio"], row["name"])
    assert row["memory_bytes"]["shared"] >= row["static_shared_bytes"] + (row["reserved_shared_bytes"] or 0), row


def named_for_people(rows):
    """Demangled, and folded."""
    by_symbol = {row["symbol"]: row for row in rows}
    row = by_symbol["_ZN5outer5inner6spacedEPi"]
    equal((row["name"], row["brief"]), ("outer::inner::spaced(int*)", "spaced"), "the name")
    row = by_symbol["_Z6filledIiLi4EEvPT_"]
    equal(row["brief"], "filled<...>", "the brief name")
    assert row["name"].startswith("void filled<int, 4>("), row["name"]


class Waiting:
    """
    A program that was started with --wait: it has launched everything once, and does so again when it is told to. It then stays, since it cannot
    get rid of its last line until somebody reads it.
    """

    def __init__(self, folder, name, *arguments, **env):
        # Libraries of its own: nobody else's probes are in them.
        self.libraries = f"{folder}/libraries"
        if not os.path.exists(self.libraries):
            os.mkdir(self.libraries)
            for library in ("libcuda.so.1", "libcudart.so.13"):
                shutil.copy(f"{SIM}/{library}", self.libraries)
        self.reading, self.writing = os.pipe()
        self.process = subprocess.Popen(argv(name, *arguments, "--wait"), stdin=subprocess.PIPE, stdout=self.writing,
                                        env=environment(LD_LIBRARY_PATH=self.libraries, **SIMULATION, **env))
        self.pid, self.text = self.process.pid, b""

    def __enter__(self):
        self.read_until(b"ready\n")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        for fd in (self.reading, self.writing):
            if fd >= 0:
                os.close(fd)

    def read_until(self, end):
        while not self.text.endswith(end):
            got = os.read(self.reading, 65536)
            assert got, f"the program has ended: {self.text}"
            self.text += got
        self.text = b""

    def go_on(self):
        room = fcntl.fcntl(self.writing, fcntl.F_GETPIPE_SZ)
        os.write(self.writing, b"\n" * room)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def launched(self):
        """All: its last line waits for a reader."""
        def waits():
            with open(f"/proc/{self.pid}/wchan", encoding="ascii") as f:
                return "pipe_write" in f.read()
        wait_for(waits, "the program's last line")

    def end(self):
        """Lets it go; what it says."""
        os.close(self.writing)
        self.writing = -1
        while got := os.read(self.reading, 65536):
            self.text += got
        equal(self.process.wait(PATIENCE_S), 0, "the program's status")
        said, = truths(self.text.decode().splitlines())
        return said

    def probed(self, *libraries):
        """One probe is in each; the others of a library follow at once, on a machine that has time for it."""
        for library in libraries:
            wait_for(lambda library=library: patched(self.pid, library), f"probes in {library}")
        time.sleep(2)
