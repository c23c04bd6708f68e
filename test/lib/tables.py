# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/compatibility.md. The rows come from the tests: rows.py."""
import typing


class Table(typing.NamedTuple):
    title: str
    first: str          # what a row is
    columns: dict       # name that tests use -> heading
    text: str


TABLES = {
    "machines": Table("Machines", "machine", {
        "built": "built",
        "quick": "unit tests, quick",
        "rest": "unit tests, the others",
    }, "Cross-built on x86-64. Unit tests run under qemu's user emulation, which has no BPF, no perf events and no seccomp; what takes these runs in virtual machines."),
    "kernels": Table("Kernels", "kernel", {
        "way": "probes attached by",
        "found": "new programs found by",
        "sites": "sites without a single step",
        "simulated": "simulated CUDA",
        "real": "NVIDIA's libcuda",
        "exceptions": "exceptions through probed functions",
        "cost": "a traced call, against an empty probe",
    }, "Debian's kernels, booted under qemu; arm64 on a machine of its own in software."),
    "libcuda": Table("NVIDIA's libcuda", "library", {
        "functions": "probed functions",
        "site": "where a probe sits",
        "counted": "calls and results",
        "lookups": "calls through cuGetProcAddress",
    }, "The real library, without a GPU: every call fails, and each is counted with its code."),
    "nvml": Table("NVIDIA's NVML", "library", {
        "functions": "functions of it that are used",
        "unloaded": "without the kernel module",
        "replaced": "when the driver comes",
        "lost": "what this generation does not offer",
    }, "The real library without a GPU, and the simulated one that offers what that generation did."),
    "runtimes": Table("CUDA runtimes", "runtime", {
        "version": "version",
        "functions": "probed functions",
        "real": "over NVIDIA's 550",
        "others": "over NVIDIA's 535 and 470",
        "simulated": "over the simulated driver",
        "streams": "default streams",
    }, "The real runtime, shared and in programs. Over the simulated driver it gets as far as cuInit, then asks cuGetExportTable for a table of functions that is NVIDIA's "
       "own, and fails with what that answers, 500."),
    "frameworks": Table("Frameworks", "framework", {
        "libraries": "libraries probed, with how many entry points",
        "counted": "calls and results",
        "attach": "beside the agent, until all is probed",
        "attach_pid": "by gpusonde trace -p, until all is probed",
        "runs": "runs as without gpusonde",
        "fetched": "download",
    }, "CPU operators, gradients, exceptions and data loaders run; its CUDA libraries are mapped and probed, NVIDIA's libcuda 550 finds no GPU. All is probed when each entry "
       "point is seen to be a breakpoint in the process's memory."),
    "blas": Table("cuBLAS and cuDNN", "library", {
        "arguments": "arguments and calls",
    }, "The real libraries, without a GPU: every call fails, with its arguments in place."),
    "operators": Table("PyTorch's operators", "PyTorch and interpreter", {
        "counted": "calls, counted",
        "stacks": "stacks of Python functions, at operators",
    }, "On a CPU: operators call a simulated CUDA on their way. What PyTorch's own profiler counts, and what traceback says at that line, is what gpusonde tells."),
    "pythons": Table("CPython", "version", {
        "stacks": "stacks of Python functions",
        "native": "native frames beside",
        "limits": "large programs, and ends",
        "waits": "waits for the lock",
    }, "Debian's newest interpreters, such without a lock (t), compiled from Debian's sources, and what is installed of pyenv and Debian."),
    "distributions": Table("Distributions", "distribution", {
        "toolchain": "compilers",
        "libraries": "libraries",
        "run": "make run",
        "test": "make test",
    }, "A root made by debootstrap, the two commands of the README in a fresh clone."),
    "capabilities": Table("Capabilities", "who", {
        "devices": "device metrics",
        "tracing": "tracing",
        "said": "what is said of the rest",
    }, "What each set of capabilities is enough for."),
    "engines": Table("Engines", "engine", {
        "scraped": "scrapes",
        "native": "native histograms",
        "written": "remote write",
        "otlp": "OpenTelemetry's protocol",
        "promtool": "promtool",
    }, "What takes the numbers, as Debian has it: /metrics by each protocol that it can be told to ask for, and what is pushed to it, read back by query and compared with the "
       "page. The tests of every day also take Prometheus 2.42 of Debian 12. Debian's Prometheus is compiled without OpenTelemetry's protocol."),
    "kubernetes": Table("Kubernetes", "node", {
        "names": "processes of pods",
        "traced": "CUDA calls of pods",
        "allocated": "GPUs that pods were given",
        "crowd": "many pods",
        "reused": "a PID that is used again",
        "chart": "the chart",
    }, "A real node, of which only GPUs, their driver and CUDA are simulated; the agent is the DaemonSet of kubernetes-deploy.md."),
    "unknown": Table("Libraries of an unknown generation", "library", {
        "served": "what is served",
        "refused": "what is not, and is said",
    }, "Made up, for what has not been published yet."),
}
