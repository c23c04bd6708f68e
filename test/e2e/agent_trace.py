#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent traces CUDA programs by itself: its figures are compared with what the simulated CUDA says that it was called for."""
import contextlib
import os
import signal
import subprocess

from lib.e2e import BUILD, PATIENCE_S, Agent, Skip, comm, equal, run, values, wait_for
from lib.traced import BUSY, DRIVER, SCENARIO, Workload, all_counted, begun, counted, probed, probed_when_loaded, process_of, trace_of, traced

THUNKS = f"{BUILD}/sim/cuda/thunk/libcuda.so.1" # entry points as in NVIDIA's driver


def tracing(*flags, **kwargs):
    """An agent that traces, or a skip."""
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    return Agent("--trace-enabled", "yes", *flags, scenario=SCENARIO, **kwargs)


def totals(agent):
    """Sums over all processes."""
    return traced(trace_of(agent)["calls"])


def at_least(got, wanted):
    return all(api in got and got[api][0] >= n and got[api][2] >= size and
               all(got[api][1].get(code, 0) >= k for code, k in errors.items()) for api, (n, errors, size) in wanted.items())


def counted_exactly(library):
    if not os.path.exists(library):
        raise Skip("not built for this machine")
    with tracing() as agent:
        begun(agent)
        with Workload(agent, BUSY + "; pause", library) as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            wanted = all_counted(agent, workload)
            # Its first call was seen to be cuInit, so nothing can be missing.
            equal(process_of(agent, workload.process.pid)["incomplete"], [], "incomplete")
            assert at_least(totals(agent), wanted), totals(agent)
            page = agent.metrics()
            for api, (count, errors, _) in wanted.items():
                assert sum(values(page, "gpusonde_cuda_calls_total", api=api)) >= count, api
                assert sum(values(page, "gpusonde_cuda_call_duration_seconds_count", api=api)) >= count, api
                assert sum(values(page, "gpusonde_cuda_call_errors_total", api=api)) >= sum(errors.values()), api
            events = trace_of(agent)["events"]
            equal(events["produced"], events["received"] + events["dropped"], "events")
            workload.end()
        # Its sums stay when it is gone.
        wait_for(lambda: process_of(agent, workload.process.pid) is None, "the process to be forgotten")
        assert at_least(totals(agent), wanted), totals(agent)


def test_findings():
    """A rule is judged as soon as there is what it judges by; without the option there is nothing."""
    with tracing() as agent:
        equal(agent.get("/api/v1/findings").status, 404)
        equal(values(agent.metrics(), "gpusonde_finding_active"), [])
    with tracing("--trace-analysis", "yes") as agent:
        begun(agent)
        with Workload(agent, BUSY + "; pause", DRIVER) as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            wait_for(lambda: values(agent.metrics(), "gpusonde_finding_active", finding="copy_bound") == [0], "copies to be judged")
            document = agent.get("/api/v1/findings").json()
            rules = {rule["finding"]: rule for rule in document["rules"]}
            equal((rules["copy_bound"]["judged"], rules["copy_bound"]["active"]), (True, 0))
            equal((rules["hang"]["judged"], rules["hang"]["missing_evidence"]), (False, ["operations of NCCL"]))
            equal(values(agent.metrics(), "gpusonde_finding_active", finding="hang"), [])
            assert document["events"] > 0, document
            workload.end()


def test_late_dlopen_is_counted_exactly():
    counted_exactly(DRIVER)


def test_entry_points_as_in_nvidias_driver():
    counted_exactly(THUNKS)


def test_many_threads():
    with tracing() as agent:
        begun(agent)
        script = "api driver; threads 64; init; repeat 200; launch; alloc 4096; bad alloc; free all; end; sync; end; pause"
        with Workload(agent, script) as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            all_counted(agent, workload)
            workload.end()


def test_found_by_scan():
    """A program that ran before the agent: what it had done before is said to be unknown."""
    with Agent(scenario=None, wait=False) as elsewhere: # for its folder
        with Workload(elsewhere, "api driver; init; alloc 4096; pause; repeat 50; launch; end; sync; pause") as workload:
            workload.ready()
            workload.go_on()
            workload.ready()
            with tracing() as agent:
                begun(agent)
                probed(agent, workload.process.pid, workload.library)
                workload.go_on()
                workload.ready()
                process = wait_for(lambda: process_of(agent, workload.process.pid), "the process to be shown")
                wait_for(lambda: counted(agent, workload).get("cuLaunchKernel", (0,))[0] == 50, "launches to be counted")
                assert "cuMemAlloc_v2" not in counted(agent, workload), counted(agent, workload)
                assert "late" in process["incomplete"], process
                workload.end()


def test_calls_right_after_dlopen():
    """What was called before the probes were there is not counted, and that is said; or all was."""
    with tracing() as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 3000000; launch; end; pause", wait=False) as workload:
            wait_for(lambda: counted(agent, workload).get("cuLaunchKernel", (0,))[0] > 0, "launches")
            process = process_of(agent, workload.process.pid)
            equal("late" in process["incomplete"], "cuInit" not in traced(process["calls"]), "late, as cuInit was missed")


def test_killed_agent_does_no_harm():
    with tracing() as agent:
        begun(agent)
        with Workload(agent, "api driver; init; threads 4; init; repeat 30000; launch; end; end; sync; pause; repeat 50; launch; end; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            wait_for(lambda: counted(agent, workload).get("cuLaunchKernel", (0,))[0] > 0, "launches")
            agent.signal(signal.SIGKILL)
            agent.process.wait()
            workload.ready()
            workload.go_on()
            workload.ready()
            assert sum(n for n, _, _ in workload.truth().values()) > 120000
            workload.end()


def test_ends_while_tracing():
    with tracing() as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 1000000; launch; end; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            wait_for(lambda: counted(agent, workload).get("cuLaunchKernel", (0,))[0] > 0, "launches")
            _, status = agent.stop()
            equal(status, 0, "the agent's status")


def marked(agent, workload, mark):
    """The workload's process, once it is marked so."""
    return wait_for(lambda: (p := process_of(agent, workload.process.pid)) and mark in p["incomplete"] and p, f"to be marked {mark}")


def test_overflow():
    """While the agent stands still its ring fills up: what is lost is counted to the event, and the sums lose nothing."""
    with tracing("--trace-buffer", "64KiB") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 20000; launch; end; sync; pause") as workload:
            probed_when_loaded(agent, workload)
            agent.signal(signal.SIGSTOP)
            workload.go_on()
            workload.ready()
            agent.signal(signal.SIGCONT)
            all_counted(agent, workload)
            found = trace_of(agent)["events"]
            assert found["dropped"] > 10000, found
            # Others on this machine may go on calling while the figures are read.
            wait_for(lambda: (e := trace_of(agent)["events"]) and e["produced"] == e["received"] + e["dropped"],
                     "every event to be received or counted as dropped")
            marked(agent, workload, "lost_events")
            wait_for(lambda: "were lost" in agent.log(), "the log to tell")
            workload.end()


def test_budget():
    """Far too expensive: events go first, then the returns of launches, then probes; each is said, and counts go on for what is left."""
    with tracing("--trace-max-overhead", "0.01%") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 2000000000; launch; end") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            process = marked(agent, workload, "events_off")
            assert process["overhead_ratio"] > 0.0001, process
            process = marked(agent, workload, "no_launch_returns")
            assert "probes_given_up" not in process["incomplete"], process["incomplete"]
            before = counted(agent, workload)["cuLaunchKernel"][0]
            wait_for(lambda: counted(agent, workload)["cuLaunchKernel"][0] > before, "launches to be counted nevertheless")
            marked(agent, workload, "probes_given_up")
            wait_for(lambda: values(agent.metrics(), "gpusonde_trace_sites", state="given_up")[0] > 0, "sites given up")
            wait_for(lambda: "launch calls" in agent.log(), "the log to tell")
            # Taken back after half a minute.
            wait_for(lambda: "probed again" in agent.log(), "probes to be taken back")


def test_launches_without_returns():
    """They are counted, whatever became of them; all other calls are whole."""
    with tracing("--trace-launch-returns", "no") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; alloc 4096; repeat 200; launch; end; sync; pause; free; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            process = wait_for(lambda: (p := process_of(agent, workload.process.pid)) and
                               next((c["count"] for c in p["calls"] if c["api"] == "cuLaunchKernel"), 0) == 200 and p, "every launch to be counted")
            calls = {call["api"]: call for call in process["calls"]}
            equal((calls["cuLaunchKernel"]["timed"], calls["cuMemAlloc_v2"]["timed"]), (0, 1))
            equal(process["incomplete"], ["no_launch_returns"])
            device = next(d for d in wait_for(lambda: process_of(agent, workload.process.pid)["devices"], "its device"))
            equal((device["launches_total"], device["memory_bytes"]["device"]), (200, 4096))
            assert "launches_total" in device["estimated"] and "memory_bytes.device" not in device["estimated"], device["estimated"]
            workload.go_on()
            workload.ready()
            wait_for(lambda: process_of(agent, workload.process.pid)["devices"][0]["memory_bytes"]["device"] == 0, "the free to be seen")
            workload.end()


def test_not_wanted():
    with Agent("--trace-enabled", "no", scenario=SCENARIO) as agent:
        found = wait_for(lambda: trace_of(agent), "the trace to be shown")
        equal(found["enabled"], False)
        assert "trace.enabled" in found["why"], found
        equal(values(agent.metrics(), "gpusonde_source_up", source="trace"), [], "a source that is not wanted is not down")


def test_without_privileges():
    """auto: no tracing, the reason, and no error."""
    if os.geteuid() != 0:
        raise Skip("needs root, to give it up")
    with contextlib.ExitStack() as stack:
        agent = Agent("--trace-enabled", "auto", scenario=SCENARIO, wait=False)
        os.chmod(agent.tmp, 0o777)
        real = subprocess.Popen

        def unprivileged(args, **kwargs):
            return real(["setpriv", "--bounding-set=-all", "--inh-caps=-all", *args], **kwargs)
        subprocess.Popen = unprivileged
        try:
            stack.enter_context(agent)
        finally:
            subprocess.Popen = real
        agent.wait_ready()
        found = wait_for(lambda: (t := trace_of(agent)) and t["why"] and t, "the reason")
        equal(found["enabled"], False)
        assert "CAP_BPF" in found["why"], found


def detaching():
    """Processes that hold the probes of an agent that has ended."""
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and comm(pid) == "gpusonde-detach"]


def test_its_end_is_not_the_kernels():
    """What the kernel takes to remove probes is another process's time; then none is left."""
    before = set(detaching())
    with tracing() as agent:
        begun(agent)
        with Workload(agent, BUSY + "; pause", DRIVER) as workload:
            probed_when_loaded(agent, workload)
            agent.signal(signal.SIGTERM)
            equal(agent.process.wait(PATIENCE_S), 0, "status")
            wait_for(lambda: not set(detaching()) - before, "the probes to be removed")
            workload.go_on()
            workload.ready()


if __name__ == "__main__":
    run()
