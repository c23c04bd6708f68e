# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does on a CPU, in steps, and CUDA calls that find no GPU. Run by frameworks.py.

    torch_job.py REPORT RUNTIME < lines

Standard output and error are the same at each run. REPORT gets a line of JSON after each step, and the job waits for a line of input then.
RUNTIME is a libcudart that PyTorch has no use for, "" where it has one of its own. JOB_COMPILE=1: torch.compile, too.
"""
import collections
import ctypes
import hashlib
import json
import os
import sys
import time
import warnings

before_ns = time.monotonic_ns()
driver = ctypes.CDLL("libcuda.so.1")

import torch # noqa: E402 pylint: disable=wrong-import-position

REPORT, RUNTIME = sys.argv[1:3]
NONE = ctypes.c_void_p()
calls = collections.defaultdict(collections.Counter)


def step(name, **more):
    with open(REPORT, "a", encoding="ascii") as f:
        print(json.dumps({"step": name, "pid": os.getpid(), **more}), file=f)
    sys.stdin.readline()


def digest(tensor):
    tensor = tensor.detach().contiguous()
    return hashlib.sha256(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())).hexdigest()[:16]


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((3,), float(i)) ** 2


def tensors():
    """Operators, their gradients, exceptions of C++ caught in Python, and processes that are forked for data."""
    torch.manual_seed(7)
    x = torch.randn(96, 96, requires_grad=True)
    y = torch.nn.functional.gelu(x @ x).tanh()
    y.sum().backward()
    model = torch.nn.Sequential(torch.nn.Linear(96, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x.detach()) ** 2).mean()
        loss.backward()
        optimizer.step()
    caught = 0
    for _ in range(200):
        try:
            torch.ones(2, 3) + torch.ones(4, 5)
        except RuntimeError:
            caught += 1
    loaded = sum(batch.sum().item() for batch in torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2))
    print("tensors", digest(y), digest(x.grad), digest(loss), caught, loaded, flush=True)


def availability():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        print("available", torch.cuda.is_available(), *(str(w.message) for w in warned))
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as why:
        print("init", type(why).__name__, why, flush=True)


def call(api, times, function, *args):
    for _ in range(times):
        calls[api][str(int(function(*args)))] += 1


def driver_calls():
    for api, times in (("cuMemAlloc_v2", 300), ("cuLaunchKernel", 200), ("cuStreamSynchronize", 100), ("cuMemcpyHtoD_v2", 7)):
        call(api, times, driver[api], *([NONE] * 11))


def runtime_calls(runtime):
    for api, times in (("cudaMalloc", 50), ("cudaMemcpy", 40), ("cudaStreamSynchronize", 30), ("cudaFree", 20)):
        call(api, times, runtime[api], NONE, NONE, NONE, 0)
    binding = getattr(torch._C, "_cudart", None) # PyTorch's own way to the runtime
    if binding:
        memory = ctypes.create_string_buffer(4096)
        call("cudaHostRegister", 60, binding.cudaHostRegister, ctypes.addressof(memory), 4096, 0)
        call("cudaStreamCreate", 9, binding.cudaStreamCreate, ctypes.addressof(memory))


def compiled():
    function = torch.compile(lambda x: torch.nn.functional.gelu(x @ x / 9).sum())
    print("compiled", round(function(torch.ones(9, 9)).item(), 4), flush=True)


def mapped():
    with open("/proc/self/maps", encoding="utf-8") as f:
        return sorted({line.split(None, 5)[5].rstrip("\n") for line in f if ".so" in line})


def main():
    torch.set_num_threads(2)
    tensors()
    step("begun", version=torch.__version__, before_ns=before_ns)
    runtime = ctypes.CDLL(RUNTIME or "libcudart.so.13")
    step("loaded", mapped=mapped())
    driver_calls()
    runtime_calls(runtime)
    availability()
    tensors()
    step("called", calls=calls)
    driver_calls()
    tensors()
    if os.environ.get("JOB_COMPILE"):
        compiled()
    step("done", calls=calls)


if __name__ == "__main__":
    main()
