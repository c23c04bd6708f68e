// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/trail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "cmd/top/growth.h"
#include "view/table/parts.h"
#include "view/traced.h"

enum {
	POINTS = 900, /* 15 minutes at a second each */
	TRAILS_MAX = 768, /* 256 devices and 512 processes */
};

struct point {
	int64_t mono_ns;
	float v[TRAIL_FIGURES]; /* negative: not known */
};

struct trail {
	char key[TRAIL_KEY];
	uint64_t hash;
	int64_t seen_ns;
	uint32_t first, n; /* of the ring */
	double launches; /* the counter, to make differences of; negative: not known */
	struct point points[POINTS];
};

struct trails {
	uint32_t n;
	struct trail *list[TRAILS_MAX];
};

int trails_new(struct trails **ret_trails)
{
	*ret_trails = calloc(1, sizeof(**ret_trails));
	return *ret_trails ? 0 : -ENOMEM;
}

void trails_free(struct trails *trails)
{
	for (uint32_t i = 0; trails && i < trails->n; i++)
		free(trails->list[i]);
	free(trails);
}

void trail_key_of_entity(const struct sample *sample, const struct entity *e, char ret_key[static TRAIL_KEY])
{
	snprintf(ret_key, TRAIL_KEY, "%s %.100s", sample->host,
		 e->id.mig_uuid[0] ? e->id.mig_uuid : e->id.uuid);
}

void trail_key_of_process(const struct sample *sample, const struct process *p,
			  char ret_key[static TRAIL_KEY])
{
	char device[TRAIL_KEY];

	trail_key_of_entity(sample, &sample->snapshot->entities[p->entity], device);
	snprintf(ret_key, TRAIL_KEY, "%" PRIu32 " %" PRId64 " %.165s", p->id.pid, p->first_real_ns, device);
}

void trail_key_of_host(const struct sample *sample, char ret_key[static TRAIL_KEY])
{
	snprintf(ret_key, TRAIL_KEY, "host %s", sample->host);
}

static struct trail *find_trail(const struct trails *trails, const char *key)
{
	uint64_t hash = hash_bytes(key, strlen(key));

	for (uint32_t i = 0; i < trails->n; i++)
		if (trails->list[i]->hash == hash && STRV_EQ(trails->list[i]->key, key))
			return trails->list[i];
	return NULL;
}

const struct trail *trails_find(const struct trails *trails, const char *key)
{
	return find_trail(trails, key);
}

static const struct point *point_at(const struct trail *trail, size_t i)
{
	return &trail->points[(trail->first + i) % POINTS];
}

/* A place for one more; if all are taken, that of the longest unseen, unless this sample has it. */
static struct trail *new_trail(struct trails *trails, int64_t now_ns)
{
	struct trail *oldest = NULL;

	if (trails->n < TRAILS_MAX) {
		struct trail *trail = calloc(1, sizeof(*trail));

		if (trail)
			trails->list[trails->n++] = trail;
		return trail;
	}
	for (uint32_t i = 0; i < trails->n; i++)
		if (!oldest || trails->list[i]->seen_ns < oldest->seen_ns)
			oldest = trails->list[i];
	return oldest && oldest->seen_ns < now_ns ? oldest : NULL;
}

static struct trail *take_trail(struct trails *trails, const char *key, int64_t now_ns)
{
	struct trail *trail = find_trail(trails, key);

	if (!trail) {
		trail = new_trail(trails, now_ns);
		if (!trail)
			return NULL;
		trail->first = trail->n = 0;
		trail->launches = -1;
		snprintf(trail->key, sizeof(trail->key), "%s", key);
		trail->hash = hash_bytes(key, strlen(key));
	}
	/* A machine that has said nothing new since has the same figures still. */
	if (trail->n > 0 && point_at(trail, trail->n - 1)->mono_ns >= now_ns)
		return NULL;
	trail->seen_ns = now_ns;
	return trail;
}

static struct point *add_point(struct trail *trail, int64_t now_ns)
{
	struct point *point = &trail->points[(trail->first + trail->n) % POINTS];

	if (trail->n < POINTS)
		trail->n++;
	else
		trail->first = (trail->first + 1) % POINTS;
	point->mono_ns = now_ns;
	for (unsigned i = 0; i < TRAIL_FIGURES; i++)
		point->v[i] = -1;
	return point;
}

static float share(const struct entity *e, enum gpu_metric part, enum gpu_metric whole)
{
	double a, b;

	if (!entity_number(e, part, &a) || !entity_number(e, whole, &b) || b <= 0)
		return -1;
	return (float)(a / b);
}

static void follow_entity(struct trails *trails, const struct sample *sample, const struct entity *e)
{
	const int64_t now_ns = sample->mono_ns;
	char key[TRAIL_KEY];
	struct trail *trail;
	struct point *point;
	double v;

	trail_key_of_entity(sample, e, key);
	trail = e->present && !e->stale ? take_trail(trails, key, now_ns) : NULL;
	if (!trail)
		return;
	point = add_point(trail, now_ns);
	if (entity_number(e, GPU_UTILIZATION_GPU, &v))
		point->v[TRAIL_UTILIZATION] = (float)v;
	point->v[TRAIL_MEMORY] = share(e, GPU_MEMORY_USED, GPU_MEMORY_TOTAL);
	point->v[TRAIL_POWER] = share(e, GPU_POWER, GPU_POWER_LIMIT_ENFORCED);
}

/* Of a counter, how much more it is by second than when the trail had its last point. */
static void add_launches(struct trail *trail, struct point *point, double launches, int64_t before_ns)
{
	double seconds = (double)(point->mono_ns - before_ns) * 1e-9;

	if (trail->launches >= 0 && launches >= trail->launches && seconds > 0)
		point->v[TRAIL_LAUNCHES] = (float)((launches - trail->launches) / seconds);
	trail->launches = launches;
}

static void follow_process(struct trails *trails, const struct sample *sample, const struct process *p)
{
	const struct snapshot *s = sample->snapshot;
	const struct host_process *host = sample_process(sample, p->id.pid);
	const struct traced_device *traced = traced_device_of(s, p);
	char key[TRAIL_KEY];
	struct trail *trail;
	struct point *point;
	int64_t before_ns;
	double total;

	trail_key_of_process(sample, p, key);
	trail = take_trail(trails, key, sample->mono_ns);
	if (!trail)
		return;
	before_ns = trail->n > 0 ? trail->points[(trail->first + trail->n - 1) % POINTS].mono_ns : 0;
	point = add_point(trail, sample->mono_ns);
	if (presence_is(p->p[PROCESS_UTILIZATION]))
		point->v[TRAIL_UTILIZATION] = (float)p->v[PROCESS_UTILIZATION];
	if (presence_is(p->p[PROCESS_MEMORY]) &&
	    entity_number(&s->entities[p->entity], GPU_MEMORY_TOTAL, &total) && total > 0)
		point->v[TRAIL_MEMORY] = (float)(p->v[PROCESS_MEMORY] / total);
	if (host)
		point->v[TRAIL_CORES] = (float)host->cores;
	if (traced && presence_is(traced->p[TRACED_LAUNCHES]))
		add_launches(trail, point, traced->v[TRACED_LAUNCHES], before_ns);
}

static void follow_host(struct trails *trails, const struct sample *sample)
{
	const struct host *host = &sample->snapshot->host;
	double total = host->v[HOST_MEMORY_TOTAL];
	char key[TRAIL_KEY];
	struct trail *trail;
	struct point *point;

	trail_key_of_host(sample, key);
	trail = host->read ? take_trail(trails, key, sample->mono_ns) : NULL;
	if (!trail)
		return;
	point = add_point(trail, sample->mono_ns);
	point->v[TRAIL_UTILIZATION] = (float)growth_busy(sample);
	if (presence_is(host->p[HOST_MEMORY_TOTAL]) && presence_is(host->p[HOST_MEMORY_AVAILABLE]) &&
	    total > 0)
		point->v[TRAIL_MEMORY] = (float)(1 - host->v[HOST_MEMORY_AVAILABLE] / total);
}

static void follow_part(struct trails *trails, const struct sample *sample)
{
	const struct snapshot *s = sample->snapshot;

	if (s)
		follow_host(trails, sample);
	for (uint32_t i = 0; s && i < s->entities_n; i++)
		follow_entity(trails, sample, &s->entities[i]);
	for (uint32_t i = 0; s && i < s->processes_n; i++)
		follow_process(trails, sample, &s->processes[i]);
}

void trails_add(struct trails *trails, const struct sample *sample)
{
	for (uint32_t i = 0; i < sample_parts(sample); i++)
		if (sample_part(sample, i))
			follow_part(trails, sample_part(sample, i));
}

double trail_mean(const struct trail *trail, enum trail_figure figure, int64_t end_ns, int64_t window_ns,
		  int i, int n)
{
	int64_t begin_ns = end_ns - window_ns + window_ns / n * i;
	int64_t until_ns = i == n - 1 ? end_ns : begin_ns + window_ns / n;
	double sum = 0;
	unsigned found = 0;
	size_t at;

	if (!trail)
		return -1;
	at = LOWER_BOUND(trail->n, k, point_at(trail, k)->mono_ns <= begin_ns);
	for (; at < trail->n && point_at(trail, at)->mono_ns <= until_ns; at++) {
		float v = point_at(trail, at)->v[figure];

		if (v < 0)
			continue;
		sum += (double)v;
		found++;
	}
	/* Where parts are shorter than the time between two samples, each lasts until the next. */
	if (found == 0 && at > 0 && at < trail->n &&
	    point_at(trail, at)->mono_ns - begin_ns < 5 * NSEC_PER_SEC)
		return (double)point_at(trail, at)->v[figure];
	return found > 0 ? sum / found : -1;
}

double trail_curve_value(const void *userdata, int i, int n)
{
	const struct trail_curve *curve = userdata;

	return trail_mean(curve->trail, curve->figure, curve->end_ns, curve->window_ns, i, n);
}

double trail_highest(const struct trail_curve *curve)
{
	const struct trail *trail = curve->trail;
	float highest = -1;

	for (uint32_t i = 0; trail && i < trail->n; i++) {
		const struct point *point = point_at(trail, i);

		if (point->mono_ns > curve->end_ns - curve->window_ns && point->mono_ns <= curve->end_ns)
			highest = MAX(highest, point->v[curve->figure]);
	}
	return (double)highest;
}
