#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for nvidia-smi on the simulated node, which the real one refuses: what it says comes from nvml.py, in nvidia-smi's words.

    standin_smi.py --query-gpu=FIELDS | --query-compute-apps=FIELDS --format=csv,noheader,nounits      standin_smi.py -q -x

STANDIN_LIES: "FIELD=TEXT", said instead, to see that a difference is found. STANDIN_LACKS: fields that it does not know, as an older one.
"""
import os
import sys

sys.dont_write_bytecode = True
import nvml # noqa: E402 pylint: disable=wrong-import-position
import tools # noqa: E402 pylint: disable=wrong-import-position

LIES = dict(lie.split("=", 1) for lie in os.environ.get("STANDIN_LIES", "").split(";") if lie)
LACKS = os.environ.get("STANDIN_LACKS", "").split()
KEYS = {name: key for key, (names, _) in tools.SMI.items() for name in names}
WORDS = {
    "bytes": lambda v: str(round(v / tools.MIB)), "ratio": lambda v: f"{v * 100:.0f}", "watts": lambda v: f"{v:.2f}",
    "reasons": lambda v: f"{int(v):#018x}", "state": lambda v: f"P{v:.0f}", "mode": lambda v: "Enabled" if v else "Disabled",
}


def said(field, gpu):
    if field in LIES:
        return LIES[field]
    value = gpu.get(KEYS[field])
    if value is None:
        return "[N/A]"
    if field == "compute_mode":
        return "Default"
    return WORDS.get(KEYS[field].rsplit("_", 1)[-1], str)(value)


def query_gpus(fields, state):
    for field in fields:
        if field in LACKS or field not in KEYS:
            sys.exit(f'Field "{field}" is not a valid field to query.')
    for gpu in state["gpus"]:
        print(", ".join(said(f, dict(gpu, driver_version=state["driver_version"])) for f in fields))


def query_processes(state):
    for gpu in state["gpus"]:
        for pid, used in (gpu["processes"] or {}).items():
            print(f"{gpu['uuid']}, {pid}, {'[N/A]' if used is None else used // tools.MIB}")


def changing(field, gpu):
    """The lie PID is another each time."""
    text = LIES.get(field, gpu[field])
    return os.getpid() if text == "PID" else text


def print_settings(state):
    print("<nvidia_smi_log>")
    for gpu in state["gpus"]:
        print(f"<gpu><persistence_mode>{changing('persistence_mode', gpu)}</persistence_mode>"
              f"<accounting_mode>{gpu['accounting_mode']}</accounting_mode><clocks><graphics_clock>{os.getpid()}</graphics_clock></clocks>"
              f"<mig_mode><current_mig>{gpu['mig_mode']}</current_mig></mig_mode></gpu>")
    print("</nvidia_smi_log>")


def main():
    state, question = nvml.state(), sys.argv[1]
    if question.startswith("--query-gpu="):
        query_gpus(question.split("=", 1)[1].split(","), state)
    elif question == "--query-compute-apps=gpu_uuid,pid,used_memory":
        query_processes(state)
    elif sys.argv[1:] == ["-q", "-x"]:
        print_settings(state)
    else:
        sys.exit(f"{question}: no such question")


main()
