// SPDX-License-Identifier: Apache-2.0
#include "exposition/float.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Numbers of more characters are possible, and nobody prints them. */
enum { DIGITS_MAX = 19, TEXT_MAX = 1024 };

/* Powers of ten that doubles have exactly. */
static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
				 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool word_is(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && strncasecmp(p, word, n) == 0;
}

/* Infinities may have a sign, and NaN may not. */
static bool parse_word(const char *p, size_t n, double *ret_value)
{
	bool sign = n > 0 && (*p == '+' || *p == '-');

	if (word_is(p, n, "nan")) {
		*ret_value = NAN;
		return true;
	}
	if (!word_is(p + sign, n - sign, "inf") && !word_is(p + sign, n - sign, "infinity"))
		return false;
	*ret_value = sign && *p == '-' ? -INFINITY : INFINITY;
	return true;
}

/* What the digits say, if they are few. */
struct decimal {
	uint64_t digits;
	unsigned n, behind; /* significant digits; those behind the point */
	bool negative, whole, simple; /* simple: no exponent, and no more digits than fit */
};

static bool scan_decimal(const char *p, const char *end, struct decimal *d)
{
	unsigned seen = 0;
	bool point = false;

	*d = (struct decimal){ .whole = true };
	if (p < end && (*p == '+' || *p == '-'))
		d->negative = *p++ == '-';
	for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		seen++;
		d->behind += point;
		d->n += d->n > 0 || *p != '0';
		if (d->n < DIGITS_MAX)
			d->digits = d->digits * 10 + (uint64_t)(*p - '0');
	}
	d->whole = !point && p == end;
	d->simple = p == end;
	if (seen == 0)
		return false;
	if (p == end)
		return true;
	if (*p != 'e' && *p != 'E')
		return false;
	p++;
	if (p < end && (*p == '+' || *p == '-'))
		p++;
	if (p == end)
		return false;
	while (p < end && is_digit(*p))
		p++;
	return p == end;
}

static bool convert(const char *p, size_t n, double *ret_value)
{
	static locale_t c_locale;
	char text[TEXT_MAX];

	if (n >= sizeof(text))
		return false;
	if (!c_locale)
		c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	memcpy(text, p, n);
	text[n] = '\0';
	*ret_value = strtod_l(text, NULL, c_locale);
	return isfinite(*ret_value);
}

bool float_parse(const char *p, size_t n, double *ret_value, bool *ret_whole)
{
	struct decimal d;

	*ret_whole = false;
	if (!scan_decimal(p, p + n, &d))
		return parse_word(p, n, ret_value);
	*ret_whole = d.whole;
	/* Both are exact, so their quotient is rounded once. */
	if (d.simple && d.n <= 15 && d.behind <= 22) {
		*ret_value = (double)d.digits / powers[d.behind];
		if (d.negative)
			*ret_value = -*ret_value;
		return true;
	}
	return convert(p, n, ret_value);
}
