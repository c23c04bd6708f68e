// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/macro.h"

/*
 * The length of the character that starts at @s with @n > 0 bytes left, or 0 if none does. The bounds
 * of the second byte are table 3-7 of the Unicode standard.
 */
static size_t utf8_char(const unsigned char *s, size_t n)
{
	unsigned char lead = s[0], low = 0x80, high = 0xbf;
	size_t len;

	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (n < len || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

size_t utf8_length(const char *text)
{
	/* A zero byte goes on no character, so that nothing behind it is read. */
	return utf8_char((const unsigned char *)text, 4);
}

bool utf8_valid(const void *p, size_t n)
{
	const unsigned char *s = p;

	while (n > 0) {
		size_t len = utf8_char(s, n);

		if (len == 0)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

bool text_is_printable(const char *s)
{
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return utf8_valid(s, strlen(s));
}

void utf8_sanitize(char *s)
{
	unsigned char *at = (unsigned char *)s;
	size_t n = strlen(s);

	while (n > 0) {
		size_t len = utf8_char(at, n);

		if (len == 0) {
			*at = '?';
			len = 1;
		}
		at += len;
		n -= len;
	}
}

uint32_t utf8_next(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	unsigned more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
	uint32_t c = more == 0 ? *p : *p & (0x3fu >> more);

	for (p++; more > 0; more--, p++)
		c = c << 6 | (*p & 0x3fu);
	*s = (const char *)p;
	return c;
}

bool character_is_unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0x200e ||
	       c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

unsigned character_width(uint32_t c)
{
	if ((c >= 0x300 && c <= 0x36f) || c == 0x200b || c == 0x200c || c == 0x200d ||
	    (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
	    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd))
		return 2;
	return 1;
}

int parse_u64(const char *s, uint64_t *ret_value)
{
	struct cursor c = cursor_over(s, strlen(s));
	uint64_t value;
	int r = cursor_u64(&c, &value);

	if (r < 0)
		return r;
	if (!cursor_eof(&c))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int parse_i64(const char *s, int64_t *ret_value)
{
	bool negative = s[0] == '-';
	uint64_t magnitude;
	int r = parse_u64(s + negative, &magnitude);

	if (r < 0)
		return r;
	if (magnitude > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*ret_value = negative ? (int64_t)-magnitude : (int64_t)magnitude;
	return 0;
}

int parse_double(const char *s, double *ret_value)
{
	/* The simulated driver parses within programs whose locale may use another decimal point. */
	locale_t plain;
	double value;
	char *end;

	if (s[0] == '\0' || s[0] == '+' || s[strspn(s, "0123456789+-.eE")] != '\0')
		return -EINVAL;
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!plain)
		return -ENOMEM;
	value = strtod_l(s, &end, plain);
	freelocale(plain);
	if (*end != '\0' || end == s)
		return -EINVAL;
	if (!isfinite(value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_seconds_ns(const char *s, double min_s, double max_s, int64_t *ret_ns)
{
	double seconds;
	int64_t ns;
	int r;

	if (parse_double(s, &seconds) < 0) {
		r = parse_duration_ns(s, &ns);
		if (r < 0)
			return r;
		seconds = (double)ns / NSEC_PER_SEC;
	}
	if (seconds < min_s || seconds > max_s)
		return -ERANGE;
	*ret_ns = (int64_t)(seconds * NSEC_PER_SEC);
	return 0;
}

int parse_bool(const char *s, bool *ret_value)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "yes", true }, { "true", true },   { "on", true },   { "1", true },
		{ "no", false }, { "false", false }, { "off", false }, { "0", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (STRV_EQ(s, words[i].word)) {
			*ret_value = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

static int64_t unit_ns(const struct cursor *unit)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },
		{ "m", 60 * NSEC_PER_SEC },
		{ "min", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
		{ "d", 86400 * NSEC_PER_SEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (cursor_equals(unit, units[i].name))
			return units[i].ns;
	}
	return 0;
}

/* The digits after the point, each worth a tenth of the one before; @unit's nanoseconds are whole. */
static int64_t fraction_ns(struct cursor *digits, int64_t unit)
{
	__extension__ typedef unsigned __int128 wide;
	wide numerator = 0, denominator = 1;

	for (int i = 0; !cursor_eof(digits) && *digits->p >= '0' && *digits->p <= '9'; digits->p++, i++) {
		/* 18 decimals of a day are below a nanosecond; the rest cannot matter. */
		if (i < 18) {
			numerator = numerator * 10 + (unsigned)(*digits->p - '0');
			denominator *= 10;
		}
	}
	return (int64_t)(numerator * (wide)unit / denominator);
}

int parse_duration_ns(const char *s, int64_t *ret_ns)
{
	struct cursor c = cursor_over(s, strlen(s));
	struct cursor digits = { NULL, NULL }, unit;
	uint64_t whole;
	int64_t ns, scale;
	int r;

	if (STRV_EQ(s, "0")) {
		*ret_ns = 0;
		return 0;
	}
	r = cursor_u64(&c, &whole);
	if (r < 0)
		return r;
	if (cursor_literal(&c, ".")) {
		digits = c;
		while (!cursor_eof(&c) && *c.p >= '0' && *c.p <= '9')
			c.p++;
		if (c.p == digits.p)
			return -EINVAL;
	}
	unit = c;
	scale = unit_ns(&unit);
	if (scale == 0)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, scale, &ns) ||
	    __builtin_add_overflow(ns, fraction_ns(&digits, scale), &ns))
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}
