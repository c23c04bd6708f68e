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

/*
 * Whether another source has reported this already and this one has not; if so, marks it as reported by this
 * one.
 */
static bool repeated(struct model *model, const struct xid_recent *report)
{
	int64_t window = window_ns(model);

	for (unsigned i = 0; i < XID_RECENT_MAX; i++) {
		struct xid_recent *other = &model->xid_recent[i];

		if (other->to_ns == 0 || (other->sources & report->sources) || other->code != report->code ||
		    !STRV_EQ(other->pci_bus_id, report->pci_bus_id))
			continue;
		if (report->from_ns > other->to_ns + window || other->from_ns > report->to_ns + window)
			continue;
		other->sources |= report->sources;
		return true;
	}
	return false;
}

/* The oldest is overwritten: with 256 reports in a few seconds a double count is acceptable. */
static void remember(struct model *model, const struct xid_recent *report)
{
	unsigned at = model->xid_recent_next++ % XID_RECENT_MAX;

	model->xid_recent[at] = *report;
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

static void xid_count(struct model *model, const char *pci_bus_id, uint32_t code, int64_t boot_ns)
{
	int64_t real_ns = clock_real_ns() - (clock_boot_ns() - boot_ns);
	struct xid *xid = xid_find(model, pci_bus_id, code);

	if (!xid) {
		model_agent_add(model, AGENT_DROPPED_XIDS, 1);
		return;
	}
	xid->count++;
	xid->last_real_ns = MAX(xid->last_real_ns, real_ns);
	model->xids_dirty = true;
}

static void take_report(struct model *model, const struct xid_recent *report)
{
	if (repeated(model, report))
		return;
	remember(model, report);
	xid_count(model, report->pci_bus_id, report->code, report->to_ns);
}

void model_kmsg_xid(struct model *model, const char *pci_bus_id, uint32_t code, int64_t boot_ns,
		    uint64_t sequence)
{
	struct xid_recent report = { .code = code, .sources = 1u << SOURCE_KMSG };

	if ((sequence != 0 && sequence <= model->kmsg_loaded) || boot_ns < model->kmsg_from_ns)
		return;
	if (sequence > model->kmsg_sequence) {
		model->kmsg_sequence = sequence;
		model->xids_dirty = true;
	}
	snprintf(report.pci_bus_id, sizeof(report.pci_bus_id), "%s", pci_bus_id);
	/* 0 would mark the entry as unused. */
	report.from_ns = report.to_ns = CLAMP(boot_ns, INT64_C(1), clock_boot_ns());
	take_report(model, &report);
}

void xids_apply(struct model *model, enum source_id source, const struct reading *reading,
		const uint16_t *devices, uint32_t devices_n, int64_t since_ns, int64_t end_ns)
{
	uint32_t n = MIN(reading->events_n, (uint32_t)READING_EVENTS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const struct reading_event *event = &reading->events[i];
		struct xid_recent report = { .code = event->xid,
					     .sources = 1u << source,
					     .from_ns = MIN(since_ns, end_ns),
					     .to_ns = end_ns };
		const struct device *device;

		if (event->entity >= devices_n || devices[event->entity] == NO_INDEX) {
			model_agent_add(model, AGENT_DROPPED_XIDS, 1);
			continue;
		}
		device = model->devices[devices[event->entity]];
		memcpy(report.pci_bus_id, device->e.id.pci_bus_id, sizeof(report.pci_bus_id));
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

void xids_publish(const struct model *model, struct snapshot *s)
{
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
