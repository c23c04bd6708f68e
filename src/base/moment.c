// SPDX-License-Identifier: Apache-2.0
#include "base/moment.h"

#include <errno.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

/* The year 2116. */
#define SECONDS_MAX 4.6e9

static int parse_offset(const char *text, int64_t *ret_seconds)
{
	unsigned hours, minutes;
	char sign, end;

	*ret_seconds = 0;
	if (!*text || strcmp(text, "Z") == 0)
		return 0;
	if (sscanf(text, "%c%2u:%2u%c", &sign, &hours, &minutes, &end) != 3 || (sign != '+' && sign != '-') ||
	    hours > 23 || minutes > 59)
		return -EINVAL;
	*ret_seconds = (hours * 60 + minutes) * 60 * (sign == '-' ? -1 : 1);
	return 0;
}

/* ":SS", ":SS.fff"; what follows is left in *@text. */
static int parse_seconds(const char **text, double *ret_seconds)
{
	char number[24];
	size_t n;

	*ret_seconds = 0;
	if (**text != ':')
		return 0;
	n = strspn(*text + 1, "0123456789.");
	if (n == 0 || n >= sizeof(number))
		return -EINVAL;
	memcpy(number, *text + 1, n);
	number[n] = '\0';
	*text += 1 + n;
	return parse_double(number, ret_seconds) == 0 && *ret_seconds < 61 ? 0 : -EINVAL;
}

static bool is_date(const struct tm *tm)
{
	return tm->tm_year >= 70 && tm->tm_year < 300 && tm->tm_mon >= 0 && tm->tm_mon < 12 &&
	       tm->tm_mday >= 1 && tm->tm_mday <= 31 && tm->tm_hour >= 0 && tm->tm_hour < 24 &&
	       tm->tm_min >= 0 && tm->tm_min < 60;
}

static int parse_date(const char *text, int64_t *ret_real_ns)
{
	struct tm tm = { 0 };
	int64_t offset = 0;
	double seconds = 0;
	int n = 0, more = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3)
		return -EINVAL;
	text += n;
	if (*text == 'T' || *text == ' ') {
		if (sscanf(text + 1, "%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &more) != 2)
			return -EINVAL;
		text += 1 + more;
		if (parse_seconds(&text, &seconds) < 0)
			return -EINVAL;
	}
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (!is_date(&tm) || parse_offset(text, &offset) < 0)
		return -EINVAL;
	*ret_real_ns = ((int64_t)timegm(&tm) - offset) * NSEC_PER_SEC + (int64_t)(seconds * 1e9);
	return 0;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789.")] == '\0';
}

int moment_parse(const char *text, int64_t now_ns, int64_t *ret_real_ns)
{
	int64_t ago;

	if (parse_duration_ns(text, &ago) == 0 && ago <= now_ns) {
		*ret_real_ns = now_ns - ago;
		return 0;
	}
	if (is_number(text)) {
		double seconds;

		if (parse_double(text, &seconds) < 0 || seconds >= SECONDS_MAX)
			return -EINVAL;
		*ret_real_ns = (int64_t)(seconds * 1e9);
		return 0;
	}
	return parse_date(text, ret_real_ns);
}
