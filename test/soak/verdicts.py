# SPDX-License-Identifier: Apache-2.0
"""What a soak says at its end: rows of (what, whether it holds, figures)."""
import statistics


def flat_rows(samples, flat):
    """@flat: (what, how much more than in the second quarter the last quarter may have, besides a tenth)."""
    quarter = len(samples) // 4
    for what, more in flat:
        before = statistics.median(s[what] for s in samples[quarter:2 * quarter])
        after = statistics.median(s[what] for s in samples[-quarter:])
        yield f"{what} is flat", after <= before * 1.1 + more, f"{before:.0f} -> {after:.0f}"


def tell(rows):
    """Prints them and, last, "N passed, N failed"; whether one does not hold."""
    for what, good, figures in rows:
        print(f"{'ok  ' if good else 'FAIL'} {what}: {figures}")
    failed = sum(not good for _, good, _ in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return failed > 0
