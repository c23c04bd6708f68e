#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What processes account for and what they do not is the device's figure, in every scenario of the simulated driver."""
import os
import re

from lib.e2e import SOURCE, Agent, equal, run, wait_for

PARTS = ("processes", "unattributed", "overattributed")
READINGS = 4


def scenarios():
    folder = f"{SOURCE}/sim/scenarios"
    return sorted(f for f in os.listdir(folder) if f.endswith(".yaml"))


def near(a, b, what):
    # Both are sums of the same numbers in another order, printed with 17 digits.
    if abs(a - b) > 1e-9 * max(abs(a), abs(b), 1):
        raise AssertionError(f"{what}: {a} is not {b}")


def devices(document):
    for gpu in document["gpus"]:
        name = f"GPU {gpu['gpu']}"
        yield name, gpu
        for instance in gpu["mig"]:
            yield f"{name}, instance {instance['gi']}", instance


def check(document, energy_first):
    """How many figures were compared."""
    compared = 0
    for name, device in devices(document):
        memory = device["attribution_memory_bytes"]
        if memory["processes"] is not None:
            near(memory["processes"] + memory["unattributed"] - memory["overattributed"], device["memory_used_bytes"], f"memory of {name}")
            compared += 1
        busy = device["attribution_busy_seconds_total"]
        residual = device["attribution_busy_residual_seconds"]
        if busy["processes"] is not None and residual is not None:
            near(sum(busy[p] for p in PARTS[:2]) - busy["overattributed"] + residual, device["busy_seconds_total"]["gpu"], f"busy time of {name}")
            assert abs(residual) <= 2, residual
            compared += 1
        energy = device.get("attribution_energy_joules_total")
        if energy and energy["processes"] is not None:
            parts, whole = energy["processes"] + energy["unattributed"], device["energy_joules_total"]
            base = energy_first.setdefault(name, whole - parts)
            near(parts, whole - base, f"energy of {name}")
            compared += 1
    return compared


def of_scenario(name):
    def test():
        with Agent("--sample-period", "250ms", scenario=f"{SOURCE}/sim/scenarios/{name}") as agent:
            def document():
                return agent.get("/api/v1/snapshot").json()

            def ticks(d):
                return d["node"]["agent"]["collections_total"]

            energy, compared, last = {}, 0, 0
            for _ in range(READINGS):
                d = wait_for(lambda after=last: (d := document()) and ticks(d) > after and d, "another reading")
                last = ticks(d)
                compared += check(d, energy)
            equal(compared > 0, any(gpu["present"] for gpu in d["gpus"]), "something was compared where there are GPUs")
    test.__name__ = "test_" + re.sub(r"\W", "_", name.removesuffix(".yaml"))
    return test


for scenario in scenarios():
    globals()[of_scenario(scenario).__name__] = of_scenario(scenario)

if __name__ == "__main__":
    run()
