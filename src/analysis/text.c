// SPDX-License-Identifier: Apache-2.0
/* Texts: each once, by number. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/private.h"
#include "base/text.h"

void text_table_init(struct text_table *t, uint32_t max, size_t bytes)
{
	*t = (struct text_table){ .at = { .size = sizeof(uint32_t), .max = max }, .bytes_max = bytes };
	strbuf_init(&t->bytes, bytes);
}

void text_table_done(struct text_table *t)
{
	strbuf_done(&t->bytes);
	row_list_done(&t->at);
	hashmap_done(&t->by);
}

void text_table_clear(struct text_table *t)
{
	strbuf_reset(&t->bytes);
	row_list_clear(&t->at);
	hashmap_clear(&t->by);
}

static void make_printable(char *text)
{
	utf8_sanitize(text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

int text_table_add(struct text_table *t, const char *text, uint32_t *ret_text)
{
	char clean[ANALYSIS_TEXT_MAX + 1];
	uint32_t found, *begin;
	size_t n, at = t->bytes.len;
	uint64_t key;

	snprintf(clean, sizeof(clean), "%s", text);
	make_printable(clean);
	n = strlen(clean) + 1;
	key = hash_bytes_secret(clean, n);
	if (hashmap_get(&t->by, key, &found) && STRV_EQ(text_table_get(t, found), clean)) {
		*ret_text = found;
		return 0;
	}
	if (t->at.n == t->at.max || at + n > t->bytes_max)
		return -ENOBUFS;
	strbuf_add(&t->bytes, clean, n);
	begin = t->bytes.failed ? NULL : row_list_add(&t->at);
	if (!begin || hashmap_put(&t->by, key, t->at.n - 1) < 0) {
		t->at.n -= begin != NULL;
		return -ENOMEM;
	}
	*begin = (uint32_t)at;
	*ret_text = t->at.n - 1;
	return 0;
}

const char *text_table_get(const struct text_table *t, uint32_t text)
{
	const uint32_t *begins = t->at.list;

	return text < t->at.n ? t->bytes.data + begins[text] : "";
}

int analysis_text(struct analysis *a, const char *text, uint32_t *ret_text)
{
	int r = text_table_add(&a->texts, text, ret_text);

	a->counts.beyond += r == -ENOBUFS;
	return r;
}

const char *analysis_text_get(const struct analysis *a, uint32_t text)
{
	return text_table_get(&a->texts, text);
}
