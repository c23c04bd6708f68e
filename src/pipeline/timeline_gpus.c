// SPDX-License-Identifier: Apache-2.0
/* The GPUs of a timeline: counters, why clocks are throttled, XIDs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"

enum {
	FIRST_REASON = GPU_EVENT_REASON_GPU_IDLE, /* the rows of one family, one a reason */
	LAST_REASON = GPU_EVENT_REASON_RELIABILITY,
	REASONS = LAST_REASON - FIRST_REASON + 1,
};

static const struct {
	enum gpu_metric metric;
	const char *name;
} counters[] = {
#define COUNTER(metric_, name_) { GPU_##metric_, name_ },
#include "pipeline/timeline_counters.def"
#undef COUNTER
};

/* Times of one number of the driver's that are nearer to each other are the same one. */
#define SAME_NS (10 * NSEC_PER_MSEC)
#define CLOCK_AGAIN_NS (30 * NSEC_PER_SEC)

struct timeline_counter {
	uint32_t track; /* plus one */
	uint64_t told_ns; /* time of its newest value */
	uint64_t stamped_ns; /* the newest that the driver stamped */
};

struct timeline_gpu {
	char uuid[TRACED_UUID];
	uint32_t index, track; /* track: TIMELINE_NONE: forgotten */
	bool instance;
	bool seen; /* in the newest snapshot, with a fresh reading */
	int64_t sampled_ns;
	struct timeline_counter counters[ARRAY_SIZE(counters)];
	struct reading_stamps clock; /* the driver's, as was said */
	int64_t clock_said_ns; /* 0: not yet */
	bool distrusted; /* the driver's times make no sense, which was said */
	uint32_t reasons[REASONS]; /* tracks, plus one */
	uint64_t since_ns[REASONS]; /* CLOCK_MONOTONIC; 0: not throttled for this reason */
};

const size_t trace_timeline_gpu_size = sizeof(struct timeline_gpu);

static struct timeline_gpu *gpu_find(const struct trace_timeline *t, const char *uuid)
{
	for (uint32_t i = 0; i < t->gpus_n; i++)
		if (STRV_EQ(t->gpus[i].uuid, uuid))
			return &t->gpus[i];
	return NULL;
}

/* NULL: no room. */
static struct timeline_gpu *gpu_get(struct trace_timeline *t, const struct entity *e)
{
	struct timeline_track track = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE };
	bool instance = e->id.parent != READING_NONE;
	const char *uuid = instance ? e->id.mig_uuid : e->id.uuid;
	struct timeline_gpu *gpu = gpu_find(t, uuid);
	char name[sizeof(e->id.name) + 32];

	if ((gpu && gpu->track != TIMELINE_NONE) || !uuid[0] || (!gpu && t->gpus_n == GPUS_MAX))
		return gpu;
	if (!gpu) {
		gpu = &t->gpus[t->gpus_n];
		*gpu = (struct timeline_gpu){ .index = e->id.index, .instance = instance };
		snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", uuid);
	}
	snprintf(name, sizeof(name), "GPU %" PRIu32 " %s", gpu->index, instance ? uuid : e->id.name);
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &gpu->track))
		return NULL;
	if (gpu == &t->gpus[t->gpus_n])
		t->gpus_n++;
	return gpu;
}

bool trace_timeline_gpu_index(const struct trace_timeline *t, const char *uuid, uint32_t *ret_index)
{
	const struct timeline_gpu *gpu = gpu_find(t, uuid);

	if (gpu)
		*ret_index = gpu->index;
	return gpu;
}

void trace_timeline_gpu_name(const struct trace_timeline *t, const char *uuid, char *name, size_t size)
{
	const struct timeline_gpu *gpu = gpu_find(t, uuid);

	if (!gpu)
		snprintf(name, size, "%s", "GPU ?");
	else if (gpu->instance)
		snprintf(name, size, "GPU %" PRIu32 " %.12s", gpu->index, uuid);
	else
		snprintf(name, size, "GPU %" PRIu32, gpu->index);
}

/* *track: one of the GPU's, plus one; made at its first use. */
static bool gpu_track(struct trace_timeline *t, const struct timeline_gpu *gpu, struct timeline_track track,
		      const char *name, uint32_t *known)
{
	uint32_t made;

	if (*known)
		return true;
	track.parent = gpu->track;
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &made))
		return false;
	*known = made + 1;
	return true;
}

/* ---- the driver's clock ---- */

static void say_clock(struct trace_timeline *t, const struct timeline_gpu *gpu, const char *text,
		      const struct reading_stamps *clock)
{
	struct clock_offsets offsets;
	struct timeline_event event = { .type = TIMELINE_INSTANT,
					.category = TIMELINE_GPU,
					.track = gpu->track,
					.begin_ns = (uint64_t)clock_mono_ns() };

	clock_offsets(&offsets);
	timeline_put_arg(t, &event, "monotonic_ns", TIMELINE_SIGNED,
			 (uint64_t)(clock->offset_ns + offsets.real_ns));
	timeline_put_arg(t, &event, "realtime_ns", TIMELINE_SIGNED, (uint64_t)clock->offset_ns);
	timeline_put_arg(t, &event, "error_ns", TIMELINE_UNSIGNED, (uint64_t)clock->error_ns);
	if (trace_timeline_key(t, text, &event.name))
		trace_timeline_add(t, &event);
	else
		t->missing.dropped++;
}

/* What is to be added to our clock for the driver's: at first, when that changes, now and then. */
static void take_clock(struct trace_timeline *t, struct timeline_gpu *gpu, const struct reading_stamps *clock,
		       bool distrusted)
{
	int64_t now_ns = clock_mono_ns(), moved_ns = clock->offset_ns - gpu->clock.offset_ns;
	bool moved = clock->error_ns && (moved_ns > SAME_NS || moved_ns < -SAME_NS);

	if (distrusted != gpu->distrusted)
		say_clock(t, gpu,
			  distrusted ? "driver's clock jumps: values have our times" :
				       "driver's clock goes evenly: values have its times",
			  clock);
	else if (clock->error_ns &&
		 (moved || !gpu->clock_said_ns || now_ns - gpu->clock_said_ns > CLOCK_AGAIN_NS))
		say_clock(t, gpu, "driver's clock", clock);
	else
		return;
	gpu->distrusted = distrusted;
	gpu->clock = *clock;
	gpu->clock_said_ns = now_ns;
}

static unsigned stamped_of(unsigned slot)
{
	unsigned i = 0;

	while (i < STAMPED_METRICS && stamped_rows[i].slot != slot)
		i++;
	return i;
}

/* By the driver, on our clock; 0: it has stamped none. */
static uint64_t stamped_at(const struct snapshot *s, const struct entity *e, unsigned slot, int64_t offset_ns)
{
	unsigned i = stamped_of(slot);
	int64_t at_ns = i < STAMPED_METRICS ? e->id.stamps.at_ns[i] : 0;

	if (!at_ns || snapshot_slot_source(s, e, slot) != SOURCE_NVML)
		return 0;
	at_ns += e->stamped_real_ns - e->stamped_boot_ns - offset_ns;
	return at_ns > 0 ? (uint64_t)at_ns : 0;
}

/*
 * When a value is of: the driver's time, else ours, @time_ns. Times of a track never go back; false: this
 * value is known. A mean that begins before a value with our time is told from there on.
 */
static bool counter_time(struct timeline_counter *counter, uint64_t stamped_ns, uint64_t time_ns,
			 uint64_t *ret_time_ns, bool *ret_jumped)
{
	uint64_t last_ns = counter->stamped_ns;

	*ret_time_ns = time_ns;
	if (stamped_ns && stamped_ns + SAME_NS >= last_ns && stamped_ns <= time_ns) {
		if (last_ns && stamped_ns <= last_ns + SAME_NS)
			return false;
		*ret_time_ns = counter->stamped_ns = stamped_ns;
	} else if (stamped_ns) {
		*ret_jumped = true;
	}
	if (*ret_time_ns <= counter->told_ns)
		*ret_time_ns = counter->told_ns + 1;
	counter->told_ns = *ret_time_ns;
	return true;
}

/* ---- what readings have ---- */

static void take_counters(struct trace_timeline *t, struct timeline_gpu *gpu, const struct snapshot *s,
			  const struct entity *e, int64_t offset_ns)
{
	uint64_t time_ns = (uint64_t)(e->sampled_real_ns - offset_ns);
	bool jumped = e->id.stamps.unusable;

	for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
		const struct metric *metric = &gpu_metrics[counters[i].metric];
		struct timeline_counter *counter = &gpu->counters[i];
		struct timeline_event event = { .type = TIMELINE_VALUE, .category = TIMELINE_GPU };
		const struct timeline_track track = {
			.kind = TIMELINE_COUNTER,
			.unit = metric->unit == UNIT_BYTES ? TIMELINE_BYTES : TIMELINE_NUMBER,
		};

		if (!presence_is(e->id.p[metric->slot]) ||
		    !gpu_track(t, gpu, track, counters[i].name, &counter->track) ||
		    !counter_time(counter, stamped_at(s, e, metric->slot, offset_ns), time_ns,
				  &event.begin_ns, &jumped))
			continue;
		event.track = counter->track - 1;
		event.value = e->id.v[metric->slot];
		trace_timeline_add(t, &event);
	}
	take_clock(t, gpu, &e->id.stamps, jumped);
}

static void end_reason(struct trace_timeline *t, struct timeline_gpu *gpu, unsigned reason, uint64_t time_ns)
{
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.category = TIMELINE_GPU,
					.begin_ns = gpu->since_ns[reason],
					.end_ns = MAX(time_ns, gpu->since_ns[reason]) };

	if (gpu_track(t, gpu, (struct timeline_track){ .kind = TIMELINE_CHILD }, "clocks throttled by",
		      &gpu->reasons[reason]) &&
	    trace_timeline_key(t, gpu_metrics[FIRST_REASON + reason].value, &event.name)) {
		event.track = gpu->reasons[reason] - 1;
		trace_timeline_add(t, &event);
	}
	gpu->since_ns[reason] = 0;
}

/* From the reading that saw it to the one that does no more. An idle GPU's is no throttling. */
static void take_reasons(struct trace_timeline *t, struct timeline_gpu *gpu, const struct entity *e,
			 uint64_t time_ns)
{
	for (unsigned i = 1; i < REASONS; i++) {
		unsigned slot = gpu_metrics[FIRST_REASON + i].slot;
		bool is = presence_is(e->id.p[slot]) && e->id.v[slot] != 0;

		if (is && !gpu->since_ns[i])
			gpu->since_ns[i] = time_ns;
		else if (!is && gpu->since_ns[i])
			end_reason(t, gpu, i, time_ns);
	}
}

/* Those before the timeline began are not told. */
static void take_xids(struct trace_timeline *t, const struct snapshot *s)
{
	int64_t offset_ns = clock_real_ns() - clock_mono_ns();

	for (uint32_t i = 0; i < s->xids_n; i++) {
		const struct xid *xid = &s->xids[i];
		struct timeline_event event = { .type = TIMELINE_INSTANT, .category = TIMELINE_GPU };
		struct timeline_gpu *gpu =
			xid->entity == READING_NONE ? NULL : gpu_get(t, &s->entities[xid->entity]);
		char name[32];
		uint32_t known = 0;
		uint64_t key;

		if (!gpu)
			continue;
		key = (uint64_t)(gpu - t->gpus) << 32 | xid->code;
		hashmap_get(&t->xid_by, key, &known);
		if (xid->count <= known || hashmap_put(&t->xid_by, key, (uint32_t)xid->count) < 0 ||
		    !t->xids_begun || xid->last_real_ns <= offset_ns)
			continue;
		snprintf(name, sizeof(name), "XID %" PRIu32, xid->code);
		event.track = gpu->track;
		event.begin_ns = (uint64_t)(xid->last_real_ns - offset_ns);
		if (trace_timeline_text(t, name, &event.name))
			trace_timeline_add(t, &event);
		else
			t->missing.dropped++;
		if (t->xid)
			t->xid(xid->code, t->xid_userdata);
	}
	t->xids_begun = true;
}

/* As far as is known: one that is not read any more may be throttled still. */
static void end_reasons(struct trace_timeline *t, struct timeline_gpu *gpu, uint64_t time_ns)
{
	for (unsigned reason = 1; reason < REASONS; reason++)
		if (gpu->since_ns[reason])
			end_reason(t, gpu, reason, time_ns);
}

void trace_timeline_node(struct trace_timeline *t, const struct snapshot *s)
{
	/* A snapshot that an agent has sent has these times only. */
	int64_t offset_ns = clock_real_ns() - clock_mono_ns();
	uint64_t at_ns[READING_ENTITIES_MAX] = { 0 };

	if (!s)
		return;
	for (uint32_t i = 0; i < t->gpus_n; i++)
		t->gpus[i].seen = false;
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];
		struct timeline_gpu *gpu = e->present && !e->stale ? gpu_get(t, e) : NULL;

		if (!gpu)
			continue;
		gpu->seen = true;
		if (e->sampled_real_ns <= offset_ns || e->sampled_real_ns == gpu->sampled_ns)
			continue;
		gpu->sampled_ns = e->sampled_real_ns;
		if (i < READING_ENTITIES_MAX)
			at_ns[i] = (uint64_t)(e->sampled_real_ns - offset_ns);
		take_counters(t, gpu, s, e, offset_ns);
		take_reasons(t, gpu, e, (uint64_t)(e->sampled_real_ns - offset_ns));
	}
	for (uint32_t i = 0; i < t->gpus_n; i++)
		if (!t->gpus[i].seen && t->gpus[i].sampled_ns > offset_ns)
			end_reasons(t, &t->gpus[i], (uint64_t)(t->gpus[i].sampled_ns - offset_ns));
	timeline_processes_take(t, s, at_ns);
	take_xids(t, s);
}

void timeline_gpus_say_again(struct trace_timeline *t)
{
	for (uint32_t i = 0; i < t->gpus_n; i++)
		t->gpus[i].clock_said_ns = 0;
}

void timeline_gpus_forget(struct trace_timeline *t)
{
	for (uint32_t i = 0; i < t->gpus_n; i++) {
		struct timeline_gpu *gpu = &t->gpus[i];

		gpu->track = TIMELINE_NONE;
		gpu->clock_said_ns = 0;
		for (unsigned j = 0; j < ARRAY_SIZE(counters); j++)
			gpu->counters[j].track = 0;
		memset(gpu->reasons, 0, sizeof(gpu->reasons));
	}
}

void trace_timeline_gpus_end(struct trace_timeline *t)
{
	for (uint32_t i = 0; i < t->gpus_n; i++)
		end_reasons(t, &t->gpus[i], (uint64_t)clock_mono_ns());
}
