// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads untrusted text that need not end in NUL: a cursor never looks at or past @end. A function that
 * fails leaves the cursor where it was, so alternatives can be tried in turn. A token is a cursor, too,
 * over the part that was read, and points into the same memory.
 */
struct cursor {
	const char *p;
	const char *end;
};

/* @p may be NULL if @n is 0. */
static inline struct cursor cursor_over(const void *p, size_t n)
{
	return (struct cursor){ .p = p, .end = n ? (const char *)p + n : p };
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline bool cursor_eof(const struct cursor *c)
{
	return c->p >= c->end;
}

/* Blanks and tabs; not line ends. */
void cursor_skip_space(struct cursor *c);

/* If @literal comes next, skips it and returns true. */
bool cursor_literal(struct cursor *c, const char *literal);

/* Digits only, no sign. -EINVAL when none comes next, -ERANGE beyond 64 bits. */
int cursor_u64(struct cursor *c, uint64_t *ret_value);

/* Hexadecimal digits without 0x. Errors as cursor_u64(). */
int cursor_hex(struct cursor *c, uint64_t *ret_value);

/* Returns the text before the next @ch and skips both; -EINVAL if there is no @ch. */
int cursor_until(struct cursor *c, char ch, struct cursor *ret_token);

/* True when all that is left equals @text. */
bool cursor_equals(const struct cursor *c, const char *text);
