#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus' remote write: the agent and gpusonde-push beside a receiver of ours."""
import base64
import glob
import os
import re
import signal
import tempfile

from lib.disk import full_disk
from lib.e2e import Agent, Worker, children, comm, contains, equal, run, samples, values, wait_for
from lib.remote_write import STALE, Receiver, protoc

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
SECRET = "open-sesame-123"


def flags(port, *more):
    return ("--remote-write-url", f"http://127.0.0.1:{port}/api/v1/write", "--remote-write-interval", "1s", "--remote-write-instance", "here", *more)


def closed_port():
    with Receiver() as receiver:
        return receiver.port


def of_page(page):
    """{labels, as a receiver has them: value} of /metrics."""
    found = {}
    for series, value in samples(page).items():
        labels = [(k, v.replace("\\\\", "\\").replace('\\"', '"')) for k, v in LABEL.findall(series)]
        labels = [("exported_job" if k == "job" else "exported_instance" if k == "instance" else k, v) for k, v in labels]
        found[frozenset([("__name__", series.split("{")[0]), ("job", "gpusonde"), ("instance", "here"), *((k, v) for k, v in labels if v)])] = value
    return found


def figure(agent, name, **labels):
    return (values(agent.metrics(), f"gpusonde_push_{name}", destination="remote_write", **labels) or [None])[0]


def queue(agent):
    return sorted(p for p in glob.glob(f"{agent.tmp}/state/push/remote_write/*") if not p.endswith("/new"))


def name_of(labels):
    return dict(labels)["__name__"]


def alive(page):
    return {labels: value for labels, value in page.items() if value != STALE}


class Compared:
    """The pages of an agent and what a receiver has of them: both come once a second, so that some are of one snapshot."""

    def __init__(self, receiver, agent):
        self.receiver, self.agent, self.shown = receiver, agent, {}

    def found(self):
        """A page that the receiver has, with all its series and no other."""
        page = of_page(self.agent.metrics())
        self.shown[frozenset(page)] = page
        for sent in map(alive, self.receiver.pages().values()):
            page = self.shown.get(frozenset(sent))
            if page:
                for labels, value in page.items():
                    if name_of(labels) in ("gpusonde_gpu_memory_total_bytes", "gpusonde_build_info", "gpusonde_gpu_power_limit_watts"):
                        equal(sent[labels], value, labels)
                return True
        return False

    def different(self):
        page = of_page(self.agent.metrics())
        return sorted(map(sorted, min((set(page) ^ set(alive(sent)) for sent in self.receiver.pages().values()), key=len)))[:5]


# ---- what is sent ----

def test_1_0_has_the_series_of_the_page():
    with Receiver() as receiver, Agent(*flags(receiver.port, "--remote-write-max-samples", "500", "--remote-write-interval", "3s")) as agent:
        compared = Compared(receiver, agent)
        wait_for(compared.found, "the series of /metrics", otherwise=compared.different)
        first = receiver.requests[0]
        equal([first.headers[h] for h in ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version")],
              ["application/x-protobuf", "snappy", "0.1.0"])
        contains(first.headers["User-Agent"], "gpusonde/")
        contains(protoc(receiver.bodies[0][1], "WriteRequest"), 'name: "__name__"')
        described = {family: row for r in receiver.requests for family, row in r.metadata.items()}
        equal(described["gpusonde_gpu_power_watts"][0], 2)
        contains(agent.metrics(), f"# HELP gpusonde_gpu_power_watts {described['gpusonde_gpu_power_watts'][1]}\n")
        assert max(len(r.samples) for r in receiver.requests) <= 500
        receiver.check()
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
        equal(agent.get("/control/status", unix=True).json()["push"], {"push": "off", "remote_write": "", "otlp": "off", "otlp_logs": "off"})
        contains(agent.cli("doctor").stdout, "the server takes what is pushed")
        newest = alive(max(receiver.pages().items())[1])
        _, status = agent.stop()
        equal(status, 0)
        last = max(receiver.pages().items())[1]
        equal(set(last.values()), {STALE})
        assert len(last) > len(newest) / 2, (len(last), len(newest))
        receiver.check()


def test_a_reload_changes_nothing():
    """What it is told to send, with which token, is as long-lived as the agent, and so is what /metrics has."""
    with Receiver() as receiver, tempfile.TemporaryDirectory(prefix="gpusonde-token-") as tmp:
        with open(f"{tmp}/token", "w", encoding="ascii") as f:
            f.write(SECRET)
        with Agent(*flags(receiver.port, "--remote-write-families", "gpusonde_up", "--remote-write-token-file", f"{tmp}/token"),
                   "--http-families", "gpusonde_up") as agent:
            wait_for(lambda: len(receiver.taken()) > 1, "samples")
            for reload in range(1, 4):
                agent.signal(signal.SIGHUP)
                wait_for(lambda n=reload: agent.log().count("configuration reloaded") == n, "the reload")
                n = len(receiver.taken())
                wait_for(lambda n=n: len(receiver.taken()) > n + 2, "samples after it")
            equal({name_of(labels) for r in receiver.taken() for labels, *_ in r.samples}, {"gpusonde_up"}, "families sent")
            equal({r.headers["Authorization"] for r in receiver.taken()}, {f"Bearer {SECRET}"})
            equal({name.split("{")[0] for name in samples(agent.metrics())}, {"gpusonde_up"}, "families of /metrics")


def test_2_0():
    with Receiver() as receiver, Agent(*flags(receiver.port, "--remote-write-protocol", "2.0")) as agent:
        compared = Compared(receiver, agent)
        wait_for(compared.found, "the series of /metrics", otherwise=compared.different)
        first = receiver.requests[0]
        equal([first.headers[h] for h in ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version")],
              ["application/x-protobuf;proto=io.prometheus.write.v2.Request", "snappy", "2.0.0"])
        contains(protoc(receiver.bodies[0][1], "Request"), "labels_refs")
        metadata = {name: told for request in receiver.requests for name, told in request.metadata.items()}
        equal(metadata["gpusonde_gpu_memory_total_bytes"][::2], (2, "bytes"))
        receiver.check()


def test_a_server_without_2_0_gets_1_0():
    with Receiver(versions=(1,)) as receiver, Agent(*flags(receiver.port, "--remote-write-protocol", "2.0")) as agent:
        wait_for(lambda: len(receiver.taken()) >= 3, "requests that are taken")
        equal([r.status for r in receiver.requests].count(415), 1)
        receiver.check()
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
        equal(figure(agent, "batches_total", result="refused"), 0)


def test_what_ends_is_marked():
    """A process with series of its own: its end is told at the next page, once."""
    with tempfile.TemporaryDirectory() as tmp, Receiver() as receiver, Worker(tmp) as worker, Agent(*flags(receiver.port), scenario=worker.scenario()):
        def marks():
            return [(ms, labels) for ms, page in receiver.pages().items() for labels, value in page.items() if value == STALE and ("comm", worker.comm) in labels]

        wait_for(lambda: any(("comm", worker.comm) in labels for page in receiver.pages().values() for labels in page), "series of the process")
        equal(marks(), [])
        worker.end()
        wait_for(marks, "stale markers")
        n = len(receiver.pages())
        wait_for(lambda: len(receiver.pages()) > n + 1, "more pages")
        equal(len({labels for _, labels in marks()}), len(marks()), "each once")
        receiver.check()


def test_families_labels_and_headers():
    with Receiver() as receiver, tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/password", "w", encoding="ascii") as f:
            f.write(SECRET + "\n")
        with Agent(*flags(receiver.port, "--remote-write-families", "gpusonde_gpu_power*,gpusonde_up", "--remote-write-labels", "zone=a,gpu=never",
                          "--remote-write-headers", "X-Scope-OrgID=tenant", "--remote-write-username", "me",
                          "--remote-write-password-file", f"{tmp}/password")) as agent:
            wait_for(lambda: len(receiver.pages()) >= 2, "two pages")
            headers = receiver.requests[0].headers
            equal(headers["X-Scope-OrgID"], "tenant")
            equal(headers["Authorization"], "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode())
            page = max(receiver.pages().items())[1]
            assert {name_of(labels).startswith(("gpusonde_gpu_power", "gpusonde_up")) for labels in page} == {True}
            equal({dict(labels)["zone"] for labels in page}, {"a"})
            equal({dict(labels)["gpu"] for labels in page}, {*map(str, range(8)), "never"})
            assert SECRET not in agent.log() + agent.get("/control/status", unix=True).text


# ---- what does not work ----

def test_refused_for_good():
    with Receiver(400, body=b"out of bounds\n") as receiver, Agent(*flags(receiver.port)) as agent:
        wait_for(lambda: len(receiver.taken()) >= 2, "requests that are taken")
        wait_for(lambda: figure(agent, "batches_total", result="refused") == 1, "a refused batch")
        contains(agent.log(), "it answers with status 400: out of bounds")
        wait_for(lambda: figure(agent, "refused_samples_total") == len(receiver.requests[0].samples) > 0, "its samples, counted")


def test_refused_in_part():
    """2.0: what the server has written of a request that it refuses is not counted as lost."""
    with Receiver(400, 400, headers=[("X-Prometheus-Remote-Write-Samples-Written", "30"), ("X-Prometheus-Remote-Write-Histograms-Written", "7")],
                  body=b"out of order") as receiver, Agent(*flags(receiver.port, "--remote-write-protocol", "2.0")) as agent:
        wait_for(lambda: len(receiver.taken()) >= 2, "requests that are taken")
        refused = sum(len(r.samples) - 37 for r in receiver.requests[:2])
        wait_for(lambda: figure(agent, "refused_samples_total") == refused > 0, "samples that were not written, counted", otherwise=agent.metrics)
        equal(figure(agent, "batches_total", result="refused"), 2)
        contains(agent.log(), f"the server has refused {len(receiver.requests[0].samples) - 37} of {len(receiver.requests[0].samples)} samples: it answers with status 400: out of order")


def test_a_server_that_repeats_the_token():
    with Receiver(400, body=f"token {SECRET} is of no use".encode()) as receiver, tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/token", "w", encoding="ascii") as f:
            f.write(SECRET + "\n")
        with Agent(*flags(receiver.port, "--remote-write-token-file", f"{tmp}/token")) as agent:
            wait_for(receiver.taken, "a request that is taken")
            equal(receiver.requests[0].headers["Authorization"], f"Bearer {SECRET}")
            contains(agent.log(), "it answers with status 400: the batch is dropped")
            assert SECRET not in agent.log(), agent.log()


def test_it_waits_as_long_as_it_is_told():
    with Receiver(503, headers=[("Retry-After", "3600")]) as receiver, Agent(*flags(receiver.port)) as agent:
        wait_for(lambda: len(queue(agent)) >= 4, "batches in the queue")
        equal(len(receiver.requests), 1)
        wait_for(lambda: figure(agent, "up") == 0, "gpusonde_push_up 0")


def test_the_server_is_away_and_the_agent_is_killed():
    """kill -9 of both processes: what was kept is sent in its order, and nothing twice."""
    port = closed_port()
    with tempfile.TemporaryDirectory() as tmp:
        with Agent(*flags(port), tmp=tmp) as agent:
            wait_for(lambda: len(queue(agent)) >= 3, "batches in the queue")
            helper = [p for p in children(agent.pid) if comm(p) == "gpusonde-push"][0]
            os.kill(helper, signal.SIGKILL)
            n = len(queue(agent))
            wait_for(lambda: len(queue(agent)) >= n + 2, "batches of another process")
            agent.signal(signal.SIGKILL)
            agent.process.wait()
            kept = len(queue(agent))
        with Receiver(port=port) as receiver, Agent(*flags(port), tmp=tmp) as agent:
            wait_for(lambda: len(receiver.taken()) > kept + 1, "what was kept, and more")
            wait_for(lambda: queue(agent) == [], "an empty queue")
            receiver.check()
            for reason in ("full", "torn", "unkept", "old"):
                equal(figure(agent, "dropped_batches_total", reason=reason), 0, reason)


def test_the_receiving_end_is_killed_while_it_is_sent():
    """gpusonde-push ends between requests: the next one goes on with what is in the queue."""
    with Receiver() as receiver, Agent(*flags(receiver.port)) as agent:
        for _ in range(3):
            n = len(receiver.pages())
            wait_for(lambda: len(receiver.pages()) > n + 1, "more pages")
            helper = [p for p in children(agent.pid) if comm(p) == "gpusonde-push"]
            if helper:
                os.kill(helper[0], signal.SIGKILL)
        n = len(receiver.pages())
        wait_for(lambda: len(receiver.pages()) > n + 1, "more pages")
        equal(agent.get("/readyz").status, 200)


def test_a_full_disk():
    """A server that takes it gets all nevertheless; what it does not take is lost, and counted."""
    with tempfile.TemporaryDirectory() as tmp, full_disk(f"{tmp}/state"), Receiver() as receiver:
        with Agent(*flags(receiver.port), tmp=tmp) as agent:
            wait_for(lambda: len(receiver.pages()) >= 3, "pages that are sent")
            receiver.check()
            equal(figure(agent, "dropped_batches_total", reason="unkept"), 0)
            receiver.statuses.extend([503] * 1000)
            wait_for(lambda: (figure(agent, "dropped_batches_total", reason="unkept") or 0) >= 2, "batches that could not be kept")
            equal(agent.get("/readyz").status, 200)


run()
