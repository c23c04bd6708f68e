#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/grafana: the boards are as their table makes them, have what Grafana asks of a board, and a Prometheus answers every query.

    grafana.py BUILD SOURCE [WORD OF A NAME...]
"""
import contextlib
import http.server
import importlib.util
import json
import os
import re
import threading

from deploy.rules import faults
from lib import fetch
from lib.e2e import BUILD, SOURCE, Agent, Skip, command, contains, equal, run, wait_for
from lib.prometheus import Golden, Prometheus, release

FOLDER = f"{SOURCE}/deploy/grafana"
SCENARIOS = ("node-8xh100", "node-mig", "sick", "driver-535")
# What no page here can have, and why: of all queries that have the word, none may be answered.
EMPTY = {
    "gpusonde_operator_": "operators of PyTorch are only there with trace.operators and a program that uses it, which no page here has",
}
CHOSEN = {"__rate_interval": "1m", "datasource": "prometheus"} # of the others: all


def table():
    spec = importlib.util.spec_from_file_location("boards", f"{FOLDER}/boards.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def boards():
    for name in sorted(os.listdir(FOLDER)):
        if name.endswith(".json"):
            with open(f"{FOLDER}/{name}", encoding="ascii") as f:
                yield name[:-5], json.load(f)


def chosen(query):
    return re.sub(r"\$\{?(\w+)\}?", lambda name: CHOSEN.get(name[1], ".*"), query)


def queries():
    """(board, panel, query) of panels, and of variables: label_values() asks for the series of a selector."""
    for name, board in boards():
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield name, panel["title"], chosen(target["expr"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, narrowed, label = re.fullmatch(r"label_values\((\w+)(?:{(.*)})?, (\w+)\)", variable["query"]["query"]).groups()
                yield name, f"${variable['name']}", chosen(f'count by ({label}) ({metric}{{{narrowed + "," if narrowed else ""}{label}!=""}})')


def test_boards_are_as_their_table_makes_them():
    boards_py = table()
    equal(sorted(name for name, _ in boards()), sorted(boards_py.BOARDS), "files, and rows of the table (ninja boards)")
    for name in boards_py.BOARDS:
        with open(f"{FOLDER}/{name}.json", encoding="ascii") as f:
            equal(f.read() == boards_py.text(name), True, f"{name}.json is what the table makes (ninja boards)")


def overlap(a, b):
    return a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]


def test_each_has_what_grafana_asks_of_a_board():
    uids = {board["uid"] for _, board in boards()}
    equal(len(uids), 6, "uids")
    for name, board in boards():
        for member, kind in (("uid", str), ("title", str), ("schemaVersion", int), ("panels", list), ("templating", dict), ("time", dict), ("annotations", dict), ("links", list)):
            equal(type(board[member]), kind, f"{name} {member}")
        assert len(board["uid"]) <= 40 and "id" not in board, name
        equal(board["links"][0]["tags"], board["tags"], f"{name} leads to the others")
        equal(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), f"{name}: ids")
        for i, panel in enumerate(board["panels"]):
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24 and not any(overlap(place, other["gridPos"]) for other in board["panels"][:i]), (name, panel["title"])
            contains(("row", "stat", "table", "timeseries"), panel["type"])
            letters = [target["refId"] for target in panel.get("targets", [])]
            equal((len(set(letters)), bool(letters)), (len(letters), panel["type"] != "row"), f"{name} {panel['title']}")
        for uid in re.findall(r"/d/([\w-]+)", json.dumps(board)):
            contains(uids, uid)


def test_no_data_source_is_written_in_and_each_variable_is_one_of_the_board():
    for name, board in boards():
        names = [variable["name"] for variable in board["templating"]["list"]]
        equal((names[0], board["templating"]["list"][0]["type"]), ("datasource", "datasource"), name)
        text = json.dumps(board)
        for part in [*board["panels"], *(t for p in board["panels"] for t in p.get("targets", [])), *board["templating"]["list"]]:
            if "expr" in part or "targets" in part or part["type"] == "query":
                equal(part["datasource"], {"type": "prometheus", "uid": "${datasource}"}, name)
        for used in re.findall(r"\$\{?([a-z]\w*)", text):
            contains(names, used)


def test_each_speaks_of_metrics_and_labels_that_there_are():
    for name, board in boards():
        equal(faults(json.dumps(board)), [], name)


def test_a_board_with_a_fault_is_told():
    board = dict(boards())["node"]
    target = board["panels"][1]["targets"][0]
    for expr, fault in (("gpusonde_gpu_power_wats", ("gpusonde_gpu_power_wats", None, "gpusonde_gpu_power_watts")),
                        ('gpusonde_gpu_power_watts{pod=~"$pod"}', ("gpusonde_gpu_power_watts", "pod", None)),
                        ("sum by (uid) (rate(gpusonde_gpu_energy_joules_total[5m]))", ("gpusonde_gpu_energy_joules_total", "uid", "uuid"))):
        target["expr"] = expr
        equal(faults(json.dumps(board)), [fault])
    target["expr"] = "gpusonde_up"
    variable = next(v for v in board["templating"]["list"] if v["type"] == "query")
    variable["query"]["query"] = "label_values(gpusonde_gpu_info, uid)"
    equal(faults(json.dumps(board)), [("gpusonde_gpu_info", "uid", "uuid")])


def test_nvidia_s_own_board_breaks_and_is_told_how():
    """Each of its queries speaks of the exporter; what its names have become is known of all."""
    try:
        path, = fetch.get("dcgm-board", f"{BUILD}/real").values()
    except fetch.Unavailable as why:
        raise Skip(str(why)) from None
    out = command("lint", "--json", path)
    document = json.loads(out.stdout)
    with open(path, encoding="utf-8") as f:
        written = set(re.findall(r"DCGM_FI_\w+", f.read()))
    equal((out.returncode, out.stderr, document["faults"]), (1, "", []))
    equal((document["queries"], document["broken_at_4_9"], document["broken_at_gpusonde"]), (10, 10, 10))
    equal({row["name"] for row in document["names"]}, written)
    equal([row["name"] for row in document["names"] if not row["dcgm_4_9"] or not row["gpusonde"] or not row["factor_gpusonde"]], [], "names without a replacement")


@contextlib.contextmanager
def scraped(program):
    """A Prometheus that has the simulator's nodes, each some times, and the page of a node with traced programs."""
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(Agent(scenario=name)).port() for name in SCENARIOS}
        server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Golden))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        jobs = [{"job_name": name, "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for name, port in ports.items()]
        jobs.append({"job_name": "traced", "honor_labels": True, "metrics_path": "/openmetrics", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]})
        prometheus = stack.enter_context(Prometheus(jobs, program=program))
        wait_for(lambda: len(prometheus.query("sum_over_time(up[1m]) >= 3")) == len(jobs), "three scrapes of each",
                 otherwise=lambda: [(t["labels"]["job"], t["health"], t["lastError"]) for t in prometheus.targets()])
        yield prometheus


def answers(program=None):
    """query() fails where Prometheus calls it an error."""
    with scraped(program) as prometheus:
        wrong = []
        for name, panel, query in queries():
            excuse, n = next((why for word, why in EMPTY.items() if word in query), None), len(prometheus.query(query))
            if bool(n) == bool(excuse):
                wrong.append(f"{name}, {panel}: {n} series, {excuse or 'and there is no reason for none'}: {query}")
        equal(wrong, [])


def test_prometheus_answers_every_query():
    answers()


def test_newer_ones_answer_every_query():
    for version in ("2.53", "3"):
        answers(release(version)["prometheus"])


if __name__ == "__main__":
    run()
