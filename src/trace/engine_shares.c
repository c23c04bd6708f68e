// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <bpf/bpf.h>

#include "base/macro.h"
#include "trace/engine_private.h"

uint64_t trace_uncounted(const __u64 lost[TRACE_TABLES])
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TRACE_TABLES; i++)
		if (TRACE_TABLES_OF_CALLS >> i & 1)
			n += lost[i];
	return n;
}

/* Whether its calls were not counted, or processes of its owner's since it started. */
static bool is_uncounted(struct trace_engine *engine, const struct sums_process *process)
{
	int shares = attach_map_fd(engine->backend, "shares");
	struct trace_share share;
	struct trace_proc proc;

	if (sums_kernel_maps.proc(&engine->maps, process->tgid, &proc) < 0 ||
	    proc.incarnation != process->incarnation)
		return false;
	return proc.lost & TRACE_TABLES_OF_CALLS ||
	       (bpf_map_lookup_elem(shares, &proc.owner, &share) == 0 && share.lost_ns > proc.incarnation);
}

#define TRACE_TABLES_OF_LAYERS                                                                     \
	(1U << TRACE_TABLE_OPERATORS | 1U << TRACE_TABLE_NESTS | 1U << TRACE_TABLE_WALKS |         \
	 1U << TRACE_TABLE_PYTHON)

/* Tables without which a layer of a process is incomplete, and nothing else is. */
static const struct {
	uint32_t tables;
	enum trace_incomplete bit;
} layers[] = {
	{ 1U << TRACE_TABLE_OPERATORS | 1U << TRACE_TABLE_NESTS, TRACE_INCOMPLETE_OPERATORS },
	{ 1U << TRACE_TABLE_WALKS, TRACE_INCOMPLETE_STACKS },
	{ 1U << TRACE_TABLE_PYTHON, TRACE_INCOMPLETE_PYTHON },
};

static void mark_layers(struct trace_engine *engine, struct sums_process *process)
{
	struct trace_proc proc;

	if (sums_kernel_maps.proc(&engine->maps, process->tgid, &proc) < 0 ||
	    proc.incarnation != process->incarnation)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (proc.lost & layers[i].tables)
			process->incomplete |= layers[i].bit;
}

static void mark_lacking(struct trace_engine *engine)
{
	for (uint32_t i = 0; i < engine->sums.processes_n; i++)
		if (!engine->sums.processes[i]->ended)
			mark_layers(engine, engine->sums.processes[i]);
}

static void mark_uncounted(struct trace_engine *engine)
{
	for (uint32_t i = 0; i < engine->sums.processes_n; i++) {
		struct sums_process *process = engine->sums.processes[i];

		if (!process->ended && !(process->incomplete & TRACE_INCOMPLETE_UNCOUNTED) &&
		    is_uncounted(engine, process))
			process->incomplete |= TRACE_INCOMPLETE_UNCOUNTED;
	}
}

static bool is_unused(const struct trace_share *share)
{
	for (unsigned i = 0; i < TRACE_TABLES; i++)
		if (share->used[i] > 0)
			return false;
	return true;
}

/*
 * A process of this owner may just be making its first call: then one entry more or less than there are is
 * charged to him, until his share is deleted again.
 */
static void delete_unused(struct trace_engine *engine)
{
	int map = attach_map_fd(engine->backend, "shares");
	uint64_t owners[TRACE_OWNERS];
	uint32_t n = 0;
	int r = bpf_map_get_next_key(map, NULL, &owners[0]);

	while (r == 0 && ++n < TRACE_OWNERS)
		r = bpf_map_get_next_key(map, &owners[n - 1], &owners[n]);
	for (uint32_t i = 0; i < n; i++) {
		struct trace_share share;

		if (owners[i] != TRACE_OWNER_REST && bpf_map_lookup_elem(map, &owners[i], &share) == 0 &&
		    is_unused(&share) && bpf_map_delete_elem(map, &owners[i]) == 0)
			__atomic_fetch_sub(&engine->control->owners, 1, __ATOMIC_RELAXED);
	}
}

void engine_shares(struct trace_engine *engine)
{
	uint64_t uncounted = trace_uncounted(engine->counters.lost);
	uint64_t lacking = 0;

	if (uncounted > engine->uncounted_reported)
		mark_uncounted(engine);
	engine->uncounted_reported = uncounted;
	for (unsigned i = 0; i < TRACE_TABLES; i++)
		if (TRACE_TABLES_OF_LAYERS >> i & 1)
			lacking += engine->counters.lost[i];
	if (lacking > engine->lacking_reported)
		mark_lacking(engine);
	engine->lacking_reported = lacking;
	if (engine->control->owners > TRACE_OWNERS / 2)
		delete_unused(engine);
}
