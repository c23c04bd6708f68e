#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether src/nvml/abi_*.h says what NVIDIA's own nvml.h says: layouts, constants, prototypes.

    abi.py [--run EMULATOR] COMPILER [ARGUMENTS...]

Both headers are compiled, each in a program of its own, because their names clash; both programs print what they found, and
the output is compared. Each of our structs names NVIDIA's in a comment, or the member of it that it is, and has its members in its order; our constants have NVIDIA's
names, or name them in a comment. Skipped, loudly, where the header cannot be had. Speaks TAP.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from lib.nvidia_header import SkipTest, header_path, header_text

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
# Constants that are our own, not NVIDIA's.
OWN = {"NVML_VERSION_WORD", "NVML_NONE_U32", "NVML_NONE_U64", "NVML_PCI_INFO_V1_SIZE", "NVML_PCI_INFO_V2_SIZE",
       "NVML_GPM_METRICS_MAX"}
# Calls whose struct is not of one size: the array at its end is as long as the caller says, or the version decides.
OPEN_ENDED = {"nvmlGpmMetricsGet"}


class Header:
    """What one side declares: structs {name: members}, constants {name: expression}, functions {name: parameters}."""

    def __init__(self, text):
        self.text = text

    def blocks(self, pattern):
        """(match, body, what follows the closing brace), for a pattern that ends at an opening brace."""
        for m in re.finditer(pattern, self.text):
            depth, at = 1, m.end()
            while depth > 0:
                depth += {"{": 1, "}": -1}.get(self.text[at], 0)
                at += 1
            yield m, self.text[m.end():at - 1], self.text[at:self.text.index(";", at)]

    @staticmethod
    def members(body):
        # A struct within counts as the one member behind its brace.
        while "{" in body:
            body = re.sub(r"\b(?:struct|union)\s*\w*\s*\{[^{}]*\}", "nested", body)
        return [re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip()).group(1)
                for declaration in body.split(";") if declaration.strip()
                for part in declaration.split(",")]

    @staticmethod
    def parameters(text):
        parts = [" ".join(p.split()) for p in text.split(",")]
        return [] if parts in ([""], ["void"]) else parts


EMULATOR = []   # what runs programs of another machine
HEADERS = sorted(glob.glob(os.path.join(ROOT, "src", "nvml", "abi_*.h")))
OURS = "\n".join(f'#include "nvml/{os.path.basename(path)}"' for path in HEADERS)


def add_struct(header, name, comment, body):
    """As its comment says: all of one of NVIDIA's structs, the first members of one, or a member of one that is a struct itself."""
    members = header.members(re.sub(r"//[^\n]*", "", body))
    found = re.fullmatch(r" // (nvml\w+_t)(?:\.(\w+)| to its (\w+))?", comment)
    if not found:
        header.nameless.append(name)
    else:
        header.structs[found[1] + (f".{found[2]}" if found[2] else "")] = (name, members, found[3])


def ours():
    raw = ""
    for path in HEADERS:
        with open(path, encoding="utf-8") as f:
            raw += f.read()
    header = Header(re.sub(r"/\*.*?\*/", " ", raw, flags=re.S))
    header.structs, header.nameless = {}, []
    for m, body, _ in header.blocks(r"\b((?:struct|union) nvml_\w+) \{([^\n]*)\n"):
        add_struct(header, m[1], m[2], body)
        for inner in re.finditer(r"\b(?:struct|union) \{([^\n]*)\n([^{}]*)\} (\w+);", body):
            add_struct(header, f"__typeof__((({m[1]} *)0)->{inner[3]})", inner[1], inner[2])
        if len(re.findall(r"\{", body)) != len(re.findall(r"\b(?:struct|union) \{[^\n]*\n[^{}]*\} \w+;", body)):
            header.nameless.append(f"what is within {m[1]}")
    header.constants = dict(re.findall(r"^\s*(NVML_\w+) = [^,\n]+,(?: // (nvml\w+))?", header.text, re.M))
    header.constants.update((name, "") for name in re.findall(r"^#define (NVML_\w+)", header.text, re.M))
    header.functions = {name: (result, header.parameters(args)) for result, name, args in
                        re.findall(r"^(enum nvml_return|const char \*)\s*(nvml\w+)\(([^;]*)\);", header.text, re.M)}
    return header


def theirs():
    header = Header(header_text())
    header.structs, header.types = {}, {}
    for _, body, name in header.blocks(r"\btypedef\s+(?:struct|union)\s*\w*\s*\{"):
        for one in name.split(","):
            header.structs[one.strip()] = header.members(body)
        for inner in re.finditer(r"\b(?:struct|union)\s*\w*\s*\{([^{}]*)\}\s*(\w+)\s*(\[)?", body):
            header.structs[f"{name.strip()}.{inner[2]}"] = header.members(inner[1])
            header.types[f"{name.strip()}.{inner[2]}"] = f"__typeof__((({name.strip()} *)0)->{inner[2]}{'[0]' if inner[3] else ''})"
    header.functions = {}
    for name, args in re.findall(r"DECLDIR\s*\*?\s*(?:char\s*\*\s*)?(nvml\w+)\s*\(([^;]*?)\)\s*;", header.text):
        header.functions[name] = header.parameters(args)
    return header


def run(compiler, include, lines):
    """The output of a program with these printf() arguments, one a line."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "probe.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(f"#include <stddef.h>\n#include <stdio.h>\n#define NVML_NO_UNVERSIONED_FUNC_DEFS\n{include}\nint main(void)\n{{\n")
            f.writelines(f"\tprintf({line});\n" for line in lines)
            f.write("\treturn 0;\n}\n")
        program = os.path.join(folder, "probe")
        subprocess.run([*compiler, "-std=gnu17", "-w", "-I", os.path.join(ROOT, "src"), "-o", program, source], check=True)
        return subprocess.run([*EMULATOR, program], check=True, capture_output=True, text=True).stdout.splitlines()


def need_programs(compiler):
    try:
        run(compiler, "", ['"%d\\n", 1'])
    except subprocess.CalledProcessError as why:
        raise SkipTest(f"{compiler[0]} makes no programs, or {EMULATOR[0]} does not run them: {why}") from None


def compare(compiler, mine, other):
    """Pairs of printf() arguments that must print the same."""
    left = run(compiler, OURS, mine)
    right = run(compiler, f'#include "{header_path()}"', other)
    return [f"we say {a}, NVIDIA says {b}" for a, b in zip(left, right, strict=True) if a != b]


def check_structs(compiler, our, their):
    mine, other = [], []
    trouble = [f"{name} does not say which struct of NVIDIA's it is" for name in our.nameless]
    for theirs_name, (name, members, end) in our.structs.items():
        if theirs_name not in their.structs:
            trouble.append(f"nvml.h has no {theirs_name}")
            continue
        if len(members) != len(their.structs[theirs_name]):
            trouble.append(f"{theirs_name} has other members: {their.structs[theirs_name]}")
            continue
        type_name = their.types.get(theirs_name, theirs_name)
        mine.append(f'"{theirs_name} %zu\\n", sizeof({name})')
        other.append(f'"{theirs_name} %zu\\n", {f"offsetof({type_name}, {end})" if end else f"sizeof({type_name})"}')
        for a, b in zip(members, their.structs[theirs_name]):
            text = f"{theirs_name}.{b} at %zu, %zu bytes\\n"
            whole = b != end # an array of no length has no size
            mine.append(f'"{text}", offsetof({name}, {a}), {f"sizeof((({name} *)0)->{a})" if whole else "sizeof(char)"}')
            other.append(f'"{text}", offsetof({type_name}, {b}), {f"sizeof((({type_name} *)0)->{b})" if whole else "sizeof(char)"}')
    if len(our.structs) < 40:
        trouble.append(f"only {len(our.structs)} structs were found in our headers")
    return trouble + compare(compiler, mine, other)


def check_constants(compiler, our, their):
    mine, other, trouble = [], [], []
    for name, alias in our.constants.items():
        if name in OWN:
            continue
        if not re.search(rf"\b{alias or name}\b", their.text):
            trouble.append(f"nvml.h has no {alias or name}")
            continue
        mine.append(f'"{name} %lld\\n", (long long)({name})')
        other.append(f'"{name} %lld\\n", (long long)({alias or name})')
    most = int(run(compiler, f'#include "{header_path()}"', ['"%d\\n", (int)NVML_GPM_METRIC_MAX'])[0])
    if int(run(compiler, OURS, ['"%d\\n", NVML_GPM_METRICS_MAX'])[0]) < most:
        trouble.append(f"libraries may write {most} slots of metrics: NVML_GPM_METRICS_MAX is too few")
    if len(our.constants) < 500:
        trouble.append(f"only {len(our.constants)} constants were found in our headers")
    return trouble + compare(compiler, mine, other)


def strip_name(parameter):
    """The type of a parameter, without its name and without const."""
    parameter = re.sub(r"\bconst\b", "", parameter)
    m = re.match(r"^(.*?[\s*])\w+$", parameter.strip())
    return " ".join((m[1] if m else parameter).replace("*", " * ").split())


def check_functions(compiler, our, their):
    """Each parameter and what it points to is of the same size."""
    mine, other, trouble = [], [], []
    for name, (_, params) in our.functions.items():
        if name not in their.functions:
            trouble.append(f"nvml.h has no {name}")
            continue
        if len(params) != len(their.functions[name]):
            trouble.append(f"{name} takes {their.functions[name]}")
            continue
        for a, b in zip(map(strip_name, params), map(strip_name, their.functions[name])):
            mine.append(f'"{name} %zu\\n", sizeof({a})')
            other.append(f'"{name} %zu\\n", sizeof({b})')
            # Handles are pointers to what neither side defines.
            if a.endswith("*") and b.endswith("*") and name not in OPEN_ENDED:
                mine.append(f'"{name} *%zu\\n", sizeof({a[:-1]})')
                other.append(f'"{name} *%zu\\n", sizeof({b[:-1]})')
    if len(our.functions) < 150:
        trouble.append(f"only {len(our.functions)} functions were found in our headers")
    return trouble + compare(compiler, mine, other)


def main():
    compiler = sys.argv[1:]
    if compiler[0] == "--run":
        EMULATOR.append(compiler[1])
        compiler = [*compiler[2:], "-static"]
    cases = [("layouts of structs", check_structs), ("values of constants", check_constants),
             ("parameters of functions", check_functions)]
    print(f"1..{len(cases)}")
    try:
        for program in [*EMULATOR, compiler[0]]:
            if not shutil.which(program):
                raise SkipTest(f"no {program} on this machine")
        if EMULATOR: # another machine's compiler may have come without that machine's headers and libraries
            need_programs(compiler)
        our, their = ours(), theirs()
    except SkipTest as why:
        for number, (name, _) in enumerate(cases, start=1):
            print(f"ok {number} - {name} # SKIP {why}")
        return 0
    failed = 0
    for number, (name, check) in enumerate(cases, start=1):
        trouble = check(compiler, our, their)
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {number} - {name}")
        for line in trouble:
            print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
