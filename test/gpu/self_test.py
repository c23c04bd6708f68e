#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test/gpu/run by itself: on the simulated node it runs to its end, finds what differs, and leaves the page of real machines alone."""
import os
import re
import subprocess
import tempfile

from lib import e2e

import machine
import report
import rows

RUN, STANDIN = f"{machine.HERE}/run", f"{machine.HERE}/standin_smi.py"
PAGE = f"{e2e.SOURCE}/docs/gpu-validation.md"
LIMIT_S, LOAD_S = 900, 5
ABSENT = ("no dcgmi here", "no nvcc here", "no c++ here", "CUPTI refuses the simulated driver", "PyTorch cannot compute on the simulated driver",
          "the simulated board's", "the copies took less than 2 seconds")


class Run:
    """A run on the simulated node: its exit status, what it wrote, {what: cells} of its rows."""

    def __init__(self, *words, **env):
        with open(PAGE, encoding="utf-8") as f:
            before = f.read()
        with tempfile.TemporaryDirectory(prefix="gpusonde-gpu-test-") as tmp:
            done = subprocess.run([RUN, "--build", e2e.BUILD, "--output", f"{tmp}/page.md", *words], env=e2e.environment(**env),
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.status, self.said, self.page = done.returncode, done.stdout + done.stderr, ""
            if os.path.exists(f"{tmp}/page.md"):
                with open(f"{tmp}/page.md", encoding="utf-8") as f:
                    self.page = f.read()
        with open(PAGE, encoding="utf-8") as f:
            e2e.equal(f.read(), before, "docs/gpu-validation.md")
        lines = [re.split(r"(?<!\\) \| ", line.strip("| ").rstrip()) for line in self.page.splitlines() if line.startswith("| ")]
        self.verdicts = {cells[0]: cells[-1] for cells in lines[2:]}
        self.not_kept = sorted(what for what, verdict in self.verdicts.items() if verdict.startswith(rows.NOT_KEPT))


def simulated(*words, **env):
    return Run("--simulated", "--nvidia-smi", STANDIN, *words, **env)


def idle(**env):
    return simulated("--only", "idle", "--seconds", "1", **env)


def can_trace():
    return os.geteuid() == 0 and os.path.exists("/sys/kernel/btf/vmlinux")


def test_a_whole_run():
    found = simulated("--seconds", str(LOAD_S))
    e2e.equal(found.not_kept, [], f"rows that are not kept: {found.page}")
    e2e.equal(found.status, 0, f"exit status: {found.said[-3000:]}")
    e2e.contains(found.page, report.SIMULATED)
    absent = ABSENT + (() if can_trace() else ("tracing needs root", "ends with"))
    for what, verdict in found.verdicts.items():
        assert not verdict.startswith(rows.NOT_COMPARED) or any(a in verdict for a in absent), f"{what}: {verdict}"
    kept = sum(v.startswith(rows.KEPT) for v in found.verdicts.values())
    assert kept >= (60 if can_trace() else 45), f"{kept} rows kept: {found.page}"


def test_figures_that_differ_are_found():
    found = idle(STANDIN_LIES="memory.total=81000;uuid=GPU-1;temperature.gpu=20")
    e2e.equal(found.not_kept, ["UUID, idle", "memory, total, idle", "temperature, idle"], found.page)
    e2e.equal(found.status, 1, "exit status")


def test_a_setting_that_changes_is_found():
    found = idle(STANDIN_LIES="persistence_mode=PID")
    e2e.equal(found.not_kept, ["settings of the GPUs before and after, by nvidia-smi -q"], found.page)


def test_an_older_nvidia_smi():
    found = idle(STANDIN_LACKS="clocks_event_reasons.active memory.reserved")
    e2e.equal((found.not_kept, found.status), ([], 0), found.page)
    reasons = next(line for line in found.page.splitlines() if line.startswith("| throttle reasons, idle"))
    e2e.contains(reasons, "(nvidia-smi)")
    reserved = next(line for line in found.page.splitlines() if line.startswith("| memory, reserved, idle"))
    assert "(nvidia-smi)" not in reserved, reserved


def test_nothing_is_left_out_silently():
    alone = Run("--simulated", "--only", "idle", "--seconds", "1")
    both = idle()
    e2e.equal(list(alone.verdicts), list(both.verdicts), "rows with and without nvidia-smi")
    e2e.contains(alone.verdicts["compared with: nvidia-smi"], "not compared: no nvidia-smi here")
    e2e.contains(alone.verdicts["power, under load"], "not compared: left out by --only")


def test_without_a_gpu():
    if machine.has_gpu():
        raise e2e.Skip("this machine has a GPU")
    found = Run()
    e2e.equal((found.status, found.page), (2, ""), "exit status and page")
    e2e.contains(found.said, "no NVIDIA GPU here; --simulated")


def test_what_fails_unforeseen_is_not_kept():
    table = rows.Table([rows.Check("a", "a", rows.LIE), rows.Check("b", "b", rows.LIE), rows.Check("c", "c")], False)
    with table.part("a", "c"):
        raise KeyError("power")
    with table.part("b"):
        raise rows.NotCompared("no device")
    e2e.equal([row.verdict for row in table.rows.values()], [rows.NOT_KEPT, rows.NOT_COMPARED, rows.NOT_KEPT], "verdicts")


def test_times_are_not_judged_without_a_gpu():
    for is_simulated, wanted in ((True, rows.NOT_JUDGED), (False, rows.NOT_KEPT)):
        table = rows.Table([rows.Check("a", "a", rows.HARM, timing=True)], is_simulated)
        table.put("a", False, "2 s")
        e2e.equal(table.rows["a"].verdict, wanted, f"simulated {is_simulated}")


def test_the_page_keeps_other_machines():
    table = rows.Table([rows.Check("a", "a", rows.LIE)], False)
    facts = [("date", "2026-01-01"), ("boards", "1 x H100"), ("driver", "550.1")]
    with tempfile.TemporaryDirectory() as tmp:
        page = f"{tmp}/page.md"
        with open(page, "w", encoding="utf-8") as f:
            f.write("# Title\n\nWords.\n\n## 1 x A100, driver 535.1\n\nkeep\n\n## 1 x H100, driver 550.1\n\nreplace\n")
        report.write(report.section(facts, table, False, 1), page, None, False)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        report.write(report.section(facts, table, True, 1), page, None, True) # simulated: nothing is written
        with open(page, encoding="utf-8") as f:
            e2e.equal(f.read(), text, "the page after a simulated run")
    assert text.startswith("# Title\n\nWords.\n\n## 1 x A100") and "keep" in text and "replace" not in text, text
    e2e.contains(text, "## 1 x H100, driver 550.1\n\ndate 2026-01-01")


if __name__ == "__main__":
    e2e.run()
