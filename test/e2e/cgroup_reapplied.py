#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cgroup.allow beside a manager that takes it away again and again: allowed anew each time, and not more often than every 30 s."""
import time

from lib.devices import NVIDIA, OTHER, Devices, attach, cgroup, own_dev, process_in, programs
from lib.e2e import Agent, equal, run, values, wait_for

INTERVAL_S = 30


def test_what_is_taken_away_is_allowed_again_at_a_bounded_rate():
    with Devices() as devices, own_dev(devices), cgroup("cgroup2", "l.service") as folder, process_in(folder):
        attach(folder, "owner", *NVIDIA, OTHER)
        with Agent("--cgroup-allow", "l.service", "--cgroup-devices", devices.list) as agent:
            def allowed(times):
                return values(agent.metrics(), "gpusonde_cgroup_allowed_total") == [times]
            wait_for(lambda: allowed(1), "the first time")
            begin = time.monotonic()
            attach(folder, "owner", *NVIDIA, OTHER) # as at a daemon-reload
            equal(devices.denied(folder, 195), [195])
            wait_for(lambda: allowed(2), "the second time", 2 * INTERVAL_S)
            passed = time.monotonic() - begin
            assert passed > INTERVAL_S - 3, f"again after {passed} s" # the first was counted up to two ticks late
            equal(devices.denied(folder, *NVIDIA, OTHER), [OTHER])
            equal(len(programs(folder)), 1)
            equal(agent.log().count("was denied NVIDIA's devices"), 2)


if __name__ == "__main__":
    run()
