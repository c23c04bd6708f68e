# SPDX-License-Identifier: Apache-2.0
"""gpusonde top on a terminal (tmux): keys, sizes, a driver and an agent that hang, names that users chose, and the same numbers as in JSON."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

from lib.e2e import GPUSONDE, SIMULATED, Agent, Worker, command, contains, environment, equal, run, wait_for
from lib.tmux import Terminal


def terminal(agent, *args, home=None, columns=120, rows=30, term="tmux-256color", **env):
    env = dict(agent.env if agent else environment(GPUSONDE_NVML_LIBRARY=SIMULATED), HOME=home or "/nonexistent", **env)
    env.pop("XDG_CONFIG_HOME", None)
    return Terminal(GPUSONDE, *args, "--socket", agent.socket if agent else "none", columns=columns, rows=rows, env=env, term=term)


def test_it_starts_shows_and_ends():
    with Agent() as agent, terminal(agent, "top") as screen:
        screen.shows("SIMULATED", "8x H100 80GB HBM3", "UTIL", "PID", "h help")
        screen.keys("h")
        screen.shows("Ends. Ctrl-C does, too.", "any key: back")
        screen.keys("x")
        screen.shows("h help", without=["any key: back"])
        screen.keys("q")
        equal(screen.status(), 0)
        equal(screen.errors(), "")
        assert "UTIL" not in screen.screen(), "the alternate screen is left"


def test_gpusonde_alone_on_a_terminal():
    with Agent() as agent:
        env = dict(agent.env, HOME="/nonexistent", GPUSONDE_CONTROL_SOCKET=agent.socket)
        with Terminal(GPUSONDE, columns=100, rows=30, env=env) as screen:
            screen.shows("SIMULATED", "h help")
            screen.keys("C-c")
            equal(screen.status(), 0)
    out = subprocess.run([GPUSONDE], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    equal(out.returncode, 2, "without a terminal it says what there is")
    contains(out.stderr, "usage: gpusonde COMMAND")


def test_without_an_agent_it_samples_itself():
    with terminal(None, "top") as screen:
        screen.shows("8x H100 80GB HBM3", "PID", "no agent is queried")
        screen.keys("q")
        equal(screen.status(), 0)


def test_no_terminal_and_unknown_terminals():
    out = command("top")
    equal(out.returncode, 1)
    contains(out.stderr, "this is no terminal: gpusonde gpus and gpusonde ps print tables")
    with terminal(None, "top", term="no-such-terminal") as screen:
        equal(screen.status(), 1)
        contains(screen.errors(), "TERM=no-such-terminal, is not known here")
    equal(command("top", "--interval", "1h").returncode, 2)


def test_every_tab():
    with Agent() as agent, terminal(agent, "top") as screen:
        for key, words in (("2", "WORKLOAD"), ("3", "WHO"), ("4", "No CUDA calls"), ("5", "No kernels"), ("6", "No operations of NCCL"), ("7", "No operators"),
                           ("8", "No findings"), ("9", "XID"), ("0", "NV18"), ("1", "UTIL")):
            screen.keys(key)
            screen.shows(words)
        screen.keys("Tab")
        screen.shows("WORKLOAD")
        screen.keys("b")
        screen.shows("THROTTLED BY")


def test_sizes_and_resizes():
    with Agent() as agent, terminal(agent, "top", columns=80, rows=24) as screen:
        for columns, rows in ((60, 16), (200, 60), (20, 5), (400, 120), (80, 24)):
            screen.resize(columns, rows)
            screen.shows("SIMULATED")
            if columns >= 60:
                screen.shows("h help  q quit", " PID")
                wait_for(lambda: len(screen.lines()[0].rstrip()) == columns, "the age at the right end of the first line")
        screen.keys("q")
        equal(screen.status(), 0)


def test_colours_and_none():
    with Agent() as agent:
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            with terminal(agent, "top", **env) as screen:
                screen.shows("UTIL", "ok")
                equal(bool(re.search(r"\x1b\[(3[1-7]|38;)", screen.screen("-e"))), coloured, env)
        with terminal(agent, "top", LC_ALL="C") as screen:
            text = screen.shows("UTIL", "#")
            assert text.isascii(), text


def test_the_same_numbers_as_json():
    """Of a worker whose load does not change."""
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker:
        with Agent(scenario=worker.scenario()) as agent, terminal(agent, "top", columns=200) as screen:
            screen.keys("2")
            screen.shows(worker.comm)
            line = next(l for l in screen.lines() if worker.comm in l)
            process = next(p for p in agent.get("/api/v1/processes").json()["processes"] if p["pid"] == worker.pid)
            contains(line, f"{process['memory_bytes'] / 2**30:.1f} GiB")
            contains(line, str(worker.pid))
            contains(line, "root" if os.getuid() == 0 else str(os.getuid()))
            # The host's own figures: a process that sleeps, with one thread.
            assert re.search(r" 1 S ", line), line
            screen.keys("1")
            gpu = agent.get("/api/v1/gpus").json()["gpus"][0]
            screen.shows(f"{gpu['memory_used_bytes'] / 2**30:.1f}/{gpu['memory_total_bytes'] / 2**30:.1f} GiB")


def test_a_driver_that_hangs_makes_numbers_old_and_the_screen_no_slower():
    with Agent("--nvml-call-timeout", "60s") as agent, terminal(agent, "top") as screen:
        screen.shows("ok")
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        screen.shows("stale ", "No new data")
        screen.has_line(r" *0 H100 .* stale \d")
        screen.keys("2")
        screen.shows("WORKLOAD")
        screen.keys("q")
        equal(screen.status(), 0)


def test_an_agent_that_hangs_stops_nothing():
    with Agent() as agent, terminal(agent, "top") as screen:
        screen.shows("UTIL")
        agent.signal(signal.SIGSTOP)
        try:
            screen.keys("0")
            screen.shows("NV18")
            screen.keys("h")
            screen.shows("any key: back")
            wait_for(lambda: float((re.search(r"age (\d+\.\d) s", screen.screen()) or ["", "0"])[1]) > 1.5, "the age of what is shown to grow")
            screen.keys("q")
            screen.keys("q")
            equal(screen.status(), 0)
        finally:
            agent.signal(signal.SIGCONT)


def test_released():
    with Agent() as agent, terminal(agent, "top") as screen:
        screen.shows("ok")
        equal(agent.cli("release").returncode, 0)
        screen.has_line(r" *0 H100 .* RELEASED ")
        equal(agent.cli("resume").returncode, 0)
        screen.shows("ok", without=["RELEASED"])


def test_hostile_names_stay_in_their_cells():
    """Escapes, line ends, wide characters, marks, bytes that are no text, as names of programs."""
    names = (b"\x1b[2Jx", b"a\nb\rc", "\u6f22\u5b57\u6f22".encode(), "e\u0301\u200d\u202ex".encode(), b"\xff\xfey")
    prefixes = [f"t{os.getpid() % 1000}{letter}" for letter in "abcde"]
    scenario = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nprocesses:\n" + \
        "".join(f"  - {{name: w{i}, match: {prefix}*, gpus: 0, memory: 1GiB, load: {{gpu: 9}}}}\n" for i, prefix in enumerate(prefixes))
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        pids = []
        for prefix, name in zip(prefixes, names):
            path = shutil.copy(shutil.which("sleep"), os.path.join(tmp.encode(), prefix.encode() + name))
            process = subprocess.Popen([path, "1000"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(str(process.pid))
        agent = stack.enter_context(Agent(scenario=scenario))
        screen = stack.enter_context(terminal(agent, "top", columns=100))
        screen.keys("2")
        text = screen.shows(*pids, f"{prefixes[0]}?[2Jx", f"{prefixes[1]}a?b?c", f"{prefixes[2]}\u6f22\u5b57\u6f22", f"{prefixes[4]}??y", "h help")
        equal([len(re.findall(rf"^ *0 +{pid} ", text, re.M)) for pid in pids], [1] * len(pids), text)


def test_signals_ask_first():
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker:
        with Agent(scenario=worker.scenario()) as agent, terminal(agent, "top") as screen:
            screen.keys("2")
            screen.shows(worker.comm)
            screen.keys("k")
            screen.shows("select a process first")
            screen.keys("Down")
            screen.keys("k")
            screen.shows("SIGTERM", "SIGKILL", str(worker.pid))
            screen.keys("Enter")
            screen.shows(f"Send SIGTERM to process {worker.pid}")
            screen.keys("n")
            screen.shows("nothing was sent")
            equal(worker.process.poll(), None)
            screen.keys("k")
            screen.shows("SIGTERM")
            screen.keys("Enter")
            screen.shows("y: yes")
            screen.keys("y")
            screen.shows(f"SIGTERM was sent to process {worker.pid}")
            equal(worker.process.wait(60), -signal.SIGTERM)


def test_a_process_of_its_own_screen():
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker:
        with Agent(scenario=worker.scenario()) as agent, terminal(agent, "top") as screen:
            screen.shows(worker.comm)
            screen.keys("Down")
            screen.keys("Enter")
            screen.shows(f"Process {worker.pid}", "GPU MEM", "No calls and kernels")
            screen.keys("t")
            screen.shows("nothing is traced")
            worker.end()
            screen.shows("It has ended")
            screen.keys("Escape")
            screen.shows("h help")


def test_filter_group_freeze_and_files():
    with Agent() as agent, tempfile.TemporaryDirectory() as home, terminal(agent, "top", home=home) as screen:
        screen.keys("2")
        screen.shows("WORKLOAD")
        screen.keys("f")
        screen.keys("-l", "gpu=3")
        screen.keys("Enter")
        screen.shows('filter "gpu=3"')
        wait_for(lambda: {l.split()[0] for l in screen.lines() if re.match(r" *\d+ +\d{2,} ", l)} == {"3"}, "processes of GPU 3 alone")
        screen.keys("g")
        screen.shows("by container")
        screen.keys("Space")
        screen.shows("FROZEN")
        wait_for(lambda: screen.keys("[") or " AGO" in screen.screen(), "an earlier moment")
        screen.keys("L")
        screen.shows("age ", without=["FROZEN", " AGO"])
        screen.keys("S")
        screen.shows("written: gpusonde-")
        screen.keys("V")
        screen.shows(".svg")
        names = [n for n in screen.files() if n.startswith("gpusonde-")]
        equal([n.rsplit(".", 1)[1] for n in sorted(names)], ["svg", "txt"])
        for name in names:
            contains(screen.read(name), "WORKLOAD")
        screen.keys("q")
        equal(screen.status(), 0)
        with open(f"{home}/.config/gpusonde/top", encoding="utf-8") as f:
            contains(f.read(), "group=container")


def test_mouse():
    with Agent() as agent, terminal(agent, "top", term="xterm-256color") as screen:
        text = screen.shows("2 Processes" if "2 Processes" in screen.screen() else "2 Proc")
        row = next(i for i, l in enumerate(text.split("\n")) if "2 Proc" in l)
        screen.click(row, text.split("\n")[row].index("2 Proc") + 1)
        screen.shows("WORKLOAD")
        row = next(i for i, l in enumerate(screen.lines()) if "WORKLOAD" in l)
        screen.click(row + 1, 5)
        screen.click(row + 1, 5)
        screen.shows("Process ", "Esc back")


if __name__ == "__main__":
    run()
