# SPDX-License-Identifier: Apache-2.0
"""Cases of privileges: a user who has exactly some capabilities, in kernels and under settings that the machine that tests has not.

Debian's perf_event_paranoid of 3 is set, which its kernels alone know. test/e2e/capabilities.py has what any machine shows. run.py takes this file
last: the kernel is locked down at the end, for good.
"""
import json
import shutil

from lib import counts, rows
from lib.capabilities import missing

from kernels.cases import MULTI_SINCE, PIPE, case, document, ended_well, finding, truth

MEMLOCK_UNTIL = (5, 11) # before, memory of BPF counts against RLIMIT_MEMLOCK
NEW = ("bpf", "perfmon", "sys_ptrace", "dac_read_search")
OLD = ("sys_admin", "dac_override", "sys_ptrace")
CALLS = 700


def add_files(image):
    """What these need beside what is there."""
    image.add_program(shutil.which("setpriv"), "/gs/setpriv")


# as UID "CAPABILITIES" COMMAND: with exactly these. who UID "CAPABILITIES": $who before a command is the same, and leaves $! its own.
AS = f"""
who() {{
	given=-all
	for name in $2; do given=$given,+$name; done
	who="/gs/setpriv --reuid=$1 --regid=$1 --clear-groups --inh-caps=$given --ambient-caps=$given --bounding-set=$given"
}}
as() {{
	who $1 "$2"
	shift 2
	$who "$@"
}}
echo 3 >/proc/sys/kernel/perf_event_paranoid
ulimit -l unlimited
case $(uname -r) in
	5.*|6.[0-5].*|6.[0-5]-*) kernels= needed="{' '.join(OLD)}";;
	*) kernels=--kernels needed="{' '.join(NEW)}";;
esac
"""


def needed(kernel):
    return NEW if kernel.version >= MULTI_SINCE else OLD


def alone(result, name):
    """One file of a result in the place of what the script said."""
    found = type(result)(result.status, result.seconds)
    found.files["stdout"] = result.files[name]
    return found


def probed(results):
    found = results["simulated-runtime-counted"]
    return {s["symbol"] for name in ("libcuda.so.1", "libcudart.so.13") for s in document(found, name)["sites"] if s["chosen"]}


@case(AS + """
export GPUSONDE_SIM_SCENARIO=/sim/node.yaml LD_LIBRARY_PATH=/sim
[ -z "$kernels" ] || as 65534 "$needed" /gs/gpusonde doctor >doctor # with trace events that takes long
touch truth
chmod 666 truth
as 65534 "$needed" /gs/gpusonde trace $kernels --json -- /bin/sh -c 'exec /sim/workload-late init "repeat 50" "alloc 1000" "launch 4 256" end sync "bad alloc" >truth' \
	>traced 2>said || exit
as 65534 "" /gs/gpusonde trace -- /bin/true 2>with_none
[ "$(cat /proc/sys/kernel/unprivileged_bpf_disabled)" = 1 ] || echo 0 >/proc/sys/kernel/unprivileged_bpf_disabled
cat /proc/sys/kernel/unprivileged_bpf_disabled >unprivileged
as 65534 "" /gs/gpusonde trace -- /bin/true 2>with_none_unprivileged
for one in bpf perfmon sys_admin dac_override; do
	case " $needed " in *" $one "*) ;; *) continue;; esac
	rest=
	for name in $needed; do [ $name = $one ] || rest="$rest $name"; done
	as 65534 "$rest" /gs/gpusonde trace -- /bin/true 2>trace_without_$one
	as 65534 "$rest" /gs/gpusonde doctor >doctor_without_$one
done
[ -e /dev/kmsg ]
""", arches=("amd64",), quick=())
def capabilities_named_are_enough(results, kernel):
    """What docs/capabilities.md names for this kernel, and no more; and each of them is needed, and said to be."""
    result = ended_well(results["capabilities-named-are-enough"])
    names = [name.upper() for name in needed(kernel)]
    if kernel.version >= MULTI_SINCE:
        for check in ("tracing", "trace-capabilities"):
            verdict, text = finding(alone(result, "doctor"), check)
            assert (verdict, missing(text)) == ("ok", []), f"doctor's {check}: {verdict} {text}"
        verdict, text = finding(alone(result, "doctor"), "trace-records")
        assert verdict == "note" and missing(text) == ["SYS_ADMIN"] and "paranoid is 3" in text and "scanning /proc" in text, f"{verdict} {text}"
    # An emulated machine that is busy with other things may take longer to probe than a program is held; that is said, and the program runs on.
    slow = "INCOMPLETE" in result.text("said")
    assert slow or result.text("said") == "", f"trace -- COMMAND says: {result.text('said')}"
    called = counts.truth_of(truth(result))
    if not slow:
        counts.check(truth(result), document(result, "traced"), unseen=set(called) - probed(results))
    at_all = sorted(name for name in names if name not in ("SYS_PTRACE", "DAC_READ_SEARCH"))
    for file in ("with_none", "with_none_unprivileged"):
        assert missing(result.text(file)) == at_all, f"{file} ({result.text('unprivileged')}): {result.text(file)}"
    for name in at_all:
        said = result.text(f"trace_without_{name.lower()}")
        assert missing(said) == [name], f"trace without CAP_{name}: {said}"
        # A process that may write to all files may read them.
        lost = [name, "DAC_READ_SEARCH"] if name == "DAC_OVERRIDE" else [name]
        assert missing(finding(alone(result, f"doctor_without_{name.lower()}"), "trace-capabilities")[1]) == sorted(lost), f"doctor without CAP_{name}: {result.text(f'doctor_without_{name.lower()}')}"
    version = ".".join(str(n) for n in kernel.version)
    rows.say("capabilities", f"Linux {version}, {', '.join('CAP_' + n for n in names)}", devices="all",
             tracing=f"{'begins late' if slow else f'exact: {sum(n for n, _ in called.values())} calls'}, {'uprobe_multi' if kernel.version >= MULTI_SINCE else 'trace event'}",
             said="nothing" if kernel.version < MULTI_SINCE else "perf_event_paranoid 3: new programs are found by scanning /proc (CAP_SYS_ADMIN)")


@case(PIPE + AS + f"""
who 65534 "$needed"
$who /gs/gpusonde agent --listen 127.0.0.1:9471 --atop-listen none --atop-socket none --socket none --state-dir /tmp/state-capabilities \
	--kmsg-enabled false >log 2>&1 3>&- &
agent=$!
page() {{
	wget -q -O $1 http://127.0.0.1:9471/api/v1/trace
}}
until page begun && grep -q '"enabled": *true' begun; do
	kill -0 $agent || {{ cat log >&2; exit 90; }}
	sleep 0.3
done
chmod 666 truth
who 65533 ""
$who /gs/driver_calls /sites/libcuda.so.1 truth <plan 3>&- &
program=$!
until page met && grep -q cuMemFree_v2 met; do
	echo cuMemFree_v2 1 >&3
	sleep 0.3
done
echo cuMemAlloc_v2 {CALLS} >&3
until_said cuMemAlloc_v2 truth $program
until page counted && grep -q cuMemAlloc_v2 counted; do
	sleep 0.3
done
sleep 1.2
page counted
kill -TERM $agent
wait $agent
who 65534 "$needed"
$who /gs/gpusonde trace --raw --json -p $program >by_pid 2>by_pid_said 3>&- &
tracer=$!
until [ -s by_pid ]; do
	kill -0 $tracer || {{ cat by_pid_said >&2; exit 91; }}
	echo cuMemFree_v2 1 >&3
	sleep 0.3
done
echo cuLaunchKernel {CALLS} >&3
until_said cuLaunchKernel truth $program
kill -INT $tracer
wait $tracer || exit
exec 3>&-
""", arches=("amd64",), quick=())
def capabilities_agent_counts(results, kernel):
    """The agent of such a user finds another user's program that comes later, and counts it; so does gpusonde trace -p."""
    result = ended_well(results["capabilities-agent-counts"])
    found = json.loads(result.text("counted"))["trace"]
    calls = {c["api"]: c["count"] for p in found["processes"] for c in p["calls"]}
    assert calls.get("cuMemAlloc_v2") == CALLS, f"{CALLS} calls: {found}"
    why, log = found["why"] or "", result.text("log")
    wanted = ["SYS_ADMIN"] if kernel.version >= MULTI_SINCE else []
    for text in (why, log):
        assert missing(text) == wanted and text.count("scanning /proc") == len(wanted), f"once, where perf events are refused: {text}"
    by_pid = document(result, "by_pid")
    assert missing(result.text("by_pid_said")) == wanted, result.text("by_pid_said")
    counted = {c["api"]: c["count"] for p in by_pid["processes"] for c in p["calls"]}
    assert counted.get("cuLaunchKernel") == CALLS, f"trace -p: {by_pid}"


@case(AS + """
case $(uname -r) in 5.*) ;; *) exit 0;; esac
ulimit -l 64
as 65534 "$needed" /gs/gpusonde trace -- /bin/true 2>with_little
as 65534 "$needed sys_resource" /gs/gpusonde trace --json -- /bin/true >with_more
""", arches=("amd64",), quick=())
def capabilities_locked_memory(results, kernel):
    """Before 5.11 it is RLIMIT_MEMLOCK that is too little, and it is said; nobody is sent for a capability that he has."""
    result = ended_well(results["capabilities-locked-memory"])
    if kernel.version >= MEMLOCK_UNTIL:
        return
    said = result.text("with_little")
    assert missing(said) == [] and "RLIMIT_MEMLOCK" in said and "LimitMEMLOCK" in said, said
    document(result, "with_more")


@case("""
mount -t securityfs securityfs /sys/kernel/security
echo confidentiality >/sys/kernel/security/lockdown || { echo none >lockdown; exit 0; }
cp /sys/kernel/security/lockdown lockdown
/gs/gpusonde doctor >stdout_of_doctor
/gs/gpusonde trace -- /bin/true 2>said && exit 80
true
""", arches=("amd64",), quick=())
def capabilities_locked_down(results, _kernel):
    """Nobody traces in a kernel that is locked down for confidentiality, and no capability is named."""
    result = ended_well(results["capabilities-locked-down"])
    if "[confidentiality]" not in result.text("lockdown"):
        return
    said = result.text("said")
    assert "locked down" in said and missing(said) == [], said
    rows.say("capabilities", "root, kernel locked down for confidentiality", devices="all", tracing="no", said="the lockdown, no capability")
