# SPDX-License-Identifier: Apache-2.0
"""What the tests of NVIDIA's own libraries share: the libraries, their sites, and programs that call them, traced."""
import functools
import json
import os
import shutil
import subprocess
import tempfile

from lib import counts, e2e, fetch

CALLS = f"{e2e.BUILD}/test/real/driver_calls"
SIMULATED = f"{e2e.BUILD}/sim/cuda"
SCENARIO = f"{e2e.SOURCE}/sim/scenarios/node-8xh100.yaml"
TRACE_S = 300 # a whole traced run, on a busy machine


@functools.lru_cache(maxsize=None)
def thing(name):
    """{file: path} of something that is fetched."""
    try:
        return fetch.get(name, f"{e2e.BUILD}/real")
    except fetch.Unavailable as why:
        raise e2e.Skip(str(why)) from None


def driver(version, arch="amd64"):
    return thing(f"driver-{version}-{arch}")["libcuda.so.1"]


@functools.lru_cache(maxsize=None)
def sites(path):
    done = e2e.command("probes", path, "--json")
    e2e.equal(done.returncode, 0, f"exit status of gpusonde probes {path}, which says {done.stderr}")
    found = json.loads(done.stdout)["sites"]
    assert found, f"{path}: not one site"
    return found


def probed(path):
    return {s["symbol"] for s in sites(path) if s["chosen"]}


def cheap(path):
    """None refused, none single-stepped, each name once."""
    bad = [s for s in sites(path) if not s["chosen"] or s["class"] not in ("emulated", "optimised")]
    assert not bad, f"{len(bad)} of {len(sites(path))} entry points of {path} have no cheap site: {bad[:5]}"
    names = [s["symbol"] for s in sites(path)]
    e2e.equal(len(names), len(set(names)), "names, each once")
    return names


def need_tracing():
    if os.geteuid() != 0:
        raise e2e.Skip("tracing needs root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise e2e.Skip("this kernel has no BTF: /sys/kernel/btf/vmlinux is missing")


def traced(command, *flags, plan="", **env):
    """A command, traced, that writes its truth to the file that it is given as its last argument: (truth, document, events of --raw)."""
    need_tracing()
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run([e2e.GPUSONDE, "trace", "--json", *flags, "--", *command, f"{tmp}/truth"], env=e2e.environment(**env), text=True,
                              input=plan, capture_output=True, timeout=TRACE_S, check=False)
        e2e.equal(done.returncode, 0, f"exit status of the traced command, which says {done.stderr[-2000:]}")
        with open(f"{tmp}/truth", encoding="ascii") as f:
            truth = json.load(f)
    *events, document = [json.loads(line) for line in done.stdout.splitlines()]
    return truth, document, events


def need_plain_build():
    """For programs that are compiled here and load libraries of this build."""
    with open(CALLS, "rb") as f:
        content = f.read()
    if b"__asan_init" in content or b"__tsan_init" in content:
        raise e2e.Skip("libraries of a build with sanitizers want programs of that build")


def compiled(output, *args):
    """By this machine's C compiler, or a skip."""
    if not shutil.which("cc"):
        raise e2e.Skip("no C compiler here: apt-get install gcc")
    done = subprocess.run(["cc", "-D_GNU_SOURCE", "-o", output, *args], capture_output=True, text=True, errors="replace", timeout=TRACE_S,
                          check=False)
    e2e.equal(done.returncode, 0, f"exit status of cc {' '.join(args)}, which says {done.stderr[-2000:]}")
    return output


def number(n, what):
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def exact(wanted):
    """For the table of what was seen."""
    codes = {code for _, errors in wanted.values() for code in errors}
    results = f"results {', '.join(sorted(codes, key=int))}" if codes else "no errors"
    return f"exact: {number(sum(count for count, _ in wanted.values()), 'call')} of {number(len(wanted), 'function')}, {results}"


def plan_of(names):
    return counts.lines((name, 1 + i % 5) for i, name in enumerate(names))
