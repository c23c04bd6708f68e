// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of a snapshot as HTML, for browsers without JavaScript: what table.h writes for a terminal, as
 * elements. Every text that is not ours goes through add_escaped().
 */
#include <errno.h>

#include "base/macro.h"
#include "view/table/table.h"

static const char *const classes[COLOURS] = {
	[COLOUR_NONE] = "",     [COLOUR_HEAD] = "head", [COLOUR_GOOD] = "good",
	[COLOUR_WARN] = "warn", [COLOUR_BAD] = "bad",   [COLOUR_DIM] = "dim",
};

static void add_escaped(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"' || *text == '\'')
			strbuf_addf(out, "&#%d;", *text);
		else
			strbuf_addc(out, *text);
	}
}

void html_line(struct strbuf *out, enum table_colour colour, const char *text)
{
	strbuf_addf(out, "<p class=\"%s\">", classes[colour]);
	add_escaped(out, text);
	strbuf_adds(out, "</p>\n");
}

static void add_td(const struct table *table, size_t i, struct strbuf *out)
{
	const struct table_cell *cell = &table->cells[i];
	const struct table_column *column = &table->columns[i % table->columns_n];

	strbuf_addf(out, "<td class=\"%s%s\">", column->right ? "right " : "", classes[cell->colour]);
	add_escaped(out, table->text.data + cell->at);
	strbuf_adds(out, "</td>");
}

int html_table(const struct table *table, struct strbuf *out)
{
	strbuf_adds(out, "<table>\n<tr>");
	for (unsigned i = 0; i < table->columns_n; i++) {
		const struct table_column *column = &table->columns[i];

		if (!*column->title) { /* of heads of rows: it has no name of its own */
			strbuf_adds(out, "<td></td>");
			continue;
		}
		strbuf_addf(out, "<th scope=\"col\"%s>", column->right ? " class=\"right\"" : "");
		add_escaped(out, column->title);
		strbuf_adds(out, "</th>");
	}
	for (size_t i = 0; i < table->cells_n; i++) {
		if (i % table->columns_n == 0)
			strbuf_adds(out, "</tr>\n<tr>");
		add_td(table, i, out);
	}
	strbuf_adds(out, "</tr>\n</table>\n");
	if (out->failed)
		return out->limit > 0 ? -E2BIG : -ENOMEM;
	return 0;
}

static int add_section(const struct snapshot *s, const char *title,
		       int (*table)(const struct snapshot *s, const struct table_options *options,
				    struct strbuf *out),
		       struct strbuf *out)
{
	static const struct table_options html = { .html = true };

	strbuf_addf(out, "<h2>%s</h2>\n", title);
	return table(s, &html, out);
}

/* The reader chooses that, since a screen reader reads what is loaded again from its beginning. */
static void add_choice(bool reload, struct strbuf *out)
{
	strbuf_adds(out,
		    reload ? "<p>Loaded again every five seconds: <a href=\"plain\">stop that</a></p>\n" :
			     "<p>As it was when it was loaded: <a href=\"plain?reload=yes\">load it again "
			     "every five seconds</a></p>\n");
}

int view_html(const struct snapshot *s, const char *banner, bool reload, struct strbuf *out)
{
	int r;

	strbuf_adds(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
			 "<title>gpusonde</title>\n<link rel=\"stylesheet\" href=\"page/style.css\">\n");
	strbuf_adds(out, reload ? "<meta http-equiv=\"refresh\" content=\"5\">\n" : "");
	strbuf_adds(out, "</head>\n<body class=\"plain\">\n");
	if (banner) {
		strbuf_adds(out, "<p class=\"banner\" role=\"alert\">");
		add_escaped(out, banner);
		strbuf_adds(out, "</p>\n");
	}
	strbuf_adds(out, "<main>\n<h1>gpusonde on ");
	add_escaped(out, s->hostname);
	strbuf_adds(out, "</h1>\n");
	add_choice(reload, out);
	r = add_section(s, "GPUs", table_gpus, out);
	if (r == 0)
		r = add_section(s, "Processes", table_processes, out);
	if (r == 0)
		r = add_section(s, "Node", table_node, out);
	strbuf_adds(out, "</main>\n</body>\n</html>\n");
	return r;
}
