// SPDX-License-Identifier: Apache-2.0
/* Comma-separated values: RFC 4180, but for lines that end as they do on this system. */
#include "view/fields.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* Quoted where it must be. */
static void add_quoted(struct strbuf *out, const char *text)
{
	if (!strpbrk(text, ",\"\n\r")) {
		strbuf_adds(out, text);
		return;
	}
	strbuf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			strbuf_addc(out, '"');
		strbuf_addc(out, *text);
	}
	strbuf_addc(out, '"');
}

static void add_value(struct strbuf *out, const json_t *value)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	field_add_text(value, &text);
	add_quoted(out, text.data ? text.data : "");
	out->failed |= text.failed;
	strbuf_done(&text);
}

static void csv_row(struct strbuf *out, const json_t *row, const json_t *names)
{
	const char *name;
	const json_t *unused;
	bool first = true;

	json_object_foreach((json_t *)names, name, unused) {
		if (!first)
			strbuf_addc(out, ',');
		first = false;
		if (row)
			add_value(out, field_of(row, name));
		else
			add_quoted(out, name);
	}
	strbuf_addc(out, '\n');
}

static json_t *names_of(const struct field_list *list)
{
	json_t *names = json_object();

	for (unsigned i = 0; names && i < list->n; i++)
		if (json_object_set_new(names, list->name[i], json_true()) < 0) {
			json_decref(names);
			return NULL;
		}
	return names;
}

int fields_csv(const json_t *rows, const struct field_list *list, struct strbuf *out)
{
	json_t *names = list ? names_of(list) : fields_names(rows);
	const json_t *row;
	size_t i;

	if (!names)
		return -ENOMEM;
	csv_row(out, NULL, names);
	json_array_foreach(rows, i, row)
		csv_row(out, row, names);
	json_decref(names);
	return out->failed ? -ENOMEM : 0;
}
