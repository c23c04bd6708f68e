# SPDX-License-Identifier: Apache-2.0
"""gpusonde record: the agent's timelines have the calls that the agent counted, in a folder where nobody else can put anything."""
import collections
import json
import os
import re
import stat
import subprocess
import tempfile

from lib import perfetto
from lib.chromium import Browser
from lib.e2e import GPUSONDE, Agent, Skip, contains, equal, run, values, wait_for
from lib.tmux import Terminal
from lib.traced import SCENARIO, Workload, all_counted, begun, probed_when_loaded


def tracing(*flags, **kwargs):
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    return Agent("--trace-enabled", "yes", *flags, scenario=SCENARIO, **kwargs)


def record(agent, *words, status=0):
    done = agent.cli("record", *words)
    equal(done.returncode, status, done.stdout + done.stderr)
    return done


def state(agent):
    return json.loads(record(agent, "status", "--json").stdout)


def perfetto_of(path):
    with open(path, "rb") as file:
        return perfetto.read(file.read())


def calls_of(timeline, pid):
    """api -> calls of a process."""
    return collections.Counter(e.name for e in timeline.slices + timeline.instants if e.track.kind == "thread" and e.track.pid == pid)


def test_what_is_recorded():
    with tracing() as agent:
        begun(agent)
        with Workload(agent, "api driver; init; alloc 4096; pause; repeat 50; launch; end; sync; copy h2d 4096; free all; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            before = {call: n for call, (n, _, _) in workload.truth().items()}
            path = record(agent, "start").stdout.removeprefix("recording to ").strip()
            again = record(agent, "start", status=1)
            contains(again.stderr, "a recording runs already")
            assert state(agent)["recording"]
            wait_for(lambda: values(agent.metrics(), "gpusonde_timeline_recording") == [1], "the metric to say so")
            workload.go_on()
            workload.ready()
            all_of_it = {call: n for call, (n, _, _) in workload.truth().items()}
            equal(record(agent, "stop").stdout.strip(), path)
            status = state(agent)
            wait_for(lambda: values(agent.metrics(), "gpusonde_timeline_recording") == [0], "the metric to say so")
            wait_for(lambda: values(agent.metrics(), "gpusonde_timeline_written_bytes_total") == [status["timeline"]["bytes"]], "all bytes to be counted")
            page = agent.metrics()
            workload.end()
        contains(record(agent, "stop", status=1).stderr, "nothing is recorded")
        timeline = perfetto_of(path)
        folder = os.stat(os.path.dirname(path))
        file = os.stat(path)
    equal((status["recording"], status["timeline"]["written"], status["timeline"]["error"]), (False, True, ""))
    equal(status["missing"], {"lost": 0, "dropped": 0, "cut": 0, "unwritten": 0})
    equal(os.path.dirname(path), f"{agent.tmp}/state/timelines")
    equal((stat.S_IMODE(folder.st_mode) & 0o027, stat.S_IMODE(file.st_mode) & 0o137), (0, 0), "rights of others")
    equal(values(page, "gpusonde_timeline_written_events_total"), [len(timeline.slices) + len(timeline.instants) + len(timeline.values)], "events")
    equal([values(page, f"gpusonde_timeline_{name}_total") for name in ("files", "failures")], [[1], [0]])
    equal({reason: values(page, "gpusonde_timeline_lost_events_total", reason=reason) for reason in ("lost", "unfit", "unwritten")},
          {"lost": [0], "unfit": [0], "unwritten": [0]})
    found = calls_of(timeline, workload.process.pid)
    wanted = {call: n - before.get(call, 0) for call, n in all_of_it.items() if n > before.get(call, 0)}
    equal({call: found[call] for call in wanted}, wanted)
    equal([call for call in before if call not in wanted and found[call]], [], "calls from before it began")
    marks = [i.name for i in timeline.instants if i.track.name == "gpusonde"]
    assert any("the recording begins" in mark for mark in marks), marks


def test_limits():
    """It ends by itself; another process's calls are not in it."""
    with tracing() as agent:
        begun(agent)
        path = record(agent, "start", "--duration", "1s", "--pid", str(os.getpid())).stdout.split()[-1]
        with Workload(agent, "api driver; init; repeat 20; launch; end; sync; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            wait_for(lambda: (s := state(agent)) and not s["recording"] and s["timeline"]["written"], "the end of the recording")
            workload.end()
        timeline = perfetto_of(path)
    equal([t for t in timeline.tracks.values() if t.kind == "thread"], [])
    for words, why in ((["start", "--duration", "never"], "duration must be"), (["start", "--pid", "0"], "pid must be"), (["last"], "timeline.last")):
        with tracing() as agent:
            begun(agent)
            contains(record(agent, *words, status=1).stderr, why)


def test_the_last_is_written_when_asked():
    with tracing("--timeline-last", "60s") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 20; launch; end; sync; pause") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            workload.ready()
            wait_for(lambda: state(agent)["kept_bytes"] > 0, "something to be kept")
            path = record(agent, "last").stdout.strip()
            workload.end()
        equal(state(agent)["recording"], False)
        timeline = perfetto_of(path)
    assert any(i.name == "written because of request" for i in timeline.instants), timeline.instants
    equal(calls_of(timeline, workload.process.pid)["cuLaunchKernel"], 20)


def test_what_the_budget_takes_is_marked():
    """On the process's track, as on its pages: events first, then the returns of launches."""
    with tracing("--trace-max-overhead", "0.01%") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; repeat 2000000000; launch; end") as workload:
            probed_when_loaded(agent, workload)
            record(agent, "start")
            workload.go_on()

            def incomplete():
                return [why for p in agent.get("/api/v1/trace").json()["trace"]["processes"] if p["pid"] == workload.process.pid for why in p["incomplete"]]
            said = wait_for(lambda: (why := incomplete()) and {"events_off", "no_launch_returns"} <= set(why) and why, "the budget to take something")
            path = record(agent, "stop").stdout.strip()
        timeline = perfetto_of(path)
    marks = {i.name for i in timeline.instants if i.track.kind == "process" and i.track.pid == workload.process.pid}
    assert {"events_off", "no_launch_returns"} <= marks, f"{marks}, and the pages say {said}"


def explained(agent, found):
    """What was found has the same figures in sentences, of whose it is and of all."""
    for finding in (f for f in found if f["active"] and f["pid"] and not f["caused_by"]):
        (subject,) = (s for s in json.loads(agent.cli("explain", f"pid:{finding['pid']}", "--json").stdout)["subjects"] if s["kind"] == "pid")
        said = [s for s in subject["sentences"] if s["topic"] == "finding" and s["text"].startswith(finding["finding"] + ": ")]
        assert any(s["remedy"] == finding["remedy"] and set(s["figures"]) == set(finding["evidence"]) | {"confidence"} for s in said), (finding, subject)
        contains(agent.cli("explain", "--findings").stdout, finding["title"])
    names = [f["finding"] for f in json.loads(agent.cli("explain", "--findings", "--json").stdout)["findings"]]
    assert found[0]["finding"] in names, names


CARDS = """[...document.querySelectorAll(".finding")].map(card => [card.querySelector("h2 .name").innerText, card.querySelector("h2 .state").innerText,
    card.querySelector(".sure").innerText.match(/Confidence (\\d+) %/)?.[1]])"""


def seen_everywhere(agent):
    """What is active is the same on the screen, the web page, in JSON and on /metrics."""
    with Browser() as browser, browser.open(f"http://127.0.0.1:{agent.port()}/#findings") as page, \
            Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=250, rows=100, env=dict(agent.env, HOME="/nonexistent")) as screen:
        screen.shows("h help")
        screen.keys("8")
        seen = {}

        def agree():
            active, metrics, cards, text = findings_of(agent), agent.metrics(), page.ask(CARDS), screen.screen()
            by_rule = collections.Counter(f["finding"] for f in active)
            seen.update(active=active, cards=cards, text=text)
            return findings_of(agent) == active and active and \
                {rule: values(metrics, "gpusonde_finding_active", finding=rule) for rule in by_rule} == {rule: [n] for rule, n in by_rule.items()} and \
                sorted(title for title, state, _ in cards if state == "now") == sorted(f["title"] for f in active) and \
                sorted(int(sure) for _, state, sure in cards if state == "now") == sorted(round(f["confidence"] * 100) for f in active) and \
                all(f["title"] in text for f in active)
        wait_for(agree, "four views to say the same", otherwise=lambda: seen)
        finding_on_its_screen(agent, screen)


def finding_on_its_screen(agent, screen):
    """From its row, with its evidence; from there to the process, and back."""
    screen.keys("Home")
    screen.keys("Enter")
    text = screen.shows("Confidence", "What to do", "Evidence", "In a timeline")
    finding = next(f for f in agent.get("/api/v1/findings").json()["findings"] if re.search(rf"^Rule +{f['finding']}$", text, re.M))
    for name in finding["evidence"]:
        contains(text, f"  {name} ")
    if re.search(r"^Process .* Enter", text, re.M):
        screen.keys("Enter")
        screen.shows(f"Process {finding['pid']}  ", "Findings (Enter", finding["title"])
        screen.keys("Enter")
        screen.shows("Evidence", "Confidence")
    screen.keys("1")
    screen.shows("UTIL", f"{finding['title']}: ")
    screen.keys("a")
    screen.shows("Evidence", "Confidence")


def findings_of(agent):
    return [f for f in agent.get("/api/v1/findings").json()["findings"] if f["active"]]


def test_a_finding_writes_the_last():
    """The analysis finds something after ten seconds, and what is kept of the timeline is written, with the reason. Another program of this machine may be found first."""
    with tracing("--timeline-last", "60s", "--trace-analysis", "yes") as agent:
        begun(agent)
        with Workload(agent, "api driver; init; alloc 1048576; repeat 1500; copy h2d 1048576; end; pause", GPUSONDE_SIM_CUDA_COPY_GBPS="0.1") as workload:
            probed_when_loaded(agent, workload)
            workload.go_on()
            path = wait_for(lambda: (last := state(agent)["last"])["written"] and last["file"], "the last to be written")
        timeline = perfetto_of(path)
        (reason,) = (i.name.removeprefix("written because of ") for i in timeline.instants if i.name.startswith("written because of "))
        found = wait_for(lambda: [f for f in agent.get("/api/v1/findings").json()["findings"] if f["finding"] == reason], f"{reason} on the page of findings")
        explained(agent, found)
        seen_everywhere(agent)
    pids = [f["pid"] for f in found if f["pid"]]
    assert any(calls_of(timeline, pid) for pid in pids) or not pids, f"{pids} have no calls in the file"


def test_an_unsafe_folder_is_refused():
    for prepare in (lambda path: os.chmod(path, 0o777), lambda path: os.chown(path, 12345, 12345)):
        with tracing("--trace-buffer", "8MiB") as agent:
            begun(agent)
            folder = f"{agent.tmp}/state/timelines"
            os.makedirs(folder, exist_ok=True)
            prepare(folder)
            contains(record(agent, "start", status=1).stderr, "others can write to it")
            equal(os.listdir(folder), [])
            wait_for(lambda: not state(agent)["recording"], "the recording to be given up") # noqa: B023


def test_a_link_in_place_of_the_folder_is_refused():
    with tracing() as agent:
        begun(agent)
        os.makedirs(f"{agent.tmp}/elsewhere")
        os.symlink(f"{agent.tmp}/elsewhere", f"{agent.tmp}/state/timelines")
        contains(record(agent, "start", status=1).stderr, "timeline.directory")
        equal(os.listdir(f"{agent.tmp}/elsewhere"), [])


def test_a_full_disk():
    """What does not fit is counted, what fits opens, and the agent counts every call."""
    with tempfile.TemporaryDirectory() as tmp:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", tmp], capture_output=True, check=False).returncode != 0:
            raise Skip("no file system may be mounted here")
        try:
            with tracing("--timeline-directory", tmp) as agent:
                begun(agent)
                path = record(agent, "start").stdout.split()[-1]
                with Workload(agent, "api driver; init; repeat 40000; launch; end; sync; pause") as workload:
                    probed_when_loaded(agent, workload)
                    workload.go_on()
                    workload.ready()
                    all_counted(agent, workload)
                    found = wait_for(lambda: (s := state(agent)) and s["missing"]["unwritten"] and s, "events that have no room")
                    wait_for(lambda: values(agent.metrics(), "gpusonde_timeline_lost_events_total", reason="unwritten")[0] > 0, "the metric to say so")
                    equal(values(agent.metrics(), "gpusonde_timeline_failures_total"), [1])
                    workload.end()
                record(agent, "stop", status=1)
                timeline = perfetto_of(path)
        finally:
            subprocess.run(["umount", "-l", tmp], check=False)
    contains(found["timeline"]["error"], "No space left on device")
    assert any(e.name == "cuLaunchKernel" for e in timeline.slices)


def test_from_the_screen():
    """t of a process's own screen begins one and ends it, and says each time which file it is."""
    with tracing() as agent, Terminal(GPUSONDE, "top", "--socket", agent.socket, columns=160, rows=40, env=dict(agent.env, HOME="/nonexistent")) as screen:
        begun(agent)
        screen.shows(" PID")
        screen.keys("Down")
        screen.keys("Enter")
        screen.shows("Process ")
        folder = f"{agent.tmp}/state/timelines"
        screen.keys("t")
        screen.shows(f"a timeline is recorded, t ends it: {folder}/")
        assert state(agent)["recording"]
        screen.keys("t")
        screen.shows(f"the timeline is written: {folder}/")
        assert not state(agent)["recording"]


def test_nothing_is_traced():
    with Agent() as agent:
        contains(record(agent, "start", status=1).stderr, "nothing is traced")


if __name__ == "__main__":
    run()
