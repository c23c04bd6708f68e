// SPDX-License-Identifier: Apache-2.0
/* Shared by stacks.c, which adds up, and stacks_view.c, which makes views of the sums. */
#pragma once

#include "activity/incarnations.h"
#include "base/hashmap.h"
#include "base/process_id.h"
#include "base/strbuf.h"
#include "base/user_shares.h"
#include "pipeline/native.h"
#include "pipeline/stacks.h"
#include "python/finder.h"
#include "python/stacks.h"

enum { STACKS_NONE = UINT32_MAX };

/* Whether a process's interpreter was looked for. */
enum stacks_python {
	STACKS_PYTHON_ASKED,
	STACKS_PYTHON_AGAIN, /* could not be asked about, or the helper was lost over it */
	STACKS_PYTHON_UNKNOWN, /* of a version that is not known, or not to be found out */
};
enum { STACKS_PYTHON_TRIES = 5, STACKS_PYTHON_ASKS = 64 /* in a window */ };

struct stacks_process {
	struct process_id id; /* without its start where that was not told */
	uint64_t incarnation; /* 0: not known */
	uint64_t seen_ns; /* the end of its newest event, until its incarnation is known */
	bool over;
	uint8_t python; /* enum stacks_python */
	uint8_t python_tries;
	char comm[TRACE_COMM];
	double busy_s; /* on all devices, estimated, as of the last window */
	double launched; /* in the window */
	uint32_t rows; /* the first of a list; STACKS_NONE: none */
	uint32_t held; /* the same */
	uint32_t user; /* of the shares */
};

/* What users share; the last ones end with what they are charged for, or when all begins anew. */
enum stacks_table {
	STACKS_ROWS, /* and paths */
	STACKS_HELD,
	STACKS_PLACES,
	STACKS_FRAMES,
	STACKS_TEXTS, /* bytes */
	STACKS_LINES, /* bytes */
	STACKS_CODES, /* functions of running processes */
	STACKS_IDS, /* ids of their stacks */
	STACKS_NAMES, /* of native frames */
	STACKS_NAME_TEXTS, /* bytes */
	STACKS_TABLES,
};
_Static_assert((int)STACKS_TABLES <= (int)USER_SHARES_TABLES, "users share them");

/* A path of a process that ends in one function of CUDA. */
struct stacks_row {
	uint32_t path, process;
	uint32_t call;
	uint32_t pad; /* 0: the first three numbers and this are the key */
	uint32_t next; /* of the process's list */
	double weights[STACK_WEIGHTS];
	double launched, launched_before; /* in the window, in the last one in which the process launched */
};

struct stacks_held {
	uint64_t addr, size;
	uint32_t tgid; /* 0: unused */
	uint32_t row;
	uint32_t before, after; /* of the process's list */
	double factor; /* of the sample */
};

struct stack_sums {
	struct event_sink sink;
	struct python_stacks *python;
	struct stack_natives *native; /* NULL: no native frames are recorded */
	struct trace_engine *engine; /* NULL: stack_sums_mapped() is enough */
	struct python_finder *finder; /* borrowed; NULL: this process looks for interpreters itself */
	struct stacks_process *processes;
	uint32_t processes_n, processes_cap;
	struct hashmap process_by, over_by; /* by tgid: of those that run; the newest of those that ended */
	/* What is told once is charged to the user of the first process that has it. */
	struct user_shares shares;
	struct incarnations incarnations;
	struct stack_limits limits;
	struct stacks_row *rows;
	uint32_t rows_n, rows_cap;
	struct hashmap row_by;
	struct stacks_held *held;
	uint32_t held_n, held_cap, held_free; /* held_free: one plus the first of a list, linked by .row */
	struct hashmap held_by;
	uint64_t lost_events, lost_rows, lost_held;
	uint64_t crowded; /* stack_natives_lost() when all began anew */
	uint64_t refused; /* functions and stacks of users who have their share */
	uint32_t unknown_version; /* of the newest interpreter that is not known */
	uint32_t ask_next; /* the process that is asked about next */
	uint64_t unreturned; /* calls of which only the entry was probed */
	uint64_t frameless; /* events whose stack could not be told */
	uint64_t given_up; /* events whose stack was not taken, for the budget */
	uint64_t steps; /* rows and allocations that were looked at, for one process, in loops */
	bool sampled;
	bool has_gpu_time; /* a window was told */
	int64_t begin_ns;
	struct strbuf said;
};
