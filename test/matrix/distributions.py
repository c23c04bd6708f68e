#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's two commands in a fresh clone, in a minimal system of each distribution: "make run" until the agent answers, then "make test".

    distributions.py BUILD SOURCE [WORD OF A NAME...]

The system has what debootstrap calls the least, make, and what the Makefile installs for these two commands: no git, no compiler for arm64, no CUDA
toolkit. So a test that asks for more has to skip, and say why. Downloads are this machine's (test/lib/fetch.py).
"""
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request

from lib import e2e, fetch, rows

import root

SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
CLONE = "/src/gpusonde"
RUN_S, TEST_S, PACKAGES_S = 900, 3600, 600
TOOLCHAIN = ("gcc", "clang", "meson", "python3")
LIBRARIES = ("libbpf", "libmicrohttpd", "capstone", "libsystemd")


def last_lines(text, n=60):
    return "\n".join(text.rstrip().split("\n")[-n:])


def clone(debian):
    os.makedirs(os.path.dirname(debian.path + CLONE))
    made = subprocess.run(["git", "-c", f"safe.directory={e2e.SOURCE}/.git", "clone", "--quiet", "--no-local", e2e.SOURCE, debian.path + CLONE],
                          capture_output=True, text=True, check=False)
    if made.returncode:
        raise e2e.Skip(f"this checkout cannot be cloned: {made.stderr.strip()}")


def install_make(debian):
    """All that the README takes for granted."""
    for args in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "make"]):
        done = debian.run("apt-get", *args, limit_s=PACKAGES_S)
        if done.returncode:
            raise e2e.Skip(f"apt-get {args[0]} does not work there: {last_lines(done.stdout, 3)}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch_page(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return reply.read().decode()
    except OSError:
        return ""


def agent_in(debian):
    """Its PID. The names of others' processes are theirs, so it is told by the program."""
    for pid in debian.processes():
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("/build/gpusonde"):
                return pid
        except OSError:
            continue
    raise AssertionError("no agent runs there")


def make_run(debian):
    """Seconds until the agent's pages have the simulated GPUs; it ends well when told to."""
    port, begin = free_port(), time.monotonic()
    output = open(f"{debian.path}/run.log", "w+", encoding="utf-8", errors="replace")
    with output, debian.popen("make", "run", f"RUN_ARGS=--listen=127.0.0.1:{port}", folder=CLONE, stdout=output) as run:
        def answered():
            if run.poll() is not None:
                output.seek(0)
                raise AssertionError(f"make run ended with {run.returncode}: {last_lines(output.read())}")
            return fetch_page(port, "/metrics")
        page = e2e.wait_for(answered, "an answer of the agent", RUN_S)
        seconds = time.monotonic() - begin
        page = e2e.wait_for(lambda: "gpusonde_gpu_present" in (p := fetch_page(port, "/metrics")) and p, "GPUs on the page")
        e2e.equal(len(e2e.values(page, "gpusonde_gpu_present")), 8, "GPUs on the page")
        e2e.equal(len(json.loads(fetch_page(port, "/api/v1/gpus"))["gpus"]), 8, "GPUs in JSON")
        table = debian.run("build/gpusonde", "gpus", folder=CLONE)
        e2e.equal((table.returncode, table.stdout.count("H100")), (0, 8), f"gpusonde gpus: {table.stdout}")
        os.kill(agent_in(debian), signal.SIGTERM)
        e2e.equal(run.wait(e2e.PATIENCE_S), 0, "make run's status when the agent is told to end")
    return seconds


def make_test(debian):
    """What its last line says."""
    done = debian.run("env", f"GPUSONDE_REAL_CACHE={root.CACHE}", "make", "test", folder=CLONE, limit_s=TEST_S)
    ended = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout.rstrip().split("\n")[-1])
    if not ended or done.returncode or ended[2] != "0":
        failed = [line for line in done.stdout.split("\n") if re.search(r"^FAIL|^     (FAILED|\|)|\b(error|ERROR):| passed, ", line)]
        raise AssertionError(f"make test: {done.returncode}\n" + last_lines("\n".join(failed) or done.stdout, 200))
    silent = [line for line in done.stdout.split("\n") if "no reason given" in line]
    e2e.equal(silent, [], "cases that skip and do not say why")
    return ended[0]


def versions(debian):
    """(compilers, libraries)"""
    def first(*args):
        return re.search(r"\d+(\.\d+)*", debian.run(*args).stdout)[0]
    return (", ".join(f"{name} {first(name, '--version')}" for name in TOOLCHAIN),
            ", ".join(f"{name} {first('pkg-config', '--modversion', name)}" for name in LIBRARIES))


def check(suite):
    if os.geteuid() != 0:
        raise e2e.Skip("needs root, for a root folder of its own")
    try:
        archive = fetch.get(f"root-{suite}-amd64", f"{e2e.BUILD}/real")["root.tar"]
        with root.Root(archive, e2e.BUILD, cache=os.path.dirname(os.path.dirname(archive))) as debian:
            clone(debian)
            install_make(debian)
            seconds = make_run(debian)
            toolchain, libraries = versions(debian)
            rows.say("distributions", SUITES[suite], toolchain=toolchain, libraries=libraries,
                     run=f"8 simulated GPUs on /metrics, in JSON and in the table; {seconds:.0f} s after, packages and build included")
            begin = time.monotonic()
            said = make_test(debian)
            rows.say("distributions", SUITES[suite],
                     test=f"{said}; {time.monotonic() - begin:.0f} s with packages and build, all suites, in a root folder of its own (chroot)")
    except (fetch.Unavailable, root.Unusable) as why:
        raise e2e.Skip(str(why)) from None


def test_debian_12():
    check("bookworm")


def test_debian_13():
    check("trixie")


if __name__ == "__main__":
    e2e.run()
