// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum {
	QUALITY_ONE = 1000, /* in units of 0.001: RFC 9110 allows q three decimals */
	RANGES_MAX = 64, /* further media ranges are ignored */
};

struct range {
	const char *type; /* "text/plain" */
	size_t type_n;
	const char *version; /* value of its version parameter, or NULL */
	size_t version_n;
	int quality; /* -1: malformed */
};

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
	value = (p[0] - '0') * QUALITY_ONE;
	for (size_t i = 2; i < n; i++, unit /= 10) {
		if (!isdigit((unsigned char)p[i]))
			return -1;
		value += (p[i] - '0') * unit;
	}
	return MIN(value, (int)QUALITY_ONE);
}

/* Parses one ";name=value" of a range. Values may be quoted. Returns its end. */
static const char *parse_parameter(const char *p, struct range *range)
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
	if (name_n == 1 && strncasecmp(name, "q", 1) == 0) {
		range->quality = parse_quality(value, value_n);
	} else if (name_n == 7 && strncasecmp(name, "version", 7) == 0) {
		range->version = value;
		range->version_n = value_n;
	}
	return p;
}

/* Parses the media range at @p; returns the begin of the next one, NULL after the last. */
static const char *parse_range(const char *p, struct range *ret_range)
{
	struct range range = { .quality = QUALITY_ONE };

	range.type = skip_space(p);
	range.type_n = strcspn(range.type, ";, \t");
	p = range.type + range.type_n;
	for (;;) {
		p += strcspn(p, ";,");
		if (*p != ';')
			break;
		p = parse_parameter(p + 1, &range);
	}
	*ret_range = range;
	return *p == ',' ? p + 1 : NULL;
}

static bool range_is(const struct range *range, const char *type)
{
	return strlen(type) == range->type_n && strncasecmp(type, range->type, range->type_n) == 0;
}

/* A range without a version matches any. We write OpenMetrics 1.0.0 and text 0.0.4 only. */
static bool version_is(const struct range *range, const char *version)
{
	return !range->version || (strlen(version) == range->version_n &&
				   memcmp(version, range->version, range->version_n) == 0);
}

enum exposition exposition_negotiate(const char *accept)
{
	/* The specificity of the best match for text, so that "text/plain;q=0.1, * / *" means 0.1. */
	int openmetrics = 0, text = 0, text_rank = 0;

	for (int n = 0; accept && n < RANGES_MAX; n++) {
		struct range range;
		int rank = 0;

		accept = parse_range(accept, &range);
		if (range.quality < 0)
			continue;
		if (range_is(&range, "application/openmetrics-text") && version_is(&range, "1.0.0"))
			openmetrics = MAX(openmetrics, range.quality);
		else if (range_is(&range, "text/plain") && version_is(&range, "0.0.4"))
			rank = 3;
		else if (range_is(&range, "text/*"))
			rank = 2;
		else if (range_is(&range, "*/*"))
			rank = 1;
		if (rank > text_rank || (rank > 0 && rank == text_rank && range.quality > text)) {
			text_rank = rank;
			text = range.quality;
		}
	}
	/* OpenMetrics is used only if it is requested explicitly: "any type" is sent by curl. */
	return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}

const char *exposition_content_type(enum exposition format)
{
	return format == EXPOSITION_OPENMETRICS ?
		       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		       "text/plain; version=0.0.4; charset=utf-8";
}
