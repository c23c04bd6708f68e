# SPDX-License-Identifier: Apache-2.0
"""Where the agent of day.py sends to: servers that go away, come again and refuse, and a folder on the disk that becomes full. And whether it adds up at the end."""
import contextlib
import http.server
import os
import threading

from e2e import otlp, statsd
from lib import remote_write
from lib.e2e import samples, values, wait_for

FAMILY = "gpusonde_gpu_energy_joules_total"
# Decoded in Python here, so few series, seldom.
INTERVAL = "60s"
REFUSALS = (429, 429, 503)


class Away:
    """Of a PostServer that may refuse, or not be there. One that is silent would take two of our own minutes, since the process that sends has the real clock."""

    gone, refuses = False, 0

    def reply(self, path, headers, body):
        if self.gone: # on a connection of before
            raise ConnectionAbortedError
        if self.refuses:
            self.statuses[:] = [self.refuses]
        return super().reply(path, headers, body)

    def leave(self):
        self.gone, self.http.handle_error = True, lambda *_: None
        self.http.shutdown()
        self.http.server_close()

    def come(self):
        self.gone, handler = False, self.http.RequestHandlerClass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class RemoteWrite(Away, remote_write.Receiver):
    pass


class Otlp(Away, otlp.Receiver):
    pass


class Outputs:
    def __init__(self, disk):
        self.folder, self.changes, self.away = f"{disk}/textfile", 0, []

    def __enter__(self):
        os.makedirs(self.folder)
        with contextlib.ExitStack() as stack:
            self.servers = [stack.enter_context(RemoteWrite()), stack.enter_context(Otlp())]
            self.statsd = stack.enter_context(statsd.Receiver())
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def flags(self):
        remote, collector = self.servers
        return ("--remote-write-url", f"http://127.0.0.1:{remote.port}/", "--remote-write-families", FAMILY, "--remote-write-interval", INTERVAL,
                "--otlp-endpoint", collector.url, "--otlp-families", FAMILY, "--otlp-interval", INTERVAL,
                "--statsd-address", self.statsd.address, "--statsd-families", FAMILY, "--statsd-interval", INTERVAL,
                "--textfile-path", self.folder, "--textfile-interval", INTERVAL)

    def act(self, draw):
        """One server changes its mind."""
        self.changes += 1
        server = draw.choice(self.servers)
        self.be_there(server)
        mood = draw.choice(("here", "away", "refuses"))
        if mood == "away":
            server.leave()
            self.away.append(server)
        server.refuses = draw.choice(REFUSALS) if mood == "refuses" else 0

    def be_there(self, server):
        server.refuses = 0
        if server in self.away:
            server.come()
            self.away.remove(server)

    def settle(self, agent):
        """What waited is sent, and the disk has room again."""
        for server in self.servers:
            self.be_there(server)
        def nothing_waits():
            page = agent.metrics()
            return values(page, "gpusonde_push_queue_batches") == [0, 0] and values(page, "gpusonde_push_up") == [1, 1] and values(page, "gpusonde_textfile_up") == [1]
        wait_for(nothing_waits, "everything to be sent", otherwise=lambda: [line for line in agent.metrics().split("\n") if line.startswith(("gpusonde_push", "gpusonde_textfile"))])

    def wrong(self, agent):
        """What does not add up: requests, samples, increases, and the file."""
        before = energy(agent.metrics())
        counts = [len(server.requests) for server in self.servers]
        wait_for(lambda: all(len(server.requests) > n + 1 for server, n in zip(self.servers, counts)), "the next pages")
        page = agent.metrics()
        found = [f"{name}: {text}" for name, text in (("remote write", self.wrong_remote(page, before)), ("OTLP", self.wrong_otlp(page, before)),
                                                      ("StatsD", self.wrong_statsd(page)), ("textfile", self.wrong_file(agent, before))) if text]
        return found

    def wrong_remote(self, page, before):
        remote = self.servers[0]
        try:
            remote.check() # no sample twice, none late
        except AssertionError as why:
            return str(why)
        newest = {dict(labels)["uuid"]: value for _, sent in sorted(remote.pages().items()) for labels, value in sent.items() if value != remote_write.STALE}
        return between(before, newest, energy(page)) or sent_is(page, "remote_write", len(remote.taken()))

    def wrong_otlp(self, page, before):
        taken = [body for status, _, _, body in self.servers[1].requests if status == 200]
        # The newest request may only say which series have ended.
        newest = {attributes["hw.id"]: value for body in taken[-2:] for name, *_, points in otlp.decode(body) if name == "hw.energy" for attributes, value, _ in points}
        return between(before, newest, energy(page)) or sent_is(page, "otlp", len(taken))

    def wrong_statsd(self, page):
        lines, lost = self.statsd.lines(), values(page, "gpusonde_statsd_packets_total", result="lost")
        for uuid in energy(page):
            added = sum(v for n, v, kind, tags in lines if n == "gpusonde.gpu_energy_joules" and kind == "c" and tags["uuid"] == uuid)
            said = [v / 1000 for n, v, _, tags in lines if n == "gpu.total_energy_consumption" and tags["gpu_uuid"] == uuid]
            if abs(said[-1] - said[0] - added) > 1e-6 * said[-1]:
                return f"{uuid}: from {said[0]} to {said[-1]} J, and {added} J were added; lost: {lost}"
        return None

    def wrong_file(self, agent, before):
        with open(f"{self.folder}/gpusonde.prom", encoding="utf-8") as f:
            text = f.read()
        return between(before, energy(text), energy(agent.metrics()))


def energy(page):
    """{uuid: joules}"""
    return {name.split('uuid="')[1].split('"')[0]: value for name, value in samples(page).items() if name.startswith(FAMILY + "{")}


def between(low, found, high):
    if found.keys() != high.keys():
        return f"{len(found)} GPUs of {len(high)}"
    return next((f"{uuid}: {value} J, and the page had {low.get(uuid)} before and {high[uuid]} J after" for uuid, value in found.items()
                 if not low.get(uuid, 0) <= value <= high[uuid]), None)


def sent_is(page, destination, taken):
    """What became of the newest batch is told with the next one."""
    sent = sum(values(page, "gpusonde_push_batches_total", destination=destination, result="sent"))
    return None if sent in (taken, taken - 1) else f"{sent:.0f} batches are said to be sent, and {taken} were taken"
