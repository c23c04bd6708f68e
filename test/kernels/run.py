#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tracing engine in the kernels that people have, as TAP: each of cases.py in each kernel.

    run.py BUILD SOURCE [kernel or word of a case's name...]

Two kernels run at a time, each in a virtual machine of two CPUs.
"""
import concurrent.futures
import json
import shutil
import sys
import traceback

sys.path[:0] = [f"{sys.argv[2]}/test/{folder}" for folder in ("e2e", "real", "kernels")]
# pylint: disable=wrong-import-position
import cases # noqa: E402
import counts # noqa: E402
import e2e # noqa: E402
import fetch # noqa: E402
import guest # noqa: E402

KERNELS = ("5.10", "6.1", "6.12", "6.18", "7.2")
AT_A_TIME = 2
CACHE = f"{e2e.BUILD}/real"
PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"


def real_plan(path):
    """Each function that is probed, before cuInit and after."""
    probes = e2e.command("probes", path, "--json")
    assert probes.returncode == 0, f"gpusonde probes {path}: {probes.stderr}"
    names = [n for n in counts.callable_names(json.loads(probes.stdout)["sites"]) if n != "cuInit"]
    return [(n, 1 + i % 3) for i, n in enumerate(names)] + [("cuInit", 7)] + [(n, 1) for n in names]


def make_image():
    """What lies in every guest, and why a case cannot be tried: name -> reason."""
    image, excused = guest.Image(), {}
    for name in ("gpusonde", "gpusonde-nvml"):
        image.add_program(f"{e2e.BUILD}/{name}", f"/gs/{name}")
    image.add_program(f"{e2e.BUILD}/test/real/driver_calls", "/gs/driver_calls")
    image.add(f"{e2e.BUILD}/test/kernels/libcuda.so.1", "/sites/libcuda.so.1")
    image.add_program(f"{e2e.BUILD}/sim/cuda/workload-late", "/sim/workload-late")
    image.add_program(f"{e2e.BUILD}/test/unit/test_trace_attach_names", "/gs/attach_names")
    for name in ("libcuda.so.1", "libcudart.so.13"):
        image.add_program(f"{e2e.BUILD}/sim/cuda/{name}", f"/sim/{name}")
    image.add(f"{e2e.SOURCE}/sim/scenarios/node-8xh100.yaml", "/sim/node.yaml")
    image.files["/etc/passwd"] = PASSWD
    image.files["/plan/sites"] = counts.lines([(name, 100 + i) for i, name in enumerate(cases.SITES)]).encode()
    try:
        path = fetch.get("driver-550-amd64", CACHE)["libcuda.so.1"]
        image.add_program(path, "/real/libcuda.so.1")
        image.files["/plan/real"] = counts.lines(real_plan(path)).encode()
    except fetch.Unavailable as why:
        excused["real-driver-counted"] = str(why)
    return image, excused


def run_kernel(version, image, chosen):
    """(name -> Result, console); or text, why there is nothing."""
    try:
        kernel = fetch.get(f"kernel-{version}", CACHE)["vmlinuz"]
    except fetch.Unavailable as why:
        return str(why)
    return guest.boot(kernel, image, {name: cases.CASES[name][0] for name in chosen})


def judge(name, version, results):
    """None, or why it failed."""
    if name not in results:
        return "the guest said nothing of it; its console is below"
    try:
        cases.CASES[name][1](results, tuple(int(n) for n in version.split(".")))
    except AssertionError as why:
        return str(why)
    except Exception: # pylint: disable=broad-except
        return traceback.format_exc()
    return None


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


def report(tap, version, outcome, chosen, excused):
    if isinstance(outcome, str):
        for name in chosen:
            tap.line(f"{version} {name}", skip=outcome)
        return
    results, console = outcome
    before = tap.failed
    for name in chosen:
        if name in excused:
            tap.line(f"{version} {name}", skip=excused[name])
        else:
            tap.line(f"{version} {name}", failure=judge(name, version, results))
    tap.comment(f"{version}: " + ", ".join(f"{name} {result.seconds} s" for name, result in results.items() if result.seconds > 1))
    if tap.failed > before:
        tap.comment(f"the end of the console of {version}:\n{console}")


def main():
    words = sys.argv[3:]
    kernels = [k for k in KERNELS if k in words] or KERNELS
    words = [w for w in words if w not in KERNELS]
    # What a case looks at in others' results needs those, too.
    chosen = [n for n in cases.CASES if not words or n == "site-classes" or any(w in n for w in words)]
    tap = Tap(len(kernels) * len(chosen))
    missing = [tool for tool in ("qemu-system-x86_64", "busybox") if not shutil.which(tool)]
    if missing:
        for version in kernels:
            report(tap, version, f"{missing[0]} is not installed", chosen, {})
        return
    image, excused = make_image()
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for version, outcome in zip(kernels, pool.map(lambda v: run_kernel(v, image, chosen), kernels)):
            report(tap, version, outcome, chosen, excused)
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
