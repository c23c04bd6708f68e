#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A runtime as NVIDIA's container toolkit has one, over runc: containers that ask for GPUs get the driver's library of the simulated node.

    nvidia.py RUNC FOLDER [RUNC'S ARGUMENTS...]

FOLDER has libnvidia-ml.so.1 and scenario.yaml. A container asks by NVIDIA_VISIBLE_DEVICES, as the toolkit reads it.
"""
import json
import os
import sys

THERE = "/usr/lib/x86_64-linux-gnu"
SCENARIO = "/etc/gpusonde-simulated.yaml"


def add_driver(path, folder):
    with open(path, encoding="utf-8") as f:
        config = json.load(f)
    env = config["process"].setdefault("env", []) # that of a pod's first container has none
    if not any(e.startswith("NVIDIA_VISIBLE_DEVICES=") and e.split("=", 1)[1] not in ("", "void", "none") for e in env):
        return
    env.append(f"GPUSONDE_SIM_SCENARIO={SCENARIO}")
    for source, destination in (("libnvidia-ml.so.1", f"{THERE}/libnvidia-ml.so.1"), ("scenario.yaml", SCENARIO)):
        config["mounts"].append({"destination": destination, "type": "bind", "source": f"{folder}/{source}", "options": ["bind", "ro"]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)


def main():
    runc, folder, *args = sys.argv[1:]
    if "create" in args and "--bundle" in args:
        add_driver(f"{args[args.index('--bundle') + 1]}/config.json", folder)
    os.execv(runc, [runc, *args])


if __name__ == "__main__":
    main()
