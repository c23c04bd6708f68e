// SPDX-License-Identifier: Apache-2.0
/*
 * How the readings of one source become its values. A driver's counter is accumulated by differences. Two
 * things disturb this: after a reload the counter restarts at zero, and faulty drivers return wrong numbers
 * for a while. So a reading that fell, or that rose faster than is physically possible, is not accepted at
 * once but is in doubt for DOUBT_SECONDS. If within that time
 *
 *   a reading fits the last good one               the readings in between were wrong and are ignored
 *
 * otherwise the first reading after that time decides:
 *
 *   it is lower, and plausible since a restart     the driver restarted: its whole value is added
 *   anything else                                  a new base; what happened is unknown, so nothing is added
 *
 * So a counter may lag, and may miss what happened around a restart, but it never shows an impossible
 * increase.
 */
#include "model/private.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

/*
 * A time increment is at most the time since the reading before began: a value read early in a slow reading
 * does not include the rest of it. More by a driver's sample interval (up to a second on old boards) and by
 * clocks that differ a little. The first increment may be all that the driver's buffer holds, about 30 s.
 */
#define INCREMENT_SLACK 1.05
#define INCREMENT_EXTRA_SECONDS 1.0
#define INCREMENT_FIRST_SECONDS 30.0

double increment_bound(int64_t accepted_ns, int64_t now_ns)
{
	double since = accepted_ns ? (double)(now_ns - accepted_ns) / NSEC_PER_SEC : INCREMENT_FIRST_SECONDS;

	return since * INCREMENT_SLACK + INCREMENT_EXTRA_SECONDS;
}

/* Long enough for two readings of rarely read counters. */
#define DOUBT_NS (15 * NSEC_PER_SEC)
/*
 * Clock slack between a reading and its values: rarely read values are up to one cadence older.
 */
#define SLACK_SECONDS 3.0
#define SLACK_SLOW_SECONDS 15.0

/* The largest plausible increase in this time, for metrics of a known order of magnitude. */
static double counter_bound(const struct device_report *report, const struct metric *metric, double seconds)
{
	/*
	 * 1.5 times the board's power limit; NVLink 5 transfers 1.8e12 bytes/s in both directions together.
	 */
	static const double watts_share = 1.5, watts_max = 20000, bytes_per_second = 4e12;
	switch (metric->unit) {
	case UNIT_JOULES:
		return seconds * (report->watts_max > 0 ? watts_share * report->watts_max : watts_max);
	case UNIT_BYTES:
		return seconds * bytes_per_second;
	default:
		return INFINITY;
	}
}

/*
 * The largest plausible increase until @end_ns since the counter was something else at @since_ns: in
 * between it may have failed, or not been asked.
 */
static double bound_since(const struct device_report *report, const struct metric *metric, int64_t since_ns,
			  int64_t end_ns)
{
	double slack = metric->cadence == CADENCE_TICK ? SLACK_SECONDS : SLACK_SLOW_SECONDS;

	return counter_bound(report, metric, (double)(end_ns - since_ns) / NSEC_PER_SEC + slack);
}

/* All doubts of a device share one start time, since one cause usually disturbs several counters. */
static void begin_doubt(struct device_report *report, uint8_t *state)
{
	if (*state & SLOT_IN_DOUBT)
		return;
	*state |= SLOT_IN_DOUBT;
	if (report->doubts++ == 0)
		report->doubt_ns = report->sampled_ns;
}

static void end_doubt(struct device_report *report, uint8_t *state)
{
	if (*state & SLOT_IN_DOUBT)
		report->doubts--;
	*state &= (uint8_t)~SLOT_IN_DOUBT;
}

/* Adds the reading's increase to the sum; see the comment at the top. */
static void counter_add(struct model *model, struct device_report *report, const struct metric *metric,
			unsigned slot, double raw, int64_t end_ns)
{
	uint8_t *state = &report->state[slot];
	double added = raw - report->raw[slot], wrap = metric_wrap(metric), bound;

	/* A narrow counter that went from its upper half to its lower half has wrapped. */
	if (added < 0 && report->raw[slot] >= wrap / 2 && raw < wrap / 2)
		added += wrap;
	bound = bound_since(report, metric, report->raw_ns[slot], end_ns);
	if (added < 0 || added > bound) {
		begin_doubt(report, state);
		if (end_ns - report->doubt_ns < DOUBT_NS)
			return;
		added = added < 0 ? raw : INFINITY;
	}
	end_doubt(report, state);
	if (added <= bound)
		report->v[slot] += added;
	else
		model->rejected[metric - gpu_metrics]++;
	if (raw != report->raw[slot])
		report->raw_ns[slot] = end_ns;
	report->raw[slot] = raw;
}

/* Another base: the driver's counter of energy, or the integral of power where it cannot be read. */
static void change_base(struct device_report *report, const struct metric *metric, unsigned slot, double raw,
			bool estimated, int64_t end_ns)
{
	double added = raw - report->measured.raw;

	if (slot == SLOT_ENERGY && estimated) {
		report->measured.raw = report->raw[slot];
		report->measured.v = report->v[slot];
		report->measured.ns = report->raw_ns[slot];
	} else if (slot == SLOT_ENERGY && report->measured.ns && added >= 0 &&
		   added <= bound_since(report, metric, report->measured.ns, end_ns)) {
		/* The driver has counted on meanwhile, also what could not be estimated. */
		report->v[slot] = MAX(report->v[slot], report->measured.v + added);
	}
}

static void take_counter(struct model *model, struct device_report *report, const struct metric *metric,
			 unsigned slot, const struct reading_entity *entity, int64_t end_ns)
{
	bool estimated = entity->p[slot] & PRESENCE_ESTIMATED;
	uint8_t *state = &report->state[slot];

	if (!presence_is(entity->p[slot])) {
		report->p[slot] = entity->p[slot];
		return;
	}
	if ((*state & SLOT_BEGUN) && estimated == !!(*state & SLOT_WAS_ESTIMATED)) {
		counter_add(model, report, metric, slot, entity->v[slot], end_ns);
	} else {
		/* The first reading, which the sum starts at, or a new base after a restart. */
		if (!*state)
			report->v[slot] = entity->v[slot];
		else
			change_base(report, metric, slot, entity->v[slot], estimated, end_ns);
		end_doubt(report, state);
		report->raw[slot] = entity->v[slot];
		report->raw_ns[slot] = end_ns;
		*state = (uint8_t)(SLOT_BEGUN | (estimated ? SLOT_WAS_ESTIMATED | SLOT_HAS_ESTIMATES : 0) |
				   (*state & SLOT_HAS_ESTIMATES));
	}
	report->p[slot] = PRESENCE_PRESENT | (*state & SLOT_HAS_ESTIMATES ? PRESENCE_ESTIMATED : 0);
}

/*
 * A sum of increments is computed by the model: it remains valid, and shown, if one reading fails or is
 * rejected. It is hidden if the driver no longer offers the metric (MIG was turned on).
 */
static void take_increment(struct model *model, struct device_report *report, const struct metric *metric,
			   unsigned slot, const struct reading_entity *entity, int64_t end_ns)
{
	uint8_t p = entity->p[slot], *state = &report->state[slot];
	double increment = entity->v[slot];

	if (presence_is(p) && increment > increment_bound((int64_t)report->raw[slot], end_ns)) {
		model->rejected[metric - gpu_metrics]++;
		p = PRESENCE_REJECTED;
	}
	if (!presence_is(p)) {
		if (!*state || (p != PRESENCE_FAILED && p != PRESENCE_REJECTED))
			report->p[slot] = p;
		return;
	}
	report->v[slot] += increment;
	if (increment > 0 || report->raw[slot] == 0)
		report->raw[slot] = (double)model->begin_ns;
	*state |= SLOT_BEGUN | (p & PRESENCE_ESTIMATED && increment > 0 ? SLOT_HAS_ESTIMATES : 0);
	report->p[slot] = PRESENCE_PRESENT | (*state & SLOT_HAS_ESTIMATES ? PRESENCE_ESTIMATED : 0);
}

static void take_peaks(struct reading_entity *now)
{
	if (!presence_is(now->p[SLOT_MEMORY_USED]))
		return;
	now->v[SLOT_MEMORY_USED_PEAK] = MAX(now->v[SLOT_MEMORY_USED_PEAK], now->v[SLOT_MEMORY_USED]);
	now->p[SLOT_MEMORY_USED_PEAK] = now->p[SLOT_MEMORY_USED];
}

/* atop expects sums over samples. Without utilisation (MIG) the samples of memory in use are counted. */
static void take_sample(struct entity *e)
{
	const struct reading_entity *now = &e->id;
	uint8_t p = now->p[SLOT_UTILIZATION_GPU];

	if (!presence_is(p) &&
	    (p == PRESENCE_FAILED || p == PRESENCE_REJECTED || !presence_is(now->p[SLOT_MEMORY_USED])))
		return;
	e->samples++;
	if (presence_is(p))
		e->percent_sum[0] += 100 * now->v[SLOT_UTILIZATION_GPU];
	if (presence_is(now->p[SLOT_UTILIZATION_MEMORY]))
		e->percent_sum[1] += 100 * now->v[SLOT_UTILIZATION_MEMORY];
	if (presence_is(now->p[SLOT_MEMORY_USED]))
		e->memory_kib_sum += now->v[SLOT_MEMORY_USED] / 1024;
}

/*
 * Values that the model derives from the shown ones, once a tick, from the source with the highest priority.
 */
static void take_shown(struct device *device)
{
	const struct reading_entity *now = &device->e.id;

	take_peaks(&device->e.id);
	take_sample(&device->e);
	if (presence_is(now->p[SLOT_MEMORY_TOTAL]))
		device->memory_total = now->v[SLOT_MEMORY_TOTAL];
}

static void count_clock_events(const struct model *model, struct device *device, int64_t end_ns)
{
	const struct reading_entity *id = &device->e.id;

	if (presence_is(id->p[SLOT_EVENT_REASONS]))
		clock_window_take(&device->clock_window, (uint64_t)id->v[SLOT_EVENT_REASONS],
				  model->clock_window_ns, end_ns);
}

void device_apply(struct model *model, struct device *device, enum source_id source,
		  const struct reading_entity *entity, int64_t end_ns)
{
	struct device_report *report = device->reports[source];

	if (presence_is(entity->p[SLOT_POWER_LIMIT_MAX]))
		report->watts_max = MAX(report->watts_max, entity->v[SLOT_POWER_LIMIT_MAX]);
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *metric = &gpu_metrics[row];
		unsigned end = metric->slot + (unsigned)metric->count;

		if (metric->kind == METRIC_GAUGE) {
			memcpy(report->v + metric->slot, entity->v + metric->slot,
			       metric->count * sizeof(report->v[0]));
			memcpy(report->p + metric->slot, entity->p + metric->slot, metric->count);
		} else if (metric->kind == METRIC_COUNTER) {
			for (unsigned slot = metric->slot; slot < end; slot++)
				take_counter(model, report, metric, slot, entity, end_ns);
		} else if (metric->kind == METRIC_INCREMENT) {
			for (unsigned slot = metric->slot; slot < end; slot++)
				take_increment(model, report, metric, slot, entity, end_ns);
		}
	}
	report->there = true;
	report->said_ns = report->sampled_ns = end_ns;
	report->sampled_real_ns = clock_real_ns() - (clock_boot_ns() - end_ns);
	if (source == SOURCE_NVML) { /* others have no times of the driver's */
		device->e.id.stamps = entity->stamps;
		device->e.stamped_boot_ns = report->sampled_ns;
		device->e.stamped_real_ns = report->sampled_real_ns;
	}
	device_merge(model, device, clock_boot_ns());
	if (device_current_source(model, device, clock_boot_ns()) == source) {
		take_shown(device);
		count_clock_events(model, device, end_ns);
	}
}
