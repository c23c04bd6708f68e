// SPDX-License-Identifier: Apache-2.0
/*
 * The page has its data as JSON, and a script that draws them: no other file, no network. Each text and each
 * place is there once, and rows have their numbers. Texts are in strings of the JSON only, with no character
 * that HTML knows.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "view/stacks/stacks.h"

static const char page_head[] =
#include "view/stacks_page_head.inc"
	;
static const char page_tail[] =
#include "view/stacks_page_tail.inc"
	;

/* The texts of a page, in the order in which they are met. */
struct texts {
	struct hashmap by;
	const char **table;
	uint32_t n, cap;
	int r;
};

static uint32_t text_number(struct texts *t, const char *text)
{
	uint64_t key = hash_bytes_secret(text, strlen(text) + 1);
	uint32_t i;

	if (hashmap_get(&t->by, key, &i) && strcmp(t->table[i], text) == 0)
		return i;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? 2 * t->cap : 256;
		const char **grown = reallocarray(t->table, cap, sizeof(*grown));

		if (!grown) {
			t->r = -ENOMEM;
			return 0;
		}
		t->table = grown;
		t->cap = cap;
	}
	t->table[t->n] = text;
	if (hashmap_put(&t->by, key, t->n) < 0)
		t->r = -ENOMEM;
	return t->n++;
}

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
	strbuf_adds(out, "\"weights\":[");
	for (unsigned i = 0; i < STACK_WEIGHTS; i++) {
		const struct stack_weight_info *info = &stack_weight_infos[i];

		strbuf_addf(out, "%s{\"name\":\"%s\",\"title\":\"%s\",\"unit\":\"%s\",\"known\":%s}",
			    i ? "," : "", info->name, info->title, info->unit,
			    stack_weight_is_known(page, (enum stack_weight)i) ? "true" : "false");
	}
	strbuf_adds(out, "],\n");
}

/* [PID, process, call, a number for each weight, places, the outermost first] */
static void add_stack_row(struct texts *texts, const struct stack_row *row, struct strbuf *out)
{
	uint32_t process = text_number(texts, row->process), call = text_number(texts, row->call);

	strbuf_addf(out, "[%" PRIu32 ",%" PRIu32 ",%" PRIu32, row->pid, process, call);
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		strbuf_addf(out, ",%lld", llround(row->weights[i]));
	for (uint32_t p = row->n; p > 0; p--)
		strbuf_addf(out, ",%" PRIu32, row->places[p - 1]);
	strbuf_addc(out, ']');
}

int view_stacks_json(const struct stack_page *page, struct strbuf *out)
{
	struct texts texts = { .r = 0 };

	strbuf_addf(out, "{\"begin_unix_ns\":%" PRId64 ",\"duration_ns\":%" PRId64 ",\"estimated\":%s,",
		    page->real_ns, page->duration_ns, page->estimated ? "true" : "false");
	strbuf_adds(out, "\"incomplete\":");
	add_string(page->incomplete ? page->incomplete : "", out);
	strbuf_addc(out, ',');
	add_weights(page, out);
	strbuf_adds(out, "\"rows\":[");
	for (size_t i = 0; i < page->rows_n; i++) {
		strbuf_adds(out, i ? ",\n" : "\n");
		add_stack_row(&texts, &page->rows[i], out);
	}
	strbuf_adds(out, "],\n\"places\":[");
	for (size_t i = 0; i < page->places_n; i++) {
		const struct stack_place *place = &page->places[i];

		uint32_t name = text_number(&texts, place->name), file = text_number(&texts, place->file);

		strbuf_addf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i ? "," : "", name, file,
			    place->line);
	}
	strbuf_adds(out, "],\n\"texts\":[");
	for (uint32_t i = 0; i < texts.n; i++) {
		strbuf_adds(out, i ? ",\n" : "\n");
		add_string(texts.table[i], out);
	}
	strbuf_adds(out, "]}\n");
	free(texts.table);
	hashmap_done(&texts.by);
	return texts.r < 0 ? texts.r : out->failed ? -ENOMEM : 0;
}

int view_stacks_html(const struct stack_page *page, struct strbuf *out)
{
	int r;

	strbuf_adds(out, page_head);
	r = view_stacks_json(page, out);
	strbuf_adds(out, page_tail);
	return r < 0 ? r : out->failed ? -ENOMEM : 0;
}
