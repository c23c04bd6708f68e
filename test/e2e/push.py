#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is pushed: the agent and gpusonde-push beside a server of ours, which takes batches, refuses them, or does worse."""
import glob
import gzip
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from e2e.fake_kube import Authority
from lib.disk import full_disk
from lib.e2e import SOURCE, Agent, Skip, children, comm, contains, equal, run, values, wait_for
from lib.post_server import PostServer
from lib.tls import need_reasons

KEY = "a-very-secret-key"
PATH = "/v1/kubernetes/clusters/cluster-1/gpu-metrics"


class Server(PostServer):
    """Takes batches. @statuses: what the next requests are answered with, in turn; then 200. 0: it says nothing until it is stopped."""

    def __init__(self, *statuses, port=0):
        self.stopped = threading.Event()
        super().__init__(*statuses, port=port)

    def reply(self, path, headers, body):
        status = self.next_status(200)
        self.requests.append((status, path, dict(headers), body))
        if status == 0:
            self.stopped.wait()
            return None
        # A server that repeats what it was told: it must not get into the log.
        return status, {}, f"the key was {headers['X-API-Key']}\n".encode()

    def __exit__(self, *exception):
        self.stopped.set()
        super().__exit__(*exception)

    def taken(self):
        return [r for r in self.requests if 200 <= r[0] < 300]


def settings(port, **more):
    return {"CAST_API": f"http://127.0.0.1:{port}", "CLUSTER_ID": "cluster-1", "API_KEY": KEY, "EXPORT_INTERVAL": "1s",
            "NO_PROXY": "127.0.0.1", **more}


def closed_port():
    with Server() as server:
        return server.port


def decode(body):
    """{metric: [(value, {label: value})]} of a batch, by protoc."""
    if not shutil.which("protoc"):
        raise Skip("protoc is missing: install protobuf-compiler")
    text = subprocess.run(["protoc", "--decode=push.MetricsBatch", f"--proto_path={SOURCE}/src/push", "metrics.proto"],
                          input=gzip.decompress(body), capture_output=True, check=True).stdout.decode()
    found = {}
    for metric in re.split(r"^metrics \{$", text, flags=re.M)[1:]:
        rows = []
        for part in metric.split("  measurements {\n")[1:]:
            value = re.search(r"^    value: (\S+)$", part, re.M)
            rows.append((float(value[1]) if value else 0.0, dict(re.findall(r'name: "(.*)"\n\s+value: "(.*)"', part))))
        found[re.search(r'^  name: "(.*)"$', metric, re.M)[1]] = rows
    return found


def figure(agent, name, **labels):
    return (values(agent.metrics(), f"gpusonde_push_{name}", **labels) or [None])[0]


def dropped(agent, reason):
    return figure(agent, "dropped_batches_total", reason=reason)


def queue(agent):
    return sorted(glob.glob(f"{agent.tmp}/state/push/push/*"))


def no_key(agent):
    assert KEY not in agent.log(), agent.log()
    assert KEY not in agent.get("/control/status", unix=True).text


# ---- what is sent ----

def test_https():
    """By certificates of one's own, which alone are believed then, and which may be replaced."""
    need_reasons()
    with tempfile.TemporaryDirectory(prefix="gpusonde-ca-") as folder, Server() as server:
        os.chmod(folder, 0o755)
        ours, others = (Authority(folder, name) for name in ("ours", "others"))
        server.http.socket = ours.listening(server.http.socket)
        file = f"{folder}/ca"
        shutil.copy(others.ca, file)
        with Agent("--push-ca-file", file, **settings(server.port, CAST_API=f"https://127.0.0.1:{server.port}")) as agent:
            wait_for(lambda: figure(agent, "up") == 0, "a certificate of somebody else's")
            equal(server.requests, [])
            assert figure(agent, "failures_total", reason="tls_ca") >= 1
            contains(agent.log(), "its certificate is not of a CA that is trusted (name its CA by push.ca_file: ")
            contains(agent.cli("doctor").stdout, "name its CA by push.ca_file")
            shutil.copy(ours.ca, file)
            wait_for(server.taken, "a batch", 120)


def test_a_batch():
    with Server() as server, Agent(**settings(server.port, NODE_NAME="node-7")) as agent:
        wait_for(lambda: len(server.taken()) >= 2, "two batches")
        _, path, headers, body = server.requests[0]
        equal(path, PATH)
        equal([headers[h] for h in ("X-API-Key", "Content-Type", "Content-Encoding")], [KEY, "application/protobuf", "gzip"])
        contains(headers["User-Agent"], "gpusonde/")
        assert "Expect" not in headers, headers
        batch = decode(body)
        page = agent.get("/container/metrics?absent=null").json()
        rows = batch["DCGM_FI_DEV_FB_TOTAL"]
        equal({r[1]["UUID"] for r in rows}, {r["device_uuid"] for r in page})
        equal({r[0] for r in rows}, {r["framebuffer_total"] for r in page})
        equal({r[1]["Hostname"] for r in rows}, {"node-7"})
        equal(set(rows[0][1]) - {"pod", "namespace", "container"}, {"gpu", "UUID", "device", "modelName", "Hostname"})
        equal({r[1]["modelName"] for r in rows}, {r["model_name"] for r in page})
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
        assert figure(agent, "batches_total", result="sent") >= 1
        equal(queue(agent), [])
        equal(agent.get("/control/status", unix=True).json()["push"]["push"], "")
        contains(agent.cli("doctor").stdout, "the server takes what is pushed")
        no_key(agent)
        contains(agent.log(), "unencrypted")
        shown = agent.cli("agent", "--print-config").stdout
        contains(shown, "cluster-1")
        assert KEY not in shown


def test_what_is_not_known_is_not_pushed():
    """A GPU before Hopper has no profiling figures: no 0 in their place."""
    with Server() as server, Agent(scenario="desktop-1gpu", **settings(server.port)) as agent:
        wait_for(server.taken, "a batch")
        batch = decode(server.requests[0][3])
        page = agent.get("/container/metrics?absent=null").json()
        assert page and all(r["sm_active"] is None for r in page), page
        assert "DCGM_FI_PROF_SM_ACTIVE" not in batch, batch.keys()
        contains(batch, "DCGM_FI_DEV_GPU_TEMP")


def test_off_unless_whole():
    with Agent(API_KEY=KEY) as agent:
        equal(agent.get("/control/status", unix=True).json()["push"]["push"], "off")
        equal(figure(agent, "up"), None)
        assert "gpusonde-push" not in [comm(p) for p in children(agent.pid)]
        assert "pushed" not in agent.log(), agent.log()
    with Agent(API_KEY=KEY, CLUSTER_ID="c") as agent:
        contains(agent.log(), "missing: push.url (CAST_API)")
        contains(agent.cli("doctor").stdout, "only a part of it is configured")
        no_key(agent)


def test_a_proxy():
    with Server() as server, Agent(**dict(settings(1), CAST_API="http://push.example", HTTP_PROXY=f"http://127.0.0.1:{server.port}")):
        wait_for(server.taken, "a batch through the proxy")
        equal(server.requests[0][1], f"http://push.example{PATH}")


# ---- what does not work ----

def test_refused_for_good():
    with Server(400, 413) as server, Agent(**settings(server.port)) as agent:
        wait_for(server.taken, "a batch that is taken")
        wait_for(lambda: figure(agent, "batches_total", result="refused") == 2, "two refused batches")
        equal(len(server.requests) - len(server.taken()), 2)
        contains(agent.log(), "it answers with status 400: the batch is dropped")
        wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
        no_key(agent)


def test_a_wrong_key_drops_nothing():
    with Server(401, 401) as server, tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/key", "w", encoding="ascii") as f:
            f.write(KEY + "\n")
        with Agent("--push-key-file", f"{tmp}/key", **settings(server.port, API_KEY="other")) as agent:
            wait_for(lambda: len(server.taken()) >= 3, "batches that are taken")
            equal({r[2]["X-API-Key"] for r in server.requests}, {KEY})
            equal([r[3] for r in server.taken()][0], server.requests[0][3], "the first batch, sent again")
            wait_for(lambda: queue(agent) == [], "an empty queue")
            equal(figure(agent, "batches_total", result="refused"), 0)
            contains(agent.log(), "status 401")
            no_key(agent)


def test_a_failing_server_is_tried_again():
    with Server(500, 503) as server, Agent(**settings(server.port, EXPORT_INTERVAL="1h")) as agent:
        wait_for(server.taken, "a batch that is taken")
        equal([r[0] for r in server.requests], [500, 503, 200])
        equal(len({r[3] for r in server.requests}), 1, "bodies")
        wait_for(lambda: figure(agent, "failures_total", reason="status") == 2, "two failures")
        wait_for(lambda: queue(agent) == [], "an empty queue")
        equal(figure(agent, "batches_total", result="queued"), 1)


def test_five_attempts():
    with Server(*[500] * 5) as server, Agent(**settings(server.port, EXPORT_INTERVAL="1h")) as agent:
        wait_for(lambda: len(server.requests) == 5, "five attempts", 120)
        wait_for(lambda: figure(agent, "failures_total", reason="status") == 5, "five failures")
        equal(len(queue(agent)), 1)
        equal(server.taken(), [])


def test_a_server_that_says_nothing():
    with Server(0) as server, Agent(**settings(server.port)) as agent:
        wait_for(lambda: len(queue(agent)) >= 3, "batches in the queue")
        equal(len(server.requests), 1)
        equal(agent.get("/readyz").status, 200)


def test_nobody_listens_and_the_agent_is_killed():
    """What is in the queue outlives kill -9, and is sent in its order."""
    port = closed_port()
    with tempfile.TemporaryDirectory() as tmp:
        with Agent(tmp=tmp, **settings(port)) as agent:
            wait_for(lambda: len(queue(agent)) >= 4, "batches in the queue")
            wait_for(lambda: figure(agent, "up") == 0, "gpusonde_push_up 0")
            wait_for(lambda: (figure(agent, "queue_bytes") or 0) >= 4 * 4096, "bytes in the queue")
            contains(agent.cli("doctor").stdout, "pushing to the server (push): ")
            helper = [p for p in children(agent.pid) if comm(p) == "gpusonde-push"][0]
            os.kill(agent.pid, signal.SIGKILL)
            agent.process.wait()
            wait_for(lambda: not os.path.exists(f"/proc/{helper}/fd") or comm(helper) == "", "the end of gpusonde-push")
            no = agent.log()
            assert KEY not in no, no
            kept = []
            for path in queue(agent):
                if not path.endswith("/new"):
                    with open(path, "rb") as f:
                        kept.append(f.read()[32:])
        with Server(port=port) as server, Agent(tmp=tmp, **settings(port)) as agent:
            wait_for(lambda: len(server.taken()) > len(kept), "what was kept, and more")
            equal([r[3] for r in server.taken()[:len(kept)]], kept)
            wait_for(lambda: queue(agent) == [], "an empty queue")
            for reason in ("full", "torn", "unkept", "old"):
                equal(dropped(agent, reason), 0, reason)


def test_the_queue_is_bounded():
    with Agent("--push-queue", "12KiB", **settings(closed_port())) as agent:
        wait_for(lambda: (dropped(agent, "full") or 0) >= 2, "batches that were dropped")
        assert figure(agent, "queue_bytes") <= 12 * 1024
        assert len([p for p in queue(agent) if not p.endswith("/new")]) <= 3


def test_torn_files():
    with tempfile.TemporaryDirectory() as tmp:
        with Agent(tmp=tmp, **settings(closed_port())) as agent:
            wait_for(lambda: len(queue(agent)) >= 2, "batches in the queue")
        with open(queue(agent)[0], "r+b") as f:
            f.truncate(20)
        with Server() as server, Agent(tmp=tmp, **settings(server.port)) as agent:
            wait_for(server.taken, "a whole batch")
            wait_for(lambda: dropped(agent, "torn") == 1, "a torn batch that is counted")


def test_a_full_disk():
    with tempfile.TemporaryDirectory() as tmp, full_disk(f"{tmp}/state"), Agent(tmp=tmp, **settings(closed_port())) as agent:
        wait_for(lambda: (dropped(agent, "unkept") or 0) >= 2, "batches that could not be kept")
        equal([p for p in queue(agent) if p.endswith("/new")], [])
        equal(agent.get("/readyz").status, 200)


def test_its_process_is_replaced():
    with Server() as server, Agent(**settings(server.port)) as agent:
        wait_for(server.taken, "a batch")
        helper = [p for p in children(agent.pid) if comm(p) == "gpusonde-push"]
        equal(len(helper), 1)
        with open(f"/proc/{helper[0]}/status", encoding="ascii") as f:
            status = f.read()
        if os.geteuid() == 0:
            equal(re.search(r"^CapEff:\s+(\S+)$", status, re.M)[1], "0" * 16)
        os.kill(helper[0], signal.SIGKILL)
        n = len(server.taken())
        wait_for(lambda: len(server.taken()) > n + 1, "batches of another process")
        equal(agent.get("/readyz").status, 200)


run()
