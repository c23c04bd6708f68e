#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page in a real Chromium: every view, what it costs, what it does when the agent is gone; and its files, as any client gets them."""
import gzip
import http.client
import os
import re

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
        assert len(seen) > 8, seen


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


def main():
    try:
        run()
    finally:
        if browser:
            browser.__exit__()


main()
