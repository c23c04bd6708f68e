# SPDX-License-Identifier: Apache-2.0
"""The table: what is checked, what came of it, and whether each promise was kept.

A check is a row of a list, given before anything runs (checks.py). Whatever is not filled in stays there as "not compared", with a reason.
"""
import contextlib
import traceback
from collections import namedtuple

HARM, LIE, OUTAGE = "never harm", "never lie", "never be the outage"
KEPT, NOT_KEPT, SEEN, NOT_COMPARED, NOT_JUDGED = "kept", "NOT KEPT", "seen", "not compared", "not judged"

# @key names it in the code; @what is for readers; @promise may be None: a figure without one. @timing: depends on how fast the machine
# is, so on the simulated node it is shown and not judged.
Check = namedtuple("Check", "key what promise agree timing", defaults=(None, "", False))


class NotCompared(Exception):
    """A check cannot be made here; the text says why."""


class Row:
    def __init__(self, check):
        self.check, self.ours, self.theirs = check, "", ""
        self.verdict, self.why = NOT_COMPARED, "its turn did not come"

    def is_open(self):
        return self.verdict == NOT_COMPARED and self.why == "its turn did not come"

    def cells(self):
        verdict = f"{self.verdict}: {self.why}" if self.why else self.verdict
        return [self.check.what, self.ours, self.theirs, self.check.agree, self.check.promise or "", verdict]


def cell(text):
    """One cell of a Markdown table: one line, no bars."""
    return str(text).replace("\n", " ").replace("|", "\\|").strip()


class Table:
    """All rows, by key, and their verdicts."""

    def __init__(self, checks, simulated):
        self.rows = {check.key: Row(check) for check in checks}
        assert len(self.rows) == len(checks), "two checks of one key"
        self.simulated = simulated

    def put(self, key, good, ours, theirs="", why=""):
        """@good: whether the promise is kept; ignored where the check has none."""
        row = self.rows[key]
        row.ours, row.theirs, row.why = ours, theirs, why
        row.verdict = SEEN if row.check.promise is None else KEPT if good else NOT_KEPT
        if row.check.timing and self.simulated and row.verdict == NOT_KEPT:
            row.verdict, row.why = NOT_JUDGED, "a time, and this machine has no GPU"

    def skip(self, key, why, ours="", theirs=""):
        row = self.rows[key]
        row.verdict, row.why, row.ours, row.theirs = NOT_COMPARED, str(why), ours, theirs

    @contextlib.contextmanager
    def part(self, *keys):
        """A block that fills in these rows. What it cannot compare is said in each; what fails unforeseen is a promise not kept."""
        try:
            yield
        except NotCompared as why:
            for key in keys:
                if self.rows[key].is_open():
                    self.skip(key, why)
        except Exception as why: # pylint: disable=broad-except
            where = traceback.extract_tb(why.__traceback__)[-1]
            for key in keys:
                if self.rows[key].is_open():
                    self.put(key, False, "", why=f"{type(why).__name__} at {where.name}: {str(why)[:300]}")
                    self.rows[key].verdict = NOT_KEPT

    def close(self, why):
        """At the end: rows whose turn did not come."""
        for key, row in self.rows.items():
            if row.is_open():
                self.skip(key, why)

    def count(self, verdict):
        return sum(row.verdict == verdict for row in self.rows.values())

    def markdown(self):
        lines = ["| what | gpusonde | reference | agree within | promise | verdict |", "| --- | --- | --- | --- | --- | --- |"]
        lines += ["| " + " | ".join(cell(c) for c in row.cells()) + " |" for row in self.rows.values()]
        return "\n".join(lines) + "\n"


class Tolerance(namedtuple("Tolerance", "absolute relative", defaults=(0.0,))):
    """How far apart two numbers may be: the larger of so much, and such a part of the reference."""

    def agree(self, ours, theirs):
        return abs(ours - theirs) <= max(self.absolute, self.relative * abs(theirs))

    def within(self, ours, lowest, highest):
        """For a value that changes while it is read: ours lies between two readings of the reference, or near one."""
        return lowest <= ours <= highest or self.agree(ours, lowest) or self.agree(ours, highest)


EXACT = Tolerance(0.0)
