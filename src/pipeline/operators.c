// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of PyTorch in a view, of all processes and of each: the kernel side's counts and what src/cuda
 * adds up, both by row of the table of probes, put together by name. Several rows have one name: the operator
 * in libraries of several versions, and the function of Python's binding.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "pipeline/private.h"
#include "torch/name.h"
#include "trace/operators.h"

/* The first names that are found in files of each kind have series; others are summed up. */
enum { SERIES_OF_ROOT = 192, SERIES_OF_USERS = 64 };

struct operator_names {
	struct traced_operator at[TRACE_CALLS_MAX]; /* name, has_series */
	uint16_t n;
	uint16_t of_call[TRACE_CALLS_MAX]; /* index in at[]; 0: not named yet */
	uint16_t series[2]; /* taken, by whether of users' files */
	struct hashmap by_name;
};

void pipeline_operators_done(struct pipeline *pipeline)
{
	if (pipeline->operators)
		hashmap_done(&pipeline->operators->by_name);
	free(pipeline->operators);
}

/* Index of the name; -ENOMEM. Two names with one hash are one, which only figures of users' files can be. */
static int name_index(struct operator_names *names, const char *name, bool of_users)
{
	uint64_t key = hash_bytes(name, strlen(name));
	uint32_t index;
	int r;

	if (hashmap_get(&names->by_name, key, &index))
		return (int)index;
	r = hashmap_put(&names->by_name, key, names->n);
	if (r < 0)
		return r;
	memcpy(names->at[names->n].name, name, strlen(name) + 1);
	names->at[names->n].has_series =
		names->series[of_users] < (of_users ? SERIES_OF_USERS : SERIES_OF_ROOT);
	names->series[of_users] += names->at[names->n].has_series;
	return names->n++;
}

/* Whether anything is known of the row: names are not used up by what is never called. */
static bool is_used(const struct operators *counted, const struct cuda_operator *work, uint16_t call)
{
	return counted->totals[call].calls > 0 || work[call].launches > 0 || work[call].copied_bytes > 0 ||
	       work[call].allocated_bytes > 0 || work[call].wait_ns > 0;
}

/* A function of PyTorch that is no operator, but says something else. */
static bool is_report(const struct probe *probe)
{
	return probe->spec.op == TRACE_OP_TORCH_EDGE || probe->spec.op == TRACE_OP_TORCH_MEMORY ||
	       probe->spec.op == TRACE_OP_TORCH_OOM || probe->spec.op == TRACE_OP_TORCH_RANGE;
}

static void add_value(struct traced_operator *to, enum operator_metric row, double value)
{
	to->v[row] += value;
	to->p[row] = PRESENCE_PRESENT;
}

static bool is_binding(const struct probe *probe)
{
	return probe && probe->spec.op == TRACE_OP_BINDING;
}

static void add_counts(struct traced_operator *to, const struct probe *probe,
		       const struct operator_sum *counted)
{
	if (is_binding(probe)) {
		add_value(to, OPERATOR_METRIC_BINDING, (double)counted->calls);
		return;
	}
	add_value(to, OPERATOR_METRIC_CALLS, (double)counted->calls);
	add_value(to, OPERATOR_METRIC_OUTERMOST, (double)counted->outermost);
	add_value(to, OPERATOR_METRIC_NODES, (double)counted->backward);
}

/* @probe: NULL: what was done outside of operators, where no node is made. */
static void add_work(struct traced_operator *to, const struct probe *probe, const struct cuda_operator *work)
{
	if (is_binding(probe))
		return;
	if (probe) {
		add_value(to, OPERATOR_METRIC_BACKWARD_LAUNCHES, (double)work->backward_launches);
		add_value(to, OPERATOR_METRIC_BACKWARD_BUSY, work->backward_ns / NSEC_PER_SEC);
	}
	add_value(to, OPERATOR_METRIC_LAUNCHES, (double)work->launches);
	add_value(to, OPERATOR_METRIC_BUSY, work->ns / NSEC_PER_SEC);
	add_value(to, OPERATOR_METRIC_COPIED, (double)work->copied_bytes);
	add_value(to, OPERATOR_METRIC_ALLOCATED, (double)work->allocated_bytes);
	add_value(to, OPERATOR_METRIC_WAIT, (double)work->wait_ns / NSEC_PER_SEC);
}

static void add_memory(struct traced_operator *to, const struct probe *probe,
		       const struct torch_operator *memory)
{
	if (is_binding(probe))
		return;
	add_value(to, OPERATOR_METRIC_TENSORS, (double)memory->allocated_bytes);
	add_value(to, OPERATOR_METRIC_HELD, (double)memory->held_bytes);
}

/* @doubtful: calls of CUDA were missed; @memory_doubtful: allocations were. */
static void mark_estimates(struct traced_operator *operators, uint32_t n, bool doubtful, bool memory_doubtful)
{
	bool estimated[OPERATOR_METRICS] = {
		[OPERATOR_METRIC_LAUNCHES] = doubtful,
		[OPERATOR_METRIC_BUSY] = true,
		[OPERATOR_METRIC_COPIED] = doubtful,
		[OPERATOR_METRIC_ALLOCATED] = doubtful,
		[OPERATOR_METRIC_WAIT] = doubtful,
		[OPERATOR_METRIC_BACKWARD_BUSY] = true,
		[OPERATOR_METRIC_BACKWARD_LAUNCHES] = doubtful,
		[OPERATOR_METRIC_TENSORS] = memory_doubtful,
		[OPERATOR_METRIC_HELD] = memory_doubtful,
	};

	for (uint32_t i = 0; i < n; i++)
		for (unsigned row = 0; row < OPERATOR_METRICS; row++)
			if (presence_is(operators[i].p[row]) && estimated[row])
				operators[i].p[row] |= PRESENCE_ESTIMATED;
}

static int operators_by_time(const void *a, const void *b)
{
	static const enum operator_metric rows[] = { OPERATOR_METRIC_BUSY, OPERATOR_METRIC_LAUNCHES,
						     OPERATOR_METRIC_CALLS };
	const struct traced_operator *x = a, *y = b;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		if (x->v[rows[i]] < y->v[rows[i]] || x->v[rows[i]] > y->v[rows[i]])
			return x->v[rows[i]] < y->v[rows[i]] ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Names the rows that are called for the first time. */
static int name_calls(struct operator_names *names, const struct operators *counted,
		      const struct cuda_operator *work)
{
	char name[TORCH_NAME_MAX];

	for (uint16_t call = probes_n; call < probe_calls(); call++) {
		const struct probe *probe = probe_at(call);
		int index;

		if (names->of_call[call] || !probe->pattern || is_report(probe) ||
		    !is_used(counted, work, call))
			continue;
		torch_name(probe->symbol, name);
		index = name_index(names, name, probe->of_users);
		if (index < 0)
			return index;
		names->of_call[call] = (uint16_t)index;
	}
	return 0;
}

static struct operator_names *names_get(struct pipeline *pipeline)
{
	if (pipeline->operators)
		return pipeline->operators;
	pipeline->operators = calloc(1, sizeof(*pipeline->operators));
	/* The first is what was done outside of operators. */
	if (pipeline->operators)
		name_index(pipeline->operators, "", false);
	return pipeline->operators;
}

/* ---- operators of each process ---- */

struct own {
	const struct operator_names *names;
	struct traced_operator *rows;
	uint32_t n;
	uint16_t *row_of; /* by name: index in rows[], plus 1 */
};

static struct traced_operator *own_row(struct own *own, uint16_t name)
{
	if (own->row_of[name] == 0) {
		own->rows[own->n] = own->names->at[name];
		own->row_of[name] = (uint16_t)++own->n;
	}
	return &own->rows[own->row_of[name] - 1];
}

static void add_own_work(uint16_t call, const struct cuda_operator *done, void *userdata)
{
	struct own *own = userdata;
	uint16_t name = own->names->of_call[call];

	if (call == 0 || name)
		add_work(own_row(own, name), call ? probe_at(call) : NULL, done);
}

static void fill_own(struct pipeline *pipeline, const struct operators *counted,
		     const struct operators_process *process, struct own *own)
{
	static const struct cuda_operator nothing;
	bool known, doubtful = false;

	own->n = 0;
	memset(own->row_of, 0, own->names->n * sizeof(*own->row_of));
	known = cuda_process_operators(pipeline->cuda, process->tgid, process->incarnation, add_own_work, own,
				       &doubtful);
	for (uint32_t i = process->first; i < process->first + process->n; i++) {
		const struct operator_sum *sum = &counted->sums[i];
		uint16_t name = own->names->of_call[sum->call];

		if (!name)
			continue;
		add_counts(own_row(own, name), probe_at(sum->call), sum);
		if (known)
			add_work(own_row(own, name), probe_at(sum->call), &nothing);
	}
	mark_estimates(own->rows, own->n, doubtful, false);
	qsort(own->rows, own->n, sizeof(*own->rows), operators_by_time);
	torch_operators_of(pipeline->torch, process->tgid, process->incarnation, process->over, known,
			   own->rows, own->n);
}

/* Without memory for it they stay as they were. */
static void fill_each(struct pipeline *pipeline, const struct operators *counted,
		      const struct operator_names *names)
{
	struct own own = {
		.names = names,
		.rows = calloc(names->n, sizeof(*own.rows)),
		.row_of = calloc(names->n, sizeof(*own.row_of)),
	};

	for (uint32_t i = 0; own.rows && own.row_of && i < counted->processes_n; i++)
		if (counted->processes[i].n > 0)
			fill_own(pipeline, counted, &counted->processes[i], &own);
	free(own.rows);
	free(own.row_of);
}

/* ---- of all ---- */

int pipeline_fill_operators(struct pipeline *pipeline, const struct trace_engine *engine,
			    struct trace_view *view)
{
	const struct operators *counted = trace_engine_operators(engine);
	struct operator_names *names;
	const struct torch_operator *memory;
	const struct cuda_operator *work;
	bool doubtful;
	int r;

	work = cuda_operators(pipeline->cuda, &doubtful);
	if (!work || counted->max == 0)
		return 0;
	memory = torch_operators(pipeline->torch);
	names = names_get(pipeline);
	r = names ? name_calls(names, counted, work) : -ENOMEM;
	if (r < 0)
		return r;
	view->operators = calloc(names->n, sizeof(*view->operators));
	if (!view->operators)
		return -ENOMEM;
	memcpy(view->operators, names->at, names->n * sizeof(*view->operators));
	view->operators_n = names->n;
	add_work(&view->operators[0], NULL, &work[0]);
	add_memory(&view->operators[0], NULL, &memory[0]);
	for (uint16_t call = probes_n; call < probe_calls(); call++) {
		struct traced_operator *to = &view->operators[names->of_call[call]];

		if (!names->of_call[call])
			continue;
		add_counts(to, probe_at(call), &counted->totals[call]);
		add_work(to, probe_at(call), &work[call]);
		add_memory(to, probe_at(call), &memory[call]);
	}
	mark_estimates(view->operators, view->operators_n, doubtful, torch_is_doubtful(pipeline->torch));
	qsort(view->operators, view->operators_n, sizeof(*view->operators), operators_by_time);
	fill_each(pipeline, counted, names);
	return 0;
}
