# SPDX-License-Identifier: Apache-2.0
"""What a program says that it called, against what gpusonde trace says that it saw."""

# They follow the handle they are given before they look whether there is a driver, and die of ours.
UNCALLABLE = ("cuLink", "cuGraphDebugDotPrint", "cuGraphReleaseUserObject", "cudaCreateChannelDesc", "__cudaRegister",
              "__cudaUnregister", "__cudaInitModule", "__cudaPushCallConfiguration", "__cudaPopCallConfiguration")


def callable_names(sites):
    """Of the sites that gpusonde probes names: those that are probed and can be called with driver_calls."""
    return [s["symbol"] for s in sites if s["chosen"] and s["symbol"].startswith(("cu", "__cuda"))
            and not s["symbol"].startswith(UNCALLABLE)]


def lines(plan):
    """As driver_calls wants to read them."""
    return "".join(f"{name} {times}\n" for name, times in plan)


def truth_of(truth):
    """{api: [count, {code: times} of the errors]}, of what driver_calls wrote, or a program of sim/cuda (tally.h)."""
    if isinstance(truth["calls"], dict):
        return {api: [call["count"], call["errors"]] for api, call in truth["calls"].items()}
    found = {}
    for call in truth["calls"]:     # a plan may name it more than once
        entry = found.setdefault(call["api"], [0, {}])
        entry[0] += sum(call["results"].values())
        for code, times in call["results"].items():
            if code != "0":
                entry[1][code] = entry[1].get(code, 0) + times
    return found


def seen_of(document, pid):
    """{api: [count, {code: times}]} of this process in the document that gpusonde trace --json ends with."""
    ours = [p for p in document["processes"] if p["pid"] == pid]
    assert len(ours) == 1, f"{len(ours)} processes with PID {pid}, not one: {document}"
    return {c["api"]: [c["count"], c["errors"]] for c in ours[0]["calls"] if c["api"].startswith(("cu", "__cuda"))}


def check_events(document):
    """Every event is accounted for; the number of those that were lost."""
    events = document["events"]
    assert events["received"] + events["dropped"] == events["produced"], f"received and dropped are not what was produced: {events}"
    return events["dropped"]


def check(truth, document, unseen=(), no_result=()):
    """Both say the same, but for names of @unseen, which are not probed, and results of @no_result; the truth, as truth_of() has it."""
    wanted = {api: entry for api, entry in truth_of(truth).items() if api not in unseen}
    seen = seen_of(document, truth["pid"])
    more = f"; {document.get('probes')}"
    other = {api: entry for api, entry in seen.items() if api not in wanted}
    assert sorted(seen) == sorted(wanted), f"other names: {other}; missing: {set(wanted) - set(seen)}" + more
    # Without a return probe errors are not known.
    unknown = {"__cudaRegisterFunction", *no_result}
    wrong = {api: (entry, wanted[api]) for api, entry in seen.items() if entry != (wanted[api] if api not in unknown else [wanted[api][0], None])}
    assert not wrong, f"{len(wrong)} of {len(wanted)} differ; name: (seen, truth): {dict(list(wrong.items())[:8])}" + more
    check_events(document)
    return wanted
