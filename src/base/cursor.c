// SPDX-License-Identifier: Apache-2.0
#include "base/cursor.h"

#include <errno.h>
#include <string.h>

void cursor_skip_space(struct cursor *c)
{
	while (!cursor_eof(c) && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

bool cursor_literal(struct cursor *c, const char *literal)
{
	size_t n = strlen(literal);

	if (cursor_left(c) < n || memcmp(c->p, literal, n) != 0)
		return false;
	c->p += n;
	return true;
}

/* The value of @ch as a digit, or a number above every base. Not isdigit(), which depends on the locale. */
static unsigned digit_of(char ch)
{
	if (ch >= '0' && ch <= '9')
		return (unsigned)(ch - '0');
	if (ch >= 'a' && ch <= 'f')
		return (unsigned)(ch - 'a') + 10;
	if (ch >= 'A' && ch <= 'F')
		return (unsigned)(ch - 'A') + 10;
	return 99;
}

static int read_number(struct cursor *c, unsigned base, uint64_t *ret_value)
{
	const char *at = c->p;
	uint64_t value = 0;

	for (; at < c->end && digit_of(*at) < base; at++) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit_of(*at), &value))
			return -ERANGE;
	}
	if (at == c->p)
		return -EINVAL;
	c->p = at;
	*ret_value = value;
	return 0;
}

int cursor_u64(struct cursor *c, uint64_t *ret_value)
{
	return read_number(c, 10, ret_value);
}

int cursor_hex(struct cursor *c, uint64_t *ret_value)
{
	return read_number(c, 16, ret_value);
}

int cursor_until(struct cursor *c, char ch, struct cursor *ret_token)
{
	const char *found = cursor_eof(c) ? NULL : memchr(c->p, ch, cursor_left(c));

	if (!found)
		return -EINVAL;
	*ret_token = (struct cursor){ .p = c->p, .end = found };
	c->p = found + 1;
	return 0;
}

bool cursor_equals(const struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	return cursor_left(c) == n && (n == 0 || memcmp(c->p, text, n) == 0);
}
