# SPDX-License-Identifier: Apache-2.0
"""A machine for a few seconds: a kernel under qemu's software emulation, an initramfs of our files, shell scripts, and what these left.

Each script runs by itself, with a time limit; what it writes to stdout and stderr and the files that it leaves in $OUT come back over
the second serial port. The first is the kernel's console, for people who have to find out why.
"""
import base64
import os
import re
import stat
import subprocess
import tempfile
import typing

# Against hangs alone: guests run by what other tests leave of the processors.
CASE_S = 900    # for one script, in the guest
BOOT_S = 1800   # for a whole guest; 5 to 60 s is what it takes on a machine that does nothing else
NICE = "10"
CONSOLE_LINES = 60


class Machine(typing.NamedTuple):
    """@qemu: its name, and what is emulated. @console, @results: serial ports as the guest calls them."""
    qemu: tuple
    console: str
    results: str
    ports: tuple        # of qemu, for files @console and @results
    folders: tuple      # where Debian keeps libraries for it, on this machine and in the guest
    append: str = ""    # to the kernel's command line


MACHINES = {
    # Defects of the emulator (qemu 7.2), which had one boot in twenty of an idle 6.12 end in a panic, without a program of ours in it:
    # - the flags after a cmpxchg16b are made from stale state, so that an interrupt right behind one, in the kernel's allocator, comes back
    #   with garbage in them (double fault in __kmalloc, general protection fault in iret): the processor has no such instruction;
    # - with a host thread for each processor, a breakpoint that the kernel patches over its own code is met after it is gone (oops "int3"): it
    #   is one thread, which changes processors at any instruction all the same.
    # And on a busy machine its timer is late for a kernel that looks whether it works, and stops if it does not: it is told not to look.
    "amd64": Machine(("qemu-system-x86_64", "-cpu", "max,-cx16"), "ttyS0", "ttyS1",
                     ("-serial", "file:{console}", "-serial", "file:{results}"), ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"),
                     "no_timer_check"),
    # Pointers are signed by a hash that the emulator has a quick way for. The board has one serial port, the second is on PCI, for which
    # Debian's cloud kernels have the driver built in.
    "arm64": Machine(("qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"), "ttyAMA0", "ttyS0",
                     ("-serial", "file:{console}", "-chardev", "file,id=results,path={results}", "-device", "pci-serial,chardev=results"),
                     ("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu")),
}
ACCELERATOR = "tcg,thread=single"

# The port stays open: when it is closed, the kernel waits 30 s for what is not sent yet, and drops the rest.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
stty -F /dev/@RESULTS@ raw -echo
exec 9>/dev/@RESULTS@
for case in /cases/*; do
	name=${case##*/[0-9][0-9]-}
	export OUT=/tmp/out-$name
	mkdir $OUT
	cd $OUT
	read begun _ </proc/uptime
	timeout @SECONDS@ sh $case >$OUT/stdout 2>$OUT/stderr </dev/null 9>&-
	rc=$?
	read ended _ </proc/uptime
	{
		echo "@case $name $rc $((${ended%.*} - ${begun%.*}))"
		for file in $OUT/*; do
			[ -f $file ] || continue # a pipe would be waited for
			echo "@file ${file##*/}"
			base64 $file
		done
		echo "@end"
	} >&9
	stty -F /dev/@RESULTS@ raw -echo # until all of it is sent
done
poweroff -f
"""


class Result:
    """Of one script: its status, how long it took, and what it left, file by file."""

    def __init__(self, status, seconds):
        self.status, self.seconds, self.files = status, seconds, {}

    def text(self, name):
        return self.files[name].decode(errors="replace")

    def says(self):
        """For a message of a failure."""
        return f"status {self.status}; " + "; ".join(f"{n}: {self.text(n)[-1500:]!r}" for n in ("stdout", "stderr") if n in self.files)


def newc(name, mode, data=b"", device=(0, 0)):
    """One entry of a cpio archive, "new ASCII" format."""
    size = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(size), 0]
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + size
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def dynamic(program, what):
    """What its dynamic section says of NEEDED, RUNPATH or its header of the interpreter; none, where it is static."""
    done = subprocess.run(["readelf", "-W", "-d", "-l", program], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"), check=True)
    return re.findall({"NEEDED": r"\(NEEDED\).*\[(.*)\]", "RUNPATH": r"\((?:RUNPATH|RPATH)\).*\[(.*)\]",
                       "interpreter": r"program interpreter: (.*)\]"}[what], done.stdout)


def libraries(program, machine):
    """
    What the dynamic linker loads for a program of @machine, and the linker: path in the guest -> path here. ldd would ask the program itself, which
    another machine's cannot answer.
    """
    found = {}
    queue = [program]
    while queue:
        path = queue.pop()
        folders = [f.replace("$ORIGIN", os.path.dirname(path)) for r in dynamic(path, "RUNPATH") for f in r.split(":")]
        for name in dynamic(path, "NEEDED"):
            target = f"{machine.folders[0]}/{name}"
            at = [f"{f}/{name}" for f in (*folders, *machine.folders) if os.path.exists(f"{f}/{name}")]
            if not at:
                raise RuntimeError(f"{program} needs {name}, which is not in {[*folders, *machine.folders]}")
            if target not in found:
                found[target] = at[0]
                queue.append(at[0])
        for name in dynamic(path, "interpreter"):
            found[name] = f"{machine.folders[0]}/{os.path.basename(name)}"
    return found


class Image:
    """An initramfs for a machine of MACHINES: path in the guest -> bytes. @busybox: a static one for it."""

    def __init__(self, arch, busybox):
        self.machine, self.files, self.seconds = MACHINES[arch], {}, CASE_S
        self.add_program(busybox, "/bin/busybox")

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def add(self, path, target):
        self.files[target] = self.read(path)

    def add_program(self, path, target):
        self.add(path, target)
        for library, here in libraries(path, self.machine).items():
            self.add(here, library)

    def write(self, scripts, path):
        """@scripts: name -> shell text, run in this order."""
        init = INIT.replace("@SECONDS@", str(self.seconds)).replace("@RESULTS@", self.machine.results)
        files = dict(self.files, **{"/init": init.encode()})
        files.update({f"/cases/{i:02}-{name}": text.encode() for i, (name, text) in enumerate(scripts.items())})
        folders = {"/dev"}
        for name in files:
            while (name := os.path.dirname(name)) != "/":
                folders.add(name)
        with open(path, "wb") as f:
            for name in sorted(folders):
                f.write(newc(name[1:], stat.S_IFDIR | 0o755))
            f.write(newc("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
            for name, data in files.items():
                f.write(newc(name[1:], stat.S_IFREG | 0o755, data))
            f.write(newc("TRAILER!!!", 0))


def results(raw):
    """name -> Result, of what came over the second serial port; a script that did not end is not there."""
    found, result, name, lines = {}, None, None, []
    for line in raw.decode(errors="replace").replace("\r", "").split("\n"):
        word, _, rest = line.partition(" ")
        if word == "@case":
            case, status, seconds = rest.split()
            result, name = Result(int(status), int(seconds)), None
        elif word in ("@file", "@end") and result:
            if name:
                result.files[name] = base64.b64decode("".join(lines))
            name, lines = rest, []
            if word == "@end":
                found[case], result = result, None
        else:
            lines.append(line)
    return found


def boot(kernel, image, scripts):
    """Runs them all: (name -> Result, the end of the kernel's console)."""
    machine = image.machine
    with tempfile.TemporaryDirectory() as tmp:
        image.write(scripts, f"{tmp}/initrd")
        # When we are killed, no guest is left behind.
        command = ["nice", "-n", NICE, "setpriv", "--pdeathsig", "KILL", *machine.qemu, "-accel", ACCELERATOR, "-smp", "2", "-m", "1024",
                   "-nodefaults", "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", f"{tmp}/initrd",
                   "-append", f"console={machine.console} quiet panic=-1 {machine.append}",
                   *(p.format(console=f"{tmp}/console", results=f"{tmp}/results") for p in machine.ports)]
        end = ""
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOOT_S, check=False)
            if done.returncode:
                end = f"\nqemu ended with status {done.returncode}: {done.stderr}"
        except subprocess.TimeoutExpired:
            end = f"\nthe guest did not power off within {BOOT_S} s"
        console, raw = (Image.read(p) if os.path.exists(p) else b"" for p in (f"{tmp}/console", f"{tmp}/results"))
    lines = re.sub(r"\x1b\S*", "", console.decode(errors="replace").replace("\r", "")).split("\n")
    return results(raw), "\n".join(lines[-CONSOLE_LINES:]) + end
