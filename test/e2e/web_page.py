#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page in a real Chromium: every view, what it costs, what it does when the agent is gone; and its files, as any client gets them."""
import gzip
import http.client
import os
import re
import socket
import tempfile

from lib.chromium import Browser
from lib.e2e import Agent, contains, equal, run, wait_for

HTML = {"Accept": "text/html,application/xhtml+xml"}
browser = None # one for all tests


def open_page(agent, view="", **options):
    global browser # pylint: disable=global-statement
    if not browser:
        browser = Browser()
    return browser.open(f"http://127.0.0.1:{agent.port()}/{view}", **options)


def request(agent, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", agent.port(), timeout=60)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_browsers_get_the_page_and_others_the_list():
    with Agent() as agent:
        response, body = request(agent, "/", Accept="text/html,*/*;q=0.8", Accept_Encoding="gzip, br")
        equal((response.status, response.getheader("Content-Encoding")), (200, "gzip"))
        contains(gzip.decompress(body).decode(), '<script type="module" src="page/app.js">')
        policy = response.getheader("Content-Security-Policy")
        contains(policy, "default-src 'none'")
        assert "unsafe" not in policy and "http" not in policy, policy
        contains(request(agent, "/", Accept="*/*")[1].decode(), "/metrics")
        contains(agent.get("/", unix=True, **HTML).text, "/metrics")


def test_files_are_kept_until_they_change():
    with Agent() as agent:
        response, body = request(agent, "/page/app.js")
        equal((response.getheader("Content-Encoding"), response.getheader("Cache-Control")), (None, "no-cache"))
        packed, again = request(agent, "/page/app.js", Accept_Encoding="gzip")
        equal((packed.getheader("Content-Encoding"), gzip.decompress(again)), ("gzip", body))
        tag = response.getheader("ETag")
        for kept in (tag, "W/" + tag, f'"other", {tag}'):
            response, body = request(agent, "/page/app.js", If_None_Match=kept)
            equal((response.status, body, response.getheader("ETag")), (304, b"", tag), kept)
        equal(request(agent, "/page/app.js", If_None_Match='"other"')[0].status, 200)
        equal(request(agent, "/page/nothing.js")[0].status, 404)


def test_every_file_that_is_named_is_there():
    with Agent() as agent:
        left, seen = ["/page/index.html"], set()
        while left:
            path = left.pop()
            if path in seen:
                continue
            seen.add(path)
            response, body = request(agent, path)
            equal(response.status, 200, path)
            folder = os.path.dirname(path)
            left += [os.path.normpath(f"{folder}/{name}") for name in re.findall(r'from "([^"]+)"', body.decode())]
            left += ["/" + name for name in re.findall(r'(?:src|href)="(page/[^"]+)"', body.decode())]
        assert len(seen) > 20, seen


def test_a_card_for_each_gpu_that_goes_on():
    with Agent() as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 8", "eight cards")
        equal(page.texts("#simulated"), ["SIMULATED: these GPUs do not exist"])
        before = page.text("#age")
        page.wait(f"document.querySelector('#age').innerText !== {before!r}", "the page to go on")
        contains(page.text("#facts"), "8 \u00d7 H100")
        contains(page.text(".card"), "GiB")
        equal(page.errors(), [])


def test_words_for_what_is_wrong():
    with Agent(scenario="sick") as agent, open_page(agent) as page:
        def states():
            shown = dict(zip(page.texts(".card .index"), page.texts(".card .state"), strict=True))
            # The table shows the same, unless the next second has begun meanwhile.
            rows = [line.split("  ") for line in agent.cli("gpus").stdout.split("\n") if re.match(r"\s+\d", line)]
            table = {f"GPU {r[1].strip() or r[0].strip()}": r for r in rows}
            return shown and len(shown) == len(table) and all(word in " ".join(table[gpu]) for gpu, word in shown.items())
        wait_for(states, "the page and the table to say the same words")
        assert set(page.texts(".card .state")) != {"ok"}
        equal(page.errors(), [])


def test_processes_are_searched_and_sorted_by_the_address():
    with Agent() as agent, open_page(agent, "#processes?q=vllm&sort=gpu") as page:
        page.wait("document.querySelectorAll('tbody tr').length === 8", "what was searched for")
        equal([row.split("\t")[0] for row in page.texts("tbody tr")], [str(n) for n in range(8)])
        page.ask("[...document.querySelectorAll('th button')].find(b => b.innerText === 'GPU').click()")
        page.wait("location.hash.includes('sort=-gpu')", "the address to say how it is sorted")
        equal(page.texts("tbody tr td:first-child")[0], "7")
        page.ask("history.back()")
        page.wait("document.querySelector('tbody td').innerText === '0'", "the way back")
        equal(page.errors(), [])


def test_hostile_names_are_texts():
    name = "<b id=hurt>&lt;"
    scenario = f"cycle: 60s\nseed: 1\ngpus:\n  - {{model: h100-sxm}}\nprocesses:\n  - {{name: \"{name}\", gpus: 0, memory: 1GiB, load: {{gpu: 10}}}}\n"
    with Agent(scenario=scenario) as agent, open_page(agent, "#processes") as page:
        page.wait("document.querySelectorAll('tbody tr').length === 1", "the process")
        contains(page.text("tbody tr"), name)
        equal(page.ask("document.querySelectorAll('#hurt').length"), 0)
        plain = agent.get("/plain").text
        contains(plain, "&#60;b id=hurt&#62;&#38;lt;")
        assert "<b id" not in plain
        equal(page.errors(), [])


def test_without_javascript_there_are_tables():
    with Agent(scenario="sick") as agent, open_page(agent, script=False) as page:
        wait_for(lambda: page.url().endswith("/plain"), "the page of tables")
        text = agent.get("/plain").text
        contains(text, "<th scope=\"col\">NAME</th>")
        contains(text, "SIMULATED")
        assert "<script" not in text
        equal(page.errors(), [])


def test_every_view_at_every_width():
    with Agent("--trace-enabled", "no", scenario="sick") as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length > 0", "the first view")
        views = page.ask("[...document.querySelectorAll('#tabs a')].map(a => a.hash)")
        assert len(views) >= 12, views
        for width in (360, 1280, 3840):
            page.size(width, 900)
            for view in views:
                page.ask(f"location.hash = '{view}'")
                page.wait(f"document.querySelector('#tabs a[aria-selected=true]').hash === '{view}' && document.querySelector('main').innerText.length > 0", view)
                equal(page.ask("document.documentElement.scrollWidth <= innerWidth"), True, f"{view} fits into {width} pixels")
        equal(page.errors(), [])


ACCESSIBLE = """(() => {
    const wrong = [];
    const named = e => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.innerText.trim() || e.title;
    for (const e of document.querySelectorAll('button, a, input, [role=img], [role=region], canvas, meter'))
        if (!e.closest('[hidden]') && !named(e)) wrong.push('no name: ' + e.outerHTML.slice(0, 80));
    for (const e of document.querySelectorAll('th')) if (!e.scope) wrong.push('th without scope: ' + e.outerHTML.slice(0, 80));
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    if (new Set(ids).size !== ids.length) wrong.push('an id twice');
    if (!document.documentElement.lang) wrong.push('no language');
    const rgb = s => (s.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
    for (const e of document.querySelectorAll('body *')) {
        if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(1)}: ${e.outerHTML.slice(0, 80)}`);
    }
    return [...new Set(wrong)].slice(0, 10);
})()"""


def test_each_view_can_be_read_by_everybody():
    """Names of what can be used, heads of tables, contrast of texts: as axe has these rules, in both themes."""
    with Agent(scenario="sick") as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length > 0", "the first view")
        for theme in ("dark", "light"):
            page.ask(f"document.documentElement.dataset.theme = '{theme}'")
            for view in page.ask("[...document.querySelectorAll('#tabs a')].map(a => a.hash)"):
                page.ask(f"location.hash = '{view}'")
                page.wait(f"document.querySelector('#tabs a[aria-selected=true]').hash === '{view}'", view)
                equal(page.ask(ACCESSIBLE), [], f"{theme} {view}")
        page.ask("document.querySelector('#tabs a[aria-selected=true]').focus()")
        page.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
        page.wait("location.hash === '#gpus'", "the arrow to go round to the first tab")
        page.send("Input.dispatchKeyEvent", type="keyDown", key="3")
        page.wait("location.hash === '#processes'", "the digit to choose a tab")


def test_what_is_shown_is_the_document():
    """By events alone, change by change; and the very numbers of the JSON."""
    with Agent() as agent, open_page(agent, "#processes") as page:
        page.wait("globalThis.gpusonde?.data.received > 10", "events")
        for name in ("gpus", "processes", "node"):
            wait_for(lambda name=name: page.ask(f"gpusonde.data.get('{name}')") == agent.get(f"/api/v1/{name}").json(), f"the page to have {name} as it is")
        equal(page.ask("gpusonde.data.polls"), 0)
        equal(page.errors(), [])


def test_charts_begin_before_the_page_was_opened_where_it_is_recorded():
    """Also where it was opened before anything was recorded: then the agent is asked again."""
    asked = "performance.getEntriesByType('resource').filter(e => e.name.includes('api/v1/history'))"
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.gsr") as agent, open_page(agent) as early:
        def recorded():
            reply = agent.get("/api/v1/history?metric=power_watts&since=15m&step=1s")
            return reply.status == 200 and sum(v is not None for v in reply.json()["series"][0]["values"]) > 5
        wait_for(recorded, "a recording", seconds=120)
        early.wait(f"{asked}.some(e => e.responseStatus === 200)", "the page to get what was recorded")
        with open_page(agent, "#charts") as page:
            page.wait("globalThis.gpusonde?.recorded && gpusonde.history.n > 5 && gpusonde.history.time(gpusonde.history.first) < performance.timeOrigin", "what was before")
            uuid = agent.get("/api/v1/gpus").json()["gpus"][0]["uuid"]
            equal(page.ask(f"[...gpusonde.history.tracks.get('{uuid}').values[2]].some(v => v > 0)"), True)
            equal(page.errors(), [])


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def test_it_goes_on_after_the_agent_was_restarted():
    listen = f"127.0.0.1:{free_port()}"
    with Agent(listen=listen) as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 8", "eight cards")
        agent.process.kill()
        agent.process.wait()
        page.wait("document.querySelector('#age').className === 'bad'", "the page to say that nothing comes")
        contains(page.text("#age"), "No answer for")
        with Agent(listen=listen, scenario="sick"):
            page.wait("document.querySelectorAll('.card').length !== 8 && document.querySelector('#age').className !== 'bad'", "the new agent's GPUs")


def test_documents_are_asked_for_where_events_do_not_come():
    with Agent() as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 8", "eight cards")
        page.send("Network.setBlockedURLs", urls=["*/api/v1/stream*"])
        page.ask("gpusonde.data.restart()")
        page.wait("gpusonde.data.polls > 1", "the page to ask")
        before = page.text("#age")
        page.wait(f"document.querySelector('#age').innerText !== {before!r}", "the page to go on")


def test_a_document_that_is_not_there_is_asked_for_less_often():
    with Agent("--trace-enabled", "no") as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 8", "eight cards")
        page.send("Network.setBlockedURLs", urls=["*/api/v1/stream*"])
        page.ask("location.hash = '#findings'")
        page.wait("gpusonde.data.polls > 5", "the page to ask")
        asked = page.ask("performance.getEntriesByType('resource').filter(e => e.name.endsWith('/findings')).length")
        assert 1 <= asked <= 2, asked
        contains(page.text("main"), "trace.analysis")


def main():
    try:
        run()
    finally:
        if browser:
            browser.__exit__()


main()
