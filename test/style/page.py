#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page's files, without a browser: types by TypeScript's checker, texts of numbers by node, and what no file of it may have.

    page.py SOURCE_ROOT

Speaks TAP. tsc and node are Debian's node-typescript and nodejs; without them their tests are skipped.
"""
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.abspath(sys.argv[1]), "src/page")
BYTES_MAX = 150 << 10 # of all files together, compressed
TSC = ["tsc", "--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022", "--lib", "es2022,dom,dom.iterable",
       "--noUncheckedIndexedAccess", "--noImplicitReturns", "--noUnusedLocals"]
# What a script must not do: the content security policy refuses some, proxies under a path others, and names of users are no markup.
FORBIDDEN = [
    (r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function", "makes markup or code of texts"),
    (r"\son\w+=\"|\sstyle=\"|<style|<script(?![^>]*\bsrc=)", "stands in the HTML, where the policy refuses it"),
    (r"(?:fetch|EventSource)\([\"'`]/|(?:href|src)=\"/", "is an absolute path: behind a proxy the page lies under another one"),
    (r"https?://(?!www\.w3\.org/)", "is loaded from elsewhere"),
]


def files():
    for folder, _, names in os.walk(ROOT):
        for name in sorted(names):
            if name.endswith((".js", ".html", ".css", ".svg")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    yield path, f.read()


def need(program, package):
    return None if shutil.which(program) else f"no {program} here: apt-get install {package}"


def check_types():
    why = need("tsc", "node-typescript")
    if why:
        return why, []
    with tempfile.TemporaryDirectory() as tmp:
        broken = os.path.join(tmp, "broken.js")
        with open(broken, "w", encoding="ascii") as f:
            f.write("/** @type {number} */\nexport const n = 'text';\n")
        checks = [subprocess.run([*TSC, path], capture_output=True, text=True, check=False) for path in (f"{ROOT}/app.js", broken)]
    wrong = checks[0].stdout.splitlines() if checks[0].returncode else []
    return None, wrong + ([] if checks[1].returncode else ["tsc accepts a text as a number"])


def printed_bytes(v):
    """As bytes_text() of view/number.c."""
    units, unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], 0
    while v >= 1024 and unit + 1 < len(units):
        v, unit = v / 1024, unit + 1
    return f"{v:.{1 if unit else 0}f} {units[unit]}"


def run_module(script):
    """(its output as JSON, None), or (None, what it complains of)."""
    node = subprocess.run(["node", "--input-type=module", "--no-warnings"], input=script, capture_output=True, text=True, check=False)
    return (None, node.stderr.splitlines()) if node.returncode else (json.loads(node.stdout), None)


def check_rates():
    """(seconds, sum) of documents, of a window of three seconds; and the rates."""
    why = need("node", "nodejs")
    if why:
        return why, []
    steps = [(0, 10, None), (0, 10, None), (1, 20, 10), (2, 20, 5), (3, 50, 40 / 3), (4, 50, 10), (4, 50, 10), (5, 50, 10), (6, 50, 0),
             (7, 5, None), (8, 6, 1), (100, 1000, None), (101, 1001, 1), (50, 900, None), (51, None, None), (52, 7, None), (53, 9, 2)]
    script = f"import {{ Rates }} from {json.dumps(ROOT + '/rates.js')}; const rates = new Rates(3000);" \
             f"console.log(JSON.stringify({json.dumps(steps)}.map(([s, sum]) => rates.of('x', sum, new Date(s * 1000).toISOString()))));"
    got, wrong = run_module(script)
    if wrong:
        return None, wrong
    return None, [f"at {s} s, {total}: {g}, not {w}" for (s, total, w), g in zip(steps, got, strict=True) if (g is None) != (w is None) or (g or 0) != (w or 0)]


def check_recorded_rates():
    """Of a sum that grows by 1000 a second, at moments so far apart: after the first each has a rate, but for those after a hole of three steps."""
    why = need("node", "nodejs")
    if why:
        return why, []
    script = f"import {{ pastSubjects, MACHINE_SERIES }} from {json.dumps(ROOT + '/machine.js')}; const found = [];" \
             "for (const step of [1, 40, 96, 960]) {" \
             "const times = [...Array(20).keys()].map(i => 1.7e12 + i * step * 1000);" \
             "const values = times.map((_, i) => i > 9 && i < 9 + Math.max(3, 70 / step) ? null : i * step * 1000);" \
             "const disk = (await pastSubjects(MACHINE_SERIES, times, [{ metric: 'host_disk_read_bytes_total', device: 'sda', values }])).get('disk sda');" \
             "found.push([step, disk?.get(2)?.filter(v => v === 1000).length ?? 0]); } console.log(JSON.stringify(found));"
    got, wrong = run_module(script)
    if wrong:
        return None, wrong
    wanted = [[1, 9], [40, 16], [96, 16], [960, 16]]
    return None, [] if got == wanted else [f"[step, rates]: {got}, not {wanted}"]


def check_formats():
    """Python's formats are printf's. Ties, which toFixed() rounds otherwise, are among the numbers."""
    why = need("node", "nodejs")
    if why:
        return why, []
    chosen = random.Random(1)
    numbers = [n / 8 for n in range(4000)] + [chosen.uniform(0, 10 ** chosen.randint(-3, 15)) for _ in range(4000)]
    script = f"import {{ fixed, bytes, percent }} from {json.dumps(ROOT + '/format.js')};" \
             f"console.log(JSON.stringify({json.dumps(numbers)}.map(v => [fixed(v, 0), fixed(v, 1), bytes(v), percent(v)])));"
    shown, wrong = run_module(script)
    if wrong:
        return None, wrong
    wanted = [[f"{v:.0f}", f"{v:.1f}", printed_bytes(v), f"{v * 100:.0f} %"] for v in numbers]
    return None, [f"{v!r}: the page has {got}, tables have {w}" for v, got, w in zip(numbers, shown, wanted, strict=True) if got != w]


def refused(path, text):
    for pattern, what in FORBIDDEN:
        for m in re.finditer(pattern, text):
            yield f"{path}:{text[:m.start()].count(chr(10)) + 1}: {m[0]!r} {what}"


def check_rules():
    samples = ["a.innerHTML = b", "<p onclick=\"f()\">", "fetch(\"/api\")", "import 'https://example.com/a.js'"]
    wrong = [f"accepts {s}" for s in samples if not list(refused("sample", s))]
    for path, text in files():
        wrong += refused(path, text)
        if path.endswith((".js", ".css")) and "SPDX-License-Identifier: Apache-2.0" not in text[:80]:
            wrong.append(f"{path}:1: no SPDX line")
        if any(len(line) > 200 or line != line.rstrip() for line in text.split("\n")):
            wrong.append(f"{path}: lines of more than 200 columns, or with white space at their end")
    return None, wrong


def check_size():
    total = sum(len(gzip.compress(text.encode(), 9)) for _, text in files())
    return None, [] if 0 < total <= BYTES_MAX else [f"{total} bytes, compressed; {BYTES_MAX} are allowed"]


def main():
    checks = [check_types, check_formats, check_rates, check_recorded_rates, check_rules, check_size]
    failed = 0
    print(f"1..{len(checks)}")
    for number, check in enumerate(checks, start=1):
        skip, wrong = check()
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {check.__name__.removeprefix('check_')} of the page{' # SKIP ' + skip if skip else ''}")
        print("".join(f"# {line}\n" for line in wrong[:20]), end="", flush=True)
    sys.exit(1 if failed else 0)


main()
