# SPDX-License-Identifier: Apache-2.0
"""The table of probes against the CUDA toolkit: each name is exported, each operand lies where the header's prototype has it.

Started with the program that prints the table. The prototypes come from the toolkit's own headers through the compiler's preprocessor
(with and without per-thread streams, with the old names), structures' offsets from the compiler itself.
"""
import os
import re
import subprocess
import sys
import tempfile

TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
TABLE = sys.argv[1]

# Exported by older runtimes only (11.8 to 12.9).
OLDER = {"cudaLaunchCooperativeKernelMultiDevice", "cudaThreadExit", "cudaThreadSynchronize"}

CUDA = ("cuda", "cudart")

# Passed by value: bytes. What is larger than 16 lies on the stack (x86-64), dim3 takes two registers.
BY_VALUE = {"dim3": 12, "ncclUniqueId": 128, "struct cudaExtent": 24, "struct cudaPitchedPtr": 32, "CUipcEventHandle": 64, "cudaIpcEventHandle_t": 64,
            "CUipcEventHandle_v1": 64}
WIDE = re.compile(r"\*|\b(size_t|unsigned long long|CU(deviceptr|stream|event|context|module|library|graph|graphExec|function|kernel|"
                  r"array|mipmappedArray|memoryPool|greenCtx|memGenericAllocationHandle|hostFn|streamCallback)\w*|"
                  r"cuda(Stream|Event|Graph|GraphExec|Array|Array_const|MipmappedArray|MemPool|Library|Kernel)_t)\b")
STREAM = re.compile(r"\b(CUstream|cudaStream_t)\b")
# What an operand's argument may be called.
NAMED = {
    "SIZE": r"bytesize|ByteCount|count|size|sizes|N|Width|WidthInBytes|width|pitch|pPitch|\w+\.width",
    "TIMES": r"Height|height|count|\w+\.height",
    "KIND": r"kind|dev|device|ordinal|[fF]lags",
}
# Members that operands in memory must be, by structure.
MEMBERS = {
    "CUDA_MEMCPY2D": {"HANDLE": "srcMemoryType", "ADDR": "dstMemoryType", "SIZE": "WidthInBytes", "TIMES": "Height"},
    "CUDA_MEMCPY3D": {"HANDLE": "srcMemoryType", "ADDR": "dstMemoryType", "SIZE": "WidthInBytes", "TIMES": "Height", "depth": "Depth"},
    "CUDA_MEMCPY3D_PEER": {"HANDLE": "srcMemoryType", "ADDR": "dstMemoryType", "SIZE": "WidthInBytes", "TIMES": "Height",
                           "depth": "Depth"},
    "struct cudaMemcpy3DParms": {"HANDLE": "srcArray", "ADDR": "dstArray", "SIZE": "extent.width", "TIMES": "extent.height",
                                 "depth": "extent.depth", "KIND": "kind"},
    "struct cudaMemcpy3DPeerParms": {"HANDLE": "srcArray", "ADDR": "dstArray", "SIZE": "extent.width", "TIMES": "extent.height",
                                     "depth": "extent.depth"},
}
LAUNCH = ["f", "gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes", "hStream"]
# cudaLaunchConfig_t and CUlaunchConfig, as the kernel side reads them.
CONFIG = {"cudaLaunchConfig_t": [("gridDim", 0), ("blockDim", 12), ("dynamicSmemBytes", 24), ("stream", 32)],
          "CUlaunchConfig": [("gridDimX", 0), ("gridDimY", 4), ("gridDimZ", 8), ("blockDimX", 12), ("blockDimY", 16), ("blockDimZ", 20),
                             ("sharedMemBytes", 24), ("hStream", 32)]}
# What an argument that NCCL's columns have may be called.
NCCL = {"ADDR": r"comm|commIds|ptr", "SIZE": r"\w*count|size", "TIMES": r"root|peer|rank|myrank|key", "STREAM": r"stream",
        "HANDLE": r"op|comm|newcomm|handle|win", "KIND": r"datatype|nranks|nRanks|ndev|color|excludeRanksCount|count|rank|asyncError"}
SHAPE_COMMUNICATORS, SHAPE_GEMM = 12, 13
SHAPE_LAUNCH, SHAPE_DIM3, SHAPE_CONFIG, SHAPE_EXTENT, SHAPE_ARRAYS, SHAPE_BATCH, SHAPE_NAME = 1, 2, 3, 4, 5, 6, 7
# A function's handle, or the host function that stands for it; a module's; a string; an image in memory.
FUNCTION = r"(CUfunction|CUkernel|cudaKernel_t|cudaFunction_t|void\*|char\*)"
MODULE = r"(CUmodule|CUlibrary|cudaLibrary_t)"


def table():
    """Rows: library, symbol, shape, depth, {column: (from, argument, width, value)}."""
    for line in subprocess.run([TABLE, "--dump"], check=True, capture_output=True, text=True).stdout.splitlines():
        library, symbol, _, shape, depth, *operands = line.split()
        parsed = {}
        for operand in operands:
            column, rest = operand.split("=")
            source, *numbers = rest.split(":")
            parsed[column] = (source, *map(int, numbers))
        yield library, symbol, int(shape.split("=")[1]), int(depth.split("=")[1]), parsed


def parse(text, returns):
    found = {}
    for name, arguments in re.findall(returns + r"\s+(\w+)\(([^;]*)\)\s*;", text):
        split = []
        for argument in re.sub(r"\s+", " ", arguments).split(","):
            parts = re.match(r"\s*(.*?[\s*])(\w+)(?:\[\])?\s*$", re.sub(r"\b(const|CUDAAPI)\b", "", argument))
            if parts:
                split.append((re.sub(r"\s+\*", "*", parts[1].strip()), parts[2]))
        found.setdefault(name, split)
    return found


def prototypes(header, returns):
    """Exported name: [(type, name)]."""
    found = {}
    for define in ("-DNONE", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-D__CUDA_API_VERSION_INTERNAL"):
        text = subprocess.run(["cc", "-E", "-P", define, f"-I{TOOLKIT}/include", "-include", header, "-x", "c", "/dev/null"],
                              check=True, capture_output=True, text=True).stdout
        found = parse(text, returns) | found
    return found


def slots(arguments):
    """x86-64: (type, name) for each slot, registers 0 to 5, then the stack from 6 on."""
    registers, stack = [], []
    for kind, name in arguments:
        size = BY_VALUE.get(kind, 8)
        words = [(kind, name)] * ((size + 7) // 8)
        if kind == "struct cudaExtent":
            words = [("size_t", f"{name}.{member}") for member in ("width", "height", "depth")]
        if kind == "struct cudaPitchedPtr":
            words = [("void*", f"{name}.ptr"), ("size_t", "pitch"), ("size_t", "xsize"), ("size_t", "ysize")]
        if size <= 16 and len(registers) + len(words) <= 6:
            registers += words
        else:
            stack += words
    return dict(enumerate(registers)) | {6 + i: word for i, word in enumerate(stack)}


def offsets(wanted):
    """{(structure, member): offset}, from the compiler."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/o.c", "w") as source:
            source.write("#include <cuda.h>\n#include <cuda_runtime_api.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n")
            for structure, member in wanted:
                source.write(f'printf("%zu\\n", offsetof({structure}, {member}));\n')
            source.write("return 0;\n}\n")
        subprocess.run(["cc", f"-I{TOOLKIT}/include", "-o", f"{folder}/o", f"{folder}/o.c"], check=True)
        lines = subprocess.run([f"{folder}/o"], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(wanted, map(int, lines)))


def exported(path):
    names = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[2].split("@")[0] for line in names.splitlines() if len(line.split()) == 3}


def check_memory(row, column, operand, pointer, where):
    """An operand read through a pointer."""
    source, _, width, value = operand
    assert pointer[0].endswith("*"), f"{row[1]} {column}: {pointer} is no pointer"
    pointee = pointer[0][:-1]
    if source == "OUT":
        if column == "STREAM":
            assert STREAM.search(pointee), f"{row[1]}: {pointer} points to no stream"
        elif column == "SIZE":
            assert pointee == "size_t" or pointee == "struct cudaPitchedPtr" and value == 8, f"{row[1]}: {pointer} is no size"
        else:
            assert width == (4 if pointee in ("CUdevice", "CUdevice_v1", "int") else 8), f"{row[1]} {column}: width of {pointee}"
            assert value == 0
        return
    structure = re.sub(r"_(st|v\d)$", "", pointee)
    wanted = where[(structure, MEMBERS[structure][column])]
    assert value == wanted, f"{row[1]} {column}: {value}, but {MEMBERS[structure][column]} is at {wanted}"
    assert width == (4 if "Type" in MEMBERS[structure][column] or column == "KIND" else 8), f"{row[1]} {column}: width"


def check_operands(row, arguments, where):
    _, symbol, shape, depth, operands = row
    at = slots(arguments)
    for column, operand in operands.items():
        source, argument, width, value = operand
        if source == "CONST":
            continue
        assert argument in at, f"{symbol} {column}: there is no argument {argument} in {arguments}"
        kind, name = at[argument]
        if source in ("IN", "OUT"):
            check_memory(row, column, operand, at[argument], where)
            continue
        assert width == (8 if WIDE.search(kind) else 4), f"{symbol} {column}: width {width} of {kind} {name}"
        assert value == 0 or value == {"16": 2, "32": 4}[re.search(r"D2?D?(16|32)", symbol)[1]], f"{symbol} {column}: elements of {value}"
        if column == "STREAM" and shape != SHAPE_NAME:
            assert STREAM.search(kind), f"{symbol}: {kind} {name} is no stream"
        if column in NAMED:
            assert re.fullmatch(NAMED[column], name), f"{symbol} {column}: {kind} {name}"
        if column == "SIZE":
            assert kind == ("size_t*" if shape == SHAPE_BATCH else "size_t"), f"{symbol}: {kind} {name} is no size"
        if symbol.startswith("cuMemsetD") and column == "SIZE":
            assert value == {"8": 0, "16": 2, "32": 4}[re.match(r"cuMemsetD(?:2D)?(\d+)", symbol)[1]], f"{symbol}: elements"
    if depth and operands["TIMES"][0] == "IN":
        structure = re.sub(r"_(st|v\d)$", "", at[operands["TIMES"][1]][0][:-1])
        assert depth == where[(structure, MEMBERS[structure]["depth"])], f"{symbol}: depth at {depth}"
    elif depth:
        assert at[depth][1].endswith("depth"), f"{symbol}: depth {at[depth]}"
    # A function with a stream among its arguments says which.
    if shape not in (SHAPE_LAUNCH, SHAPE_DIM3) and operands and not symbol.startswith("cudaMemcpyBatchAsync"):
        if any(STREAM.search(kind) for kind, _ in at.values()):
            assert "STREAM" in operands, f"{symbol}: a stream that is not told"


def check_names(symbol, operands, at):
    """Calls that say which kernel a handle is, or what it is of."""
    kinds = {column: at[argument][0].replace("const ", "") for column, (_, argument, *_) in operands.items()}
    names = {column: at[argument][1] for column, (_, argument, *_) in operands.items()}
    if "Load" in symbol:
        assert re.fullmatch(MODULE + r"\*", kinds["HANDLE"]), (symbol, kinds)
        assert names["ADDR"] in (("fname", "fileName") if kinds["ADDR"] == "char*" else ("image", "code", "fatCubin")), (symbol, names)
    elif "Unload" in symbol:
        assert re.fullmatch(MODULE, kinds["HANDLE"]) and len(kinds) == 1, (symbol, kinds)
    elif "STREAM" in kinds:
        assert re.fullmatch(FUNCTION + r"\*", kinds["HANDLE"]) and re.fullmatch(MODULE, kinds["STREAM"]), (symbol, kinds)
        assert (kinds["ADDR"], names["ADDR"]) == ("char*", "name"), (symbol, names)
    elif symbol.endswith("GetName"):
        assert re.fullmatch(FUNCTION, kinds["HANDLE"]) and kinds["ADDR"] == "char**", (symbol, kinds)
    elif "Register" in symbol:
        assert (names["HANDLE"], names["ADDR"]) == ("hostFun", "deviceName"), (symbol, names)
    else:
        assert re.fullmatch(FUNCTION + r"\*", kinds["HANDLE"]) and re.fullmatch(FUNCTION, kinds["ADDR"]), (symbol, kinds)


def check_shape(row, arguments):
    _, symbol, shape, _, _ = row
    kinds = [kind for kind, _ in arguments]
    if shape == SHAPE_LAUNCH:
        assert [name for _, name in arguments][:9] == LAUNCH, symbol
    elif shape == SHAPE_DIM3:
        assert kinds[1:3] == ["dim3", "dim3"] and kinds[3].endswith("**") and kinds[4:] == ["size_t", "cudaStream_t"], (symbol, kinds)
    elif shape == SHAPE_CONFIG:
        assert kinds[0] in ("cudaLaunchConfig_t*", "CUlaunchConfig*"), (symbol, kinds)
    elif shape == SHAPE_EXTENT:
        assert kinds == ["struct cudaPitchedPtr*", "struct cudaExtent"], (symbol, kinds)


def nccl_header():
    """NCCL's header: beside the toolkit's, or the system's."""
    places = [f"{TOOLKIT}/include/nccl.h", "/usr/include/nccl.h"]
    return next((place for place in places if os.path.exists(place)), None)


def check_nccl(row, arguments):
    """Each column is the argument of that name, and each of these arguments has a column."""
    _, symbol, shape, _, operands = row
    at = slots(arguments)
    columns = {name: column for column, (_, argument, *_) in operands.items() for _, name in [at[argument]]}
    for name, column in columns.items():
        kind = next(kind for kind, other in arguments if other == name)
        source, _, width, _ = operands[column]
        assert re.fullmatch(NCCL[column], name), f"{symbol} {column}: {kind} {name}"
        wide = kind.endswith("*") and source == "ARG" or re.search(r"size_t|Comm_t|Stream_t|Window_t|void|Comm_t\*", kind)
        assert width == (8 if wide else 4), f"{symbol} {column}: width {width} of {kind} {name}"
    for kind, name in arguments:
        told = shape != SHAPE_COMMUNICATORS and not symbol.startswith("ncclCommGrow")
        assert name in columns or name not in ("comm", "stream", "datatype", "op", "root", "peer", "rank", "nranks") or not told, \
            f"{symbol}: {name} is not told"


def test_nccl_lies_where_its_header_says(rows):
    header = nccl_header()
    if not header:
        print("# no nccl.h: NCCL's rows are not compared")
        return
    with open(header) as text:
        known = parse(re.sub(r"/\*.*?\*/", " ", re.sub(r"\s+", " ", text.read())), "ncclResult_t")
    checked = 0
    for row in rows:
        if row[0] == "nccl" and row[1] in known:
            check_nccl(row, known[row[1]])
            checked += 1
    assert checked >= 18, f"only {checked} functions of NCCL are in {header}"
    print(f"# {checked} prototypes of {header}")


def test_names_are_exported(rows):
    stub = exported(f"{TOOLKIT}/lib64/stubs/libcuda.so")
    runtime = exported(f"{TOOLKIT}/lib64/libcudart.so.13")
    for library, symbol, *_ in rows:
        if library == "cuda":
            assert symbol in stub, f"libcuda does not export {symbol}"
        if library == "cudart":
            assert (symbol in runtime) != (symbol in OLDER), f"libcudart {'exports' if symbol in OLDER else 'lacks'} {symbol}"


def test_twins_and_versions_are_there(rows):
    names = {symbol for library, symbol, *_ in rows if library in CUDA}
    every = exported(f"{TOOLKIT}/lib64/stubs/libcuda.so") | exported(f"{TOOLKIT}/lib64/libcudart.so.13")
    bases = {re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", symbol) for symbol in names}
    relics = {name for name in every if re.fullmatch(r"cu[A-Z]\w+", name) and f"{name}_v2" in every and name not in names}
    for name in sorted(every - names - relics):
        base = re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name)
        assert base not in bases, f"{name} is not probed, but others of {base} are"


def test_operands_lie_where_the_headers_say(rows):
    known = prototypes("cuda.h", "CUresult") | prototypes("cuda_runtime_api.h", "cudaError_t")
    # What nvcc's own code calls: prototypes for C++ only, so without the preprocessor.
    with open(f"{TOOLKIT}/include/crt/host_runtime.h") as header:
        known |= parse(re.sub(r"\s+", " ", header.read()), r"(?:cudaError_t|void) CUDARTAPI")
    known["__cudaGetKernel"] = known["cudaGetKernel"]
    for suffix in ("", "_ptsz"):
        known[f"__cudaLaunchKernel{suffix}"] = [("cudaKernel_t", "kernel")] + known["cudaLaunchKernel"][1:]
    where = offsets([(structure, member) for structure, members in MEMBERS.items() for member in members.values()])
    checked = 0
    for row in rows:
        if row[0] not in CUDA or row[1] in OLDER and not row[4]:
            continue
        assert row[1] in known, f"no prototype of {row[1]}"
        check_operands(row, known[row[1]], where)
        if re.search(r"Module|Library|Get(Kernel|Func|Name)|KernelGet|FuncGet|RegisterF", row[1]):
            check_names(row[1], row[4], slots(known[row[1]]))
        check_shape(row, known[row[1]])
        checked += 1
    print(f"# {checked} prototypes")


def test_launch_configurations(_):
    where = offsets([(structure, member) for structure, members in CONFIG.items() for member, _ in members])
    for structure, members in CONFIG.items():
        for member, offset in members:
            assert where[(structure, member)] == offset, f"{structure}.{member} is at {where[(structure, member)]}"


def check_gemm(symbol, operands, at):
    """A multiplication: sizes, batch and types by the names that NVIDIA gave them."""
    wide = symbol.endswith("_64")
    names = {column: at[operand[1]][1] for column, operand in operands.items() if operand[0] == "ARG"}
    assert (names["ADDR"], names["TIMES"], names["STREAM"], names["HANDLE"]) == ("m", "n", "k", "handle"), (symbol, names)
    for column in ("ADDR", "TIMES", "STREAM"):
        assert operands[column][2] == (8 if wide else 4) and at[operands[column][1]][0] == ("int64_t" if wide else "int"), symbol
    batch = [argument for argument, (_, name) in at.items() if name == "batchCount"]
    if batch:
        assert operands["SIZE"] == ("ARG", batch[0], 8 if wide else 4, 0), (symbol, operands["SIZE"])
    else:
        assert operands["SIZE"][0] == "CONST" and operands["SIZE"][3] == 1, (symbol, operands["SIZE"])
    check_types(symbol, operands["KIND"], {name: argument for argument, (_, name) in at.items()})


def check_types(symbol, kind, where):
    source, a, _, value = kind
    if "Atype" in where:
        assert source == "ARG", symbol
        told = [a] + [value >> shift & 0xff for shift in (0, 8, 16)]
        assert told == [where["Atype"], where["Btype"], where["Ctype"], where.get("computeType", 0)], (symbol, told)
    else:
        wanted = {"S": (0, 0), "D": (1, 70), "C": (4, 0), "Z": (5, 70), "H": (2, 64)}[symbol[6]]
        assert source == "CONST" and value == wanted[0] * 0x010101 | wanted[1] << 24, (symbol, hex(value))


def check_lt(symbol, operands, at):
    names = {column: at[operand[1]][1] for column, operand in operands.items()}
    wanted = {"cublasLtMatmul": {"ADDR": "computeDesc", "HANDLE": "Adesc", "SIZE": "Bdesc", "STREAM": "Ddesc"},
              "cublasLtMatrixLayoutCreate": {"HANDLE": "matLayout", "KIND": "type", "ADDR": "rows", "STREAM": "cols"},
              "cublasLtMatrixLayoutInit_internal": {"HANDLE": "matLayout", "KIND": "type", "ADDR": "rows", "STREAM": "cols"},
              "cublasLtMatrixLayoutSetAttribute": {"ADDR": "matLayout", "HANDLE": "matLayout", "KIND": "attr", "SIZE": "buf",
                                                   "STREAM": "sizeInBytes"},
              "cublasLtMatmulDescCreate": {"HANDLE": "matmulDesc", "KIND": "computeType"},
              "cublasLtMatmulDescInit_internal": {"HANDLE": "matmulDesc", "KIND": "computeType"}}[symbol]
    assert names == wanted, (symbol, names)


def test_multiplications_lie_where_the_headers_say(rows):
    headers = {"cublas": "cublas_v2.h", "cublasLt": "cublasLt.h", "cudnn": "cudnn.h"}
    have = {library: header for library, header in headers.items() if os.path.exists(f"{TOOLKIT}/include/{header}")}
    known = {}
    for library, header in have.items():
        known |= prototypes(header, r"(?:cublasStatus_t|cudnnStatus_t)(?:\s+CUBLASWINAPI|\s+CUDNNWINAPI)?")
    checked = 0
    for library, symbol, shape, _, operands in rows:
        if symbol not in known:
            continue
        at = slots(known[symbol])
        if shape == SHAPE_GEMM:
            check_gemm(symbol, operands, at)
        elif library == "cublasLt":
            check_lt(symbol, operands, at)
        elif library == "cublas" and operands:
            assert at[operands["HANDLE"][1]][1] == "handle" and operands["KIND"][0] in ("CONST", "ARG"), symbol
        checked += library in have
    print(f"# {checked} prototypes of {', '.join(have) or 'no library'}")
    if "cublas" in have:
        assert checked > 60, checked


def test_every_multiplication_of_cublas_is_there(rows):
    library = f"{TOOLKIT}/lib64/libcublas.so.13"
    if not os.path.exists(library):
        return
    names = {symbol for _, symbol, *_ in rows}
    left_out = re.compile(r"cublas(Xt\w+|[SDCZ]gemm|Uint8gemmBias)")
    missing = [name for name in exported(library) if re.search("[gG]emm", name) and name not in names and not left_out.fullmatch(name)]
    assert not missing, sorted(missing)


def main():
    if not os.path.exists(f"{TOOLKIT}/include/cuda.h"):
        print(f"1..0 # SKIP no CUDA toolkit in {TOOLKIT} (CUDA_HOME names another)")
        return 0
    rows = list(table())
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            test(rows)
            print(f"ok {number} - {test.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"not ok {number} - {test.__name__}\n# {error}")
    return failed > 0


sys.exit(main())
