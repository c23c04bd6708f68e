# SPDX-License-Identifier: Apache-2.0
"""What is done in each kernel, and what must come of it.

A case is a shell script for the guest (guest.py runs it, its working folder is $OUT) and a function here that looks at what it left. In
the guest lie /gs/gpusonde, /gs/driver_calls (test/real), /sites/libcuda.so.1 (sites_*.S), /real/VERSION/libcuda.so.1 (NVIDIA's, where it could be
had), plans for driver_calls as /plan/*, and the simulated CUDA with its workload in /sim.
"""
import json
import os
import re
import signal
import typing

from e2e import broken_python
from lib import counts

# Kernels from here on have uprobe_multi; before, it is one trace event of many probes.
MULTI_SINCE = (6, 6)
# And a return probe that is a system call.
RETURN_CALL_SINCE = (6, 11)
NEVER = (99,)
OVERFLOW_LAUNCHES = 5000    # a ring of 64 KiB holds some 600


class Kernel(typing.NamedTuple):
    version: tuple
    arch: str           # as Debian calls it


class Case(typing.NamedTuple):
    script: str
    judge: typing.Callable      # of (results, kernel); may give cells of the kernel's row in docs/compatibility.md: column -> text
    arches: tuple = ("amd64", "arm64")
    quick: tuple = ("amd64",)   # machines on which it is of those that "make test" runs
    needs: tuple = ()           # things of test/lib/fetch.py, of the guest's architecture
    units: tuple = ()           # of test/unit/trace, as /gs/test_NAME
    since: tuple = ()           # in older kernels it takes minutes, or cannot be
    quick_since: tuple = ()     # in older ones it takes long, and is left to "make test-matrix"
    quick_until: tuple = NEVER  # and from this one on


CASES = {} # name: Case


def case(script, **more):
    def add(function):
        CASES[function.__name__.replace("_", "-")] = Case(script, function, **more)
        return function
    return add


def ended_well(result):
    assert result.status == 0, f"the script failed: {result.says()}"
    return result


def document(result, name="stdout"):
    """What gpusonde --json said; where there are events before it, one a line, what it said last."""
    said = result.text(name).rstrip()
    try:
        return json.loads(said.split("\n")[-1] if said.startswith('{"') else said)
    except ValueError as why:
        raise AssertionError(f"{name} is not JSON: {why}; {result.says()}") from None


def truth(result, name="truth"):
    return json.loads(result.text(name))


# What sites_*.S hold: symbol -> (result, offset of the site, class by version). "S" single-stepped, so refused; "X" refused in any case; "C" a call,
# which the kernel emulates, but behind which no return probe may sit; "?" may be taken or not, but not be single-stepped. As measured on these
# kernels.
BEFORE_NOPS, NOP5_OPTIMISED, NEWEST = (5, 10), (6, 18), (7, 2)
SITES = {
    "amd64": {
        "cuInit": (1, 0, "EEE"),
        "cuMemAlloc_v2": (2, 0, "EEE"),
        "cuMemFree_v2": (3, 0, "EEE"),
        "cuLaunchKernel": (0, 10, "EEE"),
        "cuCtxSynchronize": (5, 0, "SOE"),
        "cuStreamSynchronize": (6, 0, "XXO"),
        "cuMemcpyHtoD_v2": (7, 0, "SSS"),
        "cuMemcpyDtoH_v2": (8, 0, "SSS"),
        "cuStreamCreate": (9, 0, "SSS"),
        "cuEventRecord": (10, 0, "SSS"),
        "cuEventSynchronize": (11, 7, "XX?"),
    },
    "arm64": {
        "cuInit": (1, 0, "EEE"),
        "cuMemAlloc_v2": (2, 0, "EEE"),
        "cuMemFree_v2": (3, 0, "EEE"),
        "cuLaunchKernel": (0, 0, "EEE"),
        "cuMemcpyDtoH_v2": (8, 4, "EEE"),
        "cuStreamSynchronize": (6, 8, "CCC"),
        "cuStreamDestroy_v2": (12, 4, "EEE"),
        "cuEventSynchronize": (11, 0, "EEE"),
        "cuCtxSynchronize": (5, 0, "SSS"),
        "cuMemcpyHtoD_v2": (7, 0, "SSS"),
        "cuStreamCreate": (9, 0, "SSS"),
        "cuEventRecord": (10, 0, "SSS"),
        "cuCtxSetCurrent": (13, 0, "SSS"),
    },
}
CLASSES = {"E": "emulated", "C": "emulated", "O": "optimised"}


def column(version):
    return sum(version >= since for since in (NOP5_OPTIMISED, NEWEST))


def of_class(kernel, letter):
    """Symbols of sites_*.S."""
    return {symbol for symbol, (_, _, classes) in SITES[kernel.arch].items() if classes[column(kernel.version)] == letter}


@case("/gs/gpusonde probes /sites/libcuda.so.1 --json")
def site_classes(results, kernel):
    listed = {s["symbol"]: s for s in document(ended_well(results["site-classes"]))["sites"]}
    sites = SITES[kernel.arch]
    assert sorted(listed) == sorted(sites), f"other names than {sorted(sites)}: {sorted(listed)}"
    for symbol, (_, offset, classes) in sites.items():
        site, wanted = listed[symbol], classes[column(kernel.version)]
        if wanted in CLASSES:
            assert site["chosen"] and site["class"] == CLASSES[wanted] and site["offset"] == offset, \
                f"wanted {CLASSES[wanted]} at +{offset}: {site}"
        elif wanted != "?":
            assert not site["chosen"], f"should be refused: {site}"
        assert site["chosen"] or site["reason"], f"refused without a reason: {site}"
        assert not site["chosen"] or site["class"] != "single_step", f"single-stepped: {site}"
    return {"sites": ", ".join(sorted({s["instruction"].split()[0] for s in listed.values() if s["chosen"]}))}


def check_sites(result, results, kernel, truth_name="truth", traced_name="stdout"):
    """That those of the specimens that are probed, and no others, are counted as the program says."""
    chosen = {s["symbol"] for s in document(results["site-classes"])["sites"] if s["chosen"]}
    seen = counts.check(truth(result, truth_name), document(result, traced_name), unseen=set(SITES[kernel.arch]) - chosen,
                        no_result=of_class(kernel, "C"))
    assert len(seen) == len(chosen), f"only {sorted(seen)} were called"


@case("/gs/gpusonde trace --json -- /gs/driver_calls /sites/libcuda.so.1 truth </plan/sites")
def specimens_counted(results, kernel):
    """Functions work as they do untraced, and those that are probed are counted."""
    result, sites = ended_well(results["specimens-counted"]), SITES[kernel.arch]
    for api, (_, errors) in counts.truth_of(truth(result)).items():
        wanted = [str(sites[api][0])] if sites[api][0] else []
        assert list(errors) == wanted, f"{api} gives other results when it is traced: {errors}"
    check_sites(result, results, kernel)


# Kernels from 6.11 to 6.13 that were not updated end filtered programs at their first probed return, on x86-64; none of these may be one.
@case("""
for action in kill errno; do
	/gs/filtered $action
	echo $? >alone_$action
	/gs/gpusonde trace --json -- /gs/filtered $action /gs/driver_calls /sites/libcuda.so.1 truth_$action </plan/sites >traced_$action 2>said_$action || exit
done
""", arches=("amd64",), quick_since=RETURN_CALL_SINCE)
def filtered_programs_survive(results, kernel):
    """Under seccomp filters that kill, or return an error, at calls that they do not know: every call returns, and is counted with its result."""
    result = ended_well(results["filtered-programs-survive"])
    for action, alone in {"kill": 128 + signal.SIGSYS, "errno": 0}.items():
        assert int(result.text(f"alone_{action}")) == alone, f"the filter {action} does not filter: {result.text(f'alone_{action}')}"
        check_sites(result, results, kernel, f"truth_{action}", f"traced_{action}")
        processes = document(result, f"traced_{action}")["processes"]
        assert processes and not any("no_return_probes" in p["incomplete"] for p in processes), f"no return probes: {result.text(f'said_{action}')}"


# Without a device cuInit gives 100; but 470's for arm64 does not know, in a guest and under qemu's user emulation alike.
DRIVERS = {"amd64": {"550": 100}, "arm64": {"470": 999, "535": 100, "550": 100}}


def add_driver(version):
    name = f"real-driver-{version}-counted"

    def judge(results, kernel):
        result = ended_well(results[name])
        wanted = counts.check(truth(result), document(result))
        assert wanted["cuInit"] == [7, {str(DRIVERS[kernel.arch][version]): 7}], f"cuInit's results: {wanted['cuInit']}"
        codes = {code for _, errors in wanted.values() for code in errors}
        return {"real": f"{version} exact: {sum(n for n, _ in wanted.values())} calls of {len(wanted)} functions, {len(codes)} codes"}

    arches = tuple(arch for arch, versions in DRIVERS.items() if version in versions)
    CASES[name] = Case(f"/gs/gpusonde trace --json -- /gs/driver_calls /real/{version}/libcuda.so.1 truth </plan/real-{version}", judge, arches,
                       arches if version == "550" else (), (f"driver-{version}",), quick_since=MULTI_SINCE)


for driver in sorted({version for versions in DRIVERS.values() for version in versions}):
    add_driver(driver)


# Eight threads, success and failure, graphs, nested calls: the runtime's are the program's own, the driver's are made by them.
# On arm64 the runtime's calls are left to the driver: cases_more.py.
@case("""
export LD_LIBRARY_PATH=/sim GPUSONDE_SIM_SCENARIO=/sim/node.yaml
/gs/gpusonde trace --json -- /bin/sh -c 'exec /sim/workload-late init "bad alloc" "threads 8" "stream create" \
	"repeat 50" "alloc 1000000" "copy h2d 65536" "launch 4 256" "copy d2h 4096" "event record" "sync stream" \
	"memset 4096" free end "graph 3 5" "bad free" end sync >truth'
rc=$?
for library in libcuda.so.1 libcudart.so.13; do
	/gs/gpusonde probes /sim/$library --json >$library || exit
done
exit $rc
""", arches=("amd64",))
def simulated_runtime_counted(results, _kernel):
    result = ended_well(results["simulated-runtime-counted"])
    probed = {s["symbol"] for name in ("libcuda.so.1", "libcudart.so.13") for s in document(result, name)["sites"] if s["chosen"]}
    called = counts.truth_of(truth(result))
    wanted = counts.check(truth(result), document(result), unseen=set(called) - probed)
    assert {"cudaMalloc", "cudaFree", "cudaMemcpy", "cudaLaunchKernel", "cudaGraphLaunch"} <= set(wanted), f"not probed: {wanted}"
    assert wanted["cudaLaunchKernel"][0] == 8 * 50 + 8 * 3 and "2" in wanted["cudaMalloc"][1], f"another workload than ours: {wanted}"
    return {"simulated": f"exact: {sum(n for n, _ in wanted.values())} calls"}


# Of the unit test, whose own functions are probed in this kernel's best way: names of all lengths, and within other calls. All of it takes minutes
# where probes are trace events.
@case("CMOCKA_MESSAGE_OUTPUT=TAP /gs/test_attach_names 'names_*_multi'", units=("attach_names",), quick_since=MULTI_SINCE)
def names_told(results, _kernel):
    result = ended_well(results["names-told"])
    said = result.text("stdout") + result.text("stderr")
    assert "not ok" not in said and "SKIP" not in said and said.count("\nok ") == 3, f"names of handles: {result.says()}"


# Of the unit test, which this machine's own kernel runs each day.
@case("CMOCKA_MESSAGE_OUTPUT=TAP /gs/test_attach_shares '*_multi'", units=("attach_shares",), quick=())
def users_have_shares(results, _kernel):
    result = ended_well(results["users-have-shares"])
    said = result.text("stdout") + result.text("stderr")
    assert "not ok" not in said and "SKIP" not in said and said.count("\nok ") == 6, f"shares of users: {result.says()}"


NAMED_ROUNDS = 10


# Functions that the user names: nested ones, recursive ones, strings. On arm64 none of them begins with what the kernel emulates.
@case(f"""
/gs/gpusonde trace --json -o json --probe 'libnamed.so:named_outer,named_leaf arg0:s32 arg1:string returns:status' \\
	--probe 'libnamed.so:named_recursive returns' --probe 'libnamed.so:named_alloc,_Z*' -- /gs/calls_named {NAMED_ROUNDS}
""", arches=("amd64",))
def user_probes_counted(results, _kernel):
    calls = {c["api"]: c for c in document(ended_well(results["user-probes-counted"]), "json")["calls"]}
    counted = {name: (call["count"], call["timed"], call["errors"]) for name, call in calls.items()}
    wanted = {"named_outer": (NAMED_ROUNDS, NAMED_ROUNDS, {}), "named_leaf": (3 * NAMED_ROUNDS, 3 * NAMED_ROUNDS, {"-1": NAMED_ROUNDS}),
              "named_recursive": (5 * NAMED_ROUNDS, 5 * NAMED_ROUNDS, {}), "named_alloc": (NAMED_ROUNDS, 0, None),
              "_Z9cpp_namedi": (NAMED_ROUNDS, 0, None)}
    assert counted == wanted, f"calls: {counted}"
    number, text = calls["named_leaf"]["arguments"]
    assert (number["min"], number["max"]) == (-1, NAMED_ROUNDS - 1), number
    assert text["values"] == {word: NAMED_ROUNDS for word in ("hello", "inner", "text")}, text


OPERATOR_ROUNDS = 50


# Operators of PyTorch, nested ones and ones that are left as by an exception (test/e2e/operators.py), and what they launch.
@case("""
export GPUSONDE_SIM_SCENARIO=/sim/node.yaml
/gs/gpusonde trace --torch --json -o json -- /gs/calls_operators
""", arches=("amd64",))
def operators_counted(results, _kernel):
    operators = {o["name"]: o for o in document(ended_well(results["operators-counted"]), "json")["operators"]}
    counted = {name: (o["calls_total"], o["outermost_calls_total"], o["launches_total"]) for name, o in operators.items() if name}
    wanted = {"add.Tensor": (3, 1, 6), "linear": (2, 1, 2), "mm": (1, 1, 1), "backward": (1, 1, 0)}
    assert counted == {name: tuple(OPERATOR_ROUNDS * n for n in figures) for name, figures in wanted.items()}, f"operators: {counted}"
    assert operators[None]["launches_total"] == OPERATOR_ROUNDS, operators[None]


# Stacks of a program whose interpreter's memory is broken in all kinds of ways (test/e2e/broken_python.py).
@case("""
export LD_LIBRARY_PATH=/sim GPUSONDE_SIM_SCENARIO=/sim/node.yaml
for program in broken_python broken_python_free; do
	/gs/gpusonde trace --stacks=$program.folded --stacks-of=python --weight=bytes_held -- /gs/$program >$program.said || exit 1
done
""", quick=(), since=MULTI_SINCE)
def stacks_of_broken_memory(results, _kernel):
    result = ended_well(results["stacks-of-broken-memory"])
    for program, wanted in (("broken_python", broken_python.WANTED), ("broken_python_free", broken_python.WANTED | broken_python.COPIES)):
        broken_python.compare(broken_python.stacks_of(result.text(f"{program}.folded").splitlines()), broken_python.said_of(result.text(f"{program}.said")), wanted)


NATIVE_FIRST, NATIVE_LAST = 1001, 1010 # bytes; what comes later is called through a library that is loaded then


def file_of(frame):
    """Of "name (file)" or "file+0x12"; None of an address in no file, such as one in the vDSO, where handlers of signals return to on arm64."""
    found = re.fullmatch(r".* \((.*)\)|(.*)\+0x[0-9a-f]+", frame)
    return found and (found[1] or found[2])


def base_name(path):
    name = os.path.basename(path)
    return None if name.startswith("linux-vdso.so") else name


def check_native(told, truth):
    """That the frames behind allocate() are those that the C library's own unwinder had: as many, and each of the same file."""
    (begin,) = [i for i, frame in enumerate(told) if frame.startswith("allocate (")]
    outer = told[begin + 1:]
    if outer[-1] == "[deeper stack]":
        outer.pop()
        truth = truth[:len(outer)]
    wanted = [base_name(frame.rsplit("+", 1)[0]) for frame in truth]
    assert [file_of(frame) for frame in outer] == wanted, f"{told}, and not {truth}"


# Native frames, without frame pointers and with them (test/e2e/native.c).
@case("""
export LD_LIBRARY_PATH=/sim GPUSONDE_SIM_SCENARIO=/sim/node.yaml
for program in native_omitted native_kept; do
	/gs/gpusonde trace --stacks=$program.folded --stacks-of=native --weight=bytes_held -- /gs/$program $program.truth /gs/libnative_through.so || exit 1
done
""", quick=(), since=MULTI_SINCE)
def stacks_of_native_frames(results, _kernel):
    result = ended_well(results["stacks-of-native-frames"])
    for program in "native_omitted", "native_kept":
        told = {int(weight): stack.split(";")[1:-1][::-1] for stack, weight in (line.rsplit(" ", 1) for line in result.text(f"{program}.folded").splitlines())}
        truth = {int(n): frames for n, *frames in (line.split() for line in result.text(f"{program}.truth").splitlines())}
        for n in range(NATIVE_FIRST, NATIVE_LAST + 1):
            check_native(told[n], truth[n])


# Two processes in one address space, debuggers, processes that are killed or execute others within a call. Of the unit test, which runs on this
# machine's own kernel too; it takes minutes in a guest.
@case("cd /tmp; CMOCKA_MESSAGE_OUTPUT=TAP /gs/test_attach_disturbed '*_multi'", units=("attach_disturbed",), quick=())
def disturbed_calls_survive(results, _kernel):
    result = ended_well(results["disturbed-calls-survive"])
    said = result.text("stdout") + result.text("stderr")
    assert "not ok" not in said and "SKIP" not in said and said.count("\nok ") == 8, f"disturbed calls: {result.says()}"


@case("""
export LD_LIBRARY_PATH=/sim GPUSONDE_SIM_SCENARIO=/sim/node.yaml
/gs/gpusonde trace --raw --json -- /sim/workload-late "repeat 20" launch end sync
""", quick_since=MULTI_SINCE)
def names_within_launches(results, _kernel):
    """The runtime gets the kernel within its first launch; the driver's name for it is told once, before that launch."""
    lines = [json.loads(line) for line in ended_well(results["names-within-launches"]).text("stdout").split("\n") if line.startswith('{"type"')]
    names = [line for line in lines if line["type"] == "name"]
    launches = [line for line in lines if line["type"] == "launch"]
    assert [(n["api"], n["name"]) for n in names] == [("cuLibraryGetKernel", "work")], f"names: {names}"
    assert len(launches) == 20 and lines.index(names[0]) < lines.index(launches[0]), f"{len(launches)} launches: {lines}"
    registered = [line for line in lines if line.get("api") == "__cudaRegisterFunction"]
    # Where the runtime's call is left to the driver, what is launched is what was named.
    launched = [r["handle"] for r in registered] if launches[0]["api"].startswith("cuda") else [names[0]["handle"]]
    assert len(registered) == 1 and launched == [launches[0]["function"]], f"registered: {registered}, launched: {launches[0]}"


# A program that takes its orders through a pipe, one at a time; both ends of which we hold, so that opening it waits for nobody.
# until_said WORD FILE PID waits for the word while that process lives.
PIPE = """
until_said() {
	until grep -q "$1" $2; do
		kill -0 $3 || { grep -q "$1" $2 && return; echo "ended without $1 in $2" >&2; exit 90; }
		sleep 0.1
	done
}
mkfifo plan
touch truth
exec 3<>plan
"""
TRACED_COMMAND = PIPE + """
/gs/gpusonde trace --trace-buffer 64KiB --raw --json -- /gs/driver_calls /sites/libcuda.so.1 truth <plan 3>&- >traced &
tracer=$!
"""


# Stopped, gpusonde takes nothing out of the ring, and the program runs on.
@case(TRACED_COMMAND + f"""
echo cuInit 3 >&3
until_said cuInit truth $tracer
kill -STOP $tracer
echo cuLaunchKernel {OVERFLOW_LAUNCHES} >&3
echo cuMemFree_v2 1 >&3
until_said cuMemFree_v2 truth $tracer
kill -CONT $tracer
exec 3>&-
wait $tracer
""")
def overflow_accounted(results, _kernel):
    """What the ring lost is known to the event, and sums lose nothing."""
    result = ended_well(results["overflow-accounted"])
    traced = document(result, "traced")
    dropped = counts.check_events(traced)
    assert dropped > 0, f"nothing was lost, so nothing is proven: {traced['events']}"
    assert traced["events"]["produced"] >= OVERFLOW_LAUNCHES, f"fewer events than launches: {traced['events']}"
    counts.check(truth(result), traced)


KILLED_CALLS = 2000
KILLED = f"""
traced=$(sed -n 's/^{{"pid":\\([0-9]*\\).*/\\1/p' truth)
kill -KILL $tracer
echo cuInit {KILLED_CALLS} >&3
echo cuLaunchKernel {KILLED_CALLS} >&3
exec 3>&-
until_said '^]' truth $traced
cat /sys/kernel/tracing/uprobe_events >left_by_killed
/gs/gpusonde trace --json -- /gs/driver_calls /sites/libcuda.so.1 truth_next </plan/sites >traced_next
rc=$?
cat /sys/kernel/tracing/uprobe_events >left_at_end
exit $rc
"""


def killed_well(results, kernel, name):
    """The program ended as it would have, the next start works and cleans up."""
    result = ended_well(results[name])
    got = counts.truth_of(truth(result))
    wanted = {"cuInit": [1000 + KILLED_CALLS, {"1": 1000 + KILLED_CALLS}], "cuMemAlloc_v2": [1000, {"2": 1000}], "cuLaunchKernel": [KILLED_CALLS, {}]}
    assert {k: v for k, v in got.items() if k in wanted} == wanted, f"the traced program's results: {got}"
    check_sites(result, results, kernel, "truth_next", "traced_next")
    assert result.text("left_at_end") == "", f"events are left in tracefs: {result.text('left_at_end')}"


@case(TRACED_COMMAND + """
echo cuInit 1000 >&3
echo cuMemAlloc_v2 1000 >&3
until_said cuMemAlloc_v2 truth $tracer
""" + KILLED, quick_until=MULTI_SINCE)
def killed_tracer_of_a_command(results, kernel):
    killed_well(results, kernel, "killed-tracer-of-a-command")


@case(PIPE + """
/gs/driver_calls /sites/libcuda.so.1 truth <plan 3>&- &
echo cuInit 1000 >&3
echo cuMemAlloc_v2 1000 >&3
until_said cuMemAlloc_v2 truth $!
/gs/gpusonde trace --raw -p $! 3>&- >raw &
tracer=$!
until [ -s raw ]; do
	kill -0 $tracer || exit 91
	echo cuMemFree_v2 1 >&3
	sleep 0.1
done
""" + KILLED, quick_since=MULTI_SINCE)
def killed_tracer_of_a_process(results, kernel):
    killed_well(results, kernel, "killed-tracer-of-a-process")


def finding(result, check):
    """(verdict, text) of one of doctor's checks."""
    said = ended_well(result).text("stdout")
    lines = [line.split(None, 2) for line in said.split("\n") if line[:1].strip()]
    found = [(line[0], line[2]) for line in lines if len(line) == 3 and line[1] == check]
    assert len(found) == 1, f"doctor has {len(found)} lines of {check}: {said}"
    return found[0]


@case("/gs/gpusonde doctor")
def doctor_says_how(results, kernel):
    result = results["doctor-says-how"]
    verdict, text = finding(result, "tracing")
    way = "uprobe_multi" if kernel.version >= MULTI_SINCE else "trace event"
    assert verdict == "ok" and text.endswith(f"attached by {way}"), f"doctor does not name {way}: {verdict} {text}"
    for check, word in {"trace-capabilities": "all", "trace-records": "at once", "tracefs": "", "trace-sites": "jump"}.items():
        verdict, text = finding(result, check)
        assert verdict == "ok" and word in text, f"doctor's {check} for root: {verdict} {text}"
    # "push, jump: emulated, 188 ns (326 with return); others: single_step": what the same kernel did in site_classes.
    classes = {kind: what.split(",")[0] for kinds, _, what in (part.partition(": ") for part in text.split("; ")) for kind in kinds.split(", ")}
    wanted = {"jump": "emulated", "conditional jump": "emulated", "others": "single_step"}
    if kernel.arch == "amd64":
        wanted.update({"push": "emulated", "5-byte nop": ("single_step", "optimised", "emulated")[column(kernel.version)],
                       "10-byte nop": ("refused", "refused", "optimised")[column(kernel.version)]})
    else:
        wanted.update({"adrp": "emulated", "call": "emulated", "nop": "single_step"})
    assert {k: classes.get(k) for k in wanted} == wanted, f"wanted {wanted}: {text}"
    return {"way": way}


@case("mount -t tmpfs tmpfs /sys/kernel/btf; /gs/gpusonde doctor; echo $? >status; umount /sys/kernel/btf")
def doctor_misses_btf(results, _kernel):
    """It is tracing's own line that says so, with what to do; asked for, it is a failure."""
    result = results["doctor-misses-btf"]
    verdict, text = finding(result, "tracing")
    assert verdict == "warning" and "BTF" in text and "CONFIG_DEBUG_INFO_BTF" in text, f"doctor does not miss BTF: {verdict} {text}"
    assert finding(result, "trace-capabilities")[0] == "ok", "doctor misses capabilities that are there"


@case("mount -t tmpfs tmpfs /sys/kernel/btf; /gs/gpusonde trace -- /bin/true; echo $? >status; umount /sys/kernel/btf")
def trace_without_btf_is_refused(results, _kernel):
    result = ended_well(results["trace-without-btf-is-refused"])
    assert result.text("status").strip() != "0" and "BTF" in result.text("stderr"), f"it does not say what it needs: {result.says()}"


@case("su nobody -c '/gs/gpusonde doctor'; echo $? >status")
def doctor_misses_capabilities(results, kernel):
    result = results["doctor-misses-capabilities"]
    wanted = ("CAP_BPF", "CAP_PERFMON") if kernel.version >= MULTI_SINCE else ("CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE")
    for check in ("tracing", "trace-capabilities"):
        verdict, text = finding(result, check)
        assert verdict == "warning" and all(name in text for name in wanted), f"doctor's {check} misses none: {verdict} {text}"


@case("su nobody -c '/gs/gpusonde trace --json -- /bin/true'; echo $? >status")
def unprivileged_trace_is_refused(results, _kernel):
    result = ended_well(results["unprivileged-trace-is-refused"])
    assert result.text("status").strip() != "0", f"it claims to have traced: {result.says()}"
    assert "CAP_" in result.text("stderr"), f"it does not name the capabilities it needs: {result.says()}"
