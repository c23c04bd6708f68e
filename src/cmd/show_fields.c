// SPDX-License-Identifier: Apache-2.0
#include "cmd/show_fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/nearest.h"
#include "view/table/table.h"

/* Shorter names for --sort of ps, as its columns are called. */
static const struct {
	const char *name, *field;
} short_names[] = {
	{ "gpu", "+gpu" },
	{ "pid", "+pid" },
	{ "user", "+uid" },
	{ "sm", "utilization_ratio" },
	{ "memory", "memory_bytes" },
	{ "busy", "busy_seconds_total" },
	{ "launches", "cuda.launches_total" },
};

static void replace_short_names(struct field_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		char sign = list->name[i][0] == '+' || list->name[i][0] == '-' ? list->name[i][0] : '\0';

		for (size_t k = 0; k < ARRAY_SIZE(short_names); k++) {
			const char *field = short_names[k].field;

			if (!STRV_EQ(list->name[i] + !!sign, short_names[k].name))
				continue;
			if (sign)
				snprintf(list->name[i], FIELD_NAME_MAX, "%c%s", sign,
					 field + (field[0] == '+'));
			else
				strcpy(list->name[i], field);
			break;
		}
	}
}

static bool parse_list(const struct show_fields *fields, const char *flag, const char *text,
		       struct field_list *ret_list)
{
	if (!text || field_list_parse(text, ret_list) == 0)
		return true;
	fprintf(stderr,
		"gpusonde %s: %s cannot be \"%.80s\": it must be names of members of --json, separated by "
		"commas, %d at most\n",
		fields->command, flag, text, FIELDS_MAX);
	return false;
}

/* The order would be of the newest interval, and what is shown of a longer time. */
static bool sorts_by_newest(const struct invocation *inv, const struct field_list *sort)
{
	for (unsigned i = 0; inv->flag[FLAG_LAST] && i < sort->n; i++)
		if (STRV_EQ(sort->name[i] + strspn(sort->name[i], "+-"), "utilization_ratio"))
			return true;
	return false;
}

bool show_fields_parse(const struct invocation *inv, struct show_fields *ret_fields)
{
	struct show_fields fields = { .command = inv->command->name,
				      .json = inv->flag[FLAG_JSON],
				      .csv = inv->flag[FLAG_CSV] };
	const char *filter = inv->flag[FLAG_FILTER];

	if (!parse_list(&fields, "--columns", inv->flag[FLAG_COLUMNS], &fields.columns) ||
	    !parse_list(&fields, "--sort", inv->flag[FLAG_ROWS_SORT], &fields.sort))
		return false;
	if (STRV_EQ(fields.command, "ps"))
		replace_short_names(&fields.sort);
	if (sorts_by_newest(inv, &fields.sort)) {
		fprintf(stderr, "gpusonde ps: --last is of a longer time, --sort sm of the newest interval; "
				"leave one of them out\n");
		return false;
	}
	if (filter && field_filter_parse(filter, &fields.filter) < 0) {
		fprintf(stderr,
			"gpusonde %s: --filter cannot be \"%.80s\": it must be tests such as "
			"name~H100,memory_bytes>1GiB, with =, !=, <, >, <=, >= or ~\n",
			fields.command, filter);
		return false;
	}
	if (inv->flag[FLAG_JSON] && fields.csv) {
		fprintf(stderr, "gpusonde %s: --csv and --json are two formats: leave one of them out\n",
			fields.command);
		return false;
	}
	fields.any = fields.csv || fields.columns.n > 0 || fields.sort.n > 0 || filter;
	*ret_fields = fields;
	return true;
}

/* Of a member that is unknown in every row, nobody can tell what members it has. */
static bool is_known_field(const json_t *rows, const json_t *names, const char *name)
{
	char object[FIELD_NAME_MAX];
	const json_t *row;
	size_t i;

	if (json_object_get(names, name))
		return true;
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		snprintf(object, sizeof(object), "%.*s", (int)(dot - name), name);
		if (json_object_get(names, object) && !field_of(json_array_get(rows, 0), object))
			return true;
	}
	json_array_foreach(rows, i, row) {
		if (field_of(row, name))
			return true;
	}
	return false;
}

/* Nearest by letters may be far from what was meant: a name that goes on as it was begun is nearer. */
static const char *nearest_name(const json_t *names, const char *name)
{
	struct nearest nearest;
	const json_t *unused;
	const char *key;

	nearest_init(&nearest, name);
	json_object_foreach((json_t *)names, key, unused) {
		if (strncmp(key, name, strlen(name)) == 0)
			return key;
		nearest_offer(&nearest, key);
	}
	return nearest.best;
}

/* An object, or a list of them, is no cell of a table, and in no order. */
static bool is_one_value(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const json_t *value = field_of(row, name);

		if (json_is_object(value) || json_is_object(json_array_get(value, 0)))
			return false;
	}
	return true;
}

static int refuse_several(const struct show_fields *fields, const json_t *names, const char *name)
{
	char object[FIELD_NAME_MAX + 1];
	const char *first;

	snprintf(object, sizeof(object), "%s.", name);
	first = nearest_name(names, object);
	if (first && strncmp(first, object, strlen(object)) == 0)
		fprintf(stderr, "gpusonde %s: \"%.95s\" has several values: name one, such as %s\n",
			fields->command, name, first);
	else
		fprintf(stderr, "gpusonde %s: \"%.95s\" is a list of objects: --json shows it\n",
			fields->command, name);
	return -EINVAL;
}

/* The first field of @list that no row has is an error. @names: of fields that are in rows, known or not. */
static int check_names(const struct show_fields *fields, const json_t *rows, const json_t *names,
		       const struct field_list *list)
{
	bool one_value = list == &fields->sort || (list == &fields->columns && !fields->json);

	for (unsigned i = 0; i < list->n; i++) {
		const char *name = list->name[i] + (list->name[i][0] == '+' || list->name[i][0] == '-');
		const char *nearest;

		if (is_known_field(rows, names, name)) {
			if (one_value && !is_one_value(rows, name))
				return refuse_several(fields, names, name);
			continue;
		}
		nearest = nearest_name(names, name);
		fprintf(stderr, "gpusonde %s: nothing here has a field \"%.95s\"", fields->command, name);
		if (nearest)
			fprintf(stderr, ": did you mean %s?\n", nearest);
		else
			fprintf(stderr, ": gpusonde %s --json shows all\n", fields->command);
		return -EINVAL;
	}
	return 0;
}

/* As texts 9 would be more than 10 pounds. */
static int check_values(const struct show_fields *fields, const json_t *rows)
{
	const char *name = field_filter_misfit(&fields->filter, rows);

	if (!name)
		return 0;
	fprintf(stderr,
		"gpusonde %s: --filter compares %s with what is no number: it must be one, such as 10, "
		"1.5GiB or 10%%, or null\n",
		fields->command, name);
	return -EINVAL;
}

static void remove_others(const struct show_fields *fields, json_t *rows)
{
	for (size_t i = json_array_size(rows); i-- > 0;)
		if (!field_filter_takes(&fields->filter, json_array_get(rows, i)))
			json_array_remove(rows, i);
}

/* MIG instances as rows of their own behind their GPU's, with what they are found by. -ENOMEM. */
static int split_instances(json_t *document, const char *key)
{
	static const char *const shared[] = { "gpu", "uuid", "name", "pci_bus_id" };
	json_t *rows = json_array(), *row, *instance;
	size_t i, k;
	int r = 0;

	json_array_foreach(json_object_get(document, key), i, row) {
		r |= json_array_append(rows, row);
		json_array_foreach(json_object_get(row, "mig"), k, instance) {
			for (size_t n = 0; n < ARRAY_SIZE(shared); n++)
				if (json_object_get(row, shared[n]))
					r |= json_object_set(instance, shared[n],
							     json_object_get(row, shared[n]));
			r |= json_array_append(rows, instance);
		}
	}
	r |= json_object_set_new(document, key, rows);
	return r < 0 ? -ENOMEM : 0;
}

/* The names of these lists, each of which may be NULL, are those of fields. */
static int check_lists(const struct show_fields *fields, const json_t *rows, const struct field_list *lists[],
		       size_t n)
{
	json_t *names = NULL;
	int r = 0;

	if (json_array_size(rows) == 0)
		return 0;
	r = fields_names(rows, &names);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = lists[i] ? check_names(fields, rows, names, lists[i]) : 0;
	json_decref(names);
	return r;
}

int show_fields_apply(const struct show_fields *fields, json_t *document, const char *key, bool written)
{
	const struct field_list *lists[] = { written ? &fields->columns : NULL, &fields->sort,
					     &fields->filter.names };
	int r = written && (fields->csv || fields->columns.n > 0) ? split_instances(document, key) : 0;
	json_t *rows = json_object_get(document, key);

	if (r == 0)
		r = check_lists(fields, rows, lists, ARRAY_SIZE(lists));
	if (r == 0)
		r = check_values(fields, rows);
	if (r < 0)
		return r;
	remove_others(fields, rows);
	remove_others(fields, json_object_get(document, "traced"));
	if (fields->sort.n > 0)
		r = fields_sort(rows, &fields->sort);
	return r == 0 && written && fields->json && fields->columns.n > 0 ?
		       fields_reduce(rows, &fields->columns) :
		       r;
}

int show_fields_write(const struct show_fields *fields, bool simulated, bool added_up, const json_t *rows,
		      const struct table_options *options, struct strbuf *out)
{
	const struct field_list *lists[] = { &fields->columns };
	int r = check_lists(fields, rows, lists, added_up ? 1 : 0);

	if (r < 0)
		return r;
	if (fields->csv && simulated)
		fprintf(stderr, "gpusonde %s: " TABLE_SIMULATED "\n", fields->command);
	if (fields->csv)
		return fields_csv(rows, fields->columns.n > 0 ? &fields->columns : NULL, out);
	if (simulated)
		table_line(options, out, COLOUR_WARN, TABLE_SIMULATED);
	return table_fields(rows, &fields->columns, options, out);
}
