# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal that is looked at: tmux, with a server of its own."""
import itertools
import os
import re
import shutil
import subprocess
import tempfile

from lib.e2e import PATIENCE_S, Skip, wait_for

COUNTER = itertools.count()


class Terminal:
    """The program's screen, until the block ends. @env is all of its environment."""

    def __init__(self, *command, columns=80, rows=24, env=None, term="tmux-256color"):
        if not shutil.which("tmux"):
            raise Skip("no tmux: install the package tmux")
        self.command, self.columns, self.rows = command, columns, rows
        self.env = dict(env or os.environ, TERM=term)
        self.env.setdefault("LC_ALL", "C.UTF-8")
        self.socket = f"gpusonde-test-{os.getpid()}-{next(COUNTER)}"
        self.folder = tempfile.TemporaryDirectory(prefix="gpusonde-tmux-")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *args], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, env={"PATH": os.environ["PATH"], "TMUX_TMPDIR": self.folder.name, "LC_ALL": "C.UTF-8"})

    def __enter__(self):
        script = f"{self.folder.name}/run"
        with open(script, "w", encoding="utf-8") as f:
            quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in
                              ("env", "-i", *(f"{k}={v}" for k, v in self.env.items()), *self.command))
            f.write(f"#!/bin/sh\ntrap : INT\ncd '{self.folder.name}'\n{quoted} 2>stderr\necho $? >status.new\nmv status.new status\nexec sleep 1000\n")
        os.chmod(script, 0o755)
        out = self.tmux("new-session", "-d", "-x", str(self.columns), "-y", str(self.rows), script)
        assert out.returncode == 0, out.stderr
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")
        self.folder.cleanup()

    def keys(self, *names):
        """As tmux names them: "Enter", "Down"; else what is typed."""
        self.tmux("send-keys", *names)

    def click(self, row, column, times=1):
        """The left button, as a terminal tells it (SGR): pressed and released, which the program reads together."""
        self.tmux("send-keys", "-l", "".join(f"\033[<0;{column + 1};{row + 1}{end}" for end in "Mm" * times))

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *how):
        return self.tmux("capture-pane", "-p", *how).stdout

    def lines(self):
        return self.screen().split("\n")

    def shows(self, *texts, without=()):
        """Waits until all of them are on the screen, and none of the others; the screen."""
        return self.wait_for(lambda screen: all(t in screen for t in texts) and not any(t in screen for t in without), f"{texts} without {without}")

    def has_line(self, pattern):
        """Waits until a line begins so; the screen."""
        return self.wait_for(lambda screen: any(re.match(pattern, line) for line in screen.split("\n")), f"a line {pattern}")

    def wait_for(self, good, what):
        """The screen that is good; else says what it was."""
        def looked():
            screen = self.screen()
            return good(screen) and screen
        try:
            return wait_for(looked, what)
        except AssertionError as why:
            raise AssertionError(f"{why} on:\n{self.screen()}") from why

    def status(self):
        """Of the program, which ends."""
        path = f"{self.folder.name}/status"
        wait_for(lambda: os.path.exists(path), f"the end of the program on:\n{self.screen()}")
        with open(path, encoding="ascii") as f:
            return int(f.read())

    def errors(self):
        with open(f"{self.folder.name}/stderr", encoding="utf-8", errors="replace") as f:
            return f.read()

    def files(self):
        return sorted(os.listdir(self.folder.name))

    def read(self, name):
        with open(f"{self.folder.name}/{name}", encoding="utf-8") as f:
            return f.read()
