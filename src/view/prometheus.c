// SPDX-License-Identifier: Apache-2.0
/*
 * GET /metrics: every family of the walk.
 */
#include "view/page.h"
#include "view/view.h"
#include "view/walk.h"

static bool page_begins(void *userdata, const struct family *family)
{
	page_family(userdata, family);
	return true;
}

static void page_continues(void *userdata, const struct series *series)
{
	page_series(userdata, series);
}

int view_prometheus(const struct snapshot *snapshot, enum exposition format, struct strbuf *out)
{
	struct page page;
	const struct walk_sink sink = { page_begins, page_continues, &page };
	int r;

	page_init(&page, format, out);
	r = walk_snapshot(snapshot, WALK_ALL, &sink);
	if (r >= 0)
		r = page_end(&page);
	page_done(&page);
	return r;
}
