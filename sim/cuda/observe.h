// SPDX-License-Identifier: Apache-2.0
/* What the simulated libcuda tells the simulated CUPTI (sim/cupti), which is given it by name. */
#pragma once

#include <stdint.h>

enum sim_work_kind { SIM_KERNEL, SIM_GRAPH, SIM_COPY, SIM_SET };
/* As CUPTI numbers the driver's functions; variants are not told apart. */
enum { SIM_CALL_LAUNCH = 307, SIM_CALL_GRAPH = 514 };

struct sim_work {
	enum sim_work_kind kind;
	uint32_t device, context, stream; /* numbers; streams are numbered as they are used */
	uint32_t correlation;
	const char *name;
	uint64_t bytes, graph; /* graph: its handle */
	uint64_t kernels; /* of a graph */
	int64_t start_ns, end_ns; /* since boot; may be in the future */
};

struct sim_observer {
	void (*called)(uint32_t call, uint32_t correlation); /* it begins, on this thread */
	void (*worked)(const struct sim_work *work);
};

#define SIM_OBSERVE "gpusonde_sim_cuda_observe"
typedef void (*sim_observe)(const struct sim_observer *observer);

/* Within libcuda. The number of a call (0: it is none that launches); 0: nobody looks. */
struct cu_stream;
uint32_t observe_call(uint32_t call);
void observe_work(struct cu_stream *stream, struct sim_work *work);
/* As the driver does once it is initialised. */
void observe_inject(void);
