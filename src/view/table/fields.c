// SPDX-License-Identifier: Apache-2.0
/* Fields of a user's choice as a table. */
#include "view/fields/fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "view/number.h"
#include "view/table/table.h"

static bool name_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && STRV_EQ(name + n - m, end);
}

/* The unit stands in the name of the field or, of "clock_hertz.sm", of its object. */
static bool has_unit(const char *name, const char *unit)
{
	char object[FIELD_NAME_MAX];

	snprintf(object, sizeof(object), "%.*s", (int)strcspn(name, "."), name);
	return name_ends_with(name, unit) || name_ends_with(object, unit);
}

static void add_cell(struct table *table, const char *name, const json_t *value)
{
	char bytes[BYTES_TEXT];
	struct strbuf text;

	if (json_is_number(value) && has_unit(name, "_bytes")) {
		bytes_text(json_number_value(value), bytes);
		table_cell(table, COLOUR_NONE, bytes);
		return;
	}
	if (json_is_number(value) && has_unit(name, "_ratio")) {
		table_cellf(table, COLOUR_NONE, "%.1f %%", json_number_value(value) * 100);
		return;
	}
	strbuf_init(&text, 0);
	field_add_text(value, &text);
	table->failed |= text.failed;
	table_cell(table, COLOUR_NONE, text.data);
	strbuf_done(&text);
}

static bool is_figure(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		if (json_is_number(field_of(row, name)))
			return true;
	}
	return false;
}

int table_fields(const json_t *rows, const struct field_list *list, const struct table_options *options,
		 struct strbuf *out)
{
	struct table_column columns[FIELDS_MAX];
	struct table table;
	const json_t *row;
	size_t i;
	int r;

	for (unsigned k = 0; k < list->n; k++)
		columns[k] = (struct table_column){ .title = list->name[k],
						    .right = is_figure(rows, list->name[k]),
						    .flexible = !is_figure(rows, list->name[k]) };
	table_init(&table, columns, list->n);
	json_array_foreach(rows, i, row)
		for (unsigned k = 0; k < list->n; k++)
			add_cell(&table, list->name[k], field_of(row, list->name[k]));
	r = table_write(&table, options, out);
	table_done(&table);
	return r;
}
