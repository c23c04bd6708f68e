#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cubin_read() says of kernels against what the toolkit says that it made of them.

    cubins.py BUILD_ROOT SOURCE_ROOT [--all]

Compiles kernels.cu for several architectures, in several ways, and compares every figure with `ptxas -v`, with `readelf -SW`, with
`cuobjdump -res-usage` where that can be had (fetch.py), and with what the source says; then the same images in fatbins, objects, archives,
executables and libraries, compressed in every way, decompressed whole and in a stream. --all: every architecture of the toolkit, debug, lineinfo,
relocatable. Speaks TAP; skips without nvcc.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from lib import fetch

FEW = ("75", "90a", "120")
WAYS = {"": [], "debug": ["-G"], "lineinfo": ["-lineinfo"], "relocatable": ["-rdc=true"]}
MODES = ("size", "speed", "balance", "none")
# What the source says, by the end of the name that is not mangled: {figure: value}.
KNOWN = {
    "_Z7boundedPf": {"max_threads": 192}, "_Z13bounded_twicePf": {"max_threads": 256}, "_Z8spillingPd": {"max_threads": 1024},
    "_Z8requiredPf": {"max_threads": 256, "required_block": [32, 4, 2]}, "_Z9clusteredPi": {"cluster": [2, 3, 1]},
    "plain": {"parameters_bytes": 12, "max_threads": -1, "required_block": [0, 0, 0], "cluster": [0, 0, 0]},
    "empty": {"parameters_bytes": 0}, "_Z15large_parameter5largeiPc": {"parameters_bytes": 3016},
    "_Z11any_barrierPii": {"barriers": 16},
}


class Case:
    """The images of one way to compile: {architecture: file}, and what ptxas said of each: {architecture: {kernel: figures}}."""

    def __init__(self, way):
        self.way, self.files, self.told = way, {}, {}


class Tools:
    def __init__(self, build, folder):
        self.dump = f"{build}/test/tools/cubin_dump"
        self.folder = folder
        self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        self.cuobjdump = None

    def run(self, *args, status=0):
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", timeout=300, check=False,
                              cwd=self.folder)
        assert done.returncode == status, f"{args}: {done.returncode}, {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    def read(self, path, *options):
        """(images, each with "kernels" by name; troubles) of a file."""
        images, troubles = [], []
        for line in self.run(self.dump, *options, path).splitlines():
            entry = json.loads(line)
            if "kind" in entry:
                images.append(dict(entry, kernels={}))
            elif "kernel" in entry:
                kernels = images[entry.pop("image")]["kernels"]
                assert entry["kernel"] not in kernels, f"{entry['kernel'][:80]} twice in an image"
                kernels[entry.pop("kernel")] = entry
            elif "trouble" in entry:
                troubles.append(entry)
        assert entry["result"] == 0, f"{path}: result {entry['result']}"
        return images, troubles


def parse_ptxas(text):
    """{kernel: {figure: value}} of one architecture."""
    kernels, current, properties = {}, None, None
    for line in text.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)' for '", line):
            current = kernels.setdefault(found[1], {"smem": 0, "lmem": 0, "barriers": 0})
        elif found := re.search(r"Function properties for (\S+)", line):
            properties = found[1]
        elif (found := re.search(r"(\d+) bytes stack frame", line)) and properties in kernels:
            kernels[properties]["stack"] = int(found[1])
        elif found := re.search(r"Used (\d+) registers(.*)", line):
            current["registers"] = int(found[1])
            for name, pattern in (("barriers", r"used (\d+) barriers"), ("smem", r"(\d+)(?:\+\d+)? bytes smem"),
                                  ("cmem[0]", r"(\d+) bytes cmem\[0\]"), ("lmem", r"(\d+) bytes lmem"),
                                  ("cumulative", r"(\d+) bytes cumulative stack")):
                if more := re.search(pattern, found[2]):
                    current[name] = int(more[1])
    return kernels


def parse_usage(text):
    """[(architecture or None, {function: {figure: text}})] of cuobjdump -res-usage; functions that are no kernels have no constant bank 0."""
    images, arch, name = [], None, None
    for line in text.splitlines():
        if line.startswith("arch = "):
            arch = line.split()[2]
        elif line.startswith("Resource usage:"):
            images.append((arch, {}))
        elif line.startswith(" Function "):
            name = line[len(" Function "):].rstrip()[:-1]
        elif line.startswith("  REG:"):
            images[-1][1][name] = dict(word.rsplit(":", 1) for word in line.split())
    return images


def usage_kernels(functions):
    return {name: usage for name, usage in functions.items() if "CONSTANT[0]" in usage}


def as_usage(kernel):
    """What cuobjdump should say of it."""
    return {"REG": str(kernel["registers"]), "STACK": str(kernel["stack_bytes"]) if kernel["stack_bytes"] >= 0 else "UNKNOWN",
            "SHARED": str(kernel["static_shared_bytes"] + kernel["reserved_shared_bytes"]), "LOCAL": str(kernel["local_bytes"]),
            "CONSTANT[0]": str(kernel["constant_bytes"])}


def sizes(tools, path):
    """{section: bytes}; readelf cuts no name with -W."""
    found = re.findall(r"^\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", tools.run("readelf", "-SW", path), re.M)
    return {name: int(size, 16) for name, size in found}


def differ(name, what, want, got):
    assert want == got, f"{name[:80]}: {what} is {want}, read as {got}"


def compile_case(tools, source, way, arch):
    path = f"{tools.folder}/{way or 'plain'}-{arch}.cubin"
    text = tools.run(tools.nvcc, "-cubin", f"-arch=sm_{arch}", "-include", "names.h", "-Xptxas", "-v", *WAYS[way], "-o", path, source)
    return path, parse_ptxas(text)


def check_figures(tools, case, arch):
    """One cubin against everybody."""
    path, told = case.files[arch], case.told[arch]
    [image], troubles = tools.read(path)
    differ(path, "trouble", [], troubles)
    kernels, relocatable = image["kernels"], case.way == "relocatable"
    # A cubin does not tell a family's architecture from the plain one.
    differ(path, "architecture", f"sm_{arch.rstrip('f')}", image["arch"])
    differ(path, "debug", case.way == "debug", image["debug"])
    differ(path, "kernels", sorted(told), sorted(kernels))
    sections = sizes(tools, path)
    for name, kernel in kernels.items():
        ptxas = told[name]
        differ(name, "registers", ptxas["registers"], kernel["registers"])
        differ(name, "barriers", ptxas["barriers"], kernel["barriers"])
        differ(name, "static shared memory", ptxas["smem"], kernel["static_shared_bytes"])
        # Where it is unlimited, ptxas says nothing of a sum, and cuobjdump UNKNOWN.
        if not (name == "_Z9recursivePi" and case.way == "debug" and kernel["stack_bytes"] == -1):
            differ(name, "stack", ptxas["stack"] if relocatable else ptxas.get("cumulative", ptxas["stack"]), kernel["stack_bytes"])
        differ(name, "local memory", ptxas["lmem"], kernel["local_bytes"])
        if "cmem[0]" in ptxas:
            differ(name, "constant bank 0", ptxas["cmem[0]"], kernel["constant_bytes"])
        shared = kernel["static_shared_bytes"] + kernel["reserved_shared_bytes"]
        for section, value in ((".text.", kernel["code_bytes"]), (".nv.constant0.", kernel["constant_bytes"]),
                               (".nv.shared.", shared), (".nv.local.", kernel["local_bytes"])):
            differ(name, section, sections.get(section + name, 0), value)
        for figure, value in KNOWN.get(name, {}).items():
            differ(name, figure, value, kernel[figure])
    if not relocatable:
        # Debug builds leave it out of kernels without shared memory of their own.
        reserved = {kernel["reserved_shared_bytes"] for kernel in kernels.values()} - ({0} if case.way == "debug" else set())
        differ(path, "reserved shared memory", {1024} if int(arch.rstrip("af")) >= 90 else reserved & {0}, reserved)
    return image


def check_usage(tools, path, kernels, relocatable):
    [(_, functions)] = parse_usage(tools.run(tools.cuobjdump, "-res-usage", path))
    usage = usage_kernels(functions)
    differ(path, "kernels by cuobjdump", sorted(usage), sorted(kernels))
    for name, kernel in kernels.items():
        for figure, value in as_usage(kernel).items():
            # It says 0 of a stack that only linking will tell.
            if figure != "STACK" or not relocatable:
                differ(name, figure, usage[name][figure], value)


def check_case(tools, case):
    def check():
        for arch in case.files:
            image = check_figures(tools, case, arch)
            if tools.cuobjdump:
                check_usage(tools, case.files[arch], image["kernels"], case.way == "relocatable")
    return check


def fatbin(tools, case, mode):
    path = f"{tools.folder}/{case.way or 'plain'}-{mode}.fatbin"
    images = [f"--image3=kind=elf,sm={arch},file={file}" for arch, file in case.files.items()]
    tools.run(os.path.join(os.path.dirname(os.path.realpath(tools.nvcc)), "fatbinary"), "--64", f"--create={path}",
              "--compress-all", f"--compress-mode={mode}", *images)
    return path


def same_kernels(tools, path, want, *options):
    """All images of @path, which are @want's: {architecture: kernels}."""
    images, troubles = tools.read(path, *options)
    differ(path, "trouble", [], troubles)
    elves = [image for image in images if image["kind"] == "elf" and image["kernels"]]
    differ(path, "architectures", sorted(want), sorted(image["arch"] for image in elves))
    for image in elves:
        for name, kernel in image["kernels"].items():
            differ(f"{path} {name}", "kernel", want[image["arch"]].get(name), kernel)
        differ(path, "number of kernels", len(want[image["arch"]]), len(image["kernels"]))
    return images


# Whole; in a stream, of which the second has a bound just above what the images' names need.
READINGS = ((), ("-i", "1"))


def check_compression(tools, case, mode):
    def check():
        want = {f"sm_{arch}": tools.read(path)[0][0]["kernels"] for arch, path in case.files.items()}
        path = fatbin(tools, case, mode)
        for options in READINGS:
            images = same_kernels(tools, path, want, *options)
            for image in images:
                differ(path, "compression", {"none": {"none"}, "speed": {"lz4"}}.get(mode, {"zstd"}), {image["compression"]})
                size = os.path.getsize(case.files[image["arch"][len("sm_"):]])
                assert size <= image["uncompressed_bytes"] < size + 8, f"{image} of a file of {size}"
                assert image["offset"] + image["bytes"] <= os.path.getsize(path) and image["container"] == 0
    return check


def check_hosts(tools, source, arches):
    """Objects, archives, executables and libraries as nvcc makes them: the same kernels in each, with PTX beside them."""
    def check():
        code = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in arches] + ["-gencode=arch=compute_75,code=compute_75"]
        common = [tools.nvcc, "-include", "names.h", "--frandom-seed=1", *code]
        tools.run(*common, "-c", "-o", "kernels.o", source)
        want = {image["arch"]: image["kernels"] for image in tools.read(f"{tools.folder}/kernels.o")[0] if image["kernels"]}
        differ("kernels.o", "architectures", sorted(f"sm_{a}" for a in arches), sorted(want))
        for kernels in want.values():
            assert len(kernels) > 18, sorted(kernels)
        tools.run("ar", "rcs", "kernels.a", "kernels.o")
        tools.run(*common, "-shared", "-Xcompiler", "-fPIC", "-o", "kernels.so", source)
        tools.run("strip", "-o", "stripped.so", "kernels.so")
        # Then only what the program registers leads to them.
        tools.run("objcopy", "--rename-section", ".nv_fatbin=.other", "kernels.so", "renamed.so")
        tools.run(*common, "-fatbin", "-o", "kernels.fatbin", source)
        for name, options in itertools.product(("kernels.o", "kernels.a", "kernels.so", "stripped.so", "renamed.so", "kernels.fatbin"),
                                               READINGS):
            images = same_kernels(tools, f"{tools.folder}/{name}", want, *options)
            ptx = [image for image in images if image["kind"] == "ptx"]
            differ(name, "PTX", [("sm_75", 1)], [(image["arch"], image["number"]) for image in ptx])
    return check


def check_relocatable(tools, arches):
    """Relocatable device code: told as such; the linked image has what it was linked from, with the stack of all that is called."""
    def check():
        for name, text in (("one.cu", "__device__ int other(int *, int);\n"
                            "__global__ void calls(int *p, int n) { volatile int a[30]; for (int i = 0; i < 30; i++) a[i] = p[i * n];"
                            " p[n] = a[n % 30] + other(p, n); }\n__device__ int deep(int);\n"
                            "__global__ void recursive(int *p) { *p = deep(*p); }\nint main() { calls<<<1, 1>>>(0, 0); recursive<<<1, 1>>>(0); }\n"),
                           ("two.cu", "__device__ int other(int *p, int n) { volatile int a[40]; __shared__ int s[10];"
                            " s[threadIdx.x] = n; for (int i = 0; i < 40; i++) a[i] = p[i * n]; return a[n % 40] + s[n]; }\n"
                            "__device__ int deep(int n) { return n < 2 ? n : deep(n - 1) + deep(n - 2); }\n")):
            with open(f"{tools.folder}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        code = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in arches]
        tools.run(tools.nvcc, *code, "-rdc=true", "-c", "one.cu", "two.cu")
        tools.run("ar", "rcs", "both.a", "one.o", "two.o")
        tools.run(tools.nvcc, *code, "-o", "linked", "one.o", "two.o")
        images, troubles = tools.read(f"{tools.folder}/both.a")
        differ("both.a", "trouble", [], troubles)
        differ("both.a", "relocatable images", 2 * len(arches), sum(image["relocatable"] for image in images))
        differ("both.a", "images", 2 * len(arches), len(images))
        images, troubles = tools.read(f"{tools.folder}/linked")
        linked = [image for image in images if image["kernels"] and not image["relocatable"]]
        differ("linked", "architectures", sorted(f"sm_{a}" for a in arches), sorted(image["arch"] for image in linked))
        for image in linked:
            differ("linked", "kernels", ["_Z5callsPii", "_Z9recursivePi"], sorted(image["kernels"]))
            # The array and the shared memory are of the function that it calls.
            calls = image["kernels"]["_Z5callsPii"]
            assert calls["stack_bytes"] >= 40 * 4 and calls["static_shared_bytes"] == 40, calls
            differ("linked", "stack of a recursion", -1, image["kernels"]["_Z9recursivePi"]["stack_bytes"])
        if tools.cuobjdump:
            theirs = {arch: usage_kernels(functions) for arch, functions in parse_usage(tools.run(tools.cuobjdump, "-res-usage", "linked"))
                      if usage_kernels(functions)}
            for image in linked:
                for name, kernel in image["kernels"].items():
                    for figure, value in as_usage(kernel).items():
                        differ(f"linked {name}", figure, theirs[image["arch"]][name][figure], value)
    return check


def check_nothing(tools):
    """No kernel at all: no device code, and device code without."""
    with open(f"{tools.folder}/nothing.cu", "w", encoding="utf-8") as f:
        f.write("__device__ int f(int n) { return n + 1; }\nint main() {}\n")
    tools.run(tools.nvcc, "-cubin", "-arch=sm_90", "-rdc=true", "-o", "nothing.cubin", "nothing.cu")
    [image], troubles = tools.read(f"{tools.folder}/nothing.cubin")
    differ("nothing.cubin", "what was read", ({}, [], True), (image["kernels"], troubles, image["relocatable"]))
    last = json.loads(tools.run(tools.dump, "/bin/true").splitlines()[-1])
    differ("/bin/true", "what was read", (-61, 0), (last["result"], last["troubles"]))     # ENODATA


def architectures(tools):
    """All that the toolkit compiles for, with their specific variants."""
    found = re.findall(r"sm_(\d+)", tools.run(tools.nvcc, "--list-gpu-code"))
    return [v for n in found for v in ([n] if int(n) < 90 else [n, n + "a"] if int(n) < 100 else [n, n + "a", n + "f"])]


def one_of_each(arches):
    """nvcc takes only one variant of an architecture: all in turn."""
    groups = [list(g) for _, g in itertools.groupby(arches, lambda a: a.rstrip("af"))]
    return [g[-1 - i % len(g)] for i, g in enumerate(groups)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("source")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    count = collections.Counter()

    def result(name, check):
        count["all"] += 1
        try:
            check()
            print(f"ok {count['all']} - {name}", flush=True)
        except (AssertionError, KeyError, ValueError) as why:
            count["failed"] += 1
            text = str(why) if isinstance(why, AssertionError) else repr(why)
            print(f"not ok {count['all']} - {name}\n# " + text[:2000].replace("\n", "\n# "), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(os.path.abspath(args.build), folder)
        if not shutil.which(tools.nvcc):
            print("1..0 # SKIP no nvcc on this machine: install a CUDA toolkit")
            return 0
        try:
            tools.cuobjdump = fetch.get("cuobjdump", f"{args.build}/real")["cuobjdump"]
        except fetch.Unavailable as why:
            print(f"# without cuobjdump: {why}")
        with open(f"{folder}/names.h", "w", encoding="ascii") as f:
            f.write(f"#define LONG_NAME {'n' * 5000}\n#define LONGER_NAME {'m' * 70000}\n")
        source = os.path.abspath(f"{args.source}/test/real/kernels.cu")
        offered = architectures(tools)
        arches = offered if args.all else [a for a in FEW if a in offered]
        cases = [Case(way) for way in (WAYS if args.all else ("", "relocatable"))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {(case, arch): pool.submit(compile_case, tools, source, case.way, arch) for case in cases for arch in arches}
            for (case, arch), job in jobs.items():
                case.files[arch], case.told[arch] = job.result()
        checks = [(f"figures{', ' + case.way if case.way else ''}: {' '.join(arches)}", check_case(tools, case)) for case in cases]
        checks += [(f"in a fatbin, compressed for {mode}{', ' + case.way if case.way else ''}", check_compression(tools, case, mode))
                   for case in cases for mode in MODES]
        checks += [("in an object, an archive, libraries and a fatbin of nvcc", check_hosts(tools, source, one_of_each(arches))),
                   ("relocatable, and linked", check_relocatable(tools, one_of_each(arches))), ("no kernel", lambda: check_nothing(tools))]
        if not tools.cuobjdump:
            result("compared with cuobjdump # SKIP it cannot be had here", lambda: None)
        for name, check in checks:
            result(name, check)
        print(f"1..{count['all']}")
        return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
