#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file for node_exporter: written whole, taken by promtool and by node_exporter itself, gone when the agent is, and what is said where it cannot be written."""
import contextlib
import http.client
import os
import re
import stat
import subprocess
import tempfile

from lib import fetch
from lib.e2e import BUILD, Agent, Skip, command, contains, equal, run, samples, values, wait_for
from lib.prometheus import free_port, tool


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="gpusonde-textfile-") as path:
        os.chmod(path, 0o755)
        yield path


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def page_of(path):
    """What is there once the GPUs are known."""
    return wait_for(lambda: (text := read(path)) and "gpusonde_gpu_power_watts{" in text and text, path)


def figure(agent, name):
    return (values(agent.metrics(), f"gpusonde_textfile_{name}") or [None])[0]


def constant(page):
    """What is the same on each page, whatever the order of labels."""
    return {(series.split("{")[0], *sorted(re.findall(r'[{,](\w+="[^"]*")', series))): value for series, value in samples(page).items()
            if series.startswith(("gpusonde_gpu_memory_total", "gpusonde_gpu_info", "gpusonde_build_info"))}


def families(page):
    return {line.split()[2] for line in page.split("\n") if line.startswith("# TYPE ")}


class Exporter:
    """node_exporter with nothing but this folder."""

    def __init__(self, path):
        try:
            program = fetch.get("prometheus-node-exporter", f"{BUILD}/real")["prometheus-node-exporter"]
        except fetch.Unavailable as why:
            raise Skip(str(why)) from None
        self.port = free_port()
        self.args = [program, "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={path}", f"--web.listen-address=127.0.0.1:{self.port}"]

    def __enter__(self):
        self.process = subprocess.Popen(self.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def metrics(self):
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
                connection.request("GET", "/metrics")
                return connection.getresponse().read().decode()
        except ConnectionRefusedError:
            return ""


def test_the_page_as_a_file():
    promtool = tool("promtool")
    with folder() as at, Agent("--textfile-path", at, "--textfile-interval", "1s") as agent:
        path = f"{at}/gpusonde.prom"
        text = page_of(path)
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o644)
        out = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
        equal((out.returncode, out.stdout, out.stderr), (0, "", ""))
        page = agent.metrics()
        assert len(constant(page)) > 8
        equal(constant(text), constant(page))
        assert "# EOF" not in text
        # It is replaced again and again.
        first = os.stat(path).st_ino, os.stat(path).st_mtime_ns
        wait_for(lambda: (os.stat(path).st_ino, os.stat(path).st_mtime_ns) != first, "the next page")
        wait_for(lambda: figure(agent, "up") == 1 and figure(agent, "bytes") > 10000, "its figures")
        contains(agent.cli("doctor").stdout, "the file for node_exporter is written")
        # An old page must not look alive.
        agent.stop()
        equal(os.listdir(at), [])


def test_families():
    with folder() as at, Agent("--textfile-path", f"{at}/gpu.prom", "--textfile-families", "gpusonde_gpu_power_watts, gpusonde_gpu_i*"):
        text = page_of(f"{at}/gpu.prom")
        assert {"gpusonde_gpu_power_watts", "gpusonde_gpu_info"} <= families(text), families(text)
        assert all(f.startswith(("gpusonde_gpu_power_watts", "gpusonde_gpu_i")) for f in families(text)), families(text)
    with folder() as at, Agent("--textfile-path", at, "--http-families", "gpusonde_gpu_power_watts"):
        equal(families(page_of(f"{at}/gpusonde.prom")), {"gpusonde_gpu_power_watts"})


def test_node_exporter():
    with folder() as at, Agent("--textfile-path", at, "--textfile-interval", "1s") as agent, Exporter(at) as exporter:
        page_of(f"{at}/gpusonde.prom")
        page = wait_for(lambda: (text := exporter.metrics()) and "gpusonde_gpu_power_watts{" in text and text, "node_exporter to have the page")
        equal(values(page, "node_textfile_scrape_error"), [0])
        # It adds help and types of its own, and no series is lost.
        ours = constant(agent.metrics())
        equal(constant(page), ours)
        agent.stop()
        assert "gpusonde_" not in exporter.metrics()


def test_a_killed_agent():
    """Its file is the next agent's, and what it was writing is no hindrance."""
    with folder() as at:
        path = f"{at}/gpusonde.prom"
        with Agent("--textfile-path", at) as agent:
            page_of(path)
            agent.process.kill()
            agent.process.wait()
        assert os.path.exists(path)
        with open(f"{at}/.gpusonde.prom.new", "w", encoding="ascii") as f:
            f.write("half a pa")
        before = os.stat(path).st_ino
        with Agent("--textfile-path", at) as agent:
            wait_for(lambda: os.stat(path).st_ino != before, "a new file")
            agent.stop()
        equal(os.listdir(at), [])


def test_a_folder_that_comes_late():
    with folder() as at, Agent("--textfile-path", f"{at}/late", "--textfile-interval", "1s") as agent:
        wait_for(lambda: figure(agent, "up") == 0, "gpusonde_textfile_up 0")
        contains(agent.log(), f"the file for node_exporter cannot be written: there is no folder {at}/late: make it, or name node_exporter's (textfile.path)")
        state = lambda: agent.get("/control/status", unix=True).json()["textfile"]
        wait_for(lambda: state() == f"there is no folder {at}/late: make it, or name node_exporter's", "the state", otherwise=state)
        contains(agent.cli("doctor").stdout, f"there is no folder {at}/late")
        os.mkdir(f"{at}/late", 0o755)
        page_of(f"{at}/late/gpusonde.prom")
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_textfile_up 1")
        contains(agent.log(), "the file for node_exporter is written again")


def mounted(at, *options):
    if subprocess.run(["mount", *options, at], capture_output=True, check=False).returncode != 0:
        raise Skip("file systems cannot be mounted here")


def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, bytes(4096))
    os.close(fd)


def test_a_full_disk_and_a_read_only_one():
    with folder() as at:
        path = f"{at}/gpusonde.prom"
        mounted(at, "-t", "tmpfs", "-o", "size=1m,mode=755", "none")
        try:
            with Agent("--textfile-path", at, "--textfile-interval", "1s") as agent:
                page_of(path)
                fill(f"{at}/other")
                wait_for(lambda: figure(agent, "up") == 0, "gpusonde_textfile_up 0")
                contains(agent.log(), f"the disk of the folder {at} is full")
                equal(os.listdir(at), ["other"]) # no page rather than an old one
                os.unlink(f"{at}/other")
                page_of(path)
                mounted(at, "-o", "remount,ro")
                wait_for(lambda: f"the folder {at} is read-only for the agent" in agent.log(), "its reason in the log")
        finally:
            subprocess.run(["umount", "-l", at], check=True)


def test_what_is_no_path():
    with Agent("--textfile-path", "relative") as agent:
        contains(agent.log(), "no file is written for node_exporter: textfile.path is neither")
    contains(command("doctor").stdout, "textfile")


if __name__ == "__main__":
    run()
