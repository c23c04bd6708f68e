# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators, each of which allocates memory of CUDA on its way, and from where, as traceback says. Run by operators.py.

    stacks_job.py RUNTIME FILE        RUNTIME: a simulated libcudart; FILE gets a line of JSON for each: [[frame, ...], operator, bytes], the outermost frame first

An operator calls Python back before it does its work (a dispatch mode), so each call comes from within the operator's C++ code, in a process, in threads, coroutines,
gradients, the processes of data loaders, and in what torch.compile has compiled. What is told of it is what traceback walks at that moment.
"""
import asyncio
import ctypes
import itertools
import json
import shutil
import sys
import threading
import traceback

import torch
import torch.utils.data
from torch.utils._python_dispatch import TorchDispatchMode

RUNTIME, SAID = sys.argv[1:3]
MOST = 127
WORKERS = 2
cuda = ctypes.CDLL(RUNTIME)
numbers = itertools.count(1)


def said(frame, operator):
    """Bytes, which are told with the stack."""
    number = next(numbers)
    frames = [f"{getattr(f.f_code, 'co_qualname', f.f_code.co_name)} ({f.f_code.co_filename}:{line})".replace(";", ":") for f, line in traceback.walk_stack(frame)]
    if len(frames) > MOST:
        frames = frames[:MOST] + ["[deeper stack]"]
    with open(SAID, "a", encoding="utf-8") as f:
        print(json.dumps([frames[::-1], operator, number]), file=f)
    return ctypes.c_size_t(number)


def call(operator=None):
    # One line: the frame's line is the call's.
    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), said(sys._getframe(), operator)) == 0


class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        call(str(func).split(".", 1)[1])
        return func(*args, **kwargs or {})


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        call()
        return x ** 3

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        call()
        return 3 * x ** 2 * gradient


def body():
    """Operators within operators, views, in place, a backward pass with a hook and a function of Python, exceptions of C++ and of Python that leave operators."""
    weight = torch.full((4, 4), 0.5, requires_grad=True)
    weight.register_hook(lambda gradient: call())
    with Calls():
        hidden = torch.tanh(torch.relu(torch.nn.functional.linear(torch.ones(3, 4), weight)))
        loss = (Cube.apply(hidden).t()[1:].sum() + torch.nn.functional.gelu(hidden).mean()) ** 2
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.1).mul_(2).sigmoid_()
        for shape in (4, 5), (7, 2):
            try:
                torch.ones(2, 3) + torch.ones(shape)
            except RuntimeError:
                call()
        try:
            Failing()(torch.ones(3))
        except ValueError:
            call()
    return [round(v, 5) for v in weight.detach().flatten().tolist()]


class Failing(torch.nn.Module):
    def forward(self, x):
        with Raises():
            return torch.exp(x).sum()


class Raises(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        call()
        raise ValueError("expected")


def threads():
    running = [threading.Thread(target=body) for _ in range(WORKERS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


async def waiting(depth):
    if depth:
        return await waiting(depth - 1)
    found = []
    for _ in range(2):
        found.append(body())
        await asyncio.sleep(0)
    return found


async def tasks():
    await asyncio.gather(*(waiting(i) for i in range(WORKERS)))


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return body()


def loader(context):
    return list(torch.utils.data.DataLoader(Items(), batch_size=None, num_workers=WORKERS, multiprocessing_context=context))


def down(depth):
    return body() if depth == 0 else down(depth - 1)


def compiled():
    """Code that the compiler has made calls Python where it could not compile further, and goes on behind."""
    def part(x):
        y = torch.nn.functional.gelu(x @ x / 9)
        outside(1)
        return (y * 2).sum()
    disable = torch._dynamo.disable

    @disable
    def outside(n):
        call()
        return n
    function = torch.compile(part)
    return [round(function(torch.ones(9, 9)).item(), 4) for _ in range(3)]


def main():
    torch.set_num_threads(1)
    loaded = loader("fork") # first: CUDA does not work in a child of a process that has used it
    print("fork", loaded)
    print("spawn", loader("spawn") == loaded)
    print("alone", body() == loaded[0], down(90) == loaded[0])
    threads()
    asyncio.run(tasks())
    if hasattr(torch, "compile") and shutil.which("g++"):
        print("compiled", compiled())
    sys.stdout.flush()


if __name__ == "__main__":
    main()
