#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host functions that stand for kernels, found in programs that compilers made, against what nm and the programs themselves say.

    stubs.py BUILD_ROOT SOURCE_ROOT STUB_DUMP [--all] [words of names of tests]

registering.c is compiled here in many ways, by each compiler that there is, for x86-64 and arm64; nvcc's programs are those of test/programs.
--all: everything at all levels of optimisation; else at -O2, and the newest way to register with the shared runtime at -O0, too.
Speaks TAP; skips what is missing.
"""
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

(BUILD, SOURCE, DUMP), WORDS = sys.argv[1:4], [word for word in sys.argv[4:] if word != "--all"]
HERE = os.path.join(SOURCE, "test/unit/cubin")
PROGRAMS = os.path.join(BUILD, "test/programs")
SIM = os.path.join(BUILD, "sim/cuda")
KERNELS = {"plain": "plain", "_Z7mangledPi": "_Z7mangledPi", "local": "_Z5localPi"} # function: name
NVCC = ["kernels-shared", "kernels-sim", "kernels-static", "kernels-no-pie", "kernels-rdc"]


class Skip(Exception):
    pass


def expect(want, got, about=""):
    assert want == got, f"{about}: expected {want!r}, got {got!r}"


def command(*arguments, **more):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100, check=False, **more)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.returncode}, {done.stderr}"
    return done.stdout


def stubs(*arguments):
    """([stub], what was said at the end)"""
    lines = [json.loads(line) for line in command(DUMP, *arguments).splitlines()]
    return lines[:-1], lines[-1]


def registered(path):
    """{address: (name, {handles})}, all of them registered and nothing skipped."""
    found, end = stubs(path)
    result = {}
    for stub in found:
        expect("registered", stub["source"], path)
        name, handles = result.setdefault(stub["address"], (stub["symbol"], set()))
        expect(name, stub["symbol"], path)
        handles.update({stub["handle"]} - {0})
    return result, end["skipped"]


def symbols(path, tool="nm"):
    """{name: address}; of several with one name, any."""
    return {name: address for address, name in all_symbols(path, tool)}


def all_symbols(path, tool="nm"):
    """[(address, name)]"""
    lines = [line.split() for line in command(tool, "--defined-only", path).splitlines()]
    return [(int(line[0], 16), line[2]) for line in lines if len(line) == 3]


def tool(name):
    """A program of a compiler's that may carry a version in its name."""
    found = shutil.which(name) or shutil.which(name + "-14")
    if not found:
        raise Skip(f"no {name}")
    return found


class Made:
    """One way of compiling registering.c: with a runtime in it, or in a library, which only programs need to have."""

    def __init__(self, folder, compiler, *flags, runtime=False, linker=()):
        tool(compiler[0])
        for name in (f.removeprefix("-fuse-ld=") for f in flags if f.startswith("-fuse-ld=")):
            tool(f"ld.{name}")
        self.path = os.path.join(folder, "made")
        source = os.path.join(HERE, "registering_runtime.c")
        # The runtime is no part of link-time optimisation, as NVIDIA's is none.
        others = [f for f in flags if f != "-flto"]
        objects = [os.path.join(folder, "registering.o")]
        command(*compiler, "-w", *flags, "-c", "-o", objects[0], os.path.join(HERE, "registering.c"))
        if runtime:
            objects.append(os.path.join(folder, "runtime.o"))
            command(*compiler, "-w", *others, "-c", "-o", objects[1], source)
        elif "-DPROGRAM" in flags:
            objects.append(os.path.join(folder, "libruntime.so"))
            command(*compiler, "-w", "-fPIC", "-shared", "-DRUNTIME=extern", "-o", objects[1], source)
        command(*(linker or (*compiler, "-w", *flags)), *(["-shared"] if linker else []), "-o", self.path, *objects)

    def strip(self, strip="strip"):
        command(tool(strip), "--strip-all", self.path)


def check_made(made, legacy, strip="strip", nm="nm"):
    """Functions and handles are where symbols say, and found without symbols, too."""
    where = symbols(made.path, tool(nm))
    want = {where[function]: (name, set() if legacy else {where["handle_" + function]})
            for function, name in KERNELS.items()}
    expect((want, 0), registered(made.path))
    made.strip(strip)
    expect((want, 0), registered(made.path), "stripped")


ALL = "--all" in sys.argv
LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"] if ALL else ["-O0", "-O2"]


def is_chosen(level, legacy, runtime):
    return ALL or level != "-O0" or not (legacy or runtime)


def host_programs(compiler, *more, levels=LEVELS):
    def check():
        ways = [("-fPIC", "-shared"), ("-fPIE", "-pie", "-DPROGRAM"), ("-fno-pie", "-no-pie", "-DPROGRAM")]
        for level, way, legacy, runtime in itertools.product(levels, ways, (False, True), (False, True)):
            if not is_chosen(level, legacy, runtime):
                continue
            flags = [level, *way, *(["-DLEGACY"] if legacy else []), *more]
            with tempfile.TemporaryDirectory() as folder:
                made = Made(folder, [compiler], *flags, runtime=runtime)
                try:
                    check_made(made, legacy)
                except AssertionError as error:
                    raise AssertionError(f"{compiler} {' '.join(flags)} runtime={runtime}: {error}") from error
    return check


def arm64_libraries():
    for level, legacy, runtime, protected in itertools.product(LEVELS, (False, True), (False, True), (False, True)):
        if not is_chosen(level, legacy, runtime):
            continue
        linker = [tool("ld.lld"), *(["-z", "force-bti"] if protected else [])]
        flags = ["-target", "aarch64-linux-gnu", "-fPIC", level, *(["-DLEGACY"] if legacy else []),
                 *(["-mbranch-protection=standard"] if protected else [])]
        with tempfile.TemporaryDirectory() as folder:
            made = Made(folder, ["clang"], *flags, runtime=runtime, linker=linker)
            try:
                check_made(made, legacy, strip="llvm-strip", nm="llvm-nm")
            except AssertionError as error:
                raise AssertionError(f"{' '.join(flags)} runtime={runtime}: {error}") from error


def by_symbols():
    """Nothing registers them: their names, and those of the functions that nvcc has them call, and clang's."""
    for compiler, level, names, legacy in itertools.product(("gcc", "clang"), ("-O0", "-O2"), ((), ("-DCLANG_NAMES",)),
                                                            ((), ("-DLEGACY",))):
        with tempfile.TemporaryDirectory() as folder:
            made = Made(folder, [compiler], level, "-DPROGRAM", "-DUNREGISTERED", *names, *legacy)
            where = symbols(made.path)
            found, end = stubs(made.path)
            about = f"{compiler} {level} {names} {legacy}"
            expect({"symbol"}, {s["source"] for s in found}, about)
            expect(0, end["skipped"], about)
            got = {(s["symbol"], s["address"]) for s in found}
            if names:
                want = {(new, where[old]) for new, old in (("plain", "__device_stub__plain"),
                                                           ("_Z7mangledPi", "_Z22__device_stub__mangledPi"),
                                                           ("_ZL5localPi", "_ZL20__device_stub__localPi"))}
            else:
                want = {("plain", where["plain"]), ("_Z7mangledPi", where["_Z7mangledPi"]), ("local", where["local"])}
                # What the functions that they call say more, where the compiler left these.
                got -= {("_Z5plainPi", where["plain"]), ("_Z5localPi", where["local"])}
            expect(want, got, about)
            made.strip()
            expect([], stubs(made.path)[0], about + " stripped")


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.path.exists(path):
        raise Skip(f"{name} was not built: no nvcc, or a build with sanitizers")
    return path


def truth(name, *arguments):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
    out = command(program(name), *arguments, env={**clean, "LD_LIBRARY_PATH": SIM, "GPUSONDE_SIM_CUDA_KERNEL_US": "0"})
    return json.loads(out)["launches"]


def agrees(path, launches, handles=True):
    """Each host function that was launched is known, by the kernel's name; what has its handle is called so."""
    known, skipped = registered(path)
    where = all_symbols(path)
    variables = {address: name for address, name in where if "8__handle" in name}
    for launch in launches:
        name, its_handles = known[launch["host"]]
        assert re.fullmatch(launch["match"], name), f"{path}: {name} is not {launch['match']}"
        expect(handles, len(its_handles) > 0, f"{path}, {name}")
        for handle in its_handles:
            mangled = variables[handle]
            # A lambda's class has another name in host code.
            short = re.sub(r"^_Z+|^__nv_static.*__Z", "", name).split("UliE")[0]
            assert "__device_stub_" in mangled and (short in mangled or name == "plain"), f"{path}: {mangled} for {name}"
    assert set(known) <= {address for address, _ in where}, f"{path}: stubs where no function is"
    expect({launch["host"] for launch in launches}, set(known), path)
    return skipped


def nvcc_programs():
    for name in NVCC:
        skipped = agrees(program(name), truth(name), handles=name != "kernels-static")
        # A template's handle in the second file, whose host function is that of the first and was put into a register long before.
        assert skipped <= (1 if name == "kernels-rdc" else 0), f"{name}: {skipped} skipped"


def nvcc_plugin():
    expect(0, agrees(program("plugin.so"), truth("plugin_host", program("plugin.so"))))


def nvcc_stripped():
    for name in NVCC:
        expect(registered(program(name)), registered(program(name + "-stripped")), name)


class Debug:
    """A stripped program without registration, and its symbols elsewhere; `root` is the process's."""

    def __init__(self, folder, build_id=True):
        tool("objcopy")
        self.root = os.path.join(folder, "root")
        self.folder = os.path.join(self.root, "opt/program")
        os.makedirs(self.folder)
        self.path = os.path.join(self.folder, "made")
        self.debug = os.path.join(folder, "made.debug")
        made = Made(folder, ["gcc"], "-O1", "-DPROGRAM", "-DUNREGISTERED",
                    "-Wl,--build-id" + ("=sha1" if build_id else "=none"))
        self.want = stubs(made.path)[0]
        assert self.want
        command("objcopy", "--only-keep-debug", made.path, self.debug)
        command("objcopy", "--strip-all", *([] if build_id else [f"--add-gnu-debuglink={self.debug}"]), made.path, self.path)

    def id(self):
        return re.search(r"Build ID: ([0-9a-f]+)", command("readelf", "-n", self.path))[1]

    def found(self):
        """Whether there is a debug file, and that its symbols are used then."""
        got, end = stubs(self.path, self.root, "/opt/program/made")
        expect(self.want if end["debug"] else [], got)
        return end["debug"]

    def put(self, *place, source=None):
        path = os.path.join(self.root, *place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(source or self.debug, path)
        return path


def debug_by_build_id():
    with tempfile.TemporaryDirectory() as folder:
        one = Debug(folder)
        place = ("usr/lib/debug/.build-id", one.id()[:2], one.id()[2:] + ".debug")
        expect(False, one.found())
        path = one.put(*place)
        expect(True, one.found())
        # Another program's, by the same name.
        with open(path, "r+b") as f:
            data = f.read().replace(bytes.fromhex(one.id()), bytes(20))
            f.seek(0)
            f.write(data)
        expect(False, one.found(), "another build-id")


def debug_by_link():
    for place in ("opt/program/made.debug", "opt/program/.debug/made.debug", "usr/lib/debug/opt/program/made.debug"):
        with tempfile.TemporaryDirectory() as folder:
            debug = Debug(folder, build_id=False)
            expect(False, debug.found())
            path = debug.put(place)
            expect(True, debug.found(), place)
            with open(path, "ab") as f:
                f.write(b"x")
            expect(False, debug.found(), "another CRC")


def debug_out_of_root():
    """A container's link leads nowhere but into the container."""
    with tempfile.TemporaryDirectory() as folder:
        debug = Debug(folder, build_id=False)
        os.symlink(debug.debug, os.path.join(debug.folder, "made.debug"))
        expect(False, debug.found())
        os.unlink(os.path.join(debug.folder, "made.debug"))
        os.mkfifo(os.path.join(debug.folder, "made.debug"))
        expect(False, debug.found(), "a pipe")
        # The same link, where it leads to something inside.
        debug.put(debug.debug.lstrip("/"))
        os.unlink(os.path.join(debug.folder, "made.debug"))
        os.symlink(debug.debug, os.path.join(debug.folder, "made.debug"))
        expect(True, debug.found(), "inside")


TESTS = [
    ("gcc, levels", host_programs("gcc")),
    ("gcc, branch protection", host_programs("gcc", "-fcf-protection=full", "-Wl,-z,ibtplt", levels=["-O2"])),
    ("gcc, calls without a table", host_programs("gcc", "-fno-plt", levels=["-O0", "-O2"])),
    ("gcc, read-only relocations", host_programs("gcc", "-Wl,-z,now", "-Wl,-z,relro", levels=["-O2"])),
    ("gcc, link-time optimisation", host_programs("gcc", "-flto", levels=["-O2"])),
    ("gcc, data beside code", host_programs("gcc", "-Wl,-z,noseparate-code", levels=["-O2"])),
    ("clang, levels", host_programs("clang")),
    ("clang with lld", host_programs("clang", "-fuse-ld=lld", levels=["-O0", "-O2"])),
    ("clang for arm64", arm64_libraries),
    ("by symbols", by_symbols),
    ("debug file by build-id", debug_by_build_id),
    ("debug file by link", debug_by_link),
    ("debug file out of its root", debug_out_of_root),
    ("nvcc's programs", nvcc_programs),
    ("nvcc's programs without symbols", nvcc_stripped),
    ("nvcc's library", nvcc_plugin),
]
TESTS = [test for test in TESTS if not WORDS or any(word in test[0] for word in WORDS)]
print(f"1..{len(TESTS)}")
failed = False
for number, (name, test) in enumerate(TESTS, start=1):
    try:
        test()
        print(f"ok {number} - {name}")
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}")
    except (AssertionError, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        failed = True
        print(f"not ok {number} - {name}\n# {str(error)[:2000]!r}")
sys.exit(failed)
