# SPDX-License-Identifier: Apache-2.0
"""A program for stacks_limits.py, for CPython 3.8 and later: more threads, functions and depth than most have, and its own end.

stacks_limits_calls.py FILE CASE [NUMBER]: writes a JSON list of [[frame, ...], calls], the outermost frame first, as far as it is said here."""
import atexit
import ctypes
import gc
import json
import os
import sys
import threading
import types

free = ctypes.CDLL("libcudart.so.13")  # calls without the interpreter's lock
held = ctypes.PyDLL("libcudart.so.13")  # calls with it
said = []
HERE = __file__


def stack(frame, most=127):
    found = []
    while frame:
        code = frame.f_code
        found.append(f"{getattr(code, 'co_qualname', code.co_name)} ({code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    if len(found) > most:
        found = found[:most] + ["[deeper stack]"]
    return found[::-1]


def call(library=free):
    # One line: the frame's line is the call's.
    said.append([stack(sys._getframe()), 1]) or library.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1))


def write():
    with open(sys.argv[1], "w") as file:
        json.dump(said, file)


def made(number, line):
    """A function of its own name and line, which calls the one that it is given."""
    def template(call):
        call()
    code = template.__code__.replace(co_name=f"made_{number}", co_firstlineno=line, **({"co_qualname": f"made_{number}"} if sys.version_info >= (3, 11) else {}))
    return types.FunctionType(code, globals())


def threads(number):
    """All there at once, each with frames of its own."""
    barrier = threading.Barrier(number)

    def work(own):
        barrier.wait()
        own(call)
        barrier.wait()
        own(lambda: call(held))
        barrier.wait()

    workers = [threading.Thread(target=work, args=(made(i, 1000 + i),)) for i in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def functions(number):
    """So many functions, all kept, then so many that are gone one after the other: each calls once."""
    byref, address, one, allocate = ctypes.byref, ctypes.c_void_p(), ctypes.c_size_t(1), held.cudaMalloc
    reference = byref(address)

    def template(allocate, reference, one):
        allocate(reference, one)
    code, qualified = template.__code__, sys.version_info >= (3, 11)
    kept = []
    for i in range(2 * number):
        name = f"made_{i}"
        of = code.replace(co_name=name, co_firstlineno=i + 1, co_filename="made.py", **({"co_qualname": name} if qualified else {}))
        function = types.FunctionType(of, globals())
        if i < number:
            kept.append(function)
        function(allocate, reference, one)


class Weak:
    """Whatever holds the stack of C meanwhile: __lt__ is called by sort()."""

    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        deeper(self.n)
        return False


def deeper(n):
    if n <= 0:
        call()
    elif n % 10 == 0:
        sorted([Weak(n - 1), Weak(n - 1)])
    else:
        list(map(deeper, [n - 1]))


def recursion(n):
    if n == 0:
        return call()
    return recursion(n - 1)


def deep(_):
    sys.setrecursionlimit(20000)
    threading.stack_size(512 << 20)
    for work in lambda: recursion(5000), lambda: recursion(1), lambda: deeper(60), lambda: deeper(2000):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


class Last:
    """It calls when the interpreter clears its modules: all that it needs is its own. What it says is a line: its frames, separated by semicolons."""

    def __init__(self, name):
        self.name = name

    def __del__(self, stack=stack, getframe=sys._getframe, said=said, allocate=held.cudaMalloc, byref=ctypes.byref, address=ctypes.c_void_p, one=ctypes.c_size_t,
                os_write=os.write, to=os.open(sys.argv[1] + ".end", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)):
        os_write(to, (";".join(stack(getframe())) + "\n").encode()) and allocate(byref(address()), one(1))


def end(_):
    """At exit, while modules are cleared, and of threads that go on meanwhile."""
    def daemon():
        while True:
            held.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1))

    global last, cycle
    atexit.register(write)
    atexit.register(call)
    last = Last("of the module")
    cycle = [Last("of a cycle")]
    cycle.append(cycle)
    sys.last_kept = Last("of sys")
    for _ in range(4):
        threading.Thread(target=daemon, daemon=True).start()
    gc.disable()


def spin(number):
    """Calls, and says how often, until its input ends."""
    print("begun", flush=True)
    for i in range(number):
        recursion(i % 20)
        said.clear()
    print("done", number)


if __name__ == "__main__":
    {"threads": threads, "functions": functions, "deep": deep, "end": end, "spin": spin}[sys.argv[2]](int((sys.argv + [0])[3]))
    if sys.argv[2] != "end":
        write()
