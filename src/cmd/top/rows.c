// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "cmd/top/filter.h"
#include "cmd/top/value.h"
#include "view/view.h"

/* A row while it is sorted. */
struct sorted {
	struct row row;
	uint32_t at; /* where it was: what is equal stays in order */
	char heading[HEADING_TEXT]; /* "": none */
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
	free(rows->headings);
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

/* The heading that a process comes under. */
static void set_heading(const struct making *m, struct sorted *sorted)
{
	struct value value = { 0 };
	const json_t *o = sorted->row.object;
	const char *id;

	switch (m->wanted->by) {
	case GROUP_USER:
		value_user(m->sample, &sorted->row, &value);
		break;
	case GROUP_JOB:
		id = json_string_value(member_at(o, "batch_job.id"));
		id = id ? id : json_string_value(json_object_get(o, "job"));
		value_set(&value, "%s%.100s", id ? "job " : "", id ? id : "");
		break;
	case GROUP_POD:
		if (json_string_length(json_object_get(o, "pod")) > 0)
			value_set(&value, "%.40s/%.80s", json_string_value(json_object_get(o, "namespace")),
				  json_string_value(json_object_get(o, "pod")));
		else if (json_string_length(json_object_get(o, "pod_uid")) > 0)
			value_set(&value, "pod %.80s", json_string_value(json_object_get(o, "pod_uid")));
		break;
	default:
		value_workload(m->sample, &sorted->row, &value);
	}
	snprintf(sorted->heading, sizeof(sorted->heading), "%.120s", value.known ? value.text : "(none)");
}

static bool is_grouped(const struct rows_wanted *wanted)
{
	return wanted->tab == TAB_PROCESSES && wanted->by != GROUP_NONE;
}

static int add_tab_row(struct making *m, const struct row *row)
{
	struct sorted *sorted;

	m->rows->all++;
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
	if (is_grouped(m->wanted))
		set_heading(m, sorted);
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
	struct strbuf text;
	json_t *document = json_object();
	enum group_by by = m->wanted->by == GROUP_NONE ? GROUP_CONTAINER : m->wanted->by;
	int r;

	strbuf_init(&text, 0);
	r = document ? json_groups(m->sample->snapshot, by, document, &text) : -ENOMEM;
	json_decref(document);
	document = r == 0 ? json_loadb(text.data, text.len, 0, NULL) : NULL;
	strbuf_done(&text);
	if (document && json_array_append_new(m->rows->groups, document) < 0)
		return -ENOMEM;
	return r < 0 ? r : add_list(m, json_object_get(document, "groups"), NULL, NULL);
}

static int add_part(struct making *m)
{
	const struct tab_description *tab = &tabs[m->wanted->tab];
	const json_t *page = m->sample->pages[tab->page];

	m->entity = m->process = 0;
	if (!m->sample->snapshot)
		return 0;
	if (m->wanted->tab == TAB_OWNERS)
		return add_owners(m);
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

static int compare_sorted(const void *a, const void *b, void *userdata)
{
	const struct rows_wanted *wanted = userdata;
	const struct sorted *x = a, *y = b;
	int order = strcmp(x->heading, y->heading);

	for (unsigned i = 0; order == 0 && i < wanted->keys_n; i++)
		order = compare_values(&x->keys[i], &y->keys[i], wanted->keys[i].reversed);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

static uint32_t count_headings(const struct making *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; is_grouped(m->wanted) && i < m->n; i++)
		n += i == 0 || !STRV_EQ(m->list[i].heading, m->list[i - 1].heading);
	return n;
}

/* The sorted ones, with a row for each heading. */
static int list_rows(struct making *m)
{
	uint32_t headings = count_headings(m), heading = 0;
	struct rows *rows = m->rows;
	struct row *current = NULL;

	rows->list = calloc(m->n + headings + 1u, sizeof(*rows->list));
	rows->headings = calloc(headings + 1u, sizeof(*rows->headings));
	if (!rows->list || !rows->headings)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		if (headings > 0 && (i == 0 || !STRV_EQ(m->list[i].heading, m->list[i - 1].heading))) {
			memcpy(rows->headings[heading], m->list[i].heading, HEADING_TEXT);
			current = &rows->list[rows->n++];
			current->heading = rows->headings[heading++];
		}
		rows->list[rows->n++] = m->list[i].row;
		if (current)
			current->members++;
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
	if (r == 0) {
		if (m.n > 0)
			qsort_r(m.list, m.n, sizeof(*m.list), compare_sorted, (void *)(uintptr_t)wanted);
		r = list_rows(&m);
	}
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
	static const char *const names[] = { "pid",     "first_seen", "uuid",      "mig_uuid", "api",
					     "id",      "name",       "operation", "number",   "container_id",
					     "pod_uid", "job",        "uid",       "ranks",    "finding" };
	uint64_t hash = 1;

	if (row->heading)
		return hash_bytes(row->heading, strlen(row->heading));
	if (row->host)
		return hash_bytes(row->host->name, strlen(row->host->name));
	if (row->sample && row->sample->host[0])
		hash = hash_bytes(row->sample->host, strlen(row->sample->host));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		hash = mix(hash, row->object, names[i]);
	return mix(hash, row->parent, "pid");
}
