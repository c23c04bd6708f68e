#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --kernels: every launch of nvcc's programs is named, counted in its shape and described; against what the programs say."""
import json
import signal
import subprocess
import sys
import tempfile
import time

from lib.e2e import GPUSONDE, PATIENCE_S, SIMULATED, Agent, command, contains, environment, equal, run, wait_for
from lib.traced import chosen_sites, holds_links, patched, tracing

from launches import KERNELS, MODULES, SIM, SIMULATION, Waiting, agrees, argv, described, named_for_people, nameless, program, truths


def surroundings():
    return environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY=SIMULATED, **SIMULATION)


def traced(name, *arguments, flags=("--json",), told=None):
    command_line = argv(name, *arguments)
    tracing()
    done = subprocess.run([GPUSONDE, "trace", "--kernels", *flags, "--", *command_line], env=surroundings(), capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False, input=told)
    equal(done.returncode, 0, done.stderr)
    return done


def kernels(name, *arguments, told=None):
    """pid -> (what it says, what was seen of it)."""
    done = traced(name, *arguments, told=told)
    document = json.loads(done.stdout.splitlines()[-1])["kernels"]
    seen = {process["pid"]: process["kernels"] for process in document["processes"]}
    said = {truth["pid"]: truth for truth in truths(done.stdout.splitlines()) if "launches" in truth}
    assert said, done.stdout
    equal(set(seen), set(said), "processes")
    equal(document["processes_left_out"], 0, "processes left out")
    return [(said[pid], seen[pid]) for pid in said]


def all_named(name, *arguments, told=None):
    for said, rows in kernels(name, *arguments, told=told):
        agrees(rows, said)


def test_kernels_of_all_kinds():
    (said, rows), = kernels("kernels-shared")
    agrees(rows, said)
    named_for_people(rows)
    # There is an image for the device.
    for row in rows:
        described(row)
        equal(row["arch"], "sm_90", row["name"])


def test_stripped():
    all_named("kernels-shared-stripped")


def test_runtime_in_the_program():
    all_named("kernels-sim")


def test_runtime_in_the_program_stripped():
    all_named("kernels-sim-stripped")


def test_at_fixed_addresses():
    all_named("kernels-no-pie")
    all_named("kernels-no-pie-stripped")


def test_relocatable_device_code():
    all_named("kernels-rdc")
    all_named("kernels-rdc-stripped")


def test_a_child_without_a_program_of_its_own():
    all_named("kernels-sim", "--fork")


def test_a_library_loaded_later():
    all_named("plugin_host", "plugin.so")


def test_device_code_loaded_by_the_drivers_interface():
    all_named(*MODULES)


def follow(waiting, *libraries):
    """What is seen of a program that runs, from now on, and what it says."""
    with subprocess.Popen([GPUSONDE, "trace", "--kernels", "--json", "-p", str(waiting.pid)], env=surroundings(),
                          stdout=subprocess.PIPE, text=True) as tracer:
        try:
            for library in libraries:
                path = f"{waiting.libraries}/{library}"
                sites = chosen_sites(path)
                wait_for(lambda path=path, sites=sites: patched(waiting.pid, path) and holds_links(tracer.pid, path, sites), f"probes in {path}")
            waiting.go_on()
            waiting.launched()
            time.sleep(3) # its launches are named meanwhile, the rest now, while the program is still there
            tracer.send_signal(signal.SIGINT)
            document = json.loads(tracer.communicate(timeout=PATIENCE_S)[0])
            said = waiting.end()
        finally:
            tracer.kill()
    process, = document["kernels"]["processes"]
    return process["kernels"], said


def test_running_programs():
    """Of what they launched before nothing is known; what they launch now is named all the same."""
    for arguments in [*KERNELS, MODULES]:
        argv(*arguments)
        tracing()
        libraries = ("libcuda.so.1",) if "-sim" in arguments[0] or arguments == MODULES else ("libcuda.so.1", "libcudart.so.13")
        with tempfile.TemporaryDirectory() as tmp, Waiting(tmp, *arguments) as waiting:
            rows, said = follow(waiting, *libraries)
        (nameless if arguments == MODULES else agrees)(rows, said, part=0.5)


def test_ends_under_signals():
    """A handler without SA_RESTART and a thousand signals a second: nothing of ours is in the way of its end."""
    tracing()
    script = "import os, signal; signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, True); " \
             "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.001); [sum(range(1000)) for _ in range(100)]; os._exit(0)"
    loop = f"for i in $(seq 100); do {sys.executable} -S -c '{script}' || exit $?; done"
    done = command("trace", "--kernels", "--", "sh", "-c", loop)
    equal(done.returncode, 0, done.stderr)


def test_the_table():
    done = traced("kernels-shared", flags=("--full",))
    contains(done.stderr, "KERNEL")
    contains(done.stderr, "outer::inner::spaced(int*)")
    contains(done.stderr, "void filled<int, 4>(")
    assert "could not be named" not in done.stderr, done.stderr
    brief = traced("kernels-shared", flags=()).stderr
    contains(brief, "filled<...>")
    assert "outer::inner" not in brief, brief


def test_without_a_driver():
    """No devices, so no figures: names all the same."""
    name = program("kernels-shared")
    tracing()
    done = subprocess.run([GPUSONDE, "trace", "--kernels", "--json", "--", name],
                          env=environment(LD_LIBRARY_PATH=SIM, GPUSONDE_NVML_LIBRARY="/nonexistent", **SIMULATION),
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    equal(done.returncode, 0, done.stderr)
    process, = json.loads(done.stdout.splitlines()[-1])["kernels"]["processes"]
    said, = truths(done.stdout.splitlines())
    agrees(process["kernels"], said)
    assert all(row["registers"] is None and row["theoretical_occupancy_ratio"] is None for row in process["kernels"]), process


def test_nothing_launched():
    tracing()
    done = command("trace", "--kernels", "--", "true")
    equal(done.returncode, 0, done.stderr)
    contains(done.stderr, "No launch of a kernel was seen.")


def test_its_own_status():
    """How a command ends is the command's."""
    tracing()
    for script, status in (("exit 7", 7), ("kill -TERM $$", 143), ("(exit 3); exec sh -c 'exit 5'", 5), ("sleep 0.1 & exit 4", 4)):
        equal(command("trace", "--kernels", "--", "sh", "-c", script).returncode, status, script)


def test_no_command_is_no_trace_of_everything():
    """Before anything is probed, and as anybody."""
    for arguments in (["--"], ["--kernels", "--full", "--"], ["-p", "1", "--"]):
        done = command("trace", *arguments)
        equal((done.returncode, done.stdout), (2, ""), str(arguments))
        contains(done.stderr, "no command after --")


def test_mistakes_name_their_remedy():
    for arguments, words in ((["--kernels", "--raw"], "leave out one"), (["--full"], "--kernels"),
                             (["--kernels", "--full", "--json"], "--full has no effect with --json")):
        done = command("trace", *arguments, "--", "true")
        equal(done.returncode, 2, str(arguments))
        contains(done.stderr, words)


def test_a_driver_that_is_slow():
    """It is waited for longer than a second, while nothing is traced yet."""
    tracing()
    with tempfile.TemporaryDirectory() as tmp:
        control = f"{tmp}/control.yaml"
        with open(control, "w", encoding="ascii") as f:
            f.write("faults:\n  - {hang: 2s, functions: nvmlDeviceGetCount_v2}\n")
        done = subprocess.run([GPUSONDE, "trace", "--kernels", "--json", "-o", "-", "--", "true"], env=dict(surroundings(), GPUSONDE_SIM_CONTROL=control),
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    equal((done.returncode, done.stderr), (0, ""))


def workload(script, *flags, **env):
    tracing()
    done = subprocess.run([GPUSONDE, "trace", "--kernels", "--json", "-o", "-", *flags, "--", f"{SIM}/workload", script], env=dict(surroundings(), **env),
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    equal((done.returncode, done.stderr), (0, ""))
    document = json.loads(done.stdout.splitlines()[-1])
    process, = document["processes"]
    of_kernels, = document["kernels"]["processes"]
    equal((process["incomplete"], of_kernels["incomplete"]), ([], []), "both say the same")
    return of_kernels


def test_what_is_never_freed():
    """In the JSON and in the table; and a kernel in no file is called as the runtime looked it up."""
    script = "alloc 4096; alloc 1048576; alloc 4096; launch; launch; sync; free; alloc 512 host"
    process = workload(script)
    leaked = process["leaked"]
    equal((leaked["allocations"], leaked["bytes"], leaked["other_allocations"], leaked["estimated"]), (3, 1048576 + 4096 + 512, 0, False))
    equal([(s["bytes"], s["allocations"]) for s in leaked["sizes"]], [(1048576, 1), (4096, 1), (512, 1)])
    kernel, = process["kernels"]
    equal((kernel["name"], kernel["source"], kernel["launches_total"]), ("work", "handle", 2))
    done = command("trace", "--kernels", "--", f"{SIM}/workload", script, env=surroundings())
    contains(done.stderr, "LEAKED BY")
    contains(done.stderr, "1 x 1.0 MiB, 1 x 4.0 KiB, 1 x 512 B")
    equal(workload("alloc 4096; launch; sync; free")["leaked"]["allocations"], 0)


def test_beside_an_agent():
    """The devices are the agent's: this command knows no driver."""
    none = {"GPUSONDE_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so.1"}
    with Agent() as agent:
        with_agent = workload("launch; sync", "--socket", agent.socket, **none)
        alone = workload("launch; sync", "--socket", "none", **none)
        uuids = {gpu["uuid"] for gpu in agent.get("/api/v1/gpus").json()["gpus"]}
    assert with_agent["kernels"][0]["uuid"] in uuids, with_agent
    equal(alone["kernels"][0]["uuid"], None)


if __name__ == "__main__":
    run()
