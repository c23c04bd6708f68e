// SPDX-License-Identifier: Apache-2.0
#include "base/accept.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t");
}

/* "1", "0.75", "0."; -1 for anything else. */
static int parse_quality(const char *p, size_t n)
{
	int value, unit = 100;

	if (n == 0 || (p[0] != '0' && p[0] != '1') || (n > 1 && p[1] != '.') || n > 5)
		return -1;
	value = (p[0] - '0') * ACCEPT_QUALITY_ONE;
	for (size_t i = 2; i < n; i++, unit /= 10) {
		if (!isdigit((unsigned char)p[i]))
			return -1;
		value += (p[i] - '0') * unit;
	}
	return MIN(value, (int)ACCEPT_QUALITY_ONE);
}

static bool is_name(const char *name, size_t n, const char *wanted)
{
	return n == strlen(wanted) && strncasecmp(name, wanted, n) == 0;
}

static void take_parameter(struct accept_range *range, const char *name, size_t name_n, const char *value,
			   size_t value_n)
{
	if (is_name(name, name_n, "q")) {
		range->quality = parse_quality(value, value_n);
	} else if (is_name(name, name_n, "version")) {
		range->version = value;
		range->version_n = value_n;
	} else if (is_name(name, name_n, "proto")) {
		range->proto = value;
		range->proto_n = value_n;
	} else if (is_name(name, name_n, "encoding")) {
		range->encoding = value;
		range->encoding_n = value_n;
	}
}

/* Parses one ";name=value" of a range. Values may be quoted. Returns its end. */
static const char *parse_parameter(const char *p, struct accept_range *range)
{
	const char *name = skip_space(p), *value;
	size_t name_n = strcspn(name, "=;, \t"), value_n;

	p = skip_space(name + name_n);
	if (*p != '=')
		return p;
	value = skip_space(p + 1);
	if (*value == '"') {
		value++;
		value_n = strcspn(value, "\"");
		p = value + value_n + (value[value_n] == '"');
	} else {
		value_n = strcspn(value, ";, \t");
		p = value + value_n;
	}
	take_parameter(range, name, name_n, value, value_n);
	return p;
}

const char *accept_next(const char *p, struct accept_range *ret_range)
{
	struct accept_range range = { .quality = ACCEPT_QUALITY_ONE };

	range.name = skip_space(p);
	range.name_n = strcspn(range.name, ";, \t");
	p = range.name + range.name_n;
	for (;;) {
		p += strcspn(p, ";,");
		if (*p != ';')
			break;
		p = parse_parameter(p + 1, &range);
	}
	*ret_range = range;
	return *p == ',' ? p + 1 : NULL;
}

bool accept_is(const struct accept_range *range, const char *name)
{
	return is_name(range->name, range->name_n, name);
}
