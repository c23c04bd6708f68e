// SPDX-License-Identifier: Apache-2.0
/*
 * XID counts. Several sources may report the same error: the driver's events, which arrive with the next
 * reading and have no time, and the kernel log, whose record arrives immediately. Each report is stored for a
 * while; if another source reports the same code on the same GPU within the window, both are one error.
 * Reports of one source are never merged: two lines are two errors.
 */
#include "model/private.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

/* The later report may arrive one reading later, and time stamps may be off by a fraction of a second. */
static int64_t window_ns(const struct model *model)
{
	return MAX(3 * NSEC_PER_SEC, 2 * model->period_ns + NSEC_PER_SEC);
}

static bool is_same(const struct xid_event *a, const struct xid_event *b)
{
	return a->code == b->code && STRV_EQ(a->pci_bus_id, b->pci_bus_id);
}

/* What only one of the sources says. */
static void complete(struct xid_event *event, const struct xid_event *other)
{
	event->sources |= other->sources;
	if (event->gi == UINT32_MAX) {
		event->gi = other->gi;
		event->ci = other->ci;
	}
	if (other->sources & 1u << SOURCE_KMSG) {
		memcpy(event->text, other->text, sizeof(event->text));
		event->real_ns = other->real_ns;
	}
}

/* Whether another source has reported this already and this one has not; if so, completes that report. */
static bool repeated(struct model *model, const struct xid_report *report)
{
	int64_t window = window_ns(model);

	for (unsigned i = 0; i < MIN(model->xid_reports_n, (uint64_t)XID_REPORTS_MAX); i++) {
		struct xid_report *other = &model->xid_reports[i];

		if (other->event.sources & report->event.sources || !is_same(&other->event, &report->event))
			continue;
		if (report->from_ns > other->to_ns + window || other->from_ns > report->to_ns + window)
			continue;
		complete(&other->event, &report->event);
		return true;
	}
	return false;
}

/* The oldest is overwritten: with 256 reports in a few seconds a double count is acceptable. */
static void remember(struct model *model, const struct xid_report *report)
{
	struct xid_report *kept = &model->xid_reports[model->xid_reports_n % XID_REPORTS_MAX];

	*kept = *report;
	kept->event.number = ++model->xid_reports_n;
}

static struct xid *xid_find(struct model *model, const char *pci_bus_id, uint32_t code)
{
	unsigned codes = 0;
	struct xid *xid;

	for (uint32_t i = 0; i < model->xids_n; i++) {
		xid = &model->xids[i];
		if (!STRV_EQ(xid->pci_bus_id, pci_bus_id))
			continue;
		if (xid->code == code)
			return xid;
		codes++;
	}
	if (model->xids_n == XIDS_MAX || codes >= XID_CODES_MAX)
		return NULL;
	xid = &model->xids[model->xids_n++];
	memset(xid, 0, sizeof(*xid));
	snprintf(xid->pci_bus_id, sizeof(xid->pci_bus_id), "%s", pci_bus_id);
	xid->entity = READING_NONE;
	xid->code = code;
	return xid;
}

static void xid_count(struct model *model, const struct xid_event *event)
{
	struct xid *xid = xid_find(model, event->pci_bus_id, event->code);

	if (!xid) {
		model_agent_add(model, AGENT_DROPPED_XIDS, 1);
		return;
	}
	xid->count++;
	xid->last_real_ns = MAX(xid->last_real_ns, event->real_ns);
	model->xids_dirty = true;
}

static void take_report(struct model *model, struct xid_report *report)
{
	report->event.real_ns = clock_real_ns() - (clock_boot_ns() - report->to_ns);
	if (repeated(model, report))
		return;
	remember(model, report);
	xid_count(model, &report->event);
}

void model_kmsg_xid(struct model *model, const struct xid_record *record)
{
	struct xid_report report = { .event = { .code = record->code,
						.gi = record->gi,
						.ci = record->ci,
						.sources = 1u << SOURCE_KMSG } };

	if ((record->sequence != 0 && record->sequence <= model->kmsg_loaded) ||
	    record->boot_ns < model->kmsg_from_ns)
		return;
	if (record->sequence > model->kmsg_sequence) {
		model->kmsg_sequence = record->sequence;
		model->xids_dirty = true;
	}
	snprintf(report.event.pci_bus_id, sizeof(report.event.pci_bus_id), "%s", record->pci_bus_id);
	snprintf(report.event.text, sizeof(report.event.text), "%s", record->text);
	report.from_ns = report.to_ns = MIN(record->boot_ns, clock_boot_ns());
	take_report(model, &report);
}

void xids_apply(struct model *model, enum source_id source, const struct reading *reading,
		const uint16_t *devices, uint32_t devices_n, int64_t since_ns, int64_t end_ns)
{
	uint32_t n = MIN(reading->events_n, (uint32_t)READING_EVENTS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const struct reading_event *event = &reading->events[i];
		struct xid_report report = { .event = { .code = event->xid,
							.gi = event->gi,
							.ci = event->ci,
							.sources = 1u << source },
					     .from_ns = MIN(since_ns, end_ns),
					     .to_ns = end_ns };
		const struct device *device;

		if (event->entity >= devices_n || devices[event->entity] == NO_INDEX) {
			model_agent_add(model, AGENT_DROPPED_XIDS, 1);
			continue;
		}
		device = model->devices[devices[event->entity]];
		memcpy(report.event.pci_bus_id, device->e.id.pci_bus_id, sizeof(report.event.pci_bus_id));
		take_report(model, &report);
	}
}

static int xid_compare(const struct xid *x, const struct xid *y)
{
	int order;

	if (x->entity != y->entity)
		return x->entity < y->entity ? -1 : 1;
	order = strcmp(x->pci_bus_id, y->pci_bus_id);
	if (order != 0)
		return order;
	return x->code < y->code ? -1 : x->code > y->code;
}

static uint16_t xid_entity(const struct model *model, const char *pci_bus_id)
{
	for (uint16_t rank = 0; rank < model->devices_n; rank++) {
		const struct device *device = model->devices[model->order[rank]];

		if (device->parent == NO_INDEX && STRV_EQ(device->e.id.pci_bus_id, pci_bus_id))
			return rank;
	}
	return READING_NONE;
}

static void events_publish(const struct model *model, struct snapshot *s)
{
	s->xid_events_n = (uint32_t)MIN(model->xid_reports_n, (uint64_t)XID_REPORTS_MAX);
	for (uint32_t i = 0; i < s->xid_events_n; i++) {
		uint64_t number = model->xid_reports_n - s->xid_events_n + i;

		s->xid_events[i] = model->xid_reports[number % XID_REPORTS_MAX].event;
		s->xid_events[i].entity = xid_entity(model, s->xid_events[i].pci_bus_id);
	}
}

void xids_publish(const struct model *model, struct snapshot *s)
{
	events_publish(model, s);
	s->xids_n = model->xids_n;
	/* Insertion sort: there are few, and qsort() would allocate. */
	for (uint32_t i = 0; i < s->xids_n; i++) {
		struct xid xid = model->xids[i];
		uint32_t at = i;

		xid.entity = xid_entity(model, xid.pci_bus_id);
		for (; at > 0 && xid_compare(&xid, &s->xids[at - 1]) < 0; at--)
			s->xids[at] = s->xids[at - 1];
		s->xids[at] = xid;
	}
}

bool model_xids_dirty(const struct model *model)
{
	return model->xids_dirty;
}
