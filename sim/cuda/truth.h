// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The ground truth: counters of the calls of every exported function of one library in one process.
 *
 * With GPUSONDE_SIM_CUDA_LOG=FILE the counters lie in a mapped file, FILE.PID.LIBRARY, so that even SIGKILL
 * loses none; truth.py reads it. With GPUSONDE_SIM_CUDA_LOG_EVENTS=1 each call is a line of JSON in
 * FILE.PID.events besides. Counters are spread over shards, which threads take in turn, so that threads do
 * not wait for each other's cache lines.
 *
 * A call within another call of these libraries on the same thread is nested: cuMemAlloc_v2 in cudaMalloc.
 * Both libraries share one call depth, which libcuda owns and libcudart gets from it.
 */
enum {
	TRUTH_SHARDS = 16,
	TRUTH_CODES = 8, /* error codes that are counted separately for each function */
	TRUTH_NAME = 56,
	TRUTH_VERSION = 1,
};

struct truth_header {
	char magic[8]; /* "gpstruth" */
	uint32_t version, pid;
	uint64_t start_ticks; /* when the process began, /proc/PID/stat's word */
	uint32_t api_count, shards, codes, name_size;
	char library[16], comm[16];
};

struct truth_error {
	uint32_t code; /* 0: not used yet */
	uint32_t reserved;
	uint64_t outer, nested;
};

struct truth_cell {
	uint64_t outer, nested;
	uint64_t outer_bytes, nested_bytes; /* of calls that succeeded */
};

/* One call in progress. The implementation fills in the members for its event line. */
struct call {
	uint16_t api;
	bool nested;
	bool per_thread; /* NULL is the per-thread default stream */
	bool has_device;
	int device;
	int64_t began_ns; /* only with event lines */
	uint64_t bytes; /* that count if the call succeeds */
	uint64_t address, stream, handle, threads;
	const char *name;
};

/* Once, before the first call. Without the variable it does nothing. */
void truth_init(const char *library, const char *const *names, uint32_t api_count);

/* In a child after fork(): from now on in a file of its own. */
void truth_forked(void);

void truth_begin(struct call *call);
void truth_end(const struct call *call, int result);
/* A call that makes none of ours, as it is entered; also before it is known which depth counts. */
void truth_note(struct call *call);

/* How many calls are under way on this thread; the pointer is the thread's. */
unsigned *truth_depth(void);
void truth_share_depth(unsigned *(*depth)(void));
