# SPDX-License-Identifier: Apache-2.0
"""What tests of whole programs share: a runner that speaks TAP, an agent on the simulated node, clients, and patience.

A test file imports this, defines functions called test_*, and ends with run(). It is started with two arguments, the build folder
and the checkout. Nothing here knows how long something takes: whatever must happen is waited for, with a limit so generous that only a
defect reaches it.
"""
import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BUILD, SOURCE = (os.path.abspath(p) for p in sys.argv[1:3])
GPUSONDE = f"{BUILD}/gpusonde"
SIMULATED = f"{BUILD}/sim/libnvidia-ml.so.1"
PATIENCE_S = 60
POLL_S, POLL_MAX_S = 0.05, 0.5


class Skip(Exception):
    """This cannot be tested here; the text says why."""


def wait_for(condition, what, seconds=PATIENCE_S, otherwise=lambda: ""):
    """The first true value of condition(); a failure that says what was waited for, and what otherwise() is instead."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"waited {seconds} s in vain for {what} {otherwise()}".rstrip())
        time.sleep(min(max(POLL_S, 3 * (now - begun)), POLL_MAX_S)) # who is waited for has most of the processor


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def contains(text, part):
    assert part in text, f"no {part!r} in: {text[:2000]}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.type = response.getheader("Content-Type", "")
        self.encoding = response.getheader("Content-Encoding", "")
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.text)


OTHERS = ("STATE_DIRECTORY", "NOTIFY_SOCKET", "LD_LIBRARY_PATH") # by the last, meson lets everybody find the simulated driver


def environment(**more):
    """Ours, without any gpusonde settings of the user who runs the tests."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GPUSONDE_") and k not in OTHERS}
    return dict(clean, **more)


def command(*args, env=None, **kwargs):
    """Runs gpusonde to its end: .returncode, .stdout, .stderr."""
    return subprocess.run([GPUSONDE, *args], env=env or environment(), capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, **kwargs)


def driver_children(pid):
    """Those that have the driver open."""
    return [child for child in children(pid) if comm(child) == "gpusonde-nvml"]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def children(pid):
    """Of all its threads: one of the agent's starts processes."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                found += [int(p) for p in f.read().split()]
        except OSError: # a thread that has ended
            pass
    return sorted(found)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def sample(line):
    """(name{labels}, number) of a line of an exposition page."""
    name, _, rest = line.rpartition("} ") if "{" in line else line.partition(" ")
    return name + "}" if "{" in line else name, float(rest.split()[0])


def samples(page):
    """name{labels} -> number, of an exposition page."""
    return dict(sample(line) for line in page.split("\n") if line and not line.startswith("#"))


def values(page, name, **labels):
    """Numbers of the series with this name that have all these labels."""
    wanted = [f'{k}="{v}"' for k, v in labels.items()]
    found = (sample(line) for line in page.split("\n") if line.startswith((name + "{", name + " ")))
    return [v for series, v in found if all(label in series for label in wanted)]


class Agent:
    """
    A gpusonde agent of our own, with addresses that nobody else has; ends with its block. @scenario is a name, a text, or None for
    no simulated driver. @program: what starts it, if not gpusonde itself: a wrapper and the program.
    """

    def __init__(self, *flags, scenario="node-8xh100", wait=True, tmp=None, command_name="agent",
                 listen="127.0.0.1:0", atop_listen="127.0.0.1:0", program=(GPUSONDE,), **env):
        self.program = program
        self.tmp_owner = None if tmp else tempfile.TemporaryDirectory(prefix="gpusonde-e2e-")
        self.tmp = tmp or self.tmp_owner.name
        self.socket = f"{self.tmp}/agent.sock"
        self.control = f"{self.tmp}/control.yaml"
        self.atop_name = f"gpusonde-e2e-{os.getpid()}-{id(self)}"
        self.log_path = f"{self.tmp}/log-{id(self)}"
        self.flags, self.wait, self.command_name, self.listen = flags, wait, command_name, listen
        self.atop_listen = atop_listen
        # Who tests tracing says so by a flag: others must not depend on what CUDA programs this machine runs.
        self.env = environment(GPUSONDE_SIM_CONTROL=self.control, GPUSONDE_TRACE_ENABLED="no")
        if scenario and "\n" in scenario:
            scenario = self.write("scenario.yaml", scenario)
        if scenario:
            self.env.update(GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=scenario)
        self.env.update(env)
        self.process = None

    def __enter__(self):
        addresses = (["--atop-listen", self.atop_listen] if self.atop_listen else []) + ["--atop-socket", self.atop_name, "--state-dir", f"{self.tmp}/state"]
        if self.command_name in ("agent", "dcgm-exporter"):
            addresses += ["--socket", self.socket] + (["--listen", self.listen] if self.listen else [])
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.program, self.command_name, *addresses, *self.flags], env=self.env,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if self.wait:
                self.wait_ready()
        except BaseException: # the block, and its end, will not be entered
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.tmp_owner:
            self.tmp_owner.cleanup()

    @property
    def pid(self):
        """Of the agent itself; `process` may be what started it."""
        return self.process.pid

    def write(self, name, text):
        """A file in the agent's folder, replaced as a whole; its path."""
        path = f"{self.tmp}/{name}"
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def port(self, what=r"listening on"):
        """Of the newest line of the log that names one."""
        found = re.findall(what + r" \S+:(\d+)(?: \(port (\d+)\))?$", self.log(), re.M)
        return int(found[-1][1] or found[-1][0]) if found else 0

    def atop_port(self):
        return wait_for(lambda: self.port("serving atop on"), "atop's port in the log")

    def get(self, path, method="GET", unix=False, timeout=PATIENCE_S, **headers):
        connection = UnixConnection(self.socket, timeout) if unix else \
            http.client.HTTPConnection("127.0.0.1", self.port(), timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            return Reply(connection.getresponse())

    def metrics(self):
        return self.get("/metrics").text

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the agent ended with status {self.process.returncode}: {self.log()}")
        if not self.port():
            return False
        return self.get("/readyz").status == 200

    def wait_ready(self):
        wait_for(self.is_ready, "/readyz to say 200")

    def wait_not_ready(self, *words):
        def gone():
            reply = self.get("/readyz")
            return reply.status == 503 and all(w in reply.text for w in words) and reply.text
        return wait_for(gone, f"/readyz to say 503 and {words}")

    def fault(self, *faults):
        """Makes the simulated driver misbehave from now on; with none, behave."""
        self.write("control.yaml", "faults:\n" + "".join(f"  - {{{fault}}}\n" for fault in faults) if faults else "faults: []\n")

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """SIGTERM; the seconds that it took, and the exit status."""
        begin = time.monotonic()
        self.signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        return time.monotonic() - begin, self.process.returncode

    def cli(self, *args, **env):
        return command(*args, "--socket", self.socket, env=dict(self.env, **env))


class Worker:
    """A process with a name of its own, for a scenario to find by `match`; it works on the GPU while the block lasts."""
    numbers = itertools.count()

    def __init__(self, tmp, env=None, user=None):
        self.env, self.user = env, user
        self.comm = f"e2e-{os.getpid()}-{next(Worker.numbers)}"
        self.path = shutil.copy(shutil.which("sleep"), f"{tmp}/{self.comm}")

    def __enter__(self):
        self.process = subprocess.Popen([self.path, "1000"], env=self.env, user=self.user)
        self.pid = self.process.pid
        return self

    def end(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.end()

    def scenario(self, *others):
        rows = (f"  - {{name: worker{n}, match: {w.comm}, gpus: 0, memory: 1GiB, load: {{gpu: {60 // (n + 1)}, memory: 30}}}}\n"
                for n, w in enumerate((self, *others)))
        return "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: h100-sxm}\nprocesses:\n" + "".join(rows)


def run():
    """Runs the test_* functions of the main module, in their order, as TAP; words on the command line choose by name."""
    import __main__
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)) # a test that is ended early leaves no agents behind
    tests = [(n, f) for n, f in vars(__main__).items() if n.startswith("test_") and callable(f)]
    wanted = sys.argv[3:]
    tests = [(n, f) for n, f in tests if not wanted or any(w in n for w in wanted)]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, function) in enumerate(tests, start=1):
        title = name.removeprefix("test_").replace("_", " ")
        try:
            function()
            print(f"ok {number} - {title}", flush=True)
        except Skip as why:
            print(f"ok {number} - {title} # SKIP {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {title}")
            print("\n".join("# " + line for line in traceback.format_exc().rstrip().split("\n")), flush=True)
    sys.exit(1 if failed else 0)
