// SPDX-License-Identifier: Apache-2.0
#include "view/container/go_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "view/number.h"

enum {
	DIGITS_MAX = 17, /* tell any two doubles apart */
	MILLIONTHS_DIGITS = 6,
};

/* ---- strings ---- */

static const char *short_escape(unsigned char c)
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\b':
		return "\\b";
	case '\f':
		return "\\f";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	default:
		return NULL;
	}
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x80 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

static void add_ascii(struct strbuf *out, unsigned char c)
{
	const char *escape = short_escape(c);

	if (escape)
		strbuf_adds(out, escape);
	else
		strbuf_addf(out, "\\u%04x", c);
}

/* Adds the character that @text begins with, which is not ASCII; returns its bytes. */
static size_t add_character(struct strbuf *out, const char *text)
{
	size_t n = utf8_length(text);

	if (n == 0) {
		strbuf_adds(out, "\\ufffd");
		return 1;
	}
	if (strncmp(text, "\u2028", 3) == 0 || strncmp(text, "\u2029", 3) == 0)
		strbuf_addf(out, "\\u202%c", text[2] == '\xa8' ? '8' : '9');
	else
		strbuf_add(out, text, n);
	return n;
}

void go_json_string(struct strbuf *out, const char *text)
{
	strbuf_addc(out, '"');
	while (*text) {
		size_t n = 0;

		while (is_plain((unsigned char)text[n]))
			n++;
		strbuf_add(out, text, n);
		text += n;
		if (!*text)
			break;
		if ((unsigned char)*text < 0x80)
			add_ascii(out, (unsigned char)*text++);
		else
			text += add_character(out, text);
	}
	strbuf_addc(out, '"');
}

/* ---- numbers ---- */

/* Digits without point or trailing zeros: 0.DIGITS times ten to the @exponent. */
struct decimal {
	char digits[DIGITS_MAX + 1];
	int n, exponent;
};

static double value_of(const struct decimal *d)
{
	char text[DIGITS_MAX + 16];

	snprintf(text, sizeof(text), "0.%se%d", d->digits, d->exponent);
	return strtod(text, NULL);
}

/* The decimal of @n digits that is nearest to @v, which is positive. */
static void nearest(double v, int n, struct decimal *ret)
{
	char text[DIGITS_MAX + 16];

	snprintf(text, sizeof(text), "%.*e", n - 1, v);
	ret->digits[0] = text[0];
	if (n > 1)
		memcpy(ret->digits + 1, text + 2, (size_t)n - 1);
	ret->digits[n] = '\0';
	ret->n = n;
	ret->exponent = atoi(strchr(text, 'e') + 1) + 1;
}

/* The next one above; false: it has a digit more. */
static bool step_up(struct decimal *d)
{
	int i = d->n - 1;

	while (i >= 0 && d->digits[i] == '9')
		d->digits[i--] = '0';
	if (i < 0)
		return false;
	d->digits[i]++;
	return true;
}

/*
 * The fewest digits that are read as @v again. Below a power of two doubles are closer together than above
 * it, so that there the nearest decimal may be read as the double below, and the next one as @v.
 */
static void shortest(double v, struct decimal *ret)
{
	int exponent;
	bool uneven = frexp(v, &exponent) == 0.5;

	for (int n = 1; n <= DIGITS_MAX; n++) {
		nearest(v, n, ret);
		if (value_of(ret) == v)
			break;
		if (uneven && step_up(ret) && value_of(ret) == v)
			break;
	}
	while (ret->n > 1 && ret->digits[ret->n - 1] == '0')
		ret->digits[--ret->n] = '\0';
}

static void add_zeros(struct strbuf *out, int n)
{
	for (int i = 0; i < n; i++)
		strbuf_addc(out, '0');
}

static void add_plain(struct strbuf *out, const struct decimal *d)
{
	int whole = CLAMP(d->exponent, 0, d->n);

	if (d->exponent <= 0) {
		strbuf_adds(out, "0.");
		add_zeros(out, -d->exponent);
	}
	strbuf_add(out, d->digits, (size_t)whole);
	add_zeros(out, d->exponent - d->n);
	if (d->exponent > 0 && whole < d->n)
		strbuf_addc(out, '.');
	strbuf_adds(out, d->digits + whole);
}

/* Small exponents have one digit, large ones at least two. */
static void add_scientific(struct strbuf *out, const struct decimal *d)
{
	int exponent = d->exponent - 1;

	strbuf_addc(out, d->digits[0]);
	if (d->n > 1)
		strbuf_addf(out, ".%s", d->digits + 1);
	strbuf_addf(out, "e%c%d", exponent < 0 ? '-' : '+', abs(exponent));
}

/* Most numbers of a page: whole ones, and at most six decimals. False: it is none. */
static bool add_millionths(struct strbuf *out, double v)
{
	static const double million = 1e6;
	char decimals[MILLIONTHS_DIGITS];
	uint64_t scaled, fraction;
	int n = MILLIONTHS_DIGITS;

	/* 15 digits, so that no two of them are one double. */
	if (v >= 1e9)
		return false;
	scaled = (uint64_t)(v * million + 0.5);
	if ((double)scaled / million != v)
		return false;
	strbuf_add_u64(out, scaled / 1000000);
	fraction = scaled % 1000000;
	if (fraction == 0)
		return true;
	for (; fraction % 10 == 0; n--)
		fraction /= 10;
	strbuf_addc(out, '.');
	for (int i = n - 1; i >= 0; i--, fraction /= 10)
		decimals[i] = (char)('0' + fraction % 10);
	strbuf_add(out, decimals, (size_t)n);
	return true;
}

void go_json_number(struct strbuf *out, double value)
{
	double v = fabs(value);
	struct decimal d;

	if (!isfinite(value)) {
		strbuf_addc(out, '0');
		return;
	}
	if (signbit(value))
		strbuf_addc(out, '-');
	if (number_is_integer(v)) {
		strbuf_add_u64(out, (uint64_t)v);
		return;
	}
	if (v >= 1e-6 && add_millionths(out, v))
		return;
	shortest(v, &d);
	if (v < 1e-6 || v >= 1e21)
		add_scientific(out, &d);
	else
		add_plain(out, &d);
}

void go_json_time(struct strbuf *out, int64_t real_ns)
{
	time_t seconds = (time_t)(MAX(real_ns, INT64_C(0)) / NSEC_PER_SEC);
	unsigned fraction = (unsigned)(MAX(real_ns, INT64_C(0)) % NSEC_PER_SEC);
	char text[32];
	struct tm tm;
	int n = 9;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	strbuf_addf(out, "\"%s", text);
	for (; fraction > 0 && fraction % 10 == 0; n--)
		fraction /= 10;
	if (fraction > 0)
		strbuf_addf(out, ".%0*u", n, fraction);
	strbuf_adds(out, "Z\"");
}
