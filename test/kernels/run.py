#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tracing engine in the kernels that people have, as TAP: each of cases.py in each kernel.

    run.py BUILD SOURCE [--arch arm64] [--quick] [kernel or word of a case's name...]

Several kernels run at a time, each in a virtual machine of two CPUs. Of another machine's kernels the programs come from its own build
folder (test/lib/arm64.py). --quick: what "make test" runs of them: not all kernels, and of arm64
not all cases.
"""
import concurrent.futures
import json
import os
import platform
import shutil
import sys
import traceback

from lib import arm64, counts, e2e, fetch, rows
from kernels import cases, cases_more, cgroup_cases, guest, capabilities_cases # pylint: disable=unused-import

KERNELS = {"amd64": ("5.10", "6.1", "6.12", "6.18", "7.2"), "arm64": ("6.1", "6.12")}
QUICK = {"amd64": ("5.10", "6.1", "7.2"), "arm64": ("6.12",)}
# It probes by trace events, as an older one of those does: of the quick cases these, which show that all loads, counts and is said there, too.
LIKE_AN_OLDER = {"6.1": ("site-classes", "doctor-says-how", "devices-allowed")}
# One more than there are processors: each emulates with one, and waits some of the time.
AT_A_TIME = os.cpu_count() + 1
CACHE = f"{e2e.BUILD}/real"
OWN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"


class Missing(Exception):
    """What these kernels cannot be run without; the text says why."""


def build_of(arch):
    """The folder with what was built for it."""
    if arch == OWN_ARCH:
        return e2e.BUILD
    folder = arm64.folder(e2e.BUILD)
    if not os.path.exists(f"{folder}/gpusonde"):
        raise Missing(f"no programs for {arch} in {folder}: make build-tests ARCH={arch}")
    return folder


def busybox(arch):
    if arch == OWN_ARCH:
        if not shutil.which("busybox"):
            raise Missing("busybox is not installed")
        return shutil.which("busybox")
    return fetch.get(f"busybox-{arch}", CACHE)["busybox"]


def real_plan(path):
    """Each function that is probed, before cuInit and after."""
    probes = e2e.command("probes", path, "--json")
    assert probes.returncode == 0, f"gpusonde probes {path}: {probes.stderr}"
    names = [n for n in counts.callable_names(json.loads(probes.stdout)["sites"]) if n != "cuInit"]
    return [(n, 1 + i % 3) for i, n in enumerate(names)] + [("cuInit", 7)] + [(n, 1) for n in names]


def add_drivers(image, arch, chosen):
    """NVIDIA's libraries that @chosen cases need, and what is called of them; why those cannot be tried that need others: name -> reason."""
    excused = {}
    for name in chosen:
        try:
            for thing in cases.CASES[name].needs:
                version, path = thing.partition("-")[2], fetch.get(f"{thing}-{arch}", CACHE)["libcuda.so.1"]
                image.add_program(path, f"/real/{version}/libcuda.so.1")
                image.files[f"/plan/real-{version}"] = counts.lines(real_plan(path)).encode()
                if "-stepped" in cases.CASES[name].script:
                    image.files[f"/plan/real-{version}-stepped"] = cases_more.stepped(path, "real")
        except fetch.Unavailable as why:
            excused[name] = str(why)
    return excused


def make_image(arch, chosen):
    """What lies in every guest, and why a case cannot be tried."""
    build, image = build_of(arch), guest.Image(arch, busybox(arch))
    if not shutil.which(image.machine.qemu[0]):
        raise Missing(f"{image.machine.qemu[0]} is not installed")
    for name in ("gpusonde", "gpusonde-reader", "gpusonde-web", "gpusonde-owners", "gpusonde-kubelet", "gpusonde-nvml"):
        image.add_program(f"{build}/{name}", f"/gs/{name}")
    image.add_program(f"{build}/test/real/driver_calls", "/gs/driver_calls")
    image.add_program(f"{build}/test/tools/device_program", "/gs/device_program")
    image.add(f"{build}/test/kernels/libcuda.so.1", "/sites/libcuda.so.1")
    image.add_program(f"{build}/sim/cuda/workload-late", "/sim/workload-late")
    for name in ("libcuda.so.1", "libcudart.so.13"):
        image.add_program(f"{build}/sim/cuda/{name}", f"/sim/{name}")
    for unit in sorted({unit for name in chosen for unit in cases.CASES[name].units}):
        image.add_program(f"{build}/test/unit/test_trace_{unit}", f"/gs/test_{unit}")
    image.add(f"{e2e.SOURCE}/sim/scenarios/node-8xh100.yaml", "/sim/node.yaml")
    image.files["/etc/passwd"] = PASSWD
    image.files["/plan/sites"] = counts.lines([(name, 100 + i) for i, name in enumerate(cases.SITES[arch])]).encode()
    cases_more.add_through(image, build)
    if arch == "arm64":
        image.files["/plan/sites-stepped"] = cases_more.stepped(f"{build}/test/kernels/libcuda.so.1", "sites")
    for name in ("broken_python", "broken_python_free", "native_omitted", "native_kept"):
        image.add_program(f"{build}/test/e2e/{name}", f"/gs/{name}")
    image.add(f"{build}/test/e2e/libnative_through.so", "/gs/libnative_through.so")
    if arch == OWN_ARCH:
        image.add_program(f"{build}/test/tools/filtered", "/gs/filtered")
        image.add_program(f"{build}/test/e2e/calls_named", "/gs/calls_named")
        image.add_program(f"{build}/test/e2e/calls_operators", "/gs/calls_operators")
        capabilities_cases.add_files(image)
    if arch != OWN_ARCH:
        cases_more.add_files(image, build)
    return image, add_drivers(image, arch, chosen)


def run_kernel(name, image, chosen):
    """(name -> Result, console); or text, why there is nothing."""
    try:
        kernel = fetch.get(f"kernel-{name}", CACHE)["vmlinuz"]
    except fetch.Unavailable as why:
        return str(why)
    try:
        return guest.boot(kernel, image, {case: cases.CASES[case].script for case in chosen})
    except Exception: # pylint: disable=broad-except
        return {}, traceback.format_exc() # the other guests' results are told


def judge(name, kernel, results):
    """(None or why it failed, cells of the kernel's row)"""
    if name not in results:
        return "the guest said nothing of it; its console is below", {}
    try:
        return None, cases.CASES[name].judge(results, kernel) or {}
    except AssertionError as why:
        return str(why), {}
    except Exception: # pylint: disable=broad-except
        return traceback.format_exc(), {}


class Tap:
    def __init__(self, planned):
        self.number, self.failed = 0, 0
        print(f"1..{planned}", flush=True)

    def line(self, title, skip=None, failure=None):
        self.number += 1
        self.failed += failure is not None
        print(f"{'not ok' if failure is not None else 'ok'} {self.number} - {title}" + (f" # SKIP {skip}" if skip else ""))
        self.comment(failure or "")

    @staticmethod
    def comment(text):
        for line in text.split("\n") if text else ():
            print("# " + line)
        sys.stdout.flush()


def report(tap, name, kernel, outcome, chosen, excused):
    if isinstance(outcome, str):
        for case in chosen:
            tap.line(f"{name} {case}", skip=outcome)
        return
    results, console = outcome
    row = {}
    before = tap.failed
    for case in chosen:
        if case in excused:
            tap.line(f"{name} {case}", skip=excused[case])
            continue
        failure, cells = judge(case, kernel, results)
        tap.line(f"{name} {case}", failure=failure)
        for column, text in cells.items():
            row[column] = f"{row[column]}; {text}" if column in row else text
    if row:
        rows.say("kernels", name, **row)
    tap.comment(f"{name}: " + ", ".join(f"{case} {result.seconds} s" for case, result in results.items() if result.seconds > 1))
    if tap.failed > before:
        tap.comment(f"the end of the console of {name}:\n{console}")


def choose(arch, quick, words):
    """(kernels as fetch.py calls them -> Kernel, names of cases)"""
    versions = [v for v in KERNELS[arch] if v in words] or (QUICK.get(arch, KERNELS[arch]) if quick else KERNELS[arch])
    words = [w for w in words if w not in KERNELS[arch]]
    kernels = {v if arch == "amd64" else f"{v}-{arch}": cases.Kernel(tuple(int(n) for n in v.split(".")), arch) for v in versions}
    # What a case looks at in others' results needs those, too.
    return kernels, [n for n, c in cases.CASES.items() if arch in c.arches and
                     (n == "site-classes" or ((arch in c.quick or not quick) and (not words or any(w in n for w in words))))]


def runs(name, kernel, version, quick):
    """Whether a chosen case is one of this kernel's."""
    case = cases.CASES[name]
    if not quick:
        return version >= case.since
    return max(case.since, case.quick_since) <= version < case.quick_until and name in LIKE_AN_OLDER.get(kernel, [name])


def main():
    words = sys.argv[3:]
    arch = words.pop(words.index("--arch") + 1) if "--arch" in words else "amd64"
    quick = "--quick" in words
    kernels, chosen = choose(arch, quick, [w for w in words if not w.startswith("--")])
    of = {name: [case for case in chosen if runs(case, name, kernel.version, quick)] for name, kernel in kernels.items()}
    tap = Tap(sum(map(len, of.values())))
    try:
        image, excused = make_image(arch, chosen)
    except (Missing, fetch.Unavailable) as why:
        for name, kernel in kernels.items():
            report(tap, name, kernel, str(why), of[name], {})
        return
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, outcome in zip(kernels, pool.map(lambda name: run_kernel(name, image, of[name]), kernels)):
            report(tap, name, kernels[name], outcome, of[name], excused)
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
