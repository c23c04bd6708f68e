# SPDX-License-Identifier: Apache-2.0
"""Whether sums of a sample are right on average."""
import math
import statistics


def unbiased(sums, wanted):
    """Each of @sums is that of a sample of its own, and all want the same. How far they are apart says how far their mean may be off, whatever the sample was."""
    mean = statistics.mean(sums)
    deviation = statistics.stdev(sums) / math.sqrt(len(sums))
    assert deviation > 0, "all of them: no sample was taken"
    print(f"# mean {mean:.1f} of {wanted}, +- {deviation:.1f}", flush=True)
    assert abs(mean - wanted) < 6 * deviation, f"mean {mean:.1f} of {wanted}, +- {deviation:.1f}"
    assert deviation < 0.04 * wanted, f"+- {deviation:.1f} of {wanted}: the sample is too small to tell"
