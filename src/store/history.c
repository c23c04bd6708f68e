// SPDX-License-Identifier: Apache-2.0
#include "store/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Fields of the table of GPUs, and of that of the node. */
struct history_fields {
	uint32_t uuid, index, gi, ci, present, stale, real_ns;
	uint32_t values[HISTORY_METRICS_OF_QUERY],
		presences[HISTORY_METRICS_OF_QUERY]; /* of each metric's first slot */
};

struct reading_history {
	const struct history_query *query;
	struct history_fields fields;
	struct history *history;
	uint32_t room; /* series */
};

static bool find_field(const struct fields *fields, const char *column, uint16_t index, uint32_t *ret_field)
{
	for (uint32_t f = 0; f < fields->n; f++)
		if (fields->list[f].index == index && STRV_EQ(fields->list[f].column->name, column)) {
			*ret_field = f;
			return true;
		}
	return false;
}

static bool find_fields(const struct fields fields[STORE_TABLES], const struct history_query *query,
			struct history_fields *ret)
{
	const struct fields *gpus = &fields[STORE_GPUS];

	for (uint32_t i = 0; i < query->metrics_n; i++) {
		uint16_t slot = gpu_metrics[query->metrics[i]].slot;

		if (!find_field(gpus, "id.v", slot, &ret->values[i]) ||
		    !find_field(gpus, "id.p", slot, &ret->presences[i]))
			return false;
	}
	return find_field(gpus, "id.uuid", 0, &ret->uuid) && find_field(gpus, "id.index", 0, &ret->index) &&
	       find_field(gpus, "id.gi", 0, &ret->gi) && find_field(gpus, "id.ci", 0, &ret->ci) &&
	       find_field(gpus, "present", 0, &ret->present) && find_field(gpus, "stale", 0, &ret->stale) &&
	       find_field(&fields[STORE_NODE], "real_ns", 0, &ret->real_ns);
}

/* ---- series ---- */

static struct history_series *add_series(struct reading_history *h, const struct history_series *like)
{
	struct history *history = h->history;
	uint32_t room = MAX(16u, h->room * 2);
	struct history_series *list;

	if ((uint64_t)(history->series_n + 1) * history->points > HISTORY_CELLS_MAX)
		return NULL;
	if (history->series_n == h->room) {
		list = reallocarray(history->series, room, sizeof(*list));
		if (!list)
			return NULL;
		history->series = list;
		h->room = room;
	}
	list = &history->series[history->series_n];
	*list = *like;
	list->points = calloc(history->points, sizeof(*list->points));
	if (!list->points)
		return NULL;
	history->series_n++;
	return list;
}

static struct history_series *series_like(struct reading_history *h, const struct history_series *like)
{
	for (uint32_t i = 0; i < h->history->series_n; i++) {
		struct history_series *known = &h->history->series[i];

		if (known->metric == like->metric && known->slot == like->slot && known->gi == like->gi &&
		    known->ci == like->ci && STRV_EQ(known->uuid, like->uuid))
			return known;
	}
	return add_series(h, like);
}

static void take_value(struct history_point *point, double v)
{
	point->min = point->known ? MIN(point->min, v) : v;
	point->max = point->known ? MAX(point->max, v) : v;
	point->last = v;
	point->known = true;
}

static double cell_number(uint64_t cell)
{
	double v;

	memcpy(&v, &cell, sizeof(v));
	return v;
}

static int take_metric(struct reading_history *h, const uint64_t *row, uint32_t i,
		       struct history_series *like, uint32_t at)
{
	like->metric = h->query->metrics[i];
	for (uint16_t slot = 0; slot < gpu_metrics[like->metric].count; slot++) {
		uint64_t presence = row[h->fields.presences[i] + slot];
		struct history_series *series;

		if (presence > UINT8_MAX || !presence_is((uint8_t)presence))
			continue;
		like->slot = slot;
		series = series_like(h, like);
		if (!series)
			return -E2BIG;
		series->estimated |= (presence & PRESENCE_ESTIMATED) != 0;
		take_value(&series->points[at], cell_number(row[h->fields.values[i] + slot]));
	}
	return 0;
}

static int take_gpu(struct reading_history *h, const struct block *block, const uint64_t *row, uint32_t at)
{
	const struct history_fields *f = &h->fields;
	struct history_series like = { .index = (uint32_t)row[f->index],
				       .gi = (uint32_t)row[f->gi],
				       .ci = (uint32_t)row[f->ci] };
	const char *uuid = block_text(block, row[f->uuid]);
	int r = 0;

	if (!row[f->present] || row[f->stale] ||
	    (h->query->gpu != HISTORY_GPU_ALL && like.index != (uint32_t)h->query->gpu))
		return 0;
	strncpy(like.uuid, uuid ? uuid : "", sizeof(like.uuid) - 1);
	for (uint32_t i = 0; r == 0 && i < h->query->metrics_n; i++)
		r = take_metric(h, row, i, &like, at);
	return r;
}

static int take_block(struct reading_history *h, struct block *block)
{
	struct history *history = h->history;
	int r = 0;

	while (r == 0 && block_next(block)) {
		int64_t real_ns = block_rows(block, STORE_NODE) == 1 ?
					  (int64_t)block_row(block, STORE_NODE, 0)[h->fields.real_ns] :
					  INT64_MIN;
		uint64_t at;

		if (real_ns < history->first_ns || !store_time_is_sane(real_ns))
			continue;
		at = (uint64_t)(real_ns - history->first_ns) / (uint64_t)history->step_ns;
		for (uint32_t i = 0; r == 0 && at < history->points && i < block_rows(block, STORE_GPUS); i++)
			r = take_gpu(h, block, block_row(block, STORE_GPUS, i), (uint32_t)at);
	}
	return r < 0 ? r : block_error(block);
}

/* ---- the time ---- */

/* The coarsest pace that has a snapshot in each step and reaches back; else the finest that does. */
static uint32_t tier_for(const struct store_reader *reader, const struct history_query *query)
{
	int64_t first, last;

	for (uint32_t tier = TIERS; tier-- > 0;)
		if (store_tiers[tier].period_ns <= query->step_ns &&
		    store_span(reader, tier, &first, &last) && first <= query->since_ns)
			return tier;
	return store_best_tier(reader, query->since_ns);
}

static bool metrics_are_known(const struct history_query *query)
{
	for (uint32_t i = 0; i < MIN(query->metrics_n, (uint32_t)HISTORY_METRICS_OF_QUERY); i++)
		if (query->metrics[i] >= GPU_METRICS)
			return false;
	return query->metrics_n > 0 && query->metrics_n <= HISTORY_METRICS_OF_QUERY;
}

static int begin_history(const struct store_reader *reader, const struct history_query *query,
			 struct history *history)
{
	if (!metrics_are_known(query) || query->step_ns <= 0 || !store_time_is_sane(query->since_ns) ||
	    !store_time_is_sane(query->until_ns) || query->until_ns < query->since_ns)
		return -EINVAL;
	if (!store_whole_span(reader, &history->recorded_first_ns, &history->recorded_last_ns))
		return -ENOENT;
	history->tier = tier_for(reader, query);
	history->step_ns = MAX(query->step_ns, store_tiers[history->tier].period_ns);
	/* Whole steps since 1970, so that the same times are the same points whenever they are asked for. */
	history->first_ns = query->since_ns - query->since_ns % history->step_ns;
	if ((query->until_ns - history->first_ns) / history->step_ns >= HISTORY_POINTS_MAX)
		return -E2BIG;
	history->points = (uint32_t)((query->until_ns - history->first_ns) / history->step_ns) + 1;
	return 0;
}

static int read_blocks(struct store_reader *reader, struct reading_history *h)
{
	size_t n;
	const struct stored_block *blocks = store_reader_blocks(reader, &n);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct stored_block *b = &blocks[i];
		struct block *block;

		if (b->tier != h->history->tier || b->real_last_ns < h->history->first_ns ||
		    b->real_first_ns > h->query->until_ns)
			continue;
		r = store_reader_block(reader, b, &block);
		if (r == -ENOENT) /* who records has dropped it meanwhile */
			r = 0;
		else if (r == 0)
			r = take_block(h, block);
	}
	return r;
}

int history_read(struct store_reader *reader, const struct history_query *query, struct history *ret_history)
{
	struct history history = { 0 };
	struct reading_history h = { .query = query, .history = &history };
	int r = begin_history(reader, query, &history);

	if (r < 0)
		return r;
	if (!find_fields(store_reader_fields(reader), query, &h.fields))
		return -ENOSYS;
	r = read_blocks(reader, &h);
	if (r < 0) {
		history_done(&history);
		return r;
	}
	*ret_history = history;
	return 0;
}

void history_done(struct history *history)
{
	for (uint32_t i = 0; i < history->series_n; i++)
		free(history->series[i].points);
	free(history->series);
	*history = (struct history){ 0 };
}
