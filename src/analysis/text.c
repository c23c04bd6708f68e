// SPDX-License-Identifier: Apache-2.0
/* Texts of events: each once, by number. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/private.h"
#include "base/text.h"

static void make_printable(char *text)
{
	utf8_sanitize(text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

int analysis_text(struct analysis *a, const char *text, uint32_t *ret_text)
{
	char clean[ANALYSIS_TEXT_MAX + 1];
	uint32_t found, *begin;
	size_t n, at = a->bytes.len;
	uint64_t key;

	snprintf(clean, sizeof(clean), "%s", text);
	make_printable(clean);
	n = strlen(clean) + 1;
	key = hash_bytes_secret(clean, n);
	if (hashmap_get(&a->text_by, key, &found) && STRV_EQ(analysis_text_get(a, found), clean)) {
		*ret_text = found;
		return 0;
	}
	if (a->texts.n == ANALYSIS_TEXTS_MAX || at + n > ANALYSIS_TEXT_BYTES) {
		a->counts.beyond++;
		return -ENOBUFS;
	}
	strbuf_add(&a->bytes, clean, n);
	begin = a->bytes.failed ? NULL : row_list_add(&a->texts);
	if (!begin || hashmap_put(&a->text_by, key, a->texts.n - 1) < 0) {
		a->texts.n -= begin != NULL;
		return -ENOMEM;
	}
	*begin = (uint32_t)at;
	*ret_text = a->texts.n - 1;
	return 0;
}

const char *analysis_text_get(const struct analysis *a, uint32_t text)
{
	const uint32_t *begins = a->texts.list;

	return text < a->texts.n ? a->bytes.data + begins[text] : "";
}
