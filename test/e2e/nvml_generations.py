#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generations of the driver: NVIDIA's own libraries where there is no kernel module, told by every view and recovered from; what each
generation does not offer, as docs/metrics.md says; and a driver of a generation that nobody knows.

    nvml_generations.py BUILD SOURCE [words of names of tests]
"""
import concurrent.futures
import contextlib
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from lib import atop, e2e, fetch, rows

GENERATIONS = ("470", "535", "550")
# Of every kind of GPU that has something of its own; the library decides what the driver offers of it.
NODE = """cycle: 60s
seed: 7
gpus:
  - {model: b200}
  - {model: h100-sxm, persistence: true}
  - {model: a100-sxm}
  - {model: v100-sxm}
  - {model: l4}
  - {model: rtx-4090}
  - {model: h100-sxm, mig: [3g.40gb, 1g.10gb]}
processes:
  - {name: steady, gpus: "0-5", memory: 3GiB, load: {gpu: 37, memory: 21, decoder: 10, encoder: 5, jpeg: 4, ofa: 3}}
  - {name: draws, gpus: "0-5", memory: 1GiB, type: graphics, load: {gpu: 5}, encoder_fps: 30}
  - {name: shares, gpus: 1, memory: 1GiB, type: mps, load: {gpu: 2}}
  - {name: a, gpus: 6, instance: 0, memory: 5GiB, load: {gpu: 60}}
"""
PCI = "/sys/bus/pci/devices"
TOLD = ("Driver Not Loaded (9)", "modprobe nvidia")


def simulated(name):
    return f"{e2e.BUILD}/sim/driver-{name}/libnvidia-ml.so.1"


@functools.lru_cache(maxsize=None)
def real(name):
    if os.path.exists("/proc/driver/nvidia"):
        raise e2e.Skip("there is a real driver on this machine")
    try:
        return fetch.get(f"driver-{name}-amd64" if os.uname().machine == "x86_64" else f"driver-{name}-arm64",
                         f"{e2e.BUILD}/real")["libnvidia-ml.so.1"]
    except fetch.Unavailable as why:
        raise e2e.Skip(str(why)) from None


def put(library, path):
    """As a package manager does: the new file takes the place of the old one, which is still mapped by who has it open."""
    shutil.copy(library, path + ".new")
    os.rename(path + ".new", path)


def contains_all(text, what):
    for part in TOLD:
        assert part in text, f"{what} does not say {part!r}: {text[:1500]}"


def check_told(agent):
    """By the log, each page, and each command, of the agent and by itself."""
    # On a machine with a GPU on its bus /readyz says no, and each text begins with that; the driver's error and its remedy follow.
    contains_all(e2e.wait_for(lambda: TOLD[0] in agent.log() and agent.log(), "error 9 in the log"), "the log")
    for path in ("/metrics", "/metrics/dcgm", "/metrics/dcgm?names=4.9", "/readyz", "/api/v1/node", "/api/v1/gpus", "/api/v1/processes",
                 "/api/v1/trace", "/api/v1/kernels"):
        contains_all(agent.get(path).text, path)
    e2e.equal(e2e.values(agent.metrics(), "gpusonde_driver_state", state="no_driver"), [1])
    e2e.equal(e2e.values(agent.metrics(), "gpusonde_gpu_present"), [], "GPUs")
    for asked in (("--socket", agent.socket), ("--socket", "none")):
        for name in ("gpus", "ps", "snapshot", "doctor"):
            out = e2e.command(name, *asked, env=agent.env)
            contains_all(out.stdout, f"gpusonde {name} {asked}")
    with atop.tcp(agent) as client:
        e2e.equal(atop.ask(client, b"T", 2).split("@")[0], "0", "atop's GPUs")


def gpus_on_bus():
    """As the agent counts them."""
    def text(path):
        with open(path, encoding="ascii") as f:
            return f.read()
    return sum(text(path) == "0x10de\n" and text(path.removesuffix("vendor") + "class").startswith(("0x03", "0x12"))
               for path in glob.glob(f"{PCI}/*/vendor"))


def check_atopgpud(library, **more):
    """It has nothing to serve then, says why, and ends; where a GPU is on the bus it says why, and waits."""
    if gpus_on_bus():
        with e2e.Agent(command_name="atopgpud", scenario=None, wait=False, GPUSONDE_NVML_LIBRARY=library, **more) as waiting:
            waiting.atop_port()
            contains_all(waiting.log(), "atopgpud")
        return
    env = e2e.environment(GPUSONDE_NVML_LIBRARY=library, **more)
    with tempfile.TemporaryDirectory() as tmp:
        out = e2e.command("atopgpud", "--atop-listen", "127.0.0.1:0", "--atop-socket", f"gpusonde-e2e-{os.getpid()}",
                          "--state-dir", tmp, env=env)
    contains_all(out.stderr, "atopgpud")


@contextlib.contextmanager
def agent_over(library, path, name, **env):
    put(library, path)
    env = env or {"GPUSONDE_NVML_LIBRARY": path}
    # The copy lies where no scenario lies beside it.
    scenario = f"{e2e.BUILD}/sim/scenarios/driver-{name}.yaml"
    with e2e.Agent(scenario=None, wait=False, GPUSONDE_SIM_SCENARIO=scenario, **env) as agent:
        e2e.wait_for(agent.port, "the port")
        yield agent


def comes(agent, name):
    """Seconds until the devices of the simulated driver are there."""
    begin = time.monotonic()
    e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_present"), "devices")
    seconds = time.monotonic() - begin
    page = agent.metrics()
    e2e.equal(set(e2e.values(page, "gpusonde_gpu_present")), {1.0})
    e2e.equal(e2e.values(page, "gpusonde_driver_state", state="ok", reason=""), [1])
    version = agent.get("/api/v1/node").json()["node"]["driver_version"]
    assert version.startswith(name + "."), version
    e2e.equal(e2e.command("gpus", "--socket", agent.socket, env=agent.env).returncode, 0)
    e2e.contains(agent.log(), f"driver {version}, NVML")
    return seconds


def goes(agent, library, path):
    """The file is another's: what is in memory works on. When the driver goes, what is opened next is the new file."""
    put(library, path)
    observed = e2e.values(agent.metrics(), "gpusonde_gpu_observed_seconds_total")[0]
    e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_observed_seconds_total")[0] > observed + 2, "numbers that go on")
    agent.fault("unloaded: true")
    contains_all(agent.wait_not_ready(*TOLD), "/readyz")
    page = agent.metrics()
    e2e.equal(set(e2e.values(page, "gpusonde_gpu_present")), {0.0}, "GPUs that are gone")
    e2e.equal(e2e.values(page, "gpusonde_up"), [0])
    contains_all(page, "/metrics")
    for name in ("gpu_temperature_celsius", "gpu_power_watts", "gpu_utilization_ratio"):
        e2e.equal(e2e.values(page, f"gpusonde_{name}"), [], f"{name} of a GPU that is gone")
    e2e.equal(e2e.command("gpus", "--socket", agent.socket, env=agent.env).stdout.count(TOLD[0]) > 0, True, "gpusonde gpus says why")


def check_generation(name):
    library = real(name)
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/libnvidia-ml.so.1"
        with agent_over(library, path, name) as agent:
            check_told(agent)
            check_atopgpud(library)
            put(simulated(name), path)
            seconds = comes(agent, name)
            goes(agent, library, path)
            agent.fault()
            put(simulated(name), path)
            again = comes_again(agent)
    version = versions(name)
    rows.say("nvml", f"NVIDIA {version}", unloaded="error 9 with its remedy, in every view and command",
             replaced=f"devices after {seconds:.0f} s, again after {again:.0f} s; no restart")


def comes_again(agent):
    begin = time.monotonic()
    e2e.wait_for(lambda: set(e2e.values(agent.metrics(), "gpusonde_gpu_present")) == {1.0}, "devices again")
    e2e.wait_for(agent.is_ready, "readiness")
    return time.monotonic() - begin


def versions(name):
    with open(f"{e2e.SOURCE}/sim/scenario/generations.def", encoding="utf-8") as f:
        return re.search(rf'\.name = "{name}", \.driver = "([\d.]+)"', f.read())[1]


def check_search():
    """Not named: the one of the system, by the loader's search."""
    with tempfile.TemporaryDirectory() as tmp:
        with agent_over(real("550"), f"{tmp}/libnvidia-ml.so.1", "550", LD_LIBRARY_PATH=tmp) as agent:
            e2e.wait_for(lambda: TOLD[0] in agent.log(), "error 9")
            e2e.contains(agent.get("/api/v1/node").text, tmp)
            put(simulated("550"), f"{tmp}/libnvidia-ml.so.1")
            comes(agent, "550")


def test_drivers_without_their_module_and_with_it():
    """At the same time, since most of it is waiting for the agents' next attempt."""
    for name in GENERATIONS:
        real(name)
    with concurrent.futures.ThreadPoolExecutor(len(GENERATIONS) + 1) as pool:
        for done in [pool.submit(check_generation, name) for name in GENERATIONS] + [pool.submit(check_search)]:
            done.result()


UNLOADED = "cycle: 60s\nseed: 1\ngpus:\n  - {model: l4}\nfaults:\n  - {unloaded: true}\n"
ENTER = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def beside_a_gpu(word):
    """This file's tests of that name where the PCI bus has a GPU: in a mount namespace of their own."""
    with tempfile.TemporaryDirectory() as tmp:
        os.mkdir(f"{tmp}/0000:01:00.0")
        for name, value in (("vendor", "0x10de"), ("class", "0x030200")):
            with open(f"{tmp}/0000:01:00.0/{name}", "w", encoding="ascii") as f:
                f.write(value + "\n")
        enter = ["unshare", "--mount", "sh", "-c", ENTER, "sh", tmp, PCI]
        if not os.path.isdir(PCI) or subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
            raise e2e.Skip("no GPU can be put on the PCI bus: no permission for a mount namespace, or no PCI bus")
        out = subprocess.run([*enter, sys.executable, os.path.abspath(__file__), e2e.BUILD, e2e.SOURCE, word], capture_output=True,
                             text=True, timeout=5 * e2e.PATIENCE_S, check=False)
        assert out.returncode == 0 and re.search(r"^ok 1 - (?!.*# SKIP)", out.stdout, re.M), out.stdout + out.stderr


def test_no_driver_beside_a_gpu():
    """What is on the bus is said, and so are the driver's own error and its remedy."""
    if not gpus_on_bus():
        beside_a_gpu("no_driver_beside_a_gpu")
        return
    bus = f"{gpus_on_bus()} NVIDIA device"
    with e2e.Agent(scenario=UNLOADED, wait=False) as agent:
        e2e.wait_for(agent.port, "the port")
        agent.wait_not_ready(bus, *TOLD)
        check_told(agent)
        for path in ("/metrics", "/metrics/dcgm", "/api/v1/gpus"):
            e2e.contains(agent.get(path).text, bus)
        check_atopgpud(e2e.SIMULATED, GPUSONDE_SIM_SCENARIO=agent.env["GPUSONDE_SIM_SCENARIO"])
    with e2e.Agent(scenario=None, wait=False, GPUSONDE_NVML_LIBRARY="/nowhere/libnvidia-ml.so.1") as agent:
        e2e.wait_for(agent.port, "the port")
        agent.wait_not_ready(bus, "/nowhere/libnvidia-ml.so.1", "nvml.library")
        page = agent.metrics()
        e2e.equal(e2e.values(page, "gpusonde_driver_state", state="no_library"), [1])
        e2e.contains(page, "nvml.library")
        e2e.contains(agent.cli("gpus").stdout, "nvml.library")


class Row:
    """Of docs/metrics.md: a family, the labels that tell it from others of it, and the driver from which on it is there."""

    def __init__(self, family, labels, driver):
        self.family, self.driver = family, int(driver or 0)
        self.labels = [f'{k}="{v}"' for k, v in re.findall(r"(\w+)=(\w+)", labels)]
        self.name = family.removeprefix("gpusonde_") + (f"{{{','.join(self.labels)}}}" if self.labels else "")

    def is_on(self, series):
        return any(all(label in s for label in self.labels) for s in series.get(self.family, ()))


def document():
    """Rows of the tables that have a column Driver."""
    found, family, column = [], None, None
    with open(f"{e2e.SOURCE}/docs/metrics.md", encoding="utf-8") as f:
        for line in f:
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            if line.startswith("### "):
                family, column = line[4:].strip(), None
            elif cells and "Driver" in cells:
                column = cells.index("Driver")
            elif cells and family and column and cells[0].startswith("`"):
                found.append(Row(family, cells[0], cells[column]))
    assert len(found) > 200, f"only {len(found)} rows were found in docs/metrics.md"
    return found


def series_of(page):
    """{family: its series}"""
    found = {}
    for series in e2e.samples(page):
        found.setdefault(series.split("{")[0], []).append(series)
    return found


def wrong(table, newest, now, generation):
    """Rows that are there and should not be, or are not there and should be, by the table."""
    found = []
    for row in table:
        lost = row.driver > int(generation)
        if lost and row.is_on(now):
            found.append(f"{row.name} is there, from driver {row.driver} on by the table")
        elif not lost and row.is_on(newest) and not row.is_on(now):
            found.append(f"{row.name} is not there, and the table does not say so")
    return found


def test_the_table_of_metrics_says_what_each_generation_lacks():
    table = document()
    with contextlib.ExitStack() as stack:
        agents = {g: stack.enter_context(e2e.Agent(scenario=NODE, wait=False, GPUSONDE_NVML_LIBRARY=simulated(g)))
                  for g in GENERATIONS}
        plain = stack.enter_context(e2e.Agent(scenario=NODE))
        for agent in agents.values():
            agent.wait_ready()
        e2e.wait_for(lambda: min(e2e.values(plain.metrics(), "gpusonde_gpu_observed_seconds_total")) > 4, "some seconds of observation")
        newest = series_of(plain.metrics())
        seen = [row for row in table if row.is_on(newest)]
        # The simulated node has all but what Grace, fans that are still, and the model's own rows want.
        assert len(seen) > 190, f"only {len(seen)} of {len(table)} rows are on the newest driver's page"
        for g, agent in agents.items():
            with contextlib.suppress(AssertionError):
                e2e.wait_for(lambda g=g, agent=agent: not wrong(table, newest, series_of(agent.metrics()), g), "", seconds=10)
            e2e.equal(wrong(table, newest, series_of(agent.metrics()), g), [], f"driver {g}")
            # Only of those that were seen to be there with the newest can be seen that they are not there with this one.
            lost = [row for row in seen if row.driver > int(g)]
            assert lost, f"driver {g} lacks nothing"
            rows.say("nvml", f"NVIDIA {versions(g)}",
                     lost=f"{len(lost)} of {len(seen)} metrics of the simulated node (docs/metrics.md, column Driver); seen on the simulated driver of this generation")


def test_fields_of_the_table_are_those_of_the_generations():
    """A row that is read as a field is lost where the generation does not know the field's number."""
    with open(f"{e2e.SOURCE}/src/model/metrics.def", encoding="utf-8") as f:
        metrics = re.findall(r"^GPU_METRIC(?:_NVML)?\((\w+),(.*?)\)\n(?=[A-Z/\n#])", f.read(), re.M | re.S)
    with open(f"{e2e.SOURCE}/sim/scenario/generations.def", encoding="utf-8") as f:
        fields = [(g, int(a), int(b)) for g, a, b in re.findall(r"^FIELDS\(D(\d+), (\d+), (\d+)\)", f.read(), re.M)]
    checked = 0
    for name, body in metrics:
        field, driver = (re.search(rf"\.{what} = (\d+)", body) for what in ("field", "driver"))
        if not field or not driver:
            continue
        checked += 1
        for g in GENERATIONS:
            known = any(int(since) <= int(g) and first <= int(field[1]) <= last for since, first, last in fields)
            e2e.equal(int(driver[1]) <= int(g), known, f"{name}, field {field[1]}, driver {g}")
    assert checked > 30, checked


def test_scenarios_are_of_their_generation():
    """By name, with the plain library: calls of what was not there yet are answered so."""
    for g in GENERATIONS:
        with e2e.Agent(scenario=f"driver-{g}") as agent:
            node = agent.get("/api/v1/node").json()["node"]
            e2e.equal((node["driver_version"], node["unrecognised"]), (versions(g), None))
            e2e.equal(e2e.values(agent.metrics(), "gpusonde_driver_unrecognised"), [0])
            reserved = e2e.values(agent.metrics(), "gpusonde_gpu_memory_reserved_bytes")
            e2e.equal(bool(reserved), g != "470", f"reserved memory with {g}")


def test_a_scenario_of_another_generation_is_refused():
    with e2e.Agent(scenario="driver-550", wait=False, GPUSONDE_NVML_LIBRARY=simulated("470")) as agent:
        e2e.wait_for(lambda: "take the library of that generation" in agent.log(), "the cause and the remedy")


FUTURE = ("nvmlDeviceGetMemoryInfo_v2 has another struct", "nvmlGpmMetricsGet has another struct", "architecture 99", "field 186 with a value of type 9",
          "clocks event reasons 0x100000", "processes in records of 40 bytes", "no nvmlDeviceGetTotalEnergyConsumption")


def check_future(library):
    with e2e.Agent(scenario="driver-future", GPUSONDE_NVML_LIBRARY=library) as agent:
        e2e.wait_for(lambda: min(e2e.values(agent.metrics(), "gpusonde_gpu_observed_seconds_total") or [0]) > 2, "two seconds of observation")
        node = agent.get("/api/v1/node").json()["node"]
        for part in FUTURE:
            e2e.contains(node["unrecognised"], part)
            for text in (agent.cli("doctor").stdout, agent.cli("snapshot").stdout, agent.log()):
                e2e.contains(text, part)
        page = agent.metrics()
        check_known_part(page)
        assert e2e.values(page, "gpusonde_driver_unrecognised")[0] >= len(FUTURE), "what a fleet can alert on"
        e2e.equal(agent.get("/readyz").status, 200)
        gpus = agent.get("/api/v1/gpus").json()["gpus"]
        e2e.equal([gpu["architecture"] for gpu in gpus], [None] * len(gpus))
        check_unlisted(agent, gpus)
        e2e.wait_for(lambda: e2e.values(agent.metrics(), "gpusonde_gpu_xid_errors_total", xid="999"), "an XID that has no name")
        told = [line for line in agent.log().split("\n") if "this gpusonde does not recognise all of driver" in line]
        e2e.equal(agent.cli("gpus").returncode, 0)
        time.sleep(2)
        again = [line for line in agent.log().split("\n") if "this gpusonde does not recognise all of driver" in line]
        e2e.equal(again, told, "what is said of it, once")
        assert len(told) <= 2, told
        things = [thing for line in told for thing in re.search(r"left out(?:, too)?: (.*); a newer", line)[1].split("; ")]
        e2e.equal("; ".join(things), agent.get("/api/v1/node").json()["node"]["unrecognised"], "what the log says in all, each thing once")
        page = agent.metrics()
        e2e.equal(e2e.values(page, "gpusonde_driver_child_crashes_total"), [0], "crashes of the process that holds the driver")
        e2e.equal(e2e.values(page, "gpusonde_driver_child_starts_total"), [1], "its starts")
        return len(FUTURE), len(series_of(page))


def check_unlisted(agent, gpus):
    """Compute processes come in records that are not read: how many run is not known, and no table says none."""
    for gpu in gpus:
        listed = [entity["processes_live"] for entity in (gpu["mig"] or [gpu])]
        e2e.equal(listed, [None] * len(listed), f"processes of GPU {gpu['gpu']}")
    shown = agent.cli("gpus").stdout.split("\n")
    # From the right: only what holds a GPU back has spaces of its own, and stands behind.
    lines = [line for line in shown if re.match(r" +(\d+  \S|MIG |- +MIG )", line)]
    assert len(lines) >= len(gpus), shown
    counted = [line for line in lines if line[shown[next(i for i, s in enumerate(shown) if "PROC" in s)].index("PROC"):][:4].strip() != "-"]
    e2e.equal(counted, [], "lines with a number of processes")
    for command in ("gpus", "ps"):
        out = agent.cli(command).stdout
        line = next((line for line in out.split("\n") if "not recognised" in line), "")
        e2e.contains(line, "gpusonde doctor")
        e2e.contains(line, "processes in records of 40 bytes")
    e2e.contains(agent.cli("ps").stdout, "Processes are missing")


def check_known_part(page):
    """What is as it was is there and true, and nothing is made up for the rest."""
    for name in ("gpu_memory_used_bytes", "gpu_memory_total_bytes", "gpu_memory_reserved_bytes", "gpu_power_instant_watts", "gpu_sm_active_ratio"):
        e2e.equal(e2e.values(page, f"gpusonde_{name}"), [], f"{name}, which this driver gives in an unknown way")
    for name in ("gpu_temperature_celsius", "gpu_power_watts", "gpu_clock_hertz", "gpu_pcie_replay_total"):
        assert e2e.values(page, f"gpusonde_{name}"), f"{name} is not served"
    e2e.equal(e2e.values(page, "gpusonde_gpu_processes", type="compute"), [], "numbers of compute processes")
    assert max(e2e.values(page, "gpusonde_gpu_processes", type="graphics")) > 0, "graphics processes are listed in records of today"


def test_a_driver_of_an_unknown_generation():
    check_future(e2e.SIMULATED)
    refused, families = check_future(simulated("future"))
    rows.say("unknown", "libnvidia-ml: functions gone, structs and records of other sizes, unknown numbers",
             served=f"the rest: {families} families of metrics, GPUs, XIDs", refused=f"{refused} things, each said in doctor, /api/v1/node and once in the log")


if __name__ == "__main__":
    e2e.run()
