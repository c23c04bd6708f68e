// SPDX-License-Identifier: Apache-2.0
#include "nccl/private.h"

#include <stdlib.h>
#include <string.h>

static bool is_used(const struct counts *counts)
{
	return counts->calls > 0 || counts->failed > 0;
}

static uint32_t rows_of(const struct sizes *sizes)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < NCCL_SIZES_MAX; slot++)
		for (unsigned i = 0; i < NCCL_OPERATIONS; i++)
			n += is_used(&sizes->at[slot][i]);
	return n;
}

static uint32_t rows_fill(const struct nccl *nccl, const struct sizes *sizes, struct nccl_row *rows)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < NCCL_SIZES_MAX; slot++)
		for (unsigned i = 0; i < NCCL_OPERATIONS; i++) {
			const struct counts *c = &sizes->at[slot][i];

			if (!is_used(c))
				continue;
			rows[n++] = (struct nccl_row){
				.ranks = nccl->ranks[slot],
				.operation = (uint8_t)i,
				.calls = c->calls,
				.failed = c->failed,
				.grouped = c->grouped,
				.bytes = c->bytes,
				.traffic = c->traffic,
				.unsized = nccl->ranks[slot] == NCCL_RANKS_UNKNOWN &&
					   nccl_operation_is_per_rank((enum nccl_operation)i),
				.seconds = c->seconds,
			};
		}
	return n;
}

static void communicators_fill(struct nccl_traced *p, double elapsed, struct nccl_communicator *shown)
{
	for (uint32_t i = 0; i < p->communicators_n; i++) {
		struct communicator *c = &p->communicators[i];

		shown[i] = c->shown;
		if (elapsed > 0)
			shown[i].per_second = (double)(c->operations - c->operations_before) / elapsed;
		c->operations_before = c->operations;
	}
}

static void process_fill(const struct nccl *nccl, struct nccl_traced *p, double elapsed,
			 struct nccl_view *view)
{
	struct nccl_process *shown = &view->processes[view->processes_n++];

	*shown = (struct nccl_process){
		.pid = p->tgid,
		.exited = p->over,
		.has_series = p->has_series,
		.groups = p->groups,
		.group_operations = p->group_operations,
		.group_seconds = p->group_seconds,
		.left_out = p->left_out,
		.rows_first = view->rows_n,
		.communicators_first = view->communicators_n,
		.communicators_n = p->communicators_n,
	};
	shown->rows_n = rows_fill(nccl, p->sizes, &view->rows[view->rows_n]);
	communicators_fill(p, elapsed, &view->communicators[view->communicators_n]);
	view->rows_n += shown->rows_n;
	view->communicators_n += shown->communicators_n;
}

/* Of those with one PID, the youngest last. */
static int by_tgid(const void *a, const void *b)
{
	const struct nccl_traced *x = *(const struct nccl_traced *const *)a,
				 *y = *(const struct nccl_traced *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

struct nccl_view *nccl_window(struct nccl *nccl, uint64_t now_ns)
{
	double elapsed =
		nccl->window_ns && now_ns > nccl->window_ns ? (double)(now_ns - nccl->window_ns) / 1e9 : 0;
	uint32_t rows = 0, communicators = 0;
	struct nccl_view *view;

	for (uint32_t i = 0; i < nccl->processes_n; i++) {
		rows += rows_of(nccl->processes[i]->sizes);
		communicators += nccl->processes[i]->communicators_n;
	}
	view = nccl_view_new(nccl->processes_n, rows, communicators, rows_of(&nccl->totals));
	if (!view)
		return NULL;
	qsort(nccl->processes, nccl->processes_n, sizeof(nccl->processes[0]), by_tgid);
	for (uint32_t i = 0; i < nccl->processes_n; i++)
		process_fill(nccl, nccl->processes[i], elapsed, view);
	for (uint32_t i = nccl->processes_n; !nccl->keep && i-- > 0;)
		if (nccl->processes[i]->over)
			nccl_forget(nccl, i);
	nccl_index_again(nccl);
	view->totals_n = rows_fill(nccl, &nccl->totals, view->totals);
	view->beyond = nccl->beyond;
	view->groups = nccl->groups;
	view->group_seconds = nccl->group_seconds;
	nccl->window_ns = now_ns;
	return view;
}
