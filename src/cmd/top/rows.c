// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "cmd/top/filter.h"
#include "cmd/top/value.h"

/* A row while it is sorted. */
struct sorted {
	struct row row;
	uint32_t at; /* where it was: what is equal stays in order */
	uint32_t heading; /* its place in the tree, then in the tree's order */
	struct value keys[SORT_KEYS];
};

struct making {
	const struct sample *sample; /* of the machine whose rows are added */
	const struct rows_wanted *wanted;
	const struct column *columns;
	const struct filter *filter;
	struct rows *rows;
	struct sorted *list;
	uint32_t n, cap;
	/*
	 * The next ones of the snapshot, which was decoded from these lists, in their order, but for what
	 * makes no sense there.
	 */
	uint32_t entity, process;
};

void tab_rows_done(struct rows *rows)
{
	json_decref(rows->groups);
	free(rows->list);
	tree_done(&rows->tree);
	*rows = (struct rows){ 0 };
}

static bool has_type(const struct rows_wanted *wanted, const struct row *row)
{
	static const char *const words[TYPES_KINDS] = {
		[TYPES_COMPUTE] = "compute", [TYPES_GRAPHICS] = "graphics"
	};
	const json_t *type;
	size_t i;

	if (wanted->tab != TAB_PROCESSES || wanted->types == TYPES_ALL)
		return true;
	json_array_foreach(json_object_get(row->object, "types"), i, type)
		if (json_is_string(type) && STRV_EQ(json_string_value(type), words[wanted->types]))
			return true;
	return false;
}

static bool is_grouped(const struct rows_wanted *wanted)
{
	return wanted->tab == TAB_PROCESSES && wanted->by != GROUP_NONE;
}

static int add_tab_row(struct making *m, const struct row *row)
{
	struct heading *heading = NULL;
	struct sorted *sorted;

	m->rows->all++;
	if (is_grouped(m->wanted)) {
		heading = &m->rows->tree.headings[tree_heading_of(&m->rows->tree, m->sample, row->process)];
		heading->rows++;
	}
	if (m->n >= ROWS_MAX || !has_type(m->wanted, row) || !filter_matches(m->filter, m->sample, row))
		return 0;
	if (m->n == m->cap) {
		uint32_t cap = MAX(64u, m->cap * 2);

		sorted = realloc(m->list, cap * sizeof(*m->list));
		if (!sorted)
			return -ENOMEM;
		m->list = sorted;
		m->cap = cap;
	}
	sorted = &m->list[m->n];
	*sorted = (struct sorted){ .row = *row, .at = m->n };
	m->n++;
	if (heading) {
		heading->shown++;
		sorted->heading = (uint32_t)(heading - m->rows->tree.headings);
	}
	for (unsigned i = 0; i < m->wanted->keys_n; i++)
		column_value(m->sample, row, &m->columns[m->wanted->keys[i].column], &sorted->keys[i]);
	return 0;
}

/* ---- which there are ---- */

/* What the snapshot has of the row. */
static void join_snapshot(struct making *m, struct row *row)
{
	const struct snapshot *s = m->sample->snapshot;
	const json_t *gpu = row->parent ? row->parent : row->object;

	if (m->wanted->tab == TAB_GPUS && m->entity < s->entities_n &&
	    STRV_EQ(s->entities[m->entity].id.uuid, text_member(gpu, "uuid")))
		row->entity = &s->entities[m->entity++];
	if (m->wanted->tab == TAB_PROCESSES && m->process < s->processes_n &&
	    s->processes[m->process].id.pid == json_integer_value(json_object_get(row->object, "pid")))
		row->process = &s->processes[m->process++];
}

/* @nested: the rows are those of these lists. */
static int add_list(struct making *m, const json_t *list, const json_t *parent, const char *nested)
{
	json_t *object;
	size_t i;
	int r = 0;

	json_array_foreach(list, i, object) {
		struct row row = { .sample = m->sample, .object = object, .parent = parent };

		join_snapshot(m, &row);
		r = nested ? add_list(m, member_at(object, nested), object, NULL) : add_tab_row(m, &row);
		/* MIG instances come after their GPU. */
		if (r == 0 && m->wanted->tab == TAB_GPUS && !parent)
			r = add_list(m, json_object_get(object, "mig"), object, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Added up as `gpusonde ps --by` does, in its document. */
static int add_owners(struct making *m)
{
	enum group_by by = m->wanted->by == GROUP_NONE ? GROUP_CONTAINER : m->wanted->by;
	const json_t *list = groups_document(m->sample, by, m->rows->groups);

	return list ? add_list(m, list, NULL, NULL) : -ENOMEM;
}

static int add_part(struct making *m)
{
	const struct tab_description *tab = &tabs[m->wanted->tab];
	const json_t *page = m->sample->pages[tab->page];
	int r = 0;

	m->entity = m->process = 0;
	if (!m->sample->snapshot)
		return 0;
	if (m->wanted->tab == TAB_OWNERS)
		return add_owners(m);
	if (is_grouped(m->wanted))
		r = tree_add(&m->rows->tree, m->sample, m->wanted->by, m->rows->groups);
	if (r < 0)
		return r;
	return tab->list && page ? add_list(m, member_at(page, tab->list), NULL, tab->nested) : 0;
}

/* A row for each machine, whether it answers or not. */
static int add_hosts(struct making *m, const struct sample *all)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < all->parts_n; i++) {
		struct row row = { .sample = all->parts[i].sample, .host = &all->parts[i] };

		m->sample = all->parts[i].sample;
		r = add_tab_row(m, &row);
	}
	return r;
}

static int add_parts(struct making *m, const struct sample *all)
{
	int r = 0;

	if (m->wanted->tab == TAB_HOSTS)
		return add_hosts(m, all);
	m->rows->groups = json_array();
	if (!m->rows->groups)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < sample_parts(all); i++) {
		m->sample = sample_part(all, i);
		if (m->sample)
			r = add_part(m);
	}
	return r;
}

/* ---- their order ---- */

/* What is not known comes last, whatever the order. */
static int compare_values(const struct value *a, const struct value *b, bool reversed)
{
	int order;

	if (!a->known || !b->known)
		return (b->known ? 1 : 0) - (a->known ? 1 : 0);
	if (a->is_text && b->is_text)
		order = strcasecmp(a->text, b->text);
	else
		order = (a->number < b->number) - (a->number > b->number);
	return reversed ? -order : order;
}

static int compare_keys(const struct rows_wanted *wanted, const struct value *a, const struct value *b)
{
	int order = 0;

	for (unsigned i = 0; order == 0 && i < wanted->keys_n; i++)
		order = compare_values(&a[i], &b[i], wanted->keys[i].reversed);
	return order;
}

static int compare_sorted(const void *a, const void *b, void *userdata)
{
	const struct sorted *x = a, *y = b;
	int order = (x->heading > y->heading) - (x->heading < y->heading);

	if (order == 0)
		order = compare_keys(userdata, x->keys, y->keys);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* By their sums, as processes by their figures; then by their names. */
static int compare_headings(const void *a, const void *b, void *userdata)
{
	const struct heading *const *x = a, *const *y = b;
	int order = compare_keys(userdata, (*x)->keys, (*y)->keys);

	if (order == 0)
		order = strcmp((*x)->text, (*y)->text);
	return order ? order : (*x > *y) - (*x < *y);
}

static struct row row_of_heading(const struct heading *heading)
{
	return (struct row){ .sample = heading->sample, .object = heading->object, .heading = heading };
}

/* Each process gets the place of its heading in @order. */
static void sort_headings(struct making *m, struct heading **order, uint32_t *places)
{
	struct tree *tree = &m->rows->tree;

	for (uint32_t i = 0; i < tree->n; i++) {
		struct row row = row_of_heading(&tree->headings[i]);

		order[i] = &tree->headings[i];
		if (m->wanted->closed)
			order[i]->closed = is_closed(m->wanted->closed, row_id(&row));
		for (unsigned k = 0; k < m->wanted->keys_n; k++) {
			const struct column *column = &m->columns[m->wanted->keys[k].column];

			if (column->summed)
				column_value(row.sample, &row, column, &order[i]->keys[k]);
		}
	}
	if (tree->n > 0)
		qsort_r(order, tree->n, sizeof(struct heading *), compare_headings,
			(void *)(uintptr_t)m->wanted);
	for (uint32_t i = 0; i < tree->n; i++)
		places[order[i] - tree->headings] = i;
	for (uint32_t i = 0; tree->n > 0 && i < m->n; i++)
		m->list[i].heading = places[m->list[i].heading];
}

/* The sorted ones, with a row for each heading; without those that are closed. */
static int list_rows(struct making *m)
{
	struct rows *rows = m->rows;
	_cleanup_free_ struct heading **order = calloc(rows->tree.n + 1u, sizeof(*order));
	_cleanup_free_ uint32_t *places = calloc(rows->tree.n + 1u, sizeof(*places));

	rows->list = calloc(m->n + rows->tree.n + 1u, sizeof(*rows->list));
	if (!rows->list || !order || !places)
		return -ENOMEM;
	sort_headings(m, order, places);
	if (m->n > 0)
		qsort_r(m->list, m->n, sizeof(*m->list), compare_sorted, (void *)(uintptr_t)m->wanted);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct heading *heading = order[m->list[i].heading];

		if (heading && (i == 0 || m->list[i].heading != m->list[i - 1].heading))
			rows->list[rows->n++] = row_of_heading(heading);
		if (!heading || !heading->closed)
			rows->list[rows->n++] = m->list[i].row;
	}
	return 0;
}

int tab_rows_make(const struct sample *sample, const struct rows_wanted *wanted, struct rows *rows)
{
	_cleanup_(filter_freep) struct filter *filter = NULL;
	struct making m = { .wanted = wanted, .rows = rows };
	unsigned columns_n;
	int r;

	tab_rows_done(rows);
	m.columns = tab_columns(wanted->tab, &columns_n);
	r = filter_new(wanted->tab, wanted->filter, &filter, &rows->bad_filter);
	m.filter = filter;
	if (r == 0)
		r = add_parts(&m, sample);
	if (r == 0)
		r = list_rows(&m);
	free(m.list);
	if (r < 0)
		tab_rows_done(rows);
	return r;
}

static uint64_t mix(uint64_t hash, const json_t *object, const char *name)
{
	const json_t *member = json_object_get(object, name);

	if (json_is_string(member))
		return hash * 31 + hash_bytes(json_string_value(member), json_string_length(member));
	return hash * 31 + (uint64_t)json_integer_value(member);
}

uint64_t row_id(const struct row *row)
{
	static const char *const names[] = { "pid",     "first_seen",   "uuid",    "mig_uuid",
					     "api",     "id",           "name",    "operation",
					     "number",  "container_id", "pod_uid", "job",
					     "uid",     "ranks",        "finding", "device",
					     "subject", "communicator" };
	uint64_t hash = 1;

	if (row->host)
		return hash_bytes(row->host->name, strlen(row->host->name));
	if (row->sample && row->sample->host[0])
		hash = hash_bytes(row->sample->host, strlen(row->sample->host));
	if (row->heading)
		hash = hash * 31 + hash_bytes(row->heading->text, strlen(row->heading->text));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		hash = mix(hash, row->object, names[i]);
	return mix(hash, row->parent, "pid");
}
