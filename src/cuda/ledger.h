// SPDX-License-Identifier: Apache-2.0
/*
 * The memory ledger: allocations of a process, and which threads hold them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "model/trace.h"

struct cuda;
struct process;

enum { ALLOCATIONS_CHUNK = 4096 };

enum space { SPACE_ADDRESS, SPACE_PHYSICAL, SPACE_ARRAY, SPACE_MAPPING, SPACES };

struct allocation {
	uint32_t next_free;
	uint32_t previous, next; /* of its context, plus one */
	uint32_t holder; /* plus one; 0: not on a device, or beyond the limit */
	uint64_t addr, size;
	uint64_t handle; /* SPACE_MAPPING: the physical memory behind it */
	uint32_t mappings; /* SPACE_PHYSICAL */
	uint16_t usage, context;
	uint8_t kind, space;
	bool released; /* SPACE_PHYSICAL: stays while it is mapped */
};

/* Device memory, which peaks, leaks and normalisation are about. */
static inline bool memory_on_device(uint8_t kind)
{
	return kind != TRACE_MEMORY_HOST && kind != TRACE_MEMORY_REGISTERED;
}

/* What a process never freed: it ended with its context or with the process. */
enum { LEAKED_SIZES = 64 };
struct leaked {
	uint64_t allocations, bytes;
	uint32_t sizes_n, newest; /* newest: index of the size that was met last */
	struct traced_size sizes[LEAKED_SIZES]; /* of others only the sums are known */
};

/* leaked.c */
void leaked_add(struct process *p, const struct allocation *a);
void leaked_top(const struct process *p, struct traced_process *ret);

struct holder { /* a thread with allocations that are not freed yet */
	uint32_t next_free;
	uint32_t tid;
	uint64_t bytes;
	uint32_t allocations; /* 0: a free row */
};

/* ledger.c */
void ledger_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
/*
 * Frees a context's allocations implicitly; @reset: of the whole device with its pools. NONE: of the process.
 */
void ledger_drop(struct cuda *cuda, struct process *p, uint32_t context, bool reset);
void ledger_done(struct cuda *cuda);

/* holder.c; NONE: too many threads */
uint32_t holder_add(struct cuda *cuda, struct process *p, uint32_t tid, uint64_t bytes);
void holder_remove(struct process *p, uint32_t index, uint64_t bytes);
void holders_top(const struct process *p, struct traced_process *ret);
