// SPDX-License-Identifier: Apache-2.0
/*
 * What is added up or divided has digits far behind what it is measured with: shares of percents times times
 * of the clock. Snapshots have no digits that say nothing, so that pages are readable and recordings small,
 * and one number is on all of them. Sums of devices and processes are added up without it: no error grows, no
 * sum falls. What is a sum of published numbers (workloads, a device's processes) is added up of the rounded
 * ones, so that both agree.
 */
#include "model/rounding.h"

#include <math.h>

static const struct rounding {
	double parts; /* sums: so many parts of a unit; 0: as they are */
	unsigned digits; /* gauges: so many significant ones; 0: as they are */
} roundings[UNIT_MAX] = {
	[UNIT_RATIO] = { 0, 4 },    [UNIT_BYTES_PER_SECOND] = { 0, 6 }, [UNIT_SECONDS] = { 1e6, 0 },
	[UNIT_JOULES] = { 1e3, 0 }, [UNIT_BYTE_SECONDS] = { 1e-6, 0 },
};

static double to_parts(double v, double parts)
{
	/* Powers of ten below 1 are not exact, those above are. */
	return parts >= 1 ? round(v * parts) / parts : round(v / (1 / parts)) * (1 / parts);
}

static double to_digits(double v, unsigned digits)
{
	int before = (int)floor(log10(fabs(v))) + 1, more = (int)digits - before;

	if (more >= 0)
		return more > 22 ? v : to_parts(v, pow(10, more));
	return round(v / pow(10, -more)) * pow(10, -more);
}

double metric_rounded(const struct metric *m, double v)
{
	const struct rounding *rounding = &roundings[m->unit];

	if (v == 0 || !isfinite(v))
		return v;
	if (rounding->parts > 0)
		return to_parts(v, rounding->parts);
	return rounding->digits ? to_digits(v, rounding->digits) : v;
}

static void round_rows(const struct metric *metrics, unsigned n, double *v)
{
	for (unsigned row = 0; row < n; row++) {
		const struct metric *m = &metrics[row];

		for (unsigned i = 0; i < m->count; i++)
			v[m->slot + i] = metric_rounded(m, v[m->slot + i]);
	}
}

/* What another program has measured is told as it tells it. */
static bool is_anothers(const struct snapshot *s, const struct entity *e, const struct metric *m)
{
	return m->dcgm.name && snapshot_slot_source(s, e, m->slot) == SOURCE_DCGM;
}

static void entity_round(const struct snapshot *s, struct entity *e)
{
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (!is_anothers(s, e, &gpu_metrics[row]))
			round_rows(&gpu_metrics[row], 1, e->id.v);
	round_rows(process_metrics, PROCESS_METRICS, e->process_total);
	round_rows(process_metrics, PROCESS_METRICS, e->process_other);
}

void process_round(struct process *process)
{
	round_rows(process_metrics, PROCESS_METRICS, process->v);
	round_rows(process_metrics, PROCESS_METRICS, process->series);
}

void snapshot_round(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->entities_n; i++)
		entity_round(s, &s->entities[i]);
	for (uint32_t i = 0; i < s->processes_n; i++)
		process_round(&s->processes[i]);
	for (uint32_t i = 0; i < s->workloads_n; i++)
		round_rows(process_metrics, PROCESS_METRICS, s->workloads[i].v);
	for (uint32_t i = 0; i < s->allocated_n; i++) {
		s->allocated[i].seconds = to_parts(s->allocated[i].seconds, roundings[UNIT_SECONDS].parts);
		s->allocated[i].idle_seconds =
			to_parts(s->allocated[i].idle_seconds, roundings[UNIT_SECONDS].parts);
	}
}
