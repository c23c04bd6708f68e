# SPDX-License-Identifier: Apache-2.0
"""How much of what is wrong the analysis finds, and how much it says that is not: in programs made by chance, others in each run."""
import json
import random
import subprocess

from common import BUILD, Row

TRIALS = 10

# What is slow, in words, by bench_analysis' name for it.
TROUBLES = {
    "latency": "calls of one operator take longer",
    "clocks": "clocks are throttled",
    "links": "links are slower",
    "lost": "a rank does nothing any more",
}


def tried(trouble, seed):
    run = subprocess.run([f"{BUILD}/bench/bench_analysis", trouble, str(seed), str(TRIALS)], check=True, capture_output=True)
    return json.loads(run.stdout)


def run():
    seed = random.SystemRandom().randrange(1 << 40)
    yield Row("the number that programs are drawn from (bench_analysis CASE NUMBER 10)", seed)
    quiet = tried("quiet", seed)
    yield Row("nothing is wrong: findings in an hour of the program", quiet["findings"] / quiet["hours"], "{:.1f}", at_most=4)
    yield Row("CPU time for an event, ns", quiet["cpu"] / quiet["events"] * 1e9, "{:,.0f}")
    for trouble, words in TROUBLES.items():
        done = tried(trouble, seed)
        yield Row(f"{words}: of so many episodes", done["episodes"])
        yield Row(f"{words}: recall, episodes that are found", done["found"] / done["episodes"], "{:.2f}", at_least=0.85)
        yield Row(f"{words}: findings that come in an episode (symptoms are listed under their cause, and not counted)", done["within"] / max(done["findings"], 1), "{:.2f}", at_least=0.85)
        yield Row(f"{words}: precision, findings of the right rule and subject, too", done["right"] / max(done["findings"], 1), "{:.2f}", at_least=0.7)
        yield Row(f"{words}: symptoms", done["symptoms"])
        if done["symptoms"] > 0:
            yield Row(f"{words}: symptoms that are under the right finding, share", done["rightly"] / done["symptoms"], "{:.2f}", at_least=0.85)
        yield Row(f"{words}: median delay until it is told, seconds", done["delay"], "{:.1f}", at_most=60)
