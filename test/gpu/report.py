# SPDX-License-Identifier: Apache-2.0
"""The page: one section for each board and driver, the newest run of it; what is not from a run stands above the first."""
import os
import re

import rows
from rows import Check

SIMULATED = "**SIMULATED: no GPU was there. This shows that the comparison runs, and nothing about a GPU.**"
TOOLS = [
    Check("tool_nvml", "compared with: NVML"),
    Check("tool_smi", "compared with: nvidia-smi"),
    Check("tool_dcgm", "compared with: DCGM (dcgmi dmon)"),
    Check("tool_cupti", "compared with: CUPTI"),
    Check("tool_nvcc", "compiled with: nvcc"),
    Check("tool_torch", "run: PyTorch"),
]


def tools(table, machine, references):
    """What there is to compare with."""
    with table.part("tool_nvml"):
        table.put("tool_nvml", True, "", machine.nvml("state")["by"])
    for key, tool in zip(("tool_smi", "tool_dcgm"), references.tools):
        with table.part(key):
            table.put(key, True, "", f"GPUs: {len(tool.read())}")
    for key, find in {"tool_cupti": lambda: machine.cupti()[1], "tool_nvcc": machine.nvcc, "tool_torch": machine.torch}.items():
        with table.part(key):
            table.put(key, True, "", find())


def section(facts, table, simulated, seconds):
    facts = dict(facts)
    lines = [f"## {facts['boards']}, driver {facts['driver']}", ""]
    if simulated:
        lines += [SIMULATED, ""]
    lines += ["; ".join(f"{k} {v}" for k, v in facts.items()) + f"; {seconds:.0f} s.", "", summary(table, simulated), "", table.markdown()]
    return "\n".join(lines)


def summary(table, simulated):
    promised = sum(row.check.promise is not None for row in table.rows.values())
    counts = [f"{table.count(verdict)} {verdict}" for verdict in (rows.KEPT, rows.NOT_KEPT, rows.NOT_JUDGED, rows.NOT_COMPARED, rows.SEEN)]
    return f"{'Simulated. ' if simulated else ''}{promised} promises of {len(table.rows)} rows: {', '.join(counts)}."


def head_and_sections(text):
    parts = re.split(r"^(?=## )", text, flags=re.M)
    return parts[0], {part.split("\n", 1)[0]: part for part in parts[1:]}


def write(text, page, output, simulated):
    """To @output, or into the page, beside the sections of other boards and drivers. Nothing simulated goes into the page."""
    if output:
        with open(output, "w", encoding="utf-8") as f:
            f.write(text)
        return
    if simulated:
        return
    with open(page, encoding="utf-8") as f:
        head, sections = head_and_sections(f.read())
    sections[text.split("\n", 1)[0]] = text
    with open(page + ".new", "w", encoding="utf-8") as f:
        f.write(head.rstrip("\n") + "\n\n" + "\n\n".join(s.strip("\n") for s in sections.values()) + "\n")
    os.rename(page + ".new", page)
