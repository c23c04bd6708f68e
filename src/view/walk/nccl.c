// SPDX-License-Identifier: Apache-2.0
/*
 * Operations of NCCL: by process, size of the communicator and operation, for processes with series of their
 * own; and over all processes that ever were, which do not fall when one ends.
 */
#include "view/walk/private.h"

struct nccl_walk {
	struct walk *walk;
	const struct nccl_view *view;
	const struct label_set **processes; /* pid, comm; NULL: no series */
	const struct label_set **rows, **totals; /* comm_size, operation */
};

static const struct label_set *row_set(struct walk *walk, const struct nccl_row *row)
{
	char size[NCCL_SIZE_TEXT];

	nccl_size_text(row->ranks, size);
	return WALK_SET(walk, true, { "comm_size", walk_text(walk, size, "") },
			{ "operation", nccl_operation_name((enum nccl_operation)row->operation) });
}

static bool nccl_walk_init(struct nccl_walk *nw, struct walk *walk)
{
	const struct nccl_view *view = walk->s->trace->nccl;

	*nw = (struct nccl_walk){ .walk = walk, .view = view };
	nw->processes = walk_zeroes(walk, view->processes_n + 1, sizeof(*nw->processes));
	nw->rows = walk_zeroes(walk, view->rows_n + 1, sizeof(*nw->rows));
	nw->totals = walk_zeroes(walk, view->totals_n + 1, sizeof(*nw->totals));
	if (!nw->processes || !nw->rows || !nw->totals)
		return false;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct nccl_process *p = &view->processes[i];

		/* Of those with one PID, the youngest, which comes last. */
		if (!p->has_series || (i + 1 < view->processes_n && p[1].pid == p->pid))
			continue;
		nw->processes[i] = WALK_SET(walk, true, { "pid", walk_number(walk, p->pid) },
					    { "comm", walk_text(walk, p->comm, "") });
		for (uint32_t k = p->rows_first; k < p->rows_first + p->rows_n; k++)
			nw->rows[k] = row_set(walk, &view->rows[k]);
	}
	for (uint32_t i = 0; i < view->totals_n; i++)
		nw->totals[i] = row_set(walk, &view->totals[i]);
	return true;
}

static void nccl_value(struct walk *walk, const struct label_set *first, const struct label_set *second,
		       double value)
{
	walk_series(walk, &(struct series){ .sets = { first, second },
					    .value = value,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

/* A number of a row; false: it is not known. */
typedef bool (*row_number)(const struct nccl_row *row, double *ret_value);

static bool row_calls(const struct nccl_row *row, double *ret_value)
{
	*ret_value = (double)row->calls;
	return true;
}

static bool row_traffic(const struct nccl_row *row, double *ret_value)
{
	*ret_value = (double)row->traffic;
	return !row->unsized;
}

static bool row_failed(const struct nccl_row *row, double *ret_value)
{
	*ret_value = (double)row->failed;
	return true;
}

static void walk_rows(struct nccl_walk *nw, row_number number)
{
	const struct nccl_view *view = nw->view;
	double value;

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct nccl_process *p = &view->processes[i];

		for (uint32_t k = p->rows_first; nw->processes[i] && k < p->rows_first + p->rows_n; k++)
			if (number(&view->rows[k], &value))
				nccl_value(nw->walk, nw->processes[i], nw->rows[k], value);
	}
}

static void walk_totals(struct nccl_walk *nw, row_number number)
{
	double value;

	for (uint32_t i = 0; i < nw->view->totals_n; i++)
		if (number(&nw->view->totals[i], &value))
			nccl_value(nw->walk, nw->totals[i], NULL, value);
}

static void walk_communicators(struct nccl_walk *nw)
{
	const struct nccl_view *view = nw->view;

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct nccl_process *p = &view->processes[i];
		uint32_t alive = 0;

		for (uint32_t k = 0; k < p->communicators_n; k++)
			alive += !view->communicators[p->communicators_first + k].ended;
		if (nw->processes[i])
			nccl_value(nw->walk, nw->processes[i], NULL, alive);
	}
}

void walk_nccl(struct walk *walk)
{
	struct nccl_walk nw;

	if (!walk->s->trace || !walk->s->trace->nccl || !nccl_walk_init(&nw, walk))
		return;
	if (walk_family_named(walk, "process_nccl_operations_total", FAMILY_COUNTER, UNIT_NONE,
			      "Operations of NCCL that the process enqueued."))
		walk_rows(&nw, row_calls);
	if (walk_family_named(walk, "process_nccl_failed_total", FAMILY_COUNTER, UNIT_NONE,
			      "Operations of NCCL that the process could not enqueue."))
		walk_rows(&nw, row_failed);
	if (walk_family_named(
		    walk, "process_nccl_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
		    "Traffic of the operations that the process enqueued, as nccl-tests counts it: an "
		    "argument that is each rank's times the ranks."))
		walk_rows(&nw, row_traffic);
	if (walk_family_named(walk, "process_nccl_communicators", FAMILY_GAUGE, UNIT_NONE,
			      "Communicators of the process."))
		walk_communicators(&nw);
	if (walk_family_named(
		    walk, "nccl_operations_total", FAMILY_COUNTER, UNIT_NONE,
		    "Operations of NCCL that were enqueued, of all processes, those that have ended "
		    "included."))
		walk_totals(&nw, row_calls);
	if (walk_family_named(walk, "nccl_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
			      "Their traffic, as nccl-tests counts it."))
		walk_totals(&nw, row_traffic);
	if (walk_family_named(walk, "nccl_other_processes_operations_total", FAMILY_COUNTER, UNIT_NONE,
			      "Those of them that are in no process's figures, since more processes than are "
			      "told apart used NCCL."))
		nccl_value(walk, NULL, NULL, (double)nw.view->beyond);
	if (walk_family_named(walk, "nccl_groups_total", FAMILY_COUNTER, UNIT_NONE,
			      "Groups of NCCL's calls, nested ones not counted."))
		nccl_value(walk, NULL, NULL, (double)nw.view->groups);
	if (walk_family_named(walk, "nccl_group_seconds_total", FAMILY_COUNTER, UNIT_SECONDS,
			      "Time from their outermost ncclGroupStart() to the end of its ncclGroupEnd()."))
		nccl_value(walk, NULL, NULL, nw.view->group_seconds);
}
