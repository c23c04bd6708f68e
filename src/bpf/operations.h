// SPDX-License-Identifier: Apache-2.0
/* What calls do (enum trace_op), and the values of their operands. Part of bpf/spec.h. */
#pragma once

/* The operation that a call performs, with its operands. Rows of probes (trace/libraries.def) name one. */
enum trace_op {
	TRACE_OP_NONE,
	TRACE_OP_LAUNCH,
	TRACE_OP_GRAPH_INSTANTIATE, /* handle: the executable graph; addr: the graph it is created from */
	TRACE_OP_GRAPH_LAUNCH, /* handle: the executable graph */
	TRACE_OP_GRAPH_DESTROY, /* handle: a graph, executable or not */
	TRACE_OP_CAPTURE_BEGIN, /* stream */
	TRACE_OP_CAPTURE_END, /* stream; handle: the graph */
	TRACE_OP_ALLOC, /* addr, size (times height, depth), kind: enum trace_memory; stream */
	TRACE_OP_FREE, /* addr, kind; stream */
	TRACE_OP_MAP, /* VMM: addr, size, handle */
	TRACE_OP_UNMAP, /* VMM: addr, size */
	/*
	 * size, kind: enum trace_copy; stream. The driver's 2D, 3D: handle, addr: CUmemorytype of source,
	 * destination (1 host .. 4)
	 */
	TRACE_OP_COPY,
	TRACE_OP_SET, /* memset: addr, size; stream */
	TRACE_OP_SYNC_STREAM, /* stream */
	TRACE_OP_SYNC_EVENT, /* handle: the event */
	TRACE_OP_SYNC_CONTEXT, /* the current context, or handle */
	TRACE_OP_SYNC_DEVICE, /* runtime: the current device */
	TRACE_OP_QUERY_STREAM,
	TRACE_OP_QUERY_EVENT,
	TRACE_OP_EVENT_CREATE,
	TRACE_OP_EVENT_DESTROY,
	TRACE_OP_EVENT_RECORD, /* handle: the event; stream */
	TRACE_OP_EVENT_WAIT, /* stream waits for handle */
	TRACE_OP_STREAM_CREATE, /* stream: the new one; kind: flags (1 non-blocking) */
	TRACE_OP_STREAM_DESTROY,
	/*
	 * cuInit; when it is entered, also a NAME event for each enum trace_variable: handle: which, of: enum
	 * trace_set
	 */
	TRACE_OP_INIT,
	TRACE_OP_CONTEXT_CREATE, /* handle: the new context; kind: the device's ordinal. Becomes current */
	TRACE_OP_CONTEXT_RETAIN, /* primary: handle, kind: ordinal. Does not become current */
	TRACE_OP_CONTEXT_RELEASE, /* primary: kind: ordinal */
	TRACE_OP_CONTEXT_RESET, /* primary: kind: ordinal; all its resources are freed */
	TRACE_OP_CONTEXT_DESTROY, /* handle */
	TRACE_OP_CONTEXT_SET, /* handle becomes this thread's current context, 0: none */
	TRACE_OP_CONTEXT_PUSH,
	TRACE_OP_CONTEXT_POP,
	TRACE_OP_DEVICE_SET, /* runtime: kind: ordinal */
	TRACE_OP_DEVICE_RESET, /* runtime: the current device */
	TRACE_OP_DEVICE_GET, /* cuDeviceGet: handle: the device, kind: ordinal */
	TRACE_OP_MODULE_LOAD, /* handle: module or library; addr: its image in memory */
	TRACE_OP_MODULE_FILE, /* a NAME event: handle: module or library, name: the path of its file */
	TRACE_OP_MODULE_UNLOAD,
	/* a NAME event: handle: a new function's, of: module or library, name: the kernel's symbol */
	TRACE_OP_FUNCTION_NAME,
	/* handle, not 0: the same kernel as addr, which is a handle or a host function */
	TRACE_OP_FUNCTION_ALIAS,
	/*
	 * __cudaRegisterFunction: handle: host function; addr: address of the kernel's symbol, in the file's
	 * data
	 */
	TRACE_OP_FUNCTION_REGISTER,
	/* PyTorch (bpf/operators.h); only counted, and said of what is called within it */
	TRACE_OP_OPERATOR,
	TRACE_OP_BINDING, /* the function of Python's binding that calls an operator; only counted */
	/* What else PyTorch does (bpf/torch.h), entries of functions: */
	TRACE_OP_TORCH_EDGE, /* the operator that the thread is in makes a node of a graph; no event */
	/*
	 * a node is evaluated: addr: the node, handle: its type, size: its sequence number. Also a NAME event
	 * now and then: handle: type, name: as C++ has it
	 */
	TRACE_OP_TORCH_NODE,
	/*
	 * an allocator's report: addr, size: bytes, of what is freed negative; stream: all that is allocated,
	 * handle: all that is reserved, kind: TRACE_TORCH_DEVICE
	 */
	TRACE_OP_TORCH_MEMORY,
	TRACE_OP_TORCH_OOM, /* the same, when it fails: size: what was asked for */
	TRACE_OP_TORCH_RANGE, /* a NAME event: what record_function() begins */
	/* CPython (bpf/garbage.h, bpf/gil.h). */
	TRACE_OP_PYTHON_CALL, /* a function that calls an object of Python; only counted */
	/* when it has ended; kind: generation, TRACE_GENERATION_UNKNOWN */
	TRACE_OP_PYTHON_GC,
	TRACE_OP_PYTHON_GC_PHASE, /* no event; argument 0 or 1 points at "stop" when garbage was collected */
	/*
	 * Of no probe: the thread has waited for its interpreter's lock. size: how often; duration_ns:
	 * together; addr: the longest, in ns
	 */
	TRACE_OP_PYTHON_GIL,
	/*
	 * cuBLAS (blas/blas.h). A multiplication: addr: m, other: n, stream: k, size: the batch, handle:
	 * cuBLAS's, kind: TRACE_GEMM_TYPES
	 */
	TRACE_OP_BLAS_GEMM,
	TRACE_OP_BLAS_MATH, /* handle; kind: enum cublasMath_t of its later calls */
	/* cublasLtMatmul: digests of its descriptor (addr) and of A (handle), B (size) and D (stream) */
	TRACE_OP_BLAS_MATMUL,
	TRACE_OP_BLAS_LAYOUT, /* handle: digest of a new layout; kind: type, addr: rows, stream: columns */
	/*
	 * an attribute of a layout is set: addr: digest before, handle: after; kind: attribute, size: its
	 * value, stream: the value's bytes
	 */
	TRACE_OP_BLAS_LAYOUT_SET,
	TRACE_OP_BLAS_DESC, /* handle: digest of a new descriptor; kind: enum cublasComputeType_t */
	TRACE_OP_BLAS_UNKNOWN, /* a multiplication whose size is not among the arguments */
	/*
	 * NCCL. addr: the communicator; size: bytes of the argument; stream; kind: ncclDataType_t;
	 * handle: ncclRedOp_t; other: root or peer
	 */
	TRACE_OP_NCCL_ALL_REDUCE,
	TRACE_OP_NCCL_REDUCE,
	TRACE_OP_NCCL_REDUCE_SCATTER,
	TRACE_OP_NCCL_BROADCAST,
	TRACE_OP_NCCL_ALL_GATHER,
	TRACE_OP_NCCL_ALL_TO_ALL,
	TRACE_OP_NCCL_GATHER,
	TRACE_OP_NCCL_SCATTER,
	TRACE_OP_NCCL_SEND,
	TRACE_OP_NCCL_RECV,
	TRACE_OP_NCCL_PUT, /* one-sided, with a signal */
	TRACE_OP_NCCL_SIGNAL, /* addr, stream; other: peer */
	TRACE_OP_NCCL_WAIT_SIGNAL, /* addr, stream */
	/* handle: the new communicator; addr: hash of its ID; kind: ranks; other: this one */
	TRACE_OP_NCCL_INIT,
	TRACE_OP_NCCL_INIT_ALL, /* one event for each: handle, kind and other as above */
	/* addr: the parent; handle: the new one, 0: none; kind: color; other: key */
	TRACE_OP_NCCL_SPLIT,
	TRACE_OP_NCCL_SHRINK, /* the same; kind: ranks that are left out */
	TRACE_OP_NCCL_GROW, /* the same; kind: ranks of the new one; other: rank of one that joins */
	TRACE_OP_NCCL_FINALIZE, /* addr; ncclCommRevoke, too: no operation begins any more */
	TRACE_OP_NCCL_DESTROY, /* addr */
	TRACE_OP_NCCL_ABORT, /* addr */
	TRACE_OP_NCCL_ASYNC_ERROR, /* addr; kind: ncclResult_t of work that goes on */
	TRACE_OP_NCCL_COUNT, /* addr; kind: ranks */
	TRACE_OP_NCCL_USER_RANK, /* addr; kind: this rank */
	TRACE_OP_NCCL_REGISTER, /* addr; size: bytes of a user's buffer; handle: the new one */
	TRACE_OP_NCCL_DEREGISTER, /* addr, handle */
	TRACE_OP_NCCL_MEM_ALLOC, /* addr: the memory; size */
	TRACE_OP_NCCL_MEM_FREE, /* addr: the memory */
	TRACE_OP_NCCL_GROUP_START, /* other: depth that it makes */
	/* other: depth that it ends; of the outermost, stream: when it began; handle: its operations */
	TRACE_OP_NCCL_GROUP_END,
	TRACE_OPS,
	/* Of PyTorch, beside its operators. */
	TRACE_OP_TORCH_FIRST = TRACE_OP_BINDING,
	TRACE_OP_TORCH_LAST = TRACE_OP_TORCH_RANGE,
	TRACE_OP_PYTHON_FIRST = TRACE_OP_PYTHON_CALL,
	TRACE_OP_PYTHON_LAST = TRACE_OP_PYTHON_GIL,
	TRACE_OP_NCCL_FIRST = TRACE_OP_NCCL_ALL_REDUCE,
	TRACE_OP_NCCL_LAST = TRACE_OP_NCCL_GROUP_END,
	/* Those that move data: collectives and point to point. */
	TRACE_OP_NCCL_LAST_MOVING = TRACE_OP_NCCL_WAIT_SIGNAL,
};

enum { TRACE_GENERATION_UNKNOWN = -1 };

/* The environment variables by which a process selects its devices. */
enum trace_variable {
	TRACE_VARIABLE_VISIBLE, /* CUDA_VISIBLE_DEVICES */
	TRACE_VARIABLE_ORDER, /* CUDA_DEVICE_ORDER */
	TRACE_VARIABLES,
};

enum trace_set {
	TRACE_SET_UNKNOWN, /* the environment could not be read */
	TRACE_SET_NO,
	TRACE_SET_YES, /* the event's name is the value */
};

/* c10::Device, as it is passed: its type and its index, two bytes with sign. */
#define TRACE_TORCH_DEVICE(type, index) ((__u32)(__u8)(type) | (__u32)(__u8)(index) << 8)

/* Kinds of memory, by allocator. */
enum trace_memory {
	TRACE_MEMORY_DEVICE,
	TRACE_MEMORY_ASYNC, /* stream-ordered, from a pool */
	TRACE_MEMORY_MANAGED,
	TRACE_MEMORY_HOST, /* pinned, allocated */
	TRACE_MEMORY_REGISTERED, /* pinned, allocated by the program */
	TRACE_MEMORY_PHYSICAL, /* VMM: cuMemCreate; addr is the handle */
	TRACE_MEMORY_ARRAY, /* addr is the handle */
	TRACE_MEMORIES,
};

/* 0..4 as in enum cudaMemcpyKind in driver_types.h. */
enum trace_copy {
	TRACE_COPY_HOST_TO_HOST,
	TRACE_COPY_HOST_TO_DEVICE,
	TRACE_COPY_DEVICE_TO_HOST,
	TRACE_COPY_DEVICE_TO_DEVICE,
	TRACE_COPY_DEFAULT, /* the driver determines it from the addresses */
	TRACE_COPY_PEER,
	TRACE_COPIES,
};

/*
 * Types of a multiplication, a byte each: of A, B, C (enum cudaDataType_t) and of computing (enum
 * cublasComputeType_t; the older enum cudaDataType_t), 0 for the latter: by the handle's math mode. 0xff:
 * that or more.
 */
#define TRACE_GEMM_TYPES(a, b, c, compute) ((a) | (b) << 8 | (c) << 16 | (compute) << 24)
/* The arguments that B's and C's types are and that of computing, from 0; 0: there is none. */
#define TRACE_GEMM_WHERE(b, c, compute) ((b) | (c) << 8 | (compute) << 16)
