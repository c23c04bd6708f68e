# SPDX-License-Identifier: Apache-2.0
"""gpusonde top on a terminal (tmux): keys, sizes, a driver and an agent that hang, names that users chose, and the same numbers as in JSON."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

from lib.big_node import copied, gpu_of
from lib.e2e import GPUSONDE, SIMULATED, SOURCE, Agent, Skip, Worker, command, contains, environment, equal, run, wait_for
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


def test_of_a_user_whose_terminal_is_another_ones():
    """As after su: it may be written to, but not opened."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skip("root and setpriv are needed")
    if not os.stat(GPUSONDE).st_mode & 0o001 or any(not os.stat(p).st_mode & 0o001 for p in map(str, pathlib.Path(GPUSONDE).parents)):
        raise Skip("the build's folder is root's alone")
    env = environment(GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO=f"{SOURCE}/sim/scenarios/desktop-1gpu.yaml", HOME="/nonexistent")
    with Terminal("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", GPUSONDE, env=env) as screen:
        screen.shows("UTIL", "SIMULATED")
        screen.keys("q")
        equal(screen.status(), 0)
        equal(screen.errors(), "")


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
                           ("8", "No findings"), ("9", "XID"), ("0", "NV18"), ("i", "No inference servers"), ("m", "RECEIVED"), ("1", "UTIL")):
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


def test_an_agent_is_asked_for_less():
    with Agent() as agent:
        whole, brief = agent.get("/api/v1/snapshot"), agent.get("/api/v1/snapshot?brief=yes")
        assert len(brief.text) * 2 < len(whole.text), (len(brief.text), len(whole.text))
        for page in (whole.json(), brief.json()):
            equal((len(page["gpus"]), len(page["processes"]) > 0, page["gpus"][0]["memory_total_bytes"] > 2**30), (8, True, True))
        assert not re.search(r":null[,}]", brief.text), brief.text
        equal(agent.get("/api/v1/snapshot?brief=no").json().keys(), whole.json().keys())
        bad = agent.get("/api/v1/snapshot?brief=x")
        equal((bad.status, bad.text), (400, "400 bad request: brief= must be yes or no\n"))


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
        screen.shows(*pids, f"{prefixes[0]}?[2Jx", f"{prefixes[1]}a?b?c", f"{prefixes[2]}\u6f22\u5b57\u6f22", f"{prefixes[4]}??y", "h help")
        # The list below the bars has them, too: until all of the new screen is drawn they may stand on it twice.
        rows = lambda: [len(re.findall(rf"^ *0 +{pid} ", screen.screen(), re.M)) for pid in pids]
        with contextlib.suppress(AssertionError): # said below
            wait_for(lambda: rows() == [1] * len(pids), "each of them once")
        equal(rows(), [1] * len(pids), screen.screen())


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
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp, env=dict(os.environ, CUDA_VISIBLE_DEVICES="0,\x1b[2J3", SECRET="hidden1")) as worker:
        with Agent(scenario=worker.scenario()) as agent, terminal(agent, "top") as screen:
            screen.shows(worker.comm)
            screen.keys("Down")
            screen.keys("Enter")
            screen.shows(f"Process {worker.pid}", "GPU MEM", "No calls and kernels", "CUDA_VISIBLE_DEVICES=0,?[2J3", without=["hidden1"])
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
        equal(sorted(n.rsplit(".", 1)[1] for n in names), ["svg", "txt"])
        for name in names:
            contains(screen.read(name), "WORKLOAD")
        screen.keys("q")
        equal(screen.status(), 0)
        with open(f"{home}/.config/gpusonde/top", encoding="utf-8") as f:
            contains(f.read(), "group=container")


def test_trees():
    """A group's line has the sums of `ps --by`; it is closed and opened by keys and the mouse, and stays so."""
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker:
        with Agent(scenario=worker.scenario()) as agent, terminal(agent, "top", columns=160, term="xterm-256color") as screen:
            screen.keys("2")
            screen.shows(worker.comm)
            for by in ("container", "pod", "job", "user"):
                screen.keys("g")
                screen.shows(f"by {by}")
            groups = json.loads(agent.cli("ps", "--by", "user", "--json").stdout)["groups"]
            equal([group["processes"] for group in groups], [1])
            name = "root" if os.getuid() == 0 else r"\S+"
            heading = rf"^\u25be {name} \(1\) .* {groups[0]['memory_bytes'] / 2**30:.1f} GiB "
            screen.has_line(heading)
            row = next(i for i, line in enumerate(screen.lines()) if re.match(heading, line))
            screen.keys("Down")
            for close in (lambda: screen.keys("o"), lambda: screen.keys("Enter"), lambda: screen.click(row, 4), lambda: screen.keys("O")):
                close()
                screen.has_line(rf"^\u25b8 {name} \(1\) ")
                screen.shows("WORKLOAD", without=[f" {worker.comm}"])
                screen.keys("m")
                screen.shows("RECEIVED")
                screen.keys("2")
                screen.shows("\u25b8", without=[f" {worker.comm}"])
                close()
                screen.has_line(heading)
                screen.shows(worker.comm)
            screen.keys("q")
            equal(screen.status(), 0)


def test_mouse():
    with Agent() as agent, terminal(agent, "top", term="xterm-256color") as screen:
        text = screen.shows("2 Processes" if "2 Processes" in screen.screen() else "2 Proc")
        row = next(i for i, l in enumerate(text.split("\n")) if "2 Proc" in l)
        screen.click(row, text.split("\n")[row].index("2 Proc") + 1)
        screen.shows("WORKLOAD")
        row = next(i for i, l in enumerate(screen.lines()) if "WORKLOAD" in l)
        screen.click(row + 1, 5, times=2)
        screen.shows("Process ", "Esc back")


# ---- several machines ----

def hosts_screen(*args, columns=140, rows=40, **env):
    return Terminal(GPUSONDE, "top", *args, columns=columns, rows=rows, env=environment(HOME="/nonexistent", **env))


def test_several_machines():
    """Two agents, one that is not there, one that accepts and says nothing: the others and the screen do not wait for it."""
    one = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n"
    with Agent(scenario=one) as first, Agent(scenario=one) as second, socket.create_server(("127.0.0.1", 0)) as silent, tempfile.TemporaryDirectory() as tmp:
        ports = [f"127.0.0.1:{port}" for port in (first.port(), second.port(), 1, silent.getsockname()[1])]
        with open(f"{tmp}/hosts", "w", encoding="utf-8") as f:
            f.write(f"# two of them\n{ports[2]} # not there\n\n{ports[3]}\n")
        with hosts_screen(ports[0], ports[1], "--hosts", f"{tmp}/hosts") as screen:
            screen.shows("4 hosts  2x H100", "no answer", "nobody answers there", "asked ...")
            screen.has_line(rf"{ports[0]} +ok +1 ")
            screen.keys("1")
            screen.shows("UTIL", ports[1])
            screen.keys("0")
            screen.shows("Of one machine")
            screen.keys("H")
            screen.shows("WHAT IS WRONG")
            screen.keys("Home")
            screen.keys("Enter")
            screen.shows(f"SIMULATED {ports[0]}  1x H100", "driver")
            screen.keys("H")
            # One that ends becomes a row with the reason; what it has said goes after a while.
            second.stop()
            screen.has_line(rf"{ports[1]} +no answer +1 .* \d\.\d s nobody answers there")
            screen.has_line(rf"{ports[1]} +no answer +- ")
            screen.shows("it does not answer in time")
            screen.keys("q")
            equal(screen.status(), 0)
            equal(screen.errors(), "")


def test_hosts_that_make_no_sense():
    for args, why in ((("a b",), "is no host"), (("ftp://x",), "is no host"), (("--hosts", "/nonexistent"), "cannot be read"), (("--hosts", "/dev/null"), "")):
        out = command("top", *args)
        equal(out.returncode, 2, args)
        contains(out.stderr, why)


class Gate(http.server.BaseHTTPRequestHandler):
    """A proxy before an agent that asks for a token."""
    def do_GET(self): # pylint: disable=invalid-name
        good = self.headers.get("Authorization") == "Bearer secret1"
        text = self.server.page.encode() if good else b"no"
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_): # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def gate(page, folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", f"{folder}/key", "-out", f"{folder}/crt"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/crt", f"{folder}/key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.page = page
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_tls_and_a_token():
    if not shutil.which("openssl"):
        raise Skip("no openssl: install the package openssl")
    with Agent() as agent, tempfile.TemporaryDirectory() as tmp, gate(agent.get("/api/v1/snapshot").text, tmp) as url:
        with open(f"{tmp}/token", "w", encoding="ascii") as f:
            f.write("secret1\n")
        trusted, token = ("--client-ca-file", f"{tmp}/crt"), ("--client-token-file", f"{tmp}/token")
        with hosts_screen(url, "127.0.0.1:1", *token) as screen:
            screen.shows("no answer", "certificate")
        with hosts_screen(url, "127.0.0.1:1", *trusted) as screen:
            screen.shows("it refuses us, with status 403")
        with hosts_screen(url, "127.0.0.1:1", *trusted, *token) as screen:
            screen.has_line(r"https://localhost:\d+ +ok +8 ")

# ---- more than is simulated ----

class Pages(http.server.BaseHTTPRequestHandler):
    """An agent's pages."""
    def do_GET(self): # pylint: disable=invalid-name
        page = self.server.pages.get(self.path.split("?")[0].removeprefix("/api/v1/"))
        text = json.dumps(page or {}).encode()
        self.send_response(200 if page else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_): # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def pages_served(**pages):
    """An agent with these pages, by the last part of their paths; its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.pages = pages
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# No GPU is slowed, and the first cell of each bar is full.
EVEN = """cycle: 60s
seed: 1
gpus:
  - {model: h100-sxm, count: 8}
processes:
  - {name: /usr/bin/python3, gpus: all, memory: 32GiB, load: {gpu: 60}}
"""


@contextlib.contextmanager
def big_node(gpus, processes, load=0.5):
    """A simulated node's GPUs and processes so many times over, as another machine's agent; their loads are known, so that all bars look alike."""
    with Agent(scenario=EVEN) as agent:
        known = lambda page: all(gpu["utilization_ratio"]["gpu"] for gpu in page["gpus"]) and page
        page = wait_for(lambda: known(agent.get("/api/v1/snapshot").json()), "the GPUs' loads")
    of_one = len(page["gpus"])

    def gpu(row, copy, _):
        gpu_of(row, copy, of_one)
        # Not that of the moment: a bar begins with another character where there is little load, or none.
        row["utilization_ratio"]["gpu"] = load
    page["gpus"] = copied(page["gpus"], gpus, gpu)

    def process(row, _, i):
        gpu_of(row, i % gpus // of_one, of_one)
        row.update(pid=100000 + i, memory_bytes=(processes - i) << 20)
    page["processes"] = copied(page["processes"], processes, process)
    with pages_served(snapshot=page) as address:
        yield address


def one_finding(title, minute, **members):
    return {"finding": "idle_gpu", "id": minute, "title": title, "remedy": "do something else", "active": True, "caused_by": None,
            "timeline": {"begin": f"2026-01-31T23:{minute:02}:00.000Z"}, **members}


def test_the_newest_finding_of_several_machines():
    """It is above every tab, not above that of findings alone, and goes when its machine does not list it any more."""
    with Agent(scenario=EVEN) as agent:
        node = wait_for(lambda: agent.get("/api/v1/snapshot").json(), "a node")
    old = {"findings": [one_finding("it waits long", 1)]}
    new = {"findings": [one_finding("it waits longer", 2), one_finding("it waits now", 5), one_finding("it waited", 7, active=False)]}
    with pages_served(snapshot=node, findings=old) as first, pages_served(snapshot=node, findings=new) as second, pages_served(snapshot=node) as third:
        with hosts_screen(first, second, third) as screen:
            for key in "H1250m8":
                screen.keys(key)
                screen.shows(f"{second}: it waits now: do something else")
            screen.keys("a")
            screen.shows("idle_gpu", "2026-01-31 23:05")
            screen.keys("Escape", "1")
            new["findings"].clear()
            screen.shows(f"{first}: it waits long: do something else", without=["it waits now"])
            screen.keys("q")
            equal(screen.status(), 0)
            equal(screen.errors(), "")


def settles(screen, pattern, wanted, what):
    """Waits until these numbers are on the screen, which is drawn in parts."""
    found = lambda: [int(n) for n in re.findall(pattern, screen.screen(), re.M)]
    with contextlib.suppress(AssertionError): # said below
        wait_for(lambda: found() == wanted, what)
    equal(found(), wanted, what)


def test_72_gpus_and_2000_processes():
    """All of it fits a small and a large terminal, or the screen says what does not; the first and the last rows are the right ones."""
    with big_node(72, 2000) as address:
        for columns, rows in ((60, 16), (200, 50)):
            with hosts_screen(address, columns=columns, rows=rows) as screen:
                screen.shows("72x H100")
                screen.keys("1")
                text = screen.shows("PID")
                gpus = lambda: sorted(int(n) for n in re.findall(r"(?:^|%) +(\d+) \u2588", screen.screen(), re.M))
                if rows < 50:
                    contains(text, "not all GPUs fit: enlarge the window, or press b")
                    wait_for(lambda: len(gpus()) == 12, "the bars that fit")
                else:
                    wait_for(lambda: gpus() == list(range(72)), "all bars")
                screen.keys("2")
                screen.shows("100000", without=["not all GPUs fit"])
                settles(screen, r"^ *\d+ +(10[01]\d{3})\b", list(range(100000, 100000 + rows - 5)), "by their memory, which falls; all rows but the heads and the last")
                screen.keys("End")
                screen.shows("101999", without=["100000"])
                screen.keys("q")
                equal(screen.status(), 0)
                equal(screen.errors(), "")


if __name__ == "__main__":
    run()
