# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a window, by its debugging protocol over a pipe: pages are opened, asked and photographed."""
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile

from lib.e2e import PATIENCE_S, Skip, wait_for

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def program():
    found = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if not found:
        raise Skip("no Chromium here: apt-get install chromium-headless-shell")
    return found


class Browser:
    """
    One browser for as many pages as are wanted. Chromium's pipe is its descriptors 3 and 4, messages end with a zero byte.
    """

    def __init__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="gpusonde-chromium-", ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.frm, to_write = os.pipe()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        spawned = f"exec 3<&{to_read} 4>&{to_write}; exec \"$@\""
        self.process = subprocess.Popen(
            ["bash", "-c", spawned, "-", program(), "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", f"--user-data-dir={self.tmp.name}", *sandbox, "about:blank"],
            pass_fds=[to_read, to_write], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.ids, self.left, self.events, self.replies = itertools.count(1), b"", [], {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.frm)
        self.tmp.cleanup()

    def receive(self):
        """The next message: an answer is kept by its number, an event in the list."""
        while b"\0" not in self.left:
            piece = os.read(self.frm, 1 << 20)
            if not piece:
                raise AssertionError("Chromium has ended")
            self.left += piece
        text, _, self.left = self.left.partition(b"\0")
        message = json.loads(text)
        if "id" in message:
            self.replies[message["id"]] = message
        else:
            self.events.append(message)

    def send(self, method, session=None, **params):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while number not in self.replies:
            self.receive()
        reply = self.replies.pop(number)
        if "error" in reply:
            raise AssertionError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def open(self, url, width=1280, height=900, script=True):
        return Page(self, url, width, height, script)


class Page:
    def __init__(self, browser, url, width, height, script):
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(width, height)
        if not script:
            self.send("Emulation.setScriptExecutionDisabled", value=True)
        self.go(url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.send("Target.closeTarget", targetId=self.target)

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def go(self, url):
        self.send("Page.navigate", url=url)

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def ask(self, expression):
        """The value of an expression of JavaScript; a promise's when it has come."""
        reply = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise AssertionError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait(self, expression, what=None, seconds=PATIENCE_S):
        return wait_for(lambda: self.ask(expression), what or expression, seconds)

    def text(self, selector):
        return self.ask(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector):
        return self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")

    def errors(self):
        """What the page has complained of: exceptions, errors on the console, what was refused or not found."""
        self.ask("0") # what has been said until now has come
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
                found.append(str(params["args"]))
        return found

    def url(self):
        return self.browser.send("Target.getTargetInfo", targetId=self.target)["targetInfo"]["url"]

    def photograph(self, path):
        """For people to look at."""
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
