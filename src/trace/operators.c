// SPDX-License-Identifier: Apache-2.0
#include "trace/operators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

enum { SHOWN_OVER = 2 /* collections */ };

int operators_init(struct operators *operators, struct attach_backend *backend, uint32_t max)
{
	*operators = (struct operators){ .backend = backend, .max = max };
	if (max == 0)
		return 0;
	operators->map = attach_map_fd(backend, "operators");
	operators->procs = attach_map_fd(backend, "procs");
	operators->keys = calloc(max, sizeof(*operators->keys));
	operators->values = calloc(max, sizeof(*operators->values));
	operators->sums = calloc(max, sizeof(*operators->sums));
	operators->gone = calloc(TRACE_CALLS_MAX, sizeof(*operators->gone));
	operators->totals = calloc(TRACE_CALLS_MAX, sizeof(*operators->totals));
	return operators->keys && operators->values && operators->sums && operators->gone &&
			       operators->totals ?
		       0 :
		       -ENOMEM;
}

void operators_done(struct operators *operators)
{
	free(operators->keys);
	free(operators->values);
	free(operators->sums);
	free(operators->gone);
	free(operators->totals);
	free(operators->processes);
	*operators = (struct operators){ 0 };
}

/* Whether the kernel side has no entry of this process any more. */
static bool is_over(const struct operators *operators, uint32_t tgid, uint64_t incarnation)
{
	struct trace_proc proc;

	return bpf_map_lookup_elem(operators->procs, &tgid, &proc) < 0 || proc.incarnation != incarnation;
}

static int order(uint32_t a, uint64_t a_incarnation, uint32_t b, uint64_t b_incarnation)
{
	if (a != b)
		return a < b ? -1 : 1;
	return (a_incarnation > b_incarnation) - (a_incarnation < b_incarnation);
}

const struct operators_process *operators_find(const struct operators *operators, uint32_t tgid,
					       uint64_t incarnation)
{
	const struct operators_process *all = operators->processes;
	uint32_t i = LOWER_BOUND(operators->processes_n, middle,
				 order(all[middle].tgid, all[middle].incarnation, tgid, incarnation) < 0);

	return i < operators->processes_n && order(all[i].tgid, all[i].incarnation, tgid, incarnation) == 0 ?
		       &all[i] :
		       NULL;
}

/* ---- deleting ---- */

static void delete_process(struct operators *operators, struct operators_process *process)
{
	for (uint32_t i = process->first; i < process->first + process->n; i++) {
		const struct operator_sum *sum = &operators->sums[i];
		const uint64_t args[TRACE_FREE_ARGS] = {
			[TRACE_FREE_TABLE] = TRACE_TABLE_OPERATORS,
			[TRACE_FREE_CALL] = (uint64_t)process->tgid << 32 | sum->call,
			[TRACE_FREE_INCARNATION] = process->incarnation,
		};

		operators->gone[sum->call].calls += sum->calls;
		operators->gone[sum->call].outermost += sum->outermost;
		operators->gone[sum->call].backward += sum->backward;
		attach_entry_free(operators->backend, args);
	}
	process->n = 0;
}

static void delete_over(struct operators *operators)
{
	for (uint32_t i = 0; i < operators->processes_n; i++)
		if (operators->processes[i].over >= SHOWN_OVER)
			delete_process(operators, &operators->processes[i]);
}

/* ---- reading ---- */

struct read_entry {
	struct trace_stat_key key;
	struct trace_operator value;
};

static int by_process(const void *a, const void *b)
{
	const struct read_entry *x = a, *y = b;
	int r = order(x->key.tgid, x->key.incarnation, y->key.tgid, y->key.incarnation);

	return r != 0 ? r : (x->key.call > y->key.call) - (x->key.call < y->key.call);
}

/* All entries, sorted by process and call. A negative errno: none were read. */
static int read_entries(struct operators *operators, struct read_entry **ret_entries, uint32_t *ret_n)
{
	uint32_t n = 0, token;
	struct read_entry *entries;
	bool more = true;

	for (bool first = true; more && n < operators->max; first = false) {
		uint32_t got = operators->max - n;

		/* -ENOENT: these were the last ones. */
		if (bpf_map_lookup_batch(operators->map, first ? NULL : &token, &token, operators->keys + n,
					 operators->values + n, &got, NULL) < 0) {
			if (errno != ENOENT)
				return -errno;
			more = false;
		}
		n += got;
	}
	entries = calloc(MAX(n, 1U), sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		entries[i] = (struct read_entry){ operators->keys[i], operators->values[i] };
	qsort(entries, n, sizeof(*entries), by_process);
	*ret_entries = entries;
	*ret_n = n;
	return 0;
}

static uint32_t count_processes(const struct read_entry *entries, uint32_t n)
{
	uint32_t processes = 0;

	for (uint32_t i = 0; i < n; i++)
		processes += i == 0 || order(entries[i - 1].key.tgid, entries[i - 1].key.incarnation,
					     entries[i].key.tgid, entries[i].key.incarnation) != 0;
	return processes;
}

/* Takes the entries of one process; returns how many. */
static uint32_t take_process(struct operators *operators, const struct read_entry *entries, uint32_t first,
			     uint32_t n, const uint32_t *entry_ns, struct operators_process *to)
{
	const struct trace_stat_key *key = &entries[first].key;

	*to = (struct operators_process){ .tgid = key->tgid,
					  .incarnation = key->incarnation,
					  .first = first };
	for (uint32_t i = first; i < n; i++) {
		const struct read_entry *entry = &entries[i];
		struct operator_sum *sum = &operators->sums[i];

		if (order(entry->key.tgid, entry->key.incarnation, to->tgid, to->incarnation) != 0)
			break;
		*sum = (struct operator_sum){ .call = (uint16_t)(entry->key.call % TRACE_CALLS_MAX),
					      .calls = entry->value.calls,
					      .outermost = entry->value.outermost,
					      .backward = entry->value.backward };
		operators->totals[sum->call].calls += sum->calls;
		operators->totals[sum->call].outermost += sum->outermost;
		operators->totals[sum->call].backward += sum->backward;
		to->cost_ns += (double)sum->calls * entry_ns[sum->call];
		to->n++;
	}
	return to->n;
}

void operators_collect(struct operators *operators, const uint32_t *entry_ns, operators_cost *cost,
		       void *userdata)
{
	_cleanup_free_ struct read_entry *entries = NULL;
	struct operators_process *processes;
	uint32_t n = 0, processes_n = 0;

	if (operators->max == 0)
		return;
	delete_over(operators);
	if (read_entries(operators, &entries, &n) < 0)
		return;
	processes = calloc(MAX(count_processes(entries, n), 1U), sizeof(*processes));
	if (!processes)
		return;
	memcpy(operators->totals, operators->gone, TRACE_CALLS_MAX * sizeof(*operators->totals));
	for (uint32_t i = 0; i < n; processes_n++) {
		struct operators_process *process = &processes[processes_n];
		const struct operators_process *before;

		i += take_process(operators, entries, i, n, entry_ns, process);
		before = operators_find(operators, process->tgid, process->incarnation);
		if (is_over(operators, process->tgid, process->incarnation))
			process->over = before ? (uint8_t)(before->over + 1) : 1;
		cost(process->tgid, process->incarnation, process->cost_ns - (before ? before->cost_ns : 0),
		     userdata);
	}
	free(operators->processes);
	operators->processes = processes;
	operators->processes_n = processes_n;
}
