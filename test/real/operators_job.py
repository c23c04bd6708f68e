# SPDX-License-Identifier: Apache-2.0
"""Runs a fixed list of PyTorch's operators, again and again. Run by operators.py.

    operators_job.py HOW[+HOW...] TIMES   runs body() TIMES times, HOW: see the functions below; prints what came out
    operators_job.py until FILE           runs body() until there is FILE, and ten times more; prints what came out, each once
    operators_job.py truth HOW[+HOW...]   prints {operator: calls} of one body(), HOW, as PyTorch's own profiler counts them
    operators_job.py memory TIMES         runs body() TIMES times and as many steps of an optimizer; prints what the profiler says of the allocator and of nodes

What the interpreter, its imports and each way do besides is the same whatever TIMES is, and so no part of the difference between two runs.
"""
import asyncio
import collections
import hashlib
import json
import multiprocessing
import os
import sys
import threading
import time

import torch
import torch.utils.data

WORKERS = 2


def failing():
    """An exception of C++ that leaves an operator, and one that leaves an operator within another one."""
    for left, right in (((2, 3), (4, 5)), ((7, 2), (3, 7))):
        try:
            torch.ones(left) + torch.ones(right)
        except RuntimeError:
            pass
    try:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5))
    except RuntimeError:
        pass


def body():
    """Operators within operators, views, in place, without arguments, a backward pass, exceptions."""
    weight = torch.full((4, 4), 0.5, requires_grad=True)
    hidden = torch.tanh(torch.relu(torch.nn.functional.linear(torch.ones(3, 4), weight)))
    loss = (hidden.t()[1:].sum() + torch.nn.functional.gelu(hidden).mean()) ** 2
    loss.backward()
    with torch.no_grad():
        weight.sub_(weight.grad, alpha=0.1).mul_(2).sigmoid_()
    failing()
    return [round(v, 5) for v in weight.detach().flatten().tolist()]


def digest(found):
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def plain(times):
    return [body() for _ in range(times)]


def until(path):
    found = set()
    while not os.path.exists(path):
        found.add(tuple(body()))
        time.sleep(0.02)
    return found | set(map(tuple, plain(10)))


def threads(times):
    found = [None] * WORKERS

    def work(i):
        found[i] = plain(times // WORKERS)
    running = [threading.Thread(target=work, args=(i,)) for i in range(WORKERS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [t for of_one in found for t in of_one]


def tasks(times):
    """Coroutines that take turns, on one stack."""
    async def work():
        found = []
        for _ in range(times // WORKERS):
            found.append(body())
            await asyncio.sleep(0)
        return found

    async def all_of_them():
        return await asyncio.gather(*(work() for _ in range(WORKERS)))
    return [t for of_one in asyncio.run(all_of_them()) for t in of_one]


class Items(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return body()



def loader(times, context):
    loaded = torch.utils.data.DataLoader(Items(times), batch_size=None, sampler=range(times), num_workers=WORKERS, multiprocessing_context=context)
    return list(loaded)


def forked(times):
    return loader(times, "fork")


def spawned(times):
    return loader(times, "spawn")


def recursion(times):
    """From deep in the stack, where other things were called before."""
    def down(depth):
        return body() if depth == 0 else down(depth - 1)
    return [down(i % 40) for i in range(times)]


def compiled(times):
    function = torch.compile(lambda x: torch.nn.functional.gelu(x @ x / 9).sum())
    return [round(function(torch.ones(9, 9)).item(), 4) for _ in range(times)]


def memory(times):
    """The allocator of the CPU says what it does only while PyTorch's profiler records memory."""
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        plain(times)
        for _ in range(times):
            weight.grad = torch.ones(4)
            optimizer.step()
    events = profile.kineto_results.events()
    moved = [e.nbytes() for e in events if e.name() == "[memory]"]
    nodes = collections.Counter(e.name().split("::")[-1].split(": ")[-1] for e in events if e.name().startswith("autograd::engine::evaluate_function"))
    return {"allocations": sum(n > 0 for n in moved), "frees": sum(n < 0 for n in moved), "allocations_bytes": sum(n for n in moved if n > 0), "nodes": nodes}


def truth(how):
    """By the profiler, of the second time: the first one makes what is made once."""
    one = {"compiled": compiled_once, "forked": loaded_once, "spawned": loaded_once}.get(how, lambda: body)()
    one()
    with torch.autograd.profiler.profile() as profile:
        one()
    counted = collections.Counter()
    for event in profile.kineto_results.events(): # function_events leaves out what has the name of what it is within
        if event.name().startswith("aten::"):
            counted[event.name()[len("aten::"):]] += 1
        elif event.name().startswith("autograd::engine::evaluate_function"):
            counted["backward.node"] += 1
    return counted


def compiled_once():
    function = torch.compile(lambda x: torch.nn.functional.gelu(x @ x / 9).sum())
    return lambda: function(torch.ones(9, 9)).item()


def loaded_once():
    """A data loader marks each item for the profiler, which takes operators."""
    def once():
        with torch.autograd.profiler.record_function("item"):
            body()
    return once


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "until":
        print(until(sys.argv[2]))
        return
    if sys.argv[1] == "truth":
        schemas = {s.name.split("::", 1)[1] + (f".{s.overload_name}" if s.overload_name else "")
                   for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}
        print(json.dumps({"version": torch.__version__, "calls": {how: truth(how) for how in sys.argv[2].split("+")}, "names": sorted(schemas)}))
        return
    if sys.argv[1] == "memory":
        print(json.dumps(memory(int(sys.argv[2]))))
        return
    for how in sys.argv[1].split("+"):
        found = globals()[how](int(sys.argv[2]))
        print(how, len(found), digest(found), flush=True)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()
