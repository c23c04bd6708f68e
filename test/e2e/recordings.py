#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings: what is replayed is what pages showed, whatever becomes of the agent, of gpusonde-store or of the disk."""
import contextlib
import datetime
import http.client
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import tempfile

from lib.cgroups import cgroup, enter
from lib.e2e import GPUSONDE, PATIENCE_S, SIMULATED, Agent, Skip, Worker, alive, children, comm, command, contains, environment, equal, run, samples, values, wait_for
from lib.tmux import Terminal


def replay(path, *args):
    result = command("replay", path, *args)
    assert result.returncode == 0, result.stderr
    return result.stdout


def frames(path, tier=0):
    """That are in the file; gpusonde-store may be writing."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute("SELECT coalesce(sum(frames), 0) FROM block WHERE tier=?", (tier,)).fetchone()[0]
    except sqlite3.Error:
        return 0


def store_of(agent):
    return next((child for child in children(agent.pid) if comm(child) == "gpusonde-store"), None)


def pages_of_a_moment(agent):
    """Pages of one snapshot: what stands before and after /metrics is of one time."""
    def attempt():
        before = agent.get("/api/v1/snapshot").json()
        page, dcgm = agent.get("/metrics").text, agent.get("/metrics/dcgm").text
        after = agent.get("/api/v1/snapshot").json()
        return before["time"] == after["time"] and (before, page, dcgm)
    return wait_for(attempt, "two answers of one snapshot")


def same_numbers(got, wanted):
    """DCGM's page has nanoseconds of seconds, and so digits behind the 15 that are recorded, and cuts to integers."""
    got, wanted = samples(got), samples(wanted)
    equal(set(got), set(wanted))
    for series, number in wanted.items():
        assert abs(got[series] - number) <= max(1, abs(number) * 1e-14), f"{series}: got {got[series]}, wanted {number}"


def report_is_of_the_same_numbers(path, moments):
    """Busy seconds and energy between two recorded moments are the differences of what pages said."""
    recorded = [at for at in sorted(moments) if json.loads(replay(path, "--json", "--view", "gpus", "--at", at))["time"] == at]
    first, last = (moments[recorded[i]][0] for i in (0, -1))
    result = command("report", f"{path}@{recorded[0]}..{recorded[-1]}", "--json")
    report = json.loads(result.stdout)
    equal((report["first"], report["last"]), (recorded[0], recorded[-1]))
    for gpu, before, after in zip(report["gpus"], first["gpus"], last["gpus"]):
        for name, member in (("busy_seconds", lambda g: g["busy_seconds_total"]["gpu"]), ("energy_joules", lambda g: g["energy_joules_total"])):
            wanted = member(after) - member(before)
            assert abs(gpu[name] - wanted) <= 1e-6 * (1 + wanted), f"{name}: got {gpu[name]}, wanted {wanted}"
    contains(command("report", path, "--format", "html", "--price", "0.30EUR").stdout, "<svg")
    contains(command("report", path, "--job", "none").stdout, "Nobody of that name was recorded.")
    contains(command("report", path, "--since", "2001-01-01", "--until", "2001-01-02").stderr, "nothing of that time is recorded")
    differences_are_judged(path, recorded)


def differences_are_judged(path, recorded):
    """The energy by time of two halves, beside what reports of them say; then what a threshold makes of it."""
    middle = recorded[len(recorded) // 2]
    halves = [f"{path}@{recorded[0]}..{middle}", f"{path}@{middle}..{recorded[-1]}"]
    watts = []
    for half in halves:
        report = json.loads(command("report", half, "--json").stdout)
        watts.append(sum(gpu["energy_joules"] for gpu in report["gpus"]) / report["recorded_seconds"])
    result = command("diff", *halves, "--json")
    equal(result.returncode, 0, result.stderr)
    row, = [row for row in json.loads(result.stdout)["sums"] if row["name"] == "gpu energy"]
    wanted = watts[1] / watts[0] - 1
    assert abs(row["change_ratio"] - wanted) < 1e-6, f"{row}, wanted {wanted}"
    equal((row["beyond"], row["new"]), (None, False))
    below, above = f"{abs(wanted) * 99:.9f}%", f"{abs(wanted) * 101:.9f}"
    for threshold, beyond in (below, True), (above, False):
        result = command("diff", *halves, "--json", "--threshold", threshold)
        rows = json.loads(result.stdout)["sums"]
        equal(next(row for row in rows if row["name"] == "gpu energy")["beyond"], beyond, threshold)
        equal(result.returncode, 3 if any(row["beyond"] for row in rows) else 0)
    contains(command("diff", *halves, "--threshold", below).stdout, " % !")
    result = command("diff", path, path, "--threshold", "0")
    equal(result.returncode, 0, result.stderr)
    contains(result.stdout, "+0.0 %")
    result = command("diff", path, path, "--threshold", "much")
    equal(result.returncode, 2)
    contains(result.stderr, "--threshold cannot be")


def unix_ms(time):
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def read_history(agent, path):
    """The answer once it has been read: 202 until then."""
    return wait_for(lambda: (answer := agent.get(path)).status != 202 and answer, f"an answer to {path}")


def the_machine_has_a_history(agent, recorded):
    """Its last numbers are those of the moment that was recorded last."""
    host = recorded["node"]["host"]
    metrics = ("host_cpu_seconds_total.idle", "host_memory_bytes.available", "gpusonde_host_disk_written_bytes_total", "host_network_bytes_total.receive")
    reply = read_history(agent, f"/api/v1/history?metric={','.join(metrics)}&since=5m&until={recorded['time']}&step=1s&gpu=0").json()
    last = {(series["metric"], series["device"]): [v for v in series["values"] if v is not None][-1] for series in reply["series"]}
    wanted = {(metrics[0], None): host["cpu_seconds_total"]["idle"], (metrics[1], None): host["memory_bytes"]["available"]}
    wanted |= {("host_disk_written_bytes_total", d["name"]): d["written_bytes_total"] for d in host["disks"] or []}
    wanted |= {(metrics[3], i["name"]): i["bytes_total"]["receive"] for i in host["interfaces"] or []}
    equal(last, wanted)
    assert all(series["gpu"] is None and series["uuid"] is None for series in reply["series"]), reply


def history_is_of_the_same_numbers(agent, moments):
    """The number of a second is that of the page of its last snapshot."""
    answer = read_history(agent, "/api/v1/history?metric=power_watts,gpusonde_gpu_busy_seconds_total.gpu&since=10m&step=1s")
    equal(answer.status, 200)
    document = answer.json()
    at = lambda i: int(document["first_unix_seconds"]) + i * document["step_seconds"]
    shown = {}
    # Some snapshots were not looked at: the last one of a second must be one that was. The newest second is not over.
    for second in {unix_ms(time) // 1000 for time in moments} - {unix_ms(document["recorded_last"]) // 1000}:
        last = read_history(agent, f"/api/v1/moment?at={second}.999").json()["time"]
        for gpu in moments[last][0]["gpus"] if last in moments and unix_ms(last) // 1000 == second else []:
            shown[gpu["uuid"], second] = gpu
    compared = 0
    for series in document["series"]:
        assert series["type"] == ("gauge" if series["metric"] == "power_watts" else "counter"), series["metric"]
        equal("min" in series, series["type"] == "gauge")
        for i, number in enumerate(series["values"]):
            gpu = shown.get((series["uuid"], at(i)))
            if number is None or not gpu:
                continue
            equal(number, gpu["power_watts"] if series["type"] == "gauge" else gpu["busy_seconds_total"]["gpu"], f"{series['metric']} at {at(i)}")
            compared += 1
    assert compared >= 8, f"only {compared} numbers were compared"
    recorded = read_history(agent, f"/api/v1/moment?at={document['recorded_last']}").json()
    equal(recorded["time"], document["recorded_last"])
    the_machine_has_a_history(agent, recorded)
    for path, status in (("history?metric=nothing", 400), ("history?metric=power_watts&since=soon", 400), ("history?metric=power_watts&gpu=x", 400),
                         ("history?metric=power_watts&since=24h&step=1s", 413), ("moment?at=2001-01-01", 404)):
        equal(read_history(agent, f"/api/v1/{path}").status, status, path)
    equal(read_history(agent, "/api/v1/history?metric=power_watts&gpu=777").json()["series"], [])


@contextlib.contextmanager
def pages_of(path, *args):
    """What gets a path of `gpusonde replay --serve`: the reply, its header and text."""
    with subprocess.Popen([GPUSONDE, "replay", path, "--serve=127.0.0.1:0", *args], env=environment(), stderr=subprocess.PIPE, text=True) as server:
        try:
            port = int(re.search(r"\(port (\d+)\)", server.stderr.readline()).group(1))

            def get(page, **headers):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                connection.request("GET", page, headers=headers)
                response = connection.getresponse()
                text = response.read().decode()
                connection.close()
                return response, text
            yield get
            server.send_signal(signal.SIGINT)
            equal(server.wait(PATIENCE_S), 0)
        finally:
            server.kill()


def pages_of_a_replay_are_marked(path, moments):
    """They are those of the moment, and each says so."""
    recorded = [at for at in sorted(moments) if json.loads(replay(path, "--json", "--view", "gpus", "--at", at))["time"] == at]
    at = recorded[-1]
    document, metrics, _ = moments[at]
    with pages_of(path, "--at", at) as get:
        for page in ("/api/v1/snapshot", "/api/v1/gpus", "/api/v1/processes", "/api/v1/node", "/api/v1/trace", "/api/v1/kernels", "/api/v1/events"):
            response, text = get(page)
            got = json.loads(text)
            equal((response.status, got.pop("replay"), got["time"]), (200, at, at), page)
            equal(got.get("gpus", document["gpus"]), document["gpus"], page)
        # "Ago" is before the moment.
        earlier, history = (json.loads(wait_for(lambda p=page: (answer := get(p))[0].status != 202 and answer, f"an answer to {page}")[1])
                            for page in ("/api/v1/moment?at=3s", "/api/v1/history?metric=power_watts&since=3s&step=1s"))
        equal((earlier["replay"], history["replay"]), (at, at))
        assert 2000 <= unix_ms(at) - unix_ms(earlier["time"]) <= 6000, earlier["time"]
        assert 3 <= history["points"] <= 5, history["points"]
        stamp = str(unix_ms(at))
        for accept in ("*/*", "application/openmetrics-text; version=1.0.0"):
            first, *lines = get("/metrics", Accept=accept)[1].splitlines()
            contains(first, f"# REPLAY of a recording: as it was at {at}")
            equal({line.split(" ")[-1] for line in lines if line[0] != "#"}, {stamp})
            for got, wanted in itertools.zip_longest(lines, metrics.splitlines()):
                equal(got.removesuffix(" " + stamp), wanted)
        for page in ("/", "/plain"):
            contains(get(page)[1], f"REPLAY of a recording: as it was at {at}")
        contains(get("/", Accept="text/html")[1], 'id="replay"')
        for page, status in (("/healthz", 404), ("/readyz", 404), ("/container/metrics", 404), ("/api/v1/stacks", 404), ("/metrics/dcgm", 200), ("/metrics", 200)):
            response, _ = get(page)
            equal((response.status, response.getheader("X-Gpusonde-State")), (status, "replay"), page)
            # Documents cut to milliseconds, the header rounds.
            assert abs(float(response.getheader("X-Gpusonde-Time")) * 1000 - unix_ms(at)) < 1.5, page
    with pages_of(path, "--speed", "100000") as get:
        last = max(recorded)
        wait_for(lambda: json.loads(get("/api/v1/gpus")[1])["replay"] >= last, "the film to be at its end")
    for args, why in ((["--serve=0.0.0.0:9471"], "on loopback only"), (["--serve=somewhere"], "must be an address and a port"),
                      (["--serve", "--json"], "leave out --json"), (["--serve", "--view", "ps"], "leave out --json and --view")):
        result = command("replay", path, *args)
        equal(result.returncode, 2, args)
        contains(result.stderr, why)
    result = command("replay", path, "--serve", "--at", "2001-01-01")
    equal(result.returncode, 1)
    contains(result.stderr, "nothing of that time, but from")


def screen_of_a_replay(path, moments):
    """gpusonde top of the recording: its moments, forth and back, and as a film; the numbers are those of the pages."""
    recorded = [at for at in sorted(moments) if json.loads(replay(path, "--json", "--view", "gpus", "--at", at))["time"] == at]
    at, newest = recorded[-2], json.loads(replay(path, "--json", "--view", "gpus"))["time"]
    clock = lambda time: datetime.datetime.fromtimestamp(unix_ms(time) // 1000).strftime("REPLAY %Y-%m-%d %H:%M:%S, ")
    watts = sum(gpu["power_watts"] for gpu in moments[at][0]["gpus"])
    screen_of = lambda *args: Terminal(GPUSONDE, "top", "--replay", path, *args, columns=120, rows=30, env=environment(HOME="/nonexistent"))
    with screen_of("--at", at) as screen:
        screen.shows("SIMULATED", clock(at) + "Space plays", f"power {watts:.0f}/", f"REPLAY of {path}")
        earlier = datetime.datetime.fromtimestamp((unix_ms(at) - 1000) / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds")
        before = json.loads(replay(path, "--json", "--view", "gpus", "--at", earlier))["time"]
        screen.keys("[")
        screen.shows(clock(before))
        wait_for(lambda: clock(newest) in screen.screen() or screen.keys("]"), "the newest moment, forward from there")
        wait_for(lambda: clock(newest) not in screen.screen() or screen.keys("["), "an earlier moment")
        screen.keys("L")
        screen.shows(clock(newest))
        screen.keys("{")
        screen.shows(clock(newest), "nothing earlier is recorded")
        screen.keys("2", "Down", "k")
        screen.shows("this is a recording")
        screen.keys("q")
        equal((screen.status(), screen.errors()), (0, ""))
    with screen_of("--speed", "100000") as screen:
        screen.shows(clock(newest) + "100000x")
    for args, status, why in ((["--replay", f"{path}.none"], 1, "No such file"), (["--replay", path, "--at", "2001-01-01"], 1, "nothing of that time, but from"),
                              (["--at", "1h"], 2, "name it with --replay"), (["--replay", path, "somewhere"], 2, "a recording is of one machine"),
                              (["--replay", path, "--speed", "0"], 2, "--speed cannot be")):
        result = command("top", *args)
        equal(result.returncode, status, args)
        contains(result.stderr, "gpusonde top: ")
        contains(result.stderr, why)


def test_replay_is_what_pages_showed():
    """Of ten moments and more; some of them were recorded, and each of these is the same in every view."""
    with tempfile.TemporaryDirectory() as tmp:
        path, moments = f"{tmp}/sub/r.db", {}
        with Agent("--recording-path", path) as agent:
            while frames(path) < 10:
                document, page, dcgm = pages_of_a_moment(agent)
                moments[document["time"]] = document, page, dcgm
            equal(values(agent.metrics(), "gpusonde_recording_up"), [1])
            history_is_of_the_same_numbers(agent, moments)
            store = store_of(agent)
            _, status = agent.stop()
            equal(status, 0)
            wait_for(lambda: not alive(store), "gpusonde-store to end")
        same = 0
        for at, (document, page, dcgm) in moments.items():
            got = json.loads(replay(path, "--json", "--at", at))
            if got["time"] != at: # between two that are recorded
                continue
            for name in ("gpus", "processes", "node", "traced", "allocations"):
                for process in document.get("processes", []):
                    process.pop("recent", None)
                for process in got.get("processes", []):
                    process.pop("recent", None)
                equal(got.get(name), document.get(name), name)
            equal(replay(path, "--view", "metrics", "--at", at), page, "/metrics")
            same_numbers(replay(path, "--view", "dcgm", "--at", at), dcgm)
            same += 1
        assert same >= 5, f"only {same} of {len(moments)} moments were recorded"
        contains(replay(path, "--view", "gpus"), "SIMULATED DATA")
        contains(command("replay", path, "--at", "2001-01-01").stderr, "nothing of that time, but from")
        report_is_of_the_same_numbers(path, moments)
        pages_of_a_replay_are_marked(path, moments)
        film = replay(path, "--speed", "100000", "--view", "gpus")
        assert film.count("Recorded at") >= 10, film[:300]
        screen_of_a_replay(path, moments)


def test_killed_and_started_again():
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/r.db"
        with Agent("--recording-path", path) as agent:
            wait_for(lambda: frames(path, tier=2) >= 1, "a first frame in the file")
            store = store_of(agent)
            os.kill(store, signal.SIGKILL)
            wait_for(lambda: store_of(agent) not in (None, store), "another gpusonde-store")
            wait_for(lambda: values(agent.metrics(), "gpusonde_recording_up") == [1], "recording to go on")
            assert sum(values(agent.metrics(), "gpusonde_recording_lost_frames_total", reason="missed")) > 0
            contains(agent.log(), "gpusonde-store, ended")
            before = frames(path, tier=2)
            agent.process.kill()
            agent.process.wait()
        with contextlib.closing(sqlite3.connect(path)) as db:
            equal(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            # No block was closed: that is what format 2 had.
            db.execute("PRAGMA user_version=2")
        contains(replay(path), "Recorded at")
        with Agent("--recording-path", path):
            wait_for(lambda: frames(path, tier=2) > before, "the recording to go on in the same file")
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                equal(db.execute("PRAGMA user_version").fetchone()[0], 3)


CONTAINERS = ("c1" * 32, "c2" * 32)
POD_UID = "11111111-2222-3333-4444-555555555555"
USER = 54321
# What is asked for, its cgroup, its user, the percent of a GPU and the GiB that it has, how pages call the group.
WHOSE = (
    (("--container", CONTAINERS[0][:12]), f"docker/{CONTAINERS[0]}", None, 5, 1, "container"),
    (("--pod", "ml/train-0"), f"kubepods/pod{POD_UID}/{CONTAINERS[1]}", None, 10, 2, "pod"),
    (("--job", "42"), "slurm/uid_1000/job_42/step_0", None, 20, 4, "job"),
    (("--user", str(USER)), None, USER, 40, 8, "user"),
)


def loads_are_the_simulators(agent, workers):
    """Between two moments of its life each was busy for the simulator's share of what was observed."""
    def listed():
        found = {p["pid"]: (p["busy_seconds_total"], p["observed_seconds_total"]) for p in agent.get("/api/v1/processes").json()["processes"]}
        # Samples are of the last second: those of the first ones are of a time when it did not run yet, too.
        return all(w.pid in found and (found[w.pid][1] or 0) > 2 for w in workers) and found
    before = wait_for(listed, "all processes on the pages")
    after = wait_for(lambda: (now := listed()) and min(now[w.pid][1] - before[w.pid][1] for w in workers) > 4 and now, "four seconds more")
    for worker, (_, _, _, percent, _, _) in zip(workers, WHOSE):
        busy, observed = (later - earlier for later, earlier in zip(after[worker.pid], before[worker.pid]))
        # The driver's samples are of a second: one may have come already, or not yet.
        assert abs(busy - percent / 100 * observed) < percent / 100 * 1.1, f"{worker.comm}: {busy} of {observed} seconds, wanted {percent} %"


def test_a_report_of_whom():
    """Of a container, a pod, a job and a user, whose processes have all ended: what pages have added up for each, and of it alone."""
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        os.chmod(tmp, 0o755) # another user's process runs a file of it
        folders = [stack.enter_context(cgroup(path)) if path else None for _, path, _, _, _, _ in WHOSE]
        workers = [Worker(tmp, user=user) for _, _, user, _, _, _ in WHOSE]
        rows = "".join(f"  - {{name: w{gib}, match: {w.comm}, gpus: {gib % 2}, memory: {gib}GiB, load: {{gpu: {percent}}}}}\n"
                       for w, (_, _, _, percent, gib, _) in zip(workers, WHOSE))
        path = f"{tmp}/r.db"
        with Agent("--workload-root", tmp, "--recording-path", path,
                   scenario="cycle: 60s\nseed: 1\ngpus:\n  - {model: h100-sxm, count: 2}\nprocesses:\n" + rows) as agent:
            # From before they begin, so a report has all that they do.
            wait_for(lambda: frames(path, tier=2) >= 1, "a first frame in the file")
            for worker, folder in zip(workers, folders):
                stack.enter_context(worker)
                if folder:
                    enter(folder, worker.pid)
            os.makedirs(f"{tmp}/var/log/pods/ml_train-0_{POD_UID}/main")
            loads_are_the_simulators(agent, workers)
            for worker in workers:
                worker.end()
            pids = {w.pid for w in workers}
            wait_for(lambda: not pids & {p["pid"] for p in agent.get("/api/v1/processes").json()["processes"]}, "the processes to be gone")
            groups = {by: json.loads(agent.cli("ps", "--by", by, "--json").stdout)["groups"] for _, _, _, _, _, by in WHOSE}
            recorded = lambda: sum(values(agent.metrics(), "gpusonde_recording_frames_total"))
            before = recorded()
            wait_for(lambda: recorded() > before + 3, "snapshots with the ends of the processes to be recorded")
            equal(agent.stop()[1], 0)
        busy = {}
        for flags, _, _, _, gib, by in WHOSE:
            who, = json.loads(command("report", path, *flags, "--json").stdout)["who"]
            equal((who["processes"], who["processes_ended"], who["memory_peak_bytes"]), (1, 1, gib << 30), by)
            # Pages do not add up by user what has ended; all that a job did, they do.
            group = next((g for g in groups[by] if g["container_id"] == who["id"] or g["pod"] == who["pod"] == "train-0" or g["job"] == who["id"]), None)
            equal(group is None, by == "user")
            busy[by] = who["busy_seconds"]
            if group:
                assert abs(busy[by] - group["busy_seconds_total"]) < 1e-6, f"{by}: {who}, {group}"
        assert busy["user"] > max(busy["container"], busy["pod"], busy["job"]), busy
        # A user who is not asked for is in no sum: the root user's are the other three.
        of_root = json.loads(command("report", path, "--user", "0", "--json").stdout)["who"]
        equal(len(of_root), 3)
        assert abs(sum(who["busy_seconds"] for who in of_root) - busy["container"] - busy["pod"] - busy["job"]) < 1e-6, of_root
        contains(command("report", path, "--pod", "dev/train-0").stdout, "Nobody of that name was recorded.")


def small_disk(tmp, kib):
    os.mkdir(f"{tmp}/disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "gpusonde", f"{tmp}/disk"], capture_output=True, text=True, check=False)
    if mounted.returncode:
        raise Skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    return f"{tmp}/disk"


def test_full_disk():
    """Said and counted, the agent goes on, and the recording when there is room."""
    with tempfile.TemporaryDirectory() as tmp:
        disk = small_disk(tmp, 512)
        try:
            with Agent("--recording-path", f"{disk}/r.db") as agent:
                wait_for(lambda: values(agent.metrics(), "gpusonde_recording_up") == [0], "the disk to be full")
                wait_for(lambda: "recording: " in agent.log() and "full" in agent.log(), "the log to say so")
                equal(agent.get("/readyz").status, 200)
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                wait_for(lambda: values(agent.metrics(), "gpusonde_recording_up") == [1], "recording to go on")
                agent.stop()
            contains(replay(f"{disk}/r.db"), "Recorded at")
        finally:
            subprocess.run(["umount", "-l", disk], check=False)


def test_what_is_no_store():
    with tempfile.TemporaryDirectory() as tmp:
        equal(command("replay", f"{tmp}/none").returncode, 1)
        contains(command("replay", f"{tmp}/none").stderr, "No such file")
        for name, content in (("text", b"hello\n" * 1000), ("empty", b""), ("head", b"SQLite format 3\0" + b"\xff" * 5000)):
            with open(f"{tmp}/{name}", "wb") as f:
                f.write(content)
            result = command("replay", f"{tmp}/{name}")
            equal(result.returncode, 1, name)
            contains(result.stderr, "not a store of gpusonde")
        with contextlib.closing(sqlite3.connect(f"{tmp}/other")) as db:
            db.executescript("CREATE TABLE block(id); CREATE TABLE layout(id)")
        contains(command("replay", f"{tmp}/other").stderr, "not a store of gpusonde")
        with contextlib.closing(sqlite3.connect(f"{tmp}/later")) as db:
            db.executescript("CREATE TABLE block(id); PRAGMA application_id=0x67735344; PRAGMA user_version=99")
        contains(command("replay", f"{tmp}/later").stderr, "use a later version")
        earlier = f"{tmp}/earlier"
        with contextlib.closing(sqlite3.connect(earlier)) as db:
            db.executescript("CREATE TABLE block(id); PRAGMA application_id=0x67735344; PRAGMA user_version=1")
        contains(command("replay", earlier).stderr, "it is of format 1, and this gpusonde reads formats 2 and 3: use the version that wrote it")
        with Agent("--recording-path", earlier) as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_recording_up") == [0], "the agent to say that it does not record")
            wait_for(lambda: "this gpusonde reads formats 2 and 3" in agent.log(), "why")


def test_a_recording_that_hangs_holds_no_page():
    """The process that reads the file is stopped: pages go on, who asks for history is told to ask again."""
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.db") as agent:
        wait_for(lambda: frames(f"{tmp}/r.db") > 0, "a snapshot in the file")
        writer = store_of(agent)
        equal(read_history(agent, "/api/v1/history?metric=power_watts").status, 200)
        reader = next(child for child in children(agent.pid) if comm(child) == "gpusonde-store" and child != writer)
        os.kill(reader, signal.SIGSTOP)
        equal(agent.get("/api/v1/history?metric=power_watts&since=1h").status, 202)
        contains(agent.get("/metrics").text, "gpusonde_gpu_power_watts")
        equal(agent.get("/api/v1/history?metric=power_watts&since=1h").json(), {"pending": True})
        wait_for(lambda: agent.get("/api/v1/history?metric=power_watts&since=1h").status == 503, "the agent to say that it hangs")
        os.kill(reader, signal.SIGCONT)
        wait_for(lambda: agent.get("/api/v1/history?metric=power_watts&since=1h").status == 200, "the answer")
        os.kill(reader, signal.SIGSTOP)
        agent.get("/api/v1/history?metric=power_watts&since=2h")
        equal(agent.stop()[1], 0)
        wait_for(lambda: not alive(reader), "the process that read to end")


def test_record_in_the_foreground():
    """Without an agent; then blocks of it are damaged, and said to be."""
    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/r.db"
        with subprocess.Popen([GPUSONDE, "record", "--store", path], env=environment(GPUSONDE_NVML_LIBRARY=SIMULATED),
                              stderr=subprocess.PIPE, text=True) as recorder:
            try:
                wait_for(lambda: frames(path, tier=2) >= 1, "a first frame in the file")
                recorder.send_signal(signal.SIGINT)
                _, said = recorder.communicate(timeout=60)
            finally:
                recorder.kill()
        equal(recorder.returncode, 0, said)
        contains(said, "0 missed, 0 not written")
        contains(replay(path, "--view", "ps"), "python3")
        equal(command("record").returncode, 2)
        with contextlib.closing(sqlite3.connect(path)) as db:
            for block, data in db.execute("SELECT id, data FROM block").fetchall():
                db.execute("UPDATE block SET data=? WHERE id=?", (data[:len(data) // 2] + b"x" * (len(data) - len(data) // 2), block))
            db.commit()
        result = command("replay", path)
        equal(result.returncode, 1)
        contains(result.stderr, "a block of it is damaged")


if __name__ == "__main__":
    run()
