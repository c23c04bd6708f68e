// SPDX-License-Identifier: Apache-2.0
#include "model/private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

_Static_assert(SCRAPED_METRICS <= 32, "struct scraped_row.present has a bit for each");

struct scraped *scraped_ref(struct scraped *scraped)
{
	if (scraped)
		atomic_fetch_add_explicit(&scraped->refs, 1, memory_order_relaxed);
	return scraped;
}

void scraped_unref(struct scraped *scraped)
{
	if (scraped && atomic_fetch_sub_explicit(&scraped->refs, 1, memory_order_acq_rel) == 1)
		free(scraped);
}

static int compare_device(const struct scraped_row *row, const char *uuid, const char *gi)
{
	int order = strcmp(row->uuid, uuid);

	return order ? order : strcmp(row->gi, gi);
}

static int compare_key(const struct scraped_row *a, const struct scraped_row *b)
{
	const char *const fields[][2] = {
		{ a->gpu, b->gpu },
		{ a->device, b->device },
		{ a->mig_profile, b->mig_profile },
		{ a->namespace, b->namespace },
		{ a->pod, b->pod },
		{ a->container, b->container },
	};
	int order = compare_device(a, b->uuid, b->gi);

	for (size_t i = 0; order == 0 && i < ARRAY_SIZE(fields); i++)
		order = strcmp(fields[i][0], fields[i][1]);
	return order;
}

/* Rows with one key stay in the order in which they came: their addresses tell it. */
static int order_rows(const void *a, const void *b)
{
	const struct scraped_row *x = *(const struct scraped_row *const *)a;
	const struct scraped_row *y = *(const struct scraped_row *const *)b;
	int order = compare_key(x, y);

	return order ? order : x < y ? -1 : x > y;
}

#define COPY(member_) copy_text(to->member_, sizeof(to->member_), from->member_)

static void copy_row(struct scraped_row *to, const struct scraped_row *from)
{
	memset(to, 0, sizeof(*to));
	COPY(uuid);
	COPY(gi);
	COPY(gpu);
	COPY(device);
	COPY(mig_profile);
	COPY(namespace);
	COPY(pod);
	COPY(container);
	COPY(node);
	COPY(model);
	to->target = from->target;
	to->real_ns = from->real_ns;
	to->boot_ns = from->boot_ns;
	for (unsigned i = 0; i < SCRAPED_METRICS; i++) {
		if (!scraped_has(from, i) || !isfinite(from->v[i]))
			continue;
		to->v[i] = from->v[i];
		to->present |= 1u << i;
	}
}

/* A later row with the same key: its values, and its time. */
static void join_row(struct scraped_row *to, const struct scraped_row *from)
{
	for (unsigned i = 0; i < SCRAPED_METRICS; i++)
		if (scraped_has(from, i))
			to->v[i] = from->v[i];
	to->present |= from->present;
	to->target = from->target;
	to->real_ns = MAX(to->real_ns, from->real_ns);
	to->boot_ns = MAX(to->boot_ns, from->boot_ns);
}

/* @order: pointers to rows, sorted. */
static void fill(struct scraped *table, const struct scraped_row *const *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0 && compare_key(order[i - 1], order[i]) == 0)
			join_row(&table->rows[table->n - 1], order[i]);
		else
			table->rows[table->n++] = *order[i];
	}
}

/* NULL: no memory. */
static struct scraped *make_table(const struct scraped_row *rows, uint32_t n)
{
	struct scraped *table = calloc(1, sizeof(*table) + n * sizeof(table->rows[0]));
	struct scraped_row *copies = calloc(n + 1u, sizeof(*copies));
	const struct scraped_row **order = calloc(n + 1u, sizeof(*order));

	if (table && copies && order) {
		atomic_init(&table->refs, 1);
		for (uint32_t i = 0; i < n; i++) {
			copy_row(&copies[i], &rows[i]);
			order[i] = &copies[i];
		}
		qsort(order, n, sizeof(*order), order_rows);
		fill(table, order, n);
	} else {
		free(TAKE_PTR(table));
	}
	free(copies);
	free(order);
	return table;
}

int model_set_scraped(struct model *model, const struct scraped_row *rows, uint32_t n, int64_t stale_after_ns)
{
	uint32_t taken = MIN(n, (uint32_t)SCRAPED_ROWS_MAX);
	struct scraped *table = NULL;

	if (rows) {
		table = make_table(rows, taken);
		if (!table)
			return -ENOMEM;
		table->stale_after_ns = stale_after_ns;
	}
	model->sources[SOURCE_DCGM].s.dropped += n - taken;
	scraped_unref(model->scraped);
	model->scraped = table;
	return 0;
}

const struct scraped_row *scraped_find(const struct scraped *scraped, const char *uuid, const char *gi,
				       uint32_t *ret_n)
{
	uint32_t n = scraped ? scraped->n : 0, first, end;

	*ret_n = 0;
	first = (uint32_t)LOWER_BOUND(n, i, compare_device(&scraped->rows[i], uuid, gi) < 0);
	for (end = first; end < n && compare_device(&scraped->rows[end], uuid, gi) == 0; end++)
		;
	*ret_n = end - first;
	return end > first ? &scraped->rows[first] : NULL;
}

bool scraped_is_stale(const struct scraped *scraped, const struct scraped_row *row, int64_t now_boot_ns)
{
	return now_boot_ns - row->boot_ns > scraped->stale_after_ns;
}
