# SPDX-License-Identifier: Apache-2.0
"""gpusonde-kube as test/tools/kube_dump asks it: each question is a line, each answer a document with all tables."""
import collections
import contextlib
import json
import subprocess

from lib.e2e import BUILD, PATIENCE_S, environment, wait_for

DUMP = f"{BUILD}/test/tools/kube_dump"
HELPER = f"{BUILD}/gpusonde-kube"


class Kube:
    """gpusonde-kube, which is asked by lines."""

    def __init__(self, **settings):
        self.process = subprocess.Popen([DUMP, HELPER] + [f"{k}={v}" for k, v in settings.items()], stdin=subprocess.PIPE,  # pylint: disable=consider-using-with
                                        stdout=subprocess.PIPE, text=True, env=environment())
        self.counted = {"bytes": 0, "requests": 0, "lists": 0}
        self.failures = collections.Counter() # by reason

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "kube_dump has ended"
        answer = json.loads(line)
        for name in self.counted:
            self.counted[name] += answer.get(name, 0)
        self.failures.update(answer["failures"])
        return answer

    def until(self, condition, what, seconds=PATIENCE_S):
        """The first answer of which condition(answer) is true."""
        newest = {}

        def ask():
            newest.clear()
            newest.update(self.ask())
            return condition(newest)
        try:
            wait_for(ask, what, seconds)
        except AssertionError as e:
            raise AssertionError(f"{e}; the newest answer: {json.dumps(newest)[:3000]}") from None
        return newest

    def well(self):
        return self.until(lambda a: a["outcome"] == "ok", "a list of pods")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def asked(**settings):
    asker = Kube(**settings)
    try:
        yield asker
    finally:
        asker.stop()


def owners(answer, workload=1):
    """id -> (pod, container, kind, name); workload 1 are containers, 2 pods."""
    return {r["id"]: (r["pod"], r["container"], r["kind"], r["name"]) for r in answer["owners"] or [] if r["workload"] == workload}
