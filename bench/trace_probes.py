# SPDX-License-Identifier: Apache-2.0
"""Cost of a probe to the traced thread (probe_cost.c): gpusonde's, empty ones, those of a tool on BCC, measured in turns on the same function.

A call of the table's gives an event and fails (there is no GPU), which is the dearest of its kind: its error is counted by code, too.
"""
import glob
import os
import statistics
import subprocess
import tempfile

from common import BUILD, Row, Skip
from tracing import SIM, need_tracing, output_of, ratio, real_driver, unwatched

ROUNDS = os.environ.get("BENCH_PROBE_ROUNDS", "7")
STEP_NS = 5000          # if a single step costs less, a probe at the first byte is not as expensive as elsewhere


def bcc():
    """The command of a tool on BCC; raises Skip if it cannot run."""
    if subprocess.run(["/usr/bin/python3", "-c", "import bcc"], capture_output=True, check=False).returncode:
        raise Skip("no python3-bpfcc: apt-get install python3-bpfcc")
    if not glob.glob("/usr/src/linux-headers-*") and not os.path.isdir(f"/lib/modules/{os.uname().release}/build"):
        raise Skip("no kernel headers: apt-get install linux-headers-" + ("arm64" if os.uname().machine == "aarch64" else "amd64"))
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bcc_pair.py")


def bounded(name, over, under, at_most):
    return Row(f"{name}: ratio", ratio(over, under), "{:.2f}", at_most=at_most)


def rows_of(label, subject, promised):
    """@promised: the promises apply to this site class and library."""
    ns = subject["ns"]
    name = f"{label}, {subject['class']} (`{subject['instruction'].split()[0]}`, entry + {subject['offset']})"
    rows = [Row(f"{name}: ns of a call {what}", statistics.median(ns[v]), "{:.1f}")
            for v, what in (("none", "without probe"), ("empty_entry", "with an empty entry probe"), ("our_entry", "with our entry probe"),
                            ("counting_entry", "with our entry probe, where a call gives no event"), ("empty_pair", "with an empty pair"),
                            ("our_pair", "with our pair"), ("counting_pair", "with our pair, where a call gives no event")) if ns[v]]
    if subject["dropped"] > subject["events"] / 100:
        raise RuntimeError(f"{subject['dropped']} events were dropped, which costs less than sending them")
    rows += [bounded(f"{name}: our entry probe to an empty one", ns["our_entry"], ns["empty_entry"], 1.25 if promised else None),
             bounded(f"{name}: our pair to an empty one", ns["our_pair"], ns["empty_pair"], 1.25 if promised else None)]
    if ns["first_byte_pair"]:
        rows += first_byte_rows(name, ns)
    if ns["other_pair"]:
        rows += [Row(f"{name}: ns of a call with BCC's pair, bpf_trace_printk, at the first byte", statistics.median(ns["other_pair"]), "{:.1f}"),
                 bounded(f"{name}: our pair to BCC's", ns["our_pair"], ns["other_pair"], 0.5)]
    return rows


def first_byte_rows(name, ns):
    step = statistics.median(ns["first_byte_entry"])
    applies = step > STEP_NS
    rows = [Row(f"{name}: ns of a call with an empty entry probe at the first byte, single-stepped", step, "{:.1f}"),
            Row(f"{name}: ns of a call with an empty pair at the first byte, single-stepped", statistics.median(ns["first_byte_pair"]), "{:.1f}"),
            bounded(f"{name}: our pair to that", ns["our_pair"], ns["first_byte_pair"], 0.1 if applies else None)]
    if not applies:
        rows.append(Row(f"{name}: our pair at most 1/10 of that",
                        skipped=f"a single step costs {step / 1000:.1f} us here, and the promise is of machines where it costs more than {STEP_NS // 1000}"))
    return rows


def subjects(folder, rows):
    """(label, library, symbol, promised)"""
    found = []
    try:
        real = unwatched(real_driver(), folder, "real.so")
        found += [("libcuda 550, cuCtxSynchronize", real, "cuCtxSynchronize", True),
                  ("libcuda 550, cuLaunchKernel", real, "cuLaunchKernel", False)]
    except Skip as why:
        rows.append(Row("cost of a probe in NVIDIA's libcuda 550", skipped=str(why)))
        thunk = unwatched(f"{SIM}/thunk/libcuda.so.1", folder, "thunk.so")
        found.append(("simulated libcuda with the driver's entries, cuCtxSynchronize", thunk, "cuCtxSynchronize", True))
    push = unwatched(f"{SIM}/libcuda.so.1", folder, "push.so")
    found.append(("simulated libcuda, cuCtxSynchronize", push, "cuCtxSynchronize", False))
    if os.uname().machine == "x86_64":
        found.append(("a function that begins with a nop of 5 bytes", "own", "nop5", False))
    return found


def run():
    rows = []
    try:
        need_tracing()
    except Skip as why:
        return [Row("cost of a probe", skipped=str(why))]
    with tempfile.TemporaryDirectory() as folder:
        chosen, command = subjects(folder, rows), [f"{BUILD}/bench/probe_cost", "--rounds", ROUNDS]
        try:
            command += ["--other", bcc()]
        except Skip as why:
            rows.append(Row("our pair to BCC's", skipped=str(why)))
        for label, library, symbol, promised in chosen:
            result = output_of(*(command if promised else command[:3]), library, symbol)
            rows += rows_of(label, result["subjects"][0], promised)
    return rows
