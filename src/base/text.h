// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Well-formed UTF-8 according to RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(const void *p, size_t n);

/* Bytes of the character that @text, which is not empty, begins with; 0: none. */
size_t utf8_length(const char *text);

/* Valid UTF-8 without control characters. */
bool text_is_printable(const char *s);

/* Makes @s valid UTF-8 in place: each invalid byte becomes '?'. */
void utf8_sanitize(char *s);

/* The character at *@s, of valid UTF-8, which is moved behind it. */
uint32_t utf8_next(const char **s);

/*
 * Whether a character may do something to a terminal, or to the text around it: C0, DEL, C1; line and
 * paragraph separators; bidirectional marks, embeddings and isolates.
 */
bool character_is_unsafe(uint32_t c);

/*
 * Columns of a terminal that a character takes up. An approximation sufficient for names: combining marks
 * have no width, East Asian characters and emoji two columns.
 */
unsigned character_width(uint32_t c);

/*
 * Parse whole strings: no leading or trailing space, no sign unless stated. 0; -EINVAL: invalid; -ERANGE: the
 * value does not fit.
 */
int parse_u64(const char *s, uint64_t *ret_value);

/* May carry a minus sign. */
int parse_i64(const char *s, int64_t *ret_value);

/* A finite decimal number, with '.' for its point in every locale. */
int parse_double(const char *s, double *ret_value);

/*
 * A number, decimals allowed, and its unit: ns, us, ms, s, m (or min), h, d. "0" needs none. The result is in
 * nanoseconds, truncated.
 */
int parse_duration_ns(const char *s, int64_t *ret_ns);

/* The same, or a number of seconds without a unit. -ERANGE: beyond @min_s or @max_s. */
int parse_seconds_ns(const char *s, double min_s, double max_s, int64_t *ret_ns);

/* yes/no, true/false, on/off, 1/0, in lower case. */
int parse_bool(const char *s, bool *ret_value);
