// SPDX-License-Identifier: Apache-2.0
#include "view/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"

enum {
	TEXT_MAX = 32, /* sign, 15 digits, point, exponent, NUL */
	FIXED_TEXT_MAX = 330, /* %f of DBL_MAX has 309 digits before the point */
};

/* 10^0 to 10^15, all exact. */
static const double powers[] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
};

bool number_is_integer(double v)
{
	static const double exact_max = 9007199254740992.0; /* 2^53 */

	return v >= -exact_max && v <= exact_max && v == (double)(int64_t)v;
}

/* @v in [0.1, 1e15): scaled to 15 digits before the point, rounded, and written without trailing zeros. */
static void add_plain(struct strbuf *out, double v)
{
	char digits[NUMBER_DIGITS + 1];
	unsigned before = 0, decimals;
	uint64_t scaled, unit = 1, whole, fraction;
	size_t n;

	while (before < NUMBER_DIGITS && v >= powers[before])
		before++;
	decimals = NUMBER_DIGITS - before;
	scaled = (uint64_t)(v * powers[decimals] + 0.5);
	for (unsigned i = 0; i < decimals; i++)
		unit *= 10;
	whole = scaled / unit;
	fraction = scaled % unit;
	strbuf_add_u64(out, whole);
	if (fraction == 0)
		return;
	n = decimals;
	while (fraction % 10 == 0) {
		fraction /= 10;
		n--;
	}
	digits[0] = '.';
	for (size_t i = n; i > 0; i--, fraction /= 10)
		digits[i] = (char)('0' + fraction % 10);
	strbuf_add(out, digits, n + 1);
}

void number_add(struct strbuf *out, double v)
{
	char text[TEXT_MAX];

	if (number_is_integer(v)) {
		strbuf_add_i64(out, (int64_t)v);
		return;
	}
	if (!isfinite(v)) {
		strbuf_adds(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	if (fabs(v) >= 0.1 && fabs(v) < 1e15) {
		if (v < 0)
			strbuf_addc(out, '-');
		add_plain(out, fabs(v));
		return;
	}
	snprintf(text, sizeof(text), "%.*g", NUMBER_DIGITS, v);
	strbuf_adds(out, text);
}

void number_add_bound(struct strbuf *out, double v)
{
	number_add(out, v);
	if (number_is_integer(v))
		strbuf_adds(out, ".0");
}

double number_rounded(double v)
{
	struct strbuf text;
	double rounded;

	if (number_is_integer(v) || !isfinite(v))
		return v;
	strbuf_init(&text, 0);
	number_add(&text, v);
	rounded = text.failed ? v : strtod(text.data, NULL);
	strbuf_done(&text);
	return rounded;
}

void number_add_fixed(struct strbuf *out, double v, unsigned decimals)
{
	char text[FIXED_TEXT_MAX];

	/* The common case, at a tenth of the cost of printf: exact as long as the scaled value is. */
	if (v >= 0 && v < 1e9 && decimals <= 6) {
		uint64_t unit = (uint64_t)powers[decimals];
		uint64_t scaled = (uint64_t)(v * powers[decimals] + 0.5);
		char digits[8] = ".";

		strbuf_add_u64(out, scaled / unit);
		if (decimals == 0)
			return;
		scaled %= unit;
		for (unsigned i = decimals; i > 0; i--, scaled /= 10)
			digits[i] = (char)('0' + scaled % 10);
		strbuf_add(out, digits, decimals + 1);
		return;
	}
	snprintf(text, sizeof(text), "%.*f", (int)MIN(decimals, 9u), v);
	strbuf_adds(out, text);
}

void bytes_text(double bytes, char buf[static BYTES_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;

	while (bytes >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, BYTES_TEXT, "%.*f %s", unit > 0 ? 1 : 0, MIN(bytes, 1e18), units[unit]);
}

void duration_text(double seconds, char buf[static DURATION_TEXT])
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = { { 1, "s" }, { 60, "min" }, { 3600, "h" }, { 86400, "d" } };
	unsigned i = 0;

	buf[0] = '\0';
	if (seconds < 0 || seconds > 1e12)
		return;
	while (i + 1 < ARRAY_SIZE(units) && seconds >= units[i + 1].seconds)
		i++;
	snprintf(buf, DURATION_TEXT, "%.1f %s", seconds / units[i].seconds, units[i].name);
}

void latency_text(double seconds, char buf[static DURATION_TEXT])
{
	if (seconds >= 1)
		snprintf(buf, DURATION_TEXT, "%.1f s", seconds);
	else if (seconds >= 1e-3)
		snprintf(buf, DURATION_TEXT, "%.1f ms", seconds * 1e3);
	else
		snprintf(buf, DURATION_TEXT, "%.1f us", seconds * 1e6);
}

void ago_text(int64_t ns, char buf[static DURATION_TEXT])
{
	int64_t seconds = ns / NSEC_PER_SEC;

	if (seconds < 60)
		snprintf(buf, DURATION_TEXT, "%" PRId64 " s", seconds);
	else
		snprintf(buf, DURATION_TEXT, "%" PRId64 " min", seconds / 60);
}
