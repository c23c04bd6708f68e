#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A device plugin (v1beta1) as NVIDIA's is, over the gRPC of grpcio and with messages that are written by hand.

    plugin.py FOLDER RESOURCE=ID,ID... [RESOURCE=...]

FOLDER is kubelet's device-plugins. IDs are UUIDs, of a shared GPU with ::N behind them, as NVIDIA's time slicing names its replicas; a container gets their
UUIDs in NVIDIA_VISIBLE_DEVICES.
"""
import os
import signal
import sys
import threading
from concurrent import futures

import grpc # from PyPI: who starts this says where that is

VERSION = "v1beta1"


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(*fields):
    """A protobuf message of (number, text or the bytes of another message)."""
    out = b""
    for number, value in fields:
        value = value.encode() if isinstance(value, str) else value
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def parsed(data):
    """(number, bytes) of a message whose fields are all texts or messages."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key, length = number(), number()
        yield key >> 3, data[at:at + length]
        at += length


def allocate(request, _):
    """For each container the devices that it was given."""
    answers = []
    for _, container in parsed(request):
        ids = [value.decode() for _, value in parsed(container)]
        uuids = dict.fromkeys(i.split("::")[0] for i in ids)
        answers.append((1, message((1, message((1, "NVIDIA_VISIBLE_DEVICES"), (2, ",".join(uuids)))))))
    return message(*answers)


class Plugin:
    def __init__(self, folder, resource, ids, ended):
        self.folder, self.resource, self.ids, self.ended = folder, resource, ids, ended
        self.name = resource.replace("/", "-") + ".sock"

    def list_and_watch(self, _, context):
        yield message(*[(1, message((1, i), (2, "Healthy"))) for i in self.ids])
        while context.is_active() and not self.ended.wait(0.5):
            pass

    def serve(self):
        path = f"{self.folder}/{self.name}"
        if os.path.exists(path):
            os.unlink(path)
        nothing = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
        server = grpc.server(futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{VERSION}.DevicePlugin", {
            "GetDevicePluginOptions": nothing, "GetPreferredAllocation": nothing, "PreStartContainer": nothing,
            "Allocate": grpc.unary_unary_rpc_method_handler(allocate),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self.list_and_watch)}),))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        with grpc.insecure_channel(f"unix:{self.folder}/kubelet.sock") as channel:
            channel.unary_unary(f"/{VERSION}.Registration/Register")(message((1, VERSION), (2, self.name), (3, self.resource)), timeout=10)
        return server


def main():
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    servers = [Plugin(sys.argv[1], *pair.split("=", 1)[:1], pair.split("=", 1)[1].split(","), ended).serve() for pair in sys.argv[2:]]
    ended.wait()
    for server in servers:
        server.stop(0)


if __name__ == "__main__":
    main()
