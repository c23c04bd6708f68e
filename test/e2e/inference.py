#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference servers: found by their processes' names, their own pages read, and what of the GPUs is theirs; and hostile ones."""
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from lib.chromium import Browser
from lib.e2e import GPUSONDE, SOURCE, Agent, Skip, Worker, children, comm, contains, equal, run, values, wait_for
from lib.tmux import Terminal

# What each server's own documentation has its page say; `want`: our figures of it, without the prefix.
PAGES = {
    "vllm": ("vllm", ["serve", "some/model"], "--port",
             '# HELP vllm:num_requests_running Number of requests in model execution batches.\n# TYPE vllm:num_requests_running gauge\n'
             'vllm:num_requests_running{engine="0",model_name="m"} 3.0\nvllm:num_requests_running{engine="1",model_name="m"} 2.0\n'
             '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine="0",model_name="m"} 7.0\n'
             '# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25\n'
             '# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25\nvllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5\n'
             '# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0\n'
             '# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{engine="0",model_name="m"} 500.0\n'
             '# TYPE vllm:request_success_total counter\nvllm:request_success_total{finished_reason="stop",model_name="m"} 8.0\n'
             'vllm:request_success_total{finished_reason="length",model_name="m"} 2.0\n'
             '# TYPE vllm:request_queue_time_seconds histogram\nvllm:request_queue_time_seconds_bucket{le="0.3",model_name="m"} 9.0\n'
             'vllm:request_queue_time_seconds_bucket{le="+Inf",model_name="m"} 10.0\nvllm:request_queue_time_seconds_count{model_name="m"} 10.0\n'
             'vllm:request_queue_time_seconds_sum{model_name="m"} 1.5\n',
             {"running": 5, "waiting": 7, "finished": 10, "queued": 1.5, "prompt": 1000, "generated": 500, "cache": 0.5}),
    "sglang": ("sglang", ["serve"], "--port",
               '# TYPE sglang:prompt_tokens_total counter\nsglang:prompt_tokens_total{model_name="m"} 8.128902e+06\n'
               '# TYPE sglang:generation_tokens_total counter\nsglang:generation_tokens_total{model_name="m"} 7.557572e+06\n'
               '# TYPE sglang:token_usage gauge\nsglang:token_usage{model_name="m"} 0.28\n# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model_name="m"} 162.0\n'
               '# TYPE sglang:num_queue_reqs gauge\nsglang:num_queue_reqs{model_name="m"} 2826.0\n',
               {"running": 162, "waiting": 2826, "finished": None, "queued": None, "prompt": 8128902, "generated": 7557572, "cache": 0.28}),
    "tgi": ("text-generation-router", [], "--port",
            '# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 4\n# TYPE tgi_queue_size gauge\ntgi_queue_size 1\n'
            '# TYPE tgi_request_count counter\ntgi_request_count 12\n# TYPE tgi_request_success counter\ntgi_request_success{method="single"} 11\n'
            '# TYPE tgi_request_generated_tokens histogram\ntgi_request_generated_tokens_bucket{le="+Inf"} 11\ntgi_request_generated_tokens_sum 640\n'
            'tgi_request_generated_tokens_count 11\n# TYPE tgi_request_input_length histogram\ntgi_request_input_length_sum 220\ntgi_request_input_length_count 11\n'
            '# TYPE tgi_request_queue_duration histogram\ntgi_request_queue_duration_sum 0.75\n',
            {"running": 4, "waiting": 1, "finished": 11, "queued": 0.75, "prompt": 220, "generated": 640, "cache": None}),
    "llama.cpp": ("llama-server", ["-m", "model.gguf"], "--port",
                  '# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.\n# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 4934\n'
                  '# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total 39303\n# TYPE llamacpp:requests_processing gauge\n'
                  'llamacpp:requests_processing 1\n# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 0\n',
                  {"running": 1, "waiting": 0, "finished": None, "queued": None, "prompt": 4934, "generated": 39303, "cache": None}),
    "triton": ("tritonserver", ["--model-repository=/models"], "--metrics-port",
               '# TYPE nv_inference_request_success counter\nnv_inference_request_success{model="a",version="1"} 40\nnv_inference_request_success{model="b",version="1"} 2\n'
               '# TYPE nv_inference_pending_request_count gauge\nnv_inference_pending_request_count{model="a",version="1"} 6\n'
               '# TYPE nv_inference_queue_duration_us counter\nnv_inference_queue_duration_us{model="a",version="1"} 2500000\n'
               '# TYPE nv_gpu_power_usage gauge\nnv_gpu_power_usage{gpu_uuid="GPU-1"} 100\n',
               {"running": None, "waiting": 6, "finished": 42, "queued": 2.5, "prompt": None, "generated": None, "cache": None}),
}
MEMBERS = {"running": lambda s: s["requests"]["running"], "waiting": lambda s: s["requests"]["waiting"], "finished": lambda s: s["finished_requests_total"],
           "queued": lambda s: s["queued_seconds_total"], "prompt": lambda s: s["tokens_total"]["prompt"], "generated": lambda s: s["tokens_total"]["generated"],
           "cache": lambda s: s["cache_usage_ratio"]}

# A server: its page is the file beside it, read at each request; of a file `asked` it keeps the paths. Its first line of output is its port.
SERVER = r"""
import http.server, json, os, socket, subprocess, sys, time
folder, how, worker = os.environ["SERVER_FOLDER"], os.environ.get("SERVER_HOW", ""), os.environ.get("SERVER_WORKER")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(f"{folder}/asked", "a") as out:
            out.write(self.path + "\n")
        if how == "stall":
            time.sleep(1000)
        if how == "redirect":
            self.send_response(302)
            self.send_header("Location", os.environ["SERVER_ELSEWHERE"])
            self.end_headers()
            return
        if how == "missing":
            self.send_response(404)
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        if how == "endless":
            while True:
                self.wfile.write(b"x" * 65536)
        if how == "families":
            while True:
                self.wfile.write(b"".join(b"# TYPE f%d gauge\nf%d 1\n" % (i, i) for i in range(4000)))
        with open(f"{folder}/page", "rb") as page:
            self.wfile.write(page.read())
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    def handle_error(self, *_):
        pass
port = int(next((a for before, a in zip(sys.argv, sys.argv[1:]) if before in ("--port", "--metrics-port")), 0))
server = Server(("127.0.0.1", port), Handler)
if worker:
    subprocess.Popen([worker, "1000"])
if how == "two":
    other = socket.create_server(("127.0.0.1", 0))
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Server:
    """A process that is called as a server's is, with a page."""
    numbers = itertools.count()

    def __init__(self, tmp, kind, how="", worker=None, flag=True, elsewhere="", module=False, before=()):
        name, arguments, port_flag, page, _ = PAGES[kind]
        self.folder = f"{tmp}/server-{next(Server.numbers)}"
        os.mkdir(self.folder)
        self.say(page)
        env = dict(os.environ, SERVER_FOLDER=self.folder, SERVER_HOW=how, SERVER_ELSEWHERE=elsewhere, **({"SERVER_WORKER": worker} if worker else {}))
        port = [port_flag, str(free_port())] if flag else []
        if module:
            with open(f"{self.folder}/{name}.py", "w", encoding="utf-8") as out:
                out.write(SERVER)
            argv = [sys.executable, "-m", name, *arguments, *port]
        else:
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as out:
                out.write(f"#!{os.path.realpath(sys.executable)}\n{SERVER}")
            os.chmod(out.name, 0o755)
            argv = [out.name, *arguments, *port]
        self.process = subprocess.Popen([*before, *argv], env=env, cwd=self.folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.pid = self.process.pid
        self.port = int(self.process.stdout.readline())

    def say(self, page):
        with open(f"{self.folder}/page.new", "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(page)
        os.replace(out.name, f"{self.folder}/page")

    def asked(self):
        with contextlib.suppress(FileNotFoundError), open(f"{self.folder}/asked", encoding="utf-8") as lines:
            return lines.read().split("\n")[:-1]
        return []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def agent_with(*flags, **kwargs):
    kwargs.setdefault("scenario", f"{SOURCE}/sim/scenarios/desktop-1gpu.yaml")
    return Agent("--inference-servers", "true", "--inference-refresh", "1s", "--sample-period", "250ms", *flags, **kwargs)


def server_of(agent, server):
    found = agent.get("/api/v1/node").json()["node"]["inference"]["servers"]
    return next((s for s in found if s["pid"] == server.pid), None)


def in_state(agent, server, state):
    return wait_for(lambda: (s := server_of(agent, server)) and s["state"] == state and s, f"a server that is {state}")


def figures(shown):
    return {name: member(shown) for name, member in MEMBERS.items()}


def waiting_as_shown(kind):
    """Requests that run and that wait, as people read them."""
    want = PAGES[kind][4]
    return ["-" if want[name] is None else str(want[name]) for name in ("running", "waiting")]


def the_other_views_say_the_same(agent, servers):
    """The screen and /metrics, as the web page and JSON, of which each has been compared with what the servers say."""
    with Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=120, rows=24, env=dict(agent.env, HOME="/nonexistent")) as screen:
        screen.keys("i")
        for kind, server in servers.items():
            screen.has_line(rf"{re.escape(kind)} +{server.pid} read +{' +'.join(waiting_as_shown(kind))} ")
    metrics = agent.metrics()
    for kind, server in servers.items():
        want = PAGES[kind][4]
        for state in ("running", "waiting"):
            equal(values(metrics, "gpusonde_inference_requests", server=kind, pid=server.pid, state=state), [v for v in (want[state],) if v is not None], kind)
        for direction in ("prompt", "generated"):
            equal(values(metrics, "gpusonde_inference_tokens_total", server=kind, pid=server.pid, direction=direction), [v for v in (want[direction],) if v is not None], kind)


def test_the_page_of_each_server():
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        servers = {kind: stack.enter_context(Server(tmp, kind)) for kind in PAGES}
        with agent_with() as agent:
            for kind, server in servers.items():
                shown = in_state(agent, server, "read")
                equal((shown["server"], shown["port"], shown["uid"], shown["error"]), (kind, server.port, os.geteuid(), None))
                equal(figures(shown), PAGES[kind][4], kind)
                equal(set(server.asked()), {"/metrics"})
                equal(values(agent.metrics(), "gpusonde_inference_server_up", server=kind, pid=server.pid, port=server.port, state="read"), [1])
                # No process of it is on a GPU: of its energy nothing is known.
                equal((shown["tokens_per_joule"], shown["gpu_seconds_total"], shown["gpu_energy_joules_total"]), (None, None, None))
            equal(values(agent.metrics(), "gpusonde_inference_tokens_total", server="vllm", direction="generated"), [500])
            with Browser() as browser, browser.open(f"http://127.0.0.1:{agent.port()}/#inference") as page:
                rows = "[...document.querySelectorAll('#main tbody tr')].map(r => [...r.cells].slice(0, 6).map(c => c.innerText))"
                page.wait(f"({rows}).length === {len(PAGES)}", "a row for each")
                equal(sorted(page.ask(rows)), sorted([kind, str(server.pid), str(server.port), "read", *waiting_as_shown(kind)] for kind, server in servers.items()))
                the_other_views_say_the_same(agent, servers)
                servers["vllm"].say(PAGES["vllm"][3].replace('generation_tokens_total{engine="0",model_name="m"} 500.0', 'generation_tokens_total{engine="0",model_name="m"} 90500.0'))
                page.wait("/^\\d{3,}\\.\\d.s$/.test([...document.querySelectorAll('#main tbody tr')].find(r => r.cells[0].innerText === 'vllm')?.cells[7]?.innerText ?? '')", "tokens by second")
                equal(page.errors(), [])
            # One that is gone is forgotten.
            servers["sglang"].process.kill()
            wait_for(lambda: server_of(agent, servers["sglang"]) is None, "the server that ended to be gone")


def test_python_modules_and_ports():
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        module = stack.enter_context(Server(tmp, "vllm", module=True))
        only = stack.enter_context(Server(tmp, "llama.cpp", flag=False))
        two = stack.enter_context(Server(tmp, "tgi", how="two", flag=False))
        with agent_with() as agent:
            equal(in_state(agent, module, "read")["server"], "vllm")
            equal(in_state(agent, only, "read")["port"], only.port)
            # Which of two ports has the page is not known, and none is tried.
            equal(in_state(agent, two, "no_port")["port"], None)
            equal(two.asked(), [])


def test_the_screen_has_a_tab():
    with tempfile.TemporaryDirectory() as tmp, Server(tmp, "vllm") as server, agent_with() as agent:
        env = dict(agent.env, HOME="/nonexistent")
        with Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=120, rows=24, env=env) as screen:
            screen.keys("i")
            screen.shows("TOKENS OUT")
            generated = itertools.count(500, 1000)

            def grows():
                server.say(PAGES["vllm"][3].replace(" 500.0", f" {next(generated)}.0"))
                return re.search(rf"vllm +{server.pid} read +5 +7 +0\.0/s +([1-9]\d*\.\d)/s +50 %", screen.screen())
            wait_for(grows, "tokens by second", otherwise=screen.screen)


def test_a_counter_that_begins_anew():
    with tempfile.TemporaryDirectory() as tmp, Server(tmp, "llama.cpp") as server, agent_with() as agent:
        def generated(n):
            wait_for(lambda: in_state(agent, server, "read")["tokens_total"]["generated"] == n, f"{n} tokens")

        generated(39303)
        server.say("llamacpp:tokens_predicted_total 40000\n")
        generated(40000)
        server.say("llamacpp:tokens_predicted_total 12\n")
        generated(40012)


def tokens(server, n):
    server.say(f"vllm:generation_tokens_total {n}\n")


def test_tokens_by_joule_and_gpu_second():
    with tempfile.TemporaryDirectory() as tmp:
        worker, other = Worker(tmp), Worker(tmp)
        with Server(tmp, "vllm", worker=worker.path) as server, agent_with(scenario=worker.scenario(other)) as agent:
            tokens(server, 0)

            def shown(condition, what):
                return wait_for(lambda: (s := in_state(agent, server, "read")) and condition(s) and s, what)

            before = shown(lambda s: s["gpu_energy_joules_total"] and s["tokens_total"]["generated"] == 500 or s["tokens_total"]["generated"] == 0 and
                           s["gpu_energy_joules_total"], "energy of its child's GPU")
            equal([e for e in before.get("estimated", []) if "gpu" in e], [], "it has its GPU alone")
            tokens(server, 1000000)
            alone = shown(lambda s: s["tokens_total"]["generated"] >= 1000000 and s["tokens_per_joule"], "tokens for a joule")
            assert alone["tokens_per_gpu_second"] > 0, alone
            # The GPU's own sums are what is divided by: never more than these.
            gpu = agent.get("/api/v1/gpus").json()["gpus"][0]
            assert 0 < alone["gpu_energy_joules_total"] <= gpu["energy_joules_total"], (alone, gpu["energy_joules_total"])
            assert 0 < alone["gpu_seconds_total"] <= gpu["observed_seconds_total"], (alone, gpu["observed_seconds_total"])
            with other:
                shared = shown(lambda s: "gpu_energy_joules_total" in s.get("estimated", []), "a GPU that is shared to make an estimate")
                contains(json.dumps(shared["estimated"]), "gpu_seconds_total")
                contains(json.dumps(wait_for(lambda: (s := in_state(agent, server, "read"))["tokens_per_joule"] and "tokens_per_joule" in s["estimated"] and s,
                                             "an estimated quotient")["estimated"]), "tokens_per_gpu_second")


def test_hostile_servers():
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        good = stack.enter_context(Server(tmp, "llama.cpp"))
        target = stack.enter_context(Server(tmp, "tgi"))
        bad = {how: stack.enter_context(Server(tmp, "vllm", how=how, elsewhere=f"http://127.0.0.1:{target.port}/secret")) for how in ("stall", "redirect", "endless", "families")}
        missing = stack.enter_context(Server(tmp, "sglang", how="missing"))
        nonsense = stack.enter_context(Server(tmp, "vllm"))
        nonsense.say("vllm:generation_tokens_total NaN\nvllm:generation_tokens_total -5\nvllm:generation_tokens_total 1e300\nvllm:kv_cache_usage_perc 700\n"
                     "vllm:num_requests_running{a=\"\udcff\"} 1\nvllm:num_requests_waiting 4\n\x00\x00\n" + "vllm:x" * 20000 + " 1\n")
        with agent_with() as agent:
            for how, server in bad.items():
                shown = in_state(agent, server, "failed")
                words = {"stall": "2 s", "redirect": "302", "endless": "", "families": ""}[how]
                contains(shown["error"].replace("2000 milliseconds", "2 s").replace("2001 milliseconds", "2 s").replace("2002 milliseconds", "2 s"), words)
                equal(shown["tokens_total"]["generated"], None, how)
            equal(in_state(agent, missing, "failed")["error"], "status 404: start it with --enable-metrics")
            equal(figures(in_state(agent, nonsense, "read")), {"running": None, "waiting": 4, "finished": None, "queued": None, "prompt": None, "generated": None, "cache": None})
            in_state(agent, good, "read")
            equal(set(target.asked()), {"/metrics"}, "nothing is followed to elsewhere")
            equal([p for p in children(agent.pid) if comm(p) == "gpusonde-infer"] != [], True, "the process that reads pages lives")


def test_another_network_namespace():
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise Skip("needs root and unshare")
    with tempfile.TemporaryDirectory() as tmp, Server(tmp, "llama.cpp", before=["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$0" "$@"']) as server, agent_with() as agent:
        equal(in_state(agent, server, "elsewhere")["port"], server.port)
        equal(server.asked(), [])


def test_only_if_asked_for():
    with tempfile.TemporaryDirectory() as tmp, Server(tmp, "llama.cpp") as server, Agent("--sample-period", "250ms", scenario=f"{SOURCE}/sim/scenarios/desktop-1gpu.yaml") as agent:
        node = agent.get("/api/v1/node").json()["node"]
        equal((node["inference"], server.asked()), (None, []))
        equal("gpusonde_inference" in agent.metrics(), False)


if __name__ == "__main__":
    run()
