#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary users map libraries to stop, blind or use up an agent that traces: others are traced as before, and fork() does not wait."""
import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import time

from lib.e2e import BUILD, Agent, Skip, contains, equal, run, values, wait_for
from lib.traced import BUSY, DRIVER, SCENARIO, Workload, all_counted, begun, links, probed_when_loaded, tells_links

USER, OTHER = 12345, 12346
COPIES = 60 # fewer than 64, with more than 4,096 sites
FORK_S = 1 # far above what a busy machine takes, far below what is withheld
HELD_S = 20


def tracing(*flags):
    if os.geteuid() != 0:
        raise Skip("tracing, and programs of other users, need root")
    return Agent("--trace-enabled", "yes", *flags, scenario=SCENARIO)


def as_user(user):
    return {"user": user, "group": user, "extra_groups": [], "start_new_session": True}


@contextlib.contextmanager
def withheld(agent, what):
    """A process of USER that withholds the pages, or the opening, of a library that it maps."""
    device = f"{agent.tmp}/fuse"
    os.chmod(agent.tmp, 0o755)
    os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(10, 229))
    os.chmod(device, 0o666)
    program = shutil.copy(f"{BUILD}/test/e2e/withhold", f"{agent.tmp}/withhold")
    library = shutil.copy(DRIVER, f"{agent.tmp}/theirs")
    os.chmod(library, 0o644)
    process = subprocess.Popen([program, what, device, library, str(HELD_S)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               **as_user(USER))
    try:
        line = process.stdout.readline()
        if not line:
            raise Skip(f"an ordinary user cannot mount FUSE here: {process.stderr.read()}")
        yield int(line.split()[1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()


def unread(agent, reason):
    return sum(values(agent.metrics(), "gpusonde_trace_unread_libraries_total", reason=reason))


def longest_fork(seconds):
    longest, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        longest = max(longest, time.monotonic() - begin)
        os.waitpid(pid, 0)
        time.sleep(0.005)
    return longest


def bystander_is_traced(agent):
    with Workload(agent, BUSY + "; pause") as workload:
        probed_when_loaded(agent, workload)
        workload.go_on()
        workload.ready()
        all_counted(agent, workload)
        workload.end()


def test_withheld_pages_are_not_probed():
    with tracing() as agent:
        begun(agent)
        with withheld(agent, "pages") as pid:
            wait_for(lambda: unread(agent, "untrusted") >= 1, "the library to be found")
            longest = longest_fork(3)
            assert longest < FORK_S, f"a fork() took {longest:.3f} s"
            bystander_is_traced(agent)
            assert f"which process {pid} maps, is not probed" in agent.log(), agent.log()
        # What is not opened cannot hang.
        equal(sum(values(agent.metrics(), "gpusonde_trace_readers_replaced_total")), 0, "readers replaced")


def test_withheld_opening_stops_nobody_else():
    """Trusted by mistake: the helper hangs, is replaced, and its user is not read for a while."""
    with tracing("--trace-trust", f"user:{USER}") as agent:
        begun(agent)
        with withheld(agent, "open"):
            wait_for(lambda: unread(agent, "barred") >= 1, "the user to be barred")
            equal(sum(values(agent.metrics(), "gpusonde_trace_readers_replaced_total", reason="hung", role="files")), 1, "readers that hung")
            equal(sum(values(agent.metrics(), "gpusonde_trace_readers_replaced_total")), 1, "readers replaced")
            contains(agent.cli("doctor", "--atop-listen", "none").stdout, "so many hung: files 1; crashed: none")
            bystander_is_traced(agent)
            begin = time.monotonic()
            port = agent.port()
            agent.process.send_signal(signal.SIGKILL)
            agent.process.wait(10)
            # The helper that hangs holds no port.
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                wait_for(lambda: bound(listener, port), "the port to be free", 5)
            assert time.monotonic() - begin < HELD_S / 2


def bound(listener, port):
    try:
        listener.bind(("127.0.0.1", port))
        return True
    except OSError:
        return False


def map_copies(agent, user, n, name):
    """A process of @user that maps @n libraries of its own."""
    folder = f"{agent.tmp}/{name}"
    os.makedirs(folder)
    for i in range(n):
        shutil.copy(DRIVER, f"{folder}/libcuda.so.{i}")
        os.chown(f"{folder}/libcuda.so.{i}", user, user)
    os.chown(folder, user, user)
    os.chmod(agent.tmp, 0o755)
    code = ("import mmap, sys\n"
            "files = [open(f'{sys.argv[1]}/libcuda.so.{i}', 'rb') for i in range(int(sys.argv[2]))]\n"
            "held = [mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC) for f in files]\n"
            "print('ready', flush=True); sys.stdin.read()\n")
    process = subprocess.Popen(["/usr/bin/python3", "-c", code, folder, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **as_user(user))
    equal(process.stdout.readline(), "ready\n", "the mapper")
    return process


def end(process):
    process.stdin.close()
    process.wait(20)
    process.stdout.close()


def user_sites(agent):
    return sum(values(agent.metrics(), "gpusonde_trace_user_sites"))


def probed_below(agent, folder):
    """Whether the agent probes files there; where the kernel does not tell, any user's."""
    if tells_links():
        return any(path.startswith(f"{agent.tmp}/{folder}/") for path, _ in links(agent.pid))
    return user_sites(agent) > 0


# Maps a library of root's through a mount that no table has, as a user may make one, and ends.
DETACHED = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder, name = os.path.split(sys.argv[1])
tree = libc.syscall(428, -100, folder.encode(), 1 | 0o2000000) # open_tree(), OPEN_TREE_CLONE
if tree < 0:
    sys.exit(f"open_tree: {os.strerror(ctypes.get_errno())}")
fd = os.open(name, os.O_RDONLY, dir_fd=tree)
mapped = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
sys.stdin.readline()
"""


def test_what_is_refused_to_one_user_is_read_for_others():
    with tracing() as agent:
        begun(agent)
        os.chmod(agent.tmp, 0o755)
        library = shutil.copy(DRIVER, f"{agent.tmp}/libcuda.so.1")
        os.chmod(library, 0o755)
        command = ["unshare", "--user", "--map-root-user", "--mount", "/usr/bin/python3", "-c", DETACHED, library]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **as_user(USER)) as process:
            if not process.stdout.readline():
                raise Skip(f"a user cannot have a mount of his own here: {process.stderr.read()}")
            wait_for(lambda: unread(agent, "untrusted") >= 1, "the user's mapping to be found")
            process.stdin.close()
        # Another user's program, with the same file, within the minute for which the refusal holds.
        with Workload(agent, BUSY + "; pause", library=library, copy=False) as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            all_counted(agent, workload)
            workload.end()


def test_a_user_has_a_share():
    with tracing() as agent:
        begun(agent)
        first = map_copies(agent, USER, COPIES, "first")
        wait_for(lambda: unread(agent, "beyond_share") >= 1, "the share to be used up")
        # One library has some 170 sites. Attaching takes a tenth of the time at most, so it goes on for a while.
        wait_for(lambda: user_sites(agent) > 4096 - 200, "the share to be attached", 300)
        assert user_sites(agent) <= 4096, user_sites(agent)
        # Another user has a share of his own, and root's libraries are everybody's.
        second = map_copies(agent, OTHER, 2, "second")
        wait_for(lambda: user_sites(agent) > 4096, "another user's libraries")
        bystander_is_traced(agent)
        end(first)
        end(second)
        # As slowly as they were attached: the kernel removes each link in a time of its own.
        wait_for(lambda: not probed_below(agent, "first") and not probed_below(agent, "second"), "all to be detached", 300)
        third = map_copies(agent, USER, 1, "third")
        wait_for(lambda: probed_below(agent, "third"), "the share to be free again", 300)
        end(third)


if __name__ == "__main__":
    run()
