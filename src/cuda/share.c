// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels at the end of a window.
 *
 * The estimated busy time of a process on a device is split among the launches that were pending in the
 * window, by their weight: waves of threads (kernel.c). How long each of them really ran is unknown: this is
 * an estimate, too low for long kernels and too high for short ones; the kernels' sum equals the process's
 * estimate to the nanosecond. A launch counts in the window it was made in, and in the following ones as long
 * as its stream is busy and has been given nothing newer: a stream works in order.
 *
 * Series: the kernels with the most time lately, of those whose name is settled, in processes that have
 * series. One that has a series keeps it until another has clearly more. Each increment goes to exactly one
 * place: the kernel's series, or "other" of its device.
 */
#include "cuda/private.h"

#include <math.h>

#define FORGET_SECONDS 60.0 /* time from so long ago counts a third */

/* ---- time ---- */

static double weight_of(const struct share *share)
{
	double weight = share->unplaced;

	for (unsigned i = 0; i < PENDING_SLOTS; i++)
		weight += share->pending[i].fresh + share->pending[i].old;
	return weight;
}

/* Keeps the weight of work that is still pending in the next window. */
static void share_carry(const struct cuda *cuda, const struct process *p, struct share *share)
{
	share->unplaced = 0;
	share->dynamic = 0;
	for (unsigned i = 0; i < PENDING_SLOTS; i++) {
		struct pending_slot *slot = &share->pending[i];
		const struct stream *s;

		if (slot->epoch == 0)
			continue;
		s = slot->stream < p->streams.n ? stream_at(p, slot->stream) : NULL;
		if (!s || !s->pending || s->epoch != slot->epoch) {
			*slot = (struct pending_slot){ 0 };
			continue;
		}
		if (s->launched == cuda->window)
			slot->old = slot->fresh;
		slot->fresh = 0;
	}
}

/* A share of the usage's time; the last one gets the remainder. */
static uint64_t part_of(struct usage *usage, const struct share *share)
{
	uint64_t upto = usage->busy_ns, part;

	usage->weight_done += weight_of(share);
	if (usage->weight_done < usage->weight)
		upto = (uint64_t)((double)usage->busy_ns * (usage->weight_done / usage->weight));
	upto = MIN(upto, usage->busy_ns);
	part = upto > usage->ns_done ? upto - usage->ns_done : 0;
	usage->ns_done += part;
	return part;
}

/* ---- memory that launches take ---- */

struct mean {
	double bytes, launches;
};

static void add_known(struct mean *mean, double bytes, uint64_t launches, uint64_t more)
{
	if (bytes < 0)
		return;
	mean->bytes += bytes * (double)launches + (double)more;
	mean->launches += (double)launches;
}

static void add_classes(struct mean means[LAUNCH_CLASSES], const struct kernel_row *row)
{
	uint64_t launches = row->share.now.launches - row->share.shown.launches;
	const int64_t *figures = row->kernel->figures;
	double shared = (double)figures[KERNEL_STATIC_SHARED];

	if (launches == 0)
		return;
	/* Images of architectures that reserve no shared memory have no such figure. */
	if (shared >= 0 && figures[KERNEL_RESERVED_SHARED] > 0)
		shared += (double)figures[KERNEL_RESERVED_SHARED];
	add_known(&means[0], shared, launches, row->share.dynamic);
	add_known(&means[1], (double)figures[KERNEL_CONSTANT], launches, 0);
	add_known(&means[2], (double)figures[KERNEL_CODE], launches, 0);
}

static void close_classes(struct process *p)
{
	struct mean means[USAGES_MAX][LAUNCH_CLASSES] = { 0 };

	for (uint32_t i = 0; i < p->rows.n; i++)
		if (row_at(p, i)->kernel)
			add_classes(means[row_at(p, i)->usage], row_at(p, i));
	for (uint32_t i = 0; i < p->usages_n; i++)
		for (unsigned k = 0; k < LAUNCH_CLASSES; k++)
			p->usages[i].classes[k] =
				means[i][k].launches > 0 ? means[i][k].bytes / means[i][k].launches : NAN;
}

void share_process(struct cuda *cuda, struct process *p)
{
	for (uint32_t i = 0; i < p->usages_n; i++) {
		p->usages[i].weight = weight_of(&p->usages[i].rest);
		p->usages[i].weight_done = 0;
		p->usages[i].ns_done = 0;
	}
	for (uint32_t i = 0; i < p->rows.n; i++)
		if (row_at(p, i)->kernel)
			p->usages[row_at(p, i)->usage].weight += weight_of(&row_at(p, i)->share);
	for (uint32_t i = 0; i < p->usages_n; i++) {
		p->usages[i].rest.now.ns += part_of(&p->usages[i], &p->usages[i].rest);
		share_carry(cuda, p, &p->usages[i].rest);
	}
	close_classes(p);
	for (uint32_t i = 0; i < p->rows.n; i++) {
		struct kernel_row *row = row_at(p, i);

		if (!row->kernel)
			continue;
		row->share.now.ns += part_of(&p->usages[row->usage], &row->share);
		share_carry(cuda, p, &row->share);
	}
	if (cuda->operators)
		operator_rows_share(cuda, p);
}

/* ---- series ---- */

static void choose_kernels(struct cuda *cuda, double keep)
{
	struct series_best best = { .heap = cuda->best, .limit = cuda->limits.kernel_series };

	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->rows.n; k++) {
			struct kernel_row *row = row_at(p, k);

			if (!row->kernel)
				continue;
			row->claim.score =
				row->claim.score * keep + (double)(row->share.now.ns - row->share.shown.ns);
			series_offer(&best, &row->claim, row->settled && p->claim.has);
		}
	}
	series_settle(&best);
}

static void credit_launches(struct cuda *cuda, const struct usage *usage, struct share *share, bool has)
{
	struct launch_sums *all = &cuda->totals[usage->device].kernels;
	struct launch_sums *other = &cuda->totals[usage->device].kernels_other, *own = &share->series;

	series_credit_count(has, share->now.launches - share->shown.launches, &all->launches, &own->launches,
			    &other->launches);
	series_credit_count(has, share->now.threads - share->shown.threads, &all->threads, &own->threads,
			    &other->threads);
	series_credit_count(has, share->now.ns - share->shown.ns, &all->ns, &own->ns, &other->ns);
	share->shown = share->now;
}

void share_close(struct cuda *cuda, double elapsed)
{
	choose_kernels(cuda, exp(-elapsed / FORGET_SECONDS));
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->usages_n; k++)
			credit_launches(cuda, &p->usages[k], &p->usages[k].rest, false);
		for (uint32_t k = 0; k < p->rows.n; k++) {
			struct kernel_row *row = row_at(p, k);

			if (row->kernel)
				credit_launches(cuda, &p->usages[row->usage], &row->share, row->claim.has);
		}
	}
}
