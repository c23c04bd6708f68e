// SPDX-License-Identifier: Apache-2.0
#include "view/walk/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "view/shown.h"
#include "view/walk/private.h"

/* ---- memory that is freed at the end of the walk ---- */

enum { CHUNK_BYTES = 32 << 10 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	max_align_t data[];
};

static void *arena_get(struct walk *walk, size_t size)
{
	struct arena_chunk *chunk = walk->chunks;
	void *room;

	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!chunk || chunk->size - chunk->used < size) {
		size_t bytes = MAX(size, (size_t)CHUNK_BYTES);

		chunk = malloc(sizeof(*chunk) + bytes);
		if (!chunk) {
			walk->failed = true;
			return NULL;
		}
		*chunk = (struct arena_chunk){ .next = walk->chunks, .size = bytes };
		walk->chunks = chunk;
	}
	room = (char *)chunk->data + chunk->used;
	chunk->used += size;
	return room;
}

static void arena_done(struct walk *walk)
{
	while (walk->chunks) {
		struct arena_chunk *next = walk->chunks->next;

		free(walk->chunks);
		walk->chunks = next;
	}
}

void *walk_zeroes(struct walk *walk, size_t n, size_t size)
{
	void *room = n <= SIZE_MAX / 2 / size ? arena_get(walk, n * size) : NULL;

	if (room)
		memset(room, 0, n * size);
	else
		walk->failed = true;
	return room;
}

const char *walk_text(struct walk *walk, const char *text, const char *more)
{
	size_t n = strlen(text), more_n = strlen(more);
	char *copy = arena_get(walk, n + more_n + 1);

	if (!copy)
		return "";
	memcpy(copy, text, n);
	memcpy(copy + n, more, more_n + 1);
	return copy;
}

const char *walk_number(struct walk *walk, uint64_t number)
{
	char text[24], *start = text + sizeof(text) - 1;

	*start = '\0';
	do {
		*--start = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	return walk_text(walk, start, "");
}

/* ---- labels ---- */

uint32_t walk_owner_labels(struct label *labels, uint32_t n, const struct owner *owner)
{
	if (owner && owner->pod[0]) {
		labels[n++] = (struct label){ "namespace", owner->namespace };
		labels[n++] = (struct label){ "pod", owner->pod };
	}
	if (owner && owner->container[0])
		labels[n++] = (struct label){ "container", owner->container };
	return n;
}

const struct label_set *walk_set(struct walk *walk, bool shared, const struct label *labels, uint32_t n)
{
	struct label_set *set = arena_get(walk, sizeof(*set) + n * sizeof(*labels));
	struct label *copy;

	if (!set)
		return NULL;
	copy = (struct label *)(set + 1);
	memcpy(copy, labels, n * sizeof(*labels));
	*set = (struct label_set){ .id = shared ? ++walk->sets_n : 0, .n = n, .labels = copy };
	return set;
}

const struct label_set *walk_row_set(struct walk *walk, const struct metric *metric)
{
	const struct label labels[] = { { metric->label, metric->value },
					{ metric->label2, metric->value2 } };

	if (!metric->label)
		return NULL;
	return walk_set(walk, true, labels, metric->label2 ? 2 : 1);
}

const struct label_set *walk_metric_set(struct walk *walk, const char *prefix, const char *name)
{
	return WALK_SET(walk, true, { "metric", walk_text(walk, prefix, name) });
}

bool label_set_equal(const struct label_set *a, const struct label_set *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (!STRV_EQ(a->labels[i].name, b->labels[i].name) ||
		    !STRV_EQ(a->labels[i].value, b->labels[i].value))
			return false;
	return true;
}

const char *series_label(const struct series *series, const char *name)
{
	for (unsigned k = 0; k < SERIES_SETS; k++)
		for (uint32_t i = 0; series->sets[k] && i < series->sets[k]->n; i++)
			if (STRV_EQ(series->sets[k]->labels[i].name, name))
				return series->sets[k]->labels[i].value;
	return NULL;
}

static const struct label_set *entity_set(struct walk *walk, const struct entity *e)
{
	const struct entity *gpu = snapshot_gpu(walk->s, e);
	struct label labels[4] = { { "gpu", walk_number(walk, gpu->id.index) }, { "uuid", gpu->id.uuid } };

	if (!entity_is_mig(e))
		return walk_set(walk, true, labels, 2);
	labels[2] = (struct label){ "gi", walk_number(walk, e->id.gi) };
	labels[3] = (struct label){ "ci", walk_number(walk, e->id.ci) };
	return walk_set(walk, true, labels, 4);
}

/* ---- families and series ---- */

unsigned family_end(const struct metric *rows, unsigned n, unsigned i)
{
	const char *family = rows[i].family;

	while (i < n && strcmp(rows[i].family, family) == 0)
		i++;
	return i;
}

bool walk_family(struct walk *walk, const struct family *family)
{
	struct family whole = *family;

	whole.subject = walk->subject;
	return !walk->failed && walk->sink->family(walk->sink->userdata, &whole);
}

bool walk_family_named(struct walk *walk, const char *name, enum family_type type, enum metric_unit unit,
		       const char *help)
{
	const struct family family = {
		.prefix = WALK_PREFIX, .name = name, .help = help, .type = type, .unit = unit
	};

	return walk_family(walk, &family);
}

bool walk_family_rows(struct walk *walk, const char *prefix, size_t strip, const char *help,
		      const struct metric *rows, unsigned n, unsigned first, unsigned *ret_end)
{
	const struct metric *metric = &rows[first];
	const struct family family = {
		.prefix = prefix,
		.name = metric->family + strip,
		.help = help ? help : metric->help,
		.help_more = help ? metric->help : NULL,
		.type = metric_is_counter(metric) ? FAMILY_COUNTER : FAMILY_GAUGE,
		.unit = metric->unit,
		.rows = metric,
		.rows_n = family_end(rows, n, first) - first,
	};

	*ret_end = first + family.rows_n;
	return walk_family(walk, &family);
}

void walk_series(struct walk *walk, const struct series *series)
{
	if (!walk->failed)
		walk->sink->series(walk->sink->userdata, series);
}

/* ---- the walk ---- */

static const struct {
	enum walk_subject subject;
	void (*walk)(struct walk *walk);
} parts[] = {
	{ WALK_GPUS, walk_gpus },
	{ WALK_XIDS, walk_xids },
	{ WALK_PROCESSES, walk_processes },
	{ WALK_WORKLOADS, walk_workloads },
	{ WALK_WORKLOADS, walk_jobs },
	{ WALK_WORKLOADS, walk_runs },
	{ WALK_WORKLOADS, walk_allocations },
	{ WALK_TRACED, walk_traced },
	{ WALK_KERNELS, walk_kernels },
	{ WALK_CALLS, walk_operators },
	{ WALK_CALLS, walk_torch },
	{ WALK_CALLS, walk_calls },
	{ WALK_CALLS, walk_probes },
	{ WALK_CALLS, walk_blas },
	{ WALK_CALLS, walk_python },
	{ WALK_CALLS, walk_nccl },
	{ WALK_CALLS, walk_measured },
	{ WALK_CALLS, walk_gpu_time },
	{ WALK_CALLS, walk_findings },
	{ WALK_NODE, walk_node },
	{ WALK_HOST, walk_host },
	{ WALK_SERVERS, walk_servers },
	{ WALK_AGENT, walk_agent },
};

int walk_snapshot(const struct snapshot *snapshot, unsigned subjects, const struct walk_sink *sink)
{
	struct walk walk = { .s = snapshot, .sink = sink };

	walk.entities = walk_zeroes(&walk, snapshot->entities_n, sizeof(*walk.entities));
	for (uint32_t i = 0; walk.entities && i < snapshot->entities_n; i++)
		walk.entities[i] = entity_set(&walk, &snapshot->entities[i]);
	walk.other_process = WALK_SET(&walk, true, { "pid", WALK_OTHER }, { "comm", WALK_OTHER });
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !walk.failed; i++) {
		walk.subject = parts[i].subject;
		if (subjects & walk.subject)
			parts[i].walk(&walk);
	}
	arena_done(&walk);
	return walk.failed ? -ENOMEM : 0;
}
