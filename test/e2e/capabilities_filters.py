#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is refused though no capability is missing: filters of system calls, as units and containers have them."""

from lib import rows, traced
from lib.capabilities import enough, has_multi, missing, missing_of_ours, perf_level
from lib.e2e import contains, equal, run, values, wait_for
from lib.capabilities_run import agent_counts, agent_of, as_user, decided, denied, doctor, needs_btf, trace_command


def test_a_filter_that_refuses_bpf():
    user = denied("bpf", as_user(enough()))
    needs_btf()
    with agent_of(user) as agent:
        found = decided(agent)
        equal((found["enabled"], missing(agent.log())), (False, []), agent.log())
        contains(found["why"], "seccomp filter")
        equal(agent.log().count("seccomp filter"), 1, agent.log())
        assert values(agent.metrics(), "gpusonde_gpu_present"), "no device metrics"
    checks = doctor(user)
    equal([checks[n]["verdict"] for n in ("tracing", "trace-capabilities")], ["warning", "ok"])
    contains(checks["tracing"]["text"], "seccomp filter")
    done, _ = trace_command(user)
    equal((done.returncode, len(done.stderr.splitlines()), missing(done.stderr)), (1, 1, []), done.stderr)
    contains(done.stderr, "seccomp filter")
    rows.say("capabilities", "all, and a filter that refuses bpf()", devices="all", tracing="no", said="the filter, no capability")


def test_perf_events_refused():
    """New programs are found by scanning, which is said once: in the log, in doctor, in /api/v1; and they are counted."""
    # From 3 on Debian's kernels refuse it to who has not CAP_SYS_ADMIN, filter or not.
    wanted = (1, 0, ["SYS_ADMIN"]) if has_multi() and perf_level() >= 3 else (1, 1, [])
    user = denied("perf_event_open", as_user(enough()))
    needs_btf()
    with agent_of(user) as agent:
        found = decided(agent)
        equal(found["enabled"], True)
        calls, _ = agent_counts(agent)
        why = wait_for(lambda: traced.trace_of(agent)["why"], "the reason")
        for text in (why, agent.log(), doctor(user)["trace-records"]["text"]):
            equal((text.count("scanning /proc"), text.count("seccomp filter"), missing_of_ours(text)), wanted, text)
    done, _ = trace_command(user)
    equal((done.returncode, done.stderr), (0, ""), "a command is held, and needs no perf events")
    rows.say("capabilities", "all, and a filter that refuses perf events", devices="all", tracing=f"exact: {calls} calls, found by scanning /proc",
             said=f"that new programs are found up to a second late, and {'the filter' if wanted[1] else 'CAP_SYS_ADMIN'}")


def test_a_filter_that_refuses_capget():
    """Who may not ask what he has is not told that he has nothing."""
    as_user(enough()) # or there is nothing to be told
    needs_btf()
    checks = doctor(denied("capget", ()))
    equal((checks["trace-capabilities"]["verdict"], checks["tracing"]["verdict"]), ("ok", "ok"), checks)
    contains(checks["capabilities"]["text"], "may not ask")
    assert not missing(str(checks)), checks


if __name__ == "__main__":
    run()
