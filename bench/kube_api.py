# SPDX-License-Identifier: Apache-2.0
"""What gpusonde-kube reads of a real API server (test/kube/apiserver.py: Kubernetes 1.20, with etcd): 30 pods of this node that do nothing, then 5,000 pods of
another node beside them, while they are made and after it.

It is asked every two seconds, as the agent does. Bytes are of answers, headers included, TLS not; CPU time is counted in hundredths of a second.
"""
import contextlib
import http.client
import json
import os
import sys
import time

from common import BUILD, Row

OURS, THEIRS = 30, 5000
SECONDS = 180
WATCH_S = 60 # so that its end and beginning are in each minute; by default it lasts 290 s
NAMESPACE = "crowd"


class Asked:
    """Bytes, CPU time and memory of gpusonde-kube over some seconds."""

    def __init__(self, kube):
        self.kube, self.pid = kube, kube.ask()["pid"]

    def cpu_ms(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return 1000 * (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def resident_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def over(self, until):
        """(bytes, CPU ms, KiB) and minutes; @until: whether it goes on, by seconds that have passed."""
        begin, size, cpu = time.monotonic(), self.kube.counted["bytes"], self.cpu_ms()
        while until(time.monotonic() - begin):
            time.sleep(2)
            self.kube.ask()
        return (self.kube.counted["bytes"] - size, self.cpu_ms() - cpu, self.resident_kib()), (time.monotonic() - begin) / 60


def make_others(there, apiserver, begin):
    """Some hundred, by one connection; how many there are then."""
    end = min(begin + 250, THEIRS)
    headers = {"Authorization": f"Bearer {there.tokens['admin']}", "Content-Type": "application/json"}
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", there.port, timeout=60, context=there.api.context)) as connection:
        for n in range(begin, end):
            document = apiserver.plain_pod(f"other-{n}", apiserver.OTHER)
            document["metadata"]["namespace"] = NAMESPACE
            connection.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", json.dumps(document), headers)
            reply = connection.getresponse()
            if reply.read() and reply.status != 201:
                raise RuntimeError(f"a pod was not made: {reply.status}")
    return end


def measured(there, apiserver):
    for n in range(OURS):
        there.api.apply(apiserver.plain_pod(f"ours-{n}"))
    there.api.create("Namespace", f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")
    apiserver.run_pods(there)
    with apiserver.kube(there, watch=WATCH_S) as kube:
        kube.until(lambda a: a["pods"] == OURS, "this node's pods")
        listed = kube.counted["bytes"]
        asked = Asked(kube)
        (size, cpu, resident), minutes = asked.over(lambda s: s < SECONDS)
        yield Row(f"{OURS} pods of this node: bytes of the first list and their owners", listed, "{:,}")
        yield Row(f"and then, nothing new, a watch of {WATCH_S} s: bytes a minute", size / minutes, "{:.0f}", at_most=4096)
        yield Row("CPU, ms a minute", cpu / minutes, "{:.1f}")
        yield Row("resident memory, MiB", resident / 1024, "{:.1f}")
        made = {"n": 0}

        def making(_):
            if made["n"] < THEIRS:
                made["n"] = make_others(there, apiserver, made["n"])
                return True
            return False
        (more, _, _), _ = asked.over(making)
        yield Row(f"{THEIRS:,} pods of another node while they are made: bytes", more, "{:,}", at_most=65536)
        (size_2, cpu_2, resident_2), minutes = asked.over(lambda s: s < SECONDS)
        yield Row("and then: bytes a minute", size_2 / minutes, "{:.0f}", at_most=4096)
        yield Row("CPU, ms a minute", cpu_2 / minutes, "{:.1f}")
        yield Row("resident memory, MiB more", (resident_2 - resident) / 1024, "{:.2f}", at_most=1)
    with apiserver.kube(there, watch=WATCH_S) as kube:
        kube.until(lambda a: a["pods"] == OURS, "this node's pods")
        yield Row("the first list beside them, of that without", kube.counted["bytes"] / listed, "{:.2f}", at_most=1.1)


def run():
    sys.argv = [sys.argv[0], BUILD, os.getcwd()] # from there tests' modules have them
    from kube import apiserver # pylint: disable=import-outside-toplevel
    from lib import e2e # pylint: disable=import-outside-toplevel
    try:
        with apiserver.STACK:
            yield from measured(apiserver.plane(), apiserver)
    except e2e.Skip as why:
        yield Row("the Kubernetes API", skipped=str(why))
