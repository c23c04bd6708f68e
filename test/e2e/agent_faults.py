#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver misbehaves: pages keep answering, say so, and recover unaided."""
import os
import signal
import tempfile
import time

from lib.e2e import Agent, Worker, alive, driver_children, contains, equal, run, samples, values, wait_for

TWO_GPUS = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: h100-sxm}\n"
# The child is given up after so long, to have the tests soon done.
IMPATIENT = ("--nvml-call-timeout", "1s")
PROMPT_S = 1 # a page is served from memory: what takes longer waits for the driver


def prompt(agent, path):
    begin = time.monotonic()
    reply = agent.get(path)
    assert time.monotonic() - begin < PROMPT_S, f"{path} took {time.monotonic() - begin:.1f} s"
    return reply


def all_stale(agent):
    stale = values(prompt(agent, "/metrics").text, "gpusonde_gpu_stale")
    return len(stale) > 0 and all(v == 1 for v in stale)


def test_a_hang_makes_numbers_old_not_pages_slow():
    with Agent(*IMPATIENT) as agent:
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        wait_for(lambda: all_stale(agent), "every GPU to be stale")
        contains(agent.wait_not_ready(), "nvmlDeviceGetPowerUsage")
        for path in ("/metrics", "/metrics/dcgm", "/api/v1/snapshot", "/healthz"):
            equal(prompt(agent, path).status, 200, path)
        equal(len(values(agent.metrics(), "gpusonde_gpu_power_watts")), 8)
        assert agent.get("/api/v1/gpus").json()["gpus"][0]["stale"]
        assert values(agent.metrics(), "gpusonde_collections_overdue_total") > [0]
        contains(agent.cli("gpus").stdout, "stale")
        agent.fault()
        agent.wait_ready()
        wait_for(lambda: not any(values(agent.metrics(), "gpusonde_gpu_stale")), "fresh values")


def trouble(page):
    return [series for series in samples(page) if series.startswith("gpusonde_driver_state{")]


def test_a_hang_is_one_series():
    """However long it goes on, and though children are killed and replaced meanwhile."""
    with Agent(*IMPATIENT) as agent:
        equal(trouble(agent.metrics()), ['gpusonde_driver_state{state="ok",reason=""}'])
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        agent.wait_not_ready("nvmlDeviceGetPowerUsage does not return")
        first = {path: trouble(agent.get(path).text) for path in ("/metrics", "/metrics/dcgm")}
        for series in first.values():
            equal(len(series), 1)
            contains(series[0], 'state="stale",reason="nvmlDeviceGetPowerUsage does not return')
        killed = agent.log().count("killed process")
        for _ in range(4):
            time.sleep(1)
            equal({path: trouble(agent.get(path).text) for path in first}, first)
        wait_for(lambda: agent.log().count("killed process") > killed, "a child to be replaced")
        equal({path: trouble(agent.get(path).text) for path in first}, first)
        agent.fault()
        agent.wait_ready()
        equal(trouble(agent.metrics()), ['gpusonde_driver_state{state="ok",reason=""}'])


def test_a_hang_is_one_story_in_the_log():
    with Agent(*IMPATIENT) as agent:
        agent.fault("hang: while, functions: nvmlDeviceGetPowerUsage")
        wait_for(lambda: agent.log().count("killed process") >= 2, "children to be killed and replaced")
        for _ in range(3):
            contains(agent.wait_not_ready(), "nvmlDeviceGetPowerUsage does not return")
        equal(agent.log().count("does not return"), 1)
        assert "answers again" not in agent.log(), agent.log()
        agent.cli("release")
        assert "answers again" not in agent.log(), agent.log()
        agent.fault()
        agent.cli("resume")
        agent.wait_ready()
        equal(agent.log().count("the driver answers again"), 1)


def test_ends_within_two_seconds_while_the_driver_hangs():
    with Agent() as agent:
        agent.fault("hang: forever")
        agent.wait_not_ready()
        pids = driver_children(agent.process.pid)
        seconds, status = agent.stop()
        equal(status, 0)
        assert seconds < 2, f"took {seconds:.1f} s"
        wait_for(lambda: not any(alive(p) for p in pids), "the child to end")


def test_a_killed_agent_leaves_no_hanging_child():
    with Agent() as agent:
        agent.fault("hang: forever")
        agent.wait_not_ready()
        pids = driver_children(agent.process.pid)
        agent.process.kill()
        agent.process.wait()
        wait_for(lambda: not any(alive(p) for p in pids), "the child to end")


def test_a_crash_in_the_library_is_not_ours():
    with Agent(ASAN_OPTIONS="handle_segv=0") as agent: # where sanitizers are built in: do not make it a tidy end
        agent.fault("crash: true, functions: nvmlDeviceGetTemperature*")
        wait_for(lambda: values(agent.metrics(), "gpusonde_driver_child_crashes_total") > [0], "a crash to be counted")
        contains(agent.wait_not_ready(), "crash")
        agent.fault()
        agent.wait_ready()


def test_a_killed_child_is_replaced():
    with Agent() as agent:
        first = driver_children(agent.process.pid)
        before = values(agent.metrics(), "gpusonde_gpu_energy_joules_total", gpu="0")
        os.kill(first[0], signal.SIGKILL)
        wait_for(lambda: set(driver_children(agent.process.pid)) - set(first), "another child")
        wait_for(lambda: values(agent.metrics(), "gpusonde_driver_child_starts_total") > [1], "a second start to be counted")
        agent.wait_ready()
        assert values(agent.metrics(), "gpusonde_gpu_energy_joules_total", gpu="0") >= before


def test_counters_never_fall_over_faults():
    with Agent(*IMPATIENT, scenario=TWO_GPUS) as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_busy_seconds_total", engine="gpu"), "busy seconds")
        last = {}

        def never_falls():
            page = agent.metrics()
            for name in ("gpusonde_gpu_busy_seconds_total", "gpusonde_gpu_energy_joules_total", "gpusonde_gpu_observed_seconds_total"):
                for gpu in ("0", "1"):
                    for now in values(page, name, gpu=gpu)[:1]:
                        assert now >= last.get((name, gpu), 0), f"{name} of GPU {gpu} fell from {last[name, gpu]} to {now}"
                        last[name, gpu] = now
            return True
        for fault in ("crash: true, functions: nvmlDeviceGetTemperature*", "unloaded: true", "hang: while"):
            never_falls()
            agent.fault(fault)
            wait_for(lambda: never_falls() and agent.get("/readyz").status == 503, f"trouble after {fault}")
            agent.fault()
            wait_for(lambda: never_falls() and agent.get("/readyz").status == 200, f"recovery from {fault}")


def test_an_unloaded_driver_comes_back():
    with Agent(scenario=TWO_GPUS) as agent:
        agent.fault("unloaded: true")
        agent.wait_not_ready()
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_present") == [0, 0], "both GPUs to be absent")
        agent.fault()
        agent.wait_ready()
        wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_present") == [1, 1], "both GPUs to be present")


def test_a_lost_gpu_is_present_0():
    for fault in ("lost: true, gpus: 1", "removed: true, gpus: 1"):
        with Agent(scenario=TWO_GPUS) as agent:
            agent.fault(fault)
            wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_present") == [1, 0], f"GPU 1 to be absent: {fault}")
            equal(values(agent.metrics(), "gpusonde_gpu_power_watts", gpu="1"), [])
            assert values(agent.metrics(), "gpusonde_gpu_power_watts", gpu="0")
            contains(agent.cli("doctor").stdout, "1 GPU, and 1 that is lost or not accessible")
            agent.fault()
            wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_present") == [1, 1], "GPU 1 to return")
            gone = "is lost" if "lost" in fault else "was removed"
            equal([agent.log().count(words) for words in (gone, "is back")], [1, 1], agent.log())


def test_sentinels_are_refused_and_counted():
    with Agent(scenario=TWO_GPUS) as agent:
        agent.fault("sentinel: default, gpus: 0, functions: nvmlDeviceGetPowerUsage")
        wait_for(lambda: not values(agent.metrics(), "gpusonde_gpu_power_watts", gpu="0"), "power of GPU 0 to be absent")
        assert sum(values(agent.metrics(), "gpusonde_rejected_samples_total")) > 0
        assert values(agent.metrics(), "gpusonde_gpu_power_watts", gpu="1")
        unavailable = agent.get("/api/v1/gpus").json()["gpus"][0]["unavailable"]
        equal(unavailable.get("power_watts"), "rejected")


def test_release_and_resume():
    with Agent(scenario=TWO_GPUS) as agent:
        equal(agent.cli("release").returncode, 0)
        contains(agent.log(), f"audit: /control/release by uid {os.geteuid()}, pid ")
        equal(driver_children(agent.process.pid), [])
        contains(agent.wait_not_ready(), "resume")
        wait_for(lambda: all_stale(agent), "the values to be stale")
        contains(agent.cli("gpus").stdout, "SIMULATED")
        equal(values(agent.metrics(), "gpusonde_gpu_present"), [1, 1])
        again = agent.cli("resume")
        equal((again.returncode, again.stderr), (0, ""))
        agent.wait_ready()


def test_a_driver_that_crashes_when_taken_back_is_not_released():
    with Agent(scenario=TWO_GPUS) as agent:
        equal(agent.cli("release").returncode, 0)
        contains(trouble(agent.metrics())[0], 'state="released"')
        agent.fault("crash: true, functions: nvmlInit*")
        equal(agent.get("/control/resume", method="POST", unix=True).status, 202)
        wait_for(lambda: 'state="stale"' in trouble(agent.metrics())[0], "the driver not to be called released")
        wait_for(lambda: "crash" in trouble(agent.metrics())[0], "the reason")
        status = agent.get("/control/status", unix=True).json()
        equal((status["released"], status["state"], status["ready"]), (False, "stale", False))
        doctor = agent.cli("doctor").stdout
        assert "gpusonde resume" not in doctor, doctor
        agent.fault()
        agent.wait_ready()


def test_resume_of_a_driver_that_is_gone_fails():
    with Agent(scenario=TWO_GPUS) as agent:
        equal(agent.cli("release").returncode, 0)
        agent.fault("unloaded: true")
        again = agent.cli("resume")
        equal((again.returncode, again.stdout), (1, ""))
        contains(again.stderr, "could not attach to the driver again: ")
        contains(again.stderr, "Driver Not Loaded")
        agent.fault()
        agent.wait_ready()
        equal(agent.cli("resume").returncode, 0)


def test_release_while_the_driver_hangs():
    with Agent(*IMPATIENT, scenario=TWO_GPUS) as agent:
        agent.fault("hang: while")
        agent.wait_not_ready()
        equal(agent.cli("release").returncode, 0)
        equal(driver_children(agent.process.pid), [])


def test_processes_are_folded_when_they_exit():
    name = "gpusonde_process_gpu_busy_seconds_total"
    with tempfile.TemporaryDirectory() as tmp, Worker(tmp) as worker, Agent(scenario=worker.scenario()) as agent:
        wait_for(lambda: values(agent.metrics(), name, pid=worker.pid, comm=worker.comm) > [0], "busy seconds of our process")
        [process] = agent.get("/api/v1/processes").json()["processes"]
        equal((process["pid"], process["comm"], process["uid"]), (worker.pid, worker.comm, os.getuid()))
        contains(agent.cli("ps").stdout, worker.comm)
        worker.end()
        wait_for(lambda: not values(agent.metrics(), name, pid=worker.pid), "its series to be removed")
        equal(agent.get("/api/v1/processes").json()["processes"], [])


if __name__ == "__main__":
    run()
