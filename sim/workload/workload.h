// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/cuda/abi.h"

/*
 * The scripted workload: workload.c reads the script and runs its blocks, steps.c knows what a step does.
 * README.md has the steps.
 */
enum { WORKER_MEMORY = 65536, WORKER_STREAMS = 256, STEP_WORDS = 8 };

enum memory_way { WAY_DEVICE, WAY_MANAGED, WAY_HOST, WAY_ASYNC, WAY_PITCH, WAY_ARRAY, WAY_VMM };

struct held {
	uint64_t address, handle, bytes;
	enum memory_way way;
	bool driver;
};

/* What one thread has. */
struct worker {
	bool driver; /* calls the driver's interface, not the runtime's */
	bool ready; /* the driver has a context on this thread */
	bool per_thread; /* calls the twins for per-thread default streams */
	int device;
	struct held memory[WORKER_MEMORY];
	uint32_t memory_count;
	struct cu_stream *streams[WORKER_STREAMS];
	uint32_t stream_count;
	struct cu_stream *stream; /* the one in use */
	struct cu_event *event;
	struct cu_function *function;
	struct cu_context *context;
	void *host; /* what copies to and from the device use */
	uint64_t host_bytes;
	unsigned seed;
};

struct step {
	char *words[STEP_WORDS];
	uint32_t word_count;
	uint32_t end; /* of a block: the step behind its "end" */
};

/* False: there is no such step, or it is not written so. Failing calls are no failure: they are counted. */
bool step_run(struct worker *worker, const struct step *step);
