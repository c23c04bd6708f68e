#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Newer engines than those that are installed. Prometheus 2.53 and 3 scrape every format and take remote write, 2.0 as well, and their promtool likes the page and the
rules; VictoriaMetrics 1.112 takes remote write."""
import http.client
import http.server
import re
import struct
import subprocess
import threading
import time

from lib import fetch, metrics_protobuf, rows
from lib.e2e import BUILD, SOURCE, Agent, Skip, equal, run, samples, values, wait_for
from lib.prometheus import Golden, Prometheus, release
from lib.traced import BUSY, DRIVER, SCENARIO, Workload, begun, probed_when_loaded
from prometheus_clients import jobs, sent_to, takes_all, victoria

RULES = f"{SOURCE}/deploy/prometheus/rules.yaml"
NATIVE = "--enable-feature=native-histograms"
BY_1 = "1.0, also where 2.0 is configured"
RECEIVES = "--web.enable-remote-write-receiver"
TEXTS = {"2.53": ["OpenMetricsText0.0.1", "OpenMetricsText1.0.0", "PrometheusText0.0.4"],
         "3": ["OpenMetricsText0.0.1", "OpenMetricsText1.0.0", "PrometheusText0.0.4", "PrometheusText1.0.0"]}


def exactly(program):
    """The version that it says it has."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return re.search(r"version (\d+\.\d+\.\d+)", done.stdout + done.stderr)[1]


def say(version, **cells):
    rows.say("engines", f"Prometheus {exactly(release(version)['prometheus'])}", **cells)


def own(prometheus, name):
    """Sum of a metric of Prometheus itself, over its series."""
    return sum(value for series, value in samples(prometheus.get("/metrics")[1]).items() if series.split("{")[0] == name)


def clean(prometheus):
    """Nothing was dropped, refused or complained of."""
    for name in ("tsdb_out_of_order_samples_total", "tsdb_out_of_bound_samples_total", "target_scrapes_sample_duplicate_timestamp_total",
                 "target_scrapes_sample_out_of_order_total", "target_scrapes_sample_out_of_bounds_total", "rule_evaluation_failures_total",
                 "api_remote_write_invalid_labels_samples_total", "api_remote_write_without_metadata_appended_samples_total"):
        equal(own(prometheus, f"prometheus_{name}"), 0, name)
    equal(prometheus.complaints(), [])


# ---- promtool ----

def test_promtool_likes_the_page_and_the_rules():
    for version in TEXTS:
        promtool = release(version)["promtool"]

        def passes(*args, **how):
            done = subprocess.run([promtool, *args], capture_output=True, text=True, timeout=120, check=False, cwd=f"{SOURCE}/test/deploy", **how)
            equal(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout + done.stderr
        for scenario in ("node-8xh100", "sick", "empty"):
            with Agent(scenario=scenario) as agent:
                equal(passes("check", "metrics", input=agent.metrics()), "", scenario)
        passes("check", "rules", RULES)
        passes("test", "rules", "rules_test.yaml")
        say(version, promtool="check metrics, check rules, test rules")


# ---- scraped ----

def scrape_jobs(port, protocols):
    """One for each format, which alone it asks for."""
    return [{"job_name": protocol, "scrape_protocols": [protocol], "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for protocol in protocols]


def of_job(prometheus, job, names=r"gpusonde_(gpu_.*|node_.*|up|build_info)"):
    return {tuple(sorted((k, v) for k, v in labels.items() if k not in ("job", "instance"))) for labels, _ in prometheus.query(f'{{job="{job}",__name__=~"{names}"}}')}


def three_scrapes(prometheus, n):
    wait_for(lambda: len(prometheus.query("sum_over_time(up[1m]) >= 3")) == n, f"three scrapes of each of {n} targets",
             otherwise=lambda: [(t["labels"]["job"], t["health"], t["lastError"]) for t in prometheus.targets()])


def scrapes(version):
    """By each protocol: the same series, and those of the page; rules are evaluated meanwhile."""
    protocols = [*TEXTS[version], "PrometheusProto"]
    with Agent() as agent:
        others = list(jobs({"dcgm": agent.port()}))[1:]
        with Prometheus(scrape_jobs(agent.port(), protocols) + others, rule_files=[RULES], program=release(version)["prometheus"]) as prometheus:
            three_scrapes(prometheus, len(protocols) + len(others))
            for protocol in protocols[1:]:
                wait_for(lambda p=protocol: of_job(prometheus, p) == of_job(prometheus, protocols[0]), f"the same series by {protocol}",
                         otherwise=lambda p=protocol: sorted(of_job(prometheus, p) ^ of_job(prometheus, protocols[0]))[:5])
            assert len(of_job(prometheus, protocols[0])) > 500
            gpus = {g["uuid"]: g for g in agent.get("/api/v1/gpus").json()["gpus"]}
            for protocol in protocols:
                equal({labels["uuid"]: value for labels, value in prometheus.query(f'gpusonde_gpu_memory_total_bytes{{job="{protocol}"}}')},
                      {uuid: g["memory_total_bytes"] for uuid, g in gpus.items()}, protocol)
            assert own(prometheus, "prometheus_rule_evaluations_total") > 0
            clean(prometheus)
    say(version, scraped=", ".join(protocols) + ": the same series, no warning")


def test_2_53_scrapes_every_format():
    scrapes("2.53")


def test_3_scrapes_every_format():
    scrapes("3")


class Pages(Golden):
    """The golden pages, and the same in protobuf."""
    TYPES = {**Golden.TYPES, "/protobuf": metrics_protobuf.TYPE}

    def do_GET(self):
        if self.path != "/protobuf":
            super().do_GET()
            return
        body = subprocess.run([f"{BUILD}/test/golden/golden_render", "traced", "protobuf"], capture_output=True, check=True).stdout
        self.send_response(200)
        self.send_header("Content-Type", metrics_protobuf.TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def counts_of(page):
    """{(family, labels): ({upper bound: how many up to it}, sum)} of the histograms of a page of text."""
    found = {}
    for (name, labels), value in metrics_protobuf.text_samples(page).items():
        family, _, part = name.rpartition("_")
        if part == "bucket":
            bound = dict(labels)["le"]
            found.setdefault((family, frozenset(p for p in labels if p[0] != "le")), ({}, []))[0][float(bound)] = value
    for (name, labels), value in metrics_protobuf.text_samples(page).items():
        if name.endswith("_sum") and (name.removesuffix("_sum"), labels) in found:
            found[name.removesuffix("_sum"), labels][1].append(value)
    return found


def of_native(histogram):
    """{upper bound: how many up to it} of the buckets that are not empty."""
    found, total = {}, 0
    for _, _, bound, count in histogram.get("buckets", []):
        total += float(count)
        found[float(bound)] = total
    return found


def same_counts(native, classic):
    """Up to each bound that the page has, too, as many as it says; empty buckets are left out, and one may be finer than the page's."""
    buckets, (total,) = classic
    found = {bound: n for bound, n in of_native(native).items() if bound in buckets}
    equal({bound: buckets[bound] for bound in found}, found)
    assert found or not float(native["count"]), (native, classic)
    equal(float(native["count"]), buckets[float("inf")])
    assert abs(float(native["sum"]) - total) <= 1e-12 * abs(total), (native, total)


def test_3_makes_native_histograms_of_classic_ones():
    """convert_classic_histograms_to_nhcb: of each format the counts and bounds that the text has."""
    with open(f"{SOURCE}/test/golden/traced-prometheus.golden", encoding="utf-8") as f:
        wanted = counts_of(f.read())
    assert len(wanted) > 3
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        target = [{"targets": [f"127.0.0.1:{server.server_port}"]}]
        made = [{"job_name": path[1:], "metrics_path": path, "convert_classic_histograms_to_nhcb": True, "static_configs": target} for path in Pages.TYPES]
        with Prometheus(made, flags=[NATIVE], program=release("3")["prometheus"]) as prometheus:
            three_scrapes(prometheus, len(made))
            for path in Pages.TYPES:
                found = {}
                for labels, histogram in prometheus.histograms(f'{{job="{path[1:]}",__name__=~"{"|".join(sorted({name for name, _ in wanted}))}"}}'):
                    found[labels.pop("__name__"), frozenset(p for p in labels.items() if p[0] not in ("job", "instance"))] = histogram
                equal(set(found), set(wanted), path)
                for key, histogram in found.items():
                    same_counts(histogram, wanted[key])
                equal(prometheus.query(f'{{job="{path[1:]}",__name__=~".+_bucket"}}'), [], path)
            clean(prometheus)
        server.shutdown()
    say("3", native="convert_classic_histograms_to_nhcb: counts and bounds of the page")


# ---- remote write ----

def test_2_53_takes_remote_write():
    """1.0; and of 2.0, which it takes for an empty request, what follows from that: 1.0."""
    program = release("2.53")["prometheus"]
    for protocol in ("1.0", "2.0"):
        with Prometheus([], flags=[RECEIVES], program=program) as prometheus, sent_to(prometheus.port, "--remote-write-protocol", protocol) as agent:
            takes_all(prometheus.port, agent)
            clean(prometheus)
            equal(agent.stop()[1], 0)
            wait_for(lambda p=prometheus: p.query('count({job="gpusonde"})') == [], "no series of an agent that has ended")
    say("2.53", written=BY_1)


def labels_of_page(agent):
    """{labels, as Prometheus has them: value}, histograms as one series each of value None."""
    found, page = {}, agent.metrics()
    parts = {f"{name}_{part}" for name in re.findall(r"^# TYPE (\S+) histogram$", page, re.M) for part in ("bucket", "sum", "count")}
    for (name, labels), value in metrics_protobuf.text_samples(page).items():
        if name in parts:
            name, labels, value = name.rpartition("_")[0], (p for p in labels if p[0] != "le"), None
        found[frozenset([("__name__", name), ("job", "gpusonde"), ("instance", "here"), *(p for p in labels if p[1] != "")])] = value
    return found


def stored(prometheus):
    return {frozenset(r["metric"].items()): r for r in prometheus.result('{job="gpusonde"}')}


def test_3_takes_remote_write_2():
    """All series of the page and no other; types and help, since when they count, and stale markers."""
    features = "--enable-feature=native-histograms,metadata-wal-records,created-timestamp-zero-ingestion"
    with Prometheus([], flags=[RECEIVES, features], program=release("3")["prometheus"]) as prometheus, sent_to(prometheus.port, "--remote-write-protocol", "2.0") as agent:
        takes_all(prometheus.port, agent)
        wait_for(lambda: set(stored(prometheus)) == set(labels_of_page(agent)), "the series of the page",
                 otherwise=lambda: sorted(map(sorted, set(stored(prometheus)) ^ set(labels_of_page(agent))))[:5])
        assert own(prometheus, 'prometheus_remote_storage_samples_in_total') > 1000
        taken_without_loss(agent)
        clean(prometheus)
        equal(agent.stop()[1], 0)
        wait_for(lambda: prometheus.query('count({job="gpusonde"})') == [], "no series of an agent that has ended")


def figure(agent, name, **labels):
    return (values(agent.metrics(), f"gpusonde_push_{name}", destination="remote_write", **labels) or [None])[0]


def taken_without_loss(agent):
    wait_for(lambda: figure(agent, "up") == 1, "gpusonde_push_up 1")
    equal((figure(agent, "batches_total", result="refused"), figure(agent, "refused_samples_total")), (0, 0))
    equal(agent.get("/control/status", unix=True).json()["push"]["remote_write"], "")


def test_3_that_takes_only_1_gets_it():
    flags = [RECEIVES, "--web.remote-write-receiver.accepted-protobuf-messages=prometheus.WriteRequest"]
    with Prometheus([], flags=flags, program=release("3")["prometheus"]) as prometheus, sent_to(prometheus.port, "--remote-write-protocol", "2.0") as agent:
        takes_all(prometheus.port, agent)
        taken_without_loss(agent)
        # 3.5 refuses with 415, and takes the request all the same: a second status, which it complains of.
        told = [line for line in prometheus.complaints() if "superfluous response.WriteHeader" not in line]
        equal([("write.v2.Request protobuf message is not accepted" in line) for line in told], [True], told)


def varints(number):
    """On the wire of protobuf."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def member(number, body):
    return varints(number << 3 | 2) + varints(len(body)) + body


def write(prometheus, labels, value, ms):
    """One sample by remote write 1.0, in a literal of Snappy's."""
    series = b"".join(member(1, member(1, name.encode()) + member(2, text.encode())) for name, text in sorted(labels.items()))
    series += member(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varints(ms))
    body = member(1, series)
    body = varints(len(body)) + b"\xf4" + struct.pack("<H", len(body) - 1) + body
    connection = http.client.HTTPConnection("127.0.0.1", prometheus.port, timeout=60)
    connection.request("POST", "/api/v1/write", body, {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"})
    equal(connection.getresponse().status, 204)
    connection.close()


def test_3_that_takes_a_part_of_a_request():
    """A series is newer there than what is sent: its samples are counted as refused, the others are taken."""
    with Prometheus([], flags=[RECEIVES], program=release("3")["prometheus"]) as prometheus, sent_to(prometheus.port, "--remote-write-protocol", "2.0") as agent:
        limits = wait_for(lambda: prometheus.query("gpusonde_gpu_power_limit_watts"), "series of the agent")
        taken_without_loss(agent)
        late = int((time.time() + 500) * 1000) # it takes what is ten minutes ahead
        write(prometheus, limits[0][0], 1, late)

        def counted():
            """Both figures of one page."""
            page = agent.metrics()
            samples_, batches = (sum(values(page, f"gpusonde_push_{name}", destination="remote_write", **labels))
                                 for name, labels in (("refused_samples_total", {}), ("batches_total", {"result": "refused"})))
            return batches >= 2 and (samples_, batches)
        refused, batches = wait_for(counted, "samples that were refused", otherwise=agent.log)
        equal(refused, batches)
        told = wait_for(lambda: agent.get("/control/status", unix=True).json()["push"]["remote_write"], "its words")
        assert re.match(r"the server has refused 1 of \d+ samples: it answers with status 400: out of order sample", told), told
        energy = prometheus.query("gpusonde_gpu_energy_joules_total")
        wait_for(lambda: all(now > before for (_, now), (_, before) in zip(prometheus.query("gpusonde_gpu_energy_joules_total"), energy)), "newer samples of others")


def test_3_takes_native_histograms_and_when_counters_began():
    """Of calls that are traced: counts, sums and bounds as on the page; since when a counter counts is a sample of 0 at that time."""
    features = f"{NATIVE},created-timestamp-zero-ingestion"
    pushed = ("--remote-write-protocol", "2.0", "--remote-write-native-histograms", "yes", "--trace-enabled", "yes")
    with Prometheus([], flags=[RECEIVES, features], program=release("3")["prometheus"]) as prometheus, sent_to(prometheus.port, *pushed, scenario=SCENARIO) as agent:
        begun(agent)
        with Workload(agent, BUSY + "; pause", DRIVER) as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()

            def same_calls():
                """Of the page and of the server, once both have the same calls: other programs may call, too."""
                page = agent.metrics()
                wanted = {key: counts for key, counts in counts_of(page).items() if key[0] == "gpusonde_cuda_call_duration_seconds"}
                found = {("gpusonde_cuda_call_duration_seconds", frozenset({("api", labels["api"])})): histogram
                         for labels, histogram in prometheus.histograms("gpusonde_cuda_call_duration_seconds")}
                [calls] = values(page, "gpusonde_cuda_calls_total", api="cuLaunchKernel") or [0]
                counted = {key: buckets[float("inf")] for key, (buckets, _) in wanted.items()}
                return calls >= 220 and {key: float(h["count"]) for key, h in found.items()} == counted and (wanted, found)
            wanted, found = wait_for(same_calls, "the calls of the program")
            for key, histogram in found.items():
                same_counts(histogram, wanted[key])
            began = {key: value for family in metrics_protobuf.families(agent.get("/metrics", Accept=metrics_protobuf.ACCEPT).body) if family[0] == "gpusonde_process_cuda_launches_total"
                     for key, value in family[5].items()}
            equal(len(began), 1)
            [series] = prometheus.result("gpusonde_process_cuda_launches_total[1h]")
            (first_s, first), began_s = series["values"][0], began.popitem()[1]
            assert first == "0" and abs(first_s - began_s) <= 0.001, (series["values"], began_s)
            taken_without_loss(agent)
            clean(prometheus)
            workload.end()
        equal(agent.stop()[1], 0)
        wait_for(lambda: prometheus.result('{job="gpusonde"}') == [], "no series of an agent that has ended")
    say("3", written="2.0: series, since when they count, native histograms, stale markers, what it takes in part; 1.0 where it wants that")


def test_victoria_metrics_takes_remote_write():
    """2.0, which it takes for an empty request, becomes 1.0."""
    try:
        program = fetch.get("victoria-metrics", f"{BUILD}/real")["victoria-metrics"]
    except fetch.Unavailable as why:
        raise Skip(str(why)) from None
    with victoria(program) as port, sent_to(port, "--remote-write-protocol", "2.0") as agent:
        takes_all(port, agent)
        taken_without_loss(agent)
    rows.say("engines", "VictoriaMetrics 1.112", written=BY_1)


if __name__ == "__main__":
    run()
