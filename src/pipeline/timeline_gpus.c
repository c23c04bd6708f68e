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

struct timeline_gpu {
	char uuid[TRACED_UUID];
	uint32_t index, track; /* track: TIMELINE_NONE: forgotten */
	bool instance;
	bool seen; /* in the newest snapshot, with a fresh reading */
	int64_t sampled_ns;
	uint32_t counters[ARRAY_SIZE(counters)]; /* tracks, plus one */
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

static void take_counters(struct trace_timeline *t, struct timeline_gpu *gpu, const struct entity *e,
			  uint64_t time_ns)
{
	for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
		const struct metric *metric = &gpu_metrics[counters[i].metric];
		const struct timeline_track track = {
			.kind = TIMELINE_COUNTER,
			.unit = metric->unit == UNIT_BYTES ? TIMELINE_BYTES : TIMELINE_NUMBER,
		};

		if (!presence_is(e->id.p[metric->slot]) ||
		    !gpu_track(t, gpu, track, counters[i].name, &gpu->counters[i]))
			continue;
		trace_timeline_add(t, &(struct timeline_event){ .type = TIMELINE_VALUE,
								.category = TIMELINE_GPU,
								.track = gpu->counters[i] - 1,
								.begin_ns = time_ns,
								.value = e->id.v[metric->slot] });
	}
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
		take_counters(t, gpu, e, (uint64_t)(e->sampled_real_ns - offset_ns));
		take_reasons(t, gpu, e, (uint64_t)(e->sampled_real_ns - offset_ns));
	}
	for (uint32_t i = 0; i < t->gpus_n; i++)
		if (!t->gpus[i].seen && t->gpus[i].sampled_ns > offset_ns)
			end_reasons(t, &t->gpus[i], (uint64_t)(t->gpus[i].sampled_ns - offset_ns));
	take_xids(t, s);
}

void timeline_gpus_forget(struct trace_timeline *t)
{
	for (uint32_t i = 0; i < t->gpus_n; i++) {
		struct timeline_gpu *gpu = &t->gpus[i];

		gpu->track = TIMELINE_NONE;
		memset(gpu->counters, 0, sizeof(gpu->counters));
		memset(gpu->reasons, 0, sizeof(gpu->reasons));
	}
}

void trace_timeline_gpus_end(struct trace_timeline *t)
{
	for (uint32_t i = 0; i < t->gpus_n; i++)
		end_reasons(t, &t->gpus[i], (uint64_t)clock_mono_ns());
}
