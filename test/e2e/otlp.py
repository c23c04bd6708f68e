#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's protocol: the agent and gpusonde-push beside a receiver of ours, and into VictoriaMetrics, compared with the agent's own pages."""
import contextlib
import gzip
import http.client
import json
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.parse

from lib import fetch, rows
from lib.e2e import BUILD, SOURCE, Agent, Skip, Worker, contains, equal, run, values, wait_for
from lib.post_server import PostServer
from lib.prometheus import free_port


class Receiver(PostServer):
    """Keeps requests. @statuses: what the next are answered with, in turn; then 200."""

    def __init__(self, *statuses):
        self.answer = b""
        super().__init__(*statuses)
        self.url = f"http://127.0.0.1:{self.port}"

    def reply(self, path, headers, body):
        status = self.next_status(200)
        self.requests.append((status, path, dict(headers), body))
        return status, {"Retry-After": "1"} if status == 429 else {}, self.answer

    def taken(self):
        return [decode(body) for status, _, _, body in self.requests if status == 200]


def decode(body, ended=False):
    """[(name, unit, kind, monotonic, temporality, [(attributes, value, start, time)])] of a request, by protoc. @ended: only points that say that a series is no more."""
    if not shutil.which("protoc"):
        raise Skip("protoc is missing: install protobuf-compiler")
    text = subprocess.run(["protoc", "--decode=otlp.ExportMetricsServiceRequest", f"--proto_path={SOURCE}/src/push", "otlp.proto"],
                          input=gzip.decompress(body), capture_output=True, check=True).stdout.decode()
    found = []
    for metric in re.split(r"^    metrics \{$", text, flags=re.M)[1:]:
        def one(pattern, otherwise=""):
            match = re.search(pattern, metric, re.M)
            return match[1] if match else otherwise
        points = []
        for point in re.split(r"^ +data_points \{$", metric, flags=re.M)[1:]:
            if bool(re.search(r"^ +flags: 1$", point, re.M)) != ended:
                continue
            attributes = dict(re.findall(r'key: "(.*)"\n\s+value \{\n\s+string_value: "(.*)"', point))
            number = re.search(r"^ +(?:as_double|sum): (\S+)$", point, re.M)
            points.append((attributes, float(number[1]) if number else 0.0, int((re.search(r"start_time_unix_nano: (\d+)", point) or [0, 0])[1])))
        found.append((one(r'^      name: "(.*)"$'), one(r'^      unit: "(.*)"$'), one(r"^      (gauge|sum|histogram) \{$"), "is_monotonic: true" in metric,
                      one(r"aggregation_temporality: AGGREGATION_TEMPORALITY_(\w+)"), points))
    return found


def decode_logs(body):
    """[({member: text}, {attribute: text})] of a request, by protoc."""
    if not shutil.which("protoc"):
        raise Skip("protoc is missing: install protobuf-compiler")
    text = subprocess.run(["protoc", "--decode=otlp.ExportLogsServiceRequest", f"--proto_path={SOURCE}/src/push", "otlp.proto"],
                          input=gzip.decompress(body), capture_output=True, check=True).stdout.decode()
    found = []
    for record in re.split(r"^ +log_records \{$", text, flags=re.M)[1:]:
        members = dict(re.findall(r"^ {6}(\w+): (.*)$", record, re.M))
        attributes = {key: value.strip('"') for key, value in re.findall(r'key: "(.*)"\n\s+value \{\n\s+\w+_value: (.*)', record)}
        found.append((members, attributes))
    return found


def logs(receiver, name=None):
    """What was taken, of this name."""
    found = [record for status, path, _, body in receiver.requests if status == 200 for record in decode_logs(body)]
    assert all(path == "/v1/logs" for _, path, _, _ in receiver.requests), receiver.requests
    return [r for r in found if name in (None, r[0]["event_name"].strip('"'))]


def flags(url, *more):
    return ("--otlp-endpoint", url, "--otlp-interval", "1s", *more)


def figure(agent, name, destination="otlp", **labels):
    return (values(agent.metrics(), f"gpusonde_push_{name}", destination=destination, **labels) or [None])[0]


def newest(receiver, name):
    """{uuid: value} of the convention's name."""
    return {a["hw.id"]: v for request in receiver.taken() for n, _, _, _, _, points in request if n == name for a, v, _ in points}


def test_names_of_the_conventions():
    with Receiver() as receiver, Agent(*flags(f"{receiver.url}/", "--otlp-attributes", "deployment.environment=test,rack=7"), NODE_NAME="node-7") as agent:
        wait_for(lambda: newest(receiver, "hw.energy"), "figures")
        _, path, headers, body = receiver.requests[0]
        equal((path, headers["Content-Type"], headers["Content-Encoding"]), ("/v1/metrics", "application/x-protobuf", "gzip"))
        gpus = {g["uuid"]: g for g in agent.get("/api/v1/gpus").json()["gpus"]}
        equal(newest(receiver, "hw.gpu.memory.limit"), {uuid: g["memory_total_bytes"] for uuid, g in gpus.items()})
        metrics = {name: (unit, kind, monotonic, temporality) for request in receiver.taken() for name, unit, kind, monotonic, temporality, _ in request}
        equal(metrics["hw.gpu.utilization"], ("1", "gauge", False, ""))
        equal(metrics["hw.energy"], ("J", "sum", True, "CUMULATIVE"))
        equal(metrics["hw.gpu.memory.usage"], ("By", "sum", False, "CUMULATIVE"))
        equal(metrics["gpusonde.gpu_busy_seconds"], ("s", "sum", True, "CUMULATIVE"))
        assert all(v for v in metrics), metrics
        tasks = {a["hw.gpu.task"] for r in receiver.taken() for n, _, _, _, _, points in r if n == "hw.gpu.utilization" for a, _, _ in points}
        equal(tasks, {"general", "encoder", "decoder"})
        text = subprocess.run(["protoc", "--decode_raw"], input=gzip.decompress(body), capture_output=True, check=True).stdout.decode()
        for part in ('"service.name"', '"k8s.node.name"', '"node-7"', '"rack"', '"7"'):
            contains(text, part)
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")


def resource(body):
    """[(attribute, value)] of a request's resource."""
    text = subprocess.run(["protoc", "--decode=otlp.ExportMetricsServiceRequest", f"--proto_path={SOURCE}/src/push", "otlp.proto"],
                          input=gzip.decompress(body), capture_output=True, check=True).stdout.decode()
    return re.findall(r'key: "(.*)"\n\s+value \{\n\s+string_value: "(.*)"', text.partition("scope_metrics")[0])


def test_the_resource_has_each_attribute_once():
    """Which of several nodes it is, is told; what is configured stands in place of what is found out."""
    host = socket.gethostname()
    for attributes, env, wanted in (
            ("rack=7", {"NODE_NAME": "node-7"}, {"rack": "7", "service.name": "gpusonde", "service.instance.id": "node-7", "host.name": host, "k8s.node.name": "node-7"}),
            ("service.name=gpus,host.name=a,service.instance.id=b", {}, {"service.name": "gpus", "service.instance.id": "b", "host.name": "a"}),
            ("rack=7", {}, {"rack": "7", "service.name": "gpusonde", "service.instance.id": host, "host.name": host})):
        with Receiver() as receiver, Agent(*flags(receiver.url, "--otlp-attributes", attributes, "--otlp-families", "gpusonde_up"), **env) as agent:
            wait_for(receiver.taken, "a request", otherwise=agent.log)
            equal(sorted(resource(receiver.requests[0][3])), sorted(wanted.items()))


def test_errors_status_and_fans():
    scenario = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: rtx-4090}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 3s}\n"
    with Receiver() as receiver, Agent(*flags(receiver.url), scenario=scenario) as agent:
        def points(name):
            return [(a, v) for r in receiver.taken() for n, _, _, _, _, points in r if n == name for a, v, _ in points]
        uuid = agent.get("/api/v1/gpus").json()["gpus"][0]["uuid"]
        wait_for(lambda: [v for a, v in points("hw.errors") if a["error.type"] == "xid_79" and v >= 2], "XIDs as errors", otherwise=agent.log)
        errors = {a["error.type"] for a, _ in points("hw.errors")}
        assert {"ecc_corrected", "ecc_uncorrected", "xid_79"} <= errors, errors
        equal({(a["hw.type"], a["hw.id"]) for a, _ in points("hw.errors") if a["error.type"] == "xid_79"}, {("gpu", uuid)})
        # The whole is told once: its parts keep their own name.
        assert not [a for a, _ in points("hw.errors") if "location" in a or "type" in a], points("hw.errors")
        assert not [a for a, _ in points("gpusonde.gpu_ecc_errors") if a["location"] == "all"]
        sums = {(a["hw.id"], a["error.type"]): v for a, v in points("hw.errors")}
        for kind in ("corrected", "uncorrected"):
            assert sums[uuid, f"ecc_{kind}"] <= values(agent.metrics(), "gpusonde_gpu_ecc_errors_total", uuid=uuid, type=kind, location="all")[0]
        states = {a["hw.state"]: v for a, v in points("hw.status") if a["hw.id"] == uuid}
        equal(sorted(states), ["degraded", "failed", "ok"])
        equal(sum(states.values()), 1)
        for a, v in points("hw.fan.speed_ratio"):
            equal((a["hw.type"], a["hw.id"].partition("/")[0], a["hw.id"].partition("/")[2][:3], "fan" in a), ("fan", a["hw.parent"], "fan", False))
            assert 0 <= v <= 2, v
        equal(bool(points("hw.fan.speed_ratio")), bool(values(agent.metrics(), "gpusonde_gpu_fan_speed_ratio")))


def test_what_ends_is_told():
    """A process with series of its own, once; when the agent ends all that it sent last."""
    with tempfile.TemporaryDirectory() as tmp, Receiver() as receiver, Worker(tmp) as worker, Agent(*flags(receiver.url), scenario=worker.scenario()) as agent:
        def ended():
            return [(n, sorted(a.items())) for status, _, _, body in receiver.requests if status == 200
                    for n, _, _, _, _, points in decode(body, ended=True) for a, _, _ in points]

        def of_worker(points):
            return [point for point in points if ("process.executable.name", worker.comm) in point[1]]
        wait_for(lambda: any(a.get("process.executable.name") == worker.comm for request in receiver.taken() for *_, points in request for a, _, _ in points), "its series")
        equal(of_worker(ended()), [])
        worker.end()
        wait_for(lambda: of_worker(ended()), "their end")
        n = len(receiver.requests)
        wait_for(lambda: len(receiver.requests) > n + 2, "further requests")
        found = of_worker(ended())
        equal(len(found), len({str(point) for point in found}), "each once")
        alive = newest(receiver, "hw.energy")
        equal(agent.stop()[1], 0)
        equal({dict(a)["hw.id"] for name, a in ended() if name == "hw.energy"}, set(alive))


def test_delta():
    with Receiver() as receiver, Agent(*flags(receiver.url, "--otlp-temporality", "delta")) as agent:
        sums = lambda: [(a["hw.id"], v, s) for r in receiver.taken() for n, _, _, _, t, points in r if n == "hw.energy" and t == "DELTA" for a, v, s in points]
        wait_for(lambda: len(sums()) >= 3 * 8, "what was added")
        total = {uuid: values(agent.metrics(), "gpusonde_gpu_energy_joules_total", uuid=uuid)[0] for uuid, _, _ in sums()}
        for uuid, added, start in sums():
            assert 0 <= added < 60 * 800 < total[uuid] * 1e9 and start > 0, (uuid, added)


def test_who_wants_to_be_left_alone():
    with Receiver(429) as receiver, Agent(*flags(receiver.url)) as agent:
        wait_for(lambda: len(receiver.requests) > 2 and receiver.taken(), "another attempt")
        equal(receiver.requests[0][3], receiver.requests[1][3])
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")


def test_points_that_are_refused_are_told():
    with Receiver() as receiver, Agent(*flags(receiver.url)) as agent:
        # partial_success { rejected_data_points: 3 error_message: "too\x1b old" }
        receiver.answer = b"\x0a\x0c\x08\x03\x12\x08too\x1b old"
        state = lambda: agent.get("/control/status", unix=True).json()["push"]["otlp"]
        wait_for(lambda: re.search(r"the server has refused 3 of \d+ samples: too  old", state()), "its words", otherwise=state)
        equal(figure(agent, "up"), 1)
        wait_for(lambda: (figure(agent, "refused_samples_total") or 0) >= 3, "points that were refused, counted")
        # The same, in 5000 bytes.
        receiver.answer = b"\x0a\x8d\x27\x08\x04\x12\x88\x27" + b"x" * 5000
        wait_for(lambda: re.search(r"the server has refused 4 of \d+ samples: xxxx", state()), "a long answer", otherwise=state)
        receiver.answer = b"\xff\x00 no message"
        wait_for(lambda: state() == "", "another answer", otherwise=state)


XIDS = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 3s}\n"


def test_xids_are_log_records():
    """The same as /api/v1/events, each once: with a server that has no time at first, and over a restart."""
    with Receiver(429) as receiver, tempfile.TemporaryDirectory(prefix="gpusonde-logs-") as tmp:
        with Agent("--otlp-logs-endpoint", receiver.url, "--otlp-attributes", "rack=7", scenario=XIDS, tmp=tmp, NODE_NAME="node-7") as agent:
            wait_for(lambda: len(logs(receiver, "gpusonde.xid")) >= 2, "two XIDs", otherwise=agent.log)
            equal(receiver.requests[0][3], receiver.requests[1][3])
            record, attributes = logs(receiver)[0]
            equal((record["severity_number"], record["severity_text"]), ("SEVERITY_NUMBER_ERROR2", '"CRITICAL"'))
            gpu = agent.get("/api/v1/gpus").json()["gpus"][0]
            equal({k: attributes[k] for k in ("hw.type", "hw.id", "gpu", "xid", "error.type", "pci_bus_id", "hw.name")},
                  {"hw.type": "gpu", "hw.id": gpu["uuid"], "gpu": "0", "xid": "79", "error.type": "xid_79", "pci_bus_id": gpu["pci_bus_id"], "hw.name": gpu["name"]})
            assert int(record["time_unix_nano"]) <= int(record["observed_time_unix_nano"]), record
            wait_for(lambda: figure(agent, "up", "otlp_logs") == 1, "gpusonde_push_up 1")
            text = subprocess.run(["protoc", "--decode_raw"], input=gzip.decompress(receiver.requests[0][3]), capture_output=True, check=True).stdout.decode()
            for part in ('"service.name"', '"k8s.node.name"', '"node-7"', '"rack"'):
                contains(text, part)
            equal(figure(agent, "up"), None)
            equal(agent.stop()[1], 0)
        events = len(logs(receiver, "gpusonde.xid"))
        with Agent("--otlp-logs-endpoint", receiver.url, scenario=XIDS, tmp=tmp) as agent:
            wait_for(lambda: len(logs(receiver, "gpusonde.xid")) >= events + 2, "further XIDs", otherwise=agent.log)
            told = [record["time_unix_nano"] for record, _ in logs(receiver, "gpusonde.xid")]
            equal(len(set(told)), len(told))
            counted = values(agent.metrics(), "gpusonde_gpu_xid_errors_total", xid="79")[0]
            assert 0 <= counted - len(told) <= 2, (counted, len(told)) # the newest may be on the way
            listed = {e["time"] for e in agent.get("/api/v1/events").json()["events"]}
            assert len(listed) >= len(told) - events, (listed, told)


def test_records_that_are_refused_are_told():
    with Receiver() as receiver, Agent("--otlp-logs-endpoint", receiver.url, scenario=XIDS) as agent:
        # partial_success { rejected_log_records: 1 error_message: "too old" }
        receiver.answer = b"\x0a\x0b\x08\x01\x12\x07too old"
        state = lambda: agent.get("/control/status", unix=True).json()["push"]["otlp_logs"]
        wait_for(lambda: re.search(r"the server has refused 1 of \d+ samples: too old", state()), "its words", otherwise=state)


def test_attributes_of_events_are_documented():
    with open(f"{SOURCE}/src/model/events.def") as f, open(f"{SOURCE}/docs/otlp.md") as docs:
        rows, text = f.read(), docs.read()
    for attribute in re.findall(r'^EVENT_(?:TEXT|NUMBER)\(.*"([\w.]+)"\)', rows, re.M):
        contains(text, f"`{attribute}`")


def test_only_the_server_is_shown_a_password_and_headers():
    with tempfile.TemporaryDirectory(prefix="gpusonde-otlp-") as tmp, Receiver(403) as receiver:
        for name, content in (("password", "opensesame"), ("headers", "X-Scope-OrgID: tenant\nX-Secret: hidden\n")):
            with open(f"{tmp}/{name}", "w") as f:
                f.write(content)
        receiver.answer = b"no: X-Secret is hidden"
        with Agent(*flags(receiver.url, "--otlp-username", "Aladdin", "--otlp-password-file", f"{tmp}/password", "--otlp-headers-file", f"{tmp}/headers")) as agent:
            wait_for(receiver.taken, "a request that is taken", otherwise=agent.log)
            headers = receiver.requests[0][2]
            equal((headers["Authorization"], headers["X-Scope-OrgID"], headers["X-Secret"]), ("Basic QWxhZGRpbjpvcGVuc2VzYW1l", "tenant", "hidden"))
            assert "hidden" not in agent.log(), agent.log()


def test_names_are_documented_and_exist():
    with open(f"{SOURCE}/src/push/otlp.def") as f, open(f"{SOURCE}/docs/otlp.md") as docs, open(f"{SOURCE}/docs/metrics.md") as metrics:
        rows, text, known = f.read(), docs.read(), metrics.read()
    found = re.findall(r'OTLP_METRIC\("(\w+)", \S+ \S+ "([\w.]+)"', rows) + re.findall(r'OTLP_PART\("(\w+)", \S+ "([\w.]+)"', rows) + [
        (family, "hw.errors") for family in re.findall(r'OTLP_ERRORS\("(\w+)"', rows)]
    assert len(found) > 10, found
    for family, name in found:
        assert f"\n### {family}\n" in known or f"| `{family}` |" in known, family # those of rows; others
        contains(text, f"`{family}`")
        contains(text, f"`{name}`")
    for label, attribute in re.findall(r'OTLP_ATTRIBUTE\("(\w+)", "([\w.]+)"\)', rows):
        contains(text, f"| `{label}` | `{attribute}` |")


@contextlib.contextmanager
def victoria():
    try:
        program = fetch.get("victoria-metrics", f"{BUILD}/real")["victoria-metrics"]
    except fetch.Unavailable as why:
        raise Skip(str(why)) from None
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gpusonde-victoria-") as tmp:
        process = subprocess.Popen([program, f"-storageDataPath={tmp}/data", f"-httpListenAddr=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield port
        finally:
            process.kill()
            process.wait()


def query(port, text):
    """[({label: value}, number)]"""
    try:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", "/api/v1/query?latency_offset=1ms&query=" + urllib.parse.quote(text))
            return [(r["metric"], float(r["value"][1])) for r in json.loads(connection.getresponse().read())["data"]["result"]]
    except ConnectionRefusedError:
        return []


def test_victoria_metrics():
    with victoria() as port, Agent(*flags(f"http://127.0.0.1:{port}/opentelemetry")) as agent:
        limit = wait_for(lambda: query(port, '{__name__="hw.gpu.memory.limit"}'), "series in VictoriaMetrics", otherwise=agent.log)
        gpus = {g["uuid"]: g["memory_total_bytes"] for g in agent.get("/api/v1/gpus").json()["gpus"]}
        equal({labels["hw.id"]: value for labels, value in limit}, gpus)
        equal({labels["service.name"] for labels, _ in limit}, {"gpusonde"})
        busy = wait_for(lambda: query(port, '{__name__="gpusonde.gpu_busy_seconds",engine="gpu"}'), "busy seconds")
        for labels, value in busy:
            assert 0 <= value <= values(agent.metrics(), "gpusonde_gpu_busy_seconds_total", uuid=labels["hw.id"], engine="gpu")[0]
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
        equal(agent.stop()[1], 0)
        # Not five minutes later: it is told that all of it has ended.
        wait_for(lambda: query(port, '{__name__=~".+"}') == [], "no series of an agent that has ended", otherwise=lambda: query(port, '{__name__=~".+"}')[:3])
    rows.say("engines", "VictoriaMetrics 1.112", otlp="metrics, by the conventions' names")


if __name__ == "__main__":
    run()
