// SPDX-License-Identifier: Apache-2.0
/*
 * Processes on devices.
 *
 *   in a reading, new                 identified; gets a series if one is free; continues its sums if it was
 *                                     here recently
 *   in a reading, known               increments credited; from time to time its start time is compared, to
 *                                     detect a reused PID, and a workload without a place is tried again
 *   missing from a complete list      exited: its sums stay in the device's totals, in its workload and in an
 *                                     exit record
 *   only in the utilisation samples   work before its exit: credited, then exited; if it has exited already,
 *                                     credited to its exit record
 *   list unread (driver hangs, lost)  stays, until /proc no longer has it
 *
 * Memory byte-seconds are the trapezoid between two readings that both contain the process: nothing is
 * charged before the first or after the last. Across a gap without readings the sum is an estimate.
 */
#include "model/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "model/rounding.h"

#define RECHECK_NS (10 * NSEC_PER_SEC)
#define GAP_NS (3 * NSEC_PER_SEC)
#define UNKNOWN_EXIT_NS (60 * NSEC_PER_SEC) /* for a process that /proc never had, on a device that is gone */
#define LATE_SAMPLE_NS (10 * NSEC_PER_SEC)
#define SCORE_SECONDS 60.0 /* averaging time of the recent use */
enum { SWEEP_MAX = 64 }; /* /proc look-ups per sweep */

static uint64_t process_key(uint16_t device, uint32_t pid)
{
	return (uint64_t)device << 32 | pid;
}

int process_identify(const struct model *model, uint32_t pid, bool full,
		     struct process_identity *ret_identity)
{
	*ret_identity = (struct process_identity){ .id.pid = pid, .uid = UINT32_MAX };
	return model->identify ? model->identify(pid, full, ret_identity, model->identify_data) : -ESRCH;
}

/* To the millisecond that pages show. */
static int64_t real_at(int64_t boot_ns)
{
	int64_t real_ns = clock_real_ns() - (clock_boot_ns() - boot_ns);

	return real_ns - real_ns % NSEC_PER_MSEC;
}

struct tracked *tracked_find(const struct model *model, uint16_t device, uint32_t pid)
{
	uint32_t index;

	return hashmap_get(&model->process_map, process_key(device, pid), &index) ? &model->processes[index] :
										    NULL;
}

const struct workload *process_workload(const struct model *model, struct process_id id)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		const struct tracked *t = tracked_find(model, model->order[i], id.pid);

		if (t && process_id_equal(t->p.id, id) && t->workload != NO_INDEX &&
		    model->workloads[t->workload].w.kind != WORKLOAD_NONE)
			return &model->workloads[t->workload].w;
	}
	return NULL;
}

static void process_exit(struct model *model, uint32_t index, int64_t now_ns)
{
	struct tracked *t = &model->processes[index], *last = &model->processes[model->processes_n - 1];

	series_give_up(&model->series, &t->claim);
	model->environments_wanted -= t->environment == ENVIRONMENT_WANTED;
	workload_leave(model, t->workload, now_ns);
	exit_add(model, t, now_ns);
	hashmap_del(&model->process_map, process_key(t->device, t->p.id.pid));
	free(t->look_back);
	if (t != last) {
		*t = *last;
		/* Replaces the value of an existing key, so this cannot fail. */
		hashmap_put(&model->process_map, process_key(t->device, t->p.id.pid), index);
	}
	model->processes_n--;
	model->sorted_valid = false;
}

/* New processes */

static bool processes_grow(struct model *model)
{
	uint32_t room = MIN(MAX(64u, model->processes_room * 2), model->limits.processes);
	struct tracked *processes;
	uint64_t *sorted;

	if (room <= model->processes_room)
		return false;
	processes = realloc(model->processes, room * sizeof(*processes));
	if (!processes)
		return false;
	model->processes = processes;
	sorted = realloc(model->sorted, room * sizeof(*sorted));
	if (!sorted)
		return false;
	model->sorted = sorted;
	model->processes_room = room;
	return true;
}

static void process_name(struct process *p, const char *name)
{
	snprintf(p->comm, sizeof(p->comm), "%s", name);
	utf8_sanitize(p->comm);
}

/*
 * The driver is queried for only a few names in each reading, so a process unknown to /proc may get its name
 * later.
 */
static void process_name_by_driver(struct process *p, const char *path)
{
	const char *base = strrchr(path, '/');

	if (!p->comm[0])
		process_name(p, base ? base + 1 : path);
}

/* The same process on another device; NULL. */
static const struct tracked *process_elsewhere(const struct model *model, const struct tracked *t)
{
	for (uint16_t i = 0; i < model->devices_n; i++) {
		const struct tracked *other = tracked_find(model, model->order[i], t->p.id.pid);

		if (other && other != t && other->p.id.start_ticks != 0 &&
		    process_id_equal(other->p.id, t->p.id))
			return other;
	}
	return NULL;
}

/*
 * Whose a job is, by its first process: the environment may tell another name. A slot of HTCondor runs one
 * user's job after another's.
 */
static void note_job_owner(struct model *model, uint16_t workload, const struct process_identity *identity)
{
	struct workload *w = workload == NO_INDEX ? NULL : &model->workloads[workload].w;

	if (w && w->kind == WORKLOAD_JOB && w->uid == UINT32_MAX && identity->kind == WORKLOAD_JOB &&
	    identity->job_manager != JOB_MANAGER_HTCONDOR && STRV_EQ(w->id, identity->workload_id))
		w->uid = identity->uid;
}

/*
 * A process may leave its cgroup: it stays in the workload that it was first seen in, on any device, by the
 * driver or by tracing. NO_INDEX: it is in none.
 */
static uint16_t workload_for(struct model *model, struct tracked *t, const struct process_identity *identity)
{
	const struct workload_name *traced = traced_workload_of(model, t->p.id);
	const struct workload *listed = process_workload(model, t->p.id);
	/* A copy: a new workload may move the others. */
	struct workload first = listed ? *listed : (struct workload){ 0 };
	struct workload_ref ref = workload_ref_of(identity);

	if (listed)
		ref = (struct workload_ref){ first.kind, first.id, first.pod_uid, first.user };
	else if (traced)
		ref = (struct workload_ref){ traced->kind, traced->id, traced->pod_uid, traced->user };
	t->wanted = 0;
	t->wanted_user = ref.user;
	return ref.kind == WORKLOAD_NONE ? NO_INDEX : workload_find(model, &ref, t->device, &t->wanted);
}

static void process_enter(struct model *model, struct tracked *t, const struct process_identity *identity)
{
	t->workload = workload_for(model, t, identity);
	workload_enter(model, t->workload);
	note_job_owner(model, t->workload, identity);
}

/* There is a place for its workload now; what it did before stays in "other". */
static void process_place(struct model *model, struct tracked *t, const struct process_identity *identity)
{
	uint16_t found = workload_for(model, t, identity);

	if (found == NO_INDEX || found == t->workload)
		return;
	workload_move(model, t->workload, found);
	t->workload = found;
	job_name_workload(model, t);
}

/* @t may have a workload already: that of its exit record. */
static void process_identified(struct model *model, struct tracked *t,
			       const struct process_identity *identity)
{
	const struct tracked *elsewhere;

	t->p.id.start_ticks = identity->id.start_ticks;
	t->p.uid = identity->uid;
	t->p.ns_pid = identity->ns_pid;
	if (t->p.id.start_ticks == 0)
		return;
	if (t->workload == NO_INDEX)
		process_enter(model, t, identity);
	else
		workload_enter(model, t->workload);
	elsewhere = process_elsewhere(model, t);
	if (elsewhere) {
		job_copy(model, t, elsewhere);
	} else if (t->environment == ENVIRONMENT_UNKNOWN) {
		t->p.job = job_of_cgroup(model, identity);
		t->environment = ENVIRONMENT_WANTED;
	}
	model->environments_wanted += t->environment == ENVIRONMENT_WANTED;
}

/* Continues the sums of the exit record: the same process had stopped using the device for a while. */
static void process_revive(struct model *model, struct tracked *t, struct exit_record *record)
{
	int64_t last_real_ns = t->p.last_real_ns;

	t->p = record->p;
	t->p.exited = false;
	t->p.exit_seq = 0;
	t->p.last_real_ns = last_real_ns;
	t->increment_ns = record->exit_ns;
	t->workload = record->workload;
	t->environment = ENVIRONMENT_ASKED;
	if (record->workload != NO_INDEX)
		model->workloads[record->workload].w.exited--;
	if (record->workload == model->devices[t->device]->other_workload)
		t->workload = NO_INDEX; /* there may be a place for its own now */
	record->device = NO_INDEX;
	record->p.job = JOB_NONE; /* it is t's */
	model->exits_tag++;
}

/*
 * The earliest time at which a newly listed process may have worked: after a gap, the previous reading, else
 * (0) as far back as the driver's buffer reaches.
 */
static int64_t arrived_after(const struct model *model, uint16_t device, int64_t end_ns)
{
	int64_t before_ns = model->devices[device]->before_ns;

	return before_ns != 0 && increment_bound(before_ns, end_ns) > increment_bound(0, end_ns) ? before_ns :
												   0;
}

static struct tracked *process_add(struct model *model, const struct reading_process *reading,
				   uint16_t device, const struct process_identity *identity, int64_t end_ns)
{
	struct exit_record *record;
	struct tracked *t;

	if (model->processes_n >= model->limits.processes ||
	    (model->processes_n == model->processes_room && !processes_grow(model)) ||
	    hashmap_put(&model->process_map, process_key(device, reading->pid), model->processes_n) < 0)
		return NULL;
	t = &model->processes[model->processes_n++];
	model->sorted_valid = false;
	memset(t, 0, sizeof(*t));
	t->p.id.pid = reading->pid;
	t->p.uid = UINT32_MAX;
	t->p.traced = TRACED_NONE;
	t->p.job = JOB_NONE;
	t->p.rank = (struct rank){ RANK_UNKNOWN, RANK_UNKNOWN, RANK_UNKNOWN };
	t->p.first_real_ns = t->p.last_real_ns = real_at(end_ns);
	t->device = device;
	t->workload = NO_INDEX;
	t->checked_ns = end_ns;
	t->increment_ns = arrived_after(model, device, end_ns);
	record = exit_find(model, device, reading->pid, end_ns - EXIT_KEPT_NS);
	if (record && process_id_equal(record->p.id, identity->id))
		process_revive(model, t, record);
	else
		process_name(&t->p, identity->comm);
	process_identified(model, t, identity);
	if (!series_take(&model->series, &t->claim))
		model_agent_add(model, AGENT_DROPPED_SERIES, 1);
	return t;
}

/* Checks after a gap, and from time to time, whether the PID still belongs to the same process, by /proc. */
static struct tracked *process_recheck(struct model *model, struct tracked *t, int64_t end_ns)
{
	bool unknown = t->p.id.start_ticks == 0, has_place;
	struct process_identity identity;

	if (end_ns - t->checked_ns < RECHECK_NS && end_ns - t->seen_ns < MAX(GAP_NS, 3 * model->period_ns))
		return t;
	t->checked_ns = end_ns;
	has_place = t->wanted != 0 && workload_has_place(model, t->wanted, t->wanted_user);
	if (process_identify(model, t->p.id.pid, unknown || has_place, &identity) < 0)
		return t; /* not visible from here, or about to leave the driver's list */
	if (unknown) {
		process_identified(model, t, &identity);
		if (!t->p.comm[0])
			process_name(&t->p, identity.comm);
		return t;
	}
	if (process_id_equal(identity.id, t->p.id)) {
		if (has_place)
			process_place(model, t, &identity);
		return t;
	}
	process_exit(model, (uint32_t)(t - model->processes), t->seen_ns);
	return NULL;
}

/* Increments */

/*
 * Credits the device's total, and the series of @t or the device's "other". @t is NULL for a process without
 * an entry.
 */
static void credit_device(struct model *model, uint16_t device, struct tracked *t, unsigned row,
			  double increment)
{
	struct entity *e = &model->devices[device]->e;

	series_credit(t && t->claim.has, increment, &e->process_total[row], t ? &t->p.series[row] : NULL,
		      &e->process_other[row]);
}

/*
 * What the process's published sum grows by; workloads and devices get no more, so that sums of published
 * numbers agree. @presence is that of the increment; take_increment() in accumulate.c describes when a sum
 * is shown.
 */
static double credit_sums(struct model *model, uint16_t workload, struct process *p, unsigned row,
			  double increment, uint8_t presence)
{
	const struct metric *m = &process_metrics[row];
	double before = metric_rounded(m, p->v[row]), published;

	p->v[row] += increment;
	p->p[row] = PRESENCE_PRESENT | ((presence | p->p[row]) & PRESENCE_ESTIMATED);
	published = metric_rounded(m, p->v[row]) - before;
	workload_credit(model, workload, row, published, presence);
	return published;
}

static void credit(struct model *model, struct tracked *t, unsigned row, double increment, uint8_t presence)
{
	credit_device(model, t->device, t, row,
		      credit_sums(model, t->workload, &t->p, row, increment, presence));
}

/* Whether a reading's increment is plausible. */
static bool increment_good(struct model *model, const struct reading_process *reading, unsigned row,
			   int64_t accepted_ns, int64_t end_ns)
{
	if (!presence_is(reading->p[row]))
		return false;
	if (reading->v[row] <= increment_bound(accepted_ns, end_ns))
		return true;
	model->rejected_process[row]++;
	return false;
}

/* The model computes MEMORY_BYTE_SECONDS and ENERGY itself; a reading's values are ignored. */
static bool row_is_credited(unsigned row)
{
	return process_metrics[row].kind == METRIC_INCREMENT && row != PROCESS_MEMORY_BYTE_SECONDS &&
	       row != PROCESS_ENERGY;
}

/* The energy that goes with busy time, which has been credited: to the same. */
static void credit_energy(struct model *model, uint16_t device, struct tracked *t, struct exit_record *record,
			  double busy)
{
	uint8_t presence;
	double energy = attribution_energy(model->devices[device], busy, &presence);
	struct process *p = t ? &t->p : record ? &record->p : NULL;

	if (!presence_is(presence)) {
		if (p && !presence_is(p->p[PROCESS_ENERGY]))
			p->p[PROCESS_ENERGY] = presence;
		return;
	}
	if (p)
		energy = credit_sums(model, t ? t->workload : record->workload, p, PROCESS_ENERGY, energy,
				     presence);
	credit_device(model, device, t, PROCESS_ENERGY, energy);
}

/* Credits a process without an entry. */
static void credit_elsewhere(struct model *model, const struct reading_process *reading, uint16_t device,
			     struct exit_record *record, int64_t end_ns)
{
	int64_t accepted_ns = record ? record->exit_ns - GAP_NS : arrived_after(model, device, end_ns);

	allocations_note_process(model, device, record ? record->workload : NO_INDEX, record, reading);

	for (unsigned row = 0; row < PROCESS_METRICS; row++) {
		double increment;

		if (!row_is_credited(row) || model->devices[device]->process_switched ||
		    !increment_good(model, reading, row, accepted_ns, end_ns))
			continue;
		increment = record ? credit_sums(model, record->workload, &record->p, row, reading->v[row],
						 reading->p[row]) :
				     metric_rounded(&process_metrics[row], reading->v[row]);
		credit_device(model, device, NULL, row, increment);
		if (row == PROCESS_BUSY)
			credit_energy(model, device, NULL, record, reading->v[row]);
	}
	if (record)
		model->exits_tag++;
}

static void take_increments(struct model *model, struct tracked *t, const struct reading_process *reading,
			    int64_t end_ns)
{
	bool any = false;

	for (unsigned row = 0; row < PROCESS_METRICS; row++) {
		uint8_t p = reading->p[row];

		if (!row_is_credited(row))
			continue;
		/*
		 * Another source may already have counted part of what happened since this one's last
		 * reading.
		 */
		if (presence_is(p) && model->devices[t->device]->process_switched)
			continue;
		if (increment_good(model, reading, row, t->increment_ns, end_ns)) {
			credit(model, t, row, reading->v[row], p);
			any |= reading->v[row] > 0;
			if (row == PROCESS_BUSY)
				credit_energy(model, t->device, t, NULL, reading->v[row]);
		} else if (!presence_is(t->p.p[row]) || p == PRESENCE_UNSUPPORTED ||
			   p == PRESENCE_NO_PERMISSION) {
			t->p.p[row] = presence_is(p) ? PRESENCE_REJECTED : p;
			if (row == PROCESS_BUSY && !presence_is(t->p.p[PROCESS_ENERGY]))
				t->p.p[PROCESS_ENERGY] = t->p.p[row];
		}
	}
	if (any || t->increment_ns == 0)
		t->increment_ns = model->begin_ns;
}

static void take_memory(struct model *model, struct tracked *t, const struct reading_process *reading,
			int64_t end_ns)
{
	bool before = t->seen_ns != 0 && presence_is(t->p.p[PROCESS_MEMORY]);
	double elapsed = (double)(end_ns - t->seen_ns) / NSEC_PER_SEC;
	double memory = reading->v[PROCESS_MEMORY];
	uint8_t p = reading->p[PROCESS_MEMORY];

	if (before && presence_is(p) && elapsed > 0) {
		bool gap = end_ns - t->seen_ns > MAX(GAP_NS, 3 * model->period_ns);

		credit(model, t, PROCESS_MEMORY_BYTE_SECONDS, (t->p.v[PROCESS_MEMORY] + memory) / 2 * elapsed,
		       PRESENCE_PRESENT | (gap ? PRESENCE_ESTIMATED : 0));
	} else if (presence_is(p)) {
		credit(model, t, PROCESS_MEMORY_BYTE_SECONDS, 0, PRESENCE_PRESENT);
	}
	if (presence_is(p)) {
		t->p.v[PROCESS_MEMORY_PEAK] = MAX(t->p.v[PROCESS_MEMORY_PEAK], memory);
		t->p.p[PROCESS_MEMORY_PEAK] = p;
	}
}

static void take_gauges(struct process *p, const struct reading_process *reading)
{
	for (unsigned row = 0; row < PROCESS_METRICS; row++) {
		if (process_metrics[row].kind != METRIC_GAUGE)
			continue;
		p->v[row] = reading->v[row];
		p->p[row] = reading->p[row];
	}
	p->samples++;
	if (presence_is(p->p[PROCESS_UTILIZATION]))
		p->percent_sum[0] += 100 * p->v[PROCESS_UTILIZATION];
	if (presence_is(p->p[PROCESS_UTILIZATION_MEMORY]))
		p->percent_sum[1] += 100 * p->v[PROCESS_UTILIZATION_MEMORY];
	if (presence_is(p->p[PROCESS_MEMORY]))
		p->memory_kib_sum += p->v[PROCESS_MEMORY] / 1024;
}

/*
 * Recent use: busy share of time plus share of the device's memory, each 0..1, averaged over about a minute.
 */
static void process_used(struct model *model, struct tracked *t, double busy_seconds, double elapsed_seconds)
{
	double total = model->devices[t->device]->memory_total;
	double busy = elapsed_seconds > 0 ? MIN(busy_seconds / elapsed_seconds, 1.0) : 0;
	double memory = presence_is(t->p.p[PROCESS_MEMORY]) && total > 0 ?
				MIN(t->p.v[PROCESS_MEMORY] / total, 1.0) :
				0;
	double weight = elapsed_seconds > 0 ? elapsed_seconds / (elapsed_seconds + SCORE_SECONDS) : 1;

	t->claim.score += weight * (busy + memory - t->claim.score);
}

void processes_balance(struct model *model)
{
	struct series_rows rows = {
		.first = model->processes_n ? &model->processes[0].claim : NULL,
		.stride = sizeof(model->processes[0]),
		.n = model->processes_n,
	};
	unsigned lost = series_balance(&model->series, rows);

	if (lost > 0)
		model_agent_add(model, AGENT_DROPPED_SERIES, lost);
}

/* Adds a PID that no live process on this device has. NULL: no space, and its increments went elsewhere. */
static struct tracked *process_arrived(struct model *model, const struct reading_process *reading,
				       uint16_t device, int64_t end_ns)
{
	struct exit_record *record = NULL;
	struct process_identity identity;
	struct tracked *t = NULL;

	if (model->processes_n < model->limits.processes || reading->types == 0) {
		int r = process_identify(model, reading->pid, true, &identity);

		if (r < 0 && reading->types == 0)
			record = exit_find(model, device, reading->pid, end_ns - LATE_SAMPLE_NS);
		if (!record)
			t = process_add(model, reading, device, &identity, end_ns);
	}
	if (!t && !record)
		model_agent_add(model, AGENT_DROPPED_PROCESSES, 1);
	if (!t)
		credit_elsewhere(model, reading, device, record, end_ns);
	return t;
}

static void process_apply(struct model *model, const struct reading_process *reading, uint16_t device,
			  int64_t end_ns)
{
	struct tracked *t = tracked_find(model, device, reading->pid);
	double busy;

	if (t && t->seen == model->readings)
		return; /* twice in one reading: invalid */
	if (t)
		t = process_recheck(model, t, end_ns);
	if (!t)
		t = process_arrived(model, reading, device, end_ns);
	if (!t)
		return;
	process_name_by_driver(&t->p, reading->name);
	allocations_note_process(model, device, t->workload, t->p.id.start_ticks != 0, reading);
	busy = t->p.v[PROCESS_BUSY];
	take_increments(model, t, reading, end_ns);
	if (reading->types != 0 || !t->was_listed) {
		take_memory(model, t, reading, end_ns);
		take_gauges(&t->p, reading);
		t->p.types = reading->types;
		t->seen = model->readings;
	}
	t->was_listed |= reading->types != 0;
	process_used(model, t, t->p.v[PROCESS_BUSY] - busy,
		     t->seen_ns ? (double)(end_ns - t->seen_ns) / NSEC_PER_SEC : 0);
	t->seen_ns = end_ns;
	t->p.last_real_ns = real_at(end_ns);
	look_back_take(&t->look_back, &t->p, end_ns);
}

void processes_apply(struct model *model, const struct reading *reading, const uint16_t *devices,
		     uint32_t devices_n, int64_t end_ns)
{
	uint32_t n = MIN(reading->processes_n, (uint32_t)READING_PROCESSES_MAX);

	for (uint32_t i = 0; i < n; i++) {
		const struct reading_process *process = &reading->processes[i];
		uint16_t entity = process->entity;

		if (entity < devices_n && devices[entity] != NO_INDEX && process->pid != 0)
			process_apply(model, process, devices[entity], end_ns);
	}
	for (uint32_t i = 0; i < model->processes_n;) {
		const struct tracked *t = &model->processes[i];
		const struct entity *e = &model->devices[t->device]->e;

		/* If the reading was truncated, a missing process may still be alive. */
		if (t->seen != model->readings && e->present &&
		    model->devices[t->device]->process_reading == model->readings &&
		    presence_is(e->id.process_list) && reading->processes_dropped == 0)
			process_exit(model, i, end_ns);
		else
			i++;
	}
	processes_balance(model);
}

void processes_sweep(struct model *model, int64_t now_ns)
{
	unsigned looks = 0;

	for (uint32_t i = 0; i < model->processes_n && looks < SWEEP_MAX;) {
		struct tracked *t = &model->processes[i];
		struct process_identity identity;
		bool gone = false;

		if (now_ns - t->seen_ns < RECHECK_NS || now_ns - t->checked_ns < RECHECK_NS) {
			i++;
			continue;
		}
		t->checked_ns = now_ns;
		looks++;
		if (t->p.id.start_ticks == 0)
			gone = !model->devices[t->device]->e.present && now_ns - t->seen_ns > UNKNOWN_EXIT_NS;
		else if (process_identify(model, t->p.id.pid, false, &identity) == -ESRCH)
			gone = true;
		else
			gone = !process_id_may_equal(identity.id, t->p.id);
		if (gone)
			process_exit(model, i, now_ns);
		else
			i++;
	}
}

void processes_forget_device(struct model *model, uint16_t device, int64_t now_ns)
{
	for (uint32_t i = 0; i < model->processes_n;) {
		if (model->processes[i].device == device)
			process_exit(model, i, now_ns);
		else
			i++;
	}
	for (uint32_t i = 0; i < model->exits_n; i++)
		if (exit_at(model, i)->device == device)
			exit_at(model, i)->device = NO_INDEX;
	model->exits_tag++;
}
