#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page in a real Chromium: every view, what it costs, what it does when the agent is gone; and its files, as any client gets them."""
import contextlib
import gzip
import hashlib
import http.client
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile

from lib import fetch
from lib.big_node import BigNode
from lib.chromium import Browser
from lib.e2e import BUILD, GPUSONDE, Agent, Skip, Worker, contains, equal, run, wait_for

HTML = {"Accept": "text/html,application/xhtml+xml"}
NOBODY = 65534
browser = None # one for all tests


def browser_page(url, **options):
    global browser # pylint: disable=global-statement
    if not browser:
        browser = Browser()
    return browser.open(url, **options)


def open_page(agent, view="", **options):
    return browser_page(f"http://127.0.0.1:{agent.port()}/{view}", **options)


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


FACTS = "Object.fromEntries([...document.querySelectorAll('#facts div')].map(d => [...d.children].map(c => c.innerText)))"


def test_totals_of_all_gpus_are_at_the_top():
    """What a board begins with; and of how many GPUs, where a figure is not known of all: MIG GPUs have no utilization."""
    with Agent(scenario="node-mig") as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 3", "three cards")

        def the_same():
            facts, gpus = page.ask(f"[{FACTS}, gpusonde.data.get('gpus').gpus]")
            watts, used, size = (sum(g[name] for g in gpus) for name in ("power_watts", "memory_used_bytes", "memory_total_bytes"))
            hottest = max(gpus, key=lambda g: g["temperature_celsius"])
            busy = [g["utilization_ratio"]["gpu"] for g in gpus if g["utilization_ratio"]["gpu"] is not None]
            return len(busy) == 1 and facts["Utilization"] == f"{100 * busy[0]:.0f} % (1 of 3 GPUs)" and facts["Power"] == f"{watts:.0f} W" and \
                facts["Memory"] == f"{used / 2**30:.1f} GiB of {size / 2**30:.1f} GiB" and facts["Hottest"] == f"{hottest['temperature_celsius']:.0f} \u00b0C, GPU {hottest['gpu']}"
        wait_for(the_same, "sums of the very numbers of the cards")
        page.ask("location.hash = '#charts?series=power'")
        page.wait("/^0 to 700 W, \\d+:\\d+:\\d+ to /.test(document.querySelector('.scale')?.innerText)", "what the charts' scale is, and their time")
        equal(page.errors(), [])


def test_words_for_what_is_wrong():
    with Agent(scenario="sick") as agent, open_page(agent) as page:
        def states():
            shown = dict(page.ask("[...document.querySelectorAll('.card')].map(e => ['.index', '.state'].map(of => e.querySelector(of).innerText))"))
            # The table shows the same, unless the next second has begun meanwhile.
            rows = [line.split("  ") for line in agent.cli("gpus").stdout.split("\n") if re.match(r"\s+\d", line)]
            table = {f"GPU {r[1].strip() or r[0].strip()}": r for r in rows}
            return shown and len(shown) == len(table) and all(word in " ".join(table[gpu]) for gpu, word in shown.items())
        wait_for(states, "the page and the table to say the same words")
        assert set(page.texts(".card .state")) != {"ok"}
        # What is wrong is coloured, and not all the rest of its card.
        colours = "[...document.querySelectorAll('.card dd span:not([class]), .card dd span[class=\"\"]')].map(e => getComputedStyle(e).color)"
        equal(page.ask(f"new Set({colours}).size"), 1)
        equal(page.errors(), [])


def test_mig_instances_are_on_their_gpus_card():
    """As the table has them: a row each, and their processes are the GPU's, too."""
    with Agent(scenario="node-mig") as agent, open_page(agent) as page:
        instances = "[...document.querySelectorAll('.card')].map(c => [...c.querySelectorAll('.instances li')].map(i => i.innerText.replace(/\\s+/g, ' ')))"
        page.wait("document.querySelectorAll('.instances li').length === 6", "six instances")

        def the_same():
            rows = [re.split(r"\s{2,}", line.strip()) for line in agent.cli("gpus").stdout.split("\n") if re.match(r"\s+(\d|MIG)", line)]
            counts = "[...document.querySelectorAll('.card > dl, .instances dl')].map(l => [...l.children].find(d => d.innerText.startsWith('Processes')).querySelector('span').innerText)"
            return [row[-2] for row in rows] == page.ask(counts)
        wait_for(the_same, "the page to count processes as the table does")
        contains(page.ask(instances)[0][0], "MIG 3g.40gb gi 1 ci 0 ok")
        equal(page.ask("document.querySelectorAll('.card')[2].querySelector('.instances').hidden"), True)
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
        assert "<script" not in text and "refresh" not in text
        contains(text, 'href="plain?reload=yes"')
        contains(agent.get("/plain?reload=yes").text, '<meta http-equiv="refresh" content="5">')
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
                page.wait(f"document.querySelector('#tabs a[aria-selected=true]').hash === '{view}' && document.querySelector('#main').innerText.length > 0", view)
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


AXE = "axe.run().then(r => r.violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html).join(' ')}`))"


def axe_rules():
    """The text of axe.min.js, which leaves itself in the page."""
    try:
        path, = fetch.get("axe", f"{BUILD}/real").values()
    except fetch.Unavailable as why:
        raise Skip(f"{why}; the rules above are checked all the same") from None
    with open(path, encoding="utf-8") as f:
        return f.read() + "; null"


def test_axe_has_nothing_to_say():
    """All rules of axe-core that are on by default: of each view in both themes, of what opens in them, of the narrowest page, and of the page without JavaScript."""
    rules, said = axe_rules(), []
    with Agent(scenario="sick") as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length > 0", "the first view")
        page.ask(rules)
        views = page.ask("[...document.querySelectorAll('#tabs a')].map(a => a.hash)")
        for width, theme in ((1280, "dark"), (1280, "light"), (360, "light")):
            page.size(width, 900)
            page.ask(f"document.documentElement.dataset.theme = '{theme}'")
            for view in (*views, "#processes?by=gpu&open=GPU+1", "#gpus?at=2026-01-31T12:00:00Z"):
                page.ask(f"location.hash = '{view}'")
                page.wait(f"document.querySelector('#tabs a[aria-selected=true]').hash.startsWith('{view.split('?')[0]}') && gpusonde.moment.at === gpusonde.place.get('at').replace('Z', '.000Z')", view)
                said += [f"{width} {theme} {view} {words}" for words in page.ask(AXE)]
        page.go(f"http://127.0.0.1:{agent.port()}/plain")
        page.wait("document.querySelector('td') !== null", "the tables")
        page.ask(rules)
        said += [f"/plain {words}" for words in page.ask(AXE)]
    equal(said, [])


def test_what_is_shown_is_the_document():
    """By events alone, change by change; and the very numbers of the JSON."""
    with Agent() as agent, open_page(agent, "#processes") as page:
        page.wait("globalThis.gpusonde?.data.received > 10", "events")
        for name in ("gpus", "processes", "node"):
            wait_for(lambda name=name: page.ask(f"gpusonde.data.get('{name}')") == agent.get(f"/api/v1/{name}").json(), f"the page to have {name} as it is")
        equal(page.ask("gpusonde.data.polls"), 0)
        equal(page.errors(), [])


def test_the_host_beside_its_gpus():
    """Figures of its own page; shares and rates from the second document on."""
    with Agent() as agent, open_page(agent, "#host") as page:
        figures = "Object.fromEntries([...document.querySelector('#main table')?.rows ?? []].slice(1).map(r => [...r.cells].map(c => c.innerText)))"
        page.wait(f"/^\\d+ %$/.test(({figures})['CPU busy'])", "the share of the CPU")
        shown = page.ask(figures)
        total = agent.get("/api/v1/node").json()["node"]["host"]["memory_bytes"]["total"]
        contains(shown["Memory in use"], f" of {total / 2**30:.1f} GiB")
        assert 0 <= int(shown["CPU busy"].split(" ")[0]) <= 100, shown
        page.ask("location.hash = '#inference'")
        page.wait("document.querySelector('#main .note')?.innerText.includes('inference.servers')", "why there are no servers")
        equal(page.errors(), [])
    with Agent("--host-figures", "no") as agent, open_page(agent, "#host") as page:
        page.wait("document.querySelector('#main .note')?.innerText.includes('host.figures')", "why there are no figures")


CHARTS = "Object.fromEntries([...document.querySelectorAll('.chart canvas')].map(c => c.getAttribute('aria-label').replace(/;.*$/, '').split(/: (?=[^:]*$)/)))"


def test_the_host_has_charts():
    """CPU, memory, each disk and each interface over time, with one cursor; beside each the number that the tables have."""
    with Agent() as agent, open_page(agent, "#host?minutes=1") as page:
        page.size(1280, 6000) # charts out of sight are not drawn
        host = agent.get("/api/v1/node").json()["node"]["host"]
        page.wait(f"document.querySelectorAll('.chart').length === {2 + 2 * len(host['disks'] or []) + 2 * len(host['interfaces'] or [])}", "a chart for each")
        kinds = ["CPU busy", "Memory in use", *["Disk read", "Disk written"] * bool(host["disks"]), "Network received", "Network sent"]
        equal(page.ask("[...document.querySelectorAll('#main section:has(.charts)')].map(s => s.getAttribute('aria-label'))"), kinds)

        def the_same():
            charts, name, rows = page.ask(f"[{CHARTS}, gpusonde.data.get('node').node.hostname, [...document.querySelectorAll('#main tr')].map(r => [...r.cells].map(c => c.innerText))]")
            tables = {row[0]: row[1:] for row in rows}
            wanted = {f"CPU busy of {name}": tables["CPU busy"][0], f"Memory in use of {name}": tables["Memory in use"][0].split(" of ")[0]}
            for i in host["interfaces"]:
                cells = tables.get(i["name"], [])
                wanted |= dict(zip((f"Network received of {i['name']}", f"Network sent of {i['name']}"), cells)) if len(cells) > 2 else {"none yet": "-"}
            return "-" not in wanted.values() and all(charts.get(of) == number for of, number in wanted.items())
        wait_for(the_same, "the charts and the tables to say the same")
        page.wait("gpusonde.machine.n > 4", "a few seconds")
        page.ask("""(c => c.dispatchEvent(new PointerEvent('pointermove', { clientX: c.getBoundingClientRect().right - 2, bubbles: true })))(document.querySelector('.chart canvas'))""")
        page.wait("/^\\d+:\\d+:\\d+/.test(document.querySelector('.tools b').innerText)", "the time of the cursor")
        equal(page.errors(), [])
    with Agent("--host-figures", "no") as agent, open_page(agent, "#host") as page:
        page.wait("document.querySelector('#main .note')?.innerText.includes('host.figures')", "why there are no figures")
        equal(page.ask("document.querySelectorAll('.chart').length + [...document.querySelectorAll('#main button')].filter(e => e.offsetParent && e.innerText === '1 min').length"), 0)


def the_machine_is_as_recorded(agent, page):
    """Memory at each moment that both have, and shares of the CPU's time that are shares."""
    seen = page.ask("(h => [...h.tracks.get('machine').values.slice(0, 2).map(v => [...v.slice(0, h.n)].map(x => Number.isNaN(x) ? null : x)), [...h.times.slice(0, h.n)]])(gpusonde.machine)")
    reply = agent.get("/api/v1/history?metric=host_memory_bytes&since=15m&step=1s").json()
    recorded = {series["metric"]: series["values"] for series in reply["series"]}
    first = round(reply["first_unix_seconds"] * 1000)
    of = {first + i * 1000: both for i, both in enumerate(zip(recorded["host_memory_bytes.total"], recorded["host_memory_bytes.available"]))}
    same = [memory == of[time][0] - of[time][1] for memory, time in zip(seen[1], seen[2]) if memory is not None and of.get(time, (None,))[0] is not None]
    assert len(same) > 3 and all(same), same
    shares = [v for v in seen[0] if v is not None]
    assert len(shares) > 3 and all(0 <= v <= 1 for v in shares), shares


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
            page.wait("gpusonde.machine.times.slice(0, gpusonde.machine.n).filter(t => t % 1000 === 0).length > 4", "the machine's, whose times are whole seconds")
            the_machine_is_as_recorded(agent, page)
            equal(page.errors(), [])


def test_charts_have_their_least_mean_and_most():
    """Of what is shown of them; of one GPU alone, from its card and by choice."""
    of_four = "import('./page/chart.js').then(m => m.rangeText({first: 0, n: 4, time: n => n * 1000}, Float64Array.of(NaN, 0.2, 0.5, 0.9), {from: 0, to: %d}, v => %s))"
    with Agent() as agent, open_page(agent) as page:
        page.wait("document.querySelectorAll('.card').length === 8 && gpusonde.history.n > 2", "cards")
        equal(page.ask(of_four % (2000, "Math.round(v * 100) + ' %'")), "min 20, mean 35, max 50 %")
        equal(page.ask(of_four % (3000, "v > 0.8 ? '1 W' : v * 1000 + ' mW'")), f"min 200 mW, mean {1600 / 3:.13f} mW, max 1 W")
        equal(page.ask(of_four % (500, "String(v)")), "")
        page.ask("document.querySelectorAll('.card .index')[3].click()")
        page.wait("location.hash === '#charts?gpu=3' && document.querySelectorAll('.chart').length === 4", "the charts of GPU 3")
        page.wait("/^min \\d+, mean \\d+, max \\d+ %$/.test(document.querySelector('.chart .range')?.innerText)", "the range of a curve")
        equal(page.ask("document.querySelector('#main select').value"), "3")
        page.ask("(s => { s.value = ''; s.dispatchEvent(new Event('change')) })(document.querySelector('#main select'))")
        page.wait("location.hash === '#charts' && document.querySelectorAll('.chart').length === 32", "the charts of all")
        equal(page.errors(), [])


def test_charts_of_hours_where_it_is_recorded():
    """By a choice that is not offered elsewhere; with the scales of what is now."""
    spans = "[...document.querySelectorAll('#main .tools button')].filter(b => /^\\d+ (min|h)$/.test(b.innerText) && !b.hidden).map(b => b.innerText).join()"
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.gsr") as agent:
        recorded_moment(agent)
        with open_page(agent, "#charts?minutes=60&gpu=0") as page:
            page.wait(f"{spans} === '1 min,5 min,15 min,1 h,6 h,24 h'", "the choice")
            page.wait("[...document.querySelectorAll('.scale')].some(s => /^0 to 700 W, .*, one point in 4 s$/.test(s.innerText))", "an hour's charts")
            page.wait("/^min \\d+, mean \\d+, max \\d+ W$/.test(document.querySelectorAll('.range')[2].innerText)", "what they say")
            page.ask("[...document.querySelectorAll('#main .tools button')].find(b => b.innerText === '6 h').click()")
            page.wait("document.querySelector('.scale').innerText.endsWith('one point in 24 s')", "those of six hours")
            page.ask("location.hash = '#host?minutes=60'")
            page.wait("document.querySelector('.scale')?.innerText.endsWith('one point in 4 s')", "those of the machine")
            equal(page.errors(), [])
    with Agent() as agent, open_page(agent, "#charts?minutes=60") as page:
        page.wait(f"{spans} === '1 min,5 min,15 min'", "the choice without a recording")
        equal(page.errors(), [])


def test_charts_of_an_agent_that_samples_less_often():
    """What it has recorded is a line all the same: there is no moment without a number between those that were sampled, and one in a pause."""
    with tempfile.TemporaryDirectory() as tmp, Agent("--sample-period", "3s", "--recording-path", f"{tmp}/r.gsr") as agent, open_page(agent) as page:
        def recorded():
            reply = agent.get("/api/v1/history?metric=power_watts&since=15m&step=1s")
            return reply.status == 200 and sum(v is not None for v in reply.json()["series"][0]["values"]) > 3
        wait_for(recorded, "a recording", seconds=120)
        page.go(f"http://127.0.0.1:{agent.port()}/#charts")
        page.send("Page.reload")
        page.wait("globalThis.gpusonde?.recorded && gpusonde.history.n > 4 && gpusonde.history.time(gpusonde.history.first) < performance.timeOrigin", "what was before")
        values = "[...gpusonde.history.tracks.values()][0].values[2].slice(0, gpusonde.history.n)"
        equal(page.ask(f"[...{values}].slice(1).filter(v => Number.isNaN(v)).length"), 0)
        page.wait("gpusonde.history.n > 6", "the page to go on")
        places = "import('./page/recorded.js').then(m => m.moments([...Array(40).keys()], new Map([['GPU', new Map([[0, [...Array(40).keys()].map(i => i % 5 === 0 && (i < 10 || i > 30) ? i : null)]])]])))"
        equal(page.ask(places), [0, 5, 34, 35])
        equal(page.errors(), [])


def recorded_moment(agent):
    """A moment that its recording has."""
    def recorded():
        reply = agent.get("/api/v1/moment?at=0s")
        return reply.json()["time"] if reply.status == 200 else None
    return wait_for(recorded, "a recorded moment", seconds=120)


def test_a_moment_is_a_link_in_every_view():
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.gsr") as agent:
        at = recorded_moment(agent)
        then = agent.get(f"/api/v1/moment?at={at}").json()
        with open_page(agent, f"#processes?at={at}") as page:
            page.wait("globalThis.gpusonde?.moment.document && gpusonde.data.received > 5", "the moment, while it goes on")
            equal((page.ask("gpusonde.data.get('gpus')"), page.ask("gpusonde.data.live('gpus').time") > at), (then, True))
            contains(page.text("#moment"), "As it was at")
            equal(len(page.texts("tbody tr")), len(then["processes"]))
            page.ask("document.querySelector('#tab-gpus').click()")
            page.wait("document.querySelectorAll('.card').length === 8", "the GPUs of the same moment")
            contains(page.ask("location.hash"), f"at={at}")
            page.ask("document.querySelector('#moment button').click()")
            page.wait("gpusonde.data.past === null && !location.hash.includes('at=')", "now")
            page.ask("document.querySelector('#keep').click()")
            page.wait("gpusonde.moment.document && gpusonde.moment.document.time > " + repr(at), "a link to this moment")
            equal(page.errors(), [])


def test_a_moment_before_the_page_has_charts():
    """Its own, around it, where it is older than what the browser keeps."""
    with tempfile.TemporaryDirectory() as tmp, Agent("--recording-path", f"{tmp}/r.gsr") as agent, open_page(agent) as page:
        at = recorded_moment(agent)
        page.wait("globalThis.gpusonde?.recorded && gpusonde.history.n > 5", "charts of now")
        page.ask("gpusonde.history.times.fill(Date.now() + 1e6), gpusonde.history.n = 1")
        page.ask(f"location.hash = '#charts?at={at}'")
        page.wait("gpusonde.moment.history?.n > 1", "charts of then")
        page.wait("document.querySelectorAll('.chart').length === 32 && [...document.querySelectorAll('.chart b')].some(b => b.innerText !== '-')", "their figures")
        page.wait("[...document.querySelectorAll('.scale')].some(s => s.innerText.startsWith('0 to 700 W'))", "the scale that charts of now have")
        page.ask(f"location.hash = '#host?at={at}'")
        page.wait(f"gpusonde.moment.machine?.n > 1 && !/: -/.test(document.querySelector('.chart canvas')?.getAttribute('aria-label') ?? ': -')", "the machine's of then")


def test_a_moment_that_nobody_recorded():
    with Agent() as agent, open_page(agent, "#processes?at=2026-01-31T12:00:00Z") as page:
        page.wait("document.querySelector('#moment')?.innerText.includes('recording.path is not set')", "the reason")
        equal((page.texts("tbody tr"), page.ask("document.querySelector('#keep').hidden")), ([], True))
        page.wait("document.querySelector('#simulated').innerText && !document.querySelector('#simulated').hidden", "that its GPUs do not exist, all the same")


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


# How many of the things of one kind a piece of work changes: an observer is called after each.
PIECES = """globalThis.most = 0;
new MutationObserver(records => {
    const changed = new Set(records.flatMap(r => [r.target, ...r.addedNodes]).map(n => (n.nodeType === 1 ? n : n.parentElement)?.closest('.card, .chart, tr')).filter(Boolean));
    most = Math.max(most, changed.size);
}).observe(document.querySelector('#main'), { subtree: true, childList: true, characterData: true, attributes: true }); null"""
WORK_OF_ONE_PIECE = 100 # rows in sight, and some around them; of cards and charts less


def test_the_work_of_a_big_node_is_done_in_pieces():
    """64 GPUs, 5,000 processes: bench/web_page.py measures how long they take. Here they are counted, since that no other program makes longer."""
    with Agent() as agent, BigNode(agent) as node, browser_page(f"{node.url}#topology") as page:
        page.wait("document.querySelectorAll('tbody tr').length === 64", "the first view")
        page.ask(PIECES)
        for view, selector, n, most in (("gpus", ".card", 64, 8), ("charts", ".chart b", 256, 8), ("processes?sort=pid", "tbody tr", 30, WORK_OF_ONE_PIECE)):
            page.ask(f"location.hash = '#{view}'")
            page.wait(f"document.querySelectorAll('{selector}').length >= {n}", view)
            seen = page.ask("most = 0, gpusonde.data.received")
            page.wait(f"gpusonde.data.received > {seen + 8} && most > 0", "it to go on")
            assert page.ask("most") <= most, (view, page.ask("most"))
        page.ask("location.hash = '#gpus'")
        page.wait("document.querySelectorAll('.card').length === 64", "64 cards")
        last = "document.querySelector('.card:last-child dl').checkVisibility({ contentVisibilityAuto: true })"
        page.wait(f"!{last}", "cards out of sight not to be laid out")
        page.ask("document.querySelector('.card:last-child').scrollIntoView()")
        page.wait(f"{last} && document.querySelector('.card:last-child .index').innerText === 'GPU 63'", "the last card to come into sight")
        equal(page.errors(), [])


def test_a_big_node_has_elements_of_what_is_in_sight():
    """64 GPUs, 5,000 processes: bench/web_page.py measures that nothing takes long."""
    with Agent() as agent, BigNode(agent) as node, browser_page(f"{node.url}#processes?q=vllm&sort=pid") as page:
        page.wait("document.querySelector('.said')?.innerText === '625 of 5000'", "what was searched for in all of them")
        page.ask("location.hash = '#processes?sort=pid'")
        page.wait("document.querySelector('.said').innerText === '5000'", "all processes")
        first = "document.querySelector('tbody tr td:nth-child(2)').innerText"
        equal(page.ask(first), "1000")
        page.ask("document.querySelector('.scroll').scrollTop = 1e9")
        page.wait("document.querySelector('tbody tr:last-child td:nth-child(2)').innerText === '5999'", "the last of them in sight")
        equal(page.ask("document.querySelectorAll('tbody tr').length <= 100"), True)
        equal(page.ask("document.querySelector('tbody tr:last-child').ariaRowIndex"), "5001")
        page.ask("document.querySelector('.scroll').scrollTop = 0")
        page.wait(f"{first} === '1000'", "the first of them again")
        page.ask("location.hash = '#gpus'")
        page.wait("document.querySelectorAll('.card').length === 64", "64 cards")
        equal(page.errors(), [])


NGINX = """daemon off; pid {tmp}/nginx.pid; error_log {tmp}/nginx.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {tmp}/body; proxy_temp_path {tmp}/proxy; fastcgi_temp_path {tmp}/f; uwsgi_temp_path {tmp}/u; scgi_temp_path {tmp}/s;
  server {{
    listen 127.0.0.1:{port};
    location /gpus/node1/ {{ proxy_pass http://{agent}/; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(agent):
    """Yields the address of the page behind it, under a path; as docs/web.md has it."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        raise Skip("no nginx here: apt-get install nginx-light")
    with tempfile.TemporaryDirectory() as tmp:
        port = free_port()
        with open(f"{tmp}/nginx.conf", "w", encoding="utf-8") as f:
            f.write(NGINX.format(tmp=tmp, port=port, agent=agent))
        process = subprocess.Popen([program, "-p", tmp, "-c", f"{tmp}/nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: listens(port), "nginx")
            yield f"http://127.0.0.1:{port}/gpus/node1/"
        finally:
            process.terminate()
            process.wait()


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_it_works_behind_a_proxy_under_a_path():
    """Events pass through at once, links and files stay below the path, and it comes again after the agent was restarted."""
    listen = f"127.0.0.1:{free_port()}"
    with Agent(listen=listen) as agent, nginx(listen) as url, browser_page(url) as page:
        page.wait("document.querySelectorAll('.card').length === 8 && gpusonde.data.received > 5", "eight cards, and events")
        equal(page.ask("gpusonde.data.polls"), 0)
        asked = page.ask("performance.getEntriesByType('resource').map(e => e.name)")
        equal([a for a in asked if not a.startswith(url)], [])
        for view in page.ask("[...document.querySelectorAll('#tabs a')].map(a => a.hash)"):
            page.ask(f"location.hash = '{view}'")
            page.wait(f"document.querySelector('#tabs a[aria-selected=true]').hash === '{view}'", view)
            equal(page.ask(f"[...document.querySelectorAll('a')].map(a => a.href).filter(a => !a.startsWith('{url}'))"), [], view)
        equal(page.errors(), [])
        agent.process.kill()
        agent.process.wait()
        page.wait("document.querySelector('#age').className === 'bad'", "the page to say that nothing comes")
        with Agent(listen=listen, scenario="sick"):
            page.ask("location.hash = '#gpus'")
            page.wait("![0, 8].includes(document.querySelectorAll('.card').length) && document.querySelector('#age').className !== 'bad'", "the new agent's GPUs")


def test_processes_by_whose_they_are():
    """A row for each group, which opens; names of users by getent; a report of a group where the agent records."""
    with contextlib.ExitStack() as stack:
        tmp = stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(tmp, 0o755) # another user runs what is in it
        one, other = [stack.enter_context(Worker(tmp, user=user)) for user in (None, NOBODY if os.geteuid() == 0 else None)]
        agent = stack.enter_context(Agent("--recording-path", f"{tmp}/r.gsr", scenario=one.scenario(other)))
        page = stack.enter_context(open_page(agent, "#processes"))
        names = sorted({pwd.getpwuid(os.stat(f"/proc/{w.pid}").st_uid).pw_name for w in (one, other)})
        users = "[...document.querySelectorAll('tbody tr')].map(r => r.cells[2].innerText)"
        page.wait(f"new Set({users}).size === {len(names)} && {users}.every(u => {names!r}.includes(u))", "the users' names")
        page.ask("document.querySelector('select').value = 'user'; document.querySelector('select').dispatchEvent(new Event('change'))")
        groups = "[...document.querySelectorAll('tbody button')].filter(b => !b.disabled).map(b => b.innerText)"
        page.wait(f"{groups}.sort().join() === {','.join(names)!r}", "a row for each user")
        before = page.ask("document.querySelectorAll('tbody tr').length")
        page.ask("document.querySelector('tbody button').click()")
        page.wait(f"document.querySelectorAll('tbody tr').length > {before} && location.hash.includes('open=')", "the group to open")
        equal(page.ask("document.querySelector('tbody button').getAttribute('aria-expanded')"), "true")
        wait_for(lambda: agent.get("/api/v1/moment?at=0s").status == 200, "a recorded moment", seconds=120)
        page.wait("document.querySelector('tbody a')?.getAttribute('href')?.startsWith('api/v1/report?user=')", "the link to a report")
        path = page.ask("document.querySelector('tbody a').getAttribute('href')")
        wait_for(lambda: agent.get(f"/{path}").status == 200, "the report", seconds=120)
        (response, body), said = request(agent, f"/{path}"), subprocess.run([GPUSONDE, "report", f"{tmp}/r.gsr", "--user", path.partition("=")[2], "--format", "html"], check=True, capture_output=True, text=True).stdout
        contains(response.getheader("Content-Security-Policy"), "default-src 'none'")
        assert b"GPU report" in body and re.findall("<h2>[^<]*", body.decode()) == re.findall("<h2>[^<]*", said), body
        equal(page.errors(), [])


def test_timelines_are_listed_and_loaded():
    if os.geteuid() != 0:
        raise Skip("tracing needs root")
    with Agent("--trace-enabled", "yes") as agent, open_page(agent, "#timelines") as page:
        page.wait("document.querySelector('#main code')?.innerText.startsWith('gpusonde record start')", "the command that begins one")
        path = agent.cli("record", "start").stdout.removeprefix("recording to ").strip()
        page.wait("document.querySelector('#main code').innerText === 'gpusonde record stop'", "the command that ends it")
        equal(agent.cli("record", "stop").returncode, 0)
        with open(path, "ab") as file: # of two parts and a bit
            file.write(os.urandom(2 << 20))
        size = os.stat(path).st_size
        name = os.path.basename(path)
        page.wait(f"document.querySelector('tbody tr')?.innerText.includes({name!r})", "the file")
        page.wait("/\\b2\\.\\d MiB/.test(document.querySelector('tbody tr').innerText)", "its size")
        page.ask("URL.createObjectURL = blob => { globalThis.loaded = blob; return 'data:,'; }; document.querySelector('tbody button').click()")
        page.wait("globalThis.loaded?.size", "the file to be loaded")
        digest = page.ask("loaded.arrayBuffer().then(b => crypto.subtle.digest('SHA-256', b)).then(d => [...new Uint8Array(d)].map(v => v.toString(16).padStart(2, '0')).join(''))")
        with open(path, "rb") as file:
            equal((page.ask("loaded.size"), digest), (size, hashlib.sha256(file.read()).hexdigest()))
        equal(page.errors(), [])
        equal([agent.get(f"/api/v1/timeline?file={name}{at}").status for at in ("", "&at=0", "&at=x")], [413, 200, 400])
        os.symlink("/etc/passwd", f"{os.path.dirname(path)}/timeline-link")
        equal([agent.get(f"/api/v1/timeline?file={other}").status for other in ("timeline-link", "..", "timeline-none", "../state", "")], [404, 404, 404, 400, 404])


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
        contains(page.text("#main"), "trace.analysis")


def main():
    try:
        run()
    finally:
        if browser:
            browser.__exit__()


main()
