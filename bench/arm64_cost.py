# SPDX-License-Identifier: Apache-2.0
"""What a traced call costs on arm64, against empty probes at the same simulated site, in Debian's kernels under qemu.

An emulated machine is slow at instructions, and fast at what makes a trap expensive on hardware; on hardware the share of gpusonde's program is
smaller. Pointer signing costs the emulator a function call at each function's entry and exit, so both are measured, with and without it.
"""
import os
import statistics
import sys

from common import BUILD, Row

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PROCESSORS = {"pointers not signed": "max,pauth=off", "pointers signed": "max,pauth-impdef=on"}
# The (kernel, processor) that the promise is for.
PROMISED = ("6.12", "pointers not signed")


def rows_of(label, subject, promised, ratio):
    name = f"{label}, `{subject['instruction'].split()[0]}`"
    ns = {v: statistics.median(times) for v, times in subject["ns"].items() if times}
    rows = [Row(f"{name}: ns of a call {what}", ns[v], "{:.0f}") for v, what in (
        ("none", "without probe"), ("empty_pair", "with an empty pair"), ("our_pair", "with our pair"),
        ("counting_pair", "with our pair, where a call gives no event"))]
    return rows + [Row(f"{name}: our pair to an empty one: ratio", ratio(subject, "our_pair", "empty_pair"), "{:.2f}", at_most=1.25 if promised else None),
                   Row(f"{name}: the same, where a call gives no event: ratio", ratio(subject, "counting_pair", "empty_pair"), "{:.2f}")]


def run():
    # Modules of the tests, which take the build folder and the checkout as arguments.
    sys.argv[1:] = [os.path.abspath(BUILD), os.path.abspath(ROOT)]
    from kernels import run as kernels # pylint: disable=import-outside-toplevel
    rows = []
    try:
        image, excused = kernels.make_image("arm64", ["probes-cost"])
    except (kernels.Missing, kernels.fetch.Unavailable) as why:
        return [Row("what a call costs on arm64", skipped=str(why))]
    if excused:
        return [Row("what a call costs on arm64", skipped=excused["probes-cost"])]
    for version in kernels.KERNELS["arm64"]:
        for label, processor in PROCESSORS.items():
            image.machine = kernels.guest.MACHINES["arm64"]._replace(qemu=("qemu-system-aarch64", "-M", "virt", "-cpu", processor))
            outcome = kernels.run_kernel(f"{version}-arm64", image, ["probes-cost"])
            if isinstance(outcome, str) or "probes-cost" not in outcome[0]:
                rows.append(Row(f"{version}, {label}", skipped=outcome if isinstance(outcome, str) else outcome[1][-300:]))
                continue
            for what, subject in zip(("a call that fails", "a call that succeeds"), kernels.cases_more.cost_subjects(outcome[0]["probes-cost"])):
                rows += rows_of(f"{version}, {label}, {what}", subject, (version, label) == PROMISED, kernels.cases_more.cost_ratio)
    return rows
