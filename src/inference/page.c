// SPDX-License-Identifier: Apache-2.0
#include "inference/page.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"

struct figure_family {
	enum server_kind kind;
	enum server_metric metric;
	const char *name;
	double scale;
};

static const struct figure_family families[] = {
#define SERVER_FIGURE(id_, metric_, family_, scale_) { SERVER_##id_, SERVER_##metric_, family_, scale_ },
#include "model/servers.def"
#undef SERVER_FIGURE
};

static const void *find_family(const char *name, size_t length, void *userdata)
{
	const struct figure_page *page = userdata;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (families[i].kind == page->kind && strlen(families[i].name) == length &&
		    memcmp(families[i].name, name, length) == 0)
			return &families[i];
	return NULL;
}

/* A share of several engines, or under two names, is not to be added up: the fullest one's. */
static void add_figure_sample(const void *of, const struct line *line, void *userdata)
{
	struct figure_page *page = userdata;
	const struct figure_family *family = of;
	const enum server_metric row = family->metric;
	const double value = line->value * family->scale;
	double *sum = &page->sums.v[row];

	if (!metric_plausible(&server_metrics[row], value))
		return;
	if (server_metrics[row].unit == UNIT_RATIO)
		*sum = MAX(*sum, value);
	else
		*sum += value;
	page->sums.p[row] = PRESENCE_PRESENT;
}

void figure_page_init(struct figure_page *page, enum server_kind kind)
{
	memset(&page->sums, 0, sizeof(page->sums));
	page->kind = kind;
	exposition_init(&page->exposition, false, find_family, add_figure_sample, page);
}

void figure_page_done(struct figure_page *page)
{
	exposition_done(&page->exposition);
}

int figure_page_feed(struct figure_page *page, const char *data, size_t n)
{
	return exposition_feed(&page->exposition, data, n);
}

int figure_page_end(struct figure_page *page, struct server_page *ret_page)
{
	int r = exposition_end(&page->exposition);

	if (r < 0)
		return r;
	for (unsigned row = 0; row < SERVER_TOLD; row++) {
		/* Sums of what is plausible need not be. */
		if (presence_is(page->sums.p[row]) &&
		    !metric_plausible(&server_metrics[row], page->sums.v[row]))
			page->sums.p[row] = PRESENCE_ABSENT;
		if (presence_is(page->sums.p[row]))
			r++;
	}
	*ret_page = page->sums;
	return r > 0 ? 0 : -ENODATA;
}
