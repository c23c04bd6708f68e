// SPDX-License-Identifier: Apache-2.0
/*
 * The same as carry.c of what processes did with NCCL, cuBLAS, CPython and PyTorch, which are in views of
 * their own: those that have ended, of a view that nobody fetched, are in the next one.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/private.h"

/* Processes of a layer's view, in the order of their PIDs. */
struct layer {
	uint32_t (*number)(const void *view);
	uint32_t (*pid)(const void *view, uint32_t i);
	bool (*is_carried)(const void *view, uint32_t i);
	void (*copy)(const void *from, uint32_t i, void *to); /* with its rows */
};

static uint32_t carried_of(const struct layer *layer, const void *before, uint64_t *left_out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < layer->number(before); i++)
		n += layer->is_carried(before, i);
	if (n > PIPELINE_CARRIED_MAX) {
		*left_out += n - PIPELINE_CARRIED_MAX;
		n = PIPELINE_CARRIED_MAX;
	}
	return n;
}

/* Of processes with the same PID the ended one comes first. */
static void layers_merge(const struct layer *layer, const void *before, const void *view, uint32_t carried,
			 void *to)
{
	uint32_t at = 0, n = layer->number(view);

	for (uint32_t i = 0; carried > 0; i++) {
		if (!layer->is_carried(before, i))
			continue;
		while (at < n && layer->pid(view, at) < layer->pid(before, i))
			layer->copy(view, at++, to);
		layer->copy(before, i, to);
		carried--;
	}
	while (at < n)
		layer->copy(view, at++, to);
}

#define LAYER(name_)                                                                                  \
	static uint32_t name_##_number(const void *view)                                              \
	{                                                                                             \
		return ((const struct name_##_view *)view)->processes_n;                              \
	}                                                                                             \
	static uint32_t name_##_pid(const void *view, uint32_t i)                                     \
	{                                                                                             \
		return ((const struct name_##_view *)view)->processes[i].pid;                         \
	}                                                                                             \
	static bool name_##_is_carried(const void *view, uint32_t i)                                  \
	{                                                                                             \
		const struct name_##_process *p = &((const struct name_##_view *)view)->processes[i]; \
                                                                                                      \
		return p->exited && p->has_series;                                                    \
	}                                                                                             \
	static const struct layer name_##_layer = { name_##_number, name_##_pid, name_##_is_carried,  \
						    name_##_copy }

static void nccl_copy(const void *from_view, uint32_t i, void *to_view)
{
	const struct nccl_view *from = from_view;
	const struct nccl_process *p = &from->processes[i];
	struct nccl_view *to = to_view;
	struct nccl_process *copy = &to->processes[to->processes_n++];

	*copy = *p;
	copy->rows_first = to->rows_n;
	copy->communicators_first = to->communicators_n;
	memcpy(&to->rows[to->rows_n], &from->rows[p->rows_first], p->rows_n * sizeof(*to->rows));
	memcpy(&to->communicators[to->communicators_n], &from->communicators[p->communicators_first],
	       p->communicators_n * sizeof(*to->communicators));
	to->rows_n += p->rows_n;
	to->communicators_n += p->communicators_n;
}
LAYER(nccl);

static void blas_copy(const void *from_view, uint32_t i, void *to_view)
{
	const struct blas_view *from = from_view;
	const struct blas_process *p = &from->processes[i];
	struct blas_view *to = to_view;
	struct blas_process *copy = &to->processes[to->processes_n++];

	*copy = *p;
	copy->rows_first = to->rows_n;
	memcpy(&to->rows[to->rows_n], &from->rows[p->rows_first], p->rows_n * sizeof(*to->rows));
	to->rows_n += p->rows_n;
}
LAYER(blas);

static void python_copy(const void *from_view, uint32_t i, void *to_view)
{
	const struct python_view *from = from_view;
	const struct python_process *p = &from->processes[i];
	struct python_view *to = to_view;
	struct python_process *copy = &to->processes[to->processes_n++];

	*copy = *p;
	copy->waiters_first = to->waiters_n;
	memcpy(&to->waiters[to->waiters_n], &from->waiters[p->waiters_first],
	       p->waiters_n * sizeof(*to->waiters));
	to->waiters_n += p->waiters_n;
}
LAYER(python);

static void copy_counts(const struct torch_view *from, uint32_t first, uint32_t n, struct torch_view *to,
			uint32_t *ret_first)
{
	*ret_first = to->counts_n;
	memcpy(&to->counts[to->counts_n], &from->counts[first], n * sizeof(*to->counts));
	to->counts_n += n;
}

static void torch_copy(const void *from_view, uint32_t i, void *to_view)
{
	const struct torch_view *from = from_view;
	const struct torch_process *p = &from->processes[i];
	struct torch_view *to = to_view;
	struct torch_process *copy = &to->processes[to->processes_n++];

	*copy = *p;
	copy->memories_first = to->memories_n;
	memcpy(&to->memories[to->memories_n], &from->memories[p->memories_first],
	       p->memories_n * sizeof(*to->memories));
	to->memories_n += p->memories_n;
	copy->operators_first = to->operators_n;
	memcpy(&to->operators[to->operators_n], &from->operators[p->operators_first],
	       p->operators_n * sizeof(*to->operators));
	to->operators_n += p->operators_n;
	copy_counts(from, p->nodes_first, p->nodes_n, to, &copy->nodes_first);
	copy_counts(from, p->ranges_first, p->ranges_n, to, &copy->ranges_first);
}
LAYER(torch);

struct nccl_view *pipeline_carry_nccl(const struct nccl_view *before, struct nccl_view *view,
				      uint64_t *left_out)
{
	uint32_t carried = before && view ? carried_of(&nccl_layer, before, left_out) : 0;
	struct nccl_view *both;

	if (carried == 0)
		return view;
	both = nccl_view_new(carried + view->processes_n, before->rows_n + view->rows_n,
			     before->communicators_n + view->communicators_n, view->totals_n);
	if (!both) {
		*left_out += carried;
		return view;
	}
	layers_merge(&nccl_layer, before, view, carried, both);
	memcpy(both->totals, view->totals, view->totals_n * sizeof(*both->totals));
	both->totals_n = view->totals_n;
	both->beyond = view->beyond;
	both->groups = view->groups;
	both->group_seconds = view->group_seconds;
	free(view);
	return both;
}

struct blas_view *pipeline_carry_blas(const struct blas_view *before, struct blas_view *view,
				      uint64_t *left_out)
{
	uint32_t carried = before && view ? carried_of(&blas_layer, before, left_out) : 0;
	struct blas_view *both;

	if (carried == 0)
		return view;
	both = blas_view_new(carried + view->processes_n, before->rows_n + view->rows_n);
	if (!both) {
		*left_out += carried;
		return view;
	}
	layers_merge(&blas_layer, before, view, carried, both);
	memcpy(both->totals, view->totals, sizeof(both->totals));
	both->unsized = view->unsized;
	both->beyond = view->beyond;
	free(view);
	return both;
}

struct python_view *pipeline_carry_python(const struct python_view *before, struct python_view *view,
					  uint64_t *left_out)
{
	uint32_t carried = before && view ? carried_of(&python_layer, before, left_out) : 0;
	struct python_view *both;

	if (carried == 0)
		return view;
	both = python_view_new(carried + view->processes_n, before->waiters_n + view->waiters_n);
	if (!both) {
		*left_out += carried;
		return view;
	}
	layers_merge(&python_layer, before, view, carried, both);
	both->waits = view->waits;
	memcpy(both->collections, view->collections, sizeof(both->collections));
	both->unknown = view->unknown;
	both->unknown_version = view->unknown_version;
	free(view);
	return both;
}

struct torch_view *pipeline_carry_torch(const struct torch_view *before, struct torch_view *view,
					uint64_t *left_out)
{
	uint32_t carried = before && view ? carried_of(&torch_layer, before, left_out) : 0;
	struct torch_view *both;

	if (carried == 0)
		return view;
	both = torch_view_new(carried + view->processes_n, before->memories_n + view->memories_n,
			      before->counts_n + view->counts_n, before->operators_n + view->operators_n);
	if (!both) {
		*left_out += carried;
		return view;
	}
	layers_merge(&torch_layer, before, view, carried, both);
	both->beyond = view->beyond;
	free(view);
	return both;
}
