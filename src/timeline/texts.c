// SPDX-License-Identifier: Apache-2.0
#include "timeline/texts.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "timeline/timeline.h"

void texts_init(struct texts *t)
{
	*t = (struct texts){ .at = { .size = sizeof(uint32_t), .max = TIMELINE_TEXTS_MAX } };
	strbuf_init(&t->bytes, 0);
}

void texts_done(struct texts *t)
{
	strbuf_done(&t->bytes);
	row_list_done(&t->at);
	hashmap_done(&t->by);
}

void texts_clear(struct texts *t)
{
	strbuf_reset(&t->bytes);
	row_list_clear(&t->at);
	hashmap_clear(&t->by);
}

static int text_new(struct texts *t, const char *text, uint64_t key)
{
	size_t begin = t->bytes.len, n = strlen(text) + 1;
	uint32_t *at;
	int r;

	if (begin + n > TIMELINE_TEXT_BYTES || t->at.n == TIMELINE_TEXTS_MAX)
		return -ENOBUFS;
	strbuf_add(&t->bytes, text, n);
	at = t->bytes.failed ? NULL : row_list_add(&t->at);
	if (!at)
		return -ENOMEM;
	*at = (uint32_t)begin;
	r = hashmap_put(&t->by, key, t->at.n - 1);
	if (r < 0)
		t->at.n--;
	return r;
}

int texts_add(struct texts *t, const char *text, size_t n, uint32_t *ret_number)
{
	char clean[TIMELINE_TEXT_MAX];
	uint32_t found;
	uint64_t key;
	int r;

	n = MIN(n, sizeof(clean) - 1);
	memcpy(clean, text, n);
	clean[n] = '\0';
	utf8_sanitize(clean);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	key = hash_bytes_secret(clean, strlen(clean));
	if (hashmap_get(&t->by, key, &found) && STRV_EQ(texts_get(t, found), clean)) {
		*ret_number = found;
		return 0;
	}
	r = text_new(t, clean, key);
	if (r == 0)
		*ret_number = t->at.n - 1;
	return r;
}
