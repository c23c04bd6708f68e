// SPDX-License-Identifier: Apache-2.0
/*
 * The estimate of busy time beside what CUPTI measured at the same time. Windows and what was measured begin
 * and end at different times: of a window that is measured in part, the same part of its estimate is
 * compared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cuda/private.h"

#define COMPARE_SECONDS 1.0 /* of time that was measured: less is one window, or a part of it */
/* What was learned from the device is better than whole percents for so long. */
#define VALID_NS (600 * (uint64_t)NSEC_PER_SEC)

/* NULL: the process is not known to use it. */
static struct usage *usage_on(struct process *p, uint32_t device)
{
	for (uint32_t i = 0; i < p->usages_n; i++)
		if (p->usages[i].device == device)
			return &p->usages[i];
	return NULL;
}

static void part_add(struct measured_busy *m, struct measured_part part)
{
	struct measured_part *last = m->parts_n > 0 ? &m->parts[m->parts_n - 1] : NULL;

	if (last && last->end_ns == part.begin_ns) {
		last->end_ns = part.end_ns;
		last->busy_ns = add_saturated(last->busy_ns, part.busy_ns);
		return;
	}
	if (m->parts_n == MEASURED_PARTS)
		memmove(m->parts, m->parts + 1, --m->parts_n * sizeof(m->parts[0]));
	m->parts[m->parts_n++] = part;
}

void cuda_measured(struct cuda *cuda, uint32_t tgid, uint64_t since_boot_ns, const char *uuid,
		   uint64_t begin_ns, uint64_t end_ns, uint64_t busy_ns)
{
	struct process *p = process_find(cuda, tgid);
	uint32_t device = p && p->start_boot_ns <= since_boot_ns ? device_uuid(cuda, uuid) : 0;
	struct usage *u = device ? usage_on(p, device) : NULL;

	if (!u || end_ns <= begin_ns)
		return;
	if (!u->measured)
		u->measured = calloc(1, sizeof(*u->measured));
	if (u->measured)
		part_add(u->measured, (struct measured_part){ begin_ns, end_ns, busy_ns });
}

/* What was estimated of the part's time is added; returns how much of it windows cover. */
static double estimated_of(const struct measured_busy *m, const struct measured_part *part, double *estimated,
			   double *launches)
{
	uint32_t n = MIN(m->windows_n, (uint32_t)MEASURED_WINDOWS);
	double covered = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct measured_estimate *w = &m->windows[i];
		uint64_t begin_ns = MAX(w->begin_ns, part->begin_ns), end_ns = MIN(w->end_ns, part->end_ns);
		double share;

		if (begin_ns >= end_ns)
			continue;
		share = (double)(end_ns - begin_ns) / (double)(w->end_ns - w->begin_ns);
		covered += (double)(end_ns - begin_ns);
		*estimated += w->busy * share;
		*launches += w->launches * share;
	}
	return covered / (double)(part->end_ns - part->begin_ns);
}

static void part_take(struct usage *u, const struct measured_part *part)
{
	struct measured_busy *m = u->measured;
	double estimated = 0, launches = 0;

	/* Of the time before the first window nothing was estimated. */
	if (estimated_of(m, part, &estimated, &launches) < 0.999)
		return;
	m->seconds += (double)(part->end_ns - part->begin_ns) / NSEC_PER_SEC;
	m->busy += (double)part->busy_ns / NSEC_PER_SEC;
	m->estimated += estimated;
	m->launches += launches;
	if (m->seconds < COMPARE_SECONDS)
		return;
	estimate_measure(&u->estimate, m->busy, m->estimated, m->launches);
	m->compared_seconds += m->seconds;
	m->compared_ns = part->end_ns;
	m->seconds = m->busy = m->estimated = m->launches = 0;
}

void measured_window(struct usage *u, uint64_t begin_ns, uint64_t end_ns, double busy, double launches)
{
	struct measured_busy *m = u->measured;
	uint32_t taken = 0;

	if (!m)
		return;
	m->windows[m->windows_n++ % MEASURED_WINDOWS] =
		(struct measured_estimate){ begin_ns, end_ns, busy, launches };
	for (; taken < m->parts_n && m->parts[taken].end_ns <= end_ns; taken++)
		part_take(u, &m->parts[taken]);
	m->parts_n -= taken;
	memmove(m->parts, m->parts + taken, m->parts_n * sizeof(m->parts[0]));
	if (u->estimate.measured && end_ns - m->compared_ns > VALID_NS)
		u->estimate.measured = false;
}
