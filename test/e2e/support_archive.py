#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde doctor --bundle: what a support archive has, and what it never has."""
import contextlib
import io
import json
import os
import pty
import subprocess
import tarfile
import tempfile

from lib.e2e import GPUSONDE, PATIENCE_S, SIMULATED, Agent, Worker, command, contains, environment, equal, run, wait_for

TOKEN, KEY, PASSWORD = "b1946ac92492d2347c6235b4d2611184", "push-key-0123456789abcdef", "correct-horse"
FLAGS = ("--listen", "none", "--atop-listen", "none", "--atop-socket", "none")
WITHOUT_AGENT = ("--socket", "none", *FLAGS)
SIMULATION = environment(GPUSONDE_NVML_LIBRARY=SIMULATED)


def unpacked(path):
    """name -> text; gpusonde writes only regular files that nobody else may read, below one folder."""
    data = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout if path.endswith(".zst") else None
    with tarfile.open(fileobj=io.BytesIO(data)) if data else tarfile.open(path) as tar:
        members = tar.getmembers()
        equal({(m.isreg(), m.mode) for m in members}, {(True, 0o600)})
        assert all(m.name.startswith("gpusonde/") for m in members), members
        return {m.name.removeprefix("gpusonde/"): tar.extractfile(m).read().decode() for m in members}


@contextlib.contextmanager
def agent_with_secrets():
    """Its token and its key are in files, and a password, the token and the key where others are shown; a program has a name."""
    with tempfile.TemporaryDirectory(prefix="gpusonde-archive-") as tmp, Worker(tmp) as worker:
        os.makedirs(f"{tmp}/tokens")
        os.makedirs(f"{tmp}/timelines")
        for name, text in (("tokens/alice", TOKEN), ("key", KEY)):
            with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
                f.write(text + "\n")
            os.chmod(f"{tmp}/{name}", 0o600)
        with open(f"{tmp}/timelines/\033]0;x\007\n.pftrace", "w", encoding="utf-8"):
            pass
        with open(f"{tmp}/gpusonde.yaml", "w", encoding="utf-8") as f:
            f.write(f"web: {{tokens: {tmp}/tokens}}\ntimeline: {{directory: {tmp}/timelines}}\nnode: {{tags: 'a:{TOKEN},b:{KEY}'}}\n"
                    f"push: {{key_file: {tmp}/key}}\nkube: {{server: 'https://me:{PASSWORD}@127.0.0.1:1', enabled: no}}\n")
        with Agent("--config", f"{tmp}/gpusonde.yaml", scenario=worker.scenario(), tmp=tmp) as agent:
            wait_for(lambda: worker.comm in agent.get("/metrics", unix=True).text, "the program on a page")
            yield agent, worker


def test_no_secret_and_no_name_is_in_it():
    with agent_with_secrets() as (agent, worker):
        def archive(name, *flags):
            out = agent.cli("doctor", "--config", f"{agent.tmp}/gpusonde.yaml", "--bundle", f"{agent.tmp}/{name}", "--yes", *FLAGS, *flags)
            equal((out.returncode, out.stderr), (0, ""))
            equal(os.stat(f"{agent.tmp}/{name}").st_mode & 0o777, 0o600)
            return out.stdout, unpacked(f"{agent.tmp}/{name}")

        shown = agent.get("/metrics", unix=True).text + agent.get("/api/v1/snapshot", unix=True).text
        assert TOKEN in shown and KEY in shown, "what is planted is shown by the agent"
        listed, files = archive("a.tar.zst")
        for name, text in files.items():
            for secret in (TOKEN, KEY, PASSWORD, worker.comm, os.uname().nodename if len(os.uname().nodename) >= 4 else TOKEN):
                assert secret not in text, f"{secret} is in {name}"
            assert "\033" not in text and "\007" not in text, name
        # The same files as were listed, and all that is promised.
        equal({line.split()[0] for line in listed.splitlines()[1:] if line and line.split()[0] in files}, set(files))
        for name in ("versions.txt", "configuration.yaml", "doctor.txt", "doctor.json", "snapshot.json", "metrics.txt", "agent.json", "tracing.json", "events.json",
                     "probes.txt", "gpus.txt", "process.txt", "timelines.txt"):
            assert files.get(name), f"{name}: {listed}"
        contains(listed, " of secret")
        contains(listed, "journal.txt")
        contains(listed, "trace.analysis") # which findings want
        contains(files["contents.txt"], listed.splitlines()[3])
        processes = json.loads(files["snapshot.json"])["processes"]
        names = {p["comm"] for p in processes}
        equal({n.split("-")[0] for n in names}, {"<process"})
        # One word for one name, on every page.
        assert any(f'comm="{n}"' in files["metrics.txt"] for n in names), names
        contains(files["configuration.yaml"], "https://<secret>@127.0.0.1:1")
        contains(files["process.txt"], f"/proc/{agent.pid}/cgroup")
        contains(files["probes.txt"], "cuLaunchKernel")
        contains(files["timelines.txt"], "?]0;x??.pftrace")
        equal(json.loads(files["doctor.json"])["schema"], "gpusonde-doctor/v1")
        # With names, and as ever without secrets.
        listed, files = archive("b.tar.gz", "--with-names")
        contains(files["snapshot.json"], worker.comm)
        contains(files["metrics.txt"], worker.comm)
        contains(files["snapshot.json"], os.uname().nodename)
        for name, text in files.items():
            for secret in (TOKEN, KEY, PASSWORD):
                assert secret not in text, f"{secret} is in {name}"


def test_without_an_agent():
    with tempfile.TemporaryDirectory(prefix="gpusonde-archive-") as tmp:
        path = f"{tmp}/x.tar.gz"
        out = command("doctor", *WITHOUT_AGENT, "--bundle", path, "--yes", env=SIMULATION)
        equal((out.returncode, out.stderr), (0, ""))
        files = unpacked(path)
        equal(len(json.loads(files["snapshot.json"])["gpus"]), 8)
        assert "metrics.txt" not in files and "control.socket is none" in files["contents.txt"], files["contents.txt"]
        before = os.stat(path)
        # Never over what is there, nor through a link, nor elsewhere than asked.
        out = command("doctor", *WITHOUT_AGENT, "--bundle", path, "--yes", env=SIMULATION)
        equal((out.returncode, os.stat(path).st_mtime_ns), (1, before.st_mtime_ns))
        contains(out.stderr, "File exists: name a file that is not there yet")
        os.symlink(f"{tmp}/elsewhere.tar.gz", f"{tmp}/link.tar.gz")
        equal(command("doctor", *WITHOUT_AGENT, "--bundle", f"{tmp}/link.tar.gz", "--yes", env=SIMULATION).returncode, 1)
        out = command("doctor", *WITHOUT_AGENT, "--bundle", f"{tmp}/none/x.tar.gz", "--yes", env=SIMULATION)
        contains(out.stderr, "No such file or directory")
        equal(sorted(os.listdir(tmp)), ["link.tar.gz", "x.tar.gz"])


def test_it_is_asked_for():
    with tempfile.TemporaryDirectory(prefix="gpusonde-archive-") as tmp:
        path = f"{tmp}/x.tar.zst"
        for flags, why in ((["--yes"], "go with --bundle"), (["--with-names"], "go with --bundle"), (["--bundle", f"{tmp}/x.zip"], ".tar.zst or .tar.gz"),
                           (["--bundle", path, "--json"], "goes without"), (["--bundle", path, "--pid", str(os.getpid())], "goes without")):
            out = command("doctor", *WITHOUT_AGENT, *flags, env=SIMULATION)
            equal((out.returncode, out.stdout), (2, ""), flags)
            contains(out.stderr, why)
        # No terminal to ask on: the list, and nothing else.
        out = command("doctor", *WITHOUT_AGENT, "--bundle", path, env=SIMULATION, stdin=subprocess.DEVNULL)
        equal(out.returncode, 1)
        contains(out.stdout, "snapshot.json")
        contains(out.stderr, "--yes")
        for answer, status in (("n", 1), ("y", 0)):
            assert not os.path.exists(path), answer
            master, slave = pty.openpty()
            os.write(master, answer.encode() + b"\n")
            out = subprocess.run([GPUSONDE, "doctor", *WITHOUT_AGENT, "--bundle", path], env=SIMULATION, stdin=slave, capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
            os.close(master)
            os.close(slave)
            equal(out.returncode, status, answer)
            contains(out.stderr, f"to {path}? [y/N]")
        assert unpacked(path)["snapshot.json"]


if __name__ == "__main__":
    run()
