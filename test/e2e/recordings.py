#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings: what is replayed is what pages showed, whatever becomes of the agent, of gpusonde-store or of the disk."""
import contextlib
import datetime
import json
import os
import signal
import sqlite3
import subprocess
import tempfile

from lib.e2e import GPUSONDE, SIMULATED, Agent, Skip, alive, children, comm, command, contains, environment, equal, run, samples, values, wait_for


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
    if report["first"] != recorded[0] or report["last"] != recorded[-1]: # snapshots within the same millisecond
        return
    for gpu, before, after in zip(report["gpus"], first["gpus"], last["gpus"]):
        for name, member in (("busy_seconds", lambda g: g["busy_seconds_total"]["gpu"]), ("energy_joules", lambda g: g["energy_joules_total"])):
            wanted = member(after) - member(before)
            assert abs(gpu[name] - wanted) <= 1e-6 * (1 + wanted), f"{name}: got {gpu[name]}, wanted {wanted}"
    contains(command("report", path, "--format", "html", "--price", "0.30EUR").stdout, "<svg")
    contains(command("report", path, "--job", "none").stdout, "Nobody of that name was recorded.")
    contains(command("report", path, "--since", "2001-01-01", "--until", "2001-01-02").stderr, "nothing of that time is recorded")
    contains(command("diff", path, path).stdout, "+0.0 %")


def read_history(agent, path):
    """The answer once it has been read: 202 until then."""
    return wait_for(lambda: (answer := agent.get(path)).status != 202 and answer, f"an answer to {path}")


def history_is_of_the_same_numbers(agent, moments):
    """A step of a second has one snapshot: its number is that of the page of the time."""
    answer = read_history(agent, "/api/v1/history?metric=power_watts,gpusonde_gpu_busy_seconds_total.gpu&since=10m&step=1s")
    equal(answer.status, 200)
    document = answer.json()
    at = lambda i: int(document["first_unix_seconds"]) + i * document["step_seconds"]
    shown = {}
    for time, (snapshot, _, _) in moments.items():
        for gpu in snapshot["gpus"]:
            shown.setdefault((gpu["uuid"], int(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp())), []).append(gpu)
    compared = 0
    for series in document["series"]:
        assert series["type"] == ("gauge" if series["metric"] == "power_watts" else "counter"), series["metric"]
        equal("min" in series, series["type"] == "gauge")
        for i, number in enumerate(series["values"]):
            gpus = shown.get((series["uuid"], at(i)))
            if number is None or not gpus:
                continue
            member = (lambda g: g["power_watts"]) if series["type"] == "gauge" else (lambda g: g["busy_seconds_total"]["gpu"])
            assert number in [member(gpu) for gpu in gpus], f"{series['metric']} at {at(i)}: got {number}, shown {[member(gpu) for gpu in gpus]}"
            compared += 1
    assert compared >= 8, f"only {compared} numbers were compared"
    recorded = read_history(agent, f"/api/v1/moment?at={document['recorded_last']}").json()
    equal(recorded["time"], document["recorded_last"])
    for path, status in (("history?metric=nothing", 400), ("history?metric=power_watts&since=soon", 400), ("history?metric=power_watts&gpu=x", 400),
                         ("history?metric=power_watts&since=24h&step=1s", 413), ("moment?at=2001-01-01", 404)):
        equal(read_history(agent, f"/api/v1/{path}").status, status, path)
    equal(read_history(agent, "/api/v1/history?metric=power_watts&gpu=777").json()["series"], [])


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
        film = replay(path, "--speed", "100000", "--view", "gpus")
        assert film.count("Recorded at") >= 10, film[:300]


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
        contains(replay(path), "Recorded at")
        with Agent("--recording-path", path):
            wait_for(lambda: frames(path, tier=2) > before, "the recording to go on in the same file")


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
        contains(command("replay", earlier).stderr, "it is of format 1, and this gpusonde reads format 2: use the version that wrote it")
        with Agent("--recording-path", earlier) as agent:
            wait_for(lambda: values(agent.metrics(), "gpusonde_recording_up") == [0], "the agent to say that it does not record")
            wait_for(lambda: "this gpusonde reads format 2" in agent.log(), "why")


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
