// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

/*
 * A growing string with a limit and a sticky error, so that a renderer can append hundreds of times and check
 * once. After the first failure (out of memory or limit exceeded) every further append has no effect; the
 * text before it remains readable.
 *
 * @data is never NULL and always NUL-terminated at @len (text with embedded NULs is stored, too).
 */
struct strbuf {
	char *data;
	size_t len;
	size_t cap; /* allocated bytes; 0 while @data is the shared empty string */
	size_t limit; /* maximum @len; 0: unlimited */
	bool failed;
};

void strbuf_init(struct strbuf *sb, size_t limit);
void strbuf_done(struct strbuf *sb);

/* Empties the buffer and clears its failure; the memory is reused. */
void strbuf_reset(struct strbuf *sb);
/* Forgets all but the first @len bytes, which there are. */
void strbuf_truncate(struct strbuf *sb, size_t len);

void strbuf_add(struct strbuf *sb, const void *p, size_t n);
void strbuf_adds(struct strbuf *sb, const char *s);
void strbuf_addc(struct strbuf *sb, char c);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) _printf_(2, 3);
void strbuf_add_u64(struct strbuf *sb, uint64_t v);
void strbuf_add_i64(struct strbuf *sb, int64_t v);
/* Lines of at most @width bytes, each with this prefix, divided between words. */
void strbuf_add_wrapped(struct strbuf *sb, const char *text, const char *prefix, size_t width);

/* Returns the text as a heap string owned by the caller, or NULL if the buffer failed; @sb is then empty. */
char *strbuf_take(struct strbuf *sb);
