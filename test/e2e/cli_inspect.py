#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpusonde inspect: files by NVIDIA's compiler, its libraries, processes, and files that are none."""
import functools
import glob
import json
import mmap
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

from lib.e2e import GPUSONDE, SOURCE, Skip, command, contains, environment, equal, run, wait_for

SAMPLES = f"{SOURCE}/test/fuzz/corpus/cubin" # small ones that nvcc made
TOOLKIT = "/usr/local/cuda"
FIGURES = ("registers", "static_shared_bytes", "reserved_shared_bytes", "constant_bytes", "local_bytes", "stack_bytes", "code_bytes",
           "barriers", "max_threads")
ABSENT = type(None)
IMAGE = {"kind": str, "arch": (str, ABSENT), "compression": str, "bytes": int, "uncompressed_bytes": int, "debug": bool,
         "relocatable": bool, "offset": int, "file": str}
KERNEL = {"name": str, "demangled": str, "arch": (str, ABSENT), "occupancy": (int, float, ABSENT), "limiter": (str, ABSENT),
          "required_block": (list, ABSENT), "cluster": (list, ABSENT), "image": int} | {f: (int, ABSENT) for f in FIGURES}
ERROR = {"file": str, "offset": (int, ABSENT), "text": str}
LIMITERS = {None, "block_size", "blocks_per_sm", "registers", "shared_memory", "barriers"}
MEMORY = 64 << 20

PROGRAM = r"""
#include <cstdio>
#include <unistd.h>
namespace ns {
template <int N, class T> __global__ void __launch_bounds__(256) folded(T *p)
{
	__shared__ T s[N];
	s[threadIdx.x % N] = p[threadIdx.x];
	__syncthreads();
	p[threadIdx.x] = s[(threadIdx.x + 1) % N];
}
}
namespace {
__global__ void hidden(int *p) { p[0] = 1; }
}
extern "C" __global__ void plain(float *p) { p[threadIdx.x] *= 2; }
template <class F> __global__ void __launch_bounds__(1024) call(F f, int *p) { p[threadIdx.x] = f(p[threadIdx.x]); }
int main()
{
	ns::folded<64, float><<<1, 1>>>(nullptr);
	hidden<<<1, 1>>>(nullptr);
	plain<<<1, 1>>>(nullptr);
	call<<<1, 1>>>([=] __device__(int x) { return x + 1; }, nullptr);
	puts("ready");
	fflush(stdout);
	pause();
}
"""


def inspect(path, *flags, status=0, errors=""):
    out = command("inspect", *flags, path)
    equal((out.returncode, out.stderr), (status, errors), path)
    return out.stdout


def checked(text):
    """The document; every part of it as documented."""
    document = json.loads(text)
    equal(list(document), ["images", "kernels", "errors", "errors_left_out"])
    for key, shape in (("images", IMAGE), ("kernels", KERNEL), ("errors", ERROR)):
        for row in document[key]:
            equal(set(row), set(shape))
            for name, types in shape.items():
                assert isinstance(row[name], types), (name, row)
    for kernel in document["kernels"]:
        assert 0 <= kernel["image"] < len(document["images"]), kernel
        equal(document["images"][kernel["image"]]["kind"], "elf")
        assert kernel["occupancy"] is None or 0 <= kernel["occupancy"] <= 1, kernel
        assert kernel["limiter"] in LIMITERS and (kernel["limiter"] is None) == (kernel["occupancy"] is None), kernel
        assert all(kernel[f] is None or kernel[f] >= 0 for f in FIGURES), kernel
    for image in document["images"]:
        assert image["kind"] in ("elf", "ptx", "other") and image["compression"] in ("none", "lz4", "zstd", "lz"), image
        assert re.fullmatch(r"sm_\d{2,3}[af]?", image["arch"] or "sm_00"), image
    return document


def document(path, *flags):
    return checked(inspect(path, "--json", *flags))


def compiler():
    found = shutil.which("nvcc") or f"{TOOLKIT}/bin/nvcc"
    if not os.path.exists(found):
        raise Skip("there is no nvcc here")
    return found


@functools.cache
def folder():
    return tempfile.TemporaryDirectory()


@functools.cache
def program():
    """A program, and what ptxas said of its kernels: {(name, architecture): (registers, barriers, shared bytes)}."""
    path = f"{folder().name}/program"
    with open(f"{path}.cu", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    out = subprocess.run([compiler(), "--extended-lambda", "-Xptxas", "-v", "-gencode", "arch=compute_75,code=sm_75", "-gencode",
                          "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_120,code=[sm_120,compute_120]", "-o", path, f"{path}.cu"],
                         capture_output=True, text=True, check=False, env=environment(LC_ALL="C"))
    if out.returncode:
        raise Skip(f"nvcc cannot build here: {out.stderr[:200]}")
    said = {}
    for name, arch, used in re.findall(r"Compiling entry function '(\S+)' for '(\S+)'.*?(Used [^\n]*)", out.stderr, re.S):
        def number(what, used=used):
            match = re.search(rf"(\d+) {what}", used)
            return int(match[1]) if match else 0
        said[name, arch] = (number("registers"), number("barriers"), number("bytes smem"))
    return path, said


def test_figures_are_what_ptxas_says():
    path, said = program()
    found = document(path)
    equal(found["errors"], [])
    equal({(k["name"], k["arch"]): (k["registers"], k["barriers"], k["static_shared_bytes"]) for k in found["kernels"]}, said)
    equal(len(found["kernels"]), 12)
    equal({i["arch"] for i in found["images"] if i["kind"] == "elf"}, {"sm_75", "sm_90a", "sm_120"})
    equal([i["arch"] for i in found["images"] if i["kind"] == "ptx"], ["sm_120"])
    for kernel in found["kernels"]:
        equal(kernel["arch"], found["images"][kernel["image"]]["arch"])
        equal(found["images"][kernel["image"]]["file"], path)


def test_names_are_demangled_and_bounds_give_occupancy():
    path, _ = program()
    found = {(k["demangled"], k["arch"]): k for k in document(path)["kernels"]}
    equal({name for name, _ in found}, {"void ns::folded<64, float>(float*)", "(anonymous namespace)::hidden(int*)", "plain",
                                        "void call<main::{lambda(int)#1}>(main::{lambda(int)#1}, int*)"})
    for (name, arch), kernel in found.items():
        if "folded" in name:
            equal((kernel["max_threads"], kernel["occupancy"]), (256, 1))
        elif "call" in name:
            # 1,024 of the 1,536 threads that a multiprocessor of sm_120 has room for
            equal(round(kernel["occupancy"], 3), 0.667 if arch == "sm_120" else 1)
            equal(kernel["limiter"], "block_size")
        else:
            equal((kernel["max_threads"], kernel["occupancy"], kernel["limiter"]), (None, None, None))


def test_the_table():
    lines = inspect(f"{SAMPLES}/speed.fatbin").split("\n")
    equal(lines, [
        "ARCH     REGS SHARED RESERVED  CONST  LOCAL  STACK     CODE BARRIERS THREADS  OCC  LIMITED BY     KERNEL",
        "sm_75      10    512        0    364      0      0      256        1     128 100%  block_size     scale<...>",
        "sm_75      10    256        0    364      0      0      256        1      64 100%  block_size     scale<...>",
        "sm_90a     14    512     1024    540      0      0      512        1     128 100%  block_size     scale<...>",
        "sm_90a     14    256     1024    540      0      0      512        1      64 100%  block_size     scale<...>",
        "",
        "ARCH    KIND  COMPRESSION  IMAGES  BYTES  UNCOMPRESSED  KERNELS",
        "sm_75   elf   lz4               1   1552          4896        2",
        "sm_75   ptx   lz4               1    637          1703        0",
        "sm_90a  elf   lz4               1   1801          6352        2",
        "",
        "4 kernels shown, 3 images",
        "",
    ])
    contains(inspect(f"{SAMPLES}/speed.fatbin", "--full"), "  void scale<2>(float*, int)\n")


def test_sorted_by_a_figure():
    path, _ = program()
    for name in ("registers", "REGS", "code_bytes", "occupancy"):
        rows = json.loads(inspect(path, "--json", "--sort", name))["kernels"]
        figures = [row["registers" if name == "REGS" else name] for row in rows]
        known = [figure for figure in figures if figure is not None]
        equal(figures, sorted(known, reverse=True) + [None] * (len(figures) - len(known)), name)
        equal(sorted(map(str, rows)), sorted(map(str, document(path)["kernels"])), "the same kernels")
    lines = inspect(f"{SAMPLES}/speed.fatbin", "--sort", "shared").split("\n")
    equal([line.split()[2] for line in lines[1:5]], ["512", "512", "256", "256"])
    out = command("inspect", "--sort", "speed", path)
    equal((out.returncode, out.stdout), (2, ""))
    contains(out.stderr, "--sort cannot be \"speed\": it must be one of registers, ")


def test_occupancy_of_a_block():
    """Of kernels without bounds, too; and none where the kernel takes no block so large."""
    path, _ = program()
    found = {(k["demangled"], k["arch"]): k for k in json.loads(inspect(path, "--json", "--block", "512"))["kernels"]}
    for (name, arch), kernel in found.items():
        if "folded" in name:
            equal((kernel["max_threads"], kernel["occupancy"]), (256, None))
        else:
            equal((arch, kernel["occupancy"], kernel["limiter"]), (arch, 1, "block_size"), name)
    for wrong in ("0", "1025", "many"):
        out = command("inspect", "--block", wrong, path)
        equal((out.returncode, out.stdout), (2, ""))
        contains(out.stderr, "a number of threads from 1 to 1024")


def test_what_is_to_be_linked_is_marked():
    lines = inspect(f"{SAMPLES}/rdc.a").split("\n")
    equal([line.split()[0] for line in lines[1:5]], ["sm_90*", "sm_90*", "sm_80", "sm_80"])
    equal([line.split()[:2] for line in lines[7:10]], [["sm_80", "elf"], ["sm_90*", "elf,"], ["sm_90*", "ptx,"]])
    contains(lines[-2], "*: to be linked")
    assert "*" not in inspect(f"{SAMPLES}/75.cubin")


def without_entries(elf):
    """A cubin whose functions are no kernels: none is marked as one."""
    elf = bytearray(elf)
    sections, = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    for at in range(sections, sections + size * count, size):
        kind, = struct.unpack_from("<I", elf, at + 4)
        offset, length = struct.unpack_from("<QQ", elf, at + 24)
        if kind == 2: # the symbols
            for symbol in range(offset, offset + length, 24):
                elf[symbol + 5] &= ~0x10
    return bytes(elf)


def test_images_without_kernels_are_explained():
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{SAMPLES}/75.cubin", "rb") as f:
            content = f.read()
        for name, body in (("ptx", 1), ("data", 2)):
            payload = without_entries(content) if body == 2 else b".version 8.0\n.target sm_75\n".ljust(64, b"\0")
            entry = struct.pack("<HHIQIIHHIIIQQQ", body, 0x101, 64, len(payload), 0, 64, 0, 8, 75, 0, 0, 0x11, 0, 0)
            with open(f"{tmp}/{name}", "wb") as f:
                f.write(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(payload)) + entry + payload)
        out = command("inspect", f"{tmp}/ptx")
        equal(out.returncode, 0, out.stderr)
        contains(out.stderr, "is compiled to kernels when it is loaded or linked")
        contains(out.stdout, "0 kernels shown, 1 image\n")
        out = command("inspect", f"{tmp}/data")
        equal(out.returncode, 0, out.stderr)
        contains(out.stdout, "0 kernels shown, 1 image\n")
        contains(out.stderr, "hold no kernels")


def test_a_terminal_of_80_columns():
    if not shutil.which("script"):
        raise Skip("no script(1), which makes a terminal")
    out = subprocess.run(["script", "-qec", f"stty cols 80; {GPUSONDE} inspect {SAMPLES}/speed.fatbin", "/dev/null"],
                         capture_output=True, text=True, check=False, env=environment(NO_COLOR="1", TERM="xterm"))
    lines = out.stdout.replace("\r", "").split("\n")
    equal(lines[0], "ARCH     REGS SHARED  CONST  STACK     CODE THREADS  OCC  KERNEL")
    equal(lines[1], "sm_75      10    512    364      0      256     128 100%  scale<...>")
    assert all(len(line) <= 80 for line in lines), lines


def test_what_is_shown_can_be_chosen():
    path = f"{SAMPLES}/speed.fatbin"
    found = document(path, "--arch", "sm_90a")
    equal([(i["kind"], i["arch"]) for i in found["images"]], [("elf", "sm_90a")])
    equal([(k["arch"], k["image"]) for k in found["kernels"]], [("sm_90a", 0)] * 2)
    equal(len(document(path, "--kernel", "scale<2>")["kernels"]), 2)
    equal(len(document(path, "--kernel", "ILi1EEv")["kernels"]), 2)
    equal(len(document(path, "-k", "^void scale<(1|2)>")["kernels"]), 4)
    equal([k["demangled"] for k in document(path, "--arch", "90a", "-k", "<1>")["kernels"]], ["void scale<1>(float*, int)"])
    for flags in ((), ("--json",)):
        out = command("inspect", path, "--arch", "sm_90", *flags)
        equal(out.returncode, 1)
        contains(out.stderr, "no image is for this architecture; there are images for sm_75, sm_90a\n")
        out = command("inspect", path, "--arch", "sm_75", "--kernel", "none of them", *flags)
        equal(out.returncode, 1)
    out = command("inspect", path, "--kernel", "none of them")
    equal(out.returncode, 1)
    contains(out.stderr, "no kernel name matches")
    contains(out.stdout, "0 kernels shown, 3 images")


def test_what_makes_no_sense_is_refused_with_the_remedy():
    path = f"{SAMPLES}/75.cubin"
    for flags, cause, remedy in ((("--kernel", "a("), 'cannot be "a("', "extended regular expression"),
                                 (("--arch", "hopper"), 'cannot be "hopper"', "sm_90"),
                                 (("--arch", "compute_75"), 'cannot be "compute_75"', "sm_90"),
                                 (("-p", "1"), "name one file, or a process", "--help")):
        out = command("inspect", path, *flags)
        equal((out.returncode, out.stdout), (2, ""), flags)
        contains(out.stderr, cause)
        contains(out.stderr, remedy)
    equal(command("inspect").returncode, 2)
    for pid in ("x", "0", "-1", "99999999999"):
        out = command("inspect", f"--pid={pid}")
        equal((out.returncode, out.stdout), (2, ""), pid)
        contains(out.stderr, "must be a process ID")


def test_what_is_no_such_file_is_refused_with_the_remedy():
    with tempfile.TemporaryDirectory() as tmp:
        os.mkfifo(f"{tmp}/fifo")
        for name, content in (("empty", b""), ("text", b"kernel\n" * 1000), ("zeros", bytes(100000)), ("magic", b"\x50\xed\x55\xba")):
            with open(f"{tmp}/{name}", "wb") as f:
                f.write(content)
        cases = [(tmp, "a directory: name a file"), (f"{tmp}/fifo", "name a regular file"), ("/dev/null", "name a regular file"),
                 (f"{tmp}/empty", "no file that could hold"), (f"{tmp}/text", "no file that could hold"),
                 (f"{tmp}/zeros", "no file that could hold"), (f"{tmp}/none", "no such file"), ("/bin/sh", "no device code in it")]
        if os.getuid():
            with open(f"{tmp}/secret", "wb"):
                os.chmod(f"{tmp}/secret", 0)
            cases.append((f"{tmp}/secret", "not readable by this user"))
        for path, remedy in cases:
            for flags in ((), ("--json",)):
                out = command("inspect", *flags, path)
                equal((out.returncode, out.stdout), (1, ""), path)
                contains(out.stderr, f"gpusonde inspect: {path}: ")
                contains(out.stderr, remedy)
        equal(command("inspect", f"{tmp}/magic").returncode, 1)
        out = command("inspect", f"{tmp}/\x1b[1m")
        equal(out.returncode, 1)
        assert "\x1b" not in out.stderr, out.stderr


def test_files_cut_short_anywhere():
    paths = [f"{SAMPLES}/{name}" for name in ("75.cubin", "speed.fatbin", "lib.so", "rdc.a")]
    try:
        paths.append(program()[0])
    except Skip:
        pass
    partial = 0
    with tempfile.TemporaryDirectory() as tmp:
        for path in paths:
            with open(path, "rb") as f:
                whole = f.read()
            for part in range(1, 16):
                with open(f"{tmp}/cut", "wb") as f:
                    f.write(whole[:len(whole) * part // 16])
                out = command("inspect", "--json", f"{tmp}/cut")
                assert out.returncode in (0, 1), out
                assert out.returncode == 0 or out.stderr.startswith("gpusonde inspect: "), out
                if out.stdout:
                    found = checked(out.stdout)
                    partial += bool(found["errors"] and found["images"])
    assert partial > 0, "no file cut short gave both images and errors"


def test_what_could_not_be_read_is_told_and_the_rest_shown():
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{SAMPLES}/speed.fatbin", "rb") as f:
            whole = bytearray(f.read())
        whole[700:760] = bytes(60) # in the first image that is compressed
        with open(f"{tmp}/broken", "wb") as f:
            f.write(whole)
        found = document(f"{tmp}/broken")
        assert found["errors"] and found["errors"][0]["offset"] > 0 and found["errors"][0]["text"], found
        equal({k["arch"] for k in found["kernels"]}, {"sm_90a"})
        out = command("inspect", f"{tmp}/broken")
        equal(out.returncode, 0)
        assert re.search(r"gpusonde inspect: \S+/broken: at 0x[0-9a-f]+: ", out.stderr), out.stderr
        contains(out.stdout, "sm_90a")


def test_names_in_files_do_nothing_to_terminal_or_document():
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{SAMPLES}/75.cubin", "rb") as f:
            content = f.read()
        with open(f"{tmp}/hostile", "wb") as f:
            f.write(content.replace(b"_Z5scaleILi2EEvPfi", b'\x1b[31m"\\\xff\n\x07scale2\x7f'.ljust(18, b"x")[:18]))
        names = {k["demangled"] for k in document(f"{tmp}/hostile")["kernels"]}
        equal(len(names), 2)
        assert not any(re.search(r"[\x00-\x1f\x7f]", name) for name in names), names
        table = inspect(f"{tmp}/hostile", "--full")
        assert "\x1b" not in table and "\x07" not in table, table


def test_a_reader_that_goes_away_is_no_failure():
    path = f"{SAMPLES}/speed.fatbin"
    for flags in ("", "--json"):
        out = subprocess.run(["sh", "-c", f"({GPUSONDE} inspect {flags} {path}; echo $? >&2) | head -n 1 >/dev/null"],
                             capture_output=True, text=True, check=False, env=environment())
        equal(out.stderr, "0\n")
    with open("/dev/full", "w", encoding="ascii") as full:
        out = subprocess.run([GPUSONDE, "inspect", path], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment())
    equal(out.returncode, 1)
    contains(out.stderr, "cannot write to standard output")


def test_what_a_process_maps():
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copy(f"{SAMPLES}/lib.so", tmp)
        shutil.copy(f"{SAMPLES}/speed.fatbin", tmp)
        with open(f"{tmp}/lib.so", "rb") as one, open(f"{tmp}/speed.fatbin", "rb") as other:
            maps = [mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) for f in (one, one, other)]
        os.unlink(f"{tmp}/speed.fatbin")
        out = command("inspect", "--json", "-p", str(os.getpid()))
        equal(out.returncode, 0, out.stderr)
        found = checked(out.stdout)
        files = {i["file"] for i in found["images"] if i["file"].startswith(tmp)}
        equal(files, {f"{tmp}/lib.so", f"{tmp}/speed.fatbin (deleted)"} if os.getuid() == 0 else files)
        equal(sum(i["file"] == f"{tmp}/lib.so" for i in found["images"]), 1)
        out = command("inspect", "-p", str(os.getpid()), "--arch", "sm_75")
        equal(out.returncode, 0, out.stderr)
        contains(out.stdout, f"{tmp}/lib.so:\nARCH ")
        for area in maps:
            area.close()


def test_a_program_that_runs():
    path, said = program()
    with subprocess.Popen([path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()) as process:
        try:
            equal(process.stdout.readline(), "ready\n")
            found = checked(command("inspect", "--json", "-p", str(process.pid)).stdout)
            equal({(k["name"], k["arch"]) for k in found["kernels"] if found["images"][k["image"]]["file"] == path}, set(said))
        finally:
            process.kill()


def test_processes_that_have_nothing_to_show():
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(("sleep", "coreutils", "busybox")), "sleep to be sleep")
            out = command("inspect", "-p", str(process.pid))
        finally:
            process.kill()
    equal((out.returncode, out.stdout), (1, ""))
    contains(out.stderr, "maps no file with device code")
    out = command("inspect", "--json", "-p", str(process.pid))
    equal((out.returncode, out.stdout), (1, ""))
    contains(out.stderr, f"there is no process {process.pid}")


def limited(*args):
    """Its output, or a failure where it needed more memory than it may. A file that is read is not mapped."""
    code = ("import os, resource, subprocess, sys\n"
            "status = subprocess.run(sys.argv[1:]).returncode\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n"
            "sys.exit(status)\n")
    out = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False, env=environment())
    equal(out.returncode, 0, out.stderr)
    most = int(out.stderr.split()[-1]) * resource.getpagesize() // resource.getpagesize() * 1024
    assert most < MEMORY, f"{args}: {most >> 20} MiB"
    return out.stdout


def test_one_thread_says_the_same_as_many():
    with open(f"{SAMPLES}/speed.fatbin", "rb") as f:
        good = f.read()
    broken = bytearray(good)
    broken[700:760] = bytes(60)
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/many", "wb") as f:
            for i in range(500):
                f.write((broken if i % 3 == 1 else good) + bytes(-len(good) % 8) + (b"garbage." if i % 50 == 7 else b""))
        paths = [f"{tmp}/many"] + [path for path in (f"{TOOLKIT}/lib64/libcusolver.so", f"{TOOLKIT}/lib64/libcublas.so") if os.path.exists(path)]
        cpu = str(min(os.sched_getaffinity(0)))
        for path in paths:
            for flags in ((), ("--json",), ("--json", "--arch", "sm_90a"), ("--kernel", "<2>")):
                many = command("inspect", *flags, path)
                one = subprocess.run(["taskset", "-c", cpu, GPUSONDE, "inspect", *flags, path], capture_output=True, text=True, check=False,
                                     env=environment())
                equal((many.returncode, many.stderr), (one.returncode, one.stderr), flags)
                assert many.stdout == one.stdout, (path, flags)
                nothing = "\n0 kernels shown" in many.stdout or '"images":[]' in many.stdout
                equal(many.returncode, int(nothing), (path, flags))
        found = document(f"{tmp}/many")
        equal(len(found["images"]), 1500)
        assert any("more things that could not be read" in e["text"] for e in found["errors"]) or len(found["errors"]) < 256


def test_libraries_of_the_toolkit():
    found = [path for name in ("cublas", "cublasLt", "cudnn_engines_precompiled", "cudnn_ops", "nccl", "cusparse", "cusolver", "curand")
             for path in sorted(glob.glob(f"{TOOLKIT}/lib64/lib{name}.so"))]
    if not found:
        raise Skip("NVIDIA's libraries are not here")
    for path in found:
        read = checked(limited(GPUSONDE, "inspect", "--json", path))
        equal(read["errors"], [], path)
        assert len(read["kernels"]) > 100 and len(read["images"]) > 10, path
        mangled = [k["name"] for k in read["kernels"] if k["name"].startswith("_Z") and k["demangled"] == k["name"]]
        equal(mangled, [], path)
        for kernel in read["kernels"]:
            assert all(kernel[f] is not None for f in ("registers", "static_shared_bytes", "code_bytes")), (path, kernel)


if __name__ == "__main__":
    run()
