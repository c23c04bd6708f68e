#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every way out has the numbers of one tick: text, OpenMetrics, protobuf, the file for node_exporter, remote write, OpenTelemetry and StatsD those that JSON has."""
import contextlib
import os
import tempfile

import otlp
import statsd
from lib import metrics_protobuf, remote_write
from lib.e2e import PATIENCE_S, Agent, equal, run, wait_for

# Of a GPU: member of JSON, family, OpenTelemetry's name, StatsD's and its scale.
FIGURES = [
    ("memory_used_bytes", "gpusonde_gpu_memory_used_bytes", "hw.gpu.memory.usage", "gpusonde.gpu_memory_used_bytes", 1),
    ("power_watts", "gpusonde_gpu_power_watts", "hw.power", "gpu.power.usage", 1000),
    ("energy_joules_total", "gpusonde_gpu_energy_joules_total", "hw.energy", "gpu.total_energy_consumption", 1000),
]


def of_text(page):
    return {(name, dict(labels)["uuid"]): value for (name, labels), value in metrics_protobuf.text_samples(page).items() if "uuid" in dict(labels)}


def of_protobuf(body):
    return {(name, dict(labels)["uuid"]): value for *_, values, _ in metrics_protobuf.families(body) for (name, labels), value in values.items()
            if "uuid" in dict(labels)}


def of_remote_write(receiver):
    found = {}
    for request in receiver.requests:
        for labels, value, _, _ in request.samples:
            labels = dict(labels)
            if "uuid" in labels:
                found[labels["__name__"], labels["uuid"]] = value
    return found


def of_otlp(receiver):
    names = {name: family for _, family, name, _, _ in FIGURES}
    return {(names[name], a["hw.id"]): value for request in receiver.taken() for name, _, _, _, _, points in request if name in names for a, value, _ in points}


def of_statsd(receiver):
    return {(family, uuid): value / scale for _, family, _, name, scale in FIGURES
            for _, values in [(None, {t.get("gpu_uuid") or t.get("uuid"): v for n, v, _, t in receiver.lines() if n == name})] for uuid, value in values.items()}


def of_file(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as f:
        return of_text(f.read())
    return {}


def same(document, found):
    """All numbers of one tick, in which all of them differ from those of another."""
    return len(document) == 8 * len(FIGURES) and all(abs(found.get(key, -1) - value) <= 1e-12 * abs(value) for key, value in document.items())


def test_each_has_the_same_numbers():
    with contextlib.ExitStack() as stack:
        tmp = stack.enter_context(tempfile.TemporaryDirectory(prefix="gpusonde-outputs-"))
        os.chmod(tmp, 0o755)
        writer, collector, datagrams = (stack.enter_context(r) for r in (remote_write.Receiver(), otlp.Receiver(), statsd.Receiver()))
        families = ",".join(family for _, family, *_ in FIGURES)
        agent = stack.enter_context(Agent(
            "--sample-period", "2s", "--remote-write-url", f"http://127.0.0.1:{writer.port}/api/v1/write", "--remote-write-interval", "1s",
            "--remote-write-families", families, "--otlp-endpoint", collector.url, "--otlp-interval", "1s", "--otlp-families", families,
            "--statsd-address", datagrams.address, "--statsd-interval", "1s", "--statsd-families", "gpusonde_gpu_memory_used_bytes",
            "--textfile-path", f"{tmp}/gpusonde.prom", "--textfile-interval", "1s", "--textfile-families", families))
        documents, agreed, newest = [], set(), {}

        def agree():
            gpus = agent.get("/api/v1/gpus").json()["gpus"]
            documents.append({(family, gpu["uuid"]): gpu[member] for member, family, *_ in FIGURES for gpu in gpus if gpu[member] is not None})
            newest.update({
                "text": of_text(agent.metrics()),
                "OpenMetrics": of_text(agent.get("/metrics", Accept="application/openmetrics-text").text),
                "protobuf": of_protobuf(agent.get("/metrics", Accept=metrics_protobuf.ACCEPT).body),
                "file": of_file(f"{tmp}/gpusonde.prom"),
                "remote write": of_remote_write(writer),
                "OpenTelemetry": of_otlp(collector),
                "StatsD": of_statsd(datagrams),
            })
            agreed.update(view for view, found in newest.items() if any(same(document, found) for document in documents))
            return agreed == set(newest)
        wait_for(agree, "each to have had all numbers of one tick", seconds=2 * PATIENCE_S,
                 otherwise=lambda: {view: [(k, v, documents[-1].get(k)) for k, v in found.items()][:3] for view, found in newest.items() if view not in agreed})
        equal(len(documents[-1]), 8 * len(FIGURES))


if __name__ == "__main__":
    run()
