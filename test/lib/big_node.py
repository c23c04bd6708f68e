# SPDX-License-Identifier: Apache-2.0
"""
The web page of a node that is bigger than what is simulated: a server that stands before an agent, and has its GPUs and processes so many times over. Each
second it sends what has changed, as the agent does. Of the other documents there are none.
"""
import http.server
import itertools
import json
import threading
import time

from lib.e2e import SOURCE

GPUS, PROCESSES, PERIOD_S = 64, 5000, 1
SECONDS = 4 # of the agent's, which are told again and again: it costs nothing while it is measured
EVENT_BYTES, WHOLE_BYTES = 128 << 10, 16 << 10


def copied(rows, n, change):
    """@n rows out of these, made different by @change(row, copy, index)."""
    out = []
    for i in range(n):
        row = json.loads(json.dumps(rows[i % len(rows)]))
        change(row, i // len(rows), i)
        out.append(row)
    return out


def gpu_of(row, copy, gpus):
    row["gpu"] += copy * gpus
    row["uuid"] = f"{row['uuid']}-{copy}"


def documents(agent):
    """What the pages of the big node are now, by their names."""
    gpus, processes, node = (agent.get(f"/api/v1/{name}").json() for name in ("gpus", "processes", "node"))
    of_one = len(gpus["gpus"])
    gpus["gpus"] = copied(gpus["gpus"], GPUS, lambda row, copy, _: gpu_of(row, copy, of_one))

    def process(row, copy, i):
        gpu_of(row, copy % (GPUS // of_one), of_one)
        row["pid"] = 1000 + i
    processes["processes"] = copied(processes["processes"], PROCESSES, process)
    return {"gpus": gpus, "processes": processes, "node": node}


def whole(value, path):
    """The pairs that make a value out of nothing, each a small one, as serve/delta.h has them."""
    if not isinstance(value, (dict, list)) or len(json.dumps(value)) <= WHOLE_BYTES:
        return [[list(path), value]]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [[list(path), type(value)()]] + [change for name, v in inner for change in whole(v, (*path, name))]


def changes(old, new, path=()):
    """The pairs that make @old @new."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [change for name in new for change in changes(old[name], new[name], (*path, name))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [change for i, value in enumerate(new) for change in changes(old[i], value, (*path, i))]
    return [] if old == new else whole(new, path)


def events(name, old, new):
    """The text of what makes a document @old @new; @old None: there was none."""
    left = whole(new, ()) if old is None else changes(old, new)
    what, out = ({"start": True} if old is None else {}), []
    while left or what:
        size, n = 0, 0
        while n < len(left) and size < EVENT_BYTES:
            size += len(json.dumps(left[n]))
            n += 1
        piece = {"page": name, **what, "changes": left[:n]} | ({"more": True} if n < len(left) else {})
        out.append(f"event: change\ndata: {json.dumps(piece)}\n\n")
        left, what = left[n:], {}
    return "".join(out).encode()


class BigNode:
    """Its address is .url. @agent is a simulated one."""

    def __init__(self, agent):
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): # pylint: disable=invalid-name
                node.answer(self)

            def log_message(self, *_): # pylint: disable=arguments-differ
                pass
        self.agent, self.server = agent, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.ended = False
        told = [documents(agent)]
        while len(told) < SECONDS:
            time.sleep(PERIOD_S)
            told.append(documents(agent))
        self.first = {name: events(name, None, document) for name, document in told[0].items()}
        self.then = [{name: events(name, old[name], new[name]) for name in new} for old, new in zip(told, told[1:] + told[:1], strict=True)]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        path = handler.path.split("?")[0]
        if path == "/api/v1/stream":
            self.stream(handler, handler.path.split("pages=")[1].split(","))
        elif path == "/" or path.startswith("/page/"):
            with open(f"{SOURCE}/src{path if path != '/' else '/page/index.html'}", "rb") as f:
                self.reply(handler, f.read(), {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}.get(path.rsplit(".", 1)[-1], "text/html"))
        else:
            handler.send_error(404)

    @staticmethod
    def reply(handler, body, kind):
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stream(self, handler, names):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        try:
            for name in names:
                handler.wfile.write(self.first.get(name) or f"event: absent\ndata: {json.dumps({'page': name, 'text': 'not here'})}\n\n".encode())
            for now in itertools.cycle(self.then):
                time.sleep(PERIOD_S)
                handler.wfile.write(b"".join(now.get(name, b"") for name in names) or b"event: beat\ndata: {}\n\n")
        except OSError:
            pass # the viewer has gone
