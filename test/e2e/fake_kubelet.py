#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet that says what a file tells it to, over the gRPC of grpcio and with messages that are written by hand.

    fake_kubelet.py FOLDER CONTROL

FOLDER gets the sockets pod-resources.sock and pods-api.sock. CONTROL is JSON and is read with each call:

    services       names that are served; others are UNIMPLEMENTED
    pods           each {name, namespace, uid, phase, owner: [KIND, NAME], annotations, containers: [{name, id, kind, devices: {RESOURCE: [ID]},
                   claims: [{driver, pool, device, cdi: [NAME], share}]}]}
    pad            bytes of nothing that a List has beside its pods, in pods of 1 MiB that have no device
    fail           {METHOD: [code, words]}
    stall          methods that are never answered
    raw            {METHOD: bytes in hexadecimal}: the reply, whatever it means
"""
import json
import os
import signal
import sys
import threading
from concurrent import futures

import grpc # from PyPI: the test says where that is

FOLDER, CONTROL = sys.argv[1:3]
calls = {}


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(*fields):
    """A protobuf message of (number, value): an integer, a text or the bytes of another message."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def control():
    with open(CONTROL, encoding="utf-8") as f:
        return json.load(f)


def claim(c):
    devices = [(1, message((1, name))) for name in c.get("cdi", [])]
    share = [(5, c["share"])] if "share" in c else []
    return message((2, "claim"), (3, "ml"), (4, message(*devices, (2, c["driver"]), (3, c.get("pool", "node")), (4, c["device"]), *share)))


def resources(pod):
    containers = []
    for c in pod["containers"]:
        devices = [(2, message((1, name), *[(2, device) for device in ids])) for name, ids in c.get("devices", {}).items()]
        containers.append((3, message((1, c["name"]), *devices, *[(5, claim(one)) for one in c.get("claims", [])])))
    return message((1, pod["name"]), (2, pod["namespace"]), *containers)


def v1_pod(pod):
    status = {"": 8, "init": 10, "ephemeral": 13}
    owner = [(13, message((5, "apps/v1"), (1, pod["owner"][0]), (3, pod["owner"][1]), (6, 1)))] if "owner" in pod else []
    annotations = [(12, message((1, k), (2, v))) for k, v in pod.get("annotations", {}).items()]
    meta = message((1, pod["name"]), (3, pod["namespace"]), (5, pod["uid"]), (11, message((1, "app"), (2, "x"))), *annotations,
                   (13, message((1, "Node"), (3, "not-the-controller"))), *owner)
    spec = message((2, message((1, "main"), (2, "image"))), (10, "node"))
    def health(c):
        return [(14, message((1, name), *[(2, message((1, device), (2, word))) for device, word in devices.items()])) for name, devices in c.get("health", {}).items()]
    containers = [(status[c.get("kind", "")], message((1, c["name"]), (5, 3), (6, "image"), (8, f"containerd://{c['id']}" if c.get("id") else ""), *health(c)))
                  for c in pod["containers"]]
    return message((1, meta), (2, spec), (3, message((1, pod.get("phase", "Running")), *containers)))


def answer(method, now):
    if method in now.get("raw", {}):
        return bytes.fromhex(now["raw"][method])
    if method == "ListPods":
        return message(*[(1, v1_pod(pod)) for pod in now["pods"]])
    if method == "GetAllocatableResources":
        gpus = [(2, gpu) for gpu in now.get("allocatable", ["GPU-0", "GPU-1"])]
        return message((1, message((1, "nvidia.com/gpu"), *gpus)), (1, message((1, "example.com/nic"), (2, "nic0"))), (2, b"\x01\x02"))
    pads = now.get("pad", 0) >> 20
    padding = message((1, "pad"), (2, "ml"), (3, message((1, "c"), (3, bytes(1 << 20)))))
    return b"".join([message((1, padding))] * pads) + message(*[(1, resources(pod)) for pod in now["pods"]])


class Handler(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        service, method = handler_call_details.method.lstrip("/").split("/")
        if service not in control()["services"]:
            return None
        if method not in ("List", "ListPods", "GetAllocatableResources"):
            return None

        def call(_, context):
            now = control()
            calls[method] = calls.get(method, 0) + 1
            with open(f"{CONTROL}.calls", "w", encoding="ascii") as f:
                json.dump(calls, f)
            if method in now.get("stall", []):
                threading.Event().wait()
            if method in now.get("fail", {}):
                code, words = now["fail"][method]
                context.abort(next(c for c in grpc.StatusCode if c.value[0] == code), words)
            return answer(method, now)
        return grpc.unary_unary_rpc_method_handler(call)


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((Handler(),))
    for name in ("pod-resources", "pods-api"):
        server.add_insecure_port(f"unix:{FOLDER}/{name}.sock")
    server.start()
    with open(f"{CONTROL}.ready", "w", encoding="ascii"):
        pass
    signal.sigwait([signal.SIGTERM])
    os._exit(0) # stalled calls would keep it


main()
