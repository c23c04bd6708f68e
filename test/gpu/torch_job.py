# SPDX-License-Identifier: Apache-2.0
"""A little PyTorch on the GPU: the same output at each run. "torch_job.py profile": CUPTI's count of its kernels, by torch.profiler, too."""
import sys

import torch


def work():
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    x = torch.randint(-3, 4, (256, 256), device="cuda").float()
    caught = 0
    for _ in range(50):
        x = ((x @ x) % 7).relu() - 3
        try:
            torch.ones(2, 3, device="cuda") + torch.ones(4, 5, device="cuda")
        except RuntimeError:
            caught += 1
    torch.cuda.synchronize()
    return f"sum {x.sum().item():.0f}, caught {caught}"


def main():
    torch.cuda.init()
    if sys.argv[1:] != ["profile"]:
        print(work())
        return
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        print(work())
    launches = sum(e.count for e in profiler.key_averages() if "LaunchKernel" in e.key)
    print("launches", launches)
    # As recorded: of an operator within one of the same name, key_averages() drops one.
    names = [event.name() for event in profiler.profiler.kineto_results.events()]
    for name in sorted(n for n in set(names) if n.startswith("aten::")):
        print("operator", name.removeprefix("aten::"), names.count(name))


main()
