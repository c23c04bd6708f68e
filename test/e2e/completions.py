#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completions of bash, fish and zsh, asked as the shells ask them."""
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time

from lib.e2e import GPUSONDE, Skip, command, equal, run

# What is typed, and some of what must be offered; what must not.
CASES = [
    (["gpusonde", "sn"], {"snapshot"}, {"gpus"}),
    (["gpusonde", "ps", "--co"], {"--color", "--config", "--container"}, {"--watch"}),
    (["gpusonde", "ps", "--color", ""], {"auto", "always", "never"}, {"--json"}),
    (["gpusonde", "ps", "--by", "u"], {"user"}, {"pod"}),
    (["gpusonde", "ps", "--user", "ro"], {"root"}, {"rot"}),
    (["gpusonde", "record", "st"], {"start", "stop", "status"}, {"last"}),
    (["gpusonde", "inspect", "/etc/pass"], {"/etc/passwd"}, {"/etc/group"}),
    (["gpusonde", "trace", "bas"], {"bash"}, {"--json"}),
    (["gpusonde", "agent", "--log-level", "d"], {"debug"}, {"info"}),
    (["gpusonde", "help", "tr"], {"trace"}, {"replay"}),
]


def script(shell, folder, name):
    out = command("help", "--generate", f"completion.{shell}")
    equal((out.returncode, out.stderr), (0, ""))
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(out.stdout)
    return path


def check(ask):
    for words, wanted, unwanted in CASES:
        offered = ask(words)
        assert wanted <= offered, f"{words}: {sorted(wanted - offered)} not offered, but {sorted(offered)[:20]}"
        equal(unwanted & offered, set(), words)


def test_bash():
    with tempfile.TemporaryDirectory() as folder:
        path = script("bash", folder, "gpusonde")

        def ask(words):
            program = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpusonde; '
                       'printf "%s\\n" "${COMPREPLY[@]}"')
            out = subprocess.run(["bash", "--norc", "-uc", program, "bash", path, *words], capture_output=True, text=True, check=True)
            equal(out.stderr, "", words)
            return set(out.stdout.split())

        check(ask)
        # readline cuts a word at "="
        equal(ask(["gpusonde", "ps", "--color", "=", "al"]), {"always"})
        equal(ask(["gpusonde", "ps", "--color", "="]), {"auto", "always", "never"})
        assert "bash" in ask(["gpusonde", "trace", "--json", "--", "bas"])


def test_fish():
    if not shutil.which("fish"):
        raise Skip("no fish here: apt install fish")
    with tempfile.TemporaryDirectory() as folder:
        path = script("fish", folder, "gpusonde.fish")

        def ask(words):
            environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
            out = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{' '.join(words)}'"],
                                 capture_output=True, text=True, check=True, env=environment)
            equal(out.stderr, "", words)
            return {line.split("\t")[0] for line in out.stdout.splitlines()}

        check(ask)


def read_until(terminal, text):
    """What the terminal shows up to @text; fails if that does not come."""
    shown, end = "", time.monotonic() + 60
    while text not in shown:
        ready = select.select([terminal], [], [], max(0, end - time.monotonic()))[0]
        assert ready, f"no {text!r} in {shown!r}"
        shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


def test_zsh():
    if not shutil.which("zsh"):
        raise Skip("no zsh here: apt install zsh")
    with tempfile.TemporaryDirectory() as folder:
        script("zsh", folder, "_gpusonde")
        with open(os.path.join(folder, ".zshrc"), "w", encoding="utf-8") as f:
            f.write(f"PS1='ready> '\nfpath=({folder} $fpath)\npath=({os.path.dirname(GPUSONDE)} $path)\n"
                    f"autoload -Uz compinit\ncompinit -u -d {folder}/dump\n")
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(ZDOTDIR=folder, TERM="dumb")
            os.execvp("zsh", ["zsh", "-d", "-i"])
        try:
            read_until(terminal, "ready> ")
            for typed, wanted in (("gpusonde snaps", "hot"), ("gpusonde ps --colo", "r="), ("gpusonde ps --color=al", "ways"),
                                  ("gpusonde record sta", "rt"), ("gpusonde inspect /etc/passw", "d"), ("gpusonde help inspe", "ct")):
                os.write(terminal, typed.encode())
                read_until(terminal, typed)
                os.write(terminal, b"\t")
                read_until(terminal, wanted)
                os.write(terminal, b"\x15")
        finally:
            os.write(terminal, b"\x15exit\n")
            os.close(terminal)
            os.waitpid(child, 0)


if __name__ == "__main__":
    run()
