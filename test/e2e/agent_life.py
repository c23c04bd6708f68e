#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent's life: start, addresses, configuration, systemd, state, end."""
import errno
import os
import random
import signal
import socket
import tempfile

from lib.e2e import Agent, alive, children, command, contains, environment, equal, run, values, wait_for

XIDS = "cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\nxids:\n  - {xid: 79, gpu: 0, at: 0s, every: 3s}\n"


def test_ends_at_once_and_cleanly():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Agent() as agent:
            pids = children(agent.process.pid)
            assert pids, "no child"
            agent.signal(number)
            equal(agent.process.wait(60), 0)
            assert not any(alive(p) for p in pids), "its child lives on"
            assert not os.path.exists(agent.socket), "its socket stays behind"


def test_a_killed_agent_leaves_no_child():
    with Agent() as agent:
        pids = children(agent.process.pid)
        agent.process.kill()
        agent.process.wait()
        wait_for(lambda: not any(alive(p) for p in pids), "its child to end")


def test_starts_over_the_socket_of_a_killed_one():
    with tempfile.TemporaryDirectory() as tmp:
        with Agent(tmp=tmp) as first:
            first.process.kill()
            first.process.wait()
            assert os.path.exists(first.socket)
            with Agent(tmp=tmp) as second:
                equal(second.get("/healthz", unix=True).status, 200)


def test_a_second_agent_says_that_there_is_one():
    with Agent() as first:
        second = first.cli("agent", "--listen", "127.0.0.1:0", "--atop-listen", "none", "--atop-socket", "none")
        equal(second.returncode, 1)
        contains(second.stderr, "another gpusonde agent serves " + first.socket)
        equal(first.get("/healthz", unix=True).status, 200)


def test_a_taken_http_port_is_fatal_and_says_who():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        out = command("agent", "--listen", f"127.0.0.1:{port}", "--socket", "none", "--atop-listen", "none", "--atop-socket", "none")
        equal(out.returncode, 1)
        contains(out.stderr, f"cannot listen on 127.0.0.1:{port}")
        contains(out.stderr, f"(PID {os.getpid()})")
        contains(out.stderr, "--listen")


def test_taken_atop_addresses_are_a_warning():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket(socket.AF_UNIX) as taken_unix:
        port = taken.getsockname()[1]
        taken_unix.bind(f"\0gpusonde-e2e-taken-{os.getpid()}")
        taken_unix.listen()
        with Agent("--atop-listen", f"127.0.0.1:{port}", "--atop-socket", f"gpusonde-e2e-taken-{os.getpid()}") as agent:
            contains(agent.log(), f"atop is not served on 127.0.0.1:{port}")
            contains(agent.log(), "atop is not served on the socket @gpusonde-e2e-taken")
            equal(len(values(agent.metrics(), "gpusonde_gpu_present")), 8)


def test_listening_beyond_loopback_is_loud():
    with Agent("--listen", "0.0.0.0:0", "--web-open", "true") as agent:
        contains(agent.log(), "LISTENING BEYOND LOOPBACK")
    with Agent() as agent:
        assert "BEYOND LOOPBACK" not in agent.log()


def test_a_socket_that_cannot_be_made_is_a_warning():
    with tempfile.NamedTemporaryFile() as file:
        with Agent("--socket", f"{file.name}/agent.sock") as agent:
            contains(agent.log(), "cannot listen on the socket")


def test_reload_takes_what_can_change():
    with tempfile.TemporaryDirectory() as tmp:
        config = f"{tmp}/gpusonde.yaml"
        with open(config, "w", encoding="utf-8") as f:
            f.write("sample: {period: 1s}\nprocess: {series: 3}\n")
        with Agent("--config", config, tmp=tmp) as agent:
            equal(agent.get("/api/v1/node").json()["node"]["period_seconds"], 1)
            agent.write("gpusonde.yaml", "sample: {period: 250ms}\nprocess: {series: 5}\nnvml: {max_stuck: 9}\n")
            agent.signal(signal.SIGHUP)
            wait_for(lambda: agent.get("/api/v1/node").json()["node"]["period_seconds"] == 0.25, "the new period")
            contains(agent.log(), 'nvml.max_stuck stays "3" until the agent is restarted')
            contains(agent.log(), "configuration reloaded")

            def own_series():
                return sum('pid="other"' not in line for line in agent.metrics().split("\n")
                           if line.startswith("gpusonde_process_gpu_busy_seconds_total{"))
            wait_for(lambda: own_series() == 5, "five process series")


def test_reload_refuses_a_file_with_errors():
    with tempfile.TemporaryDirectory() as tmp:
        config = f"{tmp}/gpusonde.yaml"
        with open(config, "w", encoding="utf-8") as f:
            f.write("sample: {period: 500ms}\n")
        with Agent("--config", config, tmp=tmp) as agent:
            agent.write("gpusonde.yaml", "sample: {period: 250ms}\nsampel: {}\n")
            agent.signal(signal.SIGHUP)
            wait_for(lambda: "the old one stays" in agent.log(), "a complaint in the log")
            contains(agent.log(), 'gpusonde.yaml:2: unknown key "sampel": did you mean "sample"?')
            wait_for(agent.is_ready, "the agent to go on")
            equal(agent.get("/api/v1/node").json()["node"]["period_seconds"], 0.5)


def free_port():
    """Below the ports that the kernel gives to other tests' sockets meanwhile."""
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randrange(10000, 30000))) as s:
                return s.getsockname()[1]
        except OSError as why:
            if why.errno != errno.EADDRINUSE:
                raise


def test_reload_moves_the_port_or_stays():
    with tempfile.TemporaryDirectory() as tmp:
        config, old, new = f"{tmp}/gpusonde.yaml", free_port(), free_port()
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"http: {{listen: '127.0.0.1:{old}'}}\n")
        with Agent("--config", config, tmp=tmp, listen=None) as agent:
            equal(agent.port(), old)
            agent.write("gpusonde.yaml", f"http: {{listen: '127.0.0.1:{new}'}}\n")
            agent.signal(signal.SIGHUP)
            wait_for(lambda: agent.port() == new, "the new port")
            equal(agent.get("/healthz").status, 200)
            equal(agent.get("/healthz", unix=True).status, 200)
            with socket.create_server(("127.0.0.1", old)):
                agent.write("gpusonde.yaml", f"http: {{listen: '127.0.0.1:{old}'}}\n")
                agent.signal(signal.SIGHUP)
                wait_for(lambda: f"cannot listen on 127.0.0.1:{old}" in agent.log(), "a complaint in the log")
                wait_for(lambda: agent.log().count("configuration reloaded") == 2, "the second reload")
            equal(agent.port(), new)
            equal(agent.get("/healthz").status, 200)
            agent.signal(signal.SIGHUP) # the port is free now, and the same file is tried again
            wait_for(lambda: agent.port() == old, "the old port")


def test_reload_has_nothing_to_do_with_the_control_socket():
    with tempfile.TemporaryDirectory() as tmp:
        config, old, new = f"{tmp}/gpusonde.yaml", free_port(), free_port()
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"http: {{listen: '127.0.0.1:{old}'}}\n")
        with Agent("--config", config, tmp=tmp, listen=None) as agent, socket.socket(socket.AF_UNIX) as other:
            equal(agent.port(), old)
            os.unlink(agent.socket)
            other.bind(agent.socket)
            other.listen()
            agent.write("gpusonde.yaml", f"http: {{listen: '127.0.0.1:{new}'}}\n")
            agent.signal(signal.SIGHUP)
            wait_for(lambda: agent.port() == new, "the new port")
            equal(agent.get("/healthz").status, 200)


def test_systemd_is_told():
    with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(f"{tmp}/notify")
        notify.settimeout(60)
        heard = []

        def hear(word):
            while not any(word in h for h in heard):
                heard.append(notify.recv(4096).decode())
        with Agent(NOTIFY_SOCKET=f"{tmp}/notify", WATCHDOG_USEC="2000000") as agent:
            hear("READY=1")
            hear("WATCHDOG=1")
            hear("STATUS=8 GPUs")
            agent.signal(signal.SIGHUP)
            hear("RELOADING=1")
            agent.signal(signal.SIGTERM)
            hear("STOPPING=1")
            equal(agent.process.wait(60), 0)


def test_xid_counts_outlive_the_agent():
    with tempfile.TemporaryDirectory() as tmp:
        def count(agent):
            found = values(agent.metrics(), "gpusonde_gpu_xid_errors_total", xid="79")
            return found[0] if found else 0
        with Agent(scenario=XIDS, tmp=tmp) as agent:
            before = wait_for(lambda: count(agent) >= 2 and count(agent), "XID 79 to come twice")
            equal(agent.stop()[1], 0)
        with Agent(scenario="cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n", tmp=tmp) as agent:
            wait_for(lambda: count(agent) >= before, "the counts of before")


def test_runs_without_a_home_for_its_state():
    with tempfile.NamedTemporaryFile() as file:
        with Agent("--state-dir", f"{file.name}/state", scenario=XIDS) as agent:
            contains(agent.log(), "XID counts do not outlive the agent")
            equal(len(values(agent.metrics(), "gpusonde_gpu_present")), 1)


def test_kernel_log_is_read():
    with tempfile.TemporaryDirectory() as tmp:
        with Agent(scenario="cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n", tmp=tmp) as agent:
            bus = agent.get("/api/v1/gpus").json()["gpus"][0]["pci_bus_id"]
        record = f"3,900,5000000,-;NVRM: Xid (PCI:{bus[4:-2].lower()}): 31, pid=1, name=x, Ch 1\n"
        with open(f"{tmp}/kmsg", "w", encoding="ascii") as f:
            f.write(record)
        with Agent("--kmsg-path", f"{tmp}/kmsg", scenario="cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm}\n") as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_gpu_xid_errors_total", xid="31"), "XID 31 of the kernel log")
            event = agent.get("/api/v1/events").json()["events"][-1]
            equal((event["xid"], event["sources"], event["text"], event["origin"], event["gi"]),
                  (31, ["kmsg"], "pid=1, name=x, Ch 1", "application", None), "the event")


def test_self_metrics_are_there():
    with Agent() as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_agent_cpu_seconds_total") > [0], "CPU seconds")
        assert 1 << 20 < values(agent.metrics(), "gpusonde_agent_resident_bytes")[0] < 64 << 20
        wait_for(lambda: values(agent.metrics(), "gpusonde_http_requests_total") > [1], "HTTP requests to be counted")


def test_errors_of_the_configuration_start_nothing():
    out = command("agent", "--sample-period", "1h", "--lisen", "x", env=environment(GPUSONDE_LOG_LEVEL="loud"))
    equal(out.returncode, 2)
    for part in ("sample.period cannot be \"1h\"", "unknown option --lisen: did you mean --listen?", "log.level cannot be \"loud\""):
        contains(out.stderr, part)
    assert "listening" not in out.stderr


if __name__ == "__main__":
    run()
