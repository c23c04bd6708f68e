#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the driver says arrives as numbers: exact ones, from drivers of all ages, for GPUs that come and go."""
import os
import re
import subprocess
import tempfile
import time

from lib import e2e

DUMP = f"{e2e.BUILD}/test/tools/nvml_dump"
STEADY = """cycle: 60s
seed: 7
gpus:
  - {model: h100-sxm}
  - {model: h100-sxm}
processes:
  - {name: steady, gpus: all, memory: 3GiB, load: {gpu: 37, memory: 21, decoder: 10}}
  - {name: other, gpus: 1, memory: 1GiB, type: compute+graphics, load: {gpu: 13}}
"""


def dump(library, *args, scenario=STEADY, tmp="/tmp", env=None):
    """Text of readings that one process makes with a library."""
    settings = {}
    if scenario:
        path = os.path.join(tmp, f"gpusonde-nvml-{os.getpid()}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(scenario)
        settings["GPUSONDE_SIM_SCENARIO"] = path
    try:
        done = subprocess.run([DUMP, *args, library], env=e2e.environment(**settings, **(env or {})), capture_output=True,
                              text=True, timeout=e2e.PATIENCE_S, check=False)
    finally:
        if scenario:
            os.unlink(path)
    assert done.returncode == 0, f"nvml_dump: {done.returncode} {done.stderr}"
    return done.stdout


def last(text):
    return text[text.rindex("\nreading:") + 1:] if "\nreading:" in text else text


def numbers(text, name):
    return [float(v) for v in re.findall(rf"^ +{name} +(\S+)", text, re.M)]


def total(agent, name, **labels):
    return sum(e2e.values(agent.metrics(), name, **labels))


def trouble(agent):
    """Why there is no driver, as the agent says it; empty when there is one."""
    return agent.get("/api/v1/node").json()["node"]["error"] or ""


def test_busy_time_is_exact():
    """Over whatever time lies between two scrapes, the quotient of the counters is the load."""
    with e2e.Agent(scenario=STEADY) as agent:
        def counters():
            page = agent.metrics()
            return [e2e.values(page, f"gpusonde_gpu_{name}", gpu="0", **labels)[0] for name, labels in (
                ("busy_seconds_total", {"engine": "gpu"}), ("busy_seconds_total", {"engine": "memory"}),
                ("busy_seconds_total", {"engine": "decoder"}), ("observed_seconds_total", {}))]
        first = counters()
        e2e.wait_for(lambda: counters()[3] - first[3] >= 5, "five seconds of observation")
        gpu, memory, decoder, observed = (b - a for a, b in zip(first, counters()))
        for busy, wanted in ((gpu, 0.37), (memory, 0.21), (decoder, 0.10)):
            assert abs(busy / observed - wanted) < 1e-6, (busy, observed, wanted)


def test_processes_are_credited_with_what_they_did():
    text = dump(e2e.SIMULATED, "-n", "20", "-i", "250")
    busy = observed = 0
    for reading in text.split("reading:")[2:]:
        one = reading[reading.index("process "):]
        busy += numbers(one, "BUSY")[0]
        observed += numbers(one, "OBSERVED")[0]
    # The driver samples processes once a second: the first and the last sample may lie outside.
    assert observed > 4, observed
    assert abs(busy / observed - 0.37) < 0.37 / 4, (busy, observed)
    assert "types 3" in last(text), "a process in two lists is one, of both types"


def test_records_of_either_size():
    """Lists of 24 and of 32 bytes a record, through the same symbol, tell the same."""
    def processes(text):
        return sorted(re.findall(r"process (\d+) on entity (\d+)", last(text))), numbers(last(text), "MEMORY")
    usual = processes(dump(e2e.SIMULATED, "-n", "1"))
    for size in (24, 32):
        faulty = STEADY + f"faults:\n  - {{stride: {size}, functions: nvmlDeviceGet*RunningProcesses_v*}}\n"
        e2e.equal(processes(dump(e2e.SIMULATED, "-n", "1", scenario=faulty)), usual, f"{size} bytes")
    e2e.equal(len(usual[0]), 3)
    e2e.equal(sorted(usual[1]), [2**30, 3 * 2**30, 3 * 2**30])


def test_a_library_of_2021_will_do():
    """Without anything that came after driver 470: older calls, and what they do not know is unsupported."""
    text = last(dump(f"{e2e.BUILD}/sim/driver-470/libnvidia-ml.so.1", "-n", "3", "-i", "300", "-a"))
    for name, wanted in (("UTILIZATION_GPU", 0.37), ("PROCESSES_COMPUTE", 1), ("UTILIZATION_DECODER", 0.1)):
        e2e.equal(numbers(text, name)[0], wanted, name)
    e2e.contains(text, "POWER ")
    for row in ("MEMORY_RESERVED", "SM_ACTIVE", "PIPE_TENSOR"):
        assert re.search(rf"^ +{row} +unsupported", text, re.M), row
    e2e.equal(len(re.findall(r"process \d+ on entity", text)), 3)


def test_a_gpu_is_taken_out_and_put_back():
    with e2e.Agent(scenario=STEADY) as agent:
        before = total(agent, "gpusonde_gpu_busy_seconds_total", gpu="1", engine="gpu")
        agent.fault("removed: true, gpus: 1")
        e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_present", gpu="1") == [0], "present 0")
        e2e.equal(e2e.values(agent.metrics(), "gpusonde_gpu_present", gpu="0"), [1])
        agent.fault()
        e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_present", gpu="1") == [1], "present 1")
        e2e.wait_for(lambda: total(agent, "gpusonde_gpu_busy_seconds_total", gpu="1", engine="gpu") > before,
                     "busy seconds that go on")


def test_a_driver_comes_late():
    agent = e2e.Agent(scenario=STEADY, wait=False)
    agent.fault("unloaded: true")
    with agent:
        e2e.wait_for(agent.port, "the port")
        e2e.wait_for(lambda: "modprobe" in trouble(agent), "the remedy")
        agent.fault()
        e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_present") == [1, 1], "both GPUs")
        e2e.equal(trouble(agent), "")


def test_a_library_comes_late():
    with tempfile.TemporaryDirectory() as tmp:
        late = f"{tmp}/libnvidia-ml.so.1"
        with e2e.Agent(scenario=STEADY, wait=False, GPUSONDE_NVML_LIBRARY=late) as agent:
            e2e.wait_for(agent.port, "the port")
            e2e.wait_for(lambda: late in trouble(agent) and "nvml.library" in trouble(agent), "the remedy")
            os.symlink(e2e.SIMULATED, late)
            e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_present") == [1, 1], "both GPUs")


def test_all_gpus_lost_and_back_counts_once():
    """A driver that was loaded again begins its counters at zero; ours go on."""
    with e2e.Agent(scenario=STEADY) as agent:
        def energy():
            return total(agent, "gpusonde_gpu_energy_joules_total", gpu="0")
        e2e.wait_for(lambda: energy() > 0, "energy")
        before, begin = energy(), time.monotonic()
        agent.fault("unloaded: true")
        e2e.wait_for(lambda: trouble(agent), "the driver to be missed")
        agent.fault()
        e2e.wait_for(lambda: not trouble(agent), "the driver to be back")
        e2e.wait_for(lambda: energy() > before, "energy that goes on")
        # No more than 700 W, nor a negative amount, can have been added.
        assert energy() - before <= 700 * (time.monotonic() - begin + 2), (before, energy())


def test_mig_instances_are_measured_each():
    text = last(dump(e2e.SIMULATED, "-n", "3", "-i", "300", scenario="""cycle: 60s
seed: 1
gpus:
  - {model: h100-sxm, mig: [3g.40gb, 1g.10gb]}
processes:
  - {name: a, gpus: 0, instance: 0, memory: 5GiB, load: {gpu: 60}}
  - {name: b, gpus: 0, instance: 1, memory: 2GiB, load: {gpu: 25}}
"""))
    parts = re.split(r"^  entity ", text, flags=re.M)[1:]
    e2e.equal(len(parts), 3)
    e2e.equal(numbers(parts[0], "UTILIZATION_GPU"), [], "the GPU under MIG has no utilisation")
    for part, load, profile in ((parts[1], 0.60, "3g.40gb"), (parts[2], 0.25, "1g.10gb")):
        e2e.contains(part, f"profile {profile}")
        e2e.equal(numbers(part, "UTILIZATION_GPU"), [load], profile)
        assert abs(numbers(part, "BUSY_GPU")[0] / numbers(part, "OBSERVED")[0] - load) < 1e-3, profile
        e2e.equal(numbers(part, "POWER"), [], "power is measured for the whole board")
    e2e.equal(sorted(re.findall(r"process \d+ on entity (\d)", text)), ["1", "2"])


def test_what_the_library_prints_arrives_on_stderr():
    """A control file with an error in it, which only the simulated driver can tell of."""
    with e2e.Agent() as agent:
        agent.write("control.yaml", "faults: [{wrong: true}]\n")
        e2e.wait_for(lambda: 'control.yaml:1: unknown key "wrong"' in agent.log(), "the error in the agent's log")
        e2e.equal(agent.get("/readyz").status, 200)


def test_a_node_full_of_processes_has_their_names():
    """64 that /proc knows nothing of: the driver names some in each reading."""
    with e2e.Agent() as agent:
        def names():
            return [p["comm"] for p in agent.get("/api/v1/processes").json()["processes"]]
        e2e.wait_for(lambda: len(names()) >= 60 and all(names()), "each process to have a name")


def test_a_temperature_of_all_ones_is_none():
    with e2e.Agent() as agent:
        agent.fault("sentinel: default, gpus: 0, functions: nvmlDeviceGet*Temperature*")
        e2e.wait_for(lambda: len(e2e.values(agent.metrics(), "gpusonde_gpu_temperature_celsius")) == 7, "GPU 0 to have no temperature")
        assert min(e2e.values(agent.metrics(), "gpusonde_gpu_temperature_celsius")) > 0


if __name__ == "__main__":
    e2e.run()
