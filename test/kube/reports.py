# SPDX-License-Identifier: Apache-2.0
"""What an agent says of processes, and when, asked all the time by a thread of its own; and what is so, as the machine and the API server say."""
import contextlib
import datetime
import http.client
import json
import os
import re
import subprocess
import threading
import time

from kube.images import PREFIX
from lib.e2e import GPUSONDE, PATIENCE_S, Reply, environment, samples

PERIOD_S = 0.1
AGE_S = 1.5 # that every page may have: a second, and what was traced may be half a second older
VIEWS = ("/api/v1/processes", "/api/v1/trace", "/metrics")
FAMILY = "gpusonde_process_gpu_memory_bytes{"
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
        return f.read()
    return ""


def working():
    """PIDs of the programs of our images, by name; what is not one yet may become it by exec."""
    found = {pid: read(f"/proc/{pid}/comm").strip() for pid in filter(str.isdigit, os.listdir("/proc"))}
    return {int(pid): comm for pid, comm in found.items() if comm.startswith(PREFIX)}


def container_of(pid):
    found = re.findall(r"/([0-9a-f]{64})$", read(f"/proc/{pid}/cgroup"), re.M)
    return found[0] if found else None


def owners(pods):
    """Container ID -> (namespace, pod, container), of what the API server lists, former containers too."""
    found = {}
    for pod in pods:
        for status in pod["status"].get("containerStatuses", []):
            ids = [status.get("containerID")]
            for state in ("state", "lastState"):
                ids += [s.get("containerID") for s in status.get(state, {}).values()]
            for i in filter(None, ids):
                found[i.removeprefix("containerd://")] = (pod["metadata"]["namespace"], pod["metadata"]["name"], status["name"])
    return found


class Remote:
    """The agent in its pod."""

    def __init__(self, address, socket):
        self.address, self.socket = address, socket

    def get(self, path):
        connection = http.client.HTTPConnection(self.address, 9470, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return Reply(connection.getresponse())

    def cli(self, *args):
        return subprocess.run([GPUSONDE, *args, "--socket", self.socket], env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def groups(self, by):
        done = self.cli("ps", "--json", "--by", by)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["groups"]


class Told:
    """What one view said of one process: when it was first named in full, and every name that it had."""

    def __init__(self):
        self.listed_s = self.named_s = None
        self.names = set()

    def add(self, names):
        self.listed_s = self.listed_s or now()
        if all(names):
            self.named_s = self.named_s or now()
        if any(names):
            self.names.add(names)


def age_s(view, page):
    """How old what a page tells is, as the page itself says."""
    if view == "/metrics":
        return 0.0
    document = json.loads(page)
    made = datetime.datetime.fromisoformat(document["time"].replace("Z", "+00:00")).timestamp()
    return time.time() - made + ((document["trace"] or {}).get("age_seconds") or 0 if "trace" in view else 0)


def rows(view, page):
    """(PID, names) of a page."""
    if view == "/metrics":
        for series in samples("\n".join(line for line in page.split("\n") if line.startswith(FAMILY))):
            labels = dict(LABEL.findall(series))
            if labels["pid"].isdigit():
                yield int(labels["pid"]), tuple(labels.get(k) or None for k in ("namespace", "pod", "container"))
        return
    document = json.loads(page)
    for process in ((document["trace"] or {"processes": []}) if "trace" in view else document)["processes"]:
        yield process["pid"], (process["namespace"], process["pod"], process["container"])


class Process:
    def __init__(self, comm):
        self.comm, self.began_s, self.container = comm, now(), None
        self.told = {view: Told() for view in VIEWS}


class Watch(threading.Thread):
    """While its block lasts; .processes are those that began to work meanwhile, by PID, which are not used twice within one watch;
    .gap_s is how late we ourselves were at most, on a busy machine, and .age_s how late the agent said it was."""

    def __init__(self, agent):
        super().__init__(daemon=True)
        self.agent, self.processes, self.ended, self.failed = agent, {}, threading.Event(), None
        self.before, self.looked_s, self.gap_s = set(working()), now(), 0.0
        self.age_s = 0.0

    def run(self):
        try:
            while not self.ended.wait(PERIOD_S):
                self.look()
        except Exception as why: # pylint: disable=broad-except
            self.failed = why

    def look(self):
        looked_s, self.looked_s = self.looked_s, now()
        self.gap_s = max(self.gap_s, self.looked_s - looked_s - PERIOD_S)
        for pid, comm in working().items():
            if pid in self.before:
                continue
            process = self.processes.setdefault(pid, Process(comm))
            process.container = process.container or container_of(pid)
        for view in VIEWS:
            page = self.agent.get(view).text
            if self.processes:
                self.age_s = max(self.age_s, age_s(view, page) - AGE_S)
            for pid, names in rows(view, page):
                if pid in self.processes:
                    self.processes[pid].told[view].add(names)

    def end(self):
        self.ended.set()
        self.join()
        if self.failed:
            raise self.failed

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()
