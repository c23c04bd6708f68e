// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels at the end of a window.
 *
 * The estimated busy time of a process on a device is split among the launches that were pending in the
 * window, by their weight: waves of threads (kernel.c). Which of them really ran, and how long, nobody says:
 * it is an estimate, in which a long kernel counts too little and a short one too much; what the kernels have
 * together is the process's estimate to the nanosecond. A launch counts in the window it was made in, and in
 * the following ones as long as its stream is busy and has been given nothing newer: a stream works in order.
 *
 * Series: the kernels with the most time lately, of those whose name is settled, in processes that have
 * series. One that has a series keeps it until another has clearly more. Each increment goes to exactly one
 * place: the kernel's series, or "other" of its device.
 */
#include "cuda/private.h"

#include <math.h>

#define FORGET_SECONDS 60.0 /* time from so long ago counts a third */
#define KEEPS 1.5 /* a kernel that has a series, against one that has none */

/* ---- time ---- */

static double weight_of(const struct share *share)
{
	double weight = share->unplaced;

	for (unsigned i = 0; i < PENDING_SLOTS; i++)
		weight += share->pending[i].fresh + share->pending[i].old;
	return weight;
}

/* What is still there in the next window. */
static void carry(const struct cuda *cuda, const struct process *p, struct share *share)
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

/* The next one of those that the usage's time is split among; the last one gets what is left. */
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
	/* Images of architectures that reserve nothing do not say so. */
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
		carry(cuda, p, &p->usages[i].rest);
	}
	close_classes(p);
	for (uint32_t i = 0; i < p->rows.n; i++) {
		struct kernel_row *row = row_at(p, i);

		if (!row->kernel)
			continue;
		row->share.now.ns += part_of(&p->usages[row->usage], &row->share);
		carry(cuda, p, &row->share);
	}
}

/* ---- series ---- */

static double score(const struct kernel_row *row)
{
	return row->recent * (row->had_series ? KEEPS : 1);
}

/* A heap, the least on top; those that have a series are worth more than others with as much. */
static bool is_less(const struct kernel_row *a, const struct kernel_row *b)
{
	if (score(a) < score(b) || score(a) > score(b))
		return score(a) < score(b);
	return b->had_series && !a->had_series;
}

static void sift_down(struct kernel_row **heap, uint32_t n, uint32_t at)
{
	for (uint32_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
		struct kernel_row *row = heap[at];

		if (child + 1 < n && is_less(heap[child + 1], heap[child]))
			child++;
		if (!is_less(heap[child], row))
			return;
		heap[at] = heap[child];
		heap[child] = row;
	}
}

static void sift_up(struct kernel_row **heap, uint32_t at)
{
	for (uint32_t parent; at > 0 && is_less(heap[at], heap[parent = (at - 1) / 2]); at = parent) {
		struct kernel_row *row = heap[at];

		heap[at] = heap[parent];
		heap[parent] = row;
	}
}

static void choose(struct cuda *cuda, double keep)
{
	uint32_t n = 0, most = cuda->limits.kernel_series;

	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->rows.n; k++) {
			struct kernel_row *row = row_at(p, k);

			if (!row->kernel)
				continue;
			row->recent = row->recent * keep + (double)(row->share.now.ns - row->share.shown.ns);
			row->had_series = row->has_series;
			row->has_series = false;
			if (!row->settled || !p->has_series || most == 0)
				continue;
			if (n < most) {
				cuda->best[n] = row;
				sift_up(cuda->best, n++);
			} else if (is_less(cuda->best[0], row)) {
				cuda->best[0] = row;
				sift_down(cuda->best, n, 0);
			}
		}
	}
	for (uint32_t i = 0; i < n; i++)
		cuda->best[i]->has_series = true;
}

static void add_sums(struct launch_sums *to, const struct share *share)
{
	to->launches += share->now.launches - share->shown.launches;
	to->threads = add_saturated(to->threads, share->now.threads - share->shown.threads);
	to->ns += share->now.ns - share->shown.ns;
}

static void credit(struct cuda *cuda, const struct usage *usage, struct share *share, bool has_series)
{
	struct total *total = &cuda->totals[usage->device];

	add_sums(&total->kernels, share);
	add_sums(has_series ? &share->series : &total->kernels_other, share);
	share->shown = share->now;
}

void share_close(struct cuda *cuda, double elapsed)
{
	choose(cuda, exp(-elapsed / FORGET_SECONDS));
	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		struct process *p = cuda->processes[i];

		for (uint32_t k = 0; k < p->usages_n; k++)
			credit(cuda, &p->usages[k], &p->usages[k].rest, false);
		for (uint32_t k = 0; k < p->rows.n; k++) {
			struct kernel_row *row = row_at(p, k);

			if (row->kernel)
				credit(cuda, &p->usages[row->usage], &row->share, row->has_series);
		}
	}
}
