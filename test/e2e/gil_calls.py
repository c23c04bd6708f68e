# SPDX-License-Identifier: Apache-2.0
"""A program for gil.py, for CPython 3.8 and later.

gil_calls.py waits SECONDS    one thread wants the lock all the time; the other one holds it for SECONDS, asleep
gil_calls.py turns SECONDS INTERVAL
                              three threads want the lock for SECONDS and take turns after INTERVAL; prints of each its number, and how
                              often it stood still
gil_calls.py until            two threads want the lock, until standard input ends
gil_calls.py alone NUMBER     one thread, which waits in all ways but for the lock, calls PyObject_CallFunction so often, and prints how
                              often garbage of each generation was collected"""
import ctypes
import gc
import os
import sys
import threading
import time

held = ctypes.PyDLL(None)  # calls with the lock


def waits(seconds):
    done = begun = False

    def want():
        nonlocal begun
        begun = True
        while not done:
            pass

    thread = threading.Thread(target=want)
    thread.start()
    while not begun:
        time.sleep(0.001)
    print(thread.native_id, threading.get_native_id())
    sys.stdout.flush()
    held.usleep(int(seconds * 1e6))
    done = True
    thread.join()


def take_turns(wait, number, pause=float("inf")):
    """So many threads want the lock all the time, while this one is in wait(). How often each stood still for longer than @pause, by its number."""
    done = False
    stood = {}

    def want():
        times = 0
        last = time.monotonic()
        while not done:
            now = time.monotonic()
            times += now - last > pause
            last = now
        stood[threading.get_native_id()] = times

    threads = [threading.Thread(target=want) for _ in range(number)]
    for thread in threads:
        thread.start()
    wait()
    done = True
    for thread in threads:
        thread.join()
    return stood


def alone():
    held.usleep(50000)
    time.sleep(0.05)
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.05)
    read, write = os.pipe()
    os.write(write, b"x")
    os.read(read, 1)


def garbage():
    for generation, times in enumerate((5, 3, 2)):
        for _ in range(times):
            gc.collect(generation)
    print(*[generation["collections"] for generation in gc.get_stats()])


def calls(number):
    call = held.PyObject_CallFunction
    call.restype, call.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_char_p]
    for _ in range(number):
        assert call(dict, None) == {}


if sys.argv[1] == "waits":
    waits(float(sys.argv[2]))
elif sys.argv[1] == "until":
    take_turns(sys.stdin.read, 2)
elif sys.argv[1] == "turns":
    sys.setswitchinterval(float(sys.argv[3]))
    for thread, times in take_turns(lambda: time.sleep(float(sys.argv[2])), 3, float(sys.argv[3]) / 4).items():
        print(thread, times)
else:
    alone()
    calls(int(sys.argv[2]))
    garbage()
sys.stdout.flush()
os._exit(0)
