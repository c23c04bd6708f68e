// SPDX-License-Identifier: Apache-2.0
/*
 * What crosses the boundary between the kernel side (src/bpf/) and the rest: events in the ring, and the maps
 * that both sides read or write. The only header both see. Fixed widths, explicit padding, sizes asserted;
 * byte order is the machine's own.
 *
 * Invariants
 *  1. A call is counted in `stats` exactly once, when its outermost probed function returns (or, where
 *     there is no return probe, when it is entered). Calls nested in it on the same thread are `nested`,
 *     nothing else.
 *  2. Every event has a number of its CPU's: per CPU, produced = events in the ring + dropped.
 *  3. `stats` and `errors` never lose a call that the ring loses; what they lose themselves (a full map)
 *     is in `counters`.
 */
#pragma once

#include <linux/types.h>

enum {
	/* Of all that this header says: goes up with every change of it. */
	TRACE_VERSION = 2,
	TRACE_CALLS_MAX = 8192, /* rows of all tables of probes, at most */
	TRACE_OPERANDS = 6,
	TRACE_COMM = 16, /* TASK_COMM_LEN */
	TRACE_TEXT = 216,
	/* A name's room in its event: the smallest that holds it. What is longer is cut. */
	TRACE_NAME_SMALL = 192,
	TRACE_NAME_MEDIUM = 1024,
	TRACE_NAME_LARGE = 16384,
	TRACE_ACTIVE = 4096,
	TRACE_BATCH_MAX = 128, /* copies of one batched call whose sizes are added up */
	/*
	 * Latency: 0..7 ns exactly, then 8 buckets for each power of two up to 2^41 ns (37 minutes); what is
	 * longer is in the last.
	 */
	TRACE_BUCKETS = 8 + 38 * 8,
};

/*
 * Calls nest within their layer only; from the lowest to the highest. The CUDA driver and its runtime are one
 * layer: a call of the driver that the runtime makes is part of the runtime's.
 */
enum trace_layer {
	TRACE_LAYER_CUDA,
	TRACE_LAYER_BLAS,
	TRACE_LAYER_NCCL,
	TRACE_LAYER_TORCH,
	TRACE_LAYER_PYTHON,
	TRACE_LAYERS,
	TRACE_LAYER_NONE = TRACE_LAYERS, /* in no layer: calls that neither nest nor are nested in */
	TRACE_LAYER_WIDTH = 4, /* bits */
	TRACE_LAYER_BITS = (1 << TRACE_LAYER_WIDTH) - 1,
};

/* How a function says that it failed. */
enum trace_result {
	TRACE_RESULT_OF_LIBRARY, /* not on the kernel side: as the row of its library says */
	TRACE_RESULT_CUDA, /* CUresult, cudaError_t: 0, or of a query "not ready", is no failure */
	TRACE_RESULT_INT, /* int or enum: 0 is success, all else a code */
	TRACE_RESULT_POINTER, /* NULL is failure, its code is TRACE_RESULT_NULL; the code of success is 0 */
	TRACE_RESULT_NONE, /* it does not: never a failure */
	TRACE_RESULT_WIDTH = 4,
	TRACE_RESULT_BITS = (1 << TRACE_RESULT_WIDTH) - 1,
};
enum { TRACE_RESULT_NULL = -1 };

/* What kind of thing a call does; the same for all names of one operation. Rows of probes (trace/libraries.def) name one. */
enum trace_op {
	TRACE_OP_NONE,
	TRACE_OP_LAUNCH,
	TRACE_OP_GRAPH_INSTANTIATE, /* handle: the executable graph; addr: the graph it was made of */
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
	TRACE_OP_SYNC_DEVICE, /* the runtime's, of the current device */
	TRACE_OP_QUERY_STREAM,
	TRACE_OP_QUERY_EVENT,
	TRACE_OP_EVENT_CREATE,
	TRACE_OP_EVENT_DESTROY,
	TRACE_OP_EVENT_RECORD, /* handle: the event; stream */
	TRACE_OP_EVENT_WAIT, /* stream waits for handle */
	TRACE_OP_STREAM_CREATE, /* stream: the new one; kind: flags (1 non-blocking) */
	TRACE_OP_STREAM_DESTROY,
	TRACE_OP_INIT,
	TRACE_OP_CONTEXT_CREATE, /* handle: the new context; kind: the device's ordinal. Becomes current */
	TRACE_OP_CONTEXT_RETAIN, /* primary: handle, kind: ordinal. Does not become current */
	TRACE_OP_CONTEXT_RELEASE, /* primary: kind: ordinal */
	TRACE_OP_CONTEXT_RESET, /* primary: kind: ordinal; all it held is gone */
	TRACE_OP_CONTEXT_DESTROY, /* handle */
	TRACE_OP_CONTEXT_SET, /* handle becomes this thread's current context, 0: none */
	TRACE_OP_CONTEXT_PUSH,
	TRACE_OP_CONTEXT_POP,
	TRACE_OP_DEVICE_SET, /* the runtime's: kind: ordinal */
	TRACE_OP_DEVICE_RESET, /* the runtime's, of the current device */
	TRACE_OP_DEVICE_GET, /* cuDeviceGet: handle: the device, kind: ordinal */
	TRACE_OP_MODULE_LOAD, /* handle: module or library; addr: its image in memory */
	TRACE_OP_MODULE_FILE, /* a NAME event: handle: module or library, name: the path it was loaded from */
	TRACE_OP_MODULE_UNLOAD,
	/* a NAME event: handle: a new function's, of: module or library, name: the kernel's symbol */
	TRACE_OP_FUNCTION_NAME,
	/* handle, not 0, stands for the same kernel as addr: a handle, or a host function */
	TRACE_OP_FUNCTION_ALIAS,
	/*
	 * __cudaRegisterFunction: handle: host function; addr: where the kernel's symbol lies, in the file's
	 * data
	 */
	TRACE_OP_FUNCTION_REGISTER,
	TRACE_OP_SETENV, /* a TEXT event instead of a call */
	TRACE_OPS,
};

/* Memory, as allocators differ by it. */
enum trace_memory {
	TRACE_MEMORY_DEVICE,
	TRACE_MEMORY_ASYNC, /* stream-ordered, from a pool */
	TRACE_MEMORY_MANAGED,
	TRACE_MEMORY_HOST, /* pinned, allocated */
	TRACE_MEMORY_REGISTERED, /* pinned, the program's own */
	TRACE_MEMORY_PHYSICAL, /* VMM: cuMemCreate; addr is the handle */
	TRACE_MEMORY_ARRAY, /* addr is the handle */
	TRACE_MEMORIES,
};

/* 0..4 as enum cudaMemcpyKind in driver_types.h. */
enum trace_copy {
	TRACE_COPY_HOST_TO_HOST,
	TRACE_COPY_HOST_TO_DEVICE,
	TRACE_COPY_DEVICE_TO_HOST,
	TRACE_COPY_DEVICE_TO_DEVICE,
	TRACE_COPY_DEFAULT, /* the driver finds out from the addresses */
	TRACE_COPY_PEER,
	TRACE_COPIES,
};

/* How a launch's dimensions reach the function. */
enum trace_shape {
	TRACE_SHAPE_PLAIN, /* operands only */
	/*
	 * Launches: function, dimensions, shared bytes and stream come by the shape, operands are not looked
	 * at.
	 */
	TRACE_SHAPE_LAUNCH, /* cuLaunchKernel: f, gx, gy, gz, bx, by, bz, shared, stream, ... */
	TRACE_SHAPE_LAUNCH_DIM3, /* cudaLaunchKernel: f, dim3, dim3, args, shared, stream */
	TRACE_SHAPE_LAUNCH_CONFIG, /* cuLaunchKernelEx, cudaLaunchKernelExC: config *, f, ... */
	/* cudaMalloc3D: cudaPitchedPtr *, cudaExtent by value: TIMES is its height times its depth */
	TRACE_SHAPE_EXTENT,
	/*
	 * cudaMemcpy3D: HANDLE, ADDR are arrays; where either is not 0, SIZE counts elements and is told as 0
	 */
	TRACE_SHAPE_ARRAYS,
	TRACE_SHAPE_BATCH, /* copies in a batch: operand SIZE is the array of sizes, TIMES their number */
	/*
	 * HANDLE: as after success; ADDR: where a string lies; STREAM: what it is of (a module). A NAME
	 * event, or none
	 */
	TRACE_SHAPE_NAME,
	TRACE_SHAPE_SETENV, /* name, value, overwrite; in no stats */
};

enum trace_operand_from {
	TRACE_FROM_NONE,
	TRACE_FROM_CONST, /* `value` */
	/*
	 * integer argument `arg`, 0 first, beyond the registers from the stack; times `value` where that is
	 * not 0
	 */
	TRACE_FROM_ARG,
	TRACE_FROM_IN, /* `width` bytes at (argument `arg`) + `value`, read at entry */
	TRACE_FROM_OUT, /* `width` bytes at (argument `arg`) + `value`, read after success */
};

struct trace_operand {
	__u8 from; /* enum trace_operand_from */
	__u8 arg;
	__u8 width; /* bytes: 4 or 8; of an argument: how much of the register counts */
	__u8 pad;
	__s32 value;
};
_Static_assert(sizeof(struct trace_operand) == 8, "both sides must agree");

/* Columns of a row of probes, by their place in `operands`. */
enum trace_operand_index {
	TRACE_OPERAND_ADDR,
	TRACE_OPERAND_SIZE,
	/* size is multiplied by it where there is one: height, or the number of a batch */
	TRACE_OPERAND_TIMES,
	TRACE_OPERAND_STREAM,
	TRACE_OPERAND_HANDLE,
	TRACE_OPERAND_KIND,
};

enum trace_spec_flag {
	TRACE_SPEC_RETURNS = 1 << 0, /* there is a return probe: the call is over when it has fired */
	TRACE_SPEC_EVENT = 1 << 1, /* order matters: send an event */
	/* SIZE is no number of bytes moved or asked for: keep it out of `stats` */
	TRACE_SPEC_SKIP_BYTES = 1 << 2,
	TRACE_SPEC_ALWAYS = 1 << 3, /* its event is sent also when it succeeds within another probed call */
	/* Set by attach_set_spec(), from the operands. */
	TRACE_SPEC_INPUTS = 1 << 4, /* one is not NONE */
	TRACE_SPEC_OUTPUTS = 1 << 5, /* one is OUT */
};

/* Map `specs`, array by call number; user space writes it from the table of probes before it attaches. */
struct trace_spec {
	__u8 op; /* enum trace_op */
	__u8 shape; /* enum trace_shape */
	__u8 flags; /* enum trace_spec_flag */
	__u8 layer : TRACE_LAYER_WIDTH, result : TRACE_RESULT_WIDTH; /* enum trace_layer, trace_result */
	__u16 event_flags; /* enum trace_event_flag that every event of this call has */
	/*
	 * A third factor, 0: none. TIMES read from memory: the u64 at this offset from its argument; TIMES an
	 * argument: this argument
	 */
	__u16 depth_in;
	struct trace_operand operands[TRACE_OPERANDS];
	/*
	 * CLOCK_MONOTONIC, when probes of it were taken away last: calls that were open then may never be
	 * seen to return
	 */
	__u64 gone_ns;
};
_Static_assert(sizeof(struct trace_spec) == 64, "both sides must agree");

/*
 * Cookie of a site: the call number, and the flag where the call has a return probe (TRACE_SPEC_RETURNS) but
 * this site has none: then the call is over when it is entered, and its result unknown. Perf path: value of
 * map `sites`.
 */
enum {
	TRACE_SITE_CALL = 0xffff,
	TRACE_SITE_NO_RETURN = 1 << 16,
	TRACE_SITE_STACK_SHIFT =
		32, /* from this bit on: bytes that the stack pointer lies below where it was at the function's entry */
};

/* Perf path (kernels before 6.6): a site is known by the code behind it, because the load address is not. */
struct trace_signature {
	/*
	 * What follows the breakpoint (1 byte on x86-64, 4 on arm64) within 16 bytes of the site, which is
	 * short enough not to reach the next function's breakpoint; zero beyond the page's end.
	 */
	__u64 code[2];
	__u32 page_offset; /* address & 4095 */
	/* the program's own; tells files apart whose signatures are equal but whose calls are not */
	__u32 salt;
};
_Static_assert(sizeof(struct trace_signature) == 24, "both sides must agree");

/* ---- events ---- */

enum trace_event_type {
	TRACE_EVENT_NONE,
	TRACE_EVENT_LAUNCH, /* struct trace_launch */
	TRACE_EVENT_CALL, /* struct trace_call */
	TRACE_EVENT_PROCESS, /* struct trace_process: first hit of a process (or of what it became by exec) */
	/* struct trace_process: it executes another program now, all of CUDA's state is gone */
	TRACE_EVENT_EXEC,
	TRACE_EVENT_EXIT, /* struct trace_process: its last thread has ended */
	TRACE_EVENT_TEXT, /* struct trace_text */
	TRACE_EVENT_NAME, /* struct trace_name */
	/* struct trace_stat_new: an entry of `stats` was made; told once, so that nobody must walk the map */
	TRACE_EVENT_STAT,
	TRACE_EVENTS,
};

enum trace_event_flag {
	/* no return probe: result, duration and what comes out are not known */
	TRACE_FLAG_NO_RESULT = 1 << 0,
	TRACE_FLAG_UNREAD = 1 << 1, /* an operand in the process's memory could not be read: it is 0 */
	TRACE_FLAG_BATCH_CUT = 1 << 2, /* a batch of more than TRACE_BATCH_MAX: size is of the first ones */
	/* a _ptsz or _ptds name: stream 0 is the thread's own default stream */
	TRACE_FLAG_PER_THREAD = 1 << 3,
	TRACE_FLAG_WAITS = 1 << 4, /* copies and sets: returns only when it is done */
	TRACE_FLAG_RUNTIME = 1 << 5, /* a name of the runtime's; else the driver's */
	TRACE_FLAG_KEEPS = 1 << 6, /* setenv: without effect if the variable was there */
};

struct trace_header {
	__u64 time_ns; /* CLOCK_MONOTONIC, when the call was entered */
	__u64 cgroup; /* id in cgroup v2; 0 or 1 where there is none */
	__u64 seq; /* of this CPU, from 1 */
	__u32 tgid, tid; /* in the initial PID namespace */
	__u16 cpu; /* whose seq that is */
	__u16 call; /* row of the table of probes */
	__u8 type; /* enum trace_event_type */
	__u8 op; /* enum trace_op */
	__u16 flags; /* enum trace_event_flag */
	/*
	 * The innermost call that this one is made within, of those of the layers above its own: trace_call's
	 * `number` in the event of that call, which comes later and is of the same thread. 0: in none.
	 */
	__u32 enclosing;
	__u32 stack; /* the stack of the call, by its id; 0: not taken */
};
_Static_assert(sizeof(struct trace_header) == 48, "both sides must agree");

struct trace_launch {
	struct trace_header header;
	__u64 duration_ns; /* of the call, not of the kernel */
	__u64 function; /* CUfunction, CUkernel, cudaKernel_t or host stub: as passed */
	__u64 stream;
	__u32 grid[3], block[3];
	__u32 shared_bytes; /* dynamic; 2^32-1 and more are shown as 2^32-1 */
	__s32 result;
};
_Static_assert(sizeof(struct trace_launch) == 104, "both sides must agree");

struct trace_call {
	struct trace_header header;
	__u64 duration_ns;
	__u64 addr;
	__u64 size; /* bytes, height and depth multiplied in; saturates */
	__u64 stream;
	__u64 handle;
	__s32 result;
	__u32 kind;
	/*
	 * Of this call among its thread's of the layers above CUDA's, from 1; 0 in CUDA's layer, whose calls
	 * enclose none
	 */
	__u32 number;
	__u32 pad;
};
_Static_assert(sizeof(struct trace_call) == 104, "both sides must agree");

struct trace_process {
	struct trace_header header;
	__u64 incarnation; /* as in struct trace_stat_key */
	/* group leader's start on the boot clock, as field 22 of /proc/PID/stat has it in ticks */
	__u64 start_boot_ns;
	__u32 ns_tgid; /* in its own PID namespace */
	__u32 pad;
	char comm[TRACE_COMM];
};
_Static_assert(sizeof(struct trace_process) == 88, "both sides must agree");

/* setenv(name, value) of the one name that matters: value, ended by NUL unless cut. */
struct trace_text {
	struct trace_header header;
	char text[TRACE_TEXT];
};
_Static_assert(sizeof(struct trace_text) == 264, "both sides must agree");

/*
 * A successful call that says what a handle is called. TRACE_FLAG_UNREAD: the name could not be read and is
 * "". The record has one of three sizes: this and TRACE_NAME_SMALL, _MEDIUM or _LARGE; what is behind the NUL
 * means nothing.
 */
struct trace_name {
	struct trace_header header;
	__u64 handle;
	__u64 of; /* module or library; 0: none */
	__u32 name_n; /* without the NUL */
	__u32 cut; /* 1: the name is longer */
	char name[]; /* ended by NUL */
};
_Static_assert(sizeof(struct trace_name) == 72, "both sides must agree");

struct trace_stat_new {
	struct trace_header header; /* tgid, call */
	__u64 incarnation;
};
_Static_assert(sizeof(struct trace_stat_new) == 56, "both sides must agree");

/* ---- maps ---- */

/*
 * Map `stats`, hash. An incarnation is the CLOCK_MONOTONIC time of a process's first hit: PIDs and exec come
 * again, it does not.
 */
struct trace_stat_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
};

struct trace_stat {
	__u64 count; /* calls over; with and without success */
	__u64 errors; /* of them: result != 0 (queries: other than "not ready") */
	__u64 bytes; /* of successful ones */
	__u64 total_ns; /* durations */
	__u64 nested; /* hits within another probed call of the thread */
	__u64 last_ns; /* CLOCK_MONOTONIC, when the newest was over */
	__u32 buckets[TRACE_BUCKETS]; /* durations; wraps, so read differences */
};

/* Map `errors`, hash: value __u64, how often. */
struct trace_error_key {
	__u32 tgid;
	__u32 call;
	__u64 incarnation;
	__s32 result;
	__u32 pad;
};

/* Map `procs`, hash by tgid. Made at the first hit, deleted at exec and exit, flags written by user space. */
enum trace_proc_flag {
	TRACE_PROC_QUIET = 1 << 0, /* no events, stats only */
	TRACE_PROC_IGNORE = 1 << 1, /* nothing at all */
	TRACE_PROC_FOLLOW = 1 << 2, /* what it forks, and what it becomes by exec, has the same flags */
	TRACE_PROC_UNSEEN = 1 << 3, /* entered before its first hit: no event has told of it */
};
struct trace_proc {
	__u64 incarnation;
	__u64 start_boot_ns;
	__u32 flags;
	__u32 pad;
};

/* Map `counters`, per-CPU array of one. */
struct trace_counters {
	__u64 produced, dropped; /* events */
	/*
	 * Whatever becomes of them: what the cost is reckoned from. Of each running thread, up to 63 are
	 * added later.
	 */
	__u64 hits; /* of entry probes */
	__u64 return_hits;
	/* calls whose return was never seen: exceptions, longjmp, exec, a probe taken away */
	__u64 abandoned;
	__u64 unmatched; /* returns whose entry was not seen */
	__u64 unidentified; /* perf path: no such signature */
	__u64 lost_threads, lost_procs, lost_stats,
		lost_errors; /* calls not counted (threads, procs, stats) or not by code: map full */
};

/* Map `control`, array of one, mmapped. */
struct trace_control {
	__u32 epoch; /* flags in `procs` or the defaults changed: threads look again */
	__u32 default_flags; /* enum trace_proc_flag of processes not seen before */
	__u32 wake_bytes; /* wake user space when so much is pending; power of two */
	__u32 own_tgid; /* never traced */
	__u32 version; /* TRACE_VERSION of the kernel side */
	__u32 pad;
	__u64 gone_ns; /* the latest of all calls' */
	/*
	 * Byte (tgid modulo its size) becomes 1 when a process makes a call: whose stats to read. User space
	 * clears it.
	 */
	__u8 active[TRACE_ACTIVE];
};
