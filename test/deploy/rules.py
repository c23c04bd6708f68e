#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/prometheus: each rule speaks of metrics that there are, is tested, and each alert has its runbook.

    rules.py BUILD SOURCE [WORD OF A NAME...]
"""
import json
import os
import re
import shutil
import subprocess
import tempfile

from lib.e2e import SOURCE, Skip, command, contains, equal, run

try:
    import yaml
except ImportError: # cases skip
    yaml = None

RULES = f"{SOURCE}/deploy/prometheus/rules.yaml"
RUNBOOKS = "docs/runbooks"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def groups(path=RULES):
    if not yaml:
        raise Skip("install python3-yaml")
    return yaml.safe_load(read(path))


def rules(kind):
    return {rule[kind]: rule for group in groups()["groups"] for rule in group["rules"] if kind in rule}


def promtool(*args):
    if not shutil.which("promtool"):
        raise Skip("no promtool on this machine")
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, cwd=f"{SOURCE}/test/deploy")
    equal(done.returncode, 0, done.stdout + done.stderr)


def test_prometheus_takes_them():
    promtool("check", "rules", RULES)


def test_each_fires_and_does_not():
    promtool("test", "rules", "rules_test.yaml")


def test_none_is_without_a_test():
    tests = groups(f"{SOURCE}/test/deploy/rules_test.yaml")["tests"]
    asked = {test["name"]: test["promql_expr_test"] for test in tests}
    equal(sorted(asked), sorted([*rules("alert"), *rules("record")]), "rules, and the tests named after them")
    for name in rules("alert"):
        quiet, firing = asked[name]
        equal(quiet["exp_samples"], [], name)
        equal([s["labels"] for s in firing["exp_samples"]], [f'{{alertname="{name}", instance="bad"}}'], name)


def faults(text, name="file"):
    """What gpusonde lint says of a file with this text: (metric, label, the nearest) that there are not; it has no other complaint."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        out = command("lint", "--json", f"{folder}/{name}")
    document = json.loads(out.stdout or "{}")
    said = [(row["metric"], row["label"], row["nearest"]) for row in document.get("faults", [])]
    equal((out.returncode, out.stderr, document.get("names")), (1 if said else 0, "", []), name)
    return said


def test_each_speaks_of_metrics_and_labels_that_there_are():
    text = read(RULES)
    equal(faults(text), [])
    for ours, theirs, fault in (("rate(gpusonde_gpu_busy_seconds_total", "rate(gpusonde_gpu_busy_second_total", ("gpusonde_gpu_busy_second_total", None, "gpusonde_gpu_busy_seconds_total")),
                                ('total{severity="critical"}', 'total{severty="critical"}', ("gpusonde_gpu_xid_reports_total", "severty", "severity")),
                                ("sum by (job, instance) (gpusonde_gpu_power_watts)", "sum by (job, pod) (gpusonde_gpu_power_watts)", ("gpusonde_gpu_power_watts", "pod", None))):
        contains(text, ours)
        equal(faults(text.replace(ours, theirs, 1)), [fault])
    for rule in rules("alert").values():
        for recorded in re.findall(r"\w+:\w+:\w+", rule["expr"]):
            contains(rules("record"), recorded)


def test_each_alert_has_a_severity_and_a_runbook():
    for name, rule in rules("alert").items():
        contains(("info", "warning", "critical"), rule["labels"]["severity"])
        equal(rule["annotations"]["runbook"], f"{RUNBOOKS}/{name}.md", name)
        text = read(f"{SOURCE}/{RUNBOOKS}/{name}.md")
        equal(re.findall(r"^#+ .*", text, re.M), [f"# {name}", "## What it means", "## Look", "## Do"], name)
    equal(sorted(os.listdir(f"{SOURCE}/{RUNBOOKS}")), sorted(f"{name}.md" for name in rules("alert")), "runbooks without an alert")


def test_runbooks_name_what_there_is():
    metrics, options, rows = read(f"{SOURCE}/docs/metrics.md"), read(f"{SOURCE}/docs/configuration.md"), read(f"{SOURCE}/src/cmd/commands.c")
    for name in os.listdir(f"{SOURCE}/{RUNBOOKS}"):
        text = read(f"{SOURCE}/{RUNBOOKS}/{name}")
        for metric in re.findall(r"`(gpusonde_\w+)`", text):
            contains(metrics, metric)
        for command in re.findall(r"`gpusonde (\w+)", text):
            contains(rows, f'.name = "{command}"')
        for option in re.findall(r"`((?:trace|sample|recording)\.\w+)`", text):
            contains(options, f"`{option}`")
        for alert in re.findall(r"\b(?:Gpu|Gpusonde)[A-Z]\w+", text):
            contains(rules("alert"), alert)
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert os.path.exists(f"{SOURCE}/{RUNBOOKS}/{link}"), f"{name}: {link}"


if __name__ == "__main__":
    run()
