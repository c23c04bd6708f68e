# SPDX-License-Identifier: Apache-2.0
"""gpusonde trace --python: waits for the interpreter's lock, collections of garbage and calls from C, on each CPython that is here."""
import json
import os
import re
import subprocess
import tempfile

from e2e.stacks import interpreters
from lib.e2e import GPUSONDE, SOURCE, Agent, command, contains, environment, equal, run, values, wait_for
from lib.traced import SCENARIO, begun, process_of, tracing

CALLS = f"{SOURCE}/test/e2e/gil_calls.py"
ENV = environment(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")


def traced(python, *argv, flags=()):
    """What the program says, and the document."""
    with tempfile.TemporaryDirectory() as tmp:
        done = command("trace", "--python", "--json", f"--output={tmp}/x.json", *flags, "--", python, CALLS, *argv, env=ENV)
        equal(done.returncode, 0, done.stderr)
        with open(f"{tmp}/x.json") as file:
            return done.stdout.split(), json.load(file)


def only_process(document):
    equal(len(document["python"]["processes"]) <= 1, True, document["python"])
    return document["python"]["processes"][0] if document["python"]["processes"] else None


def is_named(path):
    with open(path, "rb") as file:
        return b"invoke_gc_callback" in file.read()


def each():
    """Path of each interpreter, and whether it has symbols of its own functions."""
    tracing()
    for path, version in sorted(interpreters().items()):
        done = subprocess.run([path, "-c", "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED'))"], capture_output=True,
                              text=True)
        maps = subprocess.run([path, "-c", "print(open('/proc/self/maps').read())"], capture_output=True, text=True).stdout
        files = {line.split()[-1] for line in maps.splitlines() if re.search(r"/(lib)?python3[^/]*$", line)}
        yield path, version, any(map(is_named, files)), done.stdout.strip() == "1"


def test_a_thread_waits_while_another_one_holds_the_lock():
    for path, version, _, free in each():
        if free:
            continue
        said, document = traced(path, "waits", "0.3")
        process = only_process(document)
        threads = {thread["tid"]: thread for thread in process["waiting_threads"]}
        longest = threads[int(said[0])]["longest_seconds"]
        # It wants the lock all the time, so it waits for as long as the other one holds it: in pieces of 5 ms, which are one wait.
        equal(longest >= 0.25, True, f"{version}: {document['python']}")
        equal(sum(thread["count"] for thread in threads.values()), process["gil_waits"]["count"], version)
        equal(process["gil_waits"]["longest_seconds"] >= longest, True, version)
        equal(process["incomplete"], False)


def test_each_turn_is_one_wait():
    """
    A thread that waits stands still, and says how often it did. It waits while each of two others has its turn, so in two of the pieces that the
    interpreter waits in: were these counted, or the turns of others, waits would be twice as many. It does not notice a wait before its loop and one after.
    """
    for path, version, _, free in each():
        if free:
            continue
        said, document = traced(path, "turns", "0.6", "0.02")
        threads = {thread["tid"]: thread["count"] for thread in only_process(document)["waiting_threads"]}
        counts, stood = [threads[tid] for tid in map(int, said[::2])], list(map(int, said[1::2]))
        print(f"# {version}: {counts} waits, the threads stood still {stood} times", flush=True)
        equal(0 < sum(counts) <= sum(stood) + 6, True, f"{version}: {counts} waits, and the threads stood still {stood} times")


def check_garbage(document, counts, version):
    """As the interpreter counts it. From 3.13 on it chooses the generation itself, where the program asks for none."""
    found = {row["generation"]: row for row in document["python"]["collections"]}
    equal(sum(row["count"] for row in found.values()), sum(counts), f"{version}: {found}")
    for row in found.values():
        equal(0 < row["longest_seconds"] <= row["seconds"], True, found)
    for generation, number in enumerate(counts):
        equal(found.get(str(generation), {"count": 0})["count"] <= number, True, f"{version}: {found}")


def test_what_a_single_thread_does():
    unseen = []
    for path, version, named, _ in each():
        said, document = traced(path, "alone", "1000")
        equal(document["python"]["gil_waits"]["count"], 0, f"it waited for no lock: {version}: {document['python']}")
        calls = {call["api"]: call["count"] for call in document["calls"]}
        # The interpreter itself calls it some hundred times.
        equal(1000 <= calls["PyObject_CallFunction"] < 2000, True, f"{version}: {calls}")
        if named:
            check_garbage(document, [int(count) for count in said], version)
        else:
            equal(document["python"]["collections"], [], version)
            unseen.append(version)
    if unseen:
        print(f"# without symbols of its functions, so that no collection of garbage was looked at: {unseen}")


def test_each_event_is_a_line():
    tracing()
    done = command("trace", "--python", "--raw", "--output=-", "--", "/usr/bin/python3", CALLS, "waits", "0.1", env=ENV)
    equal(done.returncode, 0, done.stderr)
    lines = [line for line in done.stdout.splitlines() if " GIL " in line]
    equal(len(lines) > 0, True, done.stdout)
    contains(lines[0], "waits ")
    contains(lines[0], "longest_ns ")
    contains(done.stdout, " PyObject_CallFunction")


def watches_switches(pid):
    """Whether the process holds a link on the tracepoint sched_switch."""
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as file:
                if "sched_switch" in file.read():
                    return True
        except FileNotFoundError:
            pass
    return False


def test_threads_are_looked_at_only_where_there_is_an_interpreter():
    tracing()
    python = sorted(interpreters())[0]
    with subprocess.Popen([GPUSONDE, "trace", "--python", "--", "sh", "-c", 'read x; exec "$0" -c "input()"', python], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV) as tracer:
        # They are from its start on, and no more once no interpreter is found.
        wait_for(lambda: watches_switches(tracer.pid), "tracing to begin")
        wait_for(lambda: not watches_switches(tracer.pid), "threads not to be looked at beside a shell")
        tracer.stdin.write(b"\n")
        tracer.stdin.flush()
        wait_for(lambda: watches_switches(tracer.pid), "threads to be looked at beside Python")
        tracer.communicate(b"\n")
        equal(tracer.returncode, 0)


def test_the_agent_tells_it():
    tracing()
    with Agent("--trace-enabled", "yes", "--trace-python", "yes", scenario=SCENARIO) as agent:
        begun(agent)
        program = subprocess.Popen(["/usr/bin/python3", CALLS, "until"], stdin=subprocess.PIPE, env=ENV)
        pid = str(program.pid)

        def waited():
            return sum(values(agent.metrics(), "gpusonde_process_python_gil_wait_seconds_total", pid=pid))

        wait_for(lambda: waited() > 0.1, "its waits to be told")
        of = process_of(agent, program.pid)["python"]
        equal(of["gil_waits"]["count"] > 0 and len(of["waiting_threads"]) >= 2, True, of)
        program.stdin.close()
        program.wait()
        wait_for(lambda: not values(agent.metrics(), "gpusonde_process_python_gil_wait_seconds_total", pid=pid), "it to be forgotten")
        # Its waits stay in the sum.
        equal(sum(values(agent.metrics(), "gpusonde_python_gil_wait_seconds_total")) > 0.1, True, agent.metrics())


if __name__ == "__main__":
    run()
