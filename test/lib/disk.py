# SPDX-License-Identifier: Apache-2.0
"""Disks that a test makes."""
import contextlib
import os
import subprocess

from lib.e2e import Skip


@contextlib.contextmanager
def full_disk(folder):
    """A folder that is made, on which no byte is free."""
    os.makedirs(folder)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False).returncode:
        raise Skip("a small file system wants root, with CAP_SYS_ADMIN")
    try:
        with open(f"{folder}/filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096):
                pass
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
