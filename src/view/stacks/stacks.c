// SPDX-License-Identifier: Apache-2.0
#include "view/stacks/stacks.h"

#include <inttypes.h>
#include <math.h>

/* A name's own semicolons and line ends would be separators. */
static void add_folded(const char *text, struct strbuf *out)
{
	for (; *text; text++)
		strbuf_addc(out, *text == ';' || *text == '\n' ? ':' : *text);
}

static void add_place(const struct stack_place *place, struct strbuf *out)
{
	add_folded(place->name, out);
	if (!place->file[0])
		return;
	strbuf_adds(out, " (");
	add_folded(place->file, out);
	if (place->line)
		strbuf_addf(out, ":%" PRIu32, place->line);
	strbuf_addc(out, ')');
}

static void add_line(const struct stack_page *page, const struct stack_row *row, enum stack_weight weight,
		     struct strbuf *out)
{
	add_folded(row->process, out);
	for (uint32_t p = row->n; p > 0; p--) {
		strbuf_addc(out, ';');
		add_place(&page->places[row->places[p - 1]], out);
	}
	strbuf_addc(out, ';');
	add_folded(row->call, out);
	strbuf_addf(out, " %lld\n", llround(row->weights[weight]));
}

size_t view_stacks_folded(const struct stack_page *page, enum stack_weight weight, size_t from, size_t most,
			  struct strbuf *out)
{
	for (; from < page->rows_n && out->len < most; from++)
		if (llround(page->rows[from].weights[weight]) > 0)
			add_line(page, &page->rows[from], weight, out);
	return from;
}

void view_stacks_remarks(const struct stack_page *page, struct strbuf *out)
{
	if (page->estimated)
		strbuf_adds(out, "# estimated: from a sample of the calls\n");
	/* A line that ended in a number would be read as a stack. */
	if (page->incomplete)
		strbuf_addf(out, "# incomplete: %s.\n", page->incomplete);
}
