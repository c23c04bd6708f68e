#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Probes of the user's own (--probe, trace.probes): in gpusonde trace, gpusonde probes and the agent, against what a program calls."""
import json
import shutil
import subprocess
import tempfile

from lib.e2e import BUILD, Agent, Skip, command, contains, environment, equal, run, values, wait_for
from lib.traced import SCENARIO, begun, trace_of, tracing

CALLER, LIBRARY = f"{BUILD}/test/e2e/calls_named", f"{BUILD}/test/e2e/libnamed.so.1"
ROUNDS = 10
# Of one round: nested calls, and recursive ones, count as those that are not.
COUNTS = {"named_outer": 1, "named_leaf": 3, "named_recursive": 5, "named_alloc": 1, "_Z9cpp_namedi": 1}


def settled(value):
    """It, once it is the same for two seconds."""
    newest = [value()]

    def same():
        newest.append(value())
        return len(newest) > 40 and len(set(newest[-40:])) == 1
    wait_for(same, "the figure to stay")
    return newest[-1]


def trace(*flags, rounds=ROUNDS, more=()):
    tracing()
    return command("trace", *flags, "--", CALLER, str(rounds), *more)


def calls(*probes):
    done = trace("--json", "-o", "-", *(f"--probe={p}" for p in probes))
    equal(done.returncode, 0, done.stderr)
    document = json.loads(done.stdout)
    equal(document["processes"][0]["incomplete"], [], "what is incomplete of CUDA")
    return {c["api"]: c for c in document["calls"]}, done.stderr


def test_every_call_is_counted():
    seen, _ = calls("libnamed.so:named_*,_Z9*")
    equal({n: c["count"] for n, c in seen.items()}, {n: c * ROUNDS for n, c in COUNTS.items()}, "calls at their entry")
    equal({c["timed"] for c in seen.values()}, {0}, "no return is probed unless it is asked for")
    equal({c["library"] for c in seen.values()}, {"libnamed.so"}, "library")


def test_returns_are_timed_nested_ones_too():
    seen, said = calls("libnamed.so.1:named_outer,named_leaf,named_recursive returns:status", f"{LIBRARY}:named_alloc returns:pointer")
    for name, call in seen.items():
        equal(call["count"], COUNTS[name] * ROUNDS, name)
        equal(call["timed"], call["count"], f"{name}: timed")
        assert call["p50_ns"] > 0, call
    equal(seen["named_leaf"]["errors"], {"-1": ROUNDS}, "failed")
    equal(seen["named_alloc"]["errors"], {"-1": 4}, "NULL is failure")
    equal(seen["named_outer"]["failed"], 0, "failed")
    equal(said, "", "nothing to say")
    assert seen["named_outer"]["seconds"] > 0


def test_cxx_returns_are_refused():
    seen, said = calls("libnamed.so:_Z*,named_alloc returns")
    equal((seen["_Z9cpp_namedi"]["count"], seen["_Z9cpp_namedi"]["timed"]), (ROUNDS, 0), "counted, not timed")
    equal(seen["named_alloc"]["timed"], ROUNDS, "of C")
    contains(said, "1 of 2 functions that your probes match are only counted: they are C++ or Rust, which may throw")


def test_arguments():
    seen, _ = calls("libnamed.so:named_leaf arg0:s32 arg1:string returns", "libnamed.so:named_alloc arg0")
    number, text = seen["named_leaf"]["arguments"]
    equal((number["position"], number["type"], number["count"], number["min"], number["max"]), (0, "s32", 3 * ROUNDS, -1, ROUNDS - 1), "number")
    equal(round(number["mean"], 6), round((2 * sum(range(ROUNDS)) - ROUNDS) / (3 * ROUNDS), 6), "mean")
    equal((text["values"], text["others"], text["unread"]), ({"hello": ROUNDS, "inner": ROUNDS, "text": ROUNDS}, 0, 0), "strings")
    equal(seen["named_alloc"]["arguments"][0]["max"], 20 * (ROUNDS - 1), "unsigned")


def test_deep_recursion():
    """The kernel probes at most 64 returns within each other: all calls are counted, and it is said how many are timed."""
    depth = 8000
    done = trace("--json", "-o", "-", "--probe=libnamed.so:named_recursive returns", rounds=1, more=("0", str(depth)))
    call = json.loads(done.stdout)["calls"][0]
    equal(call["count"], depth + 1, "calls")
    assert 0 < call["timed"] <= 64, call["timed"]


def test_raw():
    done = trace("--raw", "--json", "-o", "-", "--probe=libnamed.so:named_leaf arg1:string arg0:s32", "--probe=libnamed.so:named_alloc arg0:x64 returns:pointer",
                 rounds=1)
    equal(done.returncode, 0, done.stderr)
    events = [e for e in map(json.loads, done.stdout.splitlines()) if e.get("type") == "user"]
    equal([(e["api"], e["arguments"]) for e in events],
          [("named_leaf", {"arg1": e["arguments"]["arg1"], "arg0": 0}) for e in events[:2]] +
          [("named_leaf", {"arg1": events[2]["arguments"]["arg1"], "arg0": -1}), ("named_alloc", {"arg0": 0})], "events")
    assert events[3]["duration_ns"] > 0 and events[3]["result"] == 0, events[3]
    # At an entry without a return probe a page that is not in memory yet cannot be read, which is said.
    assert {e["arguments"]["arg1"] for e in events[:3]} <= {"hello", "inner", "text", None}, events


def test_table():
    done = trace("-o", "-", "--probe=libnamed.so:named_leaf arg0:s32 arg1:string returns:status")
    contains(done.stdout, "FUNCTION")
    contains(trace("-o", "-", "--probe=libnamed.so:_Z*").stdout, "\ncpp_named ")
    contains(done.stdout, '10 x "hello", 10 x "inner", 10 x "text"')


def test_the_library_of_a_table_keeps_its_probes():
    tracing()
    sim = f"{BUILD}/sim/cuda"
    done = subprocess.run([f"{BUILD}/gpusonde", "trace", "--json", "-o", "-", "--probe=libcuda.so:cu*", "--", f"{sim}/workload", "alloc 4096; free all"],
                          env=environment(LD_LIBRARY_PATH=sim), capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0, done.stderr)
    seen = {c["api"]: c for c in json.loads(done.stdout[done.stdout.index('{"processes"'):])["calls"]}
    assert seen["cudaMalloc"]["count"] == 1 and seen["cudaMalloc"]["library"] is None, seen
    assert not any(call["library"] and api in ("cuInit", "cuMemAlloc_v2") for api, call in seen.items()), seen.keys()


def test_probes_shows_the_sites():
    done = command("probes", LIBRARY, "--probe=libnamed.so:named_*,_Z*", "--json")
    equal(done.returncode, 0, done.stderr)
    equal({s["symbol"] for s in json.loads(done.stdout)["sites"]}, set(COUNTS), "sites")
    assert all(s["chosen"] and s["reason"] for s in json.loads(done.stdout)["sites"])


def test_what_is_wrong_is_said():
    for probe, why in {
            "libfoo.so": "write LIBRARY:PATTERN",
            "dir/libfoo.so:foo": "a file name or an absolute path",
            "libfoo.so:foo arg": "after the functions come",
            "libfoo.so:foo arg99": "write arg0 to arg15",
            "libfoo.so:foo arg0:float": "the type is u64",
            "libfoo.so:foo arg0 arg0": "arg0 is there twice",
            "libfoo.so:foo arg0:string arg1:string": "at most one string",
            "libfoo.so:ns::foo": "C++ functions are named as the file's symbols are",
            "libfoo.so:foo throws": "after the functions come",
    }.items():
        done = command("trace", f"--probe={probe}", "--", "true")
        equal(done.returncode, 2, probe)
        contains(done.stderr, why)


def test_a_misspelt_probe_is_said():
    for probe in ("libnamed.so:nosuch*", "libnosuch.so:named_leaf"):
        done = trace(f"--probe={probe}", "--probe=libnamed.so:named_leaf")
        equal(done.returncode, 0, done.stderr)
        contains(done.stderr, f"no function is traced for --probe {probe}: no file that was mapped")
        equal(done.stderr.count("no function is traced"), 1, "how often")


class Many:
    """A program that calls each of FUNCTIONS functions of a library once."""
    FUNCTIONS = 3000

    def __init__(self, tmp):
        compiler = shutil.which("cc")
        if not compiler:
            raise Skip("no cc: a library of thousands of functions cannot be made")
        names = [f"many_functions_{i}" for i in range(self.FUNCTIONS)]
        library, self.program = f"{tmp}/libmany.so", f"{tmp}/many"
        for path, text in {f"{tmp}/many.c": "".join(f"int {n}(int x) {{ return x + 1; }}\n" for n in names),
                           f"{tmp}/main.c": "".join(f"int {n}(int x);\n" for n in names) + "#include <unistd.h>\nint main(int argc, char **argv)\n{\n" +
                                            "".join(f"{n}(argc);\n" for n in names) + "sleep(argc > 1 ? 60 : 0);\nreturn 0 * (argv != 0);\n}\n"}.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        flags = [compiler, "-O0", "-fPIC", "-fcf-protection=none", "-fno-stack-protector"]
        subprocess.run([*flags, "-shared", "-o", library, f"{tmp}/many.c"], check=True)
        subprocess.run([*flags, "-o", self.program, f"{tmp}/main.c", library], check=True)


def test_thousands_of_functions():
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        many = Many(tmp)
        done = command("trace", "--json", "-o", "-", "--probe=libmany.so:many_*", "--", many.program)
        equal(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        equal((len(document["calls"]), {c["count"] for c in document["calls"]}), (Many.FUNCTIONS, {1}), "calls")
        equal((document["probes"]["files"], document["probes"]["attached"]), (1, Many.FUNCTIONS), "probes")


def test_the_agent_bounds_their_series():
    """A list of sites in several parts, since it is longer than a message; series of the first, and of the others together."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp, \
            Agent("--trace-enabled", "yes", "--probe", "libmany.so:many_*", scenario=SCENARIO) as agent:
        many = Many(tmp)
        with subprocess.Popen([many.program, "stay"]) as first:
            try:
                def called():
                    subprocess.run([many.program], check=True)
                    trace = trace_of(agent) # none before the first view
                    return trace and len([c for c in trace["calls"] if c.get("library")]) == Many.FUNCTIONS
                wait_for(called, "all functions to be probed and called")
                page = agent.metrics()
                equal(len(values(page, "gpusonde_probe_calls_total")), 768 + 1, "series")
                assert values(page, "gpusonde_probe_calls_total", library="other", function="other")[0] >= Many.FUNCTIONS - 768
            finally:
                first.kill()


def test_the_agent_counts_them():
    tracing()
    with Agent("--trace-enabled", "yes", "--probe", "libnamed.so:named_leaf,named_outer arg0:s32 arg1:string returns:status", scenario=SCENARIO) as agent:
        def seen():
            return {c["api"]: c for c in trace_of(agent)["calls"] if c.get("library")}

        begun(agent)
        # One that stays, so that the file is probed when the calls come.
        with subprocess.Popen([CALLER, "0", "60"]) as first:
            try:
                wait_for(lambda: subprocess.run([CALLER, str(ROUNDS)], check=True) and seen(), "the library to be probed")
                before = settled(lambda: seen()["named_leaf"]["count"])
                subprocess.run([CALLER, str(ROUNDS)], check=True)
                wait_for(lambda: seen()["named_leaf"]["count"] == before + 3 * ROUNDS, "each call")
                equal(seen()["named_leaf"]["arguments"][0]["min"], -1, "an argument")
                page, function = agent.metrics(), {"library": "libnamed.so", "function": "named_leaf"}
                equal(values(page, "gpusonde_probe_calls_total", **function), [before + 3 * ROUNDS], "calls")
                equal(values(page, "gpusonde_probe_call_duration_seconds_count", **function), [before + 3 * ROUNDS], "durations")
                equal(values(page, "gpusonde_probe_call_errors_total", library="libnamed.so", function="named_outer"), [0], "errors")
                assert values(page, "gpusonde_probe_argument_sum", argument="0", **function), "sums"
                assert 'api="named_' not in page, "they are no calls of CUDA"
            finally:
                first.kill()


run()
