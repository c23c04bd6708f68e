#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waits for the end of its standard input, which comes with that of the test, however that ended; then nothing of the node is left.

    guardian.py CGROUP FOLDER

Its mounts and its network are gone with the last process of their namespaces, which is this one.
"""
import os
import shutil
import subprocess
import sys

from kube import sandbox


def main():
    name, folder = sys.argv[1:3]
    while os.read(0, 4096):
        pass
    left = sandbox.remove_cgroup(name)
    # Of pods: secrets in memory, root folders.
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounted = [line.split()[1] for line in f]
    for path in reversed(mounted):
        if path.startswith((f"{folder}/", "/var/lib/kubelet/", "/run/containerd/", "/run/netns/")):
            subprocess.run(["umount", "--lazy", path], check=False, stderr=subprocess.DEVNULL)
    for path in sandbox.OVERLAID:
        subprocess.run(["umount", "--lazy", path], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)
    if left:
        print(f"left: {' '.join(left)}", file=sys.stderr)


if __name__ == "__main__":
    main()
