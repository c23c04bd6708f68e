#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside gpusonde: it does what it does alone, whatever gpusonde does, and its CUDA calls are counted.

    frameworks.py BUILD SOURCE debian|newest [words of names of tests]

torch_job.py is run alone, under gpusonde trace, beside an agent, and with gpusonde let go of or killed in the middle. "debian": Debian's package, without CUDA;
NVIDIA's runtime and driver are loaded beside it. "newest": PyPI's, with the CUDA libraries that come with it. Neither finds a GPU.
"""
import collections
import contextlib
import functools
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from lib import counts, e2e, rows

import probed
import real

WHICH = sys.argv.pop(3)
JOB = f"{e2e.SOURCE}/test/real/torch_job.py"
STEPS = ("begun", "loaded", "called", "done")
DRIVER_CALLS = ("cuMemAlloc_v2", "cuLaunchKernel", "cuStreamSynchronize", "cuMemcpyHtoD_v2")
REGISTER = "__cudaRegisterFunction"
JOB_S = 300
POLL_S = 0.002
FOREIGN_S = 1.5 # in which another tracer finds a process, by scanning at the latest


class Framework:
    """How to run the job: its interpreter, its environment, and the runtime that it is to load."""

    def __init__(self):
        driver = os.path.dirname(real.driver("550"))
        self.env = {"LD_LIBRARY_PATH": driver, "PYTHONDONTWRITEBYTECODE": "1"}
        if WHICH == "newest":
            site = real.thing("torch-newest")["site"]
            self.python, self.runtime = sys.executable, ""
            self.env["PYTHONPATH"] = site
        else:
            self.python, self.runtime = "/usr/bin/python3", real.thing("runtime-12.4")["libcudart.so.12"]
            if subprocess.run([self.python, "-c", "import torch"], capture_output=True, check=False).returncode:
                raise e2e.Skip("no PyTorch here: apt-get install python3-torch")
        self.alone = self.version = None    # what it prints alone
        self.loaded = {}                    # the step


_framework = []


def framework():
    """Ready to run, with what it does alone."""
    if os.uname().machine != "x86_64":
        raise e2e.Skip("looks for breakpoints of x86-64")
    real.need_tracing()
    if not _framework:
        made = Framework()
        with Job(made) as job:
            job.finish()
            made.alone, made.version, made.loaded = job.printed(), job.step("begun")["version"], job.step("loaded")
        _framework.append(made)
    return _framework[0]


class Job:
    """A run of the job, which waits after each step until it is told to go on; @traced: by gpusonde trace, from its first instruction on."""

    def __init__(self, made, traced=False, **env):
        self.tmp = tempfile.TemporaryDirectory(prefix="gpusonde-torch-")
        self.report, self.output = f"{self.tmp.name}/report", f"{self.tmp.name}/document"
        self.files = [open(f"{self.tmp.name}/{name}", "w+", encoding="utf-8") for name in ("out", "err")]
        self.released = 0   # steps that it was told to go on after
        before = [e2e.GPUSONDE, "trace", "--json", "--output", self.output, "--"] if traced else []
        self.process = subprocess.Popen([*before, made.python, JOB, self.report, made.runtime], stdin=subprocess.PIPE, stdout=self.files[0],
                                        stderr=self.files[1], text=True, env=e2e.environment(**made.env, **env))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for file in self.files:
            file.close()
        self.tmp.cleanup()

    def steps(self):
        with contextlib.suppress(FileNotFoundError), open(self.report, encoding="ascii") as f:
            return {found["step"]: found for found in map(json.loads, (line for line in f if line.endswith("\n")))}
        return {}

    def ended(self):
        """Not by a signal of ours, which may have been for gpusonde, whose child it is."""
        return (self.process.poll() or 0) > 0

    def step(self, name):
        def come():
            found = self.steps().get(name)
            assert found or not self.ended(), f"it ended with {self.process.returncode} before its step {name}: {self.printed()}"
            return found
        return e2e.wait_for(come, f"the job's step {name}", JOB_S)

    def go_on(self):
        self.step(STEPS[self.released])
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.released += 1

    def reach(self, name):
        """The step, where it waits."""
        while STEPS[self.released] != name:
            self.go_on()
        return self.step(name)

    def finish(self, made=None, status=0):
        """To its end: it prints what it prints alone."""
        done = self.reach("done")
        self.go_on()
        e2e.equal(self.process.wait(JOB_S), status, f"exit status, with {self.printed()}")
        e2e.wait_for(lambda: not e2e.alive(done["pid"]), "the job to end")
        if made:
            e2e.equal(self.printed(), made.alone, "what it prints, against what it prints alone")
        return done

    def printed(self):
        for file in self.files:
            file.seek(0)
        return [file.read() for file in self.files]

    def document(self):
        with open(self.output, encoding="utf-8") as f:
            return json.load(f)


def mentions_cuda(path):
    """Only what has such a name somewhere can have a function of that name: hundreds of libraries have not."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(b"\0" + name + b"\0") >= 0 for name in (b"cuInit", b"cudaMalloc"))


@functools.lru_cache(maxsize=None)
def targets():
    """Of the libraries that the job maps, those in which gpusonde has something to probe."""
    paths = framework().loaded["mapped"]
    found = [probed.Sites(path) for path in filter(mentions_cuda, paths) if e2e.command("probes", "--json", path).returncode == 0]
    names = [sites.name for sites in found]
    assert "libcuda.so.1" in names and any(name.startswith("libcudart.so") for name in names), f"of {len(paths)} libraries {names} have entry points"
    return found


def the_driver():
    return next(sites for sites in targets() if sites.name == "libcuda.so.1")


def alone_here():
    """Breakpoints do not tell whose they are: a skip where somebody else traces this machine."""
    code = "import ctypes, sys; ctypes.CDLL('libcuda.so.1'); print('loaded', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], env=e2e.environment(**framework().env), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(FOREIGN_S)
        found, _ = the_driver().breakpoints(process.pid)
        process.stdin.close()
    if found:
        raise e2e.Skip(f"somebody else traces this machine, too: {found} breakpoints in a process that is not ours to trace")


def wait_probed(sites, pid):
    """When the last breakpoint was seen in the process's memory, of CLOCK_MONOTONIC, in ns."""
    end = time.monotonic() + e2e.PATIENCE_S
    while not all(s.all_there(pid) for s in sites):
        assert time.monotonic() < end, f"breakpoints, sites that are mapped, sites: {[(s.name, s.breakpoints(pid), len(s.offsets)) for s in sites]}"
        time.sleep(POLL_S)
    return time.monotonic_ns()


def wait_unprobed(sites, pid):
    e2e.wait_for(lambda: all(s.all_gone(pid) for s in sites), "all breakpoints to be gone")


def say(**cells):
    made = framework()
    rows.say("frameworks", f"PyTorch {made.version} ({'PyPI' if WHICH == 'newest' else 'Debian'})", **cells)


def truth(pid, calls):
    return {"pid": pid, "calls": [{"api": api, "results": results} for api, results in calls.items()]}


def since(calls, before):
    """Those that were made after @before."""
    found = {api: dict(collections.Counter(codes) - collections.Counter(before.get(api, {}))) for api, codes in calls.items()}
    return {api: codes for api, codes in found.items() if codes}


def registering():
    """Libraries that register kernels, by a runtime's function that is theirs or others use."""
    return [sites.path for sites in targets() if any(s["symbol"] == REGISTER for s in real.sites(sites.path))]


def test_traced_from_its_start_to_its_end():
    made = framework()
    with probed.counted(registering(), REGISTER) as registered, Job(made, traced=True) as job:
        wait_probed(targets(), job.reach("loaded")["pid"])
        done = job.finish(made)
        calls = dict(done["calls"], **({REGISTER: {"0": registered()}} if registered() else {}))
        document = job.document()
    wanted = counts.check(truth(done["pid"], calls), document)
    e2e.equal(document["probes"]["files"], len(targets()), "files that were probed")
    e2e.equal([p["incomplete"] for p in document["processes"]], [[]], "what is incomplete")
    kinds = ", ".join(f"{s.name} ({len(s.offsets)})" for s in targets())
    if WHICH == "newest":
        with open(real.thing("torch-newest")["fetched.json"], encoding="ascii") as f:
            fetched = json.load(f)
        say(fetched=f"{fetched['mib']:,} MiB, fetched in {fetched['seconds']} s")
    say(libraries=f"{kinds}, of {len(made.loaded['mapped'])} that are mapped", counted=real.exact(wanted))


def test_its_compiler_traced():
    """torch.compile runs compilers, and processes that wait for work; its messages have the time in them."""
    if WHICH != "newest" or not shutil.which("g++"):
        raise e2e.Skip("torch.compile is the newest PyTorch's, and needs g++")
    made, printed = framework(), []
    for traced in (False, True):
        with tempfile.TemporaryDirectory() as cache, Job(made, traced=traced, JOB_COMPILE="1", TORCHINDUCTOR_CACHE_DIR=cache) as job:
            job.finish()
            printed.append(job.printed()[0])
    e2e.contains(printed[0], "compiled ")
    e2e.equal(printed[1], printed[0], "what it prints traced, against alone")


def test_traced_from_outside_and_let_go_of():
    made = framework()
    alone_here()
    with Job(made) as job:
        loaded = job.reach("loaded")
        pid, begin_ns = loaded["pid"], time.monotonic_ns()
        with subprocess.Popen([e2e.GPUSONDE, "trace", "--json", "-p", str(pid)], env=e2e.environment(), stdout=subprocess.PIPE, text=True) as tracer:
            attached_s = (wait_probed(targets(), pid) - begin_ns) / 1e9
            called = job.reach("called")
            tracer.send_signal(signal.SIGINT)
            document = json.loads(tracer.communicate(timeout=JOB_S)[0])
        wait_unprobed(targets(), pid)
        job.finish(made)
    counts.check(truth(pid, called["calls"]), document)
    e2e.contains(document["processes"][0]["incomplete"], "late")
    say(attach_pid=f"{attached_s:.2f} s after gpusonde trace -p is started")


@contextlib.contextmanager
def tracing_agent():
    """It has begun to: what it takes to begin is no part of what it takes to probe a library."""
    with e2e.Agent("--trace-enabled", "yes") as agent:
        e2e.wait_for(lambda: (agent.get("/api/v1/trace").json()["trace"] or {}).get("enabled"), "the agent to trace")
        yield agent


def agent_calls(agent, pid):
    found = [p for p in agent.get("/api/v1/trace").json()["trace"]["processes"] if p["pid"] == pid]
    return {c["api"]: [c["count"], c["errors"]] for p in found for c in p["calls"] if c["api"] in DRIVER_CALLS}


def test_beside_an_agent_that_is_killed():
    """Probed while it runs, and exact from then on; killed, not a breakpoint stays."""
    made = framework()
    alone_here()
    with tracing_agent() as agent, Job(made) as job:
        pid = job.process.pid
        seen_ns = wait_probed([the_driver()], pid)
        attached_s = (seen_ns - job.reach("begun")["before_ns"]) / 1e9
        wanted = {api: entry for api, entry in counts.truth_of(truth(pid, job.reach("called")["calls"])).items() if api in DRIVER_CALLS}
        with contextlib.suppress(AssertionError): # the comparison says more
            e2e.wait_for(lambda: agent_calls(agent, pid) == wanted, "the agent to count")
        e2e.equal(agent_calls(agent, pid), wanted, "what the agent counted")
        agent.process.kill()
        agent.process.wait()
        wait_unprobed(targets(), pid)
        job.finish(made)
    say(attach=f"{attached_s:.2f} s after it begins to load libcuda")


def test_a_second_one_beside_an_agent():
    """The library is probed already: nothing is missed from its first call on."""
    made = framework()
    with tracing_agent() as agent, Job(made) as first:
        wait_probed([the_driver()], first.reach("loaded")["pid"])
        with Job(made) as second:
            called = second.reach("called")
            wanted = {api: entry for api, entry in counts.truth_of(truth(called["pid"], called["calls"])).items() if api in DRIVER_CALLS}
            e2e.wait_for(lambda: agent_calls(agent, called["pid"]) == wanted, "the agent to count")
            second.finish(made)
        first.finish(made)


def test_killed_in_the_midst():
    """gpusonde trace, which held each of its mappings: the job goes on, and is not probed any more."""
    made = framework()
    alone_here()
    with Job(made, traced=True) as job:
        pid = job.reach("loaded")["pid"]
        wait_probed(targets(), pid)
        job.process.kill()
        job.process.wait()
        wait_unprobed(targets(), pid)
        job.finish(made, status=-signal.SIGKILL)
    say(runs="same output and exit status: traced, let go of, beside an agent, gpusonde killed by SIGKILL in the midst")


if __name__ == "__main__":
    e2e.run()
