#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""outputs.py SCHEMA OUTPUT: the output schemas of the tools, as rows OUTPUT(tool, text), of docs/json.schema.json, whose members are those of the tables of metrics.

Descriptions are left out: an assistant may have all of it in its context. What --columns may leave out is not required.
"""
import json
import sys

FIRST = ["schema", "time", "simulated", "error"]
TEXT, FLAG, NUMBER, COUNT = {"type": "string"}, {"type": "boolean"}, {"type": ["number", "null"]}, {"type": "integer", "minimum": 0}
WORD = {"type": ["string", "null"]}


def rows(*required, **members):
    return {"type": "array", "items": {"type": "object", "properties": members, "required": list(required)}}


FINDINGS = {
    "findings": rows("finding", "title", "remedy", finding=TEXT, id=NUMBER, caused_by=NUMBER, title=TEXT, active=FLAG, node=WORD, pid=NUMBER, device=WORD, subject=WORD, confidence=NUMBER,
                     evidence={"type": "object"}, surer_with={"type": "array", "items": TEXT}, remedy=TEXT, timeline={"type": "object"}, stacks={"type": "array"}),
    "rules": rows("finding", "judged", finding=TEXT, judged=FLAG, active=COUNT, missing_evidence={"type": "array", "items": TEXT}),
    "events": COUNT, "events_out_of_order": COUNT, "beyond_limits": COUNT,
}
# Documents that have no schema of their own: what they always have.
OTHERS = {
    "findings": FINDINGS,
    "analyze_timeline": FINDINGS,
    "health": {"schema": {"const": "gpusonde-doctor/v1"}, "version": TEXT, "ok": FLAG, "checks": rows("check", "verdict", "text", check=TEXT, verdict=TEXT, text=TEXT, remedy=TEXT)},
    "report": {"schema": {"const": "gpusonde/report/v1"}, "simulated": FLAG, "hostname": TEXT, "first": WORD, "last": WORD, "snapshots": COUNT, "recorded_seconds": NUMBER,
               "missing_seconds": NUMBER, "left_out": COUNT, "price_of_kwh": NUMBER, "currency": WORD,
               **{name: {"type": "array", "items": {"type": "object"}} for name in ("gpus", "who")},
               **{name: {"type": ["array", "null"], "items": {"type": "object"}} for name in ("xids", "calls", "collectives", "kernels", "operators", "findings")}},
}
# Parts of the schema: members that are always there, and others.
PAGES = {"gpus": (["gpus"], ["replay"]), "processes": ([], ["replay", "processes", "traced", "traced_left_out", "allocations", "by", "groups", "left_out"])}


def bare(value, without):
    """Without descriptions, and, but for names of members, the keys @without."""
    if isinstance(value, list):
        return [bare(one, without) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key not in without or not isinstance(one, (str, list, int))}
    return {key: {name: bare(one, without) for name, one in member.items()} if key in ("properties", "$defs") else bare(member, without) for key, member in kept.items()}


def named(value, defs, found):
    """The definitions that are referred to, and those that these refer to."""
    if isinstance(value, dict):
        name = str(value.get("$ref", "")).removeprefix("#/$defs/")
        if name and name not in found:
            found.add(name)
            named(defs[name], defs, found)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        named(one, defs, found)
    return found


def with_definitions(root, defs):
    used = sorted(named(root, defs, set()))
    return {**root, "$defs": {name: defs[name] for name in used}} if used else root


def outputs(schema):
    """Tool -> schema."""
    parts = bare(schema, ("description", "title", "required", "additionalProperties"))
    for tool, (always, others) in PAGES.items():
        members = {name: parts["properties"][name] for name in FIRST + always + others}
        yield tool, with_definitions({"type": "object", "properties": members, "required": FIRST + always}, parts["$defs"])
    whole = bare(schema, ("description", "title"))
    yield "explain", with_definitions(whole["$defs"]["explain"], whole["$defs"])
    for tool, members in OTHERS.items():
        yield tool, {"type": "object", "properties": members, "required": list(members)}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        schema = json.load(f)
    with open(sys.argv[2], "w", encoding="ascii") as f:
        for tool, output in outputs(schema):
            f.write(f'OUTPUT("{tool}", {json.dumps(json.dumps(output, separators=(",", ":")))})\n')


if __name__ == "__main__":
    main()
