#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The process that listens: it holds the ports, may do nothing else, is replaced when it fails, and ends with the agent."""
import os
import signal
import socket
import tempfile
import time

from lib.e2e import Agent, Worker, alive, children, comm, equal, run, values, wait_for


def web(agent):
    """The PID of the process that listens."""
    found = [child for child in children(agent.process.pid) if comm(child) == "gpusonde-web"]
    equal(len(found), 1, "processes that listen")
    return found[0]


def replaced(agent):
    return values(agent.metrics(), "gpusonde_web_replaced_total")[0]


def serves(agent):
    try:
        return agent.get("/healthz", timeout=5).status == 200
    except OSError:
        return False


def is_free(port):
    """Whether another program could listen there now."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            s.listen()
        except OSError:
            return False
        return True


def name_is_free(name):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.bind("\0" + name)
        except OSError:
            return False
        return True


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.strip().split(":", 1) for line in f)


def test_it_has_no_rights_and_no_files():
    with Agent() as agent:
        pid = web(agent)
        fields = {name: value.split() for name, value in status(pid).items()}
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            equal(int(fields[name][0], 16), 0, name)
        equal((fields["NoNewPrivs"], fields["Seccomp"]), (["1"], ["2"]))
        if os.geteuid() == 0:
            equal(int(fields["CapBnd"][0], 16), 0, "CapBnd")
            equal((fields["Uid"], fields["Gid"], fields["Groups"]), (["65534"] * 4, ["65534"] * 4, []))
            links = {os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
            files = {link for link in links if not link.startswith(("socket:", "pipe:", "anon_inode:"))}
            equal(files, {"/dev/null"}, "open files")
            with open(f"/proc/{pid}/environ", "rb") as f:
                equal(f.read(), b"", "environment")


def test_the_agent_has_no_port():
    with Agent() as agent:
        def listens(pid):
            if os.geteuid() != 0 and pid != agent.process.pid:
                return True # nobody may look
            own = {os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
            with open("/proc/net/tcp", encoding="ascii") as f:
                rows = [line.split() for line in f][1:]
            return any(f"socket:[{r[9]}]" in own for r in rows if r[3] == "0A")
        assert not listens(agent.process.pid)
        assert listens(web(agent))


def check_replaced(agent, number):
    first, port, atop = web(agent), agent.port(), agent.atop_port()
    os.kill(first, number)
    wait_for(lambda: not alive(first), "the process to end")
    wait_for(lambda: serves(agent), "the port to be served again")
    assert web(agent) != first
    equal((agent.port(), agent.atop_port()), (port, atop), "ports")
    with socket.create_connection(("127.0.0.1", atop), timeout=60) as client:
        client.sendall(b"T\x01")
        assert client.recv(4), "atop is not answered"
    wait_for(lambda: replaced(agent) == 1, "the replacement to be counted")
    wait_for(agent.is_ready, "/readyz to say 200")


def test_a_killed_one_is_replaced():
    with Agent() as agent:
        check_replaced(agent, signal.SIGKILL)


def test_a_stopped_one_is_replaced():
    with Agent() as agent:
        check_replaced(agent, signal.SIGSTOP)
        assert "did not answer" in agent.log()


def test_it_does_not_end_by_other_signals():
    with Agent() as agent:
        pid = web(agent)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
        assert serves(agent)
        equal(web(agent), pid)


def test_a_good_one_is_left_alone():
    """Though it has much to do, longer than a silent one is left."""
    with Agent() as agent:
        pid, until = web(agent), time.monotonic() + 17
        while time.monotonic() < until:
            equal(agent.get("/metrics").status, 200)
        equal((web(agent), replaced(agent)), (pid, 0))


def all_free(agent, port, atop):
    return is_free(port) and is_free(atop) and name_is_free(agent.atop_name)


def check_ports_are_freed(agent, number):
    """Within so little time that a service manager's next start finds them free."""
    port, atop, pid = agent.port(), agent.atop_port(), web(agent)
    assert not all_free(agent, port, atop)
    agent.signal(number)
    begin = time.monotonic()
    wait_for(lambda: all_free(agent, port, atop), "ports to be free", 10)
    seconds = time.monotonic() - begin
    assert seconds < 2, f"took {seconds:.1f} s"
    wait_for(lambda: not alive(pid), "the process to end")


def test_a_killed_agent_frees_its_ports():
    with Agent() as agent:
        check_ports_are_freed(agent, signal.SIGKILL)


def test_an_agent_whose_driver_hangs_frees_its_ports():
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Agent() as agent:
            agent.fault("hang: forever")
            agent.wait_not_ready()
            check_ports_are_freed(agent, number)


def test_a_stopped_agent_that_is_killed_frees_its_ports():
    """As one that is held in the kernel, it can do nothing itself."""
    with Agent() as agent:
        agent.signal(signal.SIGSTOP)
        time.sleep(0.2)
        check_ports_are_freed(agent, signal.SIGKILL)


def test_a_stopped_agent_keeps_nobody_waiting_for_ever():
    """Pages that are finished are served; what only the agent can say is an error."""
    with Agent() as agent:
        agent.metrics()
        agent.signal(signal.SIGSTOP)
        try:
            time.sleep(0.2)
            equal(agent.get("/metrics", timeout=5).status, 200)
            equal(agent.get("/readyz", timeout=30).status, 503)
        finally:
            agent.signal(signal.SIGCONT)
        wait_for(agent.is_ready, "/readyz to say 200")


def test_a_reload_moves_the_ports():
    """By the same process, which keeps what it is not told to close."""
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/gpusonde.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write("http: {listen: 127.0.0.1:0}\natop: {listen: 127.0.0.1:0}\n")
        with Agent("--config", path, listen=None, atop_listen=None) as agent:
            pid, ports = web(agent), (agent.port(), agent.atop_port())
            with open(path, "w", encoding="utf-8") as f:
                f.write("http: {listen: localhost:0}\natop: {listen: none}\n")
            agent.signal(signal.SIGHUP)
            wait_for(lambda: "configuration reloaded" in agent.log(), "the reload")
            assert all(is_free(port) for port in ports), "the former ports are not free"
            assert agent.port() != ports[0]
            wait_for(agent.is_ready, "/readyz to say 200")
            equal(web(agent), pid)


def test_control_is_not_for_the_network():
    with Agent() as agent:
        equal(agent.get("/control/status").status, 403)
        equal(agent.get("/control/release", method="POST").status, 403)
        equal(agent.get("/control/status", unix=True).status, 200)


def test_its_use_is_counted():
    with Worker("/tmp") as worker, Agent(scenario=worker.scenario()) as agent:
        wait_for(lambda: values(agent.metrics(), "gpusonde_http_requests_total")[0] > 3, "requests to be counted")
        with socket.create_connection(("127.0.0.1", agent.port())), socket.create_connection(("127.0.0.1", agent.atop_port())) as atop:
            atop.sendall(b"T\x01")
            wait_for(lambda: values(agent.metrics(), "gpusonde_http_connections")[0] >= 1, "connections")
            wait_for(lambda: values(agent.metrics(), "gpusonde_atop_clients")[0] == 1, "a client of atop")
        wait_for(lambda: values(agent.metrics(), "gpusonde_atop_clients")[0] == 0, "no client of atop")


run()
