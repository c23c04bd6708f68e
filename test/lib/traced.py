# SPDX-License-Identifier: Apache-2.0
"""Programs of the simulated CUDA that an agent traces: what it says of them, beside what they were called for."""
import contextlib
import datetime
import functools
import itertools
import json
import os
import shutil
import subprocess
import time

from lib.e2e import BUILD, PATIENCE_S, SOURCE, Skip, command, environment, equal, wait_for
from sim.cuda import truth

DRIVER = f"{BUILD}/sim/cuda/libcuda.so.1"
LATE = f"{BUILD}/sim/cuda/workload-late"
SCENARIO = f"{SOURCE}/sim/scenarios/node-8xh100.yaml"

BUSY = ("api driver; init; alloc 4096; alloc 65536 managed; alloc 1048576 async; copy h2d 4096; copy d2h 100;"
        "repeat 200; launch; end; sync; memset 4096; repeat 7; bad alloc; bad free; end; stream create; repeat 20; launch; end; sync; free all")


@functools.cache
def why_not_traced():
    """What gpusonde trace says where the kernel, or who we are, does not allow it; tried once, since each start costs the kernel's verifier a while."""
    if os.geteuid() != 0:
        return "tracing needs root"
    done = command("trace", "--json", "--", "true")
    return "" if done.returncode == 0 else done.stderr.strip() or f"gpusonde trace: exit status {done.returncode}"


def tracing():
    if why_not_traced():
        raise Skip(why_not_traced())


def trace_of(agent):
    return agent.get("/api/v1/trace").json()["trace"]


def begun(agent):
    """Until tracing has begun; a skip where it cannot."""
    found = wait_for(lambda: (t := trace_of(agent)) and (t["enabled"] or t["why"]) and t, "tracing to begin")
    if not found["enabled"]:
        raise Skip(found["why"])
    return found


class Workload:
    """A program of simulated CUDA calls that waits at each "pause" of its script."""

    numbers = itertools.count()

    def __init__(self, agent, script, library=DRIVER, wait=True, copy=True, **env):
        number = next(self.numbers)
        self.log = f"{agent.tmp}/truth-{number}"
        # A file of its own: nobody else's probes are in it.
        self.library = shutil.copy(library, f"{agent.tmp}/libcuda.so.{number}") if copy else library
        library = self.library
        begin = f"load {library}; pause; " if wait else f"load {library}; "
        # Its kernels take no time: what is tested is counted, not waited for.
        self.env = environment(GPUSONDE_SIM_SCENARIO=SCENARIO, GPUSONDE_SIM_CUDA_LOG=self.log, **env)
        self.process = subprocess.Popen([LATE, begin + script], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ready(self):
        line = self.process.stdout.readline()
        equal(line, "ready\n", "the workload")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        self.go_on()
        equal(self.process.wait(PATIENCE_S), 0, "the workload's status")

    def truth(self):
        """api -> (count, errors, bytes) of what is probed."""
        return expected(self.log, self.library)


def expected(log, library):
    listed = json.loads(command("probes", "--json", library).stdout)
    probed = {site["symbol"] for site in listed["sites"] if site["chosen"]}
    calls = {}
    for process in truth.read(log)["processes"]:
        for call in process["calls"]:
            if call["library"] == "libcuda" and call["api"] in probed:
                count, errors, size = calls.get(call["api"], (0, {}, 0))
                for code, n in call["errors"].items():
                    errors = {**errors, code: errors.get(code, 0) + n}
                # How much is freed no argument of the call tells.
                calls[call["api"]] = (count + call["count"], errors, 0 if "Free" in call["api"] else size + call["bytes"])
    return calls


def traced(calls):
    return {c["api"]: (c["count"], c["errors"], c["bytes"]) for c in calls}


def patched(pid, library):
    """Breakpoints make pages of the library's code the process's own."""
    name = os.path.basename(library)
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        code = False
        for line in f:
            words = line.split()
            if "-" in words[0]:
                code = "x" in words[1] and line.rstrip().endswith(name)
            elif code and words[0] == "Anonymous:" and words[1] != "0":
                return True
    return False


def view_time(agent):
    """When the newest view of what is traced was made."""
    found = agent.get("/api/v1/trace").json()
    made = datetime.datetime.fromisoformat(found["time"].replace("Z", "+00:00")).timestamp()
    return made - found["trace"]["age_seconds"]


def chosen_sites(library):
    return sum(site["chosen"] for site in json.loads(command("probes", "--json", library).stdout)["sites"])


def tells_links():
    """Whether the kernel tells which files links probe."""
    return tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 18)


def holds_links(pid, library, sites):
    """Whether the process itself probes so many functions of the file: others on this machine may, too. True where the kernel does not tell."""
    if not tells_links():
        return True
    return sum(count for path, count in links(pid) if path == library) >= sites


def links(pid):
    """(file, number of functions) of each link of the process that probes entries, where the kernel tells."""
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}", encoding="utf-8", errors="replace") as f:
            text = f.read()
            if "link_type:\tuprobe_multi\n" in text and "path:\t" in text:
                yield text.partition("path:\t")[2].partition("\n")[0], int(text.partition("uprobe_cnt:")[2].split()[0])


def probed(agent, pid, library):
    """All of the agent's probes are in a library that the process maps; where the kernel does not tell: one is, and the agent has done something else since."""
    sites = chosen_sites(library)
    wait_for(lambda: patched(pid, library) and holds_links(agent.pid, library, sites), "probes in the library")
    seen = time.time()
    wait_for(lambda: view_time(agent) > seen + 0.05, "a view of what is traced")


def probed_when_loaded(agent, workload):
    workload.ready()
    probed(agent, workload.process.pid, workload.library)


def process_of(agent, pid):
    return next((p for p in trace_of(agent)["processes"] if p["pid"] == pid), None)


def counted(agent, workload):
    """By the process itself: others on this machine may call CUDA, too."""
    process = process_of(agent, workload.process.pid)
    return traced(process["calls"]) if process else {}


def all_counted(agent, workload):
    wanted = workload.truth()
    assert wanted, "the workload called nothing"
    with contextlib.suppress(AssertionError): # the comparison below says more
        wait_for(lambda: counted(agent, workload) == wanted, "everything to be counted", 20)
    equal(counted(agent, workload), wanted, "calls, errors, bytes")
    return wanted
