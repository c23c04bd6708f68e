// SPDX-License-Identifier: Apache-2.0
/*
 * Contexts of a process, and which one is current in each thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

struct cuda;
struct process;

enum {
	STACK_MAX = 8, /* contexts that a thread has pushed */
	CONTEXT_UNKNOWN = 0, /* index of the context of threads whose current one is not known */
	ORDINAL_UNKNOWN = -1,
};

struct context {
	uint64_t handle; /* 0: not known */
	int32_t ordinal;
	bool primary, gone;
	uint32_t retains;
	uint32_t usage;
	uint32_t legacy; /* its legacy default stream, or NONE */
	uint32_t allocations; /* first one made in it, plus one; mappings are of CONTEXT_UNKNOWN */
};

struct thread {
	uint32_t next_free;
	uint32_t tid;
	bool used; /* since the clock hand passed */
	uint8_t depth;
	uint16_t stack[STACK_MAX];
	/* A wait without a return probe: it was over before this thread's next call. */
	bool waiting;
	struct trace_call wait;
};

/* context.c */
int context_setup(struct process *p);
uint32_t context_current(struct cuda *cuda, struct process *p, const struct trace_header *header);
struct thread *thread_find(struct cuda *cuda, struct process *p, uint32_t tid);
struct thread *thread_get(struct cuda *cuda, struct process *p, uint32_t tid);
void context_call(struct cuda *cuda, struct process *p, const struct trace_call *call);
