// SPDX-License-Identifier: Apache-2.0
/*
 * A process between one exec and the next: everything known about it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "activity/pool.h"
#include "base/hashmap.h"
#include "bpf/event.h"
#include "cuda/context.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "cuda/ledger.h"
#include "cuda/usage.h"
#include "model/series.h"
#include "model/trace.h"

struct cuda;
struct stream;

/* Number of windows that it is shown for after its end, while names of its kernels are pending. */
enum { LINGER_WINDOWS = 5 };

struct process {
	uint32_t tgid;
	uint64_t incarnation; /* 0: not known yet */
	uint64_t start_boot_ns, first_ns;
	uint32_t ns_pid; /* in its own PID name space; 0: unknown */
	char comm[TRACED_COMM];
	unsigned incomplete;
	struct series_claim claim; /* for as long as it lives */
	bool over;
	bool unheard; /* its first event was not received, and counts as lost */
	bool unread; /* numbers of some calls are too low: they could not be read, or only in part */
	bool shown_once, shown_over; /* at the last window */
	uint8_t lingered; /* windows for which answers about it were waited for, since it was over */
	uint64_t over_ns;
	uint64_t seq; /* of its work, in ring order */
	uint32_t generation; /* of its streams */

	/* visible devices */
	bool initialised, runtime; /* CUDA has read the environment; the runtime was seen */
	bool looked; /* visible[] is resolved */
	bool visible_known, visible_estimated;
	bool limit_known; /* what its container or job allows */
	bool limit_missed; /* that is why visible[] is not known */
	bool visible_doubtful; /* NVML knows better */
	struct variable variables[TRACE_VARIABLES]; /* as cuInit found them */
	uint8_t visible_n;
	uint16_t visible[VISIBLE_MAX];

	struct context *contexts;
	uint32_t contexts_n, contexts_room;
	struct hashmap context_map; /* handle */
	struct pool threads;
	struct hashmap thread_map;
	uint32_t thread_hand;
	struct pool streams;
	struct hashmap stream_map, own_stream_map;
	uint32_t full; /* attempts since the limit of streams was reached */
	uint32_t misc; /* stream for work beyond the limit, plus one */
	uint32_t pending; /* first stream with pending work, plus one */
	struct pool events, graphs, captures;
	struct hashmap event_map, graph_map;
	struct hashmap memory[SPACES];
	struct pool holders;
	struct hashmap holder_map;
	struct leaked *leaked; /* NULL: nothing */
	struct usage *usages;
	uint32_t usages_n, usages_room;
	struct pool handles, modules, functions, rows, operators, operator_sums;
	bool operators_beyond; /* it has no sums of some */
	uint64_t names_bytes; /* of handles and modules */
	uint64_t texts_bytes; /* of kernels in rows */
	bool wants; /* requests are to be sent */
	struct made made; /* the newest handle of a function */
	struct hashmap handle_map, module_map, function_map, row_map, operator_map, operator_sum_map;
	struct recent_function *recent; /* 1 << RECENT_BITS; NULL: nothing was launched, or no memory */
};

static inline struct stream *stream_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->streams, index);
}

/* A function, so that @context is known before any array is looked at that finding it may have moved. */
static inline struct usage *usage_of(const struct process *p, uint32_t context)
{
	return &p->usages[p->contexts[context].usage];
}

static inline struct kernel_row *row_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->rows, index);
}

static inline struct function *function_at(const struct process *p, uint32_t index)
{
	return pool_at(&p->functions, index);
}

/* To be called when rows of functions or their requests have changed. */
static inline void recent_forget(struct process *p)
{
	if (p->recent)
		memset(p->recent, 0, sizeof(*p->recent) << RECENT_BITS);
}

/* process.c */
struct process *process_get(struct cuda *cuda, const struct trace_header *header);
struct process *process_find(struct cuda *cuda, uint32_t tgid);
void process_first(struct cuda *cuda, const struct trace_process *event);
void process_over(struct cuda *cuda, struct process *p, uint64_t time_ns);
void processes_forget(struct cuda *cuda); /* those that were shown once more */
void process_free(struct cuda *cuda, struct process *p);
/* The process's usage of a UUID; 0 (unknown) when the limit is reached. */
uint32_t process_usage(struct process *p, uint32_t uuid);
