// SPDX-License-Identifier: Apache-2.0
/*
 * What the threads of traced processes wait for in CPython, for the views: their interpreter's lock (the
 * GIL), and collections of garbage. A part of struct trace_view, immutable as it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	PYTHON_GENERATIONS = 3,
	PYTHON_COLLECTIONS = PYTHON_GENERATIONS + 1, /* the last: of which generation is not known */
	PYTHON_COMM = 64,
	PYTHON_WAITERS_SHOWN = 10, /* of a process */
};

struct python_sum {
	uint64_t count;
	uint64_t total_ns, longest_ns;
};

struct python_waiter {
	uint32_t tid;
	struct python_sum waits;
};

struct python_process {
	uint32_t pid;
	char comm[PYTHON_COMM]; /* sanitised UTF-8 */
	bool exited; /* shown for the last time */
	bool has_series;
	bool known; /* its interpreter was found; false: whether it waits is not known */
	bool incomplete; /* events were lost, or not taken for the budget: there was more */
	struct python_sum waits; /* for the lock */
	struct python_sum collections[PYTHON_COLLECTIONS];
	uint32_t waiters_first, waiters_n; /* at most PYTHON_WAITERS_SHOWN threads, longest first */
	uint32_t more_waiters; /* threads besides, as far as they were told apart */
	uint64_t more_waits; /* waits of all threads besides; in `waits`, too */
};

struct python_view {
	uint32_t processes_n, waiters_n;
	struct python_process *processes; /* by PID */
	struct python_waiter *waiters; /* by process */
	/* Times an interpreter was found whose structures are not known; the newest such version, 0: none. */
	uint64_t unknown;
	uint32_t unknown_version;
	/* Of all processes that ever were. */
	struct python_sum waits, collections[PYTHON_COLLECTIONS];
};

/* Zeroed, with room for so many; one allocation, to be freed. NULL: out of memory. */
struct python_view *python_view_new(uint32_t processes, uint32_t waiters);
void python_sum_add(struct python_sum *sum, uint64_t count, uint64_t total_ns, uint64_t longest_ns);
/* "0", "1", "2", "unknown". */
const char *python_generation_name(unsigned generation);
