// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <string.h>

#include "base/accept.h"
#include "base/macro.h"

/* A range without a version matches any. We write OpenMetrics 1.0.0 and text 0.0.4 only. */
static bool version_is(const struct accept_range *range, const char *version)
{
	return !range->version || (strlen(version) == range->version_n &&
				   memcmp(version, range->version, range->version_n) == 0);
}

/* How much each is wanted; 0: not at all. */
struct wanted_formats {
	int protobuf, openmetrics, text;
	int text_rank; /* the specificity of the best match, so that "text/plain;q=0.1, * / *" means 0.1 */
};

static bool value_is(const char *value, size_t n, const char *wanted)
{
	return value && n == strlen(wanted) && memcmp(value, wanted, n) == 0;
}

static bool is_protobuf(const struct accept_range *range)
{
	return accept_is(range, "application/vnd.google.protobuf") &&
	       value_is(range->proto, range->proto_n, "io.prometheus.client.MetricFamily") &&
	       value_is(range->encoding, range->encoding_n, "delimited");
}

static int text_rank(const struct accept_range *range)
{
	if (accept_is(range, "text/plain") && version_is(range, "0.0.4"))
		return 3;
	if (accept_is(range, "text/*"))
		return 2;
	return accept_is(range, "*/*");
}

static void take_range(struct wanted_formats *wanted, const struct accept_range *range)
{
	int rank = text_rank(range);

	if (range->quality < 0)
		return;
	if (is_protobuf(range))
		wanted->protobuf = MAX(wanted->protobuf, range->quality);
	else if (accept_is(range, "application/openmetrics-text") && version_is(range, "1.0.0"))
		wanted->openmetrics = MAX(wanted->openmetrics, range->quality);
	else if (rank > wanted->text_rank ||
		 (rank > 0 && rank == wanted->text_rank && range->quality > wanted->text)) {
		wanted->text_rank = rank;
		wanted->text = range->quality;
	}
}

static struct wanted_formats wanted_formats(const char *accept)
{
	struct wanted_formats wanted = { 0 };

	for (int n = 0; accept && n < ACCEPT_RANGES_MAX; n++) {
		struct accept_range range;

		accept = accept_next(accept, &range);
		take_range(&wanted, &range);
	}
	return wanted;
}

/* OpenMetrics is used only if it is requested explicitly: "any type" is sent by curl. */
static enum exposition best_text(const struct wanted_formats *wanted)
{
	return wanted->openmetrics > 0 && wanted->openmetrics >= wanted->text ? EXPOSITION_OPENMETRICS :
										EXPOSITION_PROMETHEUS;
}

enum exposition exposition_negotiate(const char *accept)
{
	struct wanted_formats wanted = wanted_formats(accept);

	return best_text(&wanted);
}

unsigned metrics_negotiate(const char *accept)
{
	struct wanted_formats wanted = wanted_formats(accept);

	if (wanted.protobuf > 0 && wanted.protobuf >= MAX(wanted.openmetrics, wanted.text))
		return METRICS_PROTOBUF;
	return best_text(&wanted);
}

const char *exposition_content_type(enum exposition format)
{
	return format == EXPOSITION_OPENMETRICS ?
		       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		       "text/plain; version=0.0.4; charset=utf-8";
}
