# SPDX-License-Identifier: Apache-2.0
"""Requests per second for a page, compared with nginx (one worker, sendfile) serving the same bytes as a static file.

Nine alternating pairs of runs of wrk, 16 connections, one thread; the figure is the median of the nine ratios, so that what
else the machine does falls on both. By itself, against any server:

    python3 bench/pages.py URL [URL ...]
"""
import http.client
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from common import Row, Skip, agent, free_port, stop

PAIRS = 9
SECONDS = int(os.environ.get("BENCH_PAGES_SECONDS", "3"))
CONNECTIONS = 16
HANG_PAIRS = 3
HANG_GETS = 300
CONTAINERS = 1000
# What /container/metrics has, by DCGM's names.
CONTAINER_METRICS = """PROF_SM_ACTIVE PROF_SM_OCCUPANCY PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES
    PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES PROF_GR_ENGINE_ACTIVE DEV_FB_TOTAL DEV_FB_USED DEV_FB_FREE DEV_PCIE_LINK_GEN DEV_PCIE_LINK_WIDTH
    DEV_GPU_TEMP DEV_MEMORY_TEMP DEV_POWER_USAGE DEV_GPU_UTIL PROF_PIPE_INT_ACTIVE PROF_PIPE_FP16_ACTIVE PROF_PIPE_FP32_ACTIVE
    PROF_PIPE_FP64_ACTIVE DEV_CLOCKS_EVENT_REASONS DEV_XID_ERRORS DEV_POWER_VIOLATION DEV_THERMAL_VIOLATION DEV_SM_CLOCK DEV_MEM_CLOCK""".split()

NGINX_CONF = """\
daemon off;
worker_processes 1;
pid {tmp}/nginx.pid;
error_log {tmp}/nginx.err;
events {{ worker_connections 256; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    default_type text/plain;
    client_body_temp_path {tmp}/body;
    proxy_temp_path {tmp}/proxy;
    fastcgi_temp_path {tmp}/fastcgi;
    uwsgi_temp_path {tmp}/uwsgi;
    scgi_temp_path {tmp}/scgi;
    server {{ listen 127.0.0.1:{port}; root {tmp}/html; }}
}}
"""


def tool(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Skip(f"{name} is missing: install the package {package}")
    return path


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read()


def start_nginx(tmp, page):
    """Serves @page as /page; returns the process and the URL."""
    port = free_port()
    # If this runs as root, nginx's worker runs as user nobody, and must be able to read the file.
    os.chmod(tmp, 0o755)
    os.mkdir(f"{tmp}/html")
    with open(f"{tmp}/html/page", "wb") as f:
        f.write(page)
    with open(f"{tmp}/nginx.conf", "w") as f:
        f.write(NGINX_CONF.format(tmp=tmp, port=port))
    process = subprocess.Popen([tool("nginx", "nginx-light"), "-p", tmp, "-c", f"{tmp}/nginx.conf"],
                               stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/page"
    for _ in range(100):
        try:
            if fetch(url) == page:
                return process, url
        except OSError:
            time.sleep(0.05)
    stop(process)
    raise Skip("nginx did not start; its error log: " + open(f"{tmp}/nginx.err").read().strip())


def wrk(url):
    """Requests per second; raises if there were errors."""
    out = subprocess.run([tool("wrk", "wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", url],
                         check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"wrk against {url} reported errors:\n{out}")
    words = out.split()
    return float(words[words.index("Requests/sec:") + 1])


def compare(url):
    """[(ratio, ours per second, nginx's per second), ...] of the nine pairs, and the page's size in bytes."""
    page = fetch(url)
    pairs = []
    with tempfile.TemporaryDirectory() as tmp:
        nginx, nginx_url = start_nginx(tmp, page)
        try:
            wrk(url), wrk(nginx_url)    # warms up both
            for i in range(PAIRS):
                order = (url, nginx_url) if i % 2 else (nginx_url, url)
                rate = {u: wrk(u) for u in order}
                pairs.append((rate[url] / rate[nginx_url], rate[url], rate[nginx_url]))
        finally:
            stop(nginx)
    return sorted(pairs), len(page)


def rows(name, url):
    pairs, size = compare(url)
    median = pairs[len(pairs) // 2]
    return [Row(f"{name}, {size // 1024} KiB: requests per second, of nginx's (least {pairs[0][0]:.2f}, "
                f"greatest {pairs[-1][0]:.2f})", median[0], "{:.2f}", at_least=0.8),
            Row(f"{name}: requests per second", statistics.median(p[1] for p in pairs), "{:.0f}")]


def latency_ms(port):
    """Median time of a GET /metrics on a kept connection, over a few ticks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times = []
    for _ in range(HANG_GETS):
        begin = time.monotonic()
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        times.append((time.monotonic() - begin) * 1e3)
        time.sleep(0.01)
    connection.close()
    return statistics.median(times)


def set_fault(control, text):
    with open(control + ".new", "w") as f:
        f.write(text)
    os.rename(control + ".new", control)


def wait_for_status(port, wanted):
    for _ in range(600):
        try:
            status = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10).status
        except urllib.error.HTTPError as error:
            status = error.code
        if status == wanted:
            return
        time.sleep(0.1)
    raise RuntimeError(f"/readyz did not report {wanted} within a minute")


def hang_row(tmp):
    """Each NVML call hangs repeatedly; the median of the ratios to the healthy agent just before."""
    control = f"{tmp}/control.yaml"
    process = agent(tmp, ("--nvml-call-timeout", "1s"), {"GPUSONDE_SIM_CONTROL": control})
    ratios = []
    try:
        for _ in range(HANG_PAIRS):
            healthy = latency_ms(process.port)
            set_fault(control, "faults: [{hang: while, functions: 'nvml*'}]\n")
            wait_for_status(process.port, 503)
            ratios.append(latency_ms(process.port) / healthy)
            set_fault(control, "faults: []\n")
            wait_for_status(process.port, 200)
    finally:
        stop(process)
    return Row("GET /metrics: time while every NVML call hangs, of that before", statistics.median(ratios), "{:.2f}", at_most=1.25)


def dcgm_page(containers, gpus=8):
    """What a DCGM exporter prints of GPUs that so many containers share, with all numbers that /container/metrics has."""
    lines = []
    for name in CONTAINER_METRICS:
        lines += [f"# HELP DCGM_FI_{name} x", f"# TYPE DCGM_FI_{name} gauge"]
        for i in range(containers):
            gpu = i % gpus
            lines.append(f'DCGM_FI_{name}{{gpu="{gpu}",UUID="GPU-{gpu:08d}-0000-4000-8000-000000000000",device="nvidia{gpu}",modelName="NVIDIA H200",'
                         f'Hostname="node-9",container="worker",namespace="team-{i % 20}",pod="train-{i:04d}"}} {i + 0.25 * (i % 4)}')
    return ("\n".join(lines) + "\n").encode()


class Page(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self): # pylint: disable=invalid-name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_): # pylint: disable=arguments-differ
        pass


def container_rows():
    """/container/metrics with so many containers, which an exporter's page tells."""
    Page.body = dcgm_page(CONTAINERS)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as tmp:
        process = agent(tmp, ("--dcgm-host", "127.0.0.1", "--dcgm-port", str(server.server_address[1])))
        url = f"http://127.0.0.1:{process.port}/container/metrics"
        try:
            for _ in range(300):
                if fetch(url).count(b'"timestamp"') >= CONTAINERS:
                    break
                time.sleep(0.1)
            else:
                raise RuntimeError(f"/container/metrics did not have {CONTAINERS} rows within 30 s")
            return rows(f"GET /container/metrics, {CONTAINERS} containers", url)
        finally:
            stop(process)
            server.shutdown()


def run():
    found = []
    with tempfile.TemporaryDirectory() as tmp:
        found.append(hang_row(tmp))
    try:
        tool("wrk", "wrk"), tool("nginx", "nginx-light")
    except Skip as skip:
        return [Row(f"GET {page} beside nginx", skipped=str(skip)) for page in ("/metrics", "/container/metrics")] + found
    with tempfile.TemporaryDirectory() as tmp:
        process = agent(tmp)
        try:
            found = rows("GET /metrics", f"http://127.0.0.1:{process.port}/metrics") + found
        finally:
            stop(process)
    return found + container_rows()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for row in rows(argument, argument):
            print(row.name, row.figure(), row.verdict())
