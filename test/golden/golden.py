#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of hand-made snapshots: compared with the golden files, and read by other people's parsers.

    golden.py RENDER METRICS_MD JSON_SCHEMA SOURCE_ROOT [--update]

RENDER prints a page, the next two docs/metrics.md and docs/json.schema.json. --update writes these and the golden
files; look at the difference before committing it. Speaks TAP; what a missing program or module leaves
unchecked is a skip with the package that would bring it.
"""
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from lib import contract, metrics_protobuf

GOLDEN = [
    ("small", "prometheus"), ("small", "openmetrics"), ("small", "dcgm"), ("small", "dcgm49"),
    ("small", "json"), ("small", "json-events"), ("small", "json-by"), ("small", "atop"),
    ("small", "container"), ("small", "container-absent"), ("small", "container-snapshot"), ("small", "node-metrics"), ("small", "node-snapshot"),
    ("small", "table"), ("small", "table-by"), ("small", "table-narrow"), ("small", "table-colour"),
    ("traced", "prometheus"), ("traced", "openmetrics"), ("traced", "json-trace"), ("traced", "json-kernels"), ("traced", "table"), ("traced", "table-narrow"),
    ("traced", "kernels"), ("traced", "kernels-full"), ("traced", "kernels-narrow"), ("traced", "kernels-colour"),
    ("untraced", "prometheus"), ("untraced", "json-trace"), ("untraced", "json-kernels"), ("untraced", "kernels"),
    ("empty", "prometheus"), ("empty", "dcgm"), ("empty", "json"), ("empty", "atop"), ("empty", "table"), ("empty", "table-by"),
    ("empty", "container"), ("empty", "node-snapshot"),
]
EXPOSITIONS = [(fixture, page) for fixture in ("small", "full", "empty") for page in ("prometheus", "dcgm", "dcgm49")]
EXPOSITIONS += [("traced", "prometheus"), ("untraced", "prometheus")]
HISTOGRAM_SUFFIX = r"_(bucket|sum|count)$"
OPENMETRICS = {"prometheus": "openmetrics", "dcgm": "dcgm-openmetrics", "dcgm49": "dcgm49-openmetrics"}

# The metrics that the exporters of containers read, by DCGM's names up to 4.8.
DCGM_CONTRACT = """
    PROF_SM_ACTIVE PROF_SM_OCCUPANCY PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES
    PROF_NVLINK_TX_BYTES PROF_NVLINK_RX_BYTES PROF_GR_ENGINE_ACTIVE DEV_FB_TOTAL DEV_FB_USED DEV_FB_FREE
    DEV_PCIE_LINK_GEN DEV_PCIE_LINK_WIDTH DEV_GPU_TEMP DEV_MEMORY_TEMP DEV_POWER_USAGE DEV_GPU_UTIL
    PROF_PIPE_INT_ACTIVE PROF_PIPE_FP16_ACTIVE PROF_PIPE_FP32_ACTIVE PROF_PIPE_FP64_ACTIVE DEV_CLOCKS_EVENT_REASONS
    DEV_XID_ERRORS DEV_POWER_VIOLATION DEV_THERMAL_VIOLATION DEV_SM_CLOCK DEV_MEM_CLOCK""".split()


class Failure(Exception):
    pass


class Skip(Exception):
    pass


class Suite:
    def __init__(self, render, root):
        self.render_program, self.root = render, root
        self.n = self.failed = 0

    def render(self, fixture, page):
        run = subprocess.run([self.render_program, fixture, page], capture_output=True, check=False)
        if run.returncode != 0:
            raise Failure(run.stderr.decode())
        return run.stdout.decode()  # invalid UTF-8 is a failure of its own

    def case(self, name, check, *args):
        self.n += 1
        try:
            check(self, *args)
        except Skip as why:
            print(f"ok {self.n} - {name} # SKIP {why}")
            print(f"# NOT CHECKED: {name}: {why}", file=sys.stderr)
        except (Failure, UnicodeDecodeError, ValueError) as e:
            self.failed += 1
            print(f"not ok {self.n} - {name}")
            for line in str(e).splitlines()[:40]:
                print(f"# {line}")
        else:
            print(f"ok {self.n} - {name}")


def module(name, package):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError as e:
        raise Skip(f"no Python module {name}: install the package {package}") from e


def normal(text, page):
    """What golden files hold: without our version, and JSON one member a line, its bytes else unchanged."""
    text = re.sub(r'(version="|"version":"|gpusonde )\d+\.\d+\.\d+', r"\1VERSION", text)
    return text.replace(',"', ',\n"') if page.startswith("json") else text


def same(expected, actual, path):
    if expected != actual:
        raise Failure("\n".join(difflib.unified_diff(expected.splitlines(), actual.splitlines(), path, "now", lineterm="", n=1)))


def is_golden(suite, fixture, page, update):
    path = os.path.join(suite.root, "test", "golden", f"{fixture}-{page}.golden")
    text = normal(suite.render(fixture, page), page)
    if update:
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)
    with open(path, encoding="utf-8", newline="") as f:
        same(f.read(), text, path + " (`ninja -C build golden-update` updates it)")


def is_generated(suite, name, command, update):
    path = os.path.join(suite.root, "docs", name)
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    if update:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    with open(path, encoding="utf-8") as f:
        same(f.read(), text, path + " (`ninja -C build golden-update` updates it)")


def promtool_accepts(suite, fixture):
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("no promtool: install the package prometheus")
    run = subprocess.run([promtool, "check", "metrics"], input=suite.render(fixture, "prometheus").encode(),
                         capture_output=True, check=False)
    if run.returncode != 0 or run.stdout or run.stderr:
        raise Failure((run.stdout + run.stderr).decode())


def average_is_found(suite):
    """The expression that docs/metrics.md has for averages, over series with the labels that ours have; a division without more finds nothing."""
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("no promtool: install the package prometheus")
    with open(os.path.join(suite.root, "docs", "metrics.md"), encoding="utf-8") as f:
        expression = re.search(r"```promql\n(.*?)\n```", f.read(), re.S)[1]
    page = suite.render("small", "prometheus")
    busy, observed = (sorted({re.sub(r" \S+$", "", line) for line in page.splitlines() if line.startswith(f"gpusonde_gpu_{name}_seconds_total{{")})
                      for name in ("busy", "observed"))
    if len(busy) < 2 or not observed:
        raise Failure(f"too few series: {busy}, {observed}")
    document = {"evaluation_interval": "1m", "tests": [{
        "interval": "1m",
        "input_series": [{"series": s, "values": "0+15x10"} for s in busy] + [{"series": s, "values": "0+60x10"} for s in observed],
        "promql_expr_test": [{"expr": expression, "eval_time": "10m",
                              "exp_samples": [{"labels": s.removeprefix("gpusonde_gpu_busy_seconds_total"), "value": 0.25} for s in busy]}]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as f:
        json.dump(document, f) # which is YAML, too
        f.flush()
        run = subprocess.run([promtool, "test", "rules", f.name], capture_output=True, check=False)
    if run.returncode != 0:
        raise Failure((run.stdout + run.stderr).decode())


def refuse_duplicates(families):
    found = set()
    for family in families:
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            if key in found:
                raise Failure(f"twice: {key}")
            found.add(key)


def formats_agree(suite, fixture, page):
    """Prometheus's own parsers read both formats, and the samples in them are the same."""
    text = module("prometheus_client.parser", "python3-prometheus-client")
    openmetrics = module("prometheus_client.openmetrics.parser", "python3-prometheus-client")
    old, new = suite.render(fixture, page), suite.render(fixture, OPENMETRICS[page])
    refuse_duplicates(text.text_string_to_metric_families(old))
    refuse_duplicates(openmetrics.text_string_to_metric_families(new))
    same(*("\n".join(line for line in t.splitlines() if not line.startswith("#")) for t in (old, new)), page)


def protobuf_agrees(suite, fixture):
    """The protobuf of /metrics has the text's families and samples, and units where names have them."""
    run = subprocess.run([suite.render_program, fixture, "protobuf"], capture_output=True, check=True)
    families = metrics_protobuf.families(run.stdout)
    text = suite.render(fixture, "prometheus")
    same("\n".join(f"# HELP {name} {words}\n# TYPE {name} {kind}".replace("\\", "\\\\") for name, words, kind, *_ in families),
         "\n".join(line for line in text.splitlines() if line.startswith("#")), "HELP and TYPE")
    found = {key: value for *_, values, _ in families for key, value in values.items()}
    expected = metrics_protobuf.text_samples(text)
    if set(found) != set(expected):
        raise Failure(f"others: {sorted(map(str, set(found) ^ set(expected)))[:6]}")
    for key, value in expected.items():
        if abs(value - found[key]) > 1e-14 * abs(value) and not value != value != found[key]:
            raise Failure(f"{key}: {found[key]}, in text {value}")
    for (name, labels), native in metrics_protobuf.natives(run.stdout).items():
        same(str((native["schema"], native["zero_threshold"], native["sum"])), str((-1, 2 ** -20, found[f"{name}_sum", labels])), f"native {name}")
        same(str(native["zero_count"] + sum(native["buckets"].values())), str(native["count"]), f"all of native {name}")
        for bound in (4.0 ** k for k in range(-10, 3)):
            same(str(metrics_protobuf.within(native, bound)), str(found[f"{name}_bucket", labels | {("le", bound)}]), f"native {name} up to {bound}")
    units = "\n".join(f"# UNIT {name.removesuffix('_total')} {unit}" for name, _, _, unit, _, _ in families if unit)
    same(units, "\n".join(line for line in suite.render(fixture, "openmetrics").splitlines() if line.startswith("# UNIT")), "UNIT")


def families_are_whole(suite, fixture, page):
    """HELP and TYPE once, before the family's samples, which stand together; no empty family."""
    seen, current, empty, kind = set(), None, False, None
    for line in suite.render(fixture, page).splitlines():
        if line.startswith("# HELP "):
            if empty:
                raise Failure(f"no sample: {current}")
            current, empty = line.split()[2], True
            if current in seen:
                raise Failure(f"twice: {current}")
            seen.add(current)
        elif line.startswith("# TYPE "):
            kind = line.split()[3]
            if line.split()[2] != current:
                raise Failure(f"TYPE away from its HELP: {line}")
        elif not line.startswith("#"):
            empty = False
            if re.sub(HISTOGRAM_SUFFIX if kind == "histogram" else "$", "", re.split(r"[{ ]", line, maxsplit=1)[0]) != current:
                raise Failure(f"outside its family: {line}")


def dcgm_contract(suite):
    page = suite.render("full", "dcgm")
    missing = [name for name in DCGM_CONTRACT if f"\nDCGM_FI_{name}{{" not in page]
    if missing:
        raise Failure("missing: " + " ".join(missing))


def dcgm_names_differ(suite):
    """A dashboard that was moved to 4.9 must not find an old name that changed its unit."""
    names = [set(re.findall(r"^# TYPE (\S+)", suite.render("full", page), re.M)) for page in ("dcgm", "dcgm49")]
    # DCGM's renaming left the fields of each link out.
    names[0] = {n for n in names[0] if not re.search(r"_NVLINK_BANDWIDTH_L\d+$", n)}
    if len(names[0]) != len(names[1]):
        raise Failure(f"{len(names[0])} names up to 4.8, {len(names[1])} from 4.9")
    changed = [n for n in names[0] & names[1] if re.search(r"_(CLOCK|UTIL|FB_\w+|ENERGY\w*)$", n)]
    if changed:
        raise Failure("same name in both: " + " ".join(changed))


def strict(schema):
    """The published schema lets later releases add members; what this one prints, it must define."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        schema["additionalProperties"] = False
    return schema


def validator(suite):
    jsonschema = module("jsonschema", "python3-jsonschema")
    with open(os.path.join(suite.root, "docs", "json.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(strict(schema))


def schema_accepts(suite, fixture):
    check = validator(suite)
    for document in (suite.render(fixture, "json") + suite.render(fixture, "json-parts")).splitlines():
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in check.iter_errors(json.loads(document))]
        if errors:
            raise Failure("\n".join(errors[:20]))


def schema_refuses(suite):
    """A schema that accepts anything documents nothing."""
    check = validator(suite)

    def break_it(change, fixture="small", page="json"):
        document = json.loads(suite.render(fixture, page))
        change(document)
        if check.is_valid(document):
            raise Failure("the schema accepts a broken document")

    break_it(lambda d: d.pop("time"))
    break_it(lambda d: d["gpus"][0].update(uuid=None))
    break_it(lambda d: d["gpus"][0].update(power_watts="412 W"))
    break_it(lambda d: d["gpus"][0].update(surprise=1))
    break_it(lambda d: d["gpus"][0]["utilization_ratio"].pop("gpu"))
    break_it(lambda d: d["processes"][0].update(memory_bytes=[]))
    break_it(lambda d: d["node"].update(state="fine"))
    break_it(lambda d: d.update(schema="gpusonde/v2"))
    for change in (lambda d: d["processes"][0]["cuda"].pop("launches_total"),
                   lambda d: d["traced"][0].update(pid=None),
                   lambda d: d["trace"].pop("enabled"),
                   lambda d: d["trace"]["processes"][0]["incomplete"].append("tired"),
                   lambda d: d["trace"]["processes"][0]["calls"][1]["errors"].update(ENOMEM=1),
                   lambda d: d["trace"]["processes"][0]["devices"][0].update(memory_bytes=1),
                   lambda d: d["trace"]["calls"][0].update(surprise=1)):
        break_it(change, "traced", "json-trace")
    for change in (lambda d: d["kernels"]["processes"][0]["kernels"][0].update(source="guessed"),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0].update(occupancy_limiter="luck"),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0].update(registers=-1),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0].pop("constant_bytes"),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0].pop("launches_total"),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0]["shapes"][0].update(grid=[1, 1]),
                   lambda d: d["kernels"]["processes"][0]["kernels"][0].update(arch="90"),
                   lambda d: d["kernels"]["devices"][0].update(memory_bytes={})):
        break_it(change, "traced", "json-kernels")
    for change in (lambda d: d["events"][0].update(origin="luck"), lambda d: d["events"][0].update(sources=[]),
                   lambda d: d["events"][1].pop("text"), lambda d: d.update(events_left_out=-1)):
        break_it(change, "small", "json-events")


def json_numbers_are_short(suite):
    digits = [n for n in re.findall(r"-?\d+\.\d+", suite.render("full", "json")) if len(n.strip("-0.").replace(".", "")) > 15]
    if digits:
        raise Failure(f"more than 15 digits: {digits[:5]}")


def one_number_everywhere(suite):
    """Every GPU series of the Prometheus page is in the JSON, digit for digit."""
    gpus = json.loads(suite.render("full", "json"), parse_float=str, parse_int=str)["gpus"]
    seen = 0
    for line in suite.render("full", "prometheus").splitlines():
        match = re.fullmatch(r'gpusonde_gpu_(\w+)\{gpu="(\d+)",uuid="[^"]*"(.*)\} (\S+)', line)
        if not match or match[1] in ("info", "present", "stale", "sample_age_seconds", "processes_busy_seconds_total"):
            continue
        if match[1] == "xid_reports_total":
            severity = re.search('severity="(.*)"', match[3])[1]
            reports = sum(int(xid["count"]) for xid in gpus[int(match[2])]["xids"] if xid["severity"] == severity)
            if reports != int(match[4]):
                raise Failure(f"{line}: {reports} in JSON")
            continue
        if match[1] == "status": # JSON has what it is made of
            gpu = gpus[int(match[2])]
            is_ok = gpu["present"] and not gpu["warnings"]
            if 'state="ok"' in match[3] and is_ok != (match[4] == "1"):
                raise Failure(f"{line}: present {gpu['present']}, warnings {gpu['warnings']} in JSON")
            continue
        value = gpus[int(match[2])][match[1]]
        for label, key in re.findall(r',(\w+)="([^"]*)"', match[3]):
            value = value[int(key) if label in ("link", "fan") else key]
        seen += 1
        # jansson writes e-5 where printf() writes e-05.
        if value != re.sub(r"e([+-])0", r"e\1", match[4]):
            raise Failure(f"{line}: {value} in JSON")
    if seen < 5000:
        raise Failure(f"only {seen} series compared")


def traced_number_everywhere(suite):
    """Every series of a traced process is in the JSON, where the process stands among the others."""
    document = json.loads(suite.render("traced", "json-trace"), parse_float=str, parse_int=str)
    found, seen = {}, 0
    for process in document["processes"] + document["traced"]:
        found[tuple(process[key] for key in ("pid", "gpu", "gi", "ci"))] = process["cuda"]
    for line in suite.render("traced", "prometheus").splitlines():
        match = re.fullmatch(r'gpusonde_process_cuda_(\w+)\{(.*)\} (\S+)', line)
        if not match or match[1] in ("estimated", "incomplete", "device_unknown") or 'pid="other"' in line:
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', re.sub(r'comm="(?:[^"\\]|\\.)*"', "", match[2])))
        value = found[tuple(labels.get(key) for key in ("pid", "gpu", "gi", "ci"))][match[1]]
        seen += 1
        if (value[labels["kind"]] if "kind" in labels else value) != match[3]:
            raise Failure(f"{line}: {value} in JSON")
    if seen < 60:
        raise Failure(f"only {seen} series compared")


def kernel_number_everywhere(suite):
    """Every series of a kernel has its entry in the JSON, and none is more than all that was launched."""
    document = json.loads(suite.render("traced", "json-kernels"))
    found, seen = {}, 0
    for process in document["kernels"]["processes"]:
        for kernel in process["kernels"]:
            found.setdefault((process["pid"], kernel["uuid"] is not None, kernel["id"]), []).append(kernel)
    for line in suite.render("traced", "prometheus").splitlines():
        match = re.fullmatch(r'gpusonde_kernel_(\w+)\{(.*)\} (\S+)', line)
        if not match or match[1] == "estimated" or 'pid="other"' in line:
            continue
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
        kernels = found[int(labels["pid"]), "uuid" in labels, labels["id"]]
        value = [kernel[match[1]] for kernel in kernels]
        if "class" in labels:
            value = [v[labels["class"]] for v in value]
        seen += 1
        if float(match[3]) != value[0] if not match[1].endswith("_total") else float(match[3]) > sum(value):
            raise Failure(f"{line}: {value} in JSON")
        if "limiter" in labels and labels["limiter"] != kernels[0]["occupancy_limiter"]:
            raise Failure(f"{line}: {kernels[0]['occupancy_limiter']} in JSON")
    if seen < 40:
        raise Failure(f"only {seen} series compared")


def container_contract(suite, fixture, page):
    """What a reference encoder, written from the contract, makes of the same rows."""
    # Bytes that are no UTF-8 are in hand-made snapshots alone: the model has made them valid.
    text = suite.render(fixture, page).replace("\\ufffd", "\ufffd")
    try:
        contract.check_page(text.encode(), page == "container-absent")
    except AssertionError as e:
        raise Failure(str(e)) from e


def terminals_are_safe(suite, fixture, page):
    bad = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", suite.render(fixture, page))
    if bad:
        raise Failure(f"control characters reach the terminal: {bad}")


def narrow_is_narrow(suite, fixture):
    wide = [line for line in suite.render(fixture, "table-narrow").splitlines() if len(line) > 80]
    if wide:
        raise Failure("\n".join(wide))


def main():
    update = "--update" in sys.argv[1:]
    render, metrics_md, json_schema, root = [a for a in sys.argv[1:] if a != "--update"]
    skeleton = os.path.join(root, "test", "golden", "json.schema.skeleton.json")
    suite = Suite(render, root)
    suite.case("docs/metrics.md is what the tables say", is_generated, "metrics.md", [metrics_md], update)
    suite.case("docs/json.schema.json is what the tables say", is_generated, "json.schema.json", [json_schema, skeleton], update)
    for fixture, page in GOLDEN:
        suite.case(f"golden {fixture} {page}", is_golden, fixture, page, update)
    for fixture in ("small", "full", "empty", "traced", "untraced"):
        suite.case(f"promtool check metrics, {fixture}", promtool_accepts, fixture)
        suite.case(f"JSON schema accepts {fixture}", schema_accepts, fixture)
    for fixture in ("small", "full", "empty", "traced", "untraced"):
        suite.case(f"protobuf says what the text says, {fixture}", protobuf_agrees, fixture)
    for fixture, page in EXPOSITIONS:
        suite.case(f"both formats of {page} say the same, {fixture}", formats_agree, fixture, page)
        suite.case(f"families of {page} are whole, {fixture}", families_are_whole, fixture, page)
    suite.case("the expression of docs/metrics.md for averages", average_is_found)
    suite.case("the DCGM metrics that others read are all there", dcgm_contract)
    suite.case("names of DCGM 4.9 are not those before", dcgm_names_differ)
    suite.case("JSON schema refuses broken documents", schema_refuses)
    suite.case("JSON numbers have at most 15 digits", json_numbers_are_short)
    suite.case("JSON and Prometheus have the same numbers", one_number_everywhere)
    suite.case("JSON and Prometheus have the same numbers of traced processes", traced_number_everywhere)
    suite.case("JSON and Prometheus have the same numbers of kernels", kernel_number_everywhere)
    for fixture in ("small", "full", "empty"):
        for page in ("container", "container-absent"):
            suite.case(f"{page} is as its contract says, {fixture}", container_contract, fixture, page)
    for page in ("kernels", "kernels-full", "kernels-narrow"):
        suite.case(f"tables carry no control characters, {page}", terminals_are_safe, "traced", page)
    for fixture in ("small", "traced"):
        suite.case(f"tables carry no control characters, {fixture}", terminals_are_safe, fixture, "table")
        suite.case(f"tables of 80 columns have 80 columns, {fixture}", narrow_is_narrow, fixture)
    print(f"1..{suite.n}")
    return 1 if suite.failed else 0


sys.exit(main())
