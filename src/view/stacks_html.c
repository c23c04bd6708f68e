// SPDX-License-Identifier: Apache-2.0
/*
 * The page has the rows as JSON, and a script that draws them: no other file, no network. Texts are in
 * strings of the JSON only, with no character that HTML knows.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/macro.h"
#include "view/stacks_private.h"

static const char page_head[] =
#include "view/stacks_page_head.inc"
	;
static const char page_tail[] =
#include "view/stacks_page_tail.inc"
	;

static void add_string(const char *text, struct strbuf *out)
{
	strbuf_addc(out, '"');
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at < 0x20 || *at == '"' || *at == '\\' || *at == '<' || *at == '>' || *at == '&' ||
		    *at == '\'')
			strbuf_addf(out, "\\u%04x", *at);
		else
			strbuf_addc(out, (char)*at);
	}
	strbuf_addc(out, '"');
}

static void add_weights(const struct stack_page *page, struct strbuf *out)
{
	const char *comma = "";

	strbuf_adds(out, "\"weights\":[");
	for (unsigned i = 0; i < STACK_WEIGHTS; i++) {
		strbuf_addf(out, "%s{\"title\":\"%s\",\"unit\":\"%s\",\"known\":%s}", comma,
			    stack_weight_infos[i].title, stack_weight_infos[i].unit,
			    stack_weight_is_known(page, (enum stack_weight)i) ? "true" : "false");
		comma = ",";
	}
	strbuf_adds(out, "],\n");
}

static void add_stack_row(const struct stack_page *page, const struct stack_row *row, struct strbuf *out)
{
	strbuf_addc(out, '[');
	add_string(row->process, out);
	strbuf_addc(out, ',');
	add_string(row->call, out);
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		strbuf_addf(out, ",%lld", llround(row->weights[i]));
	for (uint32_t p = row->n; p > 0; p--) {
		const struct stack_place *place = &page->places[row->places[p - 1]];

		strbuf_addc(out, ',');
		add_string(place->name, out);
		strbuf_addc(out, ',');
		add_string(place->file, out);
		strbuf_addf(out, ",%" PRIu32, place->line);
	}
	strbuf_addc(out, ']');
}

int view_stacks_html(const struct stack_page *page, struct strbuf *out)
{
	const char *comma = "";

	strbuf_adds(out, page_head);
	strbuf_addf(out, "{\"estimated\":%s,\"incomplete\":", page->estimated ? "true" : "false");
	add_string(page->incomplete ? page->incomplete : "", out);
	strbuf_addc(out, ',');
	add_weights(page, out);
	strbuf_adds(out, "\"rows\":[\n");
	for (size_t i = 0; i < page->rows_n; i++) {
		strbuf_adds(out, comma);
		add_stack_row(page, &page->rows[i], out);
		comma = ",\n";
	}
	strbuf_adds(out, "]}\n");
	strbuf_adds(out, page_tail);
	return out->failed ? -ENOMEM : 0;
}
