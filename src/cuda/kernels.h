// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels of a process: what its handles refer to, the functions that it has launched, and a row of sums for
 * each kernel on each device.
 *
 *   handle.c    handles and modules: names, images, files      kernel.c   a launch: sums and shapes
 *   function.c  which row a launch belongs to; questions       row.c      rows, found by name, put together
 *   share.c     a window: time, series, totals                 fill_kernel.c  into a view
 *
 * A function (as passed to a launch, on a device) belongs to one row. Until its kernel is known, a row is of
 * one function and has no series; from then on it is settled, and the only one of its symbol and file on that
 * device: rows that turn out to be of the same kernel are merged before anything is credited to their series.
 * Launches beyond the limit, and graphs' kernels, are counted in the usage's `rest`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "model/kernel.h"
#include "model/series.h"
#include "model/trace.h"

enum {
	FUNCTIONS_PER_ROW = 4, /* handles come and go, kernels stay */
	ROWS_OF_ALL = 16, /* rows of all processes together: limits.kernels times this */
	HANDLES_MAX = 65536, /* of a process */
	MODULES_MAX = 8192,
	ALIASES_MAX = 4, /* of aliases, that are followed */
	NAMES_BYTES = 32 << 20, /* symbols and paths of all handles of all processes */
	TEXTS_BYTES = 128 << 20, /* names of kernels in rows of all processes */
	TEXTS_BYTES_OF_ONE = TEXTS_BYTES / 8,
	NAMES_BYTES_OF_ONE = NAMES_BYTES / 4, /* limit of one process, so that others can use the rest */
	PENDING_SLOTS = 2,
	THREADS_PER_CORE = 16, /* resident: 2,048 on a multiprocessor of 128 cores */
	RECENT_BITS = 9, /* functions that are found without looking them up */
	KERNELS_MAX = 1 << 16, /* limits.kernels at most */
	QUESTION_SHIFT = 20, /* an id is a number and, below it, the function's index */
};
_Static_assert((uint64_t)KERNELS_MAX *FUNCTIONS_PER_ROW <= 1 << QUESTION_SHIFT,
	       "an index fits below the number");

/* Launches of a kernel in one stream, since that last became busy: their weight in this window. */
struct pending_slot {
	uint64_t epoch; /* of the stream; 0: none */
	double fresh, old; /* of launches in this window; from before */
	uint32_t stream;
};

struct launch_sums {
	uint64_t launches, threads, ns;
};

/* Members that a launch accesses come first. */
struct share {
	struct launch_sums now;
	uint64_t dynamic; /* bytes of dynamic shared memory of this window's launches */
	struct pending_slot pending[PENDING_SLOTS];
	double unplaced; /* weight in this window that has no slot any more */
	struct launch_sums shown, series;
};

/* Begins like struct trace_launch. */
struct shape {
	uint32_t grid[3], block[3];
	uint32_t shared;
	uint32_t credit; /* recent launches; a shape without credit is replaced */
	uint64_t launches;
};

struct kernel_row {
	uint32_t next_free; /* the pool's */
	uint32_t usage;
	uint32_t functions; /* first one, plus one */
	uint8_t shapes_n, shape, hand; /* the newest one's index; the next one to be replaced */
	bool settled;
	bool wanted; /* one of its functions is */
	struct share share;
	struct kernel *kernel; /* NULL: a free row */
	uint32_t texts; /* bytes of its names, counted in texts_bytes */
	uint64_t tried; /* window of the last attempt to ask */
	uint64_t key; /* in the process's row_map; 0: not there */
	struct series_claim claim; /* score: nanoseconds lately */
	uint64_t other_shapes;
	struct shape shapes[TRACED_SHAPES_MAX];
};

/* A handle that a call made for a name, and when the same thread made the one before it. */
struct made {
	uint64_t handle, time_ns, before_ns;
	uint32_t tid;
};

struct function {
	uint32_t next_free;
	uint32_t usage, row;
	uint32_t previous, next; /* of its row, plus one */
	bool used;
	bool wanted; /* a question is to be asked */
	bool dropped; /* its handle was destroyed; an answer is pending */
	uint64_t function;
	uint64_t made; /* the only handle that the thread made during its first launch; 0: none */
	uint64_t id; /* of the question that waits for its answer; 0: none */
};

/* Cache of recently launched functions by hash; these need no request. */
struct recent_function {
	uint64_t function;
	uint32_t usage, row; /* row: plus one; 0: none */
};

struct handle {
	uint32_t next_free;
	uint32_t module; /* plus one */
	uint32_t previous, next; /* of its module, plus one */
	uint64_t handle;
	uint64_t target; /* refers to this one; 0: has a name itself */
	char *symbol;
};

struct module {
	uint32_t next_free;
	uint32_t handles; /* first one, plus one */
	uint64_t handle; /* 0: a free row */
	uint64_t image;
	char *path;
};

struct cuda;
struct process;

/* handle.c */
void handle_name(struct cuda *cuda, struct process *p, const struct trace_name *event, uint32_t size);
void handle_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
/* The only handle that was made within @launch, by its thread; 0: none. */
uint64_t handle_made_within(const struct process *p, const struct trace_launch *launch);
/* The origin of a function as passed to a launch. */
struct origin {
	uint64_t function; /* what aliases end at */
	const char *symbol; /* or NULL */
	const char *path;
	uint64_t image;
};
void handle_origin(struct cuda *cuda, const struct process *p, uint64_t function, struct origin *ret_origin);
void handles_done(struct cuda *cuda, struct process *p); /* removes all */

/* function.c */
/* The row that a launch belongs to; NONE: limit reached. */
uint32_t function_row(struct cuda *cuda, struct process *p, uint32_t usage,
		      const struct trace_launch *launch);
/* The handle was destroyed, or refers to another kernel from now on. Returns whether it was launched. */
bool function_drop(struct cuda *cuda, struct process *p, uint64_t function);
/* More is known about the function: requests its kernel again. */
void function_renew(struct cuda *cuda, struct process *p, uint64_t function);
void functions_done(struct cuda *cuda, struct process *p);
/* Repeats failed requests. */
void functions_ask(struct cuda *cuda, struct process *p);
/* Whether answers are pending. */
bool functions_asked(const struct process *p);

/* row.c */
/* A row that is not settled, with a reference to @kernel, or NONE. */
uint32_t row_new(struct cuda *cuda, struct process *p, uint32_t usage, struct kernel *kernel);
/* Called when its kernel is known; returns the row that has its sums from now on. */
uint32_t row_settle(struct cuda *cuda, struct process *p, uint32_t index, struct kernel *kernel);
/* A settled row of that kernel's symbol and file; NONE. */
uint32_t row_find(struct cuda *cuda, struct process *p, uint32_t usage, const struct kernel *kernel);
/* Adds another kernel of the same symbol and file: figures that differ become unknown. */
void row_blend(struct kernel_row *row, const struct kernel *kernel);
/* Unknown data became known, so it belongs to another series. */
void row_unsettle(struct cuda *cuda, struct process *p, struct kernel_row *row);
void row_link(struct process *p, uint32_t row, uint32_t function);
void row_unlink(struct process *p, uint32_t function);
void rows_done(struct cuda *cuda, struct process *p);

/* kernel.c */
void kernel_launched(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_launch *launch,
		     uint64_t threads);
/* Counts @launches kernels of a graph, for time only. */
void kernel_graph(struct cuda *cuda, struct process *p, uint32_t stream, const struct trace_header *header,
		  uint64_t launches, uint64_t threads);
void share_add(struct share *into, const struct share *from);

/* share.c */
void share_process(struct cuda *cuda, struct process *p); /* the estimates of its usages are split */
void share_close(struct cuda *cuda, double elapsed); /* all are: who has a series, and totals */

/* fill_kernel.c */
struct traced_launches launches_of(const struct launch_sums *sums);
uint32_t kernels_shown(const struct cuda *cuda);
void kernels_fill(const struct cuda *cuda, const struct process *p, struct traced_process *process,
		  uint32_t index, struct trace_view *view);
