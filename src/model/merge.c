// SPDX-License-Identifier: Apache-2.0
/*
 * Decides which source's value of a device is shown. While one source knows a device, that source's values
 * are the device's and there is nothing to merge. With two or more sources each has its own values, and in
 * every slot the first current source that has a value decides, in the order of source_before().
 *
 * A source is current if it lists the device and its newest values are recent. If no source is recent any
 * more, those that were recent last remain current: values stay unchanged, and the device is stale.
 *
 * A gauge is that of the deciding source. If only sources that are not current have it, it is absent.
 *
 * A counter (and a sum of increments) is accumulated per source on its own base. The shown value is that plus
 * an offset, so that it neither jumps nor falls when another source starts to decide. A source that decides
 *
 *   after a better one             starts with a reading that is no older than the newest counted one.
 *                                  What it counted before is not added, since it may already have been
 *                                  counted.
 *   again, after a worse one       adds what it has counted since it last decided, minus what the others have
 *                                  added meanwhile, if that is positive
 *   for the first time             as after a better one
 *
 * So nothing is counted twice. Increases between the last reading of one source and the first of the other
 * may be missing until the better source returns. A counter in doubt (accumulate.c) switches only after the
 * doubt is resolved.
 */
#include "model/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Reports */

/* Allocates separate values for the report and copies the device's values to them. */
static bool report_split(struct device *device, struct device_report *report)
{
	if (report->own)
		return true;
	report->own = malloc(sizeof(*report->own));
	if (!report->own)
		return false;
	memcpy(report->own->v, device->e.id.v, sizeof(report->own->v));
	memcpy(report->own->p, device->e.id.p, sizeof(report->own->p));
	memset(report->own->offset, 0, sizeof(report->own->offset));
	report->v = report->own->v;
	report->p = report->own->p;
	return true;
}

/* Called when a second source lists the device. */
static bool device_split(struct device *device, enum source_id first)
{
	uint8_t *from = malloc(GPU_SLOTS);

	if (!from || !report_split(device, device->reports[first])) {
		free(from);
		return false;
	}
	for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
		from[slot] = presence_is(device->e.id.p[slot]) ||
					     (device->reports[first]->state[slot] & SLOT_BEGUN) ?
				     (uint8_t)first :
				     SOURCES;
	device->from = from;
	return true;
}

struct device_report *device_report_get(struct device *device, enum source_id source)
{
	struct device_report *report = device->reports[source];
	enum source_id first = device_first_source(device);

	if (report)
		return report;
	if (first != SOURCES && !device->from && !device_split(device, first))
		return NULL;
	report = calloc(1, sizeof(*report));
	if (!report)
		return NULL;
	report->v = device->e.id.v;
	report->p = device->e.id.p;
	if (device->from) {
		report->own = calloc(1, sizeof(*report->own));
		if (!report->own) {
			free(report);
			return NULL;
		}
		report->v = report->own->v;
		report->p = report->own->p;
		for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
			report->own->offset[slot] = NAN;
	}
	device->reports[source] = report;
	return report;
}

/* Current sources */

enum source_id device_first_source(const struct device *device)
{
	enum source_id first = SOURCES;

	for (unsigned i = 0; i < SOURCES; i++)
		if (device->reports[i] && (first == SOURCES || source_before(NULL, i, first)))
			first = i;
	return first;
}

static int64_t stale_at(const struct model *model, const struct device *device, enum source_id source)
{
	return device->reports[source]->sampled_ns + source_stale_after(model, source);
}

/* A source's recent statement that the device is absent outweighs another source's older values. */
static bool is_gone(const struct model *model, const struct device *device, int64_t now_ns)
{
	const struct device_report *newest = NULL;

	for (unsigned i = 0; i < SOURCES; i++) {
		const struct device_report *report = device->reports[i];

		if (!report)
			continue;
		if (report->there && stale_at(model, device, i) >= now_ns)
			return false;
		if (!newest || report->said_ns > newest->said_ns ||
		    (report->said_ns == newest->said_ns && report->there))
			newest = report;
	}
	return !newest || !newest->there;
}

/* The current sources, as bits. */
static unsigned current_sources(const struct model *model, const struct device *device, int64_t now_ns)
{
	int64_t latest = INT64_MIN;
	unsigned current = 0;

	if (is_gone(model, device, now_ns))
		return 0;
	for (unsigned i = 0; i < SOURCES; i++)
		if (device->reports[i] && device->reports[i]->there)
			latest = MAX(latest, stale_at(model, device, i));
	for (unsigned i = 0; i < SOURCES; i++)
		if (device->reports[i] && device->reports[i]->there &&
		    stale_at(model, device, i) >= MIN(latest, now_ns))
			current |= 1u << i;
	return current;
}

static enum source_id first_of(unsigned sources, const struct metric *metric)
{
	enum source_id first = SOURCES;

	for (unsigned i = 0; i < SOURCES; i++)
		if ((sources & 1u << i) && (first == SOURCES || source_before(metric, i, first)))
			first = i;
	return first;
}

enum source_id device_current_source(const struct model *model, const struct device *device, int64_t now_ns)
{
	return first_of(current_sources(model, device, now_ns), NULL);
}

bool device_stale(const struct model *model, const struct device *device, int64_t now_ns)
{
	for (unsigned i = 0; i < SOURCES; i++)
		if (device->reports[i] && source_recent(model, i, device->reports[i]->sampled_ns, now_ns))
			return false;
	return true;
}

enum source_id device_process_source(const struct model *model, const struct device *device, int64_t now_ns)
{
	unsigned current = current_sources(model, device, now_ns), can = 0;

	for (unsigned i = 0; i < SOURCES; i++)
		if ((current & 1u << i) && (presence_is(device->reports[i]->process_list) ||
					    presence_is(device->reports[i]->process_util)))
			can |= 1u << i;
	return first_of(can ? can : current, NULL);
}

/* Values */

/* The first current source that has a value in the slot; SOURCES: none. */
static enum source_id source_with_value(const struct device *device, const struct metric *metric,
					unsigned slot, unsigned current)
{
	unsigned have = 0;

	for (unsigned i = 0; i < SOURCES; i++)
		if ((current & 1u << i) && presence_is(device->reports[i]->p[slot]))
			have |= 1u << i;
	return first_of(have, metric);
}

/* No current source has a value: the presence that the first current source reports. */
static uint8_t reason_for_none(const struct device *device, const struct metric *metric, unsigned slot,
			       unsigned current)
{
	return current ? device->reports[first_of(current, metric)]->p[slot] : PRESENCE_ABSENT;
}

static void merge_gauge(struct device *device, const struct metric *metric, unsigned slot, unsigned current)
{
	enum source_id source = source_with_value(device, metric, slot, current);

	device->from[slot] = (uint8_t)source;
	if (source == SOURCES) {
		device->e.id.p[slot] = reason_for_none(device, metric, slot, current);
		return;
	}
	device->e.id.v[slot] = device->reports[source]->v[slot];
	device->e.id.p[slot] = device->reports[source]->p[slot];
}

/* May `next` replace `now` as the deciding source of a counter? See the comment at the top. */
static bool may_take_over(const struct device *device, unsigned slot, enum source_id now, enum source_id next)
{
	const struct device_report *report = device->reports[next];

	if (report->state[slot] & SLOT_IN_DOUBT)
		return false;
	return !isnan(report->own->offset[slot]) || report->sampled_ns >= device->reports[now]->sampled_ns;
}

/* Shows the deciding source's count plus its offset, and never less than what is shown already. */
static void show_sum(struct device *device, unsigned slot, enum source_id source, bool first)
{
	struct device_report *report = device->reports[source];
	double *offset = &report->own->offset[slot], *shown = &device->e.id.v[slot], sum = report->v[slot];

	if (isnan(*offset))
		*offset = first ? 0 : *shown - sum;
	if (first || *offset + sum > *shown)
		*shown = *offset + sum;
	else if (*offset + sum < *shown && !(report->state[slot] & SLOT_IN_DOUBT))
		*offset = *shown - sum;
	device->e.id.p[slot] = report->p[slot] | (first ? 0 : device->e.id.p[slot] & PRESENCE_ESTIMATED);
}

/*
 * No current source has a value: the sum remains shown, unless the source it comes from is current and
 * reports why it has none.
 */
static void keep_sum(struct device *device, const struct metric *metric, unsigned slot, unsigned current)
{
	enum source_id now = device->from[slot];

	if (now == SOURCES)
		device->e.id.p[slot] = reason_for_none(device, metric, slot, current);
	else if (current & 1u << now)
		device->e.id.p[slot] = device->reports[now]->p[slot];
}

static void merge_sum(struct device *device, const struct metric *metric, unsigned slot, unsigned current)
{
	enum source_id next = source_with_value(device, metric, slot, current), now = device->from[slot];

	if (next == SOURCES) {
		keep_sum(device, metric, slot, current);
		return;
	}
	if (now != SOURCES && now != next) {
		if (!may_take_over(device, slot, now, next)) {
			if ((current & 1u << now) && presence_is(device->reports[now]->p[slot]))
				show_sum(device, slot, now, false);
			return;
		}
		/* What the worse source counts while the better one decides must not be added later. */
		device->reports[source_before(metric, next, now) ? now : next]->own->offset[slot] = NAN;
	}
	device->from[slot] = (uint8_t)next;
	show_sum(device, slot, next, now == SOURCES);
}

static void merge_values(struct device *device, unsigned current)
{
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *metric = &gpu_metrics[row];
		unsigned end = metric->slot + (unsigned)metric->count;

		for (unsigned slot = metric->slot; slot < end; slot++) {
			if (metric->kind == METRIC_GAUGE)
				merge_gauge(device, metric, slot, current);
			else if (metric->kind != METRIC_PEAK)
				merge_sum(device, metric, slot, current);
			/* computed by the model from shown values */
			else if (presence_is(device->e.id.p[slot]))
				device->from[slot] = (uint8_t)device->e.source;
		}
	}
}

static void merge_times(struct device *device, unsigned current)
{
	for (unsigned i = 0; i < SOURCES; i++) {
		const struct device_report *report = device->reports[i];

		if (!(current & 1u << i) || report->sampled_ns < device->e.sampled_boot_ns)
			continue;
		device->e.sampled_boot_ns = report->sampled_ns;
		device->e.sampled_real_ns = report->sampled_real_ns;
	}
}

void device_merge(const struct model *model, struct device *device, int64_t now_ns)
{
	enum source_id first = device_first_source(device), processes;
	unsigned current = current_sources(model, device, now_ns);

	device->e.source = first;
	device->e.present = current != 0;
	device->e.id.lost = device->reports[first]->lost;
	merge_times(device, current);
	if (!device->from)
		return;
	merge_values(device, current);
	processes = device_process_source(model, device, now_ns);
	if (processes == SOURCES)
		return;
	device->e.id.process_list = device->reports[processes]->process_list;
	device->e.id.process_util = device->reports[processes]->process_util;
}
