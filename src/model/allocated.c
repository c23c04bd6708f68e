// SPDX-License-Identifier: Apache-2.0
/*
 * For how long each allocation has lasted, and how much of that was idle: the time between readings of the
 * device's processes in which no process of the allocation worked there, or there was none. Where that
 * cannot be told, because the driver gives no utilisation of a process (under MIG) or a process may be
 * anybody's, the time counts as neither, and the sum is marked estimated.
 *
 * While the sources that named an allocation give nothing new, its time is set aside, and counted when they
 * name it again.
 */
#include "model/private.h"

#include "base/clock.h"
#include "base/macro.h"

#define GAP_NS (3 * NSEC_PER_SEC)

enum { BUSY_ROWS = PROCESS_BUSY_OFA - PROCESS_BUSY + 1 };
_Static_assert(PROCESS_UTILIZATION_OFA - PROCESS_UTILIZATION + 1 == BUSY_ROWS, "as many engines");

/* Whether a process worked in this reading; *ret_known: the driver says so. */
static bool has_worked(const struct reading_process *reading, bool *ret_known)
{
	bool worked = false;

	*ret_known = presence_is(reading->p[PROCESS_BUSY]) || presence_is(reading->p[PROCESS_UTILIZATION]);
	for (unsigned i = 0; i < BUSY_ROWS; i++) {
		/* A sample may be older than the reading: then the utilisation tells. */
		worked |= presence_is(reading->p[PROCESS_BUSY + i]) && reading->v[PROCESS_BUSY + i] > 0;
		worked |= presence_is(reading->p[PROCESS_UTILIZATION + i]) &&
			  reading->v[PROCESS_UTILIZATION + i] > 0;
	}
	return worked;
}

void allocations_note_process(struct model *model, uint16_t device, uint16_t workload, bool identified,
			      const struct reading_process *reading)
{
	bool known, worked = has_worked(reading, &known);

	if (known && !worked)
		return;
	if (workload == NO_INDEX || model->workloads[workload].w.kind == WORKLOAD_NONE) {
		/* It may be anybody's, unless it is known to be in no container or job. */
		if (workload != NO_INDEX || !identified)
			model->devices[device]->work_unknown = model->readings;
		return;
	}
	if (worked)
		model->workloads[workload].worked = model->readings;
	else
		model->workloads[workload].work_unknown = model->readings;
}

/* Gathers what the workloads did in the newest reading. */
static void gather_work(struct model *model)
{
	struct allocations *all = &model->allocations;

	for (uint32_t i = 0; i < all->n; i++)
		all->list[i].live = 0;
	for (uint32_t i = 0; i < model->workloads_n; i++) {
		const struct tracked_workload *w = &model->workloads[i];

		for (unsigned k = 0; k < ARRAY_SIZE(w->allocations); k++) {
			struct tracked_allocation *t;

			if (w->w.kind == WORKLOAD_KINDS || w->allocations[k] >= all->n)
				continue;
			t = &all->list[w->allocations[k]];
			t->live += w->w.live;
			if (w->worked == model->readings)
				t->worked = model->readings;
			if (w->work_unknown == model->readings)
				t->work_unknown = model->readings;
		}
	}
}

/* Whether this reading lists the device's processes, and those of its instances. */
static bool device_was_read(const struct model *model, uint16_t index)
{
	const struct device *device = model->devices[index];
	bool instances = false;

	if (!device->e.present || device->process_reading != model->readings)
		return false;
	for (uint16_t i = 0; device->parent == NO_INDEX && i < model->devices_n; i++) {
		const struct device *other = model->devices[model->order[i]];

		if (other->parent != index || !other->e.present)
			continue;
		instances = true;
		if (other->process_reading != model->readings || !presence_is(other->e.id.process_list))
			return false;
	}
	return instances || presence_is(device->e.id.process_list);
}

/* Of the device, or of an instance of it. */
static bool is_work_unknown(const struct model *model, uint16_t index)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		const struct device *device = model->devices[model->order[i]];

		if ((model->order[i] == index || device->parent == index) &&
		    (device->work_unknown == model->readings ||
		     (device->process_switched && device->process_reading == model->readings)))
			return true;
	}
	return false;
}

static void count_idle(const struct model *model, struct tracked_allocation *t, int64_t end_ns)
{
	int64_t ns = end_ns - t->watched_ns;
	bool unknown;

	if (t->a.kind == WORKLOAD_NONE || !device_was_read(model, t->device))
		return;
	t->watched_ns = end_ns;
	if (t->worked == model->readings) {
		t->a.idle_p = PRESENCE_PRESENT | t->idle_estimated;
		return;
	}
	unknown = t->work_unknown == model->readings || is_work_unknown(model, t->device);
	/* What happened between distant readings is not known either. */
	if (unknown || ns > MAX(GAP_NS, 3 * model->period_ns))
		t->idle_estimated = PRESENCE_ESTIMATED;
	else
		t->idle_seconds += (double)ns / NSEC_PER_SEC;
	t->a.idle_p = unknown ? PRESENCE_ABSENT : PRESENCE_PRESENT | t->idle_estimated;
}

static bool is_stale(const struct model *model, enum source_id source, int64_t now_ns)
{
	const struct source *s = &model->sources[source].s;

	return s->state != READING_OK || !source_recent(model, source, s->fresh_ns, now_ns);
}

void allocations_count(struct model *model, int64_t end_ns)
{
	struct allocations *all = &model->allocations;

	allocations_resolve(model, end_ns);
	gather_work(model);
	for (uint32_t i = 0; i < all->n; i++) {
		struct tracked_allocation *t = &all->list[i];

		t->seconds += (double)(end_ns - t->counted_ns) / NSEC_PER_SEC * t->a.count;
		t->counted_ns = end_ns;
		count_idle(model, t, end_ns);
		t->a.stale = is_stale(model, t->a.source, end_ns);
		if (t->a.stale)
			continue;
		t->a.seconds = t->seconds;
		t->a.idle_seconds = t->idle_seconds;
	}
}

void allocations_publish(const struct model *model, struct snapshot *s)
{
	const struct allocations *all = &model->allocations;

	s->allocated_n = all->n;
	for (uint32_t i = 0; i < all->n; i++) {
		s->allocated[i] = all->list[i].a;
		s->allocated[i].entity = model->devices[all->list[i].device]->rank;
		s->allocated[i].processes = all->list[i].live;
	}
}
