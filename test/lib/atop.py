# SPDX-License-Identifier: Apache-2.0
"""A client of the atop protocol, in both versions, over TCP and the abstract socket."""
import socket

from lib.e2e import equal


def receive(connection, n):
    data = b""
    while len(data) < n:
        part = connection.recv(n - len(data))
        if not part:
            raise AssertionError("the agent hung up")
        data += part
    return data


def ask(connection, code, version):
    connection.sendall(code + bytes([version]))
    header = receive(connection, 4)
    equal(header[0], version, "version of the answer")
    length = int.from_bytes(header[1:], "big")
    assert length <= 8192, f"{length} bytes are more than atop accepts"
    return receive(connection, length).decode()


def tcp(agent):
    return socket.create_connection(("127.0.0.1", agent.atop_port()), timeout=60)


def abstract(agent):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect("\0" + agent.atop_name)
    return connection
