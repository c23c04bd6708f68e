# SPDX-License-Identifier: Apache-2.0
"""An API server of ours for tests of gpusonde-kube: objects that a test puts, lists in pages, watches, owners, and whatever else it is told to do
wrong. In the test's own process, a thread for each connection; over TLS with certificates of a throw-away CA if it is told to.
"""
import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse


class Api:
    """What the server knows, and a log of what it was asked."""

    def __init__(self):
        self.lock = threading.Condition()
        self.version = 100
        self.pods = {}          # uid -> object
        self.events = []        # (version, type, object)
        self.objects = {}       # path -> object: owners, API resources, nodes
        self.answers = []       # functions (request, path, query) that answer in the server's place, or return False; tried in turn
        self.asked = []         # (path, query, headers)
        self.token = None       # wanted in every request
        self.compacted = 0      # watches from before this version are too old
        self.page = 500
        self.bookmarks = 0
        self.watches = 0        # that are open
        self.cut = 0            # counts up: all watches end

    def put(self, pod, kind=None):
        with self.lock:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            new = pod["metadata"]["uid"] not in self.pods
            self.pods[pod["metadata"]["uid"]] = pod
            self.events.append((self.version, kind or ("ADDED" if new else "MODIFIED"), pod))
            self.lock.notify_all()

    def remove(self, uid):
        with self.lock:
            self.version += 1
            pod = dict(self.pods.pop(uid))
            pod["metadata"] = dict(pod["metadata"], resourceVersion=str(self.version))
            self.events.append((self.version, "DELETED", pod))
            self.lock.notify_all()

    def forget(self, quietly=None):
        """As after a compaction of etcd; a pod that vanished meanwhile has no event."""
        with self.lock:
            self.version += 1
            self.pods.pop(quietly, None)
            self.compacted = self.version
            self.events = []
            self.cut += 1
            self.lock.notify_all()

    def end_watches(self):
        with self.lock:
            self.cut += 1
            self.lock.notify_all()

    def paths(self):
        return [path for path, _, _ in self.asked]

    def count(self, **wanted):
        return sum(all(query.get(k) == v for k, v in wanted.items()) for _, query, _ in self.asked)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        return True

    def refuse(self, status, message="", **headers):
        return self.send(status, {"kind": "Status", "status": "Failure", "message": message, "code": status}, **headers)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")
        return True

    def namespace(self):
        """That the path names; None: all."""
        parts = urllib.parse.urlsplit(self.path).path.split("/")
        return parts[4] if parts[3] == "namespaces" else None

    def list_pods(self, api, query):
        pods = [p for p in api.pods.values() if self.namespace() in (None, p["metadata"]["namespace"])]
        at = int(query.get("continue", "0-0").split("-")[0])
        more = at + api.page < len(pods) and query.get("resourceVersion") != "0"
        meta = {"resourceVersion": str(api.version)}
        if more:
            meta["continue"] = f"{at + api.page}-{api.version}"
        return self.send(200, {"kind": "PodList", "metadata": meta, "items": pods[at:] if query.get("resourceVersion") == "0" else pods[at:at + api.page]})

    def watch_pods(self, api, query):
        seen, cut = int(query["resourceVersion"]), api.cut
        if seen < api.compacted:
            return self.refuse(410, "too old resource version")
        self.begin_stream()
        until = time.monotonic() + float(query.get("timeoutSeconds", "60"))
        api.watches += 1
        try:
            while time.monotonic() < until and api.cut == cut:
                with api.lock:
                    news = [e for e in api.events if e[0] > seen and self.namespace() in (None, e[2]["metadata"]["namespace"])]
                    if not news:
                        api.lock.wait(0.1)
                for version, kind, pod in news:
                    self.piece(json.dumps({"type": kind, "object": pod}).encode() + b"\n")
                    seen = version
        finally:
            api.watches -= 1
        return self.end_stream()

    def do_GET(self):
        api = self.server.api
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        api.asked.append((url.path, query, dict(self.headers)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            if api.token and self.headers.get("Authorization") != f"Bearer {api.token}":
                return self.refuse(401, "Unauthorized")
            for answer in list(api.answers):
                if answer(self, url.path, query):
                    return None
            if url.path == f"/api/v1/{'namespaces/' + self.namespace() + '/' if self.namespace() else ''}pods":
                return self.watch_pods(api, query) if query.get("watch") else self.list_pods(api, query)
            found = api.objects.get(url.path)
            return self.send(200, found) if found else self.refuse(404, f"{url.path} not found")
        return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api, port=0, tls=None, address="127.0.0.1"):
        if ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address, port), Handler)
        self.api = api
        self.port = self.server_address[1]
        self.tls = tls
        self.sockets = set()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def get_request(self):
        sock, address = super().get_request()
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls.certificate, self.tls.key)
            if self.tls.clients:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self.tls.clients)
            sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.sockets.add(sock)
        return sock, address

    def handle_error(self, *_):
        pass

    def stop(self):
        self.api.end_watches()
        self.shutdown()
        self.server_close()
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Tls:
    """What a server shows: files; and the CA that its clients' certificates must be of, or None."""

    def __init__(self, certificate, key, clients=None):
        self.certificate, self.key, self.clients = certificate, key, clients


class Authority:
    """A CA of openssl's, in a folder."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.ca = f"{folder}/{name}.crt"
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                 "-keyout", f"{folder}/{name}.key", "-out", self.ca)

    def run(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name, names="IP:127.0.0.1", days="2", begin=None):
        """(certificate, key) of one for these names; begin, in openssl's format, makes one that has expired."""
        path = f"{self.folder}/{name}"
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{path}.key",
                 "-out", f"{path}.csr")
        with open(f"{path}.ext", "w", encoding="ascii") as f:
            f.write(f"subjectAltName={names}\n" if names else "basicConstraints=CA:FALSE\n")
        if begin:
            self.expired(path)
        else:
            self.run("x509", "-req", "-in", f"{path}.csr", "-CA", self.ca, "-CAkey", f"{self.folder}/{self.name}.key", "-CAcreateserial", "-days", days,
                     "-extfile", f"{path}.ext", "-out", f"{path}.crt")
        return f"{path}.crt", f"{path}.key"

    def listening(self, socket):
        """A listening socket that speaks TLS with a certificate of this one's."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.sign("server"))
        return context.wrap_socket(socket, server_side=True, do_handshake_on_connect=False)

    def expired(self, path):
        """openssl x509 has no option for the beginning in Debian 12's version; openssl ca has."""
        base = f"{path}.ca"
        os.makedirs(f"{base}/new", exist_ok=True)
        with open(f"{base}/index.txt", "w", encoding="ascii"):
            pass
        with open(f"{base}/serial", "w", encoding="ascii") as f:
            f.write("1000\n")
        with open(f"{base}/conf", "w", encoding="ascii") as f:
            f.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={base}/index.txt\nserial={base}/serial\nnew_certs_dir={base}/new\ndefault_md=sha256\npolicy=p\n"
                    "[p]\ncommonName=supplied\n")
        self.run("ca", "-batch", "-config", f"{base}/conf", "-in", f"{path}.csr", "-cert", self.ca, "-keyfile", f"{self.folder}/{self.name}.key",
                 "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-extfile", f"{path}.ext", "-notext", "-out", f"{path}.crt")
