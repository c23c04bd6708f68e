// SPDX-License-Identifier: Apache-2.0
/*
 * Parsers of values that base/text does not parse: shares, auto.
 */
#include "config/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

static const struct {
	const char *text;
	enum tristate value;
} tristates[] = {
	{ "auto", TRISTATE_AUTO }, { "yes", TRISTATE_YES }, { "true", TRISTATE_YES },
	{ "on", TRISTATE_YES },    { "1", TRISTATE_YES },   { "no", TRISTATE_NO },
	{ "false", TRISTATE_NO },  { "off", TRISTATE_NO },  { "0", TRISTATE_NO },
};

/* The number before a unit. */
static int before(const char *text, const char *unit, char number[static 32])
{
	size_t n = strlen(text), unit_n = strlen(unit);

	if (n <= unit_n || n - unit_n >= 32 || !STRV_EQ(text + n - unit_n, unit))
		return -EINVAL;
	memcpy(number, text, n - unit_n);
	number[n - unit_n] = 0;
	return 0;
}

int option_parse_share(const char *text, int64_t *ret_ppm)
{
	char number[32];
	double percent;

	if (before(text, "%", number) < 0 || parse_double(number, &percent) < 0 || percent < 0 ||
	    percent > 1e6)
		return -EINVAL;
	*ret_ppm = (int64_t)(percent * 1e4 + 0.5);
	/* A nonzero percentage that rounds to zero is rejected. */
	return *ret_ppm == 0 && percent > 0 ? -EINVAL : 0;
}

int option_parse_tristate(const char *text, int64_t *ret_tristate)
{
	for (size_t i = 0; i < ARRAY_SIZE(tristates); i++)
		if (STRV_EQ(tristates[i].text, text)) {
			*ret_tristate = tristates[i].value;
			return 0;
		}
	return -EINVAL;
}
