# SPDX-License-Identifier: Apache-2.0
"""Whose 2,000 processes in as many containers are: CPU in steady state, in which nothing comes, goes or changes.

The model is measured with containers, names and jobs and without, in turns, and the medians are compared; the node's files are looked at every two
seconds. Of the containers 64 were given a GPU, and it is looked whether they run.
"""
import statistics
import subprocess
import tempfile

from common import BUILD, Row

RUNS = 7
SECONDS = 200
SCAN_S = 2


def run():
    found = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as tmp:
            out = subprocess.run([f"{BUILD}/bench/attribution", tmp, str(SECONDS)], stdout=subprocess.PIPE, check=True, text=True).stdout
        found.append([float(number) for number in out.split()])
    without, with_, scan = (statistics.median(column) for column in zip(*found))
    attribution = max(with_ - without, 0) + scan / SCAN_S
    return [Row("model, 2,000 processes of nobody: us of CPU a second", without, "{:.0f}"),
            Row("model, 2,000 processes in 2,000 containers with names: us of CPU a second", with_, "{:.0f}"),
            Row("a scan of 2,000 containers' files, each two seconds: us of CPU", scan, "{:.0f}"),
            Row("attribution: us of CPU a second", attribution, "{:.0f}", at_most=1000)]
