// SPDX-License-Identifier: Apache-2.0
/*
 * GET /metrics: the families of the walk that are wanted.
 */
#include <stdio.h>

#include "base/glob.h"
#include "base/macro.h"
#include "view/page.h"
#include "view/view.h"
#include "view/walk/walk.h"

struct metrics_page {
	struct page page;
	const char *families; /* glob_list_has() */
};

static bool page_begins(void *userdata, const struct family *family)
{
	struct metrics_page *metrics = userdata;
	char name[256];

	if (metrics->families) {
		snprintf(name, sizeof(name), "%s%s", family->prefix, family->name);
		if (!glob_list_has(metrics->families, name))
			return false;
	}
	page_family(&metrics->page, family);
	return true;
}

static void page_continues(void *userdata, const struct series *series)
{
	struct metrics_page *metrics = userdata;

	page_series(&metrics->page, series);
}

int view_prometheus(const struct snapshot *snapshot, enum exposition format, const char *families,
		    struct strbuf *out)
{
	struct metrics_page metrics = { .families = families };
	const struct walk_sink sink = { page_begins, page_continues, &metrics };
	int r;

	page_init(&metrics.page, format, out);
	r = walk_snapshot(snapshot, WALK_ALL, &sink);
	if (r >= 0)
		r = page_end(&metrics.page);
	page_done(&metrics.page);
	return r;
}
