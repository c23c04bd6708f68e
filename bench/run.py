#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks named (default: all), prints their tables and writes them to docs/benchmarks.md, with those of other runs.

Every promise is a ratio or a bound measured in this run; a promise that is missed makes the exit status 1.
"""
import datetime
import importlib
import os
import platform
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
os.chdir(ROOT)
# For modules shared with tests (test/lib, sim/cuda/truth.py); tests get this path from meson.
sys.path += [f"{ROOT}/test", ROOT]

BENCHES = {
    "cost": "Cost of the agent (8 GPUs, 64 processes, every metric, 1 Hz)",
    "pages": "Pages against nginx serving the same bytes (16 connections, wrk)",
    "top": "The screen beside others of its kind (simulated node: 8 GPUs, 64 processes; 120x40)",
    "web_page": "The web page: twenty viewers, and a node with 64 GPUs and 5,000 processes",
    "attribution": "Whose GPU: 2,000 containers",
    "soak": "Memory over 10 million samples on an accelerated clock",
    "symbolize": "Naming kernels: 20 processes of one library of PyTorch's size",
    "inspecting": "Reading CUDA binaries (gpusonde inspect --json)",
    "dcgm": "Reading a page of a DCGM exporter: 200 MB, 400 rows",
    "kube_api": "Asking the Kubernetes API: this node's pods, and thousands of another",
    "fleet": "A fleet in VictoriaMetrics: a page as so many nodes",
    "trace_probes": "Tracing: what a probe costs the traced thread",
    "trace_stacks": "Tracing: the stack of functions at a call",
    "analysis": "Analysis: what is found of what is wrong, in programs made by chance",
    "recordings": "Recordings: eight simulated GPUs, 64 processes that come and go",
    "timelines": "Tracing: timelines (gpusonde trace --timeline)",
    "cupti": "True times by CUPTI: what the library in a program costs (simulated CUPTI)",
    "arm64_cost": "Tracing on arm64, in a virtual machine under qemu's software emulation",
    "trace_attach": "Tracing: 300 probes come and go",
    "trace_events": "Tracing: every call of a core that does nothing else",
    "trace_scale": "Tracing: nobody, and 1,000 processes that use CUDA",
}


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores, {model}, Linux {platform.release()}"


HEAD = """# Benchmarks

Written by `make bench`. Ratios and bounds are of one run, on the day and the machine that its table names; absolute times are that machine's own.
"""
PAGE = "docs/benchmarks.md"


def section(name):
    """Runs a benchmark; returns its table and whether it keeps its promises."""
    rows = list(importlib.import_module(name).run())
    lines = ["## " + BENCHES[name], "", f"{datetime.date.today()}, {machine()}", "", "| figure | measured | promise | |",
             "| --- | ---: | --- | --- |"]
    lines += [f"| {row.name} | {row.figure()} | {row.promise()} | {row.verdict()} |" for row in rows]
    return "\n".join(lines) + "\n", all(row.verdict() != "MISSED" for row in rows)


def written():
    """heading -> section, of earlier runs."""
    with open(PAGE, encoding="utf-8") as f:
        parts = f.read().split("\n## ")[1:]
    return {part.split("\n", 1)[0]: "## " + part.rstrip("\n") + "\n" for part in parts}


def main():
    names = sys.argv[1:] or list(BENCHES)
    unknown = [n for n in names if n not in BENCHES]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]}: there are {', '.join(BENCHES)}")
    sections, kept = written(), True
    for name in names:
        text, good = section(name)
        print(text, flush=True)
        sections[BENCHES[name]] = text
        kept = kept and good
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write("\n".join([HEAD, *(sections[title] for title in BENCHES.values() if title in sections)]))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
