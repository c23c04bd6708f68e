#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flags that many commands have do the same for each command whose help names them."""
import csv
import io
import json
import re
import signal
import subprocess
import tempfile

from lib.e2e import BUILD, GPUSONDE, SIMULATED, SOURCE, Agent, command, contains, environment, equal, run, wait_for
from lib.perfetto_write import Writer
from lib.tmux import Terminal
from lib.traced import DRIVER, LATE, tracing

FLAGS = ("--json", "--color", "--watch", "--version", "--sort", "--filter", "--columns", "--by", "--csv")
COLOUR = re.compile(r"\033\[[0-9;]*m")
SIMULATION = {"GPUSONDE_NVML_LIBRARY": SIMULATED}


class Node:
    """What commands are run on: an agent, a recording, a timeline, files with code."""

    def __init__(self, agent, tmp):
        self.agent, self.tmp = agent, tmp
        writer = Writer(real_offset=10**18)
        thread = writer.thread(writer.process(7, "train"), 7, 8)
        for i in range(100):
            writer.slice(thread, "cuda", "cudaMemcpy", (1000 + i) * 10**9, (1000 + i) * 10**9 + 5 * 10**8, bytes=4096, kind=1)
        writer.write(f"{tmp}/x.pftrace")
        recorder = subprocess.Popen([GPUSONDE, "record", "--store", f"{tmp}/r.db", "--socket", "none"], env=environment(**SIMULATION), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: command("report", f"{tmp}/r.db", "--json").returncode == 0, "something to be recorded")
        recorder.send_signal(signal.SIGINT)
        recorder.communicate()
        equal(recorder.returncode, 0)

    def run(self, name, *flags):
        """Of a command with a socket, on the agent."""
        words = [word.format(tmp=self.tmp) for word in COMMANDS[name]]
        at = len(words) - len(words[words.index("--"):]) if "--" in words else len(words)
        socket = ["--socket", self.agent.socket] if name in OF_AGENT else []
        return command(*words[:at], *socket, *flags, *words[at:])


# How each is run to its end. cgroup wants devices of NVIDIA, and record an agent that traces: cgroup_devices.py and timeline_agent.py have them.
COMMANDS = {
    "gpus": ["gpus"], "ps": ["ps"], "snapshot": ["snapshot"], "explain": ["explain", "gpu:0"], "check": ["check"], "doctor": ["doctor"],
    "trace": ["trace", "--output", "-", "--", "sh", "-c", f"exec {LATE} 'load {DRIVER}; init; repeat 5; launch; end; sync' >/dev/null"], "analyze": ["analyze", "{tmp}/x.pftrace"], "probes": ["probes", f"{BUILD}/sim/cuda/libcuda.so.1"], "lint": ["lint", f"{SOURCE}/deploy/grafana/node.json"],
    "inspect": ["inspect", f"{SOURCE}/test/fuzz/corpus/cubin/speed.fatbin"], "replay": ["replay", "{tmp}/r.db"], "report": ["report", "{tmp}/r.db"],
    "diff": ["diff", "{tmp}/r.db", "{tmp}/r.db"],
}
OF_AGENT = {"gpus", "ps", "snapshot", "explain", "check", "doctor"}
ELSEWHERE = {"cgroup", "record"}
# Two runs say the same.
STILL = {"analyze", "inspect", "replay"}
# A list of rows in the document, and a figure and a text of each.
ROWS = {"gpus": ("gpus", "power_watts", "uuid"), "ps": ("processes", "memory_bytes", "comm"), "inspect": ("kernels", "registers", "name")}


def claimed():
    """(command, flag) for all that help names."""
    names = re.findall(r"^  ([\w-]+) ", command("--help").stdout, re.M)
    return [(name, flag) for name in names for flag in FLAGS if re.search(rf"^  (-\w, )?{flag}\b", command(name, "--help").stdout, re.M)]


def check_json(node, name):
    documents = []
    for flag in ("--json", "-j"):
        out = node.run(name, flag)
        documents.append(json.loads(out.stdout))
        assert "\033" not in out.stdout, name
    equal(set(documents[0]), set(documents[1]), name)


def check_color(node, name):
    asked = {word: node.run(name, f"--color={word}") for word in ("always", "never", "auto")}
    equal([word for word, out in asked.items() if COLOUR.search(out.stdout)], ["always"], name)
    equal(len({out.returncode for out in asked.values()}), 1, name)
    if name in STILL:
        equal(COLOUR.sub("", asked["always"].stdout), asked["never"].stdout, name)
    out = node.run(name, "--color", "green")
    equal((out.returncode, out.stdout), (2, ""), name)
    contains(out.stderr, "it must be auto, always or never")


def check_watch(node, name):
    for flag in ("--watch", "-w"):
        for form in ([], ["--json"]):
            with subprocess.Popen([GPUSONDE, *COMMANDS[name], "--socket", node.agent.socket, flag, "200ms", *form], stdout=subprocess.PIPE, env=environment(), text=True) as process:
                first = process.stdout.readline()
                assert first and (not form or json.loads(first)), name
                # It begins again, without anything that clears a screen.
                between = ""
                for line in process.stdout:
                    between += line
                    if json.loads(line) if form else line == first:
                        break
                else:
                    raise AssertionError(f"{name} {flag} ended")
                assert "\033" not in between, between[:200]
                process.send_signal(signal.SIGINT)
    equal(node.run(name, "--watch", "0").returncode, 2, name)


def check_version(_, name):
    for flag in ("--version", "-V"):
        out = command(name, flag)
        equal((out.returncode, out.stdout), (0, command("--version").stdout), name)


def rows_of(node, name, *flags):
    out = node.run(name, "--json", *flags)
    equal(out.returncode, 0, out.stderr)
    return json.loads(out.stdout)[ROWS[name][0]]


def check_sort(node, name):
    _, figure, text = ROWS[name]
    figures = [row[figure] for row in rows_of(node, name, "--sort", figure)]
    equal(figures, sorted(figures, reverse=True), name)
    assert len(set(figures)) > 1, f"{name}: nothing to sort"
    if name != "inspect": # of figures alone
        for flag, backwards in ((text, False), (f"-{text}", True)):
            texts = [row[text] for row in rows_of(node, name, "--sort", flag)]
            equal(texts, sorted(texts, reverse=backwards), name)
    out = node.run(name, "--sort", "nonsense")
    equal((out.returncode, out.stdout), (2, ""), name)


def check_filter(node, name):
    _, _, text = ROWS[name]
    rows = rows_of(node, name)
    wanted = rows[0][text]
    equal({row[text] for row in rows_of(node, name, "--filter", f"{text}={wanted}")}, {wanted}, name)
    equal(len(rows_of(node, name, "--filter", f"{text}!={wanted}")), sum(row[text] != wanted for row in rows), name)
    equal(node.run(name, "--filter", "nonsense").returncode, 2, name)


def check_columns(node, name):
    _, figure, text = ROWS[name]
    equal([list(row) for row in rows_of(node, name, "--columns", f"{text},{figure}")], [[text, figure]] * len(rows_of(node, name)), name)
    titles = [line for line in node.run(name, "--columns", f"{text},{figure}").stdout.splitlines() if text in line.lower()]
    assert titles and titles[0].lower().split() == [text, figure], titles
    equal(node.run(name, "--columns", "nonsense").returncode, 2, name)


def check_csv(node, name):
    _, figure, text = ROWS[name]
    out = node.run(name, "--csv", "--columns", f"{text},{figure}", "--sort", text)
    lines = list(csv.reader(io.StringIO(out.stdout)))
    equal((lines[0], [line[0] for line in lines[1:]]), ([text, figure], [row[text] for row in rows_of(node, name, "--sort", text)]), name)
    equal(node.run(name, "--csv", "--json").returncode, 2, name)


def check_by(node, name):
    for word in ("container", "pod", "job", "user"):
        document = json.loads(node.run(name, "--json", "--by", word).stdout)
        equal((document["by"], isinstance(document["groups"], list)), (word, True), name)
    equal(node.run(name, "--by", "color").returncode, 2, name)


def test_a_commands_terminal_is_its_own():
    """Tables of a command that runs follow each other: what it writes is not cleared, as a window of theirs would."""
    tracing()
    with Terminal(GPUSONDE, "trace", "--interval", "200ms", "--output", "-", "--", "sh", "-c", "echo written by the command; sleep 1000", rows=50, env=environment()) as screen:
        wait_for(lambda: screen.screen("-S", "-").count("No calls of CUDA") > 1, "two tables")
        contains(screen.screen("-S", "-"), "written by the command")


CHECKS = {"--json": check_json, "--color": check_color, "--watch": check_watch, "--version": check_version, "--sort": check_sort, "--filter": check_filter,
          "--columns": check_columns, "--csv": check_csv, "--by": check_by}


def test_each_flag_of_each_command():
    """Whatever help names: a command that is new is in COMMANDS, or this fails."""
    pairs = claimed()
    equal({flag for _, flag in pairs}, set(FLAGS), "flags that a command has")
    with tempfile.TemporaryDirectory() as tmp, Agent() as agent:
        wait_for(lambda: len(json.loads(agent.cli("ps", "--json").stdout)["processes"]) > 8, "processes")
        node = Node(agent, tmp)
        for name, flag in pairs:
            if name in ELSEWHERE and flag != "--version":
                continue
            assert flag == "--version" or name in COMMANDS, f"gpusonde {name} has {flag}, and is not in COMMANDS"
            CHECKS[flag](node, name)


if __name__ == "__main__":
    run()
