// SPDX-License-Identifier: Apache-2.0
/*
 * Comma-separated values: RFC 4180, but for lines that end as they do on this system. Names that users choose
 * may have control characters: as in tables they are "?".
 */
#include "view/fields/fields.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "view/table/table.h"

/* Quoted where it must be. */
static void add_quoted(struct strbuf *out, const char *text)
{
	if (!strpbrk(text, ",\"")) {
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
	struct strbuf text, clean;

	strbuf_init(&text, 0);
	strbuf_init(&clean, 0);
	field_add_text(value, &text);
	text_clean(&clean, text.data ? text.data : "");
	add_quoted(out, clean.data ? clean.data : "");
	out->failed |= text.failed || clean.failed;
	strbuf_done(&clean);
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

static int names_of(const struct field_list *list, json_t **ret_names)
{
	json_t *names = json_object();

	for (unsigned i = 0; names && i < list->n; i++)
		if (json_object_set_new(names, list->name[i], json_true()) < 0) {
			json_decref(names);
			return -ENOMEM;
		}
	*ret_names = names;
	return names ? 0 : -ENOMEM;
}

int fields_csv(const json_t *rows, const struct field_list *list, struct strbuf *out)
{
	json_t *names = NULL;
	int r = list ? names_of(list, &names) : fields_names(rows, &names);
	const json_t *row;
	size_t i;

	if (r < 0)
		return r;
	csv_row(out, NULL, names);
	json_array_foreach(rows, i, row)
		csv_row(out, row, names);
	json_decref(names);
	return out->failed ? -ENOMEM : 0;
}
