// SPDX-License-Identifier: Apache-2.0
/*
 * What views show, common to all of them.
 *
 *  - A number only at the levels of its row, and only if presence_is().
 *  - A GPU that is gone shows its identity, its counters and who was given it, no other gauges.
 *  - A MIG instance that is gone shows nothing: instances are created and destroyed frequently, and a
 *    destroyed one does not return.
 *  - Stale values are shown, marked as such and with their age.
 *  - A traced process that has ended shows no gauges; nor does any if tracing delivers nothing new, since
 *    there is no mark for stale traced values.
 */
#pragma once

#include "base/macro.h"
#include "model/snapshot.h"

/* Every source of devices is NVIDIA's. */
#define GPU_VENDOR "nvidia"

/* What the node is called in its cluster. */
static inline const char *snapshot_node_name(const struct snapshot *s)
{
	return s->node_name[0] ? s->node_name : s->hostname;
}

static inline bool entity_is_mig(const struct entity *e)
{
	return e->id.parent != READING_NONE;
}

static inline bool entity_shown(const struct entity *e)
{
	return e->present || !entity_is_mig(e);
}

/* Is the number monotonic (until its source restarts)? */
static inline bool metric_is_counter(const struct metric *m)
{
	return m->kind == METRIC_COUNTER || m->kind == METRIC_INCREMENT;
}

static inline bool entity_shows(const struct entity *e, const struct metric *m)
{
	if (!(m->levels & (entity_is_mig(e) ? LEVEL_MIG : LEVEL_GPU)))
		return false;
	return e->present || (!entity_is_mig(e) && metric_is_counter(m));
}

/* The device with tracing's UUID; NULL if the driver has not listed it, or the UUID is unknown. */
static inline const struct entity *entity_by_uuid(const struct snapshot *s, const char *uuid)
{
	for (uint32_t i = 0; *uuid && i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (STRV_EQ(entity_is_mig(e) ? e->id.mig_uuid : e->id.uuid, uuid))
			return e;
	}
	return NULL;
}

/* @process: NULL for all processes together. */
static inline bool traced_shows(const struct snapshot *s, const struct traced_process *process,
				const struct metric *m)
{
	return m->kind != METRIC_GAUGE || (!s->trace_stale && !(process && process->exited));
}

/*
 * Is the driver's process list complete? A GPU with instances has no list: its processes are listed at the
 * instances.
 */
static inline bool processes_listed(const struct entity *e)
{
	return presence_is(e->id.process_list) || e->id.process_list == PRESENCE_ABSENT;
}

/* Whether a list of processes of this GPU, or of an instance of it, cannot be read, or not whole. */
static inline bool gpu_unlisted(const struct snapshot *s, uint32_t gpu)
{
	const struct entity *e = &s->entities[gpu];
	bool unlisted = !processes_listed(e);

	if (entity_is_mig(e) || !e->present)
		return false;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (s->entities[i].id.parent == gpu && entity_shown(&s->entities[i]))
			unlisted |= !processes_listed(&s->entities[i]);
	return unlisted;
}

/* Seconds since the newest good reading ended; negative if there was none. */
static inline double entity_age_seconds(const struct snapshot *s, const struct entity *e)
{
	if (e->sampled_boot_ns == 0)
		return -1;
	return s->boot_ns > e->sampled_boot_ns ? (double)(s->boot_ns - e->sampled_boot_ns) * 1e-9 : 0;
}

/* Why a GPU is not present, to follow "GPU N ". Not identified cannot be told from removed. */
static inline const char *gpu_gone_words(const struct snapshot *s, const struct entity *e)
{
	if (e->id.lost)
		return "is lost: the driver cannot reach it; see its XID errors, reset it or reboot";
	if (s->gpus_unidentified > 0)
		return "is gone: it was removed, or the driver counts it and does not say which it is";
	return "was removed: the driver no longer lists it";
}

/* Numbers of GPUs. */
struct gpu_counts {
	unsigned present, absent;
	/* counted by the driver, never identified, and not explained by the absent ones */
	unsigned unidentified;
	unsigned instances; /* MIG instances that are present */
};

static inline void count_gpus(const struct snapshot *s, struct gpu_counts *ret_counts)
{
	struct gpu_counts counts = { 0 };

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (entity_is_mig(e))
			counts.instances += e->present;
		else if (e->present)
			counts.present++;
		else
			counts.absent++;
	}
	if (s->gpus_unidentified > counts.absent)
		counts.unidentified = s->gpus_unidentified - counts.absent;
	*ret_counts = counts;
}
