// SPDX-License-Identifier: Apache-2.0
#include "store/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Of a disk or interface: the names of its columns, which are one for each of HOST_DEVICES_MAX. */
#define DISK_METRIC(id_, field_, ...)                                      \
	[DISK_##id_] = { "host.devices[HOST_DISKS].list.v[DISK_" #id_ "]", \
			 "host.devices[HOST_DISKS].list.p[DISK_" #id_ "]" },
static const char *const disk_columns[DISK_METRICS][2] = {
#include "model/metrics.def"
};
#define INTERFACE_METRIC(id_, field_, ...)                                                \
	[INTERFACE_##id_] = { "host.devices[HOST_INTERFACES].list.v[INTERFACE_" #id_ "]", \
			      "host.devices[HOST_INTERFACES].list.p[INTERFACE_" #id_ "]" },
static const char *const interface_columns[INTERFACE_METRICS][2] = {
#include "model/metrics.def"
};

static const struct {
	const char *n, *name;
} device_columns[HOST_LISTS] = {
	[HOST_DISKS] = { "host.devices[HOST_DISKS].n", "host.devices[HOST_DISKS].list.name" },
	[HOST_INTERFACES] = { "host.devices[HOST_INTERFACES].n", "host.devices[HOST_INTERFACES].list.name" },
};

/* Fields of the table of GPUs, and of that of the node. */
struct history_fields {
	uint32_t uuid, index, gi, ci, present, stale, real_ns;
	uint32_t devices[HOST_LISTS], names[HOST_LISTS][HOST_DEVICES_MAX]; /* how many there are, and which */
	/* Of each metric's first slot; of those of disks and interfaces, of each device. */
	uint32_t values[HISTORY_METRICS_OF_QUERY][HOST_DEVICES_MAX];
	uint32_t presences[HISTORY_METRICS_OF_QUERY][HOST_DEVICES_MAX];
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

static bool is_of_devices(uint32_t code)
{
	return metric_list_of(code) == METRICS_OF_DISK || metric_list_of(code) == METRICS_OF_INTERFACE;
}

static enum host_kind kind_of_devices(uint32_t code)
{
	return metric_list_of(code) == METRICS_OF_DISK ? HOST_DISKS : HOST_INTERFACES;
}

static bool find_device_metric(const struct fields *node, uint32_t code, uint32_t i,
			       struct history_fields *ret)
{
	uint16_t slot = metric_of_code(code)->slot;
	const char *const *columns =
		metric_list_of(code) == METRICS_OF_DISK ? disk_columns[slot] : interface_columns[slot];

	for (uint16_t k = 0; k < HOST_DEVICES_MAX; k++)
		if (!find_field(node, columns[0], k, &ret->values[i][k]) ||
		    !find_field(node, columns[1], k, &ret->presences[i][k]))
			return false;
	return true;
}

static bool find_metric(const struct fields fields[STORE_TABLES], uint32_t code, uint32_t i,
			struct history_fields *ret)
{
	uint16_t slot = metric_of_code(code)->slot;
	const struct fields *node = &fields[STORE_NODE];

	if (is_of_devices(code))
		return find_device_metric(node, code, i, ret);
	if (metric_list_of(code) == METRICS_OF_HOST)
		return find_field(node, "host.v", slot, &ret->values[i][0]) &&
		       find_field(node, "host.p", slot, &ret->presences[i][0]);
	return find_field(&fields[STORE_GPUS], "id.v", slot, &ret->values[i][0]) &&
	       find_field(&fields[STORE_GPUS], "id.p", slot, &ret->presences[i][0]);
}

static bool find_devices(const struct fields *node, struct history_fields *ret)
{
	for (unsigned list = 0; list < HOST_LISTS; list++) {
		if (!find_field(node, device_columns[list].n, 0, &ret->devices[list]))
			return false;
		for (uint16_t k = 0; k < HOST_DEVICES_MAX; k++)
			if (!find_field(node, device_columns[list].name, k, &ret->names[list][k]))
				return false;
	}
	return true;
}

static bool find_fields(const struct fields fields[STORE_TABLES], const struct history_query *query,
			struct history_fields *ret)
{
	const struct fields *gpus = &fields[STORE_GPUS];

	for (uint32_t i = 0; i < query->metrics_n; i++)
		if (!find_metric(fields, query->metrics[i], i, ret))
			return false;
	return find_field(gpus, "id.uuid", 0, &ret->uuid) && find_field(gpus, "id.index", 0, &ret->index) &&
	       find_field(gpus, "id.gi", 0, &ret->gi) && find_field(gpus, "id.ci", 0, &ret->ci) &&
	       find_field(gpus, "present", 0, &ret->present) && find_field(gpus, "stale", 0, &ret->stale) &&
	       find_field(&fields[STORE_NODE], "real_ns", 0, &ret->real_ns) &&
	       find_devices(&fields[STORE_NODE], ret);
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
		    known->ci == like->ci && STRV_EQ(known->uuid, like->uuid) &&
		    STRV_EQ(known->device, like->device))
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

static int take_cell(struct reading_history *h, uint64_t presence, uint64_t cell,
		     const struct history_series *like, uint32_t at)
{
	struct history_series *series;

	if (presence > UINT8_MAX || !presence_is((uint8_t)presence))
		return 0;
	series = series_like(h, like);
	if (!series)
		return -E2BIG;
	series->estimated |= (presence & PRESENCE_ESTIMATED) != 0;
	take_value(&series->points[at], cell_number(cell));
	return 0;
}

static int take_metric(struct reading_history *h, const uint64_t *row, uint32_t i,
		       struct history_series *like, uint32_t at)
{
	const struct history_fields *f = &h->fields;
	uint16_t slots = metric_of_code(h->query->metrics[i])->count;
	int r = 0;

	like->metric = h->query->metrics[i];
	for (uint16_t slot = 0; r == 0 && slot < slots; slot++) {
		like->slot = slot;
		r = take_cell(h, row[f->presences[i][0] + slot], row[f->values[i][0] + slot], like, at);
	}
	return r;
}

static int add_devices_at(struct reading_history *h, const struct block *block, const uint64_t *row,
			  uint32_t i, uint32_t at)
{
	const struct history_fields *f = &h->fields;
	enum host_kind kind = kind_of_devices(h->query->metrics[i]);
	int r = 0;

	for (uint32_t k = 0; r == 0 && k < HOST_DEVICES_MAX && k < row[f->devices[kind]]; k++) {
		struct history_series like = { .metric = h->query->metrics[i] };
		const char *name = block_text(block, row[f->names[kind][k]]);

		strncpy(like.device, name ? name : "", sizeof(like.device) - 1);
		r = take_cell(h, row[f->presences[i][k]], row[f->values[i][k]], &like, at);
	}
	return r;
}

static int add_machine_at(struct reading_history *h, const struct block *block, const uint64_t *row,
			  uint32_t at)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < h->query->metrics_n; i++) {
		struct history_series like = { 0 };

		if (is_of_devices(h->query->metrics[i]))
			r = add_devices_at(h, block, row, i, at);
		else if (metric_list_of(h->query->metrics[i]) == METRICS_OF_HOST)
			r = take_metric(h, row, i, &like, at);
	}
	return r;
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
		if (metric_list_of(h->query->metrics[i]) == METRICS_OF_GPU)
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
		if (at < history->points)
			r = add_machine_at(h, block, block_row(block, STORE_NODE, 0), (uint32_t)at);
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
		if (!metric_of_code(query->metrics[i]))
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
