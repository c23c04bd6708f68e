# SPDX-License-Identifier: Apache-2.0
"""The contract of GET /container/metrics, written from its description and not from our code: what a page must be, byte by byte.

encode() writes rows as Go's encoding/json does with SetIndent("", "  "); a page of ours that is decoded and encoded again must be the
same bytes. check_page() says what is wrong with one.
"""
import datetime
import json
import math
import re

STRINGS = ["node_name", "model_name", "device", "device_id", "device_uuid", "mig_profile", "mig_instance_id", "pod", "container",
           "namespace", "workload_name", "workload_kind"]
OMITTED_IF_EMPTY = {"mig_profile", "mig_instance_id", "workload_name", "workload_kind"}
METRICS = ["sm_active", "sm_occupancy", "tensor_active", "dram_active", "pcie_tx_bytes", "pcie_rx_bytes", "nvlink_tx_bytes",
           "nvlink_rx_bytes", "graphics_engine_active", "framebuffer_total", "framebuffer_used", "framebuffer_free", "pcie_link_gen",
           "pcie_link_width", "temperature", "memory_temperature", "power_usage", "gpu_utilization", "int_pipe_active",
           "fp16_pipe_active", "fp32_pipe_active", "fp64_pipe_active", "clocks_event_reasons", "xid_errors", "power_violation",
           "thermal_violation", "sm_clock", "mem_clock"]
MEMBERS = STRINGS + METRICS + ["timestamp"]
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def text(value):
    out = ""
    for c in value:
        if c in ESCAPES:
            out += ESCAPES[c]
        elif c < " " or c in "<>&\u2028\u2029":
            out += f"\\u{ord(c):04x}"
        else:
            out += c
    return f'"{out}"'


def number(value):
    """The fewest digits that are read as the same number; an exponent below 1e-6 and from 1e21 on."""
    value = float(value)
    if not math.isfinite(value):
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + ("" if fraction == "0" else fraction)).lstrip("0")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    point = len(whole) - leading + int(exponent or 0) # of 0.DIGITS
    digits = digits.rstrip("0")
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not digits:
        return sign + "0"
    if not 1e-6 <= abs(value) < 1e21:
        more = "." + digits[1:] if digits[1:] else ""
        return f"{sign}{digits[0]}{more}e{'-' if point < 1 else '+'}{abs(point - 1)}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def value(member, v):
    if v is None:
        return "null"
    return number(v) if member in METRICS else text(v)


def encode(rows):
    if not rows:
        return b"[]\n"
    objects = []
    for row in rows:
        lines = [f"    {text(m)}: {value(m, row[m])}" for m in MEMBERS if not (m in OMITTED_IF_EMPTY and not row.get(m))]
        objects.append("  {\n" + ",\n".join(lines) + "\n  }")
    return ("[\n" + ",\n".join(objects) + "\n]\n").encode()


def order(row):
    def numeric(t):
        return (t != "", not t.isdigit(), int(t) if t.isdigit() else 0, t)
    return (numeric(row["device_id"]), numeric(row.get("mig_instance_id", "")), row["namespace"].encode(), row["pod"].encode(), row["container"].encode())


def time_of(row):
    """Seconds since 1970, of an RFC 3339 time in UTC with as many decimals as it needs."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z", row["timestamp"]), row["timestamp"]
    whole, _, fraction = row["timestamp"][:-1].partition(".")
    when = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    return when.timestamp() + float("0." + (fraction or "0"))


def check_page(page, absent_null=False):
    """The rows of @page, which is bytes; fails where they are not as they must be."""
    rows = json.loads(page, parse_int=float)
    assert isinstance(rows, list), rows
    for row in rows:
        wanted = [m for m in MEMBERS if m in row or m not in OMITTED_IF_EMPTY]
        assert list(row) == wanted, f"members {list(row)}, not {wanted}"
        for m in STRINGS:
            assert isinstance(row.get(m, ""), str), (m, row[m])
            assert m not in OMITTED_IF_EMPTY or row.get(m) != "", m
        for m in METRICS:
            assert isinstance(row[m], float) or (absent_null and row[m] is None), (m, row[m])
        time_of(row)
    keys = [order(row) for row in rows]
    assert keys == sorted(keys), keys
    again = encode(rows)
    assert page == again, f"{page!r}\nis not\n{again!r}"
    return rows
