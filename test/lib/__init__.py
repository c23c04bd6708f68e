# SPDX-License-Identifier: Apache-2.0
"""What tests of several kinds share. A test imports it as "lib", because test/meson.build puts this folder's parent on PYTHONPATH.

    e2e             an agent, the command line, patience; the runner of test_* functions
    traced, atop    clients: programs that are traced, and what an agent says of them; the atop protocol
    capabilities, filters, capabilities_run   users with exactly some capabilities, and refused system calls
    devices         device cgroups: NVIDIA's numbers without NVIDIA, what may be opened, BPF programs
    cgroups         cgroups made like those of container runtimes and batch systems
    checks          cases that are functions which say what is wrong
    fetch           real things that are downloaded once: drivers, runtimes, kernels
    kube_dump       gpusonde-kube, asked by a test
    nvidia_header   NVIDIA's nvml.h
    contract        what a page of /container/metrics must be, byte by byte
    counts          calls and errors, of programs that say what they called
    rows, tables    rows of docs/compatibility.md
    arm64, goals    what was cross-built; what to build for the tests of a suite
"""
