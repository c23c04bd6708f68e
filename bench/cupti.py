# SPDX-License-Identifier: Apache-2.0
"""What libgpusonde-cupti.so costs a program for a launch, with the simulated driver and CUPTI: its own part, not NVIDIA's."""
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

from common import BUILD, Row

SIM, CALLS, RUNS, RATE_CALLS = f"{BUILD}/sim/cuda", 1_000_000, 3, 10_000
GREETING = struct.pack("=IHHIIII", 0x74707563, 1, 0, 1000, 1000, 0, 1)


def listen(listener, told):
    connection, _ = listener.accept()
    with connection:
        connection.send(GREETING)
        while message := connection.recv(4096):
            told[0] += (len(message) - 16) // 80


def program(calls, plugin, listens, command=None):
    """(CPU ns and ns of wall time of a call, records that were told)."""
    told = [0]
    with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{tmp}/socket")
        listener.listen(1)
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(SIM), GPUSONDE_SIM_CUDA_KERNEL_US="1",
                   GPUSONDE_CUPTI_LIBRARY=os.path.abspath(f"{BUILD}/sim/cupti/libcupti.so.13"))
        if plugin:
            env |= {"CUDA_INJECTION64_PATH": os.path.abspath(f"{BUILD}/libgpusonde-cupti.so"),
                    "GPUSONDE_CUPTI_SOCKET": f"{tmp}/{'socket' if listens else 'none'}"}
        if listens:
            thread = threading.Thread(target=listen, args=(listener, told))
            thread.start()
        before, began = os.times(), time.monotonic()
        subprocess.run(command or [f"{SIM}/spin", "cuLaunchKernel", "--calls", str(calls)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        after, ended = os.times(), time.monotonic()
        if listens:
            thread.join()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return cpu / calls * 1e9, (ended - began) / calls * 1e9, told[0]


def best(calls, plugin, listens):
    return tuple(min(column) for column in zip(*(program(calls, plugin, listens) for _ in range(RUNS))))


def run():
    without, idle, on = best(CALLS, False, False), best(CALLS, True, False), best(CALLS, True, True)
    yield Row("a launch of a core that does nothing else: ns of CPU time", without[0], "{:.0f}")
    yield Row("ns more with the library, while nobody listens", max(0, idle[0] - without[0]), "{:.0f}", at_most=20)
    yield Row("ns more while it measures, the simulated CUPTI's own included", on[0] - without[0], "{:.0f}")
    few = program(RATE_CALLS, True, True, [f"{SIM}/workload", f"repeat {RATE_CALLS}; launch; end; sync"])
    yield Row("of 10,000 launches at once, those that were told, share", min(1, few[2] / RATE_CALLS), "{:.3f}", at_least=1)
