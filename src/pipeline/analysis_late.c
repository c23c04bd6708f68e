// SPDX-License-Identifier: Apache-2.0
#include "pipeline/analysis_late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_end(const void *a, const void *b)
{
	const struct analysis_event *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Those that ended by then. */
static void give_works(struct analysis_late *late, uint64_t end_ns)
{
	struct analysis_event *works = late->works.list;

	if (!late->sorted && late->works.n > late->given)
		qsort(works + late->given, late->works.n - late->given, sizeof(*works), by_end);
	late->sorted = true;
	while (late->given < late->works.n && works[late->given].end_ns <= end_ns)
		late->give(&works[late->given++], late->userdata);
}

/* Without the time that was measured. */
static void give_estimate(struct analysis_late *late, const struct analysis_event *estimate)
{
	const struct time_part time = { estimate->begin_ns, estimate->end_ns };
	struct time_part rest[MEASURED_RESTS];
	struct analysis_event event = *estimate;
	uint32_t n = measured_rest(late->measured, estimate->pid, time, rest);

	for (uint32_t i = 0; i < n; i++) {
		event.begin_ns = rest[i].begin_ns;
		event.end_ns = rest[i].end_ns;
		late->give(&event, late->userdata);
	}
}

static void give_oldest(struct analysis_late *late)
{
	const struct analysis_event *event = &late->ring[late->at];

	give_works(late, event->end_ns);
	if (event->kind == ANALYSIS_WORK)
		give_estimate(late, event);
	else
		late->give(event, late->userdata);
	late->at = (late->at + 1) % late->max;
	late->n--;
}

int analysis_late_add(struct analysis_late *late, const struct analysis_event *event)
{
	if (!late->measured || !measured_has(late->measured, event->pid))
		return late->give(event, late->userdata);
	if (!late->ring)
		late->ring = calloc(late->max, sizeof(*late->ring));
	if (!late->ring)
		return -ENOMEM;
	if (late->n == late->max) {
		late->early_ns = MAX(late->early_ns, late->ring[late->at].end_ns);
		give_oldest(late);
	}
	late->ring[(late->at + late->n++) % late->max] = *event;
	return 0;
}

int analysis_late_work(struct analysis_late *late, const struct analysis_event *work)
{
	struct analysis_event *kept = work->end_ns > late->early_ns ? row_list_add(&late->works) : NULL;

	if (!kept)
		return -ENOBUFS;
	*kept = *work;
	late->sorted = false;
	return 0;
}

void analysis_late_tick(struct analysis_late *late, uint64_t now_ns)
{
	struct analysis_event *works = late->works.list;
	uint64_t until_ns = now_ns == UINT64_MAX ? now_ns : now_ns - MIN(now_ns, MEASURED_LATE_NS);

	while (late->n > 0 && late->ring[late->at].end_ns <= until_ns)
		give_oldest(late);
	give_works(late, until_ns);
	late->works.n -= late->given;
	if (late->given > 0)
		memmove(works, works + late->given, late->works.n * sizeof(*works));
	late->given = 0;
}

void analysis_late_init(struct analysis_late *late, const struct measured *measured, uint32_t max,
			analysis_late_fn *give, void *userdata)
{
	*late = (struct analysis_late){ .give = give,
					.userdata = userdata,
					.measured = measured,
					.max = max,
					.works = { .size = sizeof(struct analysis_event),
						   .max = max } };
}

void analysis_late_done(struct analysis_late *late)
{
	free(late->ring);
	row_list_done(&late->works);
}
