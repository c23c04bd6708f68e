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

enum exposition exposition_negotiate(const char *accept)
{
	/* The specificity of the best match for text, so that "text/plain;q=0.1, * / *" means 0.1. */
	int openmetrics = 0, text = 0, text_rank = 0;

	for (int n = 0; accept && n < ACCEPT_RANGES_MAX; n++) {
		struct accept_range range;
		int rank = 0;

		accept = accept_next(accept, &range);
		if (range.quality < 0)
			continue;
		if (accept_is(&range, "application/openmetrics-text") && version_is(&range, "1.0.0"))
			openmetrics = MAX(openmetrics, range.quality);
		else if (accept_is(&range, "text/plain") && version_is(&range, "0.0.4"))
			rank = 3;
		else if (accept_is(&range, "text/*"))
			rank = 2;
		else if (accept_is(&range, "*/*"))
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
