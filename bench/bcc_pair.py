#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A probe pair as in tools based on BCC: at the function's first byte, each program one bpf_trace_printk.

    bcc_pair.py LIBRARY SYMBOL      then "on" and "off" as lines, each answered with one

BCC compiles against a kernel's headers. Where the running kernel's are not installed, those of Debian's own kernel do, since these programs
look at none of the kernel's structures.
"""
import glob
import os
import sys
import tempfile

from bcc import BPF

PROGRAMS = r"""
int at_entry(struct pt_regs *ctx) { bpf_trace_printk("%d begins\n", bpf_get_current_pid_tgid() >> 32); return 0; }
int at_return(struct pt_regs *ctx) { bpf_trace_printk("%d ends\n", bpf_get_current_pid_tgid() >> 32); return 0; }
"""


def link_all(source, target):
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if not os.path.lexists(f"{target}/{name}"):
            os.symlink(f"{source}/{name}", f"{target}/{name}")


def debian_headers(folder):
    """Debian has a kernel's headers in two folders, BCC needs them in one."""
    found = [h for h in sorted(glob.glob("/usr/src/linux-headers-*")) if not h.endswith("-common")]
    if not found:
        sys.exit("no kernel headers: apt-get install linux-headers-" + ("arm64" if os.uname().machine == "aarch64" else "amd64"))
    common = found[-1].rsplit("-", 1)[0] + "-common"
    arch = "arch/" + ("arm64" if os.uname().machine == "aarch64" else "x86") + "/include"
    for part in ("include", arch):
        link_all(f"{found[-1]}/{part}", f"{folder}/{part}")
        link_all(f"{common}/{part}", f"{folder}/{part}")


def compiled():
    if os.path.isdir(f"/lib/modules/{os.uname().release}/build"):
        return BPF(text=PROGRAMS)
    with tempfile.TemporaryDirectory() as folder:
        debian_headers(folder)
        os.environ["BCC_KERNEL_SOURCE"] = folder
        return BPF(text=PROGRAMS)


def main():
    library, symbol = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # BCC writes to stdout, too
    bpf = compiled()
    for line in sys.stdin:
        if line.strip() == "on":
            bpf.attach_uprobe(name=library, sym=symbol, fn_name="at_entry")
            bpf.attach_uretprobe(name=library, sym=symbol, fn_name="at_return")
        else:
            bpf.detach_uretprobe(name=library, sym=symbol)
            bpf.detach_uprobe(name=library, sym=symbol)
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
