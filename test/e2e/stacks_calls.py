# SPDX-License-Identifier: Apache-2.0
"""A program for stacks.py, for CPython 3.8 and later: calls of CUDA from all kinds of places, and from which ones, as its own frames say.

stacks_calls.py FILE: writes a JSON list of [[frame, ...], bytes], the outermost frame first; frames are "name (file:line)"."""
import asyncio
import ctypes
import functools
import gc
import json
import os
import sys
import threading

MOST = 127
AWAITING_MOST = 16  # frames of a task that awaits

free = ctypes.CDLL("libcudart.so.13")  # calls without the interpreter's lock
held = ctypes.PyDLL("libcudart.so.13")  # calls with it
numbers = iter(range(1, 1 << 20))
said = []


def said_of(frame):
    code = frame.f_code
    return f"{getattr(code, 'co_qualname', code.co_name)} ({code.co_filename}:{frame.f_lineno})".replace(";", ":")


def call_graph():
    """Of the task that runs here, as asyncio tells it from 3.14 on; else None."""
    try:
        return asyncio.capture_call_graph()
    except (AttributeError, RuntimeError):
        return None


def awaiters(graph):
    """Frames of the tasks that await this one, the innermost first."""
    while graph.awaited_by:
        if len(graph.awaited_by) > 1:
            yield "[awaited by several tasks]"
            return
        graph, = graph.awaited_by
        if isinstance(graph.future, asyncio.Task):
            yield "[awaited by]"
            frames = [said_of(entry.frame) for entry in graph.call_stack]
            yield from ["[awaited further]"] * (len(frames) > AWAITING_MOST) + frames[-AWAITING_MOST:]


def stack(frame, number):
    found = []
    graph = call_graph()
    while frame:
        found.append(said_of(frame))
        if graph and graph.future.get_coro().cr_frame is frame:
            found.extend(awaiters(graph))
        frame = frame.f_back
    if len(found) > MOST:
        found = found[:MOST] + ["[deeper stack]"]
    said.append([found[::-1], number])
    return number


def call(library=free):
    # One line: the frame's line is the call's.
    assert library.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(stack(sys._getframe(), next(numbers)))) == 0


def generators():
    def inner(n):
        for i in range(n):
            call()
            yield i

    def outer():
        yield from inner(3)
        call(held)
        yield -1

    for _ in outer():
        pass
    list(map(lambda i: call(), inner(2)))
    sum(1 for _ in inner(2)
        if call() is None)
    [call()
     for _ in range(2)]


def recursion(n):
    if n == 0:
        return call()
    return recursion(
        n - 1)


def write(path):
    with open(path, "w") as file:
        json.dump(said, file)


def of_children():
    """A child of fork() calls, too; it says so itself."""
    pid = os.fork()
    if pid == 0:
        said.clear()
        recursion(3)
        write(sys.argv[1] + ".child")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


of_children()  # first: CUDA does not work in a child of a process that has used it


class Things:
    call()

    def __init__(self):
        call()

    @functools.lru_cache(maxsize=None)
    def cached(self):
        call()

    @property
    def attribute(self):
        return call(held)

    def __del__(self):
        call()

    def __lt__(self, other):
        call()
        return False


class Made:
    """Often enough for the interpreter to make code of its own for it."""
    def __init__(self, n):
        call()
        self.inner = Made(n - 1) if n else None


def exceptions():
    try:
        try:
            recursion(5)
            raise ValueError("expected")
        except ValueError:
            call()
            raise KeyError("expected") from None
        finally:
            call()
    except KeyError:
        recursion(2)


async def leaf(n):
    call()
    await asyncio.sleep(0)
    call()
    return n


async def middle(n):
    async def numbers_of():
        for i in range(n):
            yield await leaf(i)

    async for _ in numbers_of():
        call()


async def gathers():
    await asyncio.gather(leaf(1), middle(2))


async def deep(n):
    if n:
        return await deep(n - 1)
    return await asyncio.shield(leaf(1))


async def shared():
    task = asyncio.ensure_future(middle(2))

    async def awaits():
        await task

    await asyncio.gather(awaits(), awaits())
    await deep(AWAITING_MOST)


async def groups():
    async with asyncio.TaskGroup() as group:
        group.create_task(gathers())
        group.create_task(leaf(2))


async def coroutines():
    await middle(2)
    await asyncio.gather(leaf(1), middle(1), asyncio.ensure_future(leaf(2)))
    await asyncio.gather(gathers(), shared())
    if hasattr(asyncio, "TaskGroup"):
        await groups()


def threads():
    ending = threading.Event()

    def spin():
        while not ending.is_set():
            sum(range(100))

    def work(depth):
        for _ in range(5):
            recursion(depth)
            call(held)

    others = [threading.Thread(target=spin) for _ in range(2)]
    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in others + workers:
        thread.start()
    for thread in workers:
        thread.join()
    ending.set()
    for thread in others:
        thread.join()


def made_functions():
    """Functions of equal shape, one after the other at the same address: what differs is a name, or lines."""
    for i in range(40):
        names = {"call": call}
        exec(compile(f"def made_{i:02}():\n    call()\n", "made.py", "exec"), names)
        names[f"made_{i:02}"]()
        names.clear()
        gc.collect()
    for i in range(40):
        exec(compile("\n" * i + "call()\n", "lines.py", "exec"), {"call": call})
        gc.collect()
    for i in range(40):
        exec(compile("x = 1\n" * 20 + "\n" * i + "call()\n" + "\n" * (40 - i), "late.py", "exec"), {"call": call})


def unusual_names():
    names = {"call": call}
    exec(compile("def f\u00e9():\n  call()\ndef \u51fd\u6570():\n  f\u00e9()\ndef \U0001d4ce():\n  \u51fd\u6570()\n\U0001d4ce()\n", "d\u00e9j\u00e0 vu;\u51fd.py", "exec"), names)
    exec(compile("def " + "n" * 100 + "():\n  call()\n" + "n" * 100 + "()\n", "long.py", "exec"), names)
    body = "".join(f"  x = {i} if call else call\n" for i in range(500))
    exec(compile("def long():\n" + body + "  call()\nlong()\n", "long_function.py", "exec"), names)


SUB = """
import ctypes, sys
library = ctypes.{kind}("libcudart.so.13")
def inner():
    assert library.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t({bytes})) == 0
with open({path!r}, "w") as file:
    file.write(sys._getframe().f_code.co_filename)
inner()
"""


def sub_interpreter(**isolated):
    """With the interpreter's lock its stack is told; without, the thread is in two, and none is told."""
    try:
        import _interpreters as interpreters
        new = interpreters.create("isolated" if isolated else "legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        new = interpreters.create(isolated=False) if sys.version_info >= (3, 9) else interpreters.create()
    for kind in "PyDLL", "CDLL":
        number = next(numbers)
        try:
            failed = interpreters.run_string(new, SUB.format(kind=kind, bytes=number, path=sys.argv[1] + ".sub"))
        except interpreters.RunFailedError if hasattr(interpreters, "RunFailedError") else RuntimeError as error:
            failed = error
        if failed:
            print("no sub-interpreter:", failed, file=sys.stderr)
            return
        with open(sys.argv[1] + ".sub") as said_by_it:
            file = said_by_it.read()
        said.append([[f"<module> ({file}:8)", f"inner ({file}:5)"] if kind == "PyDLL" else ["[one of several interpreters]"], number])


def main():
    call()
    generators()
    recursion(10)
    recursion(125 - 2)
    recursion(300)
    things = [Things(), Things()]
    things[0].cached()
    things[1].attribute
    sorted(things)
    Things.cached.cache_clear()
    things.clear()
    gc.collect()
    for i in range(60):
        Made(i % 3)
    exceptions()
    asyncio.run(coroutines())
    threads()
    made_functions()
    unusual_names()
    sub_interpreter()
    if sys.version_info >= (3, 13):
        sub_interpreter(isolated=True)  # with a lock of its own
    write(sys.argv[1])


main()
