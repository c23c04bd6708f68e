// SPDX-License-Identifier: Apache-2.0
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STRBUF_FIRST_CAP = 64,
	U64_DIGITS = 20, /* 18446744073709551615 */
};

/* Shared text of unallocated buffers; never written, because cap is 0. */
static char empty_string[1];

void strbuf_init(struct strbuf *sb, size_t limit)
{
	*sb = (struct strbuf){ .data = empty_string, .limit = limit };
}

void strbuf_done(struct strbuf *sb)
{
	if (!sb)
		return;
	if (sb->cap > 0)
		free(sb->data);
	strbuf_init(sb, sb->limit);
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	sb->failed = false;
	if (sb->cap > 0)
		sb->data[0] = '\0';
}

void strbuf_truncate(struct strbuf *sb, size_t len)
{
	if (len >= sb->len)
		return;
	sb->len = len;
	sb->data[len] = '\0';
}

/* Reserves space for @n more bytes and the NUL. */
static bool reserve(struct strbuf *sb, size_t n)
{
	size_t want, cap;
	char *data;

	if (sb->failed)
		return false;
	if (n >= SIZE_MAX / 2 - sb->len || (sb->limit > 0 && n > sb->limit - sb->len))
		goto fail;
	want = sb->len + n + 1;
	if (want <= sb->cap)
		return true;
	cap = MAX(sb->cap * 2, (size_t)STRBUF_FIRST_CAP);
	cap = MAX(cap, want);
	if (sb->limit > 0)
		cap = MIN(cap, sb->limit + 1);
	data = realloc(sb->cap > 0 ? sb->data : NULL, cap);
	if (!data)
		goto fail;
	data[sb->len] = '\0';
	sb->data = data;
	sb->cap = cap;
	return true;
fail:
	sb->failed = true;
	return false;
}

void strbuf_add(struct strbuf *sb, const void *p, size_t n)
{
	if (n == 0 || !reserve(sb, n))
		return;
	memcpy(sb->data + sb->len, p, n);
	sb->len += n;
	sb->data[sb->len] = '\0';
}

void strbuf_adds(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

void strbuf_addc(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	char *tail;
	size_t room;
	int n;

	if (!reserve(sb, 0))
		return;
	tail = sb->data + sb->len;
	room = sb->cap - sb->len;
	va_start(ap, fmt);
	n = vsnprintf(tail, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < room) {
		sb->len += (size_t)n;
		return;
	}
	*tail = '\0';
	if (n < 0) {
		sb->failed = true;
		return;
	}
	if (!reserve(sb, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(sb->data + sb->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	sb->len += (size_t)n;
}

void strbuf_add_u64(struct strbuf *sb, uint64_t v)
{
	char digits[U64_DIGITS];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	strbuf_add(sb, digits + at, sizeof(digits) - at);
}

void strbuf_add_i64(struct strbuf *sb, int64_t v)
{
	if (v < 0)
		strbuf_addc(sb, '-');
	strbuf_add_u64(sb, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

char *strbuf_take(struct strbuf *sb)
{
	char *text = NULL;

	if (!sb->failed) {
		text = sb->cap > 0 ? sb->data : strdup("");
		sb->cap = 0;
	}
	strbuf_done(sb);
	return text;
}

void strbuf_add_wrapped(struct strbuf *sb, const char *text, const char *prefix, size_t width)
{
	size_t room = width - strlen(prefix);

	while (*text) {
		size_t n = strlen(text);

		if (n > room) {
			for (n = room; n > 0 && (text[n] != ' ' || text[n - 1] == ' '); n--)
				;
			n = n ? n : room;
		}
		strbuf_addf(sb, "%s%.*s\n", prefix, (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}
