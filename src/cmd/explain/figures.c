// SPDX-License-Identifier: Apache-2.0
#include "cmd/explain/explain.h"

#include <stdio.h>

#include "cmd/top/columns.h"
#include "view/number.h"

static const struct figure {
	enum about about;
	const char *words;
	enum column_kind kind;
	const char *path, *of;
} figures[] = {
#define FIGURE(about_, words_, kind_, path_, of_) { ABOUT_##about_, words_, KIND_##kind_, path_, of_ },
#include "cmd/explain/figures.def"
};

bool figure_at(const json_t *object, const char *path, double *ret_value)
{
	const json_t *member = member_at(object, path);

	if (!json_is_number(member))
		return false;
	*ret_value = json_number_value(member);
	return true;
}

void figure_bytes(const json_t *object, const char *path, char text[static FIGURE_TEXT])
{
	char bytes[BYTES_TEXT] = "-";
	double v;

	if (figure_at(object, path, &v))
		bytes_text(v, bytes);
	snprintf(text, FIGURE_TEXT, "%s", bytes);
}

void figure_copy(json_t *to, const json_t *object, const char *path)
{
	json_t *member = (json_t *)(uintptr_t)member_at(object, path);

	if (json_is_number(member))
		json_object_set(to, path, member);
}

/* "~62.5 GiB"; false: it is not known. */
static bool add_figure(struct strbuf *text, const json_t *object, enum column_kind kind, const char *path)
{
	const struct column column = { .kind = kind, .path = path };
	const struct row row = { .object = object };
	struct value value;

	column_text(NULL, &row, &column, &value);
	if (value.known)
		strbuf_adds(text, value.text);
	return value.known;
}

void explain_figures(struct explain *explain, json_t *subject, enum about kind, const json_t *object,
		     const char *words)
{
	json_t *values = json_object();
	struct strbuf text, one;
	double v;

	strbuf_init(&text, 0);
	strbuf_init(&one, 0);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		const struct figure *f = &figures[i];

		strbuf_reset(&one);
		if (f->about != kind || !add_figure(&one, object, f->kind, f->path))
			continue;
		strbuf_addf(&text, "%s%s %s", text.len > 0 ? ", " : "", f->words, one.data);
		figure_copy(values, object, f->path);
		if (!f->of || !figure_at(object, f->of, &v))
			continue;
		strbuf_adds(&text, " of ");
		add_figure(&text, object, f->kind, f->of);
		figure_copy(values, object, f->of);
	}
	if (text.len > 0)
		explain_say(explain, subject, TOPIC_USE, values, NULL, "%s: %s", words, text.data);
	else
		json_decref(values);
	strbuf_done(&one);
	strbuf_done(&text);
}
