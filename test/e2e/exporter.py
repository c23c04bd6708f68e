#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde in place of the DCGM exporter: its command line, variables, addresses and file of counters.

    exporter.py BUILD SOURCE [WORD OF A NAME...]
"""
import os
import re
import subprocess
import urllib.request

from lib.e2e import BUILD, Agent, contains, equal, run, values, wait_for

COUNTERS = """\
# Format
# If line starts with a '#' it is considered a comment
# DCGM FIELD, Prometheus metric type, help message

DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).
DCGM_FI_DEV_FB_USED, gauge, Framebuffer memory used (in MB).
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, "Total energy, since boot (in mJ)."
DCGM_EXP_XID_ERRORS_COUNT, gauge, Count of XID Errors within user-specified time window.
DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, Count of clock events within the user-specified time window.
DCGM_FI_DRIVER_VERSION, label, Driver Version
DCGM_FI_DEV_SERIAL, label, Serial
DCGM_FI_DEV_OF_THE_FUTURE, gauge, Not known here.
"""
FAMILIES = ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]


class Exporter(Agent):
    """As a DaemonSet of the exporter starts it."""

    def __init__(self, *flags, variables=None, **more):
        super().__init__(*flags, command_name="dcgm-exporter", **more)
        self.env.update(variables or {})

    def fetch(self, path, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.read().decode()


def ports(agent):
    return [int(p) for p in re.findall(r"listening on \S+ \(port (\d+)\)", agent.log())]


def dcgm_families(page):
    return re.findall(r"^# TYPE (DCGM_\S+)", page, re.M)


def with_counters(text, *flags, **more):
    agent = Exporter("--exporter-listen", "127.0.0.1:0", *flags, **more)
    path = agent.write("counters.csv", text)
    agent.env["DCGM_EXPORTER_COLLECTORS"] = path
    return agent


def test_its_port_has_its_pages():
    """/metrics has DCGM's names there, with the fields, types and texts of the file; our own page is as ever on our own port."""
    with with_counters(COUNTERS) as agent:
        wait_for(lambda: len(ports(agent)) == 2, "both addresses")
        own, its = ports(agent)
        page = wait_for(lambda: (text := agent.fetch("/metrics", its)) and "DCGM_FI_DEV_FB_USED{" in text and text, "figures")
        equal([f for f in dcgm_families(page) if f in FAMILIES], [f for f in dcgm_families(page) if not f.startswith("DCGM_EXP_")])
        equal(sorted(set(dcgm_families(page)) & set(FAMILIES)), sorted(FAMILIES))
        contains(page, "# HELP DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION Total energy, since boot (in mJ).")
        equal(len(re.findall(r'^DCGM_FI_DEV_FB_USED\{.*DCGM_FI_DRIVER_VERSION="[^"]+",DCGM_FI_DEV_SERIAL="[^"]*"', page, re.M)), 8)
        contains(agent.log(), "line 12: /metrics/dcgm has no DCGM_FI_DEV_OF_THE_FUTURE")
        equal(agent.fetch("/health", its).strip().lower(), "ok")
        contains(agent.fetch("/metrics", own), "gpusonde_gpu_present")
        contains(agent.fetch("/api/v1/gpus", its), '"uuid"')


def test_flags_are_variables():
    """Short, long, with one dash or two; what has no meaning here is named once."""
    with Exporter("-n", "--rbmn=true", "-x", "60000", "--kubernetes", "-c", "30000", "--exporter-listen", "127.0.0.1:0",
                  variables={"NVIDIA_RESOURCE_NAMES": "nvidia.com/a100"}) as agent:
        page = wait_for(lambda: (text := agent.get("/metrics/dcgm").text) and "DCGM_FI_DEV_SM_CLOCK{" in text and text, "figures")
        assert "Hostname=" not in page, "Hostname is left out"
        contains(page, 'modelName="NVIDIA-H100-80GB-HBM3"')
        contains(agent.log(), "DCGM_EXPORTER_INTERVAL")
        contains(agent.log(), "DCGM_EXPORTER_KUBERNETES")


XIDS = ("cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n  - {model: h100-sxm}\nxids:\n  - {xid: 31, gpu: 0, at: 1s, every: 2s}\n"
        "  - {xid: 74, gpu: 1, at: 1s, every: 2s}\n")


def test_what_it_counts_in_windows():
    """Clock events, by reading; XIDs, by code."""
    with Exporter("--exporter-listen", "127.0.0.1:0", scenario="sick") as agent:
        page = wait_for(lambda: (text := agent.get("/metrics/dcgm").text) and "DCGM_EXP_CLOCK_EVENTS_COUNT{" in text and text, "clock events")
        contains(page, 'window_size_in_ms="300000"')
        for labels in re.findall(r"^DCGM_EXP_CLOCK_EVENTS_COUNT\{(.*)\} \d+$", page, re.M):
            assert re.search(r'clock_event="(gpu_idle|clocks_setting|power_cap|hw_slowdown|sync_boost|sw_thermal|hw_thermal|hw_power_brake|display_clocks)"',
                             labels), labels
    with Exporter("--exporter-listen", "127.0.0.1:0", scenario=XIDS) as agent:
        def counted():
            page = agent.get("/metrics/dcgm").text
            rows = re.findall(r'^DCGM_EXP_XID_ERRORS_COUNT\{gpu="(\d)".*,window_size_in_ms="300000",xid="(\d+)"\} (\d+)$', page, re.M)
            return [row[:2] for row in rows if int(row[2]) > 1]
        wait_for(lambda: counted() == [("0", "31"), ("1", "74")], "each GPU's XID to be counted twice")


def test_each_link_has_its_throughput():
    """Of counters' differences: so from the second reading on, and together about what all links have."""
    with Exporter("--exporter-listen", "127.0.0.1:0") as agent:
        page = wait_for(lambda: (text := agent.get("/metrics/dcgm").text) and "DCGM_FI_DEV_NVLINK_BANDWIDTH_L17{" in text and text, "links")
        links = re.findall(r'^DCGM_FI_DEV_NVLINK_BANDWIDTH_L(\d+)\{gpu="(\d)"', page, re.M)
        equal(sorted((int(link), int(gpu)) for link, gpu in links), [(link, gpu) for link in range(18) for gpu in range(8)])


LICENCES = ("cycle: 60s\nseed: 1\ngpus:\n  - {model: l4}\n  - {model: l4, vgpu_license: missing}\n  - {model: l4, vgpu_license: valid}\n"
            "  - {model: l4, unsupported: [nvmlDeviceGetGridLicensableFeatures*]}\n")


def test_licences_of_vgpus():
    """As the exporter shows them: 0 also where none is needed, nothing where the driver says nothing."""
    with Exporter("--exporter-listen", "127.0.0.1:0", scenario=LICENCES) as agent:
        found = wait_for(lambda: re.findall(r'^DCGM_FI_DEV_VGPU_LICENSE_STATUS\{gpu="(\d)".*\} (\S+)$', agent.get("/metrics/dcgm").text, re.M), "licences")
        equal(found, [("0", "0"), ("1", "0"), ("2", "1")])
        equal(values(agent.get("/metrics", unix=True).text, "gpusonde_gpu_vgpu_license", state="supported"), [0, 1, 1])


def refused(*arguments, **variables):
    done = subprocess.run([f"{BUILD}/gpusonde", "dcgm-exporter", *arguments], env={**os.environ, **variables}, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stderr


def test_wrong_values_are_named():
    with with_counters("DCGM_FI_DEV_SM_CLOCK, gage, x\nDCGM_FI_DEV_SM_CLOCK, gauge\n", wait=False) as agent:
        equal(agent.process.wait(timeout=60), 1)
        contains(agent.log(), 'line 1: the type of DCGM_FI_DEV_SM_CLOCK is "gage": gauge, counter or label is wanted')
        contains(agent.log(), "line 2: it has 2 columns")
        status, said = refused("--check-config", DCGM_EXPORTER_COLLECTORS=agent.env["DCGM_EXPORTER_COLLECTORS"])
        equal(status, 2)
        contains(said, "line 2: it has 2 columns")
    status, said = refused("-x")
    equal((status, "-x needs a value" in said), (2, True))
    status, said = refused("-x", "5m")
    equal((status, "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE" in said and "milliseconds" in said), (2, True))
    status, said = refused("--no-such-flag")
    equal(status, 2)
    status, said = refused("-f", "/no/such/file")
    equal((status, "/no/such/file" in said), (1, True))


if __name__ == "__main__":
    run()
