#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace: of a command, of a process, of all; against what the simulated CUDA says that it was called for."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from lib.e2e import BUILD, GPUSONDE, PATIENCE_S, Skip, command, contains, environment, equal, run, wait_for
from lib.traced import chosen_sites, holds_links as holds_entries, tracing
from sim.cuda import truth

SIM = f"{BUILD}/sim/cuda"
WORKLOAD, LATE, SPIN = f"{SIM}/workload", f"{SIM}/workload-late", f"{SIM}/spin"

EVERYTHING = ("alloc 4096; alloc 65536 managed; alloc 8192 async; alloc 4096 host; alloc 4096 pitch; alloc 4096 array; alloc 2097152 vmm;"
              "copy h2d 4096; copy d2h 100 async; memset 64; stream create; event record; event wait; event sync; repeat 50; launch 3 64; end;"
              "graph 3 2; sync stream; stream destroy; stream use 0; sync; bad alloc; bad free; bad stream; bad launch; free all")


class Traced:
    """A command traced to its end, with its ground truth."""

    def __init__(self, *argv, flags=(), **env):
        tracing()
        with tempfile.TemporaryDirectory(prefix="gpusonde-trace-") as tmp:
            # Kernels take no time: what is tested is counted, not waited for.
            env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log", GPUSONDE_SIM_CUDA_KERNEL_US="0", **env)
            self.done = subprocess.run([GPUSONDE, "trace", "--json", *flags, "--", *argv], env=env, capture_output=True, text=True,
                                       timeout=PATIENCE_S, check=False)
            self.truth = {}
            if any(name.startswith("log.") for name in os.listdir(tmp)):
                self.truth = outermost(truth.read(f"{tmp}/log"))
        self.lines = [line for line in self.done.stdout.splitlines() if line.startswith("{")]
        self.document = json.loads(self.lines[-1])
        events = self.document["events"]
        equal(events["received"] + events["dropped"], events["produced"], "events")

    def seen(self):
        return {p["pid"]: {c["api"]: (c["count"], c["errors"]) for c in p["calls"]} for p in self.document["processes"]}

    def check(self):
        equal(self.done.returncode, 0, self.done.stderr)
        assert self.truth, "nothing was called"
        equal(self.seen(), self.truth, "calls by process")
        for process in self.document["processes"]:
            equal(process["incomplete"], [], f"process {process['pid']}")


def probed():
    """Names that carry a probe, by library; others are not to be seen."""
    names = {}
    for library, path in (("libcuda", f"{SIM}/libcuda.so.1"), ("libcudart", f"{SIM}/libcudart.so.13")):
        done = command("probes", "--json", path)
        names[library] = {site["symbol"] for site in json.loads(done.stdout)["sites"] if site["chosen"]}
    return names


def outermost(document):
    """pid -> api -> (count, errors) of calls that no other call made, as far as they are probed."""
    names, found = probed(), {}
    for process in document["processes"]:
        calls = found.setdefault(process["pid"], {})
        for call in process["calls"]:
            count = call["count"] - call["nested"]
            if count == 0 or call["api"] not in names[call["library"]]:
                continue
            errors = {code: n - call["nested_errors"].get(code, 0) for code, n in call["errors"].items()}
            returns = call["api"] != "__cudaRegisterFunction"  # 20,000 calls at a start: one trap each
            calls[call["api"]] = (count, {code: n for code, n in errors.items() if n > 0} if returns else None)
    return {pid: calls for pid, calls in found.items() if calls}


def test_every_kind_of_call_through_the_runtime():
    Traced(WORKLOAD, EVERYTHING).check()


def test_every_kind_of_call_of_the_driver():
    Traced(WORKLOAD, "api driver; " + EVERYTHING).check()


def test_per_thread_default_streams():
    Traced(WORKLOAD, "streams perthread; alloc 4096; repeat 30; launch; end; sync; free all").check()


def test_a_library_loaded_and_called_at_once():
    """Nothing is missed right after dlopen, in a program that lives for milliseconds."""
    for _ in range(5):
        Traced(LATE, f"load {SIM}/libcudart.so.13; alloc 4096; launch; sync; free all").check()


def test_sixty_four_threads():
    traced = Traced(WORKLOAD, "alloc 4096; threads 64; repeat 500; launch; end; sync; end; free all")
    traced.check()
    calls, = traced.seen().values()
    equal((calls["cudaLaunchKernel"], calls["cudaDeviceSynchronize"]), ((64 * 500, {}), (64, {})), "calls")


def test_what_the_command_starts():
    """Children by fork, and what the command becomes, are traced from their first call; each by itself."""
    traced = Traced("sh", "-c", f"{WORKLOAD} 'alloc 64; fork alloc 128; launch; end; sync' & {WORKLOAD} 'alloc 4096; exec alloc 64; launch'; wait")
    equal(traced.done.returncode, 0, traced.done.stderr)
    both = {}
    for process in traced.document["processes"]:   # one PID, two programs: the truth has them together
        for call in process["calls"]:
            calls = both.setdefault(process["pid"], {})
            count, errors = calls.get(call["api"], (0, {}))
            calls[call["api"]] = (count + call["count"], call["errors"] if call["errors"] is None else {**errors, **call["errors"]})
    equal(both, traced.truth, "calls by process")


def test_others_are_left_out():
    with subprocess.Popen([SPIN, "cuCtxGetCurrent", "--seconds", "30"], env=environment(LD_LIBRARY_PATH=SIM),
                          stdout=subprocess.DEVNULL) as other:
        try:
            traced = Traced(WORKLOAD, "alloc 4096; free all")
            traced.check()
            assert other.pid not in traced.seen()
        finally:
            other.kill()


def test_bytes_are_those_of_successful_calls():
    traced = Traced(WORKLOAD, "alloc 4096; alloc 100; bad alloc; copy h2d 1000; copy d2h 50; memset 10; free all")
    found = {c["api"]: c["bytes"] for p in traced.document["processes"] for c in p["calls"]}
    equal(found["cudaMalloc"], 4196, "cudaMalloc")
    equal(sum(n for api, n in found.items() if api.startswith("cudaMemcpy")), 1050, "copies")


def test_the_exit_status_is_the_commands():
    tracing()
    equal(command("trace", "--", "sh", "-c", "exit 7").returncode, 7)
    equal(command("trace", "--", "sh", "-c", "kill -KILL $$").returncode, 128 + signal.SIGKILL)
    missing = command("trace", "--", "/nonexistent/program")
    equal(missing.returncode, 127)
    contains(missing.stderr, "cannot run /nonexistent/program")


def test_the_commands_output_is_left_alone():
    tracing()
    done = command("trace", "--", "sh", "-c", "echo out; echo err >&2")
    equal(done.stdout, "out\n")
    contains(done.stderr, "err\n")
    contains(done.stderr, "No calls of CUDA were seen")


def test_the_summary_names_calls_and_errors():
    tracing()
    done = command("trace", WORKLOAD, "alloc 4096; bad free; free all", env=environment(LD_LIBRARY_PATH=SIM))
    contains(done.stderr, "cudaMalloc")
    contains(done.stderr, "invalid value")


def test_raw_events():
    traced = Traced(WORKLOAD, "alloc 4096; launch 2 32; sync; free all", flags=["--raw"])
    events = [json.loads(line) for line in traced.lines[:-1] if "api" in json.loads(line)]
    launches = [e for e in events if e["type"] == "launch"]
    equal(len(launches), 1, "launches")
    equal((launches[0]["grid"], launches[0]["block"], launches[0]["result"]), ([2, 1, 1], [32, 1, 1], 0), "the launch")
    alloc = next(e for e in events if e["api"] == "cudaMalloc")
    equal((alloc["size"], alloc["result"], alloc["comm"]), (4096, 0, "workload"), "cudaMalloc")
    assert all(0 <= e["cpu"] < os.cpu_count() for e in events), events
    variables = {e["name"]: e["set"] for e in events if e["type"] == "variable"}
    equal(variables, {"CUDA_VISIBLE_DEVICES": False, "CUDA_DEVICE_ORDER": False}, "variables at cuInit")
    free = next(e for e in events if e["api"] == "cudaFree" and e["addr"])
    equal(free["addr"], alloc["addr"], "what is freed")
    # The kernel of the launch is got within it, and told all the same.
    register = next(e for e in events if e["api"] == "__cudaRegisterFunction")
    equal((register["handle"], "result" in register), (launches[0]["function"], False), "the host function")
    load = next(e for e in events if e["api"] == "cuLibraryLoadData")
    name = next(e for e in events if e["type"] == "name")
    equal((name["api"], name["of"], name["name"]), ("cuLibraryGetKernel", load["handle"], "work"), "the kernel's name")
    assert name["handle"] and load["addr"] and launches[0]["time_ns"] < load["time_ns"] < name["time_ns"], (name, load)


def test_names_of_the_driver():
    """By both interfaces' calls, as text: what a handle is called, and of which module."""
    tracing()
    done = command("trace", "--raw", "--", WORKLOAD, "api driver; launch; sync", env=environment(LD_LIBRARY_PATH=SIM))
    equal(done.returncode, 0, done.stderr)
    line = next(line for line in done.stdout.splitlines() if " cuModuleGetFunction " in line)
    assert re.search(r"cuModuleGetFunction handle 0x[0-9a-f]+ of 0x[0-9a-f]+ name work$", line), line


def test_without_return_probes():
    """Only the driver is probed, since nesting cannot be told; results are unknown, and that is said."""
    traced = Traced(WORKLOAD, "alloc 4096; free all", flags=["--trace-return-probes=no"])
    equal(len(traced.document["processes"]), 1, f"processes in {traced.document}; standard error: {traced.done.stderr}")
    process, = traced.document["processes"]
    equal(process["incomplete"], ["no_return_probes"])
    assert all(not call["api"].startswith("cuda") for call in process["calls"]), process
    assert any(call["api"] == "cuMemAlloc_v2" and call["p50_ns"] is None for call in process["calls"]), process


@contextlib.contextmanager
def paused(tmp, script, program=LATE):
    env = environment(LD_LIBRARY_PATH=SIM, GPUSONDE_SIM_CUDA_LOG=f"{tmp}/log", GPUSONDE_SIM_CUDA_KERNEL_US="0")
    with subprocess.Popen([program, script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            equal(process.stdout.readline(), "ready\n")
            yield process
        finally:
            process.kill()


def test_a_running_process():
    """Traced from outside by its PID; it ends, and so does the trace, with what was called since."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp, paused(tmp, "alloc 4096; pause; repeat 40; launch; end; sync; free all") as process:
        with subprocess.Popen([GPUSONDE, "trace", "--json", "-p", str(process.pid)], env=environment(), stdout=subprocess.PIPE,
                              text=True) as tracer:
            wait_for(lambda: probes_in(process.pid, tracer.pid), "probes in the process")
            process.stdin.write("\n")
            process.stdin.flush()
            document = json.loads(tracer.communicate(timeout=PATIENCE_S)[0])
        equal(process.wait(PATIENCE_S), 0)
    found, = document["processes"]
    equal(found["pid"], process.pid)
    counts = {c["api"]: c["count"] for c in found["calls"]}
    equal((counts["cudaLaunchKernel"], counts["cudaFree"]), (40, 1), str(counts))
    assert "cudaMalloc" not in counts, counts
    assert found["incomplete"], "it ran before it was probed, which must be said"


def test_a_device_chosen_before_is_not_guessed():
    """A program that has chosen device 1 before it is probed: its launches are on no device that is known, not on device 0."""
    tracing()
    steps = "device 1; alloc 4096; repeat 400; launch; sync; sleep 5; end"
    with subprocess.Popen([f"{SIM}/workload", steps], env=environment(LD_LIBRARY_PATH=SIM), stdout=subprocess.DEVNULL) as process:
        done = command("trace", "--kernels", "--json", "-p", str(process.pid),
                       env=environment(GPUSONDE_NVML_LIBRARY=f"{BUILD}/sim/libnvidia-ml.so.1"))
        equal(process.wait(PATIENCE_S), 0)
    devices = json.loads(done.stdout)["kernels"]["devices"]
    equal([d["uuid"] for d in devices], [None], f"where {[d['launches_total'] for d in devices]} launches are said to be")


def holds_links(pid):
    """More than once in a row: it tries links on code of its own when it starts."""
    for _ in range(3):
        links = 0
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links += os.readlink(f"/proc/{pid}/fd/{fd}") in ("anon_inode:bpf_link", "anon_inode:[perf_event]")
        if not links:
            return False
        time.sleep(0.1)
    return True


def probes_in(pid, tracer):
    """Breakpoints make pages of code private: they show in the text mappings of the library. They may be another tracer's, or not be all yet."""
    if not holds_links(tracer):
        return False
    with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as f:
        text, code = f.read().splitlines(), False
    for line in text:
        words = line.split()
        if "-" in words[0] and len(words) >= 5:
            library = words[-1]
            code = "x" in words[1] and "libcudart" in library
        elif code and words[0] == "Anonymous:" and int(words[1]) > 0:
            return holds_entries(tracer, library, chosen_sites(library))
    return False


def reader_of(fifo):
    """A descriptor to write to @fifo, once somebody reads it."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_killed_in_the_midst():
    """SIGKILL of gpusonde: the command, its later libraries included, goes on as if nothing had been."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = f"{tmp}/done"
        os.mkfifo(f"{tmp}/go")
        script = f"{LATE} 'load {SIM}/libcudart.so.13; alloc 4096; launch; sync; free all' && cp {shutil.which('true')} {tmp}/t && {tmp}/t && echo fine > {done}"
        with subprocess.Popen([GPUSONDE, "trace", "--", "sh", "-c", f"read line < {tmp}/go; {script}"], stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, env=environment(LD_LIBRARY_PATH=SIM)) as tracer:
            fd = wait_for(lambda: reader_of(f"{tmp}/go"), "the command to begin")
            tracer.kill()
            tracer.wait()
        with os.fdopen(fd, "w", encoding="ascii") as f:
            f.write("go\n")
        wait_for(lambda: os.path.exists(done) and open(done, encoding="ascii").read() == "fine\n", "the command to go on")


def holder_of(command_line):
    """The PID of the process that holds this command."""
    for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                words = f.read().split("\0")
        except OSError:
            continue
        if "trace-holder".startswith(words[0]) and words[0] and command_line in words:
            return pid
    return None


def test_a_killed_holder_is_reported():
    """Without it the command's later programs cannot run: the reason is printed."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        os.mkfifo(f"{tmp}/go")
        script = f"read line < {tmp}/go; {shutil.which('env')}"
        with subprocess.Popen([GPUSONDE, "trace", "--", "sh", "-c", script], stderr=subprocess.PIPE, text=True, env=environment()) as tracer:
            with os.fdopen(wait_for(lambda: reader_of(f"{tmp}/go"), "the command to begin"), "w", encoding="ascii") as f:
                os.kill(wait_for(lambda: holder_of(script), "the holder"), signal.SIGKILL)
                f.write("go\n")
            contains(tracer.communicate(timeout=60)[1], "trace-holder was killed")


def test_exceptions_are_caught():
    program = f"{BUILD}/test/programs/exceptions"
    if not os.path.exists(program):
        raise Skip("test/programs/exceptions was not built: no C++ compiler, or a build with sanitizers")
    tracing()
    done = command("trace", "--", program, "10")
    equal(done.returncode, 0, done.stderr)
    contains(done.stdout, '"caught":50')


def unwinding(*flags):
    program = f"{BUILD}/test/programs/unwinding"
    if not os.path.exists(program):
        raise Skip("test/programs/unwinding was not built: no C++ compiler, or a build with sanitizers")
    tracing()
    done = command("trace", *flags, "--", program) if flags else subprocess.run([program], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def test_what_return_probes_do_to_unwinding():
    """docs/tracing.md says it: a backtrace ends at a return-probed function, and so does the unwinding of a cancelled thread."""
    alone = unwinding()
    equal(alone["destroyed"], 1)
    equal(unwinding("--trace-return-probes=no"), alone, "without return probes")
    traced = unwinding("--trace-return-probes=yes")
    assert traced["frames"] < alone["frames"], (traced, alone)
    equal(traced["destroyed"], 0)


def test_calls_after_one_that_was_left():
    """What longjmp leaves never returns, and what is called deeper in the stack afterwards is not nested in it."""
    program = f"{BUILD}/test/programs/leaving"
    if not os.path.exists(program):
        raise Skip("test/programs/leaving was not built: no C++ compiler, or a build with sanitizers")
    tracing()
    done = command("trace", "--json", "--", program)
    equal(done.returncode, 0, done.stderr)
    call, = json.loads(done.stdout)["processes"][0]["calls"]
    equal((call["api"], call["count"], call["nested"]), ("cudaStreamSynchronize", 50, 0))


# Threads, exceptions and tensors of the program's own, and CUDA through ctypes from the same threads.
PYTHON = """
import ctypes, sys, threading
try:
    import torch
except ImportError:
    torch = None
if torch is None and sys.argv[1] == "torch":
    sys.exit(77)
cuda = ctypes.CDLL("libcudart.so.13")
results = []
def work():
    caught = 0
    address = ctypes.c_void_p()
    for i in range(100):
        assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
        if torch and sys.argv[1] == "torch":
            try:
                torch.ones(2, 3) + torch.ones(4, 5)
            except RuntimeError:
                caught += 1
            assert float((torch.eye(8) @ torch.ones(8, 8)).sum()) == 64
        else:
            try:
                [][i]
            except IndexError:
                caught += 1
        assert cuda.cudaFree(address) == 0
    results.append(caught)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("caught", sum(results))
"""


def python(kind):
    interpreter = shutil.which("python3", path="/usr/bin") or sys.executable
    traced = Traced(interpreter, "-c", PYTHON, kind)
    if traced.done.returncode == 77:
        raise Skip("no PyTorch: apt-get install python3-torch")
    traced.check()
    contains(traced.done.stdout, "caught 400")
    calls, = traced.seen().values()
    equal((calls["cudaMalloc"], calls["cudaFree"]), ((400, {}), (400, {})), "calls")


def test_python_goes_on_as_it_was():
    python("plain")


def test_pytorch_goes_on_as_it_was():
    python("torch")


def test_a_time():
    """A trace of all ends by itself; with an interval there is an object for each, whose sums grow."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp, paused(tmp, "alloc 4096; pause; repeat 400; launch; sleep 10; end") as process:
        with subprocess.Popen([GPUSONDE, "trace", "--json", "--duration", "4s", "--interval", "1s"], env=environment(), stdout=subprocess.PIPE,
                              text=True) as tracer:
            wait_for(lambda: probes_in(process.pid, tracer.pid), "probes in the process")
            process.stdin.write("\n")
            process.stdin.flush()
            lines = tracer.communicate(timeout=PATIENCE_S)[0].splitlines()
        equal(tracer.returncode, 0)
        process.kill()
    assert 4 <= len(lines) <= 6, f"{len(lines)} objects"
    counts = [next((c["count"] for p in json.loads(line)["processes"] if p["pid"] == process.pid for c in p["calls"]
                    if c["api"] == "cudaLaunchKernel"), 0) for line in lines]
    assert counts == sorted(counts) and counts[-1] > counts[0], counts


def test_mistakes_name_their_remedy():
    for arguments, words in ((["-p", "x"], "must be a process ID"), (["-p", "1", "--", "true"], "not both"),
                             (["--trace-buffer", "1"], "trace-buffer"), (["--nonsense"], "unknown option --nonsense")):
        done = command("trace", *arguments)
        equal(done.returncode, 2, str(arguments))
        contains(done.stderr, words)
    done = command("trace", "-p", "4194304")
    equal(done.returncode, 1)
    contains(done.stderr, "there is no process 4194304")


def test_without_privileges():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root, to become somebody else, and setpriv (util-linux)")
    done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", GPUSONDE, "trace", "--", "true"], env=environment(),
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if "Permission denied" in done.stderr and "gpusonde trace:" not in done.stderr:
        raise Skip("others may not execute what is built here")
    equal(done.returncode, 1, done.stderr)
    contains(done.stderr, "CAP_BPF")


if __name__ == "__main__":
    run()
