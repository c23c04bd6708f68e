#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus itself: promtool likes the page, and the server takes every page in both formats."""
import concurrent.futures
import contextlib
import gzip
import http.client
import http.server
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse

from lib import metrics_protobuf, traced
from lib.e2e import BUILD, SOURCE, Agent, equal, run, samples, wait_for
from lib.prometheus import Golden, Prometheus, free_port, tool

NATIVE = ("--enable-feature=native-histograms",)
DURATIONS = ("gpusonde_cuda_call_duration_seconds", "gpusonde_nccl_call_duration_seconds", "gpusonde_gpu_cuda_launch_gap_seconds", "gpusonde_probe_call_duration_seconds")
PAGES = ["/metrics", "/metrics/dcgm", "/metrics/dcgm?names=4.9"]


class TextOnly(http.server.BaseHTTPRequestHandler):
    """Between Prometheus and the agent: asks for the text format, which Prometheus cannot be told to prefer."""
    agent = None

    def do_GET(self):
        reply = self.agent.get(self.path, Accept="text/plain;version=0.0.4")
        body = reply.text.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def text_only(agent):
    handler = type("Handler", (TextOnly,), {"agent": agent})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def jobs(ports):
    """One for each page and format: ports is {format: port}."""
    for form, port in ports.items():
        for page in PAGES:
            path, _, query = page.partition("?")
            yield {"job_name": f"{form} {page}", "metrics_path": path, "params": urllib.parse.parse_qs(query),
                   "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}


def test_promtool_accepts_metrics():
    promtool = tool("promtool")
    for scenario in ("node-8xh100", "node-mig", "desktop-1gpu", "sick", "empty"):
        with Agent(scenario=scenario) as agent:
            out = subprocess.run([promtool, "check", "metrics"], input=agent.metrics(), capture_output=True, text=True, timeout=60,
                                 check=False)
            equal((out.returncode, out.stdout, out.stderr), (0, "", ""), scenario)


def test_prometheus_scrapes_every_page_in_both_formats():
    with Agent() as agent, text_only(agent) as text_port, \
            Prometheus(jobs({"openmetrics": agent.port(), "text": text_port})) as prometheus:
        # A page that Prometheus does not take is never up; on a busy machine a scrape may need more than its second.
        wait_for(lambda: len(prometheus.query("sum_over_time(up[1m]) >= 3")) == 2 * len(PAGES), "three scrapes of each page",
                 otherwise=lambda: [(t["labels"]["job"], t["health"], t["lastError"]) for t in prometheus.targets()])
        for trouble in ("duplicate_timestamp", "out_of_order", "out_of_bounds"):
            for _, n in prometheus.query(f"prometheus_target_scrapes_sample_{trouble}_total"):
                equal(n, 0, trouble)
        for form in ("openmetrics", "text"):
            job = f'{{job="{form} /metrics"}}'
            equal(len(prometheus.query(f"gpusonde_gpu_power_watts{job}")), 8, form)
            assert all(100 < watts < 800 for _, watts in prometheus.query(f"gpusonde_gpu_power_watts{job}"))
            busy = wait_for(lambda: prometheus.query(
                f'rate(gpusonde_gpu_busy_seconds_total{{engine="gpu",job="{form} /metrics"}}[1m]) / ignoring(engine) '
                f'rate(gpusonde_gpu_observed_seconds_total{job}[1m])'), "rates")
            assert busy and all(0 <= share <= 1 for _, share in busy), busy
        # both formats have the same series
        def series(form, page):
            return {tuple(sorted((k, v) for k, v in labels.items() if k not in ("job", "instance")))
                    for labels, _ in prometheus.query(f'{{job="{form} {page}",__name__=~"gpusonde_gpu_.*|DCGM_.*"}}')}
        for page in PAGES:
            wait_for(lambda: series("openmetrics", page) == series("text", page), f"the same series of {page} in both formats",
                     otherwise=lambda: sorted(series("openmetrics", page) ^ series("text", page))[:5])
            assert len(series("text", page)) > 100, page


def test_prometheus_takes_protobuf():
    """One that stores native histograms asks for protobuf: the same series and buckets as one that does not, and the agent's own numbers."""
    def series(prometheus):
        return {tuple(sorted((k, v) for k, v in labels.items() if k not in ("job", "instance")))
                for labels, _ in prometheus.query('{__name__=~"gpusonde_(gpu_.*|probe_call.*|node_.*)"}')}
    flags = ("--trace-enabled", "yes") if os.geteuid() == 0 else ()
    with Agent(*flags) as agent:
        reply = agent.get("/metrics", Accept=f"{metrics_protobuf.ACCEPT};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1")
        equal(reply.type, metrics_protobuf.TYPE)
        job = [{"job_name": "a", "static_configs": [{"targets": [f"127.0.0.1:{agent.port()}"]}]}]
        with Prometheus(job, flags=NATIVE) as native, Prometheus(job) as plain:
            wait_for(lambda: native.query("sum_over_time(up[1m]) >= 3") and plain.query("sum_over_time(up[1m]) >= 3"), "three scrapes",
                     otherwise=lambda: [(t["health"], t["lastError"]) for t in native.targets()])
            wait_for(lambda: series(native) == series(plain), "the same series", otherwise=lambda: sorted(series(native) ^ series(plain))[:5])
            assert len(series(native)) > 500
            gpus = {g["uuid"]: g for g in agent.get("/api/v1/gpus").json()["gpus"]}
            equal({labels["uuid"]: value for labels, value in native.query("gpusonde_gpu_memory_total_bytes")},
                  {uuid: g["memory_total_bytes"] for uuid, g in gpus.items()})


class Traced(http.server.BaseHTTPRequestHandler):
    """The page of a node with traced processes, in protobuf."""
    page = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", metrics_protobuf.TYPE)
        self.send_header("Content-Length", str(len(self.page)))
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_):
        pass


def test_buckets_are_read_back_from_protobuf():
    """Every sample of the page's text, in Prometheus, with the same labels, bounds as well."""
    page = subprocess.run([f"{BUILD}/test/golden/golden_render", "traced", "protobuf-classic"], capture_output=True, check=True).stdout
    equal(set(metrics_protobuf.natives(page).values()), {None})
    text = subprocess.run([f"{BUILD}/test/golden/golden_render", "traced", "prometheus"], capture_output=True, check=True, text=True).stdout
    wanted = {(name, frozenset((k, v) for k, v in labels if v != "")): value for (name, labels), value in metrics_protobuf.text_samples(text).items()}
    assert [key for key in wanted if key[0].endswith("_bucket")]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Page", (Traced,), {"page": page})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        job = [{"job_name": "a", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}]
        with Prometheus(job, flags=NATIVE) as prometheus:
            def stored():
                found = {}
                for labels, value in prometheus.query('{__name__=~"gpusonde_.+"}'):
                    pairs = {k: float(v) if k == "le" else v for k, v in labels.items() if k != "__name__" and (k, v) not in target}
                    found[labels["__name__"], frozenset(pairs.items())] = value
                return found
            target = {("job", "a"), ("instance", f"127.0.0.1:{server.server_port}")}
            wait_for(lambda: len(stored()) >= len(wanted), "the page in Prometheus", otherwise=lambda: [t["lastError"] for t in prometheus.targets()])
            found = stored()
            equal(set(found), set(wanted))
            assert all(abs(found[key] - value) <= 1e-14 * abs(value) for key, value in wanted.items()), [k for k, v in wanted.items() if found[k] != v]
            # And as /metrics spells them.
            bounds = {labels["le"] for labels, _ in prometheus.query('{__name__=~"gpusonde_.+_bucket"}')}
            assert bounds <= set(re.findall(r'le="([^"]+)"', text)), bounds
        server.shutdown()


def by_labels(found):
    return {frozenset((k, v) for k, v in labels.items() if k not in ("__name__", "job", "instance")): value for labels, value in found}


def compare_native(prometheus, name):
    """Number, sum and quantiles of native histograms are those of the classic ones, whose buckets they have."""
    def both(native, classic):
        return by_labels(prometheus.query(native.format(f'{name}{{job="native"}}'))), by_labels(prometheus.query(classic.format(name, 'job="classic"')))
    counts, of_buckets = both("histogram_count({})", "{}_count{{{}}}")
    equal(counts, of_buckets, name)
    assert counts, name
    sums, as_text = both("histogram_sum({})", "{}_sum{{{}}}")
    equal(set(sums), set(as_text), name)
    # Text has 15 digits.
    assert all(abs(value - as_text[labels]) <= 1e-14 * value for labels, value in sums.items()), (sums, as_text)
    for q in (0.01, 0.3, 0.5, 0.9, 0.99):
        native, classic = both(f"histogram_quantile({q}, {{}})", f"histogram_quantile({q}, {{}}_bucket{{{{{{}}}}}})")
        equal(set(native), set(classic), name)
        for labels, value in native.items():
            # Beyond its last bound a classic one says no more than that.
            assert abs(value - classic[labels]) <= 1e-9 * value or (classic[labels] == 16 and value > 16), (name, q, labels, value, classic[labels])
    return counts


def test_native_histograms_are_the_buckets():
    """In Prometheus, of the golden page: one job asks for protobuf, the other reads text."""
    page = subprocess.run([f"{BUILD}/test/golden/golden_render", "traced", "protobuf"], capture_output=True, check=True).stdout
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Page", (Traced,), {"page": page})) as native, \
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), Golden) as classic:
        for server in (native, classic):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        jobs_ = [{"job_name": "native", "static_configs": [{"targets": [f"127.0.0.1:{native.server_port}"]}]},
                 {"job_name": "classic", "metrics_path": "/openmetrics", "static_configs": [{"targets": [f"127.0.0.1:{classic.server_port}"]}]}]
        with Prometheus(jobs_, flags=NATIVE) as prometheus:
            wait_for(lambda: len(prometheus.query("sum_over_time(up[1m]) >= 1")) == 2, "a scrape of each",
                     otherwise=lambda: [(t["labels"]["job"], t["health"], t["lastError"]) for t in prometheus.targets()])
            for name in DURATIONS:
                compare_native(prometheus, name)
            # A time between launches of 100 s, which the buckets only say to be longer than 16.
            longest = prometheus.query('histogram_quantile(1, gpusonde_gpu_cuda_launch_gap_seconds{job="native"})')
            assert longest and all(64 < value <= 256 for _, value in longest), longest
        native.shutdown()
        classic.shutdown()


def test_native_histograms_of_traced_calls():
    """What the agent counted is what Prometheus has, both ways; from before 2.45 on it keeps the buckets only where the agent sends no native ones."""
    traced.tracing()
    script = "api driver; init; repeat 300; launch; end; sync; alloc 4096; free all; pause"
    for option, names in (("yes", {"gpusonde_cuda_call_duration_seconds"}), ("no", set())):
        with Agent("--trace-enabled", "yes", "--http-native-histograms", option) as agent, text_only(agent) as text_port, traced.Workload(agent, script) as workload:
            traced.begun(agent)
            traced.probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            traced.all_counted(agent, workload)
            jobs_ = [{"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in (("native", agent.port()), ("classic", text_port))]
            with Prometheus(jobs_, flags=NATIVE) as prometheus:
                wait_for(lambda: len(prometheus.query("sum_over_time(up[1m]) >= 2")) == 2, "two scrapes of each",
                         otherwise=lambda: [(t["labels"]["job"], t["health"], t["lastError"]) for t in prometheus.targets()])
                equal({r["metric"]["__name__"] for r in prometheus.result('{__name__="gpusonde_cuda_call_duration_seconds",job="native"}')}, names)
                if option == "no":
                    assert prometheus.query('gpusonde_cuda_call_duration_seconds_bucket{job="native"}')
                    continue
                wait_for(lambda: not prometheus.query('{__name__=~"gpusonde_cuda_call.*_(count|sum)",job="classic"} != last_over_time({__name__=~"gpusonde_cuda_call.*_(count|sum)",job="classic"}[1m] offset 3s)'),
                         "calls of others to end")
                counts = compare_native(prometheus, "gpusonde_cuda_call_duration_seconds")
                api = {frozenset({("api", c["api"])}): c["count"] for c in traced.trace_of(agent)["calls"] if c["api"].startswith("cu") and c["seconds"] is not None}
                equal({labels: n for labels, n in counts.items() if labels in api}, {labels: api[labels] for labels in counts if labels in api})
                assert counts[frozenset({("api", "cuLaunchKernel")})] >= 300, counts
            workload.end()


def test_protobuf_is_one_page_of_a_snapshot():
    """Families are chosen from it; it is compressed once; 100 clients at a time get the same bytes."""
    with Agent("--sample-period", "10s") as agent:
        def page(path="/metrics", **headers):
            return agent.get(path, Accept=metrics_protobuf.ACCEPT, **headers)
        whole = metrics_protobuf.families(page().body)
        text = metrics_protobuf.text_samples(agent.metrics())
        equal({key for *_, values, _ in whole for key in values}, set(text))
        some = metrics_protobuf.families(page("/metrics?family=gpusonde_gpu_power*,gpusonde_gpu_energy_joules_total").body)
        equal([name for name, *_ in some], [name for name, *_ in whole if name.startswith("gpusonde_gpu_power") or name == "gpusonde_gpu_energy_joules_total"])
        # When counters began, which the text does not say.
        process = next(f for f in whole if f[0] == "gpusonde_process_gpu_busy_seconds_total")
        assert process[5] and all(0 < began <= time.time() for began in process[5].values()), process
        equal(metrics_protobuf.families(page("/metrics?family=none").body), [])
        equal(gzip.decompress(page(**{"Accept-Encoding": "gzip"}).body)[:64], page().body[:64])
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            found = list(pool.map(lambda _: len(metrics_protobuf.families(page().body)), range(100)))
        assert min(found) >= len(whole), found
        # The exporter's page has no such format, nor has another message.
        equal(agent.get("/metrics/dcgm", Accept=metrics_protobuf.ACCEPT).type.partition(";")[0], "text/plain")


@contextlib.contextmanager
def victoria(program=None):
    """The port of a VictoriaMetrics of our own. @program: which; None: the one that is installed."""
    program, port = program or tool("victoria-metrics"), free_port()
    with tempfile.TemporaryDirectory(prefix="gpusonde-victoria-") as tmp, open(f"{tmp}/log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([program, f"-storageDataPath={tmp}/data", f"-httpListenAddr=127.0.0.1:{port}", "-search.latencyOffset=0s",
                                    "-retentionPeriod=1"], stdout=log, stderr=log)
        try:
            yield port
        finally:
            process.kill()
            process.wait()


def asked(port, text):
    """What a server with Prometheus' API answers: [(labels, value)], none while it does not."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("GET", "/api/v1/query?query=" + urllib.parse.quote(text))
        reply = connection.getresponse()
        body = reply.read()
        return [(r["metric"], float(r["value"][1])) for r in json.loads(body)["data"]["result"]] if reply.status == 200 else []
    return []


def written(agent, port, name):
    """The numbers of a family that a server has been sent, and those of the page: {labels: number}."""
    stored = {frozenset((k, v) for k, v in labels.items() if k not in ("__name__", "job", "instance")): value
              for labels, value in asked(port, f'{name}{{job="gpusonde",instance="here"}}')}
    page = {frozenset(re.findall('([a-z_]+)="([^"]*)"', series)): value for series, value in samples(agent.metrics()).items() if series.split("{")[0] == name}
    return stored, page


def sent_to(port, *more, **how):
    return Agent("--remote-write-url", f"http://127.0.0.1:{port}/api/v1/write", "--remote-write-interval", "1s", "--remote-write-instance", "here", *more, **how)


def takes_all(port, agent):
    for name in ("gpusonde_gpu_memory_total_bytes", "gpusonde_gpu_power_limit_watts", "gpusonde_gpu_ecc_errors_total"):
        stored, page = wait_for(lambda name=name: (found := written(agent, port, name))[0] and len(found[0]) >= 8 and found, f"the series of {name}")
        equal(stored, page, name)
    # what grows lies between two pages, one before and one after it was asked for
    name = "gpusonde_gpu_energy_joules_total"
    before = written(agent, port, name)[1]
    stored = wait_for(lambda: (found := written(agent, port, name)[0]) and all(found[u] >= before[u] for u in before) and found, "newer numbers")
    after = written(agent, port, name)[1]
    assert all(before[u] <= stored[u] <= after[u] for u in before), (before, stored, after)
    count = len(samples(agent.metrics()))
    wait_for(lambda: asked(port, 'count({job="gpusonde"})')[0][1] >= count * 0.99, "the series of the page")


def test_prometheus_takes_remote_write():
    with Prometheus([], flags=["--web.enable-remote-write-receiver"]) as prometheus, sent_to(prometheus.port) as agent:
        takes_all(prometheus.port, agent)
        for _, n in prometheus.query("prometheus_tsdb_out_of_order_samples_total"):
            equal(n, 0)
        equal(agent.stop()[1], 0)
        # not five minutes later: all of it is stale
        wait_for(lambda: prometheus.query('count({job="gpusonde"})') == [], "no series of an agent that has ended")


def test_victoria_metrics_takes_remote_write():
    with victoria() as port, sent_to(port) as agent:
        takes_all(port, agent)


def test_alerts_fire_at_the_first_error():
    """Of XIDs, ECC, throttling and failed calls: their series are there before anything happens."""
    soon = int(time.clock_gettime(time.CLOCK_BOOTTIME)) + 30
    scenario = (f"cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\n  - {{model: h100-sxm}}\nxids:\n  - {{xid: 48, gpu: 1, at: {soon}s}}\n"
                f"counters:\n  - {{kind: ecc_uncorrected, gpus: 0, count: 1, at: {soon}s}}\n")
    alerts = {"total": 'increase(gpusonde_gpu_xid_reports_total{severity="critical"}[1m]) > 0', "code": "increase(gpusonde_gpu_xid_errors_total[1m]) > 0",
              "ecc": 'sum by (gpu) (increase(gpusonde_gpu_ecc_errors_total{type="uncorrected"}[1m])) > 0'}
    with Agent("--trace-enabled", "yes" if os.geteuid() == 0 else "no", scenario=scenario) as agent, \
            Prometheus(jobs({"openmetrics": agent.port()}), alerts) as prometheus:
        def series(name, labels=""):
            return prometheus.query(f'gpusonde_{name}{{{labels}job="openmetrics /metrics"}}')

        def fired(alert):
            return wait_for(lambda: prometheus.query(f'ALERTS{{alertstate="firing",alertname="{alert}"}}'), f"the alert {alert}")
        begun = wait_for(lambda: series("gpu_xid_reports_total", 'severity="critical",'), "a scrape")
        equal(sorted((labels["gpu"], n) for labels, n in begun), [("0", 0), ("1", 0)])
        ecc = series("gpu_ecc_errors_total")
        equal(({labels["gpu"] for labels, _ in ecc}, {n for _, n in ecc}), ({"0", "1"}, {0}))
        equal({(labels["gpu"], labels["reason"]) for labels, _ in series("gpu_throttle_seconds_total")} >= {("0", "power"), ("1", "thermal")}, True)
        if "tracing CUDA calls by" in agent.log():
            equal(len(series("cuda_failed_calls_total")), 1) # of all programs of this machine: there may be some
        equal([labels["gpu"] for labels, _ in fired("total")], ["1"])
        equal([labels["gpu"] for labels, _ in fired("ecc")], ["0"])
        # Why there is a total: the series of a code begins with its first report.
        equal(prometheus.query('ALERTS{alertname="code"}'), [])


class Receiver(http.server.BaseHTTPRequestHandler):
    """What Alertmanager notifies."""
    alerts = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.alerts.extend(alert for alert in body["alerts"] if alert["status"] == "firing")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def notified():
    """(port of an Alertmanager, list of the alerts that it has notified of)"""
    program, port, alerts = tool("prometheus-alertmanager"), free_port(), []
    handler = type("Handler", (Receiver,), {"alerts": alerts})
    with tempfile.TemporaryDirectory(prefix="gpusonde-alertmanager-") as tmp, http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with open(f"{tmp}/config.yml", "w", encoding="ascii") as f:
            json.dump({"route": {"receiver": "here", "group_wait": "1s", "group_interval": "1s"},
                       "receivers": [{"name": "here", "webhook_configs": [{"url": f"http://127.0.0.1:{server.server_port}/"}]}]}, f)
        with open(f"{tmp}/log", "w", encoding="ascii") as log:
            process = subprocess.Popen([program, f"--config.file={tmp}/config.yml", f"--storage.path={tmp}", f"--web.listen-address=127.0.0.1:{port}",
                                        "--cluster.listen-address="], stdout=log, stderr=log)
        try:
            yield port, alerts
        finally:
            process.kill()
            process.wait()
            server.shutdown()


def test_rules_fire_through_alertmanager():
    """Those of deploy/prometheus that wait for nothing: a board that wants replacing, and an XID; not of the GPU that is well."""
    soon = int(time.clock_gettime(time.CLOCK_BOOTTIME)) + 20
    scenario = (f"cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\n  - {{model: h100-sxm, remap_failed: true}}\n"
                f"xids:\n  - {{xid: 48, gpu: 1, at: {soon}s}}\n")
    with notified() as (port, alerts), Agent(scenario=scenario) as agent, \
            Prometheus(jobs({"openmetrics": agent.port()}), rule_files=[f"{SOURCE}/deploy/prometheus/rules.yaml"], alertmanager=port):
        def came():
            found = {alert["labels"]["alertname"]: alert for alert in list(alerts)}
            return {"GpuWantsReplacing", "GpuCriticalXid"} <= set(found) and found
        found = wait_for(came, "both alerts")
        equal({alert["labels"]["gpu"] for alert in found.values()}, {"1"})
        for name, alert in found.items():
            equal(alert["annotations"]["runbook"], f"docs/runbooks/{name}.md")
            assert os.path.exists(f"{SOURCE}/{alert['annotations']['runbook']}"), name


def test_prometheus_takes_traced_calls_in_both_formats():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Golden) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        targets = [{"targets": [f"127.0.0.1:{server.server_port}"]}]
        with Prometheus({"job_name": path[1:], "metrics_path": path, "static_configs": targets} for path in Golden.TYPES) as prometheus:
            wait_for(lambda: all(t["health"] != "unknown" for t in prometheus.targets()), "both pages to be scraped")
            for target in prometheus.targets():
                equal((target["health"], target["lastError"]), ("up", ""), target["labels"]["job"])
            counts = {}
            for path in Golden.TYPES:
                job = f'job="{path[1:]}"'
                [(_, launches)] = wait_for(lambda: prometheus.query(
                    f'gpusonde_process_cuda_launches_total{{pid="1001",gpu="0",{job}}}'), "the series of a process")
                equal(launches, 123456789)
                [(_, median)] = prometheus.query(
                    f'histogram_quantile(0.5, gpusonde_cuda_call_duration_seconds_bucket{{api="cuMemAlloc_v2",{job}}})')
                assert 1e-6 < median <= 4e-6, median
                counts[path] = len(prometheus.query(f'{{{job},__name__=~"gpusonde_.*"}}'))
            assert len(set(counts.values())) == 1 and min(counts.values()) > 250, counts
        server.shutdown()


if __name__ == "__main__":
    run()
