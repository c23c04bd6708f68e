#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may ask the agent over the network: TLS, users, tokens and certificates, by Prometheus' web configuration file."""
import base64
import contextlib
import functools
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from e2e.top import hosts_screen
from lib.chromium import Browser
from lib.e2e import PATIENCE_S, Agent, Skip, contains, equal, run, wait_for
from lib.prometheus import Prometheus, tool

PASSWORD, TOKEN = "correct horse", "0123456789abcdef0123456789abcdef"


@functools.lru_cache(None)
def folder():
    """Certificates: ca, server (of 127.0.0.1) and client by it, other by nobody; a bcrypt hash; kept for the whole run."""
    owner = tempfile.TemporaryDirectory(prefix="gpusonde-access-")
    where = owner.name
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=where, check=True, capture_output=True, timeout=60)
    if not shutil.which("openssl"):
        raise Skip("openssl is not installed")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test CA")
    openssl("req", "-x509", *key, "-keyout", "other.key", "-out", "other.crt", "-days", "2", "-subj", "/CN=prometheus")
    for name, common, san in (("server", "gpusonde", "IP:127.0.0.1,DNS:localhost"), ("renewed", "renewed", "IP:127.0.0.1"),
                              ("client", "prometheus", "DNS:prometheus.example")):
        with open(f"{where}/{name}.ext", "w", encoding="utf-8") as f:
            f.write(f"subjectAltName={san}\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.crt", "-days", "2",
                "-extfile", f"{name}.ext")
    return where, owner


def hashed(password=PASSWORD, cost=5):
    """As htpasswd -nB writes it; libcrypt's own function, since Python's may be gone."""
    import ctypes # pylint: disable=import-outside-toplevel
    crypt = ctypes.CDLL("libcrypt.so.1").crypt
    crypt.restype = ctypes.c_char_p
    return crypt(password.encode(), f"$2y${cost:02}$abcdefghijklmnopqrstuu".encode()).decode()


def config(tls="", users="", more=""):
    where = folder()[0]
    text = f"tls_server_config:\n  cert_file: {where}/server.crt\n  key_file: {where}/server.key\n{tls}" if tls is not None else ""
    return text + (f"basic_auth_users:\n{users}" if users else "") + more


@contextlib.contextmanager
def agent_with(text, *flags, **options):
    with tempfile.TemporaryDirectory(prefix="gpusonde-access-agent-") as tmp:
        with open(f"{tmp}/web.yml", "w", encoding="utf-8") as f:
            f.write(text)
        with Agent("--web.config.file", f"{tmp}/web.yml", *flags, wait=False, tmp=tmp, **options) as agent:
            wait_for(lambda: agent.port() or agent.process.poll() is not None, "the agent to listen")
            assert agent.process.poll() is None, agent.log()
            yield agent


def basic(password=PASSWORD, user="alice"):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token=TOKEN):
    return {"Authorization": f"Bearer {token}"}


def trusting(certificate=None):
    where = folder()[0]
    context = ssl.create_default_context(cafile=f"{where}/ca.crt")
    if certificate:
        context.load_cert_chain(f"{where}/{certificate}.crt", f"{where}/{certificate}.key")
    return context


def ask(agent, path="/metrics", tls=True, certificate=None, context=None, method="GET", **headers):
    if tls:
        connection = http.client.HTTPSConnection("127.0.0.1", agent.port(), timeout=PATIENCE_S, context=context or trusting(certificate))
    else:
        connection = http.client.HTTPConnection("127.0.0.1", agent.port(), timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        reply.text = reply.read().decode()
        return reply


def served_name(agent):
    """The common name of the certificate that it shows."""
    with socket.create_connection(("127.0.0.1", agent.port()), PATIENCE_S) as plain, trusting().wrap_socket(plain, server_hostname="127.0.0.1") as s:
        return dict(x[0] for x in s.getpeercert()["subject"])["commonName"]


def test_tls_with_users():
    with agent_with(config(users=f'  alice: "{hashed()}"\n')) as agent:
        wait_for(lambda: ask(agent, "/readyz").status == 200, "/readyz, which is for everybody")
        refused = ask(agent)
        equal((refused.status, refused.getheader("WWW-Authenticate").split()[0]), (401, "Basic"))
        contains(ask(agent, **basic()).text, "gpusonde_up 1")
        for headers in (basic("wrong"), basic(user="bob"), basic("", ""), bearer(), {"Authorization": "Basic !"}, {"Authorization": "Digest x"}):
            equal(ask(agent, **headers).status, 401, headers)
        equal(ask(agent, "/no/such/page").status, 401)
        equal(ask(agent, "/no/such/page", **basic()).status, 404)
        equal(ask(agent, "/control/status", **basic()).status, 403)
        contains(ask(agent, tls=False).text, "use https://")
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", agent.port(), context=trusting(), timeout=PATIENCE_S)) as kept:
            for _ in range(3): # one connection; each request says who it is
                kept.request("GET", "/metrics", headers=basic())
                contains(kept.getresponse().read().decode(), "gpusonde_up 1")
            kept.request("GET", "/metrics")
            equal(kept.getresponse().status, 401)


def test_tokens():
    with tempfile.TemporaryDirectory(prefix="gpusonde-tokens-") as tokens:
        for name, token in (("prometheus", TOKEN), ("grafana", TOKEN[::-1])):
            with open(f"{tokens}/{name}", "w", encoding="utf-8") as f:
                f.write(token + "\n")
        with Agent("--web-tokens", tokens, "--web-recordings", "grafana", wait=False) as agent:
            wait_for(agent.port, "the agent to listen")
            equal(ask(agent, tls=False).getheader("WWW-Authenticate").split()[0], "Bearer")
            equal(ask(agent, tls=False, **bearer()).status, 200)
            equal(ask(agent, tls=False, **bearer(TOKEN + "0")).status, 401)
            history = "/api/v1/moment?at=0"
            equal(ask(agent, history, tls=False, **bearer()).status, 403)
            assert ask(agent, history, tls=False, **bearer(TOKEN[::-1])).status not in (401, 403)
            os.unlink(f"{tokens}/prometheus") # taken away: at the next look
            wait_for(lambda: ask(agent, tls=False, **bearer()).status == 401, "the token to be no longer taken")


def buttons_of_timelines(agent, authorization, may):
    """The page has them for who may record, and they do; for others it has the command."""
    with Browser() as browser, browser.open("about:blank") as page:
        page.send("Security.setIgnoreCertificateErrors", ignore=True)
        page.send("Network.setExtraHTTPHeaders", headers={"Authorization": authorization})
        page.go(f"https://127.0.0.1:{agent.port()}/#timelines")
        button = "document.querySelector('#main ul button')"
        if not may:
            page.wait("document.querySelector('#main ul code')?.innerText.startsWith('gpusonde record start')", "the command")
            equal(page.ask(button), None)
            return
        page.wait(f"{button}?.innerText.startsWith('Record')", "the button that begins one")
        page.ask(f"{button}.click()")
        page.wait(f"{button}?.innerText.startsWith('Stop')", "the button that ends it")
        page.ask(f"{button}.click()")
        page.wait(f"{button}?.innerText.startsWith('Record')", "the other one again")
        equal(page.errors(), [])


def test_control():
    """Timelines begin and end over TLS, for those whom web.control names, and for nobody else; who did it is in the log."""
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    users = f'  alice: "{hashed()}"\n  bob: "{hashed("bobs")}"\n'
    start, stop = "/control/record?action=start&duration=1h", "/control/record?action=stop"
    with agent_with(config(users=users), "--web-control", "alice", "--trace-enabled", "yes", "--web-origins", "https://gpus.example") as agent:
        def state(**headers):
            reply = ask(agent, "/control/record", **headers)
            return reply.status, json.loads(reply.text) if reply.status == 200 else reply.text
        wait_for(lambda: state(**basic())[0] == 200, "tracing to begin")
        equal((ask(agent, start, method="POST").status, ask(agent, start, method="POST", **basic("wrong")).status), (401, 401))
        refused = ask(agent, start, method="POST", **basic("bobs", "bob"))
        equal(refused.status, 403)
        contains(refused.text, "web.control")
        equal(ask(agent, "/control/record", **basic("bobs", "bob")).status, 403)
        # A script of another website, with what the browser knows alice by.
        # Also one that may read (web.origins), and a form, which some browsers send without Origin.
        equal(ask(agent, "/metrics", Origin="https://gpus.example", **basic()).status, 200)
        for foreign in ({"Origin": "https://evil.example"}, {"Origin": "https://gpus.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            equal(ask(agent, start, method="POST", **foreign, **basic()).status, 403, foreign)
        assert not state(**basic())[1]["recording"]
        for path, must in (("/control/record", "start, stop or last"), (start + "&pid=-1", "a process ID"), (start.replace("1h", "8d"), "from 1s to 7d")):
            reply = ask(agent, path, method="POST", **basic())
            equal(reply.status, 400, path)
            contains(reply.text, must)
        equal(ask(agent, start + "&max_size=256MiB", method="POST", **basic()).status, 202)
        recorded = wait_for(lambda: state(**basic())[1]["recording"] and state(**basic())[1], "the recording to begin")
        equal((recorded["duration_seconds"], recorded["max_size"]), (3600, 256 << 20))
        equal(ask(agent, stop, method="POST", **basic()).status, 202)
        wait_for(lambda: not state(**basic())[1]["recording"], "the recording to end")
        contains(agent.log(), "audit: /control/record start by alice: 202")
        contains(agent.log(), "audit: /control/record stop by alice: 202")
        assert "by bob" not in agent.log()
        # All else that the UNIX socket has stays there, for alice, too.
        for path, method in (("/control/release", "POST"), ("/control/resume", "POST"), ("/control/status", "GET"), ("/control/capabilities", "GET")):
            reply = ask(agent, path, method=method, **basic())
            equal(reply.status, 403, path)
            contains(reply.text, "UNIX socket only")
        # Ten at once, and then one in six seconds.
        equal({ask(agent, stop, method="POST", **basic()).status for _ in range(30)}, {202, 429})


def test_buttons_on_the_page():
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    with agent_with(config(users=f'  alice: "{hashed()}"\n  bob: "{hashed("bobs")}"\n'), "--web-control", "alice", "--trace-enabled", "yes") as agent:
        for of, may in ((basic(), True), (basic("bobs", "bob"), False)):
            buttons_of_timelines(agent, of["Authorization"], may)


def test_control_needs_tls_and_a_name():
    with agent_with(config(None, users=f'  alice: "{hashed()}"\n'), "--web-control", "*") as agent:
        contains(ask(agent, "/control/record?action=start", tls=False, method="POST", **basic()).text, "over TLS")
    with agent_with(config(), "--web-control", "*") as agent:
        contains(ask(agent, "/control/record?action=start", method="POST").text, "UNIX socket only")
    with agent_with(config(users=f'  alice: "{hashed()}"\n')) as agent: # nobody, unless it is said
        contains(ask(agent, "/control/record?action=start", method="POST", **basic()).text, "web.control")
        contains(agent.get("/control/record?action=start", method="POST", unix=True).text, "nothing is traced")
        contains(agent.log(), f"audit: /control/record start by uid {os.geteuid()}, pid {os.getpid()}: 409")


def test_client_certificates():
    where = folder()[0]
    tls = f"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: {where}/ca.crt\n"
    with agent_with(config(tls)) as agent:
        equal(ask(agent, certificate="client").status, 200)
        for certificate in (None, "other"):
            try:
                status = ask(agent, certificate=certificate).status
            except (ssl.SSLError, OSError, http.client.HTTPException):
                status = "refused"
            equal(status, "refused", certificate)
    with agent_with(config(tls + "  client_allowed_sans: [somebody.example]\n")) as agent:
        try:
            status = ask(agent, certificate="client").status
        except (ssl.SSLError, OSError, http.client.HTTPException):
            status = "refused"
        equal(status, "refused")
    with agent_with(config(tls + "  client_allowed_sans: [prometheus.example]\n"), "--web-views", "somebody") as agent:
        equal(ask(agent, certificate="client").status, 403)


def test_connections_of_former_rules_end():
    """One that has shown no certificate, when one is asked for."""
    with agent_with(config()) as agent:
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", agent.port(), context=trusting(), timeout=PATIENCE_S)) as kept:
            def status(connection):
                try:
                    connection.request("GET", "/metrics")
                    reply = connection.getresponse()
                    reply.read()
                    return reply.status
                except (ssl.SSLError, OSError, http.client.HTTPException):
                    return "refused"
            def of_new():
                with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", agent.port(), context=trusting(), timeout=PATIENCE_S)) as new:
                    return status(new)
            equal(status(kept), 200)
            agent.write("web.yml", config("  client_auth_type: RequireAnyClientCert\n"))
            wait_for(lambda: of_new() == "refused", "certificates to be asked for")
            equal(status(kept), "refused")


def test_certificates_are_renewed():
    """By replacing the file, without a signal; and by a reload, which ends TLS altogether."""
    where = folder()[0]
    with tempfile.TemporaryDirectory(prefix="gpusonde-renewed-") as tmp:
        def put(name):
            for end in ("key", "crt"):
                shutil.copy(f"{where}/{name}.{end}", f"{tmp}/new.{end}")
                os.rename(f"{tmp}/new.{end}", f"{tmp}/server.{end}")
        put("server")
        with agent_with(f"tls_server_config:\n  cert_file: {tmp}/server.crt\n  key_file: {tmp}/server.key\n") as agent:
            equal(served_name(agent), "gpusonde")
            with open(f"{tmp}/server.crt", "w", encoding="utf-8") as f:
                f.write("no certificate\n")
            wait_for(lambda: "who may ask stays as it was" in agent.log(), "the file with errors to be found")
            equal(served_name(agent), "gpusonde")
            put("renewed")
            wait_for(lambda: served_name(agent) == "renewed", "the new certificate")
            agent.write("web.yml", "http_server_config:\n  http2: false\n")
            agent.signal(signal.SIGHUP)
            def plain():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    return ask(agent, tls=False).status == 200
            wait_for(plain, "plain HTTP")


def test_nothing_beyond_loopback_is_open_by_accident():
    def log_of(*flags):
        with Agent(*flags, listen="0.0.0.0:0", wait=False) as agent:
            wait_for(lambda: agent.port() or agent.process.poll() is not None, "the agent to listen, or to end")
            return agent.port() != 0, agent.log()
    served, log = log_of()
    assert not served, log
    contains(log, "--web-open true")
    assert log_of("--web-open", "true")[0]
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(f'basic_auth_users:\n  alice: "{hashed()}"\n')
        f.flush()
        served, log = log_of("--web.config.file", f.name)
        assert served and "BEYOND LOOPBACK" not in log, log
    with Agent("--atop-listen", "0.0.0.0:0", atop_listen=None) as agent:
        contains(agent.log(), "its protocol has no authentication")


def test_files_that_lose_what_they_asked_open_nothing():
    """One that is being written is empty for a moment. A reload believes it, but not where everybody could reach the agent."""
    def status(agent, **headers):
        return ask(agent, tls=False, **headers).status
    users = config(None, users=f'  alice: "{hashed()}"\n')
    for listen, after_reload in (("127.0.0.1:0", 200), ("0.0.0.0:0", 401)):
        with agent_with(users, listen=listen) as agent:
            wait_for(lambda: status(agent, **basic()) == 200, "the user to be let in") # pylint: disable=cell-var-from-loop
            agent.write("web.yml", "")
            wait_for(lambda: "less is asked of clients" in agent.log(), "the empty file to be found") # pylint: disable=cell-var-from-loop
            equal((status(agent), status(agent, **basic())), (401, 200), listen)
            agent.signal(signal.SIGHUP)
            wait_for(lambda: "configuration reloaded" in agent.log(), "the reload") # pylint: disable=cell-var-from-loop
            wait_for(lambda: status(agent) == after_reload, f"{after_reload} of {listen}") # pylint: disable=cell-var-from-loop
            equal("is not opened to everybody" in agent.log(), after_reload == 401)
            equal(status(agent, **basic()), 200)


def test_what_is_for_nobody_is_served_to_nobody():
    with Agent("--web-recordings", "none", wait=False) as agent:
        wait_for(agent.port, "the agent to listen")
        equal([ask(agent, path, tls=False).status for path in ("/metrics", "/api/v1/moment?at=0", "/control/status")], [200, 403, 403])
        wait_for(lambda: 'gpusonde_http_refused_total{status="403"} 2' in agent.metrics(), "refusals to be counted")
        contains(agent.metrics(), 'gpusonde_http_refused_total{status="401"} 0')


def test_mistakes_are_told_with_their_line():
    user = f'basic_auth_users:\n  alice: "{hashed()}"\n'
    for text, line, said in (("tls_server_confg: {}\n", 1, 'did you mean "tls_server_config"'),
                             ("tls_server_config:\n  cert_file: /nowhere\n  key_file: /nowhere\n", 2, "cannot be read"),
                             ("tls_server_config:\n  min_version: TLS9\n", 2, "TLS12"),
                             (config("  client_auth_type: RequireAndVerifyClientCert\n"), 1, "needs client_ca_file"),
                             (user.replace("$2y$05$", "$2y$31$"), 2, "cost"),
                             ("basic_auth_users:\n  alice: password\n", 2, "no bcrypt hash"),
                             ("http_server_config:\n  headers:\n    X-Frame-Options: sometimes\n", 3, "deny or sameorigin"),
                             ("- a\n", 1, "must begin with a key")):
        with tempfile.TemporaryDirectory(prefix="gpusonde-access-bad-") as tmp:
            path = f"{tmp}/web.yml"
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            with Agent("--web.config.file", path, wait=False) as agent:
                wait_for(lambda: agent.process.poll() is not None, "the agent to end")
                contains(agent.log(), f"{path}:{line}: ")
                contains(agent.log(), said)
                assert "password\n" not in agent.log() and hashed()[7:] not in agent.log(), agent.log()


def test_prometheus_and_its_tools_as_clients():
    where, promtool = folder()[0], tool("promtool")
    with agent_with(config(f"  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: {where}/ca.crt\n  min_version: TLS13\n",
                           users=f'  alice: "{hashed()}"\n')) as agent:
        subprocess.run([promtool, "check", "web-config", f"{agent.tmp}/web.yml"], check=True, capture_output=True, timeout=60)
        if shutil.which("curl"):
            out = subprocess.run(["curl", "-sS", "--cacert", f"{where}/ca.crt", "-u", f"alice:{PASSWORD}", f"https://localhost:{agent.port()}/metrics"],
                                 check=True, capture_output=True, text=True, timeout=60).stdout
            contains(out, "gpusonde_up 1")
        job = {"job_name": "gpusonde", "scheme": "https", "tls_config": {"ca_file": f"{where}/ca.crt", "cert_file": f"{where}/client.crt",
                                                                         "key_file": f"{where}/client.key"},
               "basic_auth": {"username": "alice", "password": PASSWORD}, "static_configs": [{"targets": [f"127.0.0.1:{agent.port()}"]}]}
        with Prometheus([job]) as prometheus:
            wait_for(lambda: prometheus.query('gpusonde_up{job="gpusonde"}'), "Prometheus to have scraped by TLS and password")
    with tempfile.TemporaryDirectory(prefix="gpusonde-tokens-") as tokens:
        with open(f"{tokens}/prometheus", "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")
        with agent_with(config(), "--web-tokens", tokens) as agent:
            job = {"job_name": "gpusonde", "scheme": "https", "tls_config": {"ca_file": f"{where}/ca.crt"},
                   "authorization": {"credentials_file": f"{tokens}/prometheus"}, "static_configs": [{"targets": [f"127.0.0.1:{agent.port()}"]}]}
            with Prometheus([job]) as prometheus:
                wait_for(lambda: prometheus.query('gpusonde_up{job="gpusonde"}'), "Prometheus to have scraped by TLS and token")


def test_top_asks_by_tls_and_token():
    with tempfile.TemporaryDirectory(prefix="gpusonde-tokens-") as tokens:
        with open(f"{tokens}/top", "w", encoding="utf-8") as f:
            f.write(TOKEN + "\n")
        with agent_with(config(), "--web-tokens", tokens) as agent:
            asked = f"https://localhost:{agent.port()}", "127.0.0.1:1", "--client-ca-file", f"{folder()[0]}/ca.crt"
            with hosts_screen(*asked) as screen:
                screen.shows("it refuses us, with status 401")
            with hosts_screen(*asked, "--client-token-file", f"{tokens}/top") as screen:
                screen.has_line(r"https://localhost:\d+ +ok +8 ")


def test_a_client_that_asks_too_often_is_told_so():
    with agent_with(config(None, more="rate_limit:\n  interval: 1h\n  burst: 3\n")) as agent:
        equal([ask(agent, tls=False).status for _ in range(5)], [200, 200, 200, 429, 429])
        refused = ask(agent, tls=False)
        equal((refused.status, refused.getheader("Retry-After")), (429, "1"))
        equal(ask(agent, "/healthz", tls=False).status, 200)


def test_scripts_of_other_websites_are_refused():
    with Agent("--web-origins", "https://gpus.example, https://other.example:8443", wait=False) as agent:
        wait_for(agent.port, "the agent to listen")
        for origin, status in ((f"http://127.0.0.1:{agent.port()}", 200), ("https://gpus.example", 200), ("https://other.example:8443", 200),
                               ("https://evil.example", 403), ("null", 403), (f"http://127.0.0.1:{agent.port()}.evil.example", 403)):
            equal(ask(agent, tls=False, Origin=origin).status, status, origin)
        # Behind a proxy that sets Host: the browser says whose script it is.
        for site, status in (("same-origin", 200), ("same-site", 403), ("cross-site", 403)):
            equal(ask(agent, tls=False, Origin="https://proxy.example", **{"Sec-Fetch-Site": site}).status, status, site)


def test_headers_are_those_that_the_file_wants():
    headers = "http_server_config:\n  headers:\n    Content-Security-Policy: default-src 'none'\n    X-Frame-Options: deny\n    X-Content-Type-Options: nosniff\n"
    with agent_with(config(None, more=headers)) as agent:
        for path in ("/metrics", "/", "/nothing"):
            reply = ask(agent, path, tls=False, Accept="text/html")
            equal([reply.headers.get_all(n) for n in ("Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options")],
                  [["default-src 'none'"], ["deny"], ["nosniff"]], path)


def test_half_open_clients_and_guesses_stop_nobody():
    """A hundred handshakes that do not go on, and wrong passwords whose hashes cost: who has been let in goes on."""
    with agent_with(config(users=f'  alice: "{hashed(cost=12)}"\n')) as agent, contextlib.ExitStack() as stack:
        equal(ask(agent, **basic()).status, 200)
        hello = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            trusting().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
        part = hello.read()
        for i in range(100):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port()), PATIENCE_S))
            s.sendall(part[:i % len(part)] if i % 2 else part)
        guesses = []
        for i in range(8):
            connection = http.client.HTTPSConnection("127.0.0.1", agent.port(), context=trusting(), timeout=PATIENCE_S)
            stack.enter_context(contextlib.closing(connection))
            connection.request("GET", "/metrics", headers=basic(f"guess {i}"))
            guesses.append(connection)
        begin = time.monotonic()
        for _ in range(20):
            equal(ask(agent, **basic()).status, 200)
        passed = time.monotonic() - begin
        statuses = [g.getresponse().status for g in guesses]
        assert set(statuses) <= {401, 429} and 429 in statuses, statuses
        assert passed < PATIENCE_S, passed
        contains(ask(agent, **basic()).text, "gpusonde_web_replaced_total 0")


if __name__ == "__main__":
    run()
