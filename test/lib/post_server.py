# SPDX-License-Identifier: Apache-2.0
"""A server for what the agent pushes."""
import http.server
import threading


class PostServer:
    """Hands each POST to reply(). Threads of its own, one for each connection."""

    def __init__(self, *statuses, port=0):
        self.statuses, self.requests = list(statuses), []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                answer = server.reply(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"])))
                if answer is None:
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204: # which has no body
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def reply(self, path, headers, body):
        """(status, headers, body) of the answer; None: there is none."""
        raise NotImplementedError

    def next_status(self, otherwise):
        """What the next request is answered with: of @statuses, in turn, then this."""
        return self.statuses.pop(0) if self.statuses else otherwise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
