// SPDX-License-Identifier: Apache-2.0
/*
 * What of a device's figures its processes account for, and what not. A figure of the board is never
 * credited to the processes that share it: they get their own memory and busy time, and of the energy a share
 * for the time that their work took; the rest is told apart.
 *
 * Invariants, for each device and at each publication
 *  1. memory: processes + unattributed - overattributed is the device's memory in use.
 *  2. busy seconds: processes + unattributed - overattributed + residual is the device's busy seconds.
 *  3. energy: processes + unattributed is what the device's counter has grown by since it was first read.
 *
 * This is so of the published numbers, which are rounded (model/rounding.h): what is counted here are whole
 * parts of these.
 *
 * The driver samples a device and its processes at different times, so that in one reading either may be
 * ahead. That is the residual. What exceeds the tolerance is counted as unattributed, or as overattributed
 * where the processes have more than the device, as under MPS.
 */
#include "model/private.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/rounding.h"

/* The longest time that one sample of the driver covers. */
#define BUSY_TOLERANCE 2.0

static double rounded(enum process_metric row, double v)
{
	return metric_rounded(&process_metrics[row], v);
}

/* ---- energy, before the reading's increments are credited ---- */

/* Of the published figure. */
static double energy_since(struct attribution *a, const struct entity *e)
{
	double energy = rounded(PROCESS_ENERGY, e->id.v[SLOT_ENERGY]), grown;

	if (!presence_is(e->id.p[SLOT_ENERGY]))
		return 0;
	if (!a->energy_begun) {
		a->energy_begun = true;
		a->energy = energy;
	}
	grown = energy - a->energy;
	a->energy = energy;
	return MAX(grown, 0.0);
}

/* Busy time in this reading, of all processes of each device. */
static void sum_busy(const struct reading *reading, const uint16_t *devices, uint32_t devices_n, double *busy)
{
	for (uint32_t i = 0; i < MIN(reading->processes_n, (uint32_t)READING_PROCESSES_MAX); i++) {
		const struct reading_process *p = &reading->processes[i];

		if (p->entity < devices_n && devices[p->entity] != NO_INDEX &&
		    presence_is(p->p[PROCESS_BUSY]))
			busy[devices[p->entity]] += p->v[PROCESS_BUSY];
	}
}

void attribution_begin(struct model *model, const struct reading *reading, const uint16_t *devices,
		       uint32_t devices_n, int64_t end_ns)
{
	double busy[DEVICES_MAX] = { 0 };

	sum_busy(reading, devices, devices_n, busy);
	for (uint32_t i = 0; i < devices_n; i++) {
		struct device *device;
		struct attribution *a;
		double window, energy;

		if (devices[i] == NO_INDEX)
			continue;
		device = model->devices[devices[i]];
		a = &device->attribution;
		window = a->energy_ns ? (double)(end_ns - a->energy_ns) / NSEC_PER_SEC : 0;
		energy = energy_since(a, &device->e);
		/* What it has grown by is of all the time since it last grew, or was first read. */
		if (presence_is(device->e.id.p[SLOT_ENERGY]) && (energy > 0 || !a->energy_ns))
			a->energy_ns = end_ns;
		a->pending_energy = energy;
		a->granted_energy = 0;
		a->joules_per_busy_second = energy > 0 ? energy / MAX(window, busy[devices[i]]) : 0;
	}
}

/*
 * Whole parts of what is published. What rounding takes from one process the next gets, so that all together
 * are never more than the device has.
 */
double attribution_energy(struct device *device, double busy_seconds, uint8_t *ret_presence)
{
	uint8_t presence = device->e.id.p[SLOT_ENERGY];
	struct attribution *a = &device->attribution;
	double before = rounded(PROCESS_ENERGY, a->granted_energy);

	*ret_presence = presence_is(presence) ? PRESENCE_PRESENT | PRESENCE_ESTIMATED : presence;
	if (!presence_is(presence))
		return 0;
	a->granted_energy += busy_seconds * a->joules_per_busy_second;
	return rounded(PROCESS_ENERGY, a->granted_energy) - before;
}

/* ---- after that ---- */

/* Exactly what the processes have not got, so that parts and whole agree to the last bit that matters. */
static void count_energy(struct device *device)
{
	struct attribution *a = &device->attribution;
	double credited = device->e.process_total[PROCESS_ENERGY] - a->processes_energy;

	a->processes_energy = device->e.process_total[PROCESS_ENERGY];
	a->unattributed_energy += MAX(a->pending_energy - credited, 0.0);
	a->pending_energy = 0;
	a->joules_per_busy_second = 0;
}

static void count_busy(struct device *device)
{
	struct attribution *a = &device->attribution;
	double whole = presence_is(device->e.id.p[SLOT_BUSY_GPU]) ?
			       rounded(PROCESS_BUSY, device->e.id.v[SLOT_BUSY_GPU]) :
			       a->busy;
	double processes = device->e.process_total[PROCESS_BUSY];

	a->residual += (whole - a->busy) - (processes - a->processes_busy);
	a->busy = whole;
	a->processes_busy = processes;
	if (a->residual > BUSY_TOLERANCE) {
		a->unattributed_busy += a->residual - BUSY_TOLERANCE;
		a->residual = BUSY_TOLERANCE;
	} else if (a->residual < -BUSY_TOLERANCE) {
		a->overattributed_busy += -BUSY_TOLERANCE - a->residual;
		a->residual = -BUSY_TOLERANCE;
	}
}

void attribution_count(struct model *model)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		struct device *device = model->devices[model->order[i]];

		count_energy(device);
		count_busy(device);
	}
}

/* ---- in the snapshot ---- */

static void put_slot(struct entity *e, enum gpu_slot slot, double value, uint8_t presence)
{
	e->id.v[slot] = value;
	e->id.p[slot] = presence;
}

static void publish_sums(const struct device *device, struct entity *e)
{
	const struct attribution *a = &device->attribution;
	uint8_t busy = e->id.p[SLOT_BUSY_GPU], energy = e->id.p[SLOT_ENERGY];

	if (presence_is(energy))
		energy |= PRESENCE_ESTIMATED;
	put_slot(e, SLOT_ATTRIBUTION_BUSY_PROCESSES, a->processes_busy, busy);
	put_slot(e, SLOT_ATTRIBUTION_BUSY_UNATTRIBUTED, a->unattributed_busy, busy);
	put_slot(e, SLOT_ATTRIBUTION_BUSY_OVERATTRIBUTED, a->overattributed_busy, busy);
	put_slot(e, SLOT_ATTRIBUTION_BUSY_RESIDUAL, a->residual, e->present ? busy : PRESENCE_ABSENT);
	put_slot(e, SLOT_ATTRIBUTION_ENERGY_PROCESSES, a->processes_energy, energy);
	put_slot(e, SLOT_ATTRIBUTION_ENERGY_UNATTRIBUTED, a->unattributed_energy, energy);
}

/* Where the device's memory, or the list of its processes, is not known, nothing is. */
static void publish_memory(const struct device *device, double processes, struct entity *e)
{
	uint8_t presence = presence_is(e->id.p[SLOT_MEMORY_USED]) ? device->e.id.process_list :
								    e->id.p[SLOT_MEMORY_USED];
	double used = e->id.v[SLOT_MEMORY_USED];

	put_slot(e, SLOT_ATTRIBUTION_MEMORY_PROCESSES, processes, presence);
	put_slot(e, SLOT_ATTRIBUTION_MEMORY_UNATTRIBUTED, MAX(used - processes, 0.0), presence);
	put_slot(e, SLOT_ATTRIBUTION_MEMORY_OVERATTRIBUTED, MAX(processes - used, 0.0), presence);
}

void attribution_publish(const struct model *model, struct snapshot *s)
{
	double processes[DEVICES_MAX] = { 0 };

	for (uint32_t i = 0; i < s->processes_n; i++)
		if (presence_is(s->processes[i].p[PROCESS_MEMORY]))
			processes[s->processes[i].entity] += s->processes[i].v[PROCESS_MEMORY];
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct device *device = model->devices[model->order[i]];

		publish_sums(device, &s->entities[i]);
		publish_memory(device, processes[i], &s->entities[i]);
	}
}
