#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house, as tests: each rule runs over the tree, and over a sample that breaks it.

    style.py SOURCE_ROOT BUILD_ROOT

Speaks TAP. A rule is a function that takes a Tree and yields Violation; it is listed in RULES with one
or more samples (a path and its text) that it must reject, because a check that cannot fail checks nothing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

SPDX = "SPDX-License-Identifier: Apache-2.0"
FILE_LINES = 800
HEADER_LINES = 250
FUNCTION_LINES = 80
COLUMNS = 110   # as .clang-format says; a tab goes to the next multiple of 8
SAME_STATIC = 3 # files of src/ that may have a static function of one name: what stands in more, grep does not find

# The pairs of folders on one layer that may include each other's headers, as (from, to). A row here needs
# its reason in ARCHITECTURE.md, whose table of layers says all the rest.
SIDEWAYS = {("activity", "bpf"), ("cdi", "model"), ("exposition", "model"), ("net", "model"), ("plugin", "model"), ("plugin_socket", "helper"), ("plugin_socket", "model"), ("trace", "proc"),
            ("python", "proc"), ("unwind", "proc"), ("inference", "proc"), ("symbolize", "proc"), ("symbolize", "cubin")}
GENERATED = {"config.h", "kubelet/pod.pb-c.h", "kubelet/pod_resources.pb-c.h", "push/metrics.pb-c.h", "push/otlp.pb-c.h", "push/remote_write.pb-c.h", "bpf/trace_multi.h", "bpf/trace_event.h", "bpf/trace_event_old.h",
             "view/profile.pb-c.h", "view/stacks_page_head.inc", "view/stacks_page_tail.inc", "page/assets.inc", "cmd/mcp_outputs.inc"}

# Started by people, without meson's PYTHONPATH: these may edit sys.path.
IMPORT_PATH = ("bench/run.py", "test/gpu/shared.py")

# Where somebody happens to keep a checkout, and what lies beside it, has no place in a repository.
WORKPLACE = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm)/|\.\./shared/")

Violation = namedtuple("Violation", "path line what remedy")


class Tree:
    """The files of a checkout, read once; paths are relative to its root."""

    def __init__(self, root, build=None):
        self.root = root
        self.build = build
        self.texts = {}
        for path in self.listed(root):
            try:
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    self.texts[path] = f.read()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue    # binary, or listed but deleted

    @staticmethod
    def listed(root):
        """What git knows or would add; without git or its folder, all but build folders."""
        if os.path.exists(os.path.join(root, ".git")) and shutil.which("git"):
            # As root in somebody else's checkout git refuses to answer unless told that it is fine.
            git = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", root, "ls-files", "-z", "--cached",
                                  "--others", "--exclude-standard"], capture_output=True, check=False)
            if git.returncode == 0:
                return sorted(os.fsdecode(p) for p in git.stdout.split(b"\0") if p)
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [d for d in folders if not d.startswith("build") and d not in (".git", "__pycache__")]
            found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
        return sorted(found)

    def select(self, *endings):
        for path, text in self.texts.items():
            if path.endswith(endings):
                yield path, text.split("\n")


def numbered(lines):
    return enumerate(lines, start=1)


def spdx_first(tree):
    for path, lines in tree.select(".c", ".h", ".def"):
        if lines[0] != f"// {SPDX}":
            yield Violation(path, 1, "no SPDX line", f'begin the file with "// {SPDX}"')
    for path, lines in tree.select(".py", ".sh", "meson.build", "meson_options.txt", "Makefile"):
        if f"# {SPDX}" not in lines[:2]:
            yield Violation(path, 1, "no SPDX line", f'begin the file (after #!) with "# {SPDX}"')


def trailing_space(tree):
    for path, lines in tree.select(".c", ".h", ".def", ".py", ".sh", "meson.build", "Makefile", ".md", ".yaml"):
        for n, line in numbered(lines):
            if line != line.rstrip():
                yield Violation(path, n, "trailing white space", "remove it")
        if len(lines) < 2 or lines[-1] != "" or (len(lines) > 2 and lines[-2] == ""):
            yield Violation(path, len(lines), "does not end with exactly one newline", "end it so")


def tabs_indent(tree):
    """Tabs of 8; spaces only to align, fewer than 8 of them, after the tabs."""
    for path, lines in tree.select(".c", ".h"):
        before = ""
        for n, line in numbered(lines):
            lead = line[:len(line) - len(line.lstrip())]
            text = line.strip()
            aligned = text.startswith("*") or (before and before[-1] not in "{};:")
            if text == "\\":
                continue    # an empty line of a macro
            if " \t" in lead or " " * 8 in lead or (lead.startswith(" ") and text and not aligned):
                yield Violation(path, n, "indented with spaces", "indent with tabs; run make format")
            before = text or before


def pragma_once(tree):
    for path, lines in tree.select(".h"):
        if "#pragma once" not in lines:
            yield Violation(path, 1, "no #pragma once", "put it after the opening comment")


def no_typedef_struct(tree):
    for path, lines in tree.select(".c", ".h", ".def"):
        for n, line in numbered(lines):
            if re.search(r"\btypedef\s+struct\b", line):
                yield Violation(path, n, "typedef of a struct", "write struct NAME wherever it is used")


def file_size(tree):
    for path, lines in tree.select(".c", ".h"):
        limit = HEADER_LINES if path.endswith(".h") else FILE_LINES
        if len(lines) - 1 > limit:
            yield Violation(path, limit, f"{len(lines) - 1} lines, more than {limit}", "split it where its subject changes")


def columns(tree):
    for path, lines in tree.select(".c", ".h", ".def", ".S"):
        for n, line in numbered(lines):
            wide = len(line.expandtabs(8))
            if wide > COLUMNS:
                yield Violation(path, n, f"{wide} columns, more than {COLUMNS}",
                                "run make format; break comments between words, and strings into literals that stand side by side")


def struct_tags(tree):
    """A tag means one thing in the library that a folder of src/ or a room of sim/ becomes."""
    seen = {}
    for path, lines in tree.select(".c", ".h", ".def"):
        if not path.startswith(("src/", "sim/")):
            continue
        library = "/".join(path.split("/")[:2])
        for n, line in numbered(lines):
            m = re.match(r"\s*(?:(?:static|const)\s+)*(struct|union|enum)\s+(\w+)\s*\{", line)
            if m:
                seen.setdefault((library, f"{m[1]} {m[2]}"), []).append((path, n))
    for (library, tag), places in seen.items():
        for path, n in places if len(places) > 1 else ():
            yield Violation(path, n, f"{tag} is defined {len(places)} times in {library}", "give each a name of its own")


def static_functions(lines):
    """(line, name) of each that is defined."""
    for n, line in numbered(lines):
        m = re.match(r"(?:__attribute__\S* )?static\b[^;=(]*?\b(\w+)\(", line)
        if m:
            end = next((after for after in lines[n - 1:] if after in ("{", "}") or after.endswith(";")), "")
            if end == "{":
                yield n, m[1]


def static_names(tree):
    where = {}
    for path, lines in tree.select(".c", ".h"):
        if path.startswith("src/"):
            for n, name in static_functions(lines):
                where.setdefault(name, {}).setdefault(path, n)
    for name, files in where.items():
        for path, n in files.items() if len(files) > SAME_STATIC else ():
            yield Violation(path, n, f"{name}() is the name of a static function in {len(files)} files, more than {SAME_STATIC}",
                            "say whose it is or what it does it to, as in stream_begin() or read_header()")


def function_size(tree):
    """Between a brace in the first column and the one that closes it, as kernel formatting has it."""
    for path, lines in tree.select(".c", ".h"):
        begin = None
        for n, line in numbered(lines):
            if line == "{":
                begin = n
            elif line.startswith("}") and begin:
                if n - begin - 1 > FUNCTION_LINES:
                    yield Violation(path, begin, f"a function of {n - begin - 1} lines, more than {FUNCTION_LINES}",
                                    "give a part of it a name of its own")
                begin = None


def includes(tree, folder):
    for path, lines in tree.select(".c", ".h", ".def"):
        if path.startswith(folder + "/"):
            for n, line in numbered(lines):
                m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if m:
                    yield path, n, m[1]


LAYER_ROW = re.compile(r"\|\s*(?:L(\d)|\u2013)\s*\|\s*`(?:src/)?([\w/]+)`\s*\|[^|]*\|\s*([^|]+?)\s*\|")


def path_start(word):
    """How the paths begin that a word of the table allows: "base", "sim/cuda/abi.h", "nvml/abi*.h"."""
    return word.split("*")[0] if "*" in word else word if word.endswith(".h") else word + "/"


def house(tree):
    """ARCHITECTURE.md's table of layers: folder -> (line, layer, how the paths begin that it may include)."""
    rows = {}
    for n, line in numbered(tree.texts.get("ARCHITECTURE.md", "").split("\n")):
        m = LAYER_ROW.match(line)
        if m:
            words = re.findall(r"[\w/*.]+", m[3].replace("nothing of ours", ""))
            rows[m[2]] = (n, int(m[1]) if m[1] else None, words)
    for folder, (n, layer, words) in rows.items():
        if words == ["all"]:
            words = [f for f, (_, l, _) in rows.items() if l is not None and l < layer]
        rows[folder] = (n, layer, tuple(map(path_start, words)))
    return rows


def layering(tree):
    rows = house(tree)
    if not rows:
        yield Violation("ARCHITECTURE.md", 1, "has no table of layers", "give it the columns layer, folder, what, may include")
    for folder, (n, layer, allowed) in rows.items():
        for there in (a.split("/")[0] for a in allowed):
            if layer is not None and rows.get(there, (0, 9))[1] >= layer and (folder, there) not in SIDEWAYS:
                yield Violation("ARCHITECTURE.md", n, f"lets {folder} include {there}, which is not below it",
                                "includes go down; an exception is a row in SIDEWAYS of test/style/style.py")
    for path, n, header in includes(tree, "src"):
        here = path.split("/")[1]
        if header in GENERATED:
            continue
        if "/" not in header or f"src/{header}" not in tree.texts:
            yield Violation(path, n, f'"{header}" names no file below src/', 'write it so, as in "base/log.h"')
        elif here not in rows:
            yield Violation(path, n, f"src/{here} has no layer", "add it to the table in ARCHITECTURE.md")
        elif not header.startswith((here + "/", *rows[here][2])):
            yield Violation(path, n, f"{here} includes {header}, which ARCHITECTURE.md does not allow",
                            "move what is shared down, or let cmd/ pass it in")
    yield from components_of_sim(tree, rows)


def components_of_sim(tree, rows):
    for path, n, header in includes(tree, "sim"):
        room = path.rsplit("/", 1)[0]
        if header in GENERATED:
            continue
        if f"src/{header}" not in tree.texts and (header not in tree.texts or not header.startswith("sim/")):
            yield Violation(path, n, f'"{header}" names no file below src/, nor one of sim/',
                            'write it so, as in "base/log.h" or "sim/node/node.h"')
        elif room not in rows:
            yield Violation(path, n, f"{room} is no room of sim/", "add it to the table in ARCHITECTURE.md")
        elif not header.startswith((room + "/", *rows[room][2])):
            yield Violation(path, n, f"{room} includes {header}, which ARCHITECTURE.md does not allow",
                            "the simulated driver stands apart from what it tests, and its components build on each other")


def first_includes(tree):
    """(file of C code, line number, what it includes first, its own header) of those that have a header of their own."""
    for path, lines in tree.select(".c"):
        own = path.removeprefix("src/")[:-1] + "h"
        if not path.startswith(("src/", "sim/")) or path[:-1] + "h" not in tree.texts:
            continue
        for n, line in numbered(lines):
            m = re.match(r"\s*#\s*include\s+[<\"]([^>\"]+)", line)
            if m:
                yield path, n, m[1], own
                break


def own_header_first(tree):
    """Or the folder's private.h, which includes what its files share."""
    for path, n, first, own in first_includes(tree):
        if first not in (own, own.rsplit("/", 1)[0] + "/private.h"):
            yield Violation(path, n, "its own header is not included first",
                            f'begin with #include "{own}", which proves that it stands alone')


def headers_alone(tree):
    """Every header of ours is a translation unit of its own. Those that a file of C code includes first are, or that would not compile."""
    proven = {path[:-1] + "h" for path, _, first, own in first_includes(tree) if first == own}
    flags = ["-fsyntax-only", "-x", "c", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-function", f"-I{tree.root}/src", f"-I{tree.root}"]
    if tree.build:
        flags.append(f"-I{tree.build}/src")
    machine = {"x86_64": "x86", "aarch64": "arm64"}.get(os.uname().machine, "x86")
    # As src/bpf/meson.build does; asm/ is where Debian keeps it.
    kernel = ["clang", "-target", "bpf", f"-D__TARGET_ARCH_{machine}", "-idirafter", f"/usr/include/{os.uname().machine}-linux-gnu"]

    def compile_alone(path):
        compiler = kernel if path.startswith("src/bpf/") else [os.environ.get("CC", "gcc")]
        with tempfile.NamedTemporaryFile("w", suffix=".c") as unit:
            unit.write(f'#include "{os.path.join(tree.root, path)}"\n')
            unit.flush()
            folder = os.path.dirname(os.path.join(tree.root, path))
            return path, subprocess.run([*compiler, *flags, f"-I{folder}", f"-I{tree.root}/test/unit", unit.name],
                                        capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, gcc in pool.map(compile_alone, [path for path, _ in tree.select(".h") if path not in proven]):
            if gcc.returncode != 0:
                errors = [e for e in gcc.stderr.splitlines() if "error:" in e] or gcc.stderr.splitlines()[:1]
                where = re.search(r":(\d+):\d+: ", errors[0])
                yield Violation(path, int(where[1]) if where else 1, "does not compile alone: " + errors[0].split("error: ")[-1],
                                "include what it uses")


def import_path(tree):
    """test/meson.build sets PYTHONPATH for tests; what people start by itself is in IMPORT_PATH."""
    for path, text in tree.texts.items():
        if path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
            for n, line in numbered(text.split("\n")):
                if re.match(r"\s*sys\.path\b", line) and path not in IMPORT_PATH:
                    yield Violation(path, n, "edits sys.path", "move what is shared to test/lib, and import it as lib")


def no_workplace(tree):
    for path, text in tree.texts.items():
        for n, line in numbered(text.split("\n")):
            if WORKPLACE.search(line):
                yield Violation(path, n, "a path outside the repository",
                                "write it relative to the repository, or take it from an argument")


NAMED_FILE = re.compile(r"`((?:src|sim|test|docs|bench|man)/[\w./-]+\.\w+)`")
NAMED_FUNCTION = re.compile(r"`(\w+)\(\)`")


def documents_name_what_exists(tree):
    """Files named in the documents for those who work on it, and functions named on a line with files of C."""
    for path, lines in tree.select(".md"):
        if not path.startswith("docs/internals/") and path != "docs/adding.md":
            continue
        for n, line in numbered(lines):
            files = NAMED_FILE.findall(line)
            for missing in (f for f in files if f not in tree.texts):
                yield Violation(path, n, f"{missing} does not exist", "name the file that has this now")
            code = [tree.texts[f] for f in files if f in tree.texts and f.endswith((".c", ".h"))]
            for function in NAMED_FUNCTION.findall(line) if code else []:
                if not any(re.search(rf"^[^\s#/*].*\b{function}\(", text, re.M) for text in code):
                    yield Violation(path, n, f"{function}() is in none of {', '.join(files)}", "name the function that does this now")


C = f"// {SPDX}\n"
LAYER_TABLE = """
| layer | folder | what it is | may include |
| --- | --- | --- | --- |
| L0 | `src/base` | strings | nothing of ours |
| L1 | `src/model` | numbers | base |
| L2 | `src/nvml` | source | base, model |
| L2 | `src/view` | views | base, model |
| L3 | `src/cmd` | commands | all |
| \u2013 | `sim/scenario` | files | base |
| \u2013 | `sim/nvml` | driver | base, `nvml/abi*.h`, `sim/scenario` |
| \u2013 | `sim/workload` | programs | base, `sim/nvml/tally.h` |
"""
RULES = [
    (spdx_first, [("src/base/a.c", "int a;\n"), ("src/base/a.h", f"/* {SPDX} */\n"), ("src/meson.build", "x\n")]),
    (trailing_space, [("src/base/a.c", C + "int a; \n"), ("README.md", "no newline"), ("README.md", "two\n\n")]),
    (tabs_indent, [("src/base/a.c", C + "int f(void)\n{\n    return 0;\n}\n"),
                   ("src/base/a.c", C + "int f(void)\n{\n        return 0;\n}\n"),
                   ("src/base/a.c", C + "int f(void)\n{\n \treturn 0;\n}\n")]),
    (pragma_once, [("src/base/a.h", C + "int a(void);\n")]),
    (no_typedef_struct, [("src/base/a.h", C + "#pragma once\ntypedef struct gpu gpu_t;\n")]),
    (file_size, [("src/base/a.c", C + "int a;\n" * FILE_LINES), ("src/base/a.h", C + "#pragma once\n" + "int a;\n" * HEADER_LINES)]),
    (columns, [("src/base/a.c", C + "\tint " + "a" * (COLUMNS - 12) + ";\n"), ("src/base/a.def", C + "ROW(" + "a" * COLUMNS + ")\n"),
               ("test/unit/a.h", C + "#pragma once\n/* " + "a " * (COLUMNS // 2) + "*/\n")]),
    (struct_tags, [("src/base/a.c", C + "struct entry {\n\tint a;\n};\n"), ("src/base/a.h", C + "#pragma once\nenum state { A, B };\n"),
                   ("src/base/a.c", C + "struct a {\n\tunion {\n\t\tint a;\n\t\tstruct entry {\n\t\t\tint b;\n\t\t} b;\n\t} u;\n};\n")]),
    (static_names, [("src/model/a.c", C + "static int begin(void)\n{\n\treturn 0;\n}\n"),
                    ("src/model/a.c", C + "static void *begin(int a,\n\t\t   int b)\n{\n\treturn &begin;\n}\n")]),
    (function_size, [("src/base/a.c", C + "void f(void)\n{\n" + "\tf();\n" * (FUNCTION_LINES + 1) + "}\n")]),
    (layering, [("src/base/a.c", C + '#include "model/gpu.h"\n'), ("src/model/a.c", C + '#include "cmd/main.h"\n'),
                ("src/view/a.c", C + '#include "nvml/abi.h"\n'), ("src/base/a.c", C + '#include "log.h"\n'),
                ("src/new/a.c", C + '#include "base/log.h"\n'), ("sim/nvml/a.c", C + '#include "model/gpu.h"\n'),
                ("sim/nvml/a.c", C + '#include "own.h"\n'), ("sim/scenario/a.c", C + '#include "sim/nvml/own.h"\n'),
                ("sim/workload/a.c", C + '#include "sim/nvml/own.h"\n'), ("sim/a.c", C + '#include "base/log.h"\n'),
                ("sim/new/a.c", C + '#include "base/log.h"\n'),
                ("src/cmd/a.c", C + '#include "../base/log.h"\n'), ("ARCHITECTURE.md", "no table\n"),
                ("ARCHITECTURE.md", LAYER_TABLE.replace("nothing of ours", "view"))]),
    (own_header_first, [("src/base/log.c", C + '#include <stdio.h>\n#include "base/log.h"\n'),
                        ("sim/nvml/own.c", C + '#include <stdio.h>\n#include "sim/nvml/own.h"\n')]),
    (headers_alone, [("src/base/a.h", C + "#pragma once\nsize_t a(void);\n"),
                     ("src/base/a.h", C + "#pragma once\nstruct a {\n\tstruct b b;\n};\n"),
                     ("src/bpf/a.h", C + "#pragma once\n#include <linux/types.h>\n#ifdef __bpf__\nsize_t a;\n#endif\n")]),
    (documents_name_what_exists, [("docs/adding.md", "see `src/base/gone.h`\n"),
                                  ("docs/internals/a.md", "see `src/cmd/main.c` `gone()`\n")]),
    (import_path, [("test/e2e/a.py", f"# {SPDX}\nimport sys\nsys.path.insert(0, '..')\n"),
                   ("test/gpu/run", f"#!/usr/bin/env python3\n# {SPDX}\nsys.path += ['..']\n")]),
    (no_workplace, [("docs/a.md", "see /%s/main\n" % "work"), ("Makefile", "X = ../%s/x\n" % "shared")]),
]
# What every sample stands in, and what every rule must accept.
GOOD = {
    "ARCHITECTURE.md": LAYER_TABLE,
    "src/base/log.h": C + "#pragma once\n\n#include <stddef.h>\n\nsize_t log_all(void);\n",
    "src/base/map.c": C + "struct entry {\n\tint a;\n};\n\nenum state { C };\n\nstatic int begin(void)\n{\n\treturn 0;\n}\n",
    "src/model/map.c": C + "struct entry {\n\tstruct other a;\n};\n\nstatic int begin(void)\n{\n\treturn 0;\n}\n",
    "src/nvml/map.c": C + "static int begin(void);\nstruct entry *a;\n\nstatic int begin(void)\n{\n\treturn 0;\n}\n",
    "src/view/map.c": C + "static int begin(void);\nstatic int begun = begin();\n\t// " + "a" * (COLUMNS - 11) + "\n",
    "src/model/gpu.h": C + '#pragma once\n\n#include "base/log.h"\n',
    "src/nvml/abi.h": C + "#pragma once\n",
    "src/cmd/main.h": C + '#pragma once\n\n#include "nvml/abi.h"\n',
    "src/cmd/main.c": C + '#include "cmd/main.h"\n\n#include "config.h"\n#include "model/gpu.h"\n\n'
                          "int main(int argc,\n\t char **argv)\n{\n\t/*\n\t * A comment.\n\t */\n\treturn argc && argv;\n}\n",
    "sim/nvml/own.h": C + "#pragma once\n\n#define F() \\\n\tdo {  \\\n" + " " * 15 + "\\\n\t} while (0)\n",
    "sim/nvml/sim.c": C + '#include "sim/nvml/own.h"\n\n' + '#include "nvml/abi.h"\n#include "base/log.h"\n',
    "sim/nvml/tally.h": C + "#pragma once\n",
    "sim/workload/run.c": C + '#include "sim/nvml/tally.h"\n',
    "docs/internals/b.md": "| 1 | `src/cmd/main.c` `main()` | begins |\n",
    "docs/a.md": "at http://example.com/work/ and in framework/farm/\n",
}


def build_tree(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
    return Tree(root)


def check_samples(rule, samples):
    """What is wrong with the rule itself: samples it lets pass, good files it rejects."""
    with tempfile.TemporaryDirectory() as root:
        wrong = [f"rejects a good file: {v.path}:{v.line}: {v.what}" for v in rule(build_tree(root, GOOD))]
    for path, text in samples:
        with tempfile.TemporaryDirectory() as root:
            if not any(v.path == path for v in rule(build_tree(root, {**GOOD, path: text}))):
                wrong.append(f"accepts {path} with {text[-60:]!r}")
    return wrong


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tree = Tree(sys.argv[1], sys.argv[2])
    failed = number = 0
    print(f"1..{2 * len(RULES)}")
    for rule, samples in RULES:
        found = [f"{v.path}:{v.line}: {v.what}; {v.remedy}" for v in rule(tree)]
        for name, problems in ((rule.__name__, found), (f"{rule.__name__} can fail", check_samples(rule, samples))):
            number += 1
            failed += bool(problems)
            print(f"{'not ok' if problems else 'ok'} {number} - {name}")
            for problem in problems:
                print(f"# {problem}")
    sys.exit(1 if failed else 0)


main()
