// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of Python and native frames, shared by the kernel side and user space. The kernel side walks a
 * thread's frames when it sends an event. What it finds for the first time it sends itself, right before
 * that event:
 *
 *   CODE    a function: its name, its file, its table of lines, as they are while it runs
 *   NATIVE  native frames of the STACK that comes next: addresses of code
 *   STACK   a list of frames: code object and place in it; later events have its id only
 *
 * So nothing is read from the process later, when a code object may be gone or replaced.
 *
 * Invariants
 *  1. What was lost is sent again: an id is kept only once its event is in the ring. So is a function, with
 *     the first new stack that has it, TRACE_STACK_KEPT_NS after it was sent: there may have been no room.
 *  2. A code object's address alone names nothing, since addresses are used again: `check` is computed from
 *     its contents each time, and a stack is known again only if all of its frames' contents are the same.
 *  3. An id is used again after 4 million others of its CPU, and no stack is known again after
 *     TRACE_STACK_KEPT_NS: so none means two stacks of a process.
 */
#pragma once

#include "bpf/event.h"

enum {
	TRACE_STACK_MAX = 127, /* frames; the outer ones of a deeper stack are left out */
	TRACE_STACK_SMALL = 24, /* capacities of a STACK event */
	TRACE_STACK_LARGE = 128,
	TRACE_CODE_NAME = 128, /* bytes of a function's name in a CODE event, and of its file's */
	TRACE_CODE_FILE = 384,
	TRACE_LINES_SMALL = 512, /* capacities for the table of lines */
	TRACE_LINES_LARGE = 16384,
	TRACE_STACK_CPU_BITS = 10, /* of an id: the CPU whose counter it is from */
};
/* Bytes of the keys of the maps `stacks` and `codes`. */
enum { TRACE_STACK_KEY = 16, TRACE_CODE_KEY = 24 };
#define TRACE_STACK_KEPT_NS (60 * 1000 * 1000 * 1000ULL)

/* What frames are wanted. */
enum trace_stack_kind {
	TRACE_STACK_PYTHON = 1 << 0,
	TRACE_STACK_NATIVE = 1 << 1,
};

/* In place of an id, which is never below TRACE_STACK_NONES: why there is no stack. */
enum trace_stack_none {
	TRACE_STACK_OFF, /* stacks are not recorded, or not of this call */
	TRACE_STACK_NO_PYTHON, /* no interpreter is known in this process */
	TRACE_STACK_NO_THREAD, /* the interpreter knows no such thread */
	TRACE_STACK_EMPTY, /* the thread runs no Python code */
	TRACE_STACK_AMBIGUOUS, /* it is in several interpreters, and which one runs cannot be told */
	TRACE_STACK_UNREAD, /* its innermost frame could not be read */
	TRACE_STACK_LOST, /* the ring or a table was full */
	TRACE_STACK_SKIPPED, /* left out of the sample */
	TRACE_STACK_GIVEN_UP, /* for the budget */
	TRACE_STACK_NONES,
};

struct trace_frame {
	__u64 code; /* address of the code object */
	__u32 at; /* f_lasti before 3.11; later bytes from the code object to the instruction */
	__u32 check; /* of the code object's contents */
};
_Static_assert(sizeof(struct trace_frame) == 16, "both sides must agree");

/* In place of a code object's address: no function, but what stands between those of tasks of asyncio. */
enum trace_frame_mark {
	TRACE_FRAME_AWAITED_BY = 1, /* the next frames are those of the task that awaits this one */
	TRACE_FRAME_AWAITED_BY_ONE, /* as the next, where one task is left */
	TRACE_FRAME_AWAITED_BY_SEVERAL, /* several tasks await this one, and their frames are left out */
	TRACE_FRAME_AWAITED_FURTHER, /* there are more than are walked */
	TRACE_FRAME_MARKS,
};

enum trace_stack_flag {
	TRACE_STACK_CUT = 1 << 0, /* there are more frames than TRACE_STACK_MAX */
	TRACE_STACK_PART = 1 << 1, /* what calls the last frame could not be read */
	TRACE_STACK_NO_NATIVE = 1 << 2, /* native frames are wanted, but given up for the budget */
};

/* Has TRACE_STACK_SMALL or TRACE_STACK_LARGE frames, of which the first @n are used. */
struct trace_stack {
	struct trace_header header; /* stack: the id that is defined */
	__u32 n;
	__u32 flags; /* enum trace_stack_flag */
	struct trace_frame frames[]; /* the innermost first */
};
_Static_assert(sizeof(struct trace_stack) == 56, "both sides must agree");

/* How a table of lines is written. */
enum trace_lines {
	TRACE_LINES_LNOTAB, /* 3.8, 3.9: co_lnotab */
	TRACE_LINES_TABLE, /* 3.10: co_linetable */
	TRACE_LINES_LOCATIONS, /* 3.11 and later */
};

/* A text as CPython has it: characters of @width bytes. @n: bytes here; @total: bytes of all of it. */
struct trace_text {
	__u16 width;
	__u16 n;
	__u32 total;
};

/* Has TRACE_LINES_SMALL or TRACE_LINES_LARGE bytes of lines, of which the first @lines_n are used. */
struct trace_code {
	struct trace_header header;
	__u64 code;
	__u32 check;
	__s32 first_line;
	__u32 instructions; /* bytes of instructions; 0: not known */
	/* offset of the first one from the code object; 0: trace_frame.at is f_lasti */
	__u32 instructions_at;
	__u32 lines_n, lines_total;
	__u8 lines; /* enum trace_lines */
	__u8 unread; /* 1: something of it could not be read */
	__u16 pad[3];
	struct trace_text name, file;
	unsigned char name_text[TRACE_CODE_NAME];
	unsigned char file_text[TRACE_CODE_FILE];
	unsigned char line_table[];
};
_Static_assert(sizeof(struct trace_code) == 616, "both sides must agree");

/* Why the native frames end where they do. */
enum trace_native_stop {
	TRACE_NATIVE_END, /* nothing called the last one */
	TRACE_NATIVE_CUT, /* there are more than TRACE_STACK_MAX */
	TRACE_NATIVE_UNMAPPED, /* the process has no code there, as far as is known */
	TRACE_NATIVE_NO_RULE, /* its file has no rule there, and frame pointers are not kept */
	TRACE_NATIVE_PENDING, /* its file's rules are still to be read */
	TRACE_NATIVE_FULL, /* there was no room for its file's rules, or they take too long to read */
	TRACE_NATIVE_CROWDED, /* there was no room for its file in the table of files */
	TRACE_NATIVE_NO_FILE, /* the code is of no file, or of one that is not read */
	TRACE_NATIVE_UNREAD, /* the stack could not be read */
	TRACE_NATIVE_BROKEN, /* the rule leads no further up the stack */
	TRACE_NATIVE_STOPS,
};

/* Has TRACE_STACK_SMALL or TRACE_STACK_LARGE addresses, of which the first @n are used. */
struct trace_native {
	struct trace_header header; /* stack: the id that is defined */
	/* bit i: frame i of the STACK is the last one that its evaluation loop runs */
	__u64 entries[2];
	__u64 loops[2]; /* bit i: native frame i is an evaluation loop */
	__u32 space; /* number of the list of mappings that was used; 0: none is known */
	__u16 n;
	__u8 stop; /* enum trace_native_stop */
	__u8 python; /* enum trace_stack_none: why the STACK has no frames; 0: it has some */
	/* from this frame on callers were found by a frame pointer where no rule is known; 0: none was */
	__u64 guessed;
	/* the innermost first; within the instruction that makes the call, so below the return address */
	__u64 pcs[];
};
_Static_assert(sizeof(struct trace_native) == 96, "both sides must agree");

enum trace_python_flag {
	TRACE_PYTHON_LASTI = 1 << 0, /* frames have f_lasti, an int; else a pointer to the instruction */
	TRACE_PYTHON_CFRAME = 1 << 1, /* the thread's frame is behind one more pointer */
	/* frames have an owner; from TRACE_PYTHON_OWNER_C on it is no Python code */
	TRACE_PYTHON_OWNER = 1 << 2,
	TRACE_PYTHON_TAGGED = 1 << 3, /* the code's reference has two tag bits */
	/*
	 * code objects have no version: names are compared by their hashes, too, and the tables of lines by
	 * their ends
	 */
	TRACE_PYTHON_DEEP = 1 << 4,
};
enum { TRACE_PYTHON_OWNER_C = 3 };

/* Bytes of a frame, a code object and a thread's state that are read at once; more than any version needs. */
enum { TRACE_PYTHON_FRAME = 96, TRACE_PYTHON_CODE = 96, TRACE_PYTHON_STATE = 256 };

/*
 * Map `pythons`, hash by tgid: where a process's interpreter has what. User space writes it; it is copied to
 * children by fork and deleted by exec and exit. Offsets of members in bytes, of structures as CPython
 * names them.
 */
struct trace_python {
	__u64 runtime, runtime_end; /* _PyRuntime; equal where its size is not known */
	__u64 loop; /* address of _PyEval_EvalFrameDefault; 0: not known */
	__u64 part; /* of what of it lies elsewhere */
	__u32 interpreters; /* _PyRuntimeState: interpreters.head */
	__u32 current; /* gilstate.tstate_current; 0: none (3.12 and later) */
	__u32 interpreter_next, interpreter_threads; /* PyInterpreterState */
	__u32 loop_n, part_n; /* bytes */
	__u16 thread_prev, thread_next, thread_interpreter, thread_id, thread_frame; /* PyThreadState */
	__u16 thread_status; /* 0: none (before 3.12) */
	__u16 thread_n; /* the part of it that is read, from its beginning; these members lie in it */
	__u16 cframe_frame; /* with TRACE_PYTHON_CFRAME: in _PyCFrame */
	__u16 frame_from, frame_n; /* the part of a frame that is read; the next ones are offsets in it */
	__u16 frame_back, frame_code, frame_at, frame_owner;
	__u16 frame_entry; /* 3.11: a byte, 1: the last one that its evaluation loop runs; else 0 */
	__u16 code_from, code_n; /* the part of a code object that is read; the next ones are offsets in it */
	__u16 code_first_line, code_name, code_file, code_lines;
	__u16 code_size; /* in the code object: ob_size, of which one is two bytes; 0: none */
	__u16 code_instructions; /* in the code object: co_code_adaptive; 0: none */
	/*
	 * Free-threaded 3.14 and later: co_tlbc of the code object, copies of its instructions, of which the
	 * frame says which one it runs; 0: none, as in all others.
	 */
	__u16 code_tlbc, frame_tlbc;
	__u16 text_state, text_length, text_hash, text_ascii, text_compact; /* of str objects */
	__u16 bytes_size, bytes_data; /* of bytes objects */
	/*
	 * Tasks of asyncio, 3.14 and later: the task that a thread runs, in its state; 0: not known where.
	 * In FutureObj and TaskObj: who awaits it, whether that is a set, whether it is a task,
	 * its coroutine.
	 */
	__u16 thread_task, task_awaited_by, task_several, task_is_task, task_coroutine;
	__u16 set_used; /* of set objects */
	__u16 object_type; /* of each object */
	__u16 generator_frame, generator_state; /* of coroutines */
	__u16 frame_stack; /* of a frame, from its beginning: its stack pointer */
	__u8 awaited_below; /* what it awaits is so many bytes below that, in generator_state's ... */
	__u8 state_awaits; /* ... state that says so */
	__u8 text_kind_shift; /* of the three bits of `kind` in `state` */
	__u8 status_active; /* mask in thread_status's first byte: it runs */
	__u8 flags; /* enum trace_python_flag */
	__u8 lines; /* enum trace_lines */
};
