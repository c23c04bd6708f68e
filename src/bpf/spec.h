// SPDX-License-Identifier: Apache-2.0
/*
 * What is probed: limits, layers, operations, and struct trace_spec, which describes where a call's arguments
 * are. Shared by the kernel side and user space, which creates the specs from its tables of probes.
 */
#pragma once

#include <linux/types.h>

#include "bpf/latency.h"
#include "bpf/operations.h"

enum {
	/* Of spec.h, event.h and shared.h: increased with every change of the interface. */
	TRACE_VERSION = 13,
	TRACE_PROCESSES_MAX = 16384, /* maximum processes with sums */
	TRACE_CALLS_MAX = 16384, /* maximum rows of all tables of probes */
	TRACE_OPERANDS = 6,
	TRACE_COMM = 16, /* TASK_COMM_LEN */
	TRACE_INITS_MAX = 16, /* calls of a process that send its environment */
	/* Capacities for a name in its event: the smallest that fits is used. Longer names are cut. */
	TRACE_NAME_SMALL = 192,
	TRACE_NAME_MEDIUM = 1024,
	TRACE_NAME_LARGE = 16384,
	TRACE_ACTIVE = 4096,
	TRACE_OPERATORS_DEEP = 16, /* operators of a thread within each other that are told apart */
	TRACE_EDGES = 32768, /* of graphs of PyTorch: nodes whose operator is remembered, of all processes */
	TRACE_NODE_TYPES = 4096, /* types of nodes whose name was sent */
	TRACE_BATCH_MAX = 128, /* copies of one batched call whose sizes are added up */
	TRACE_COMMS_MAX = 32, /* communicators of one ncclCommInitAll() that send an event */
	/* Error codes of a process and call that are counted apart; the others are counted together. */
	TRACE_CODES_MAX = 15,
};

/*
 * Layers, from the lowest to the highest. Calls nest only within their layer. The CUDA driver and its runtime
 * are one layer: a call of the driver by the runtime is part of the runtime's call.
 */
enum trace_layer {
	TRACE_LAYER_CUDA,
	TRACE_LAYER_BLAS,
	TRACE_LAYER_NCCL,
	TRACE_LAYER_TORCH,
	TRACE_LAYER_PYTHON,
	TRACE_LAYER_USER, /* functions that the user names, with a return probe */
	TRACE_LAYER_USER_ENTRY, /* without: no call encloses another one */
	TRACE_LAYERS,
	TRACE_LAYER_WIDTH = 4, /* bits */
	TRACE_LAYER_BITS = (1 << TRACE_LAYER_WIDTH) - 1,
};

/* How a function reports failure. */
enum trace_result {
	TRACE_RESULT_OF_LIBRARY, /* as in the row of its library; not used on the kernel side */
	TRACE_RESULT_CUDA, /* CUresult, cudaError_t: 0, and "not ready" of a query, are success */
	TRACE_RESULT_INT, /* int or enum: 0 is success, others are error codes */
	TRACE_RESULT_POINTER, /* NULL is failure, with code TRACE_RESULT_NULL; others: success, code 0 */
	TRACE_RESULT_NONE, /* it does not report failure */
	TRACE_RESULT_NCCL, /* ncclResult_t: 0, and 7 (in progress), are success */
	TRACE_RESULT_WIDTH = 4,
	TRACE_RESULT_BITS = (1 << TRACE_RESULT_WIDTH) - 1,
};
enum { TRACE_RESULT_NULL = -1 };

/* How a function's arguments are read. */
enum trace_shape {
	TRACE_SHAPE_PLAIN, /* operands only */
	/*
	 * Launches: the shape determines function, dimensions, shared bytes and stream; operands are ignored.
	 */
	TRACE_SHAPE_LAUNCH, /* cuLaunchKernel: f, gx, gy, gz, bx, by, bz, shared, stream, ... */
	TRACE_SHAPE_LAUNCH_DIM3, /* cudaLaunchKernel: f, dim3, dim3, args, shared, stream */
	TRACE_SHAPE_LAUNCH_CONFIG, /* cuLaunchKernelEx, cudaLaunchKernelExC: config *, f, ... */
	/* cudaMalloc3D: cudaPitchedPtr *, cudaExtent by value; TIMES is its height times its depth */
	TRACE_SHAPE_EXTENT,
	/*
	 * cudaMemcpy3D: HANDLE, ADDR are arrays; if either is not 0, SIZE counts elements and is reported as
	 * 0
	 */
	TRACE_SHAPE_ARRAYS,
	TRACE_SHAPE_BATCH, /* a batch of copies: SIZE is an array of sizes, TIMES their number */
	/* After success, sends a NAME event. HANDLE; ADDR: of the string; STREAM: its module or library */
	TRACE_SHAPE_NAME,
	/* When it is entered, sends a NAME event. ADDR: of the string; HANDLE, STREAM: two numbers */
	TRACE_SHAPE_STRING,
	/* From here on, TIMES is no factor of the size but a number of its own, `other` */
	TRACE_SHAPE_OTHER,
	/* NCCL: SIZE counts elements of type KIND, and is reported as bytes; 0 for unknown types */
	TRACE_SHAPE_ELEMENTS,
	/* ADDR: of an ncclUniqueId; NONE: passed by value on the stack. It is reported as its hash */
	TRACE_SHAPE_UNIQUE_ID,
	/* HANDLE: an array of KIND communicators that the call makes; sends an event for each of them */
	TRACE_SHAPE_COMMUNICATORS,
	/*
	 * A multiplication of cuBLAS: TIMES is n, 0xffffffff if it is that or more. If KIND is an argument,
	 * it is the type of A, and TRACE_GEMM_WHERE in its `value` says where the others are
	 */
	TRACE_SHAPE_GEMM,
};

enum trace_operand_from {
	TRACE_FROM_NONE,
	TRACE_FROM_CONST, /* `value` */
	/* integer argument `arg`, from 0, in a register or on the stack; times `value` if that is not 0 */
	TRACE_FROM_ARG,
	TRACE_FROM_IN, /* `width` bytes at (argument `arg`) + `value`, read at entry */
	TRACE_FROM_OUT, /* `width` bytes at (argument `arg`) + `value`, read after success */
	/*
	 * Digests of `width` bytes, not 0; 0: they could not be read. Where argument `arg` points, at entry
	 * and after success; where the pointer at argument `arg` points, after success
	 */
	TRACE_FROM_DIGEST_IN,
	TRACE_FROM_DIGEST_OUT,
	TRACE_FROM_DIGEST_MADE,
};

#define TRACE_FROM_IS_OUTPUT(from) \
	((from) == TRACE_FROM_OUT || (from) == TRACE_FROM_DIGEST_OUT || (from) == TRACE_FROM_DIGEST_MADE)

struct trace_operand {
	__u8 from; /* enum trace_operand_from */
	__u8 arg;
	__u8 width; /* bytes: 4 or 8; of an argument, the used part of the register */
	__u8 pad;
	__s32 value;
};
_Static_assert(sizeof(struct trace_operand) == 8, "both sides must agree");

/* Columns of a row of probes, by index in `operands`. */
enum trace_operand_index {
	TRACE_OPERAND_ADDR,
	TRACE_OPERAND_SIZE,
	/* a factor of the size: height, or the number of copies in a batch */
	TRACE_OPERAND_TIMES,
	TRACE_OPERAND_STREAM,
	TRACE_OPERAND_HANDLE,
	TRACE_OPERAND_KIND,
};

enum trace_spec_flag {
	TRACE_SPEC_RETURNS = 1 << 0, /* has a return probe, and ends when that is hit */
	TRACE_SPEC_EVENT = 1 << 1, /* sends an event, since its order matters */
	/* SIZE is not a number of bytes copied or allocated, and is not added in `stats` */
	TRACE_SPEC_SKIP_BYTES = 1 << 2,
	TRACE_SPEC_ALWAYS = 1 << 3, /* sends its event also if it succeeds within another probed call */
	/* a nested call is counted and timed as one of its own */
	TRACE_SPEC_EACH = 1 << 6,
	TRACE_SPEC_STACK = 1 << 7, /* its events carry the thread's stack */
	/* Set by attach_set_spec(), from the operands. */
	TRACE_SPEC_INPUTS = 1 << 4, /* an operand is not NONE */
	TRACE_SPEC_OUTPUTS = 1 << 5, /* an operand is read after success */
};

/* Map `specs`, array by call number; user space writes it from the table of probes before it attaches. */
struct trace_spec {
	__u8 op; /* enum trace_op */
	__u8 shape; /* enum trace_shape */
	__u8 flags; /* enum trace_spec_flag */
	__u8 layer : TRACE_LAYER_WIDTH, result : TRACE_RESULT_WIDTH; /* enum trace_layer, trace_result */
	__u16 event_flags; /* enum trace_event_flag that every event of this call has */
	/*
	 * A third factor of the size; 0: none. If TIMES is read from memory, the u64 at this offset from the
	 * same argument; if TIMES is an argument, the argument with this number
	 */
	__u16 depth_in;
	struct trace_operand operands[TRACE_OPERANDS];
	/*
	 * CLOCK_MONOTONIC, when its probes were last detached: returns of calls open at that time may not be
	 * seen
	 */
	__u64 gone_ns;
};
_Static_assert(sizeof(struct trace_spec) == 64, "both sides must agree");
