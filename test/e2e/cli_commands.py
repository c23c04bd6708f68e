#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands for people: with an agent, without one, on a terminal, into a pipe."""
import concurrent.futures
import contextlib
import csv
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import time

from lib.e2e import GPUSONDE, PATIENCE_S, SIMULATED, SOURCE, Agent, Skip, command, contains, environment, equal, run, values, wait_for
from lib.tmux import Terminal

ALONE = ("--socket", "/nonexistent/agent.sock")
SIMULATION = environment(GPUSONDE_NVML_LIBRARY=SIMULATED)


def test_help_and_version_everywhere():
    version = command("--version").stdout
    assert re.fullmatch(r"gpusonde \d+\.\d+\.\d+\n", version), version
    overview = command("--help").stdout
    equal(command("help").stdout, overview)
    names = re.findall(r"^  (\w+) ", overview, re.M)
    equal(set(names), {"agent", "gpus", "ps", "snapshot", "top", "check", "explain", "trace", "analyze", "probes", "lint", "inspect", "doctor", "cgroup", "record", "replay", "report", "diff", "release", "resume", "mcp", "atopgpud", "help"})
    for name in names:
        out = command(name, "--help")
        equal((out.returncode, out.stderr), (0, ""))
        contains(out.stdout, f"usage: gpusonde {name}")
        equal(command("help", name).stdout, out.stdout)
        equal(command(name, "--version").stdout, version)
        # even where the configuration is wrong
        equal(command(name, "--help", env=environment(GPUSONDE_CONFIG="/nonexistent")).returncode, 0)
    # The short name of an option that has one, also where it is only named.
    assert " --probe," in command("trace", "--help").stdout


def explain_schema():
    """A validator of what docs/json.schema.json says of it, which takes no other members."""
    try:
        import jsonschema # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Skip("no jsonschema here: apt-get install python3-jsonschema") from error
    with open(f"{SOURCE}/docs/json.schema.json", encoding="utf-8") as file:
        parts = json.load(file)["$defs"]
    for name, part in parts.items():
        if name.startswith("explain"):
            part["additionalProperties"] = False
    return jsonschema.Draft202012Validator({"$ref": "#/$defs/explain", "$defs": parts})


def test_explain():
    """Its figures are those of the snapshot; what is not known is said, and who is not known."""
    with Agent() as agent:
        wait_for(lambda: len(json.loads(agent.cli("ps", "--json").stdout)["processes"]) > 8, "processes")
        document = json.loads(agent.cli("snapshot", "--json").stdout)
        pid = document["processes"][0]["pid"]
        explained = json.loads(agent.cli("explain", str(pid), "--json").stdout)
        equal([(s["kind"], s.get("pid")) for s in explained["subjects"]], [("pid", pid), ("gpu", None)])
        equal((explained["simulated"], explained["from_agent"], explained["analysed"]), (True, True, False))
        contains(explained["why_not_analysed"], "trace.analysis")
        gpu, memory = document["gpus"][3], f"{document['gpus'][3]['memory_total_bytes'] / 2**30:.1f} GiB"
        (subject,) = json.loads(agent.cli("explain", gpu["uuid"][:12], "--json").stdout)["subjects"]
        figures = [s["figures"] for s in subject["sentences"] if s["topic"] == "use"][0]
        equal((subject["gpu"], figures["memory_total_bytes"]), (3, gpu["memory_total_bytes"]))
        for which in (["gpu:3"], ["GPU 3"], ["gpu", "3"]):
            out = agent.cli("explain", *which)
            equal(out.returncode, 0, out.stderr)
            for words in ("SIMULATED", "GPU 3 (", f"of {memory}", "What slows programs down in their own calls is not known"):
                contains(out.stdout, words)
        out = agent.cli("explain", "3", "4")
        equal(out.returncode, 2)
        contains(out.stderr, "gpu 3, pid 4711, job 4711")
        all_of_it = json.loads(agent.cli("explain", "--json").stdout)
        equal(len(all_of_it["subjects"]), 8)
        for said in (explained, all_of_it):
            equal(list(explain_schema().iter_errors(said)), [])
        assert list(explain_schema().iter_errors({**explained, "unknown": 1})) and list(explain_schema().iter_errors({**explained, "time": None}))
        for operand, why in (("nobody", "no GPU, process on a GPU, or job"), ("gpu:99", 'no GPU "99"'), ("job:1", 'no job on a GPU "1"'), ("pid:1", 'no process on a GPU "1"')):
            out = agent.cli("explain", operand)
            equal((out.returncode, out.stdout), (1, ""), operand)
            contains(out.stderr, why)
        contains(agent.cli("explain", "--findings").stderr, "trace.analysis")
        equal(agent.cli("explain", "--findings", "0").returncode, 2)
    out = command("explain", *ALONE, env=SIMULATION)
    equal(out.returncode, 0, out.stderr)
    contains(out.stderr, "no agent runs")
    contains(out.stdout, "GPU 0 (")
    out = command("explain", *ALONE, env=environment(GPUSONDE_NVML_LIBRARY="/nonexistent.so"))
    equal(out.returncode, 1)
    contains(out.stdout, "/nonexistent.so")


def test_lint():
    """Boards and rules written for the DCGM exporter; ours have none of its names."""
    for ours in ("deploy/grafana/node.json", "deploy/prometheus/rules.yaml"):
        out = command("lint", f"{SOURCE}/{ours}")
        equal((out.returncode, out.stderr), (0, ""), ours)
        contains(out.stdout, " queries: 0 break")
    with tempfile.TemporaryDirectory() as folder:
        def lint(text):
            with open(f"{folder}/file", "w", encoding="utf-8") as f:
                f.write(text)
            out = command("lint", f"{folder}/file")
            return out.returncode, out.stdout, out.stderr
        status, said, _ = lint('{"panels": [{"title": "Tensor\\u001b[31m", "targets": [{"expr": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE * 2"}]}]}')
        equal((status, "\x1b" in said), (1, False))
        for part in ("DCGM exporter 4.9: DCGM_FI_PROF_TENSOR_UTIL_RATIO\n", 'gpusonde, /metrics: gpusonde_gpu_pipe_active_ratio{pipe="tensor"}', "1 queries: 1 break"):
            contains(said, part)
        status, said, _ = lint("groups: [{name: g, rules: [{alert: Hot, expr: DCGM_FI_DEV_FB_USED > 9}]}]")
        contains(said, "line 1: Hot\n  DCGM_FI_DEV_FB_USED\n    DCGM exporter 4.9: DCGM_FI_DEV_FB_USED_BYTES, 1048576 times the number\n")
        out = command("lint", "--json", f"{folder}/file")
        document = json.loads(out.stdout)
        equal((out.returncode, document["queries"], document["broken_at_4_9"], document["broken_at_gpusonde"]), (1, 1, 1, 1))
        equal(document["names"], [{"title": "Hot", "line": 1, "query": "DCGM_FI_DEV_FB_USED > 9", "name": "DCGM_FI_DEV_FB_USED", "breaks_at_4_9": True,
                                   "dcgm_4_9": "DCGM_FI_DEV_FB_USED_BYTES", "factor_4_9": 1048576, "gpusonde": "gpusonde_gpu_memory_used_bytes", "factor_gpusonde": 1048576}])
        equal(document["faults"], [])
        status, said, _ = lint("groups: [{name: g, rules: [{record: gpusonde_mine, expr: sum(gpusonde_gpu_power)}, {alert: A, expr: 'sum by (uid) (gpusonde_up) + gpusonde_mine'}]}]")
        equal((status, said), (1, "line 1: gpusonde_mine\n  gpusonde_gpu_power\n    gpusonde, /metrics: no such metric; nearest: gpusonde_gpu_power_watts\n"
                                  "line 1: A\n  gpusonde_up\n    gpusonde, /metrics: no label uid\n"
                                  "2 queries: 0 break at the names of DCGM exporter 4.9, 2 at gpusonde's own\n"))
        document = json.loads(command("lint", "--json", f"{folder}/file").stdout)
        equal((document["broken_at_4_9"], document["broken_at_gpusonde"], document["names"]), (0, 2, []))
        equal(document["faults"], [{"title": "gpusonde_mine", "line": 1, "query": "sum(gpusonde_gpu_power)", "metric": "gpusonde_gpu_power", "label": None,
                                    "nearest": "gpusonde_gpu_power_watts"},
                                   {"title": "A", "line": 1, "query": "sum by (uid) (gpusonde_up) + gpusonde_mine", "metric": "gpusonde_up", "label": "uid", "nearest": None}])
        status, said, _ = lint(json.dumps({"expr": "gpusonde_up" + "+1" * 3000}))
        equal((status, said.split("\n")[1]), (1, "  too long to be judged"))
        for wrong, why in (("{", "file: line 1: "), ("a: b", "no query in it"), ("x" * (5 << 20), "more than 4 MiB")):
            status, said, complaint = lint(wrong)
            equal((status, said), (1, ""), wrong[:9])
            contains(complaint, why)
    equal(command("lint").returncode, 2)


def test_check():
    """As monitoring systems call it: one line, and an exit status."""
    with Agent() as agent:
        def check(*args):
            out = agent.cli("check", *args)
            return out.returncode, out.stdout.split("\n")[0]
        status, line = check("driver", "agent", "gpus", "--gpus", "8")
        equal((status, line.split(" | ")[0]), (0, "GPU OK - SIMULATED, 8 GPUs, 3 conditions hold"))
        contains(line, "'gpu7_temperature'=")
        document = json.loads(agent.cli("check", "--json").stdout)
        equal([c["condition"] for c in document["conditions"]], ["driver", "agent", "gpus", "recovery", "memory", "ecc", "heat", "links", "xids"])
        status, line = check("--gpus", "7")
        equal((status, line.split(" | ")[0]), (2, "GPU CRITICAL - SIMULATED, 8 GPUs of 7 are there"))
        for wrong, why in ((("nonsense",), "there are: driver agent"), (("--for", "x"), "node-problem-detector"), (("--gpus", "0"), "from 1 to 1024"),
                           (("--jsno",), "did you mean --json")):
            out = agent.cli("check", *wrong)
            equal((out.returncode, out.stdout), (3, ""), wrong)
            contains(out.stderr, why)
        agent.fault("lost: true, gpus: 3")
        status, line = wait_for(lambda: check("gpus", "--for", "node-problem-detector")[0] and check("gpus", "--for", "node-problem-detector"), "a GPU to be gone")
        equal((status, line), (1, "SIMULATED, GPU 3: gone: the driver does not list it any more, look at its XIDs;"))
        agent.fault("hang: forever, functions: nvmlDeviceGetPowerUsage")
        status, line = wait_for(lambda: check("driver")[0] and check("driver"), "the driver to hang")
        equal(status, 2)
        contains(line, "nvmlDeviceGetPowerUsage does not return")
        equal(check("heat")[0], 3)
    out = command("check", *ALONE, env=SIMULATION)
    contains(out.stdout, "WARNING agent: no agent runs")
    out = command("check", "driver", *ALONE, env=environment(GPUSONDE_NVML_LIBRARY="/nonexistent.so"))
    equal(out.returncode, 3)
    contains(out.stdout, "GPU UNKNOWN - cannot load /nonexistent.so")


def test_usage_errors_are_status_2():
    for args, remedy in ((["agnet"], "did you mean agent?"), ([], "usage: gpusonde"), (["gpus", "--jsno"], "did you mean --json?"),
                         (["trace", "--trace-enabled", "no"], "gpusonde trace does not take the option --trace-enabled"),
                         (["gpus", "--raw"], "gpusonde gpus does not take the option --raw"), (["ps", "--listen", "x"], "gpusonde ps does not take"),
                         (["ps", "extra"], "unexpected argument"), (["gpus", "--watch", "0"], "number of seconds"),
                         (["gpus", "--watch"], "needs a value"), (["help", "gpsu"], "did you mean gpus?")):
        out = command(*args)
        equal((out.returncode, out.stdout), (2, ""), " ".join(args))
        contains(out.stderr, remedy)


def test_agent_and_own_sampling_have_one_shape():
    def shape(value):
        if isinstance(value, dict):
            return {k: shape(v) for k, v in value.items() if k not in ("unavailable", "estimated", "traced")} # only an agent traces
        if isinstance(value, list):
            # one of numbers is empty while none of them is known
            return [shape(value[0])] if value and isinstance(value[0], dict) else []
        return None # whether a number or null depends on time
    with Agent() as agent:
        for name in ("gpus", "ps"):
            with_agent, alone = command(name, "--json", "--socket", agent.socket), command(name, "--json", *ALONE, env=SIMULATION)
            equal((with_agent.returncode, alone.returncode), (0, 0))
            equal(with_agent.stderr, "")
            contains(alone.stderr, "no agent runs at /nonexistent/agent.sock")
            equal(shape(json.loads(with_agent.stdout)), shape(json.loads(alone.stdout)), name)
        contains(agent.cli("gpus").stderr, "with --socket none this command takes its own samples")
        contains(command("gpus", "--socket", "none", env=SIMULATION).stderr, "sampled by this command")
        equal(set(json.loads(agent.cli("snapshot", "--json").stdout)), {"schema", "time", "simulated", "error", "gpus", "allocations", "processes", "traced", "traced_left_out", "node"})


def test_own_sampling_has_rates():
    gpus = json.loads(command("gpus", "--json", *ALONE, env=SIMULATION).stdout)["gpus"]
    equal(len(gpus), 8)
    assert all(g["utilization_ratio"]["gpu"] is not None and g["power_watts"] > 0 for g in gpus)
    assert all(g["observed_seconds_total"] > 0 for g in gpus), "two readings make rates"


def test_nothing_to_show_says_why():
    with tempfile.TemporaryDirectory() as folder:
        broken = f"{folder}/helper"
        with open(broken, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexit 127\n") # as the dynamic loader ends it
        os.chmod(broken, 0o755)
        for env, words in (({"GPUSONDE_NVML_HELPER": "/nonexistent"}, "cannot run the helper"),
                           ({"GPUSONDE_NVML_HELPER": broken}, "the helper gpusonde-nvml could not be executed"),
                           ({"GPUSONDE_SIM_SCENARIO": "/nonexistent"}, "correct the scenario that GPUSONDE_SIM_SCENARIO names")):
            out = command("gpus", *ALONE, env=dict(SIMULATION, **env))
            equal(out.returncode, 1)
            contains(out.stdout, "No GPUs: ")
            contains(out.stdout, words)
            doctor = command("doctor", *ALONE, env=dict(SIMULATION, **env)).stdout
            assert "sampled just now" not in doctor, doctor
            if "GPUSONDE_SIM_SCENARIO" in env:
                assert "NVRM" not in doctor + out.stdout and "modprobe" not in doctor, doctor
    equal(command("gpus", *ALONE, env=dict(SIMULATION, GPUSONDE_SIM_SCENARIO="empty")).returncode, 0)
    # Nothing was chosen: adding up and sorting leave nobody out.
    for flags, words in ((["--by", "user"], "No GPU processes."), (["--sort", "memory"], "No GPU processes."), (["--gpu", "0"], "No GPU processes that match.")):
        contains(command("ps", *flags, *ALONE, env=dict(SIMULATION, GPUSONDE_SIM_SCENARIO="empty")).stdout, words)


def ends(*args, env=None):
    """The statuses with which gpus, ps and snapshot end, as tables and as JSON, once and with --watch: one, or what each ends with."""
    reader, closed = os.pipe()
    os.close(reader) # or --watch would not end

    def status(way):
        name, *how = way
        if "--watch" in how:
            return subprocess.run([GPUSONDE, *way, *args], env=env or environment(), stdout=closed, stderr=subprocess.DEVNULL,
                                  timeout=PATIENCE_S, check=False).returncode
        out = command(*way, *args, env=env)
        if "--json" in how:
            error = json.loads(out.stdout)["error"]
            equal(error is not None, out.returncode != 0, f"{name}: {error}")
        if out.returncode != 0:
            contains(out.stderr, f"gpusonde {name}: ")
        return out.returncode
    ways = [(name, *json_or_not, *watch_or_not) for name in ("gpus", "ps", "snapshot") for json_or_not in ((), ("--json",))
            for watch_or_not in ((), ("--watch", "0.1"))]
    try:
        with concurrent.futures.ThreadPoolExecutor(len(ways)) as threads:
            seen = list(threads.map(status, ways))
    finally:
        os.close(closed)
    return seen[0] if len(set(seen)) == 1 else dict(zip(map(" ".join, ways), seen))


NO_DRIVER = {"GPUSONDE_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so.1"}


def test_exit_statuses_without_an_agent():
    """0 only for what is shown as it is now; a driver without a GPU is such a thing, a missing driver is not."""
    for status, env in ((0, {}), (0, {"GPUSONDE_SIM_SCENARIO": "empty"}), (1, NO_DRIVER), (1, {"GPUSONDE_SIM_SCENARIO": "/nonexistent"}),
                        (1, {"GPUSONDE_NVML_HELPER": "/nonexistent"})):
        equal(ends(*ALONE, env=dict(SIMULATION, **env)), status, env)


def test_exit_statuses_with_an_agent():
    with Agent(scenario="empty") as agent:
        equal(ends("--socket", agent.socket), 0)
    with Agent(scenario=None, wait=False, **NO_DRIVER) as agent:
        wait_for(lambda: os.path.exists(agent.socket), "the agent's socket")
        equal(ends("--socket", agent.socket), 1)
    with Agent("--nvml-call-timeout", "60s") as agent:
        equal(ends("--socket", agent.socket), 0)
        equal(agent.cli("release").returncode, 0)
        equal(ends("--socket", agent.socket), 1, "the last values, of a driver that was let go of")
        equal(agent.cli("resume").returncode, 0)
        equal(ends("--socket", agent.socket), 0)
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        agent.wait_not_ready()
        equal(ends("--socket", agent.socket), 1, "the last values, of a driver that hangs")


def test_an_answer_that_is_not_understood():
    """Of another program, or another version of the agent: nothing is shown, and that is said."""
    for answer in ({}, [], {"error": None, "gpus": {}, "processes": None, "node": []}):
        with answering({f"/api/v1/{page}": answer for page in ("gpus", "processes", "snapshot")}) as socket:
            for name in ("gpus", "ps", "snapshot"):
                for how in ((), ("--json",)):
                    out = command(name, *how, "--socket", socket)
                    equal((out.returncode, out.stdout), (1, ""), f"{name} {how}: {answer}")
                    contains(out.stderr, "the agent's answer is not understood")


def test_every_command_says_how_it_ends():
    """In its help and in the man page."""
    with open(os.path.join(os.path.dirname(__file__), "../../man/gpusonde.8"), encoding="utf-8") as f:
        man = f.read().split(".SH EXIT STATUS")[1].split(".SH")[0]
    titles = " ".join(re.findall(r"^\.SS gpusonde (.*)$", man, re.M)).replace(",", "").split()
    equal(titles, re.findall(r"^  ([\w-]+) ", command("help").stdout, re.M))
    for name in titles:
        contains(command(name, "--help").stdout, "\nExit status:\n  0 ")


def test_a_machine_without_gpu():
    out = command("gpus", *ALONE)
    if out.returncode == 0:
        raise Skip("this machine has a driver")
    contains(out.stdout, "No GPUs: ")
    equal(json.loads(command("gpus", "--json", *ALONE).stdout)["gpus"], [])


def test_failure_names_cause_and_remedy():
    out = command("release", *ALONE)
    equal(out.returncode, 1)
    contains(out.stderr, "no agent runs at /nonexistent/agent.sock (start it with gpusonde agent")


def copy_for_others(folder):
    """The program and the simulated driver, where another user may read them: the checkout may lie in a home."""
    for name in ("gpusonde", "gpusonde-reader", "gpusonde-web", "gpusonde-owners", "gpusonde-kubelet", "gpusonde-kube", "gpusonde-push", "gpusonde-hosts", "gpusonde-store", "gpusonde-nvml"):
        shutil.copy(f"{os.path.dirname(GPUSONDE)}/{name}", folder)
    shutil.copytree(os.path.dirname(SIMULATED), f"{folder}/sim", ignore=shutil.ignore_patterns("*.p"), ignore_dangling_symlinks=True)
    return f"{folder}/gpusonde", f"{folder}/sim/{os.path.basename(SIMULATED)}"


def test_no_permission_for_the_socket():
    if os.getuid() != 0:
        raise Skip("only root can become somebody else")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with Agent() as agent, tempfile.TemporaryDirectory() as folder:
        os.chmod(agent.tmp, 0o755)
        os.chmod(folder, 0o755)
        program, library = copy_for_others(folder)
        out = subprocess.run([*nobody, program, "gpus", "--socket", agent.socket], cwd="/",
                             env=dict(agent.env, GPUSONDE_NVML_LIBRARY=library), capture_output=True, text=True,
                             timeout=PATIENCE_S, check=False)
        contains(out.stderr, "no permission to query the agent")
        contains(out.stderr, "sampled by this command")
        contains(out.stdout, "SIMULATED")
        equal(out.returncode, 0)


def test_an_ordinary_user_needs_no_flags():
    if os.getuid() != 0:
        raise Skip("only root can become somebody else")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        os.chmod(folder, 0o755)
        os.chown(home, 65534, 65534)
        program, library = copy_for_others(folder)
        env = environment(HOME=home, XDG_RUNTIME_DIR=home, GPUSONDE_NVML_LIBRARY=library)
        agent = subprocess.Popen([*nobody, program, "agent", "--listen", "none", "--atop-listen", "none", "--atop-socket", "none"],
                                 cwd="/", env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: os.path.exists(f"{home}/gpusonde.sock"), "the user's own socket")

            def asked():
                out = subprocess.run([*nobody, program, "gpus", "--json"], cwd="/", env=env, capture_output=True, text=True,
                                     timeout=PATIENCE_S, check=False)
                assert "sampled by this command" not in out.stderr, out.stderr
                return out.returncode == 0 # and not 1, which says that the agent has not read anything yet
            wait_for(asked, "GPUs")
        finally:
            agent.terminate()
            log = agent.communicate(timeout=PATIENCE_S)[1]
        assert "outlive" not in log, log
        assert os.path.isdir(f"{home}/.local/state/gpusonde"), log


# A /tmp that is root's alone, a state folder that is read only; in a namespace of mounts that ends with the command.
CLOSED = ("mount -t tmpfs -o mode=755 none /tmp && mount -t tmpfs -o ro none /var/lib && exec setpriv --reuid {user} --regid {user} --clear-groups "
          "timeout 2 {program} agent --listen none --atop-listen none --atop-socket none {flags}")


def test_folders_that_cannot_be_made():
    """What stands in the way is said, by agent and doctor in the same words."""
    if os.getuid() != 0:
        raise Skip("only root can become somebody else")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        program, library = copy_for_others(folder)
        env = environment(HOME="/", GPUSONDE_NVML_LIBRARY=library, GPUSONDE_TRACE_ENABLED="no")
        env.pop("XDG_RUNTIME_DIR", None)

        def log(user, flags=""):
            done = subprocess.run(["unshare", "--mount", "sh", "-c", CLOSED.format(user=user, program=program, flags=flags)], cwd="/", env=env,
                                  capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            if "unshare failed" in done.stderr or "permission denied" in done.stderr:
                raise Skip(f"no mounts of our own here: {done.stderr.strip()}")
            return done.stderr
        said = log(65534)
        contains(said, "the folder /tmp/gpusonde-65534 cannot be created: Permission denied")
        lost = ": Permission denied: XID counts do not outlive the agent"
        contains(said, " /.local/state/gpusonde cannot be created" + lost)
        out = subprocess.run([*nobody, program, "doctor", "--socket", "none"], cwd="/", env=env, capture_output=True, text=True, check=False)
        contains(out.stdout, " /.local/state/gpusonde cannot be created" + lost)
        contains(log(0, "--socket none --state-dir /var/lib"), "/var/lib cannot be written: Read-only file system")


def test_doctor_tells_of_the_agents_folder():
    """Not of the one that this command's own options name; without an agent it says whose it is."""
    with Agent() as agent:
        check = checks_at(agent.socket, "--state-dir", "/proc/nowhere")["state"]
        equal((check["verdict"], check["text"]), ("ok", f"the agent keeps its state in {agent.tmp}/state"))
        pages = {path: agent.get(path, unix=True).json() for path in ("/control/status", "/control/capabilities", "/api/v1/snapshot")}
        pages["/control/status"]["state_error"] = "No space left on device"
    with answering(pages) as socket:
        check = checks_at(socket)["state"]
    equal(check["verdict"], "warning", check)
    contains(check["text"], f"the agent: {agent.tmp}/state cannot be written: No space left on device")
    contains(checks_at("none")["state"]["text"], "an agent with this command's user and options")


def test_without_sys_nothing_is_said_of_the_kernel():
    """A container without /sys: whether this kernel has uprobe_multi, and what it then asks for, cannot be known."""
    if os.getuid() != 0:
        raise Skip("only root can take /sys away from a command")
    fact = "/sys is not mounted here, so it is not known what this kernel offers"
    nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups "
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        program, library = copy_for_others(folder)

        def said(who, what):
            done = subprocess.run(["unshare", "--mount", "sh", "-c", f"umount -l /sys && {who}{program} {what}"], cwd="/", capture_output=True,
                                  env=environment(GPUSONDE_NVML_LIBRARY=library), text=True, timeout=PATIENCE_S, check=False)
            if "unshare failed" in done.stderr or "umount:" in done.stderr:
                raise Skip(f"/sys cannot be taken away here: {done.stderr.strip()}")
            return done.stdout + done.stderr
        for who in ("", nobody):
            contains(said(who, "trace -- /bin/true"), fact)
            text = said(who, "doctor --json --socket none --listen none --atop-listen none --atop-socket none")
            checks = {c["check"]: c for c in json.loads(text)["checks"]}
            for name in ("tracing", "tracefs", "btf", "uprobes"):
                contains(checks[name]["text"], fact)
            for guess in ("uprobe_multi", "SYS_ADMIN is", "SYS_ADMIN and", "CONFIG_", "tracing is not mounted"):
                assert guess not in text, f"{guess} is said: {text}"


def test_a_closed_pipe_is_no_failure():
    with Agent() as agent:
        for args in (["gpus"], ["snapshot", "--json"], ["ps", "--watch", "0.1"], ["doctor"]):
            reader, writer = os.pipe()
            os.close(reader)
            process = subprocess.Popen([GPUSONDE, *args, "--socket", agent.socket], env=agent.env, stdout=writer,
                                       stderr=subprocess.PIPE, text=True)
            os.close(writer)
            _, errors = process.communicate(timeout=PATIENCE_S)
            if args != ["doctor"]: # whose status is that of its checks
                equal(process.returncode, 0, " ".join(args))
            assert "Broken pipe" not in errors, errors


def test_a_full_disk_is_a_failure():
    with Agent() as agent, open("/dev/full", "w", encoding="ascii") as full:
        process = subprocess.run([GPUSONDE, "gpus", "--socket", agent.socket], env=agent.env, stdout=full,
                                 stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        equal(process.returncode, 1)
        contains(process.stderr, "No space left")


def test_closed_output_is_a_failure():
    for args in (["--version"], ["agent", "--print-config"], ["gpus", "--help"]):
        process = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", GPUSONDE, *args], env=environment(), stderr=subprocess.PIPE, text=True,
                                 timeout=PATIENCE_S, check=False)
        equal(process.returncode, 1, args)


def terminal_output(args, env, until):
    """What the command writes on a terminal, until @until is in it; then it is interrupted."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(GPUSONDE, ["gpusonde", *args], env)
    out, end = b"", time.monotonic() + PATIENCE_S
    try:
        while not until(out):
            assert time.monotonic() < end, f"in vain waited for more than: {out[-500:]}"
            if select.select([fd], [], [], 1)[0]:
                try:
                    part = os.read(fd, 65536)
                except OSError:
                    break
                if not part:
                    break
                out += part
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)
    return out.decode()


def watching(agent, *args, **how):
    return Terminal(GPUSONDE, *args, "--watch", "0.2", "--socket", agent.socket, env=agent.env, **how)


def test_watch_is_a_window():
    """Of the alternate screen, which q leaves as it was; whatever standard input is."""
    with Agent() as agent, watching(agent, "gpus", columns=120) as screen:
        screen.shows("MEM", "H100")
        screen.keys("q")
        equal(screen.status(), 0)
        assert "H100" not in screen.screen(), "the alternate screen is left"


def test_watch_fits_its_window():
    """From the first line, and says how many do not fit; keys scroll below the titles; a new size is seen."""
    with Agent() as agent, watching(agent, "ps", columns=100, rows=10) as screen:
        screen.shows("more lines: Up, Down")
        head = next(line for line in screen.lines() if " PID " in line)
        screen.keys("End")
        wait_for(lambda: "SIMULATED" in screen.lines()[0] and screen.lines()[1] == head and re.search("^ *7 ", screen.screen(), re.M),
                 "SIMULATED and the titles in the first lines, and the last GPU's processes")
        screen.keys("Home")
        screen.resize(200, 120)
        screen.shows("PID", without=["more lines"])
        screen.keys("C-c")
        equal(screen.status(), 0)


def test_watch_takes_a_duration():
    with Agent() as agent:
        process = subprocess.Popen([GPUSONDE, "gpus", "--json", "--watch", "100ms", "--socket", agent.socket], env=agent.env,
                                   stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            assert process.stdout.readline()
        process.kill()
        process.communicate()


def test_watch_appends_to_a_pipe():
    with Agent() as agent:
        process = subprocess.Popen([GPUSONDE, "gpus", "--json", "--watch", "0.1", "--socket", agent.socket], env=agent.env,
                                   stdout=subprocess.PIPE, text=True)
        times = {json.loads(process.stdout.readline())["time"] for _ in range(30)}
        process.kill()
        process.communicate()
        assert len(times) > 1, "every document is the same"


def test_an_interrupt_ends_watch():
    with Agent() as agent:
        process = subprocess.Popen([GPUSONDE, "gpus", "--watch", "5", "--socket", agent.socket], env=agent.env, stdout=subprocess.PIPE,
                                   text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        equal(process.returncode, 0)


def test_colour_only_on_a_terminal():
    colour = re.compile(r"\033\[\d*m")
    with Agent() as agent:
        args = ["doctor", "--socket", agent.socket, "--atop-listen", "none", "--atop-socket", "none", "--listen", "none"]

        def done(out):
            return b" failed" in out
        assert colour.search(terminal_output(args, dict(agent.env, TERM="xterm"), done)), "no colour on a terminal"
        for quiet in ({"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}):
            assert not colour.search(terminal_output(args, dict(agent.env, **quiet), done)), quiet
        assert "\033" not in agent.cli("gpus").stdout


def test_doctor_of_a_good_node():
    with Agent() as agent:
        flags = ["--listen", f"127.0.0.1:{agent.port()}", "--atop-listen", f"127.0.0.1:{agent.atop_port()}", "--atop-socket",
                 agent.atop_name, "--state-dir", agent.tmp]
        out = agent.cli("doctor", "--json", *flags)
        doctor = json.loads(out.stdout)
        checks = {c["check"]: c for c in doctor["checks"]}
        equal((out.returncode, doctor["ok"]), (0, True))
        for name in ("driver", "library", "devices", "data", "driver-call", "agent", "http", "atop", "atop-socket", "helper"):
            equal(checks[name]["verdict"], "ok", f"{name}: {checks[name]}")
        contains(checks["agent"]["text"], str(agent.process.pid))
        contains(checks["http"]["text"], "the agent")
        table = agent.cli("doctor", *flags).stdout
        for name in checks:
            contains(table, name)


def test_doctor_of_a_sick_node():
    with Agent("--nvml-call-timeout", "60s") as agent:
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        agent.wait_not_ready()
        out = agent.cli("doctor", "--json", "--listen", "none", "--atop-listen", "none", "--atop-socket", "none")
        checks = {c["check"]: c for c in json.loads(out.stdout)["checks"]}
        equal(out.returncode, 1)
        equal(checks["data"]["verdict"], "failed")
        contains(checks["driver-call"]["text"], "nvmlDeviceGetPowerUsage")
        assert checks["driver-call"]["remedy"]


def test_doctor_names_who_has_a_port():
    with Agent() as agent:
        out = command("doctor", "--json", *ALONE, "--listen", f"127.0.0.1:{agent.port()}", "--atop-listen", "0.0.0.0:0", env=SIMULATION)
        checks = {c["check"]: c for c in json.loads(out.stdout)["checks"]}
        contains(checks["http"]["text"], "in use by gpusonde-web (PID ")
        equal(checks["exposure"]["verdict"], "warning")
        equal(checks["agent"]["verdict"], "note")


def test_doctor_warns_of_secrets_that_others_read():
    """A key file, or one token of a folder."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-secrets-") as tmp:
        os.chmod(tmp, 0o755)
        os.mkdir(f"{tmp}/tokens")
        for name in ("key", "tokens/alice"):
            with open(f"{tmp}/{name}", "w", encoding="ascii") as f:
                f.write("0123456789abcdef0123456789abcdef\n")
            os.chmod(f"{tmp}/{name}", 0o600)
        def verdict():
            out = command("doctor", "--json", *ALONE, "--web-tokens", f"{tmp}/tokens", env=dict(SIMULATION, GPUSONDE_PUSH_KEY_FILE=f"{tmp}/key"))
            (check,) = [c for c in json.loads(out.stdout)["checks"] if c["check"] == "secret-files"]
            return check["verdict"], check["text"]
        equal(verdict()[0], "ok")
        os.chmod(f"{tmp}/tokens/alice", 0o644)
        equal(verdict(), ("warning", f"web.tokens: every user of this machine can read {tmp}/tokens"))
        os.chmod(f"{tmp}/tokens", 0o700)
        os.chmod(f"{tmp}/key", 0o604)
        equal(verdict(), ("warning", f"push.key_file: every user of this machine can read {tmp}/key"))
        # That of the certificate, which another file names.
        os.chmod(f"{tmp}/key", 0o600)
        with open(f"{tmp}/web.yml", "w", encoding="ascii") as f:
            f.write("tls_server_config:\n  cert_file: crt\n  key_file: tls.key\n")
        os.chmod(f"{tmp}/web.yml", 0o600)
        with open(f"{tmp}/tls.key", "w", encoding="ascii"):
            pass
        def of_web(check, *flags):
            out = command("doctor", "--json", *ALONE, "--web.config.file", f"{tmp}/web.yml", *flags, env=SIMULATION)
            (found,) = [c for c in json.loads(out.stdout)["checks"] if c["check"] == check]
            return found["verdict"], found["text"]
        os.chmod(f"{tmp}/tls.key", 0o600)
        equal(of_web("secret-files"), ("ok", "2 files of keys, tokens or passwords: none that everybody can read"))
        os.chmod(f"{tmp}/tls.key", 0o644)
        equal(of_web("secret-files"), ("warning", f"key_file of web.config_file: every user of this machine can read {tmp}/tls.key"))
        equal(of_web("web-control"), ("ok", "nobody may begin timelines over the network (web.control)"))
        equal(of_web("web-control", "--web-control", "alice")[0], "warning", "nobody is asked who it is")


def test_doctor_says_who_may_read():
    for access, flags, said in (
            ("TLS, users", ("--web-views", "alice, bob", "--web-recordings", "none"), "alice, bob may read pages, nobody what was recorded"),
            ("tokens", (), "everybody who is known may read pages, everybody who is known what was recorded"),
            ("", (), "nobody is asked who it is: everybody may read pages, everybody what was recorded"),
            ("", ("--web-views", "alice"), "nobody is asked who it is: nobody may read pages, everybody what was recorded")):
        with answering({"/control/status": {"access": access}}) as path:
            equal(checks_at(path, *flags)["web-views"]["text"], f"{said} (web.views, web.recordings)")


def test_doctor_says_who_may_begin_timelines():
    with answering({"/control/status": {"access": "TLS, users"}}) as path:
        for names, said in (("alice, bob", "alice, bob"), ("*", "everybody who is known")):
            check = checks_at(path, "--web-control", names)["web-control"]
            equal((check["verdict"], check["text"]), ("note", f"{said} may begin and end timelines over the network (web.control)"))
    with answering({"/control/status": {"access": "users"}}) as path:
        equal(checks_at(path, "--web-control", "*")["web-control"]["verdict"], "warning")


def test_doctor_says_where_the_agent_listens():
    """Not where this command's own options would have it."""
    with Agent("--web-open", "true", listen="0.0.0.0:0") as agent:
        check = checks_at(agent.socket, "--listen", "127.0.0.1:9470")["exposure"]
        equal(check["verdict"], "warning", check)
        contains(check["text"], "the agent's http.listen is 0.0.0.0:0")
    with Agent() as agent:
        equal(checks_at(agent.socket, "--listen", "0.0.0.0:9470")["exposure"]["verdict"], "ok")


@contextlib.contextmanager
def answering(pages):
    """A socket at which an agent would say this: path -> document."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def address_string(self):
            return "socket"

        def log_message(self, *_):
            pass

        def do_GET(self):
            text = json.dumps(pages[self.path]).encode() if self.path in pages else b""
            self.send_response(200 if text else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    with tempfile.TemporaryDirectory() as tmp, socketserver.UnixStreamServer(f"{tmp}/s", Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{tmp}/s"
        finally:
            server.shutdown()
            thread.join()


def checks_at(socket, *flags):
    out = command("doctor", "--json", "--socket", socket, "--listen", "none", "--atop-listen", "none", "--atop-socket", "none", *flags)
    return {c["check"]: c for c in json.loads(out.stdout)["checks"]}


def test_doctor_tells_of_the_agents_capabilities():
    """The agent has none, the caller has all."""
    if os.geteuid() != 0:
        raise Skip("only root can take capabilities from an agent and keep its own")
    with Agent(program=("setpriv", "--bounding-set=-all", "--inh-caps=-all", GPUSONDE), GPUSONDE_TRACE_ENABLED="auto") as agent:
        wait_for(lambda: agent.get("/api/v1/trace").json()["trace"], "what the agent says of tracing")
        checks = checks_at(agent.socket)
        for name, lost in (("tracing", "CAP_BPF and CAP_PERFMON are missing"), ("trace-capabilities", "CAP_SYS_PTRACE is missing"),
                           ("kernel-log", "CAP_SYSLOG is missing"), ("capabilities", "has none that gpusonde uses")):
            contains(checks[name]["text"], lost)
            contains(checks[name]["text"], "the agent")
        equal([checks[n]["verdict"] for n in ("tracing", "trace-capabilities", "kernel-log")], ["warning"] * 3)
    checks = checks_at("none")
    for name in ("trace-capabilities", "capabilities"):
        contains(checks[name]["text"], "this process (no agent is queried)")


def test_doctor_tells_what_the_agent_cannot_trace():
    with Agent() as agent:
        pages = {path: agent.get(path, unix=True).json()
                 for path in ("/control/status", "/control/capabilities", "/api/v1/trace", "/api/v1/snapshot")}
    figures = pages["/api/v1/snapshot"]["node"]["agent"]
    trace = pages["/api/v1/trace"]["trace"]
    trace.update(enabled=True, why=None, backend="uprobe_multi", stale=False)
    figures["source_up"]["trace"] = 1
    for refused, verdict in ((0, "ok"), (136, "warning")):
        figures["trace_sites"]["refused"] = refused
        with answering(pages) as socket:
            check = checks_at(socket)["tracing"]
        equal((check["verdict"], "136 entry points" in check["text"]), (verdict, refused > 0), check)
    trace.update(backend=None, why="REASON")
    with answering(pages) as socket:
        checks = checks_at(socket)
    equal((checks["tracing"]["verdict"], checks["trace-records"]["verdict"]), ("warning", "note"), checks)
    contains(checks["tracing"]["text"], "the agent does not trace CUDA calls: REASON")


def test_doctor_looks_at_the_library():
    """One that was named and cannot be used is a failure, and says what is wrong with the file."""
    with open(SIMULATED, "rb") as f:
        good = f.read()
    here = int.from_bytes(good[18:20], "little") # e_machine: 62 x86_64, 183 aarch64
    other, name = (183, "aarch64") if here == 62 else (62, "x86_64")
    cut = (len(good) // 4, "is damaged: it is truncated")
    with tempfile.TemporaryDirectory() as folder:
        for text, content in ((f"is for {name}, and this gpusonde for", good[:18] + other.to_bytes(2, "little") + good[20:]),
                              (cut[1], good[:cut[0]]), ("is damaged: it ends within", good[:40]), ("is no library", b"text\n"),
                              ("does not exist", None)):
            path = f"{folder}/library.so"
            if content is None:
                os.unlink(path)
            else:
                with open(path, "wb") as f:
                    f.write(content)
            check = checks_at("none", "--nvml-library", path)["library"]
            equal(check["verdict"], "failed", text)
            contains(check["text"], f"{path} {text}")
    libc = next(l.split()[-1] for l in open("/proc/self/maps", encoding="utf-8") if "libc.so" in l)
    contains(checks_at("none", "--nvml-library", libc)["library"]["text"], "is no NVML library")


def test_doctor_sees_a_replaced_library():
    """The one that was loaded is gone from its place, and goes on to be used until the agent takes the driver again."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(os.path.dirname(SIMULATED), "scenarios"), f"{folder}/scenarios")
        path = shutil.copy(SIMULATED, folder)
        with Agent(GPUSONDE_NVML_LIBRARY=path) as agent:
            wait_for(lambda: agent.get("/control/status", unix=True).json()["child"], "who has the library")
            equal(checks_at(agent.socket)["library"], {"check": "library", "verdict": "ok", "text": path})
            os.rename(shutil.copy(SIMULATED, f"{folder}/new"), path)
            check = checks_at(agent.socket)["library"]
            equal(check["verdict"], "warning")
            contains(check["text"], f"still uses the library that was {path}")
            for what in ("release", "resume"):
                contains(check["remedy"], f"gpusonde {what}")
                equal(agent.cli(what).returncode, 0)
            wait_for(lambda: checks_at(agent.socket)["library"]["verdict"] == "ok", "the new library")


def test_doctor_of_a_node_without_gpu():
    """That there is nothing to read is neither good nor fresh."""
    with Agent() as agent:
        pages = {path: agent.get(path, unix=True).json() for path in ("/control/status", "/control/capabilities", "/api/v1/snapshot")}
    why = "no GPU on this node: nvmlInit: Driver Not Loaded"
    pages["/control/status"].update(state="no_driver", why=why, ready=True)
    with answering(pages) as socket:
        check = checks_at(socket)["data"]
    equal(check, {"check": "data", "verdict": "note", "text": why})


def test_atopgpud_ends_without_gpu():
    with tempfile.TemporaryDirectory() as tmp:
        for env in (environment(), environment(GPUSONDE_NVML_LIBRARY=SIMULATED, GPUSONDE_SIM_SCENARIO="empty")):
            if "GPUSONDE_NVML_LIBRARY" not in env and os.path.exists("/dev/nvidiactl"):
                continue
            out = command("atopgpud", "--atop-listen", "none", "--atop-socket", f"e2e-{os.getpid()}", "--state-dir", tmp, env=env)
            equal(out.returncode, 0)


def test_a_link_named_atopgpud():
    """gpusonde is atop's daemon when it is started by that name, with the daemon's own arguments."""
    with tempfile.TemporaryDirectory() as tmp:
        link = f"{tmp}/atopgpud"
        os.symlink(GPUSONDE, link)
        for arguments, status, words in ((["--help"], 0, "usage: gpusonde atopgpud"), (["--foo"], 2, "unknown option --foo"),
                                         (["agent"], 2, "unexpected argument")):
            out = subprocess.run([link, *arguments], capture_output=True, text=True, env=environment(), timeout=PATIENCE_S, check=False)
            equal(out.returncode, status)
            contains(out.stdout + out.stderr, words)
        flags = ["-v", "--atop-listen", "none", "--atop-socket", f"e2e-{os.getpid()}", "--state-dir", tmp]
        equal(subprocess.run([link, *flags], env=dict(SIMULATION, GPUSONDE_SIM_SCENARIO="empty"), timeout=PATIENCE_S, check=False).returncode, 0)


def test_simulate():
    """A node without a driver, by one flag; what is no scenario is refused with those that there are."""
    for flag, gpus in (("--simulate", 8), ("--simulate=desktop-1gpu", 1)):
        with Agent(flag, scenario=None) as agent:
            page = agent.get("/api/v1/gpus").json()
            equal((page["simulated"], len(page["gpus"])), (True, gpus))
            agent.signal(signal.SIGHUP)
            wait_for(lambda a=agent: "reloaded" in a.log(), "the configuration to be read again")
            assert "nvml.library" not in agent.log(), agent.log()
    for flags, words in ((["--simulate=nod-mig"], "there is no scenario \"nod-mig\""), (["--simulate=/nonexistent/x.yaml"], "there is no scenario"),
                         (["--simulate", "--nvml-library=x"], "--simulate and --nvml-library name two drivers")):
        out = command("agent", *flags)
        equal((out.returncode, out.stdout), (2, ""))
        contains(out.stderr, words)
    contains(command("agent", "--simulate=x").stderr, "desktop-1gpu")


def test_ps_looks_back():
    """What an agent has observed, in three windows; each says what it really covers."""
    begin = time.monotonic()
    with Agent() as agent:
        def recent():
            processes = agent.get("/api/v1/processes").json()["processes"]
            return processes and all(p["recent"] and p["recent"][0]["seconds"] >= 3 for p in processes) and processes
        processes = wait_for(recent, "some seconds to be observed")
        observed = time.monotonic() - begin
        for process in processes:
            equal([r["window_seconds"] for r in process["recent"]], [10, 60, 300])
            assert all(0 <= r["utilization_ratio"] <= 1 and 3 <= r["seconds"] <= observed and r["memory_bytes"] > 0 for r in process["recent"]), process
        out = agent.cli("ps", "--last", "1m")
        contains(out.stdout, "SM is of the last 60 seconds, or since the process was first seen")
        assert re.search(r" \d+ % ", out.stdout), out.stdout
    for args, words in ((["ps", "--last", "7s"], "it must be 10s, 1m or 5m"), (["gpus", "--last", "1m"], "use gpusonde ps --last 1m")):
        out = command(*args)
        equal((out.returncode, out.stdout), (2, ""))
        contains(out.stderr, words)


def test_what_is_left_out_is_not_read():
    """Groups of readings are turned off singly; what they read is absent, nothing else; the time of each is told."""
    def seconds(agent, group):
        return values(agent.metrics(), "gpusonde_collect_group_seconds_total", group=group)[0]
    with Agent("--sample-disable", "processes,power,xid") as agent:
        gpu = agent.get("/api/v1/gpus").json()["gpus"][0]
        equal((gpu["power_watts"], set(gpu["processes"].values())), (None, {None}))
        assert gpu["temperature_celsius"] > 0 and gpu["memory_used_bytes"] > 0, gpu
        equal([seconds(agent, group) for group in ("processes", "power", "xid")], [0, 0, 0])
        assert all(seconds(agent, group) > 0 for group in ("memory", "clocks", "fields")), agent.metrics()
    for wrong in ("powr", "power,", "power fields", ","):
        out = command("agent", "--sample-disable", wrong)
        equal((out.returncode, out.stdout), (2, ""))
        contains(out.stderr, "names separated by commas, of memory, power")


def test_doctor_shows_what_is_wrong_first():
    order = ["FAILED", "warning", "note", "ok"]
    with Agent(scenario="sick") as agent:
        agent.fault("lost: true, gpus: 1")
        wait_for(lambda: 0 in values(agent.metrics(), "gpusonde_gpu_present"), "a GPU to be lost")
        flags = ["--listen", "none", "--atop-listen", "none", "--atop-socket", "none"]
        out, quiet = agent.cli("doctor", *flags), agent.cli("doctor", "--quiet", *flags)
    verdicts = [word for word in (line.split()[0] for line in out.stdout.split("\n\n")[0].splitlines()) if word in order]
    equal(verdicts, sorted(verdicts, key=order.index))
    equal({line.split()[0] for line in quiet.stdout.splitlines() if not line.startswith(" ")}, {"FAILED", "warning"})
    equal((out.returncode, quiet.returncode), (1, 1))
    assert re.search(r"^FAILED +devices .*lost", out.stdout, re.M), out.stdout


def test_rows_and_columns():
    with Agent(scenario="node-mig") as agent:
        wait_for(lambda: json.loads(agent.cli("gpus", "--json").stdout)["gpus"], "GPUs")
        document = json.loads(agent.cli("gpus", "--json").stdout)
        out = agent.cli("gpus", "--csv", "--columns", "gpu,gi,memory_total_bytes,profile")
        instances = [(gpu, instance) for gpu in document["gpus"] for instance in [None, *gpu["mig"]]]
        assert len(instances) > len(document["gpus"]) > 1, instances
        # Unknown is empty: GPUs have no profile, and no GPU instance.
        equal(list(csv.reader(out.stdout.splitlines()))[1:],
              [[str(gpu["gpu"]), *("" if value is None else str(value) for value in (instance["gi"], instance["memory_total_bytes"], instance["profile"]))] if instance else
               [str(gpu["gpu"]), "", str(gpu["memory_total_bytes"]), ""] for gpu, instance in instances])
        contains(out.stderr, "SIMULATED")
        contains(agent.cli("gpus", "--columns", "gpu,memory_total_bytes").stdout, "SIMULATED")
        names = next(csv.reader(agent.cli("gpus", "--csv").stdout.splitlines()))
        assert {"gpu", "uuid", "utilization_ratio.gpu", "clock_hertz.sm", "profile"} <= set(names), names

        largest = max(gpu["gpu"] for gpu in document["gpus"])
        for flags, indexes in ((["--filter", f"gpu<{largest}", "--sort", "gpu"], list(range(largest))[::-1]), (["--filter", "gpu=1"], [1]),
                               (["--filter", "gpu=1,gpu!=1"], []), (["--sort", "+gpu"], list(range(largest + 1)))):
            equal([gpu["gpu"] for gpu in json.loads(agent.cli("gpus", "--json", *flags).stdout)["gpus"]], indexes, flags)
        equal(re.findall(r"^ +(\d+)  ", agent.cli("gpus", "--filter", "gpu=1").stdout, re.M), ["1"], "the table's GPUs")
        contains(agent.cli("gpus", "--filter", "gpu=1000").stdout, "No GPUs that match.")
        for flags, words in ((["--columns", "gpu,memory_totl_bytes"], 'nothing here has a field "memory_totl_bytes": did you mean memory_total_bytes?'),
                             (["--filter", "gpu"], "--filter cannot be"), (["--filter", "memory_total_bytes>1 pound"], "compares memory_total_bytes with what is no number"), (["--csv", "--json"], "leave one of them out"), (["--sort", "a,,b"], "--sort cannot be"),
                             (["--sort", "+"], "--sort cannot be"), (["--sort", "memory_us"], "did you mean memory_used_bytes?"),
                             (["--columns", "gpu,clock_hertz"], '"clock_hertz" has several values: name one, such as clock_hertz.'),
                             (["--csv", "--columns", "mig"], '"mig" is a list of objects: --json shows it')):
            out = agent.cli("gpus", *flags)
            equal((out.returncode, out.stdout), (2, ""), flags)
            contains(out.stderr, words)
    with Agent() as agent:
        def large():
            return json.loads(agent.cli("ps", "--json", "--sort", "memory", "--filter", "gpu=0,memory_bytes>1GiB").stdout)["processes"]

        wait_for(lambda: len(large()) > 1, "processes with memory")
        processes = large()
        sizes = [process["memory_bytes"] for process in processes]
        assert sizes == sorted(sizes, reverse=True) and len(sizes) > 1 and min(sizes) > 2**30, sizes
        equal({process["gpu"] for process in processes}, {0})
        for flag, field, descending in (("-pid", "pid", True), ("+pid", "pid", False), ("+memory", "memory_bytes", False)):
            shown = [p[field] for p in json.loads(agent.cli("ps", "--json", "--sort", flag).stdout)["processes"] if p[field] is not None]
            equal(shown, sorted(shown, reverse=descending), flag)
        groups = json.loads(agent.cli("ps", "--json", "--by", "user").stdout)["groups"]
        equal(agent.cli("ps", "--csv", "--by", "user", "--columns", "processes").stdout, "processes\n" + "".join(f"{group['processes']}\n" for group in groups))


def test_colours_are_as_asked_for():
    with Agent() as agent:
        for flags, coloured in (([], False), (["--color=always"], True), (["--color", "never"], False), (["--color=auto"], False)):
            for name in ("gpus", "doctor"):
                equal("\033[" in agent.cli(name, *flags).stdout, coloured, (name, flags))
        equal("\033[" in agent.cli("gpus", "--color=always", NO_COLOR="1").stdout, True, "asked for")
    out = command("gpus", "--color=green")
    equal((out.returncode, out.stderr), (2, 'gpusonde gpus: --color cannot be "green": it must be auto, always or never\n'))


def test_short_flags():
    equal(command("-V").stdout, command("--version").stdout)
    equal(command("gpus", "-V").stdout, command("--version").stdout)
    with Agent() as agent:
        equal(set(json.loads(agent.cli("gpus", "-j").stdout)), set(json.loads(agent.cli("gpus", "--json").stdout)))
        out = agent.cli("gpus", "-w", "0")
    equal(out.returncode, 2)
    contains(out.stderr, "--watch cannot be")


def test_installed_pages_are_readable():
    for name in ("configuration.md", "gpusonde.yaml", "man-commands", "man-options", "man-keys", "man-statuses"):
        out = command("help", "--generate", name)
        equal(out.returncode, 0)
        assert len(out.stdout) > 500, name
    equal(command("help", "--generate", "nonsense").returncode, 2)


if __name__ == "__main__":
    run()
