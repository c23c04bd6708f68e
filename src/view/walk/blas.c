// SPDX-License-Identifier: Apache-2.0
/*
 * Multiplications of cuBLAS by precision: of processes with series of their own, and over all processes that
 * ever were, which do not fall when one ends.
 */
#include "view/walk/private.h"

struct blas_walk {
	struct walk *walk;
	const struct blas_view *view;
	const struct label_set **processes; /* pid, comm; NULL: no series */
	const struct label_set *precisions[BLAS_PRECISIONS];
};

static bool blas_walk_init(struct blas_walk *bw, struct walk *walk)
{
	const struct blas_view *view = walk->s->trace->blas;

	*bw = (struct blas_walk){ .walk = walk, .view = view };
	bw->processes = walk_zeroes(walk, view->processes_n + 1, sizeof(*bw->processes));
	if (!bw->processes)
		return false;
	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct blas_process *p = &view->processes[i];

		/* Of those with one PID, the youngest, which comes last. */
		if (p->has_series && !(i + 1 < view->processes_n && p[1].pid == p->pid))
			bw->processes[i] = WALK_SET(walk, true, { "pid", walk_number(walk, p->pid) },
						    { "comm", walk_text(walk, p->comm, "") });
	}
	for (unsigned i = 0; i < BLAS_PRECISIONS; i++)
		bw->precisions[i] =
			WALK_SET(walk, true, { "precision", blas_precision_name((enum blas_precision)i) });
	return true;
}

static void blas_value(struct walk *walk, const struct label_set *first, const struct label_set *second,
		       double value, uint8_t presence)
{
	walk_series(walk, &(struct series){ .sets = { first, second },
					    .value = value,
					    .presence = presence,
					    .entity = UINT32_MAX });
}

static void walk_sums(struct blas_walk *bw, const struct label_set *process, const struct blas_sum *sums,
		      bool flop)
{
	for (unsigned i = 0; i < BLAS_PRECISIONS; i++)
		if (sums[i].calls > 0)
			blas_value(bw->walk, process ? process : bw->precisions[i],
				   process ? bw->precisions[i] : NULL,
				   flop ? sums[i].flop : (double)sums[i].calls, PRESENCE_PRESENT);
}

static void walk_process_sums(struct blas_walk *bw, bool flop)
{
	for (uint32_t i = 0; i < bw->view->processes_n; i++)
		if (bw->processes[i])
			walk_sums(bw, bw->processes[i], bw->view->processes[i].by_precision, flop);
}

static void walk_unsized(struct blas_walk *bw)
{
	for (uint32_t i = 0; i < bw->view->processes_n; i++)
		if (bw->processes[i])
			blas_value(bw->walk, bw->processes[i], NULL, (double)bw->view->processes[i].unsized,
				   PRESENCE_PRESENT);
}

static void walk_peaks(struct blas_walk *bw)
{
	for (uint32_t i = 0; i < bw->view->processes_n; i++)
		if (bw->processes[i] && bw->view->processes[i].peak_share >= 0)
			blas_value(bw->walk, bw->processes[i], NULL, bw->view->processes[i].peak_share,
				   PRESENCE_PRESENT | PRESENCE_ESTIMATED);
}

void walk_blas(struct walk *walk)
{
	struct blas_walk bw;

	if (!walk->s->trace || !walk->s->trace->blas || !blas_walk_init(&bw, walk))
		return;
	if (walk_family_named(walk, "process_gemm_calls_total", FAMILY_COUNTER, UNIT_NONE,
			      "Multiplications of matrices that the process asked cuBLAS for."))
		walk_process_sums(&bw, false);
	if (walk_family_named(walk, "process_gemm_flop_total", FAMILY_COUNTER, UNIT_NONE,
			      "Floating-point (or integer) operations that they ask for, 2 m n k."))
		walk_process_sums(&bw, true);
	if (walk_family_named(walk, "process_gemm_unsized_calls_total", FAMILY_COUNTER, UNIT_NONE,
			      "Multiplications of the process whose sizes are not known."))
		walk_unsized(&bw);
	if (walk_family_named(
		    walk, "process_gemm_peak_share_estimated", FAMILY_GAUGE, UNIT_NONE,
		    "Time that the multiplications would take at the board's peak, as a share of the time "
		    "that the device worked for the process, since it is traced."))
		walk_peaks(&bw);
	if (walk_family_named(
		    walk, "gemm_calls_total", FAMILY_COUNTER, UNIT_NONE,
		    "Multiplications of matrices that cuBLAS was asked for, of all processes, those "
		    "that have ended included."))
		walk_sums(&bw, NULL, bw.view->totals, false);
	if (walk_family_named(walk, "gemm_flop_total", FAMILY_COUNTER, UNIT_NONE,
			      "The operations that they ask for."))
		walk_sums(&bw, NULL, bw.view->totals, true);
	if (walk_family_named(walk, "gemm_other_processes_calls_total", FAMILY_COUNTER, UNIT_NONE,
			      "Those of them that are in no process's figures, since more processes than are "
			      "told apart used cuBLAS."))
		blas_value(walk, NULL, NULL, (double)bw.view->beyond, PRESENCE_PRESENT);
}
