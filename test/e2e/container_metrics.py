#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /container/metrics and the pages of its kind: byte by byte as their contract says, on nodes with MIG instances, with GPUs that
several share, with hostile names, and without data; and read by a client as a cluster's collector is one."""
import contextlib
import http.client
import http.server
import json
import os
import re
import socket
import tempfile
import threading
import urllib.parse

from lib import contract
from lib.cgroups import cgroup, enter
from lib.e2e import Agent, Worker, contains, equal, run, wait_for

PAGE = "/container/metrics"
# One reading, which all pages then are of.
STILL = ("--sample-period", "60s")
IMPATIENT = ("--nvml-call-timeout", "1s")
UIDS = [f"1111111{i}-2222-3333-4444-555555555555" for i in range(3)]
IDS = ["a5" * 32, "b6" * 32, "c7" * 32]


class Raw:
    """A reply with its bytes and headers."""

    def __init__(self, agent, path, method="GET", body=None, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or agent.port(), timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body=body)
            reply = connection.getresponse()
            self.status, self.body = reply.status, reply.read()
            self.headers = {name.lower(): value for name, value in reply.getheaders()}


def rows_of(agent, query="", **kwargs):
    reply = Raw(agent, PAGE + query)
    equal((reply.status, reply.headers["content-type"]), (200, "application/json"), reply.body)
    return contract.check_page(reply.body, **kwargs)


def whose(row):
    return row["namespace"], row["pod"], row["container"]


def dcgm_samples(page):
    """DCGM name -> (GPU, GI) -> number, of series that are nobody's."""
    found = {}
    for name, labels, number in re.findall(r"^(DCGM_\w+)\{(.*)\} (\S+)$", page, re.M):
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
        found.setdefault(name, {})[labels["gpu"], labels.get("GPU_I_ID", "")] = float(number)
    return found


DCGM_NAMES = """PROF_SM_ACTIVE PROF_SM_OCCUPANCY PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES
    PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES PROF_GR_ENGINE_ACTIVE DEV_FB_TOTAL DEV_FB_USED DEV_FB_FREE DEV_PCIE_LINK_GEN
    DEV_PCIE_LINK_WIDTH DEV_GPU_TEMP DEV_MEMORY_TEMP DEV_POWER_USAGE DEV_GPU_UTIL PROF_PIPE_INT_ACTIVE PROF_PIPE_FP16_ACTIVE
    PROF_PIPE_FP32_ACTIVE PROF_PIPE_FP64_ACTIVE DEV_CLOCKS_EVENT_REASONS DEV_XID_ERRORS DEV_POWER_VIOLATION DEV_THERMAL_VIOLATION
    DEV_SM_CLOCK DEV_MEM_CLOCK""".split()


def compare_with_dcgm_page(scenario):
    """What a collector makes of a DCGM exporter's page is what our page says: also with the numbers that the page lacks."""
    with Agent(*STILL, scenario=scenario) as agent:
        wait_for(lambda: all(row["timestamp"] for row in rows_of(agent)), "a reading")
        rows = rows_of(agent, "?absent=null", absent_null=True)
        found = dcgm_samples(agent.get("/metrics/dcgm").text)
        compared = 0
        for row in rows:
            key = row["device_id"], row.get("mig_instance_id", "")
            for member, name in zip(contract.METRICS, DCGM_NAMES):
                equal(row[member], found.get(f"DCGM_FI_{name}", {}).get(key), f"{member} of {key}")
                compared += row[member] is not None
        assert compared > 25, compared
        # Without the argument what is absent is 0, and all else the same.
        equal(rows_of(agent), [{m: 0.0 if v is None else v for m, v in row.items()} for row in rows])


def test_a_whole_node():
    compare_with_dcgm_page("node-8xh100")


def test_a_node_with_mig_instances():
    compare_with_dcgm_page("node-mig")


def test_mig_instances_have_rows_beside_their_gpu():
    with Agent(scenario="node-mig") as agent:
        rows = wait_for(lambda: len(rows := rows_of(agent)) == 9 and rows, "three GPUs and six instances")
        equal([r["device_id"] for r in rows], ["0"] * 5 + ["1"] * 3 + ["2"])
        equal(sorted(r.get("mig_profile", "") for r in rows[:5]), ["", "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"])
        assert "mig_profile" not in rows[0] and "mig_instance_id" not in rows[0], rows[0]
        for row in rows[1:5]:
            equal((row["device_uuid"], row["device"]), (rows[0]["device_uuid"], "nvidia0"))
        node = json.loads(Raw(agent, "/node/metrics").body)
        equal((node["gpu_count"], node["gpu_instance_count"], len(node["gpu_mig_instances"])), (3, 7, 6))
        equal(node["gpu_memory_used_total"], sum(r["framebuffer_used"] for r in rows))


def test_methods():
    with Agent() as agent:
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "NONSENSE"):
            for path in (PAGE, "/node/metrics", "/v2/container/snapshot", "/v2/node/snapshot"):
                reply = Raw(agent, path, method)
                equal((reply.status, reply.headers["content-type"]), (405, "text/plain; charset=utf-8"), method)
                equal(reply.body, b"" if method == "HEAD" else b"method not allowed\n", method)
                equal(reply.headers["content-length"], "19", method)
                assert "allow" not in reply.headers, reply.headers
            reply = Raw(agent, "/healthz", method)
            equal((reply.status, reply.body), (200, b"" if method == "HEAD" else b"OK"), method)
        # A body is not read, and changes nothing.
        equal(Raw(agent, PAGE, "POST", b"x" * 5000).body, b"method not allowed\n")
        equal(Raw(agent, "/healthz", "POST", b"x").body, b"OK")
        equal(Raw(agent, PAGE, "GET", b"x").status, 200)
        equal(Raw(agent, "/metrics", "POST", b"x").status, 413)
        for path in ("/debug/pprof/", "/debug/pprof/cmdline", "/container/", "/container/metrics/", "/pvc/metrics"):
            equal(Raw(agent, path).status, 404, path)


def test_a_page_says_how_old_its_data_are():
    with Agent() as agent:
        reply = Raw(agent, PAGE)
        equal(reply.headers["x-gpusonde-state"], "ready")
        assert 0 <= float(reply.headers["x-gpusonde-age"]) < 30, reply.headers
        newest = max(contract.time_of(row) for row in contract.check_page(reply.body))
        assert abs(newest - float(reply.headers["x-gpusonde-time"])) < 0.01, (newest, reply.headers)
        assert Raw(agent, PAGE + "?pod=x").headers["x-gpusonde-state"] == "ready", "a part of a page has its headers"


def test_unknown_values_of_our_own_arguments_are_refused():
    with Agent() as agent:
        for query in ("?absent=nul", "?compat=castai", "?absent=null&compat=x"):
            reply = Raw(agent, PAGE + query)
            equal(reply.status, 400, query)
            contains(reply.body.decode(), "absent= must be null")
        for query in ("?absent=", "?compat=&pod=", "?anything=else", "?absent=null&compat=zxporter"):
            equal(Raw(agent, PAGE + query).status, 200, query)


# ---- whose ----

@contextlib.contextmanager
def pods(*names, scenario=None, flags=()):
    """An agent on a node with a pod of each (namespace, pod, container), and a process in it: agent.workers."""
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory())
        workers = []
        for i, (namespace, pod, container) in enumerate(names):
            folder = stack.enter_context(cgroup(f"kubepods/burstable/pod{UIDS[i]}/{IDS[i]}"))
            worker = stack.enter_context(Worker(root))
            enter(folder, worker.pid)
            workers.append(worker)
            path = f"{root}/var/log/containers/{pod}_{namespace}_{container}-{IDS[i]}.log"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii"):
                pass
        agent = stack.enter_context(Agent("--workload-root", root, *flags, scenario=scenario(workers)))
        agent.root = root
        wait_for(lambda: {whose(row) for row in rows_of(agent)} >= set(names), "the names of all pods", 30)
        yield agent


SHARED = ("cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\n  - {{model: h100-sxm}}\n  - {{model: h100-sxm}}\nprocesses:\n"
          "  - {{name: a, match: {0}, gpus: 0, memory: 2GiB, load: {{gpu: 40}}}}\n"
          "  - {{name: b, match: {1}, gpus: 0, memory: 3GiB, load: {{gpu: 30}}}}\n"
          "  - {{name: c, match: {2}, gpus: 1, memory: 1GiB, load: {{gpu: 70}}}}\n")
THREE = [("ml", "train-0", "main"), ("ml", "train-1", "main"), ("web", "train-0", "side")]


def shared(workers):
    return SHARED.format(*[worker.comm for worker in workers])


def test_sharers_have_their_own_figures_and_the_device_is_there_once():
    with pods(*THREE, scenario=shared) as agent:
        def settled():
            rows = rows_of(agent, "?absent=null", absent_null=True)
            return len(rows) == 5 and rows[1]["gpu_utilization"] and None not in (rows[0]["sm_active"], rows[4]["sm_active"]) and rows
        rows = wait_for(settled, "rows with utilisation")
        equal([(r["device_id"], *whose(r)) for r in rows],
              [("0", "", "", ""), ("0", *THREE[0]), ("0", *THREE[1]), ("1", *THREE[2]), ("2", "", "", "")])
        rest, first, second, alone, idle = rows
        equal((first["framebuffer_used"], second["framebuffer_used"]), (2048, 3072))
        for member in ("power_usage", "temperature", "sm_active", "framebuffer_total", "xid_errors"):
            equal((first[member], second[member]), (None, None), member)
            for row in (rest, alone, idle):
                assert row[member] is not None, member
        assert alone["framebuffer_used"] >= 1024 and alone["gpu_utilization"] > 0, alone
        node = json.loads(Raw(agent, "/node/metrics").body)
        equal((node["gpu_count"], node["gpu_instance_count"]), (3, 3))
        scopes = [row["scope"] for row in json.loads(Raw(agent, "/v2/container/snapshot").body)["container_metrics"]]
        equal(scopes, ["rest", "own", "own", "device", "device"])


def matching(rows, **wanted):
    members = {"node": "node_name"}
    return [row for row in rows if all(v == "" or row[members.get(k, k)] == v for k, v in wanted.items())]


def test_filters():
    with pods(*THREE, scenario=shared, flags=STILL) as agent:
        everything = rows_of(agent)
        node = everything[0]["node_name"]
        for wanted in ({"pod": "train-0"}, {"pod": "train-0", "namespace": "ml"}, {"container": "main"}, {"namespace": "web", "container": "main"},
                       {"node": node}, {"node": node, "pod": "train-1", "container": "main", "namespace": "ml"}, {"node": "another"},
                       {"pod": ""}, {"pod": "", "container": "side"}, {"pod": "train"}, {"pod": "train-0\n"}, {"pod": "\u2028<\">"}, {"pod": "train-0 "}):
            query = "?" + urllib.parse.urlencode(wanted)
            equal(Raw(agent, PAGE + query).body, contract.encode(matching(everything, **wanted)), query)
        # The first value of an argument counts; one without a value is none.
        equal(Raw(agent, PAGE + "?pod=train-1&pod=train-0").body, contract.encode(matching(everything, pod="train-1")))
        equal(Raw(agent, PAGE + "?pod=&pod=train-0").body, contract.encode(everything))
        equal(Raw(agent, PAGE + "?pod").body, contract.encode(everything))
        equal(Raw(agent, PAGE + "?pod=train%2D0&namespace=%6Dl").body, contract.encode(matching(everything, pod="train-0", namespace="ml")))
        # Names are case-sensitive: another argument, which chooses nothing.
        equal(Raw(agent, PAGE + "?POD=train-0").body, contract.encode(everything))
        equal(Raw(agent, PAGE + "?Pod=train-0&pod=train-1").body, contract.encode(matching(everything, pod="train-1")))
        for hostile in ("%ff", "%c3", "%22,%0a", "a+b", "*", "x" * 4000):
            equal(Raw(agent, PAGE + "?pod=" + hostile).body, b"[]\n", hostile)
        part = rows_of(agent, "?pod=train-1&absent=null", absent_null=True)
        equal((len(part), part[0]["power_usage"]), (1, None))
        # The same on the control socket, which another process serves.
        equal(agent.get(PAGE + "?pod=train-1", unix=True).text.encode(), contract.encode(matching(everything, pod="train-1")))


def test_a_pod_with_two_gpus_has_two_rows():
    scenario = "cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\n  - {{model: l4}}\nprocesses:\n  - {{name: a, match: {}, gpus: all, shared: true, memory: 2GiB, load: {{gpu: 40}}}}\n"
    with pods(THREE[0], scenario=lambda workers: scenario.format(workers[0].comm)) as agent:
        rows = wait_for(lambda: len(rows := matching(rows_of(agent), pod="train-0")) == 2 and rows, "two rows")
        equal([row["device_id"] for row in rows], ["0", "1"])
        for row in rows:
            assert row["framebuffer_used"] >= 2048 and row["power_usage"] > 0, row


HOSTILE = ['x"} 1\n    "pod": "y",', "\x1b[31m\x00\x7f<script>&\u2028\u2029\\"]


def test_hostile_names_are_escaped():
    for name in HOSTILE:
        with contextlib.ExitStack() as stack:
            root = stack.enter_context(tempfile.TemporaryDirectory())
            folder = stack.enter_context(cgroup(f"docker/{IDS[0]}"))
            worker = stack.enter_context(Worker(root))
            enter(folder, worker.pid)
            config = f"{root}/var/lib/docker/containers/{IDS[0]}/config.v2.json"
            os.makedirs(os.path.dirname(config))
            with open(config, "w", encoding="utf-8") as f:
                json.dump({"ID": IDS[0], "Name": name.replace("\x00", "")}, f)
            agent = stack.enter_context(Agent("--workload-root", root, "--node-name", name.replace("\x00", "").replace("\x1b", "").replace("\n", "").replace("\x7f", ""),
                                              scenario=worker.scenario()))

            def named(agent=agent):
                rows = rows_of(agent)
                return len(rows[0]["container"]) not in (0, 64) and rows
            rows = wait_for(named, "the container's name")
            found = rows[0]["container"]
            equal(found, name.replace("\x00", ""))
            equal(Raw(agent, PAGE + "?" + urllib.parse.urlencode({"container": found})).body, contract.encode(rows[:1]))
            equal(Raw(agent, PAGE + "?" + urllib.parse.urlencode({"node": rows[0]["node_name"]})).body, contract.encode(rows))
            equal(Raw(agent, PAGE + "?pod=y").body, b"[]\n")


# ---- without data ----

def test_a_node_without_gpus_has_an_empty_list():
    with Agent(scenario=None) as agent:
        reply = Raw(agent, PAGE)
        equal((reply.status, reply.body, reply.headers["x-gpusonde-state"]), (200, b"[]\n", "ready"))
        equal(json.loads(Raw(agent, "/node/metrics").body)["gpu_count"], 0)


def test_nothing_was_ever_read():
    with tempfile.TemporaryDirectory() as tmp:
        agent = Agent(*IMPATIENT, wait=False, tmp=tmp)
        agent.fault("hang: while, functions: nvmlInit*")
        with agent:
            wait_for(agent.port, "the agent to listen")
            reply = wait_for(lambda: (r := Raw(agent, PAGE)).status == 503 and r, "a page that says that nothing was read")
            equal((reply.headers["x-gpusonde-state"], reply.headers["content-type"]), ("not_ready", "text/plain; charset=utf-8"))
            assert "x-gpusonde-age" not in reply.headers, reply.headers
            contains(reply.body.decode(), "nothing has been read yet")
            equal(Raw(agent, PAGE + "?pod=x").status, 503, "not an empty list")
            reply = Raw(agent, PAGE + "?compat=zxporter")
            equal((reply.status, reply.body, reply.headers["x-gpusonde-state"]), (200, b"[]\n", "not_ready"))
            reply = Raw(agent, "/v2/container/snapshot")
            found = json.loads(reply.body)
            equal((reply.status, found["schema_version"], found["sections"]["containers"]), (503, 1, {"state": "not_ready"}))
            assert "container_metrics" not in found, found
            equal(Raw(agent, "/node/metrics").status, 503)
            agent.fault()
            wait_for(lambda: Raw(agent, PAGE).status == 200, "the first reading")


def test_the_option_is_the_argument():
    with tempfile.TemporaryDirectory() as tmp:
        agent = Agent(*IMPATIENT, "--http-container-compat", "yes", wait=False, tmp=tmp)
        agent.fault("hang: while, functions: nvmlInit*")
        with agent:
            wait_for(agent.port, "the agent to listen")
            equal(Raw(agent, PAGE).body, b"[]\n")


def test_old_data_are_stale():
    with Agent(*IMPATIENT) as agent:
        before = rows_of(agent)
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        reply = wait_for(lambda: (r := Raw(agent, PAGE)).headers["x-gpusonde-state"] == "stale" and r, "stale data")
        rows = contract.check_page(reply.body)
        equal((reply.status, len(rows)), (200, len(before)))
        first, age = contract.time_of(rows[0]), float(reply.headers["x-gpusonde-age"])
        assert age > 1, age
        reply = wait_for(lambda: (r := Raw(agent, PAGE)) and float(r.headers["x-gpusonde-age"]) > age + 2 and r, "data that grow older")
        equal(contract.time_of(contract.check_page(reply.body)[0]), first, "their time stays")
        equal(json.loads(Raw(agent, "/v2/node/snapshot").body)["sections"]["gpu"]["state"], "stale")
        agent.fault()
        wait_for(lambda: Raw(agent, PAGE).headers["x-gpusonde-state"] == "ready", "fresh data")


# ---- DCGM exporters ----

class Exporter:
    """A DCGM exporter whose page is @page; its address is .host and .port."""

    def __init__(self, page):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): # pylint: disable=invalid-name
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_): # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# Of eight GPUs five are partitioned, into 12 instances of one profile and 7 of another; two of the others have an owner.
OWNERS = [("batch", "eval-0", "model", 90, 39000), ("serving", "infer-0", "server", 15, 36000), ("", "", "", 0, 0)]
PROFILES = [["1g.5gb", "3g.20gb", "3g.20gb"]] * 2 + [["1g.5gb"] * 4 + ["3g.20gb"]] + [["1g.5gb"] * 3 + ["3g.20gb"]] * 2


def partitioned_node():
    util, used, free = [], [], []

    def series(gpu, kind, more):
        return f'{{gpu="{gpu}",UUID="GPU-{kind}{gpu}",device="nvidia{gpu}",modelName="NVIDIA A100-SXM4-40GB",Hostname="node-9"{more}}}'

    for gpu, (namespace, pod, container, busy, mib) in enumerate(OWNERS):
        labels = series(gpu, "whole-", f',container="{container}",namespace="{namespace}",pod="{pod}"')
        util.append(f"DCGM_FI_DEV_GPU_UTIL{labels} {busy}")
        used.append(f"DCGM_FI_DEV_FB_USED{labels} {mib}")
        free.append(f"DCGM_FI_DEV_FB_FREE{labels} {40536 - mib}")
    gi = 8
    for gpu, profiles in enumerate(PROFILES, start=3):
        for profile in profiles:
            labels = series(gpu, "mig-", f',GPU_I_PROFILE="{profile}",GPU_I_ID="{gi}",container="",namespace="",pod=""')
            used.append(f"DCGM_FI_DEV_FB_USED{labels} {6 if profile == '1g.5gb' else 18}")
            free.append(f"DCGM_FI_DEV_FB_FREE{labels} {4857 if profile == '1g.5gb' else 20462}")
            gi += 1
    page = ""
    for name, lines in (("GPU_UTIL", util), ("FB_USED", used), ("FB_FREE", free)):
        page += f"# HELP DCGM_FI_DEV_{name} x\n# TYPE DCGM_FI_DEV_{name} gauge\n" + "\n".join(lines) + "\n"
    return page


def test_a_node_that_only_an_exporter_knows():
    with Exporter(partitioned_node()) as exporter, \
            Agent(scenario=None, DCGM_HOST="127.0.0.1", DCGM_PORT=str(exporter.port), GPU_REFRESH_INTERVAL_SECONDS="5") as agent:
        rows = wait_for(lambda: len(rows := rows_of(agent)) == 22 and rows, "the exporter's rows", 30)
        equal([whose(row) for row in rows[:3]], [(n, p, c) for n, p, c, _, _ in OWNERS])
        equal({row["node_name"] for row in rows}, {"node-9"})
        equal([row["mig_instance_id"] for row in rows[3:]], [str(gi) for gi in range(8, 27)])
        equal([row["gpu_utilization"] for row in rows[:3]], [90, 15, 0])
        node = json.loads(Raw(agent, "/node/metrics").body)
        equal((node["gpu_count"], node["gpu_instance_count"], node["gpu_utilization_avg"], node["gpu_utilization_max"]), (8, 22, 35, 90))
        equal((node["gpu_memory_used_total"], node["gpu_memory_free_total"]), (75198, 248126))
        equal([i["mig_instance_id"] for i in node["gpu_mig_instances"]], [str(gi) for gi in range(8, 27)])
        sections = json.loads(Raw(agent, "/v2/container/snapshot").body)["sections"]
        equal((sections["containers"]["state"], sections["dcgm"]["state"]), ("ready", "ready"))


# ---- how it is configured ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_variables_of_the_exporter_that_is_replaced():
    port = free_port()
    with Agent(HTTP_LISTEN_PORT=str(port), GPUSONDE_WEB_OPEN="true", NODE_NAME="node-a", GPU_REFRESH_INTERVAL_SECONDS="10", CGROUP_METRICS_ENABLED="true", POD_NAME="x") as agent:
        first, = {row["node_name"] for row in contract.check_page(Raw(agent, PAGE, port=port).body)}
        equal(first, "node-a")
        equal(Raw(agent, "/healthz", port=port).body, b"OK")
        equal(len(rows_of(agent, "?node=node-a")), 8)
        contains(agent.log(), "without a meaning")
        contains(agent.log(), "CGROUP_METRICS_ENABLED")
        equal(agent.get("/control/status", unix=True).json()["http_container"], f":{port}")


def test_wrong_variables_are_named():
    for name, value in (("HTTP_LISTEN_PORT", "many"), ("HTTP_LISTEN_PORT", "0"), ("NODE_NAME", "n" * 300), ("DCGM_LABELS", "app in (a")):
        agent = Agent(wait=False, **{name: value})
        with agent:
            agent.process.wait(60)
            assert agent.process.returncode != 0
            contains(agent.log(), f"{name}: ")


def test_the_second_address_moves_on_reload():
    with tempfile.TemporaryDirectory() as tmp:
        first, second = free_port(), free_port()
        config = f"{tmp}/c.yaml"

        def listen(address):
            with open(config, "w", encoding="ascii") as f:
                f.write(f"http:\n  container_listen: {address}\n")

        listen(f"127.0.0.1:{first}")
        with Agent("--config", config) as agent:
            equal(Raw(agent, "/healthz", port=first).body, b"OK")
            listen(f"127.0.0.1:{second}")
            agent.signal(1)
            wait_for(lambda: f"listening on 127.0.0.1:{second}" in agent.log(), "the new address")
            equal(Raw(agent, "/healthz", port=second).body, b"OK")
            with contextlib.suppress(ConnectionRefusedError):
                Raw(agent, "/healthz", port=first)
                raise AssertionError("the old address is still served")


# ---- its reader ----

def collect(port):
    """As a cluster's collector reads a node: 200 and a JSON array or an error; by (pod, container, namespace), with zero for what lacks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    with contextlib.closing(connection):
        connection.request("GET", PAGE)
        reply = connection.getresponse()
        body = reply.read()
    if reply.status != 200:
        raise OSError(f"status {reply.status}")
    rows = json.loads(body)
    if not isinstance(rows, list):
        raise ValueError("no array")
    found = {}
    for row in rows:
        found.setdefault((row["pod"], row["container"], row["namespace"]), []).append({m: float(row.get(m, 0)) for m in contract.METRICS})
    return found


def test_a_collector_reads_it():
    with pods(*THREE, scenario=shared, flags=("--http-container-listen", f"127.0.0.1:{free_port()}")) as agent:
        found = collect(agent.port())
        equal(set(found), {("", "", ""), *((p, c, n) for n, p, c in THREE)})
        used = sum(gpu["framebuffer_used"] for gpus in found.values() for gpu in gpus)
        node = json.loads(Raw(agent, "/node/metrics").body)
        equal(sum(len(gpus) for gpus in found.values()), 5)
        assert abs(used - node["gpu_memory_used_total"]) < 10, (used, node["gpu_memory_used_total"])


if __name__ == "__main__":
    run()
