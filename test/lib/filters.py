#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Filters of system calls.

    filters.py CALL COMMAND...

Executes the command, for which that call is refused.
"""
import ctypes
import os
import platform
import struct
import sys

# prctl(2), seccomp(2), linux/filter.h, linux/seccomp.h, linux/audit.h.
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO, EPERM = 0x7FFF0000, 0x00050000, 1
LOAD_NR, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
SYSCALLS = {"x86_64": {"bpf": 321, "capget": 125, "perf_event_open": 298}, "aarch64": {"bpf": 280, "capget": 90, "perf_event_open": 241}}


def deny(call):
    """For a child before it executes: the call is refused with EPERM from here on."""
    number = SYSCALLS[platform.machine()][call]
    code = b"".join(struct.pack("<HBBI", *i) for i in ((LOAD_NR, 0, 0, 0), (JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | EPERM),
                                                      (RETURN, 0, 0, RET_ALLOW)))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    deny(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
