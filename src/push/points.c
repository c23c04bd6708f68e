// SPDX-License-Identifier: Apache-2.0
#include "push/points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { LABELS_MAX = 64, ADDED_MAX = 32, NAME_MAX_BYTES = 256 };

struct pair {
	const char *name, *value;
};

/* What is the same for all series of a page. */
struct context {
	struct points *points;
	const struct samples *samples;
	const struct points_style *style;
	char added_text[4096];
	struct pair added[ADDED_MAX];
	uint32_t added_n;
};

void points_init(struct points *points)
{
	*points = (struct points){ 0 };
	strbuf_init(&points->text, 0);
}

void points_done(struct points *points)
{
	free(points->list);
	strbuf_done(&points->text);
}

/* ---- labels ---- */

static void split_added(struct context *c)
{
	char *rest = NULL;

	snprintf(c->added_text, sizeof(c->added_text), "%s", c->style->labels);
	for (char *line = strtok_r(c->added_text, "\n", &rest); line && c->added_n < ADDED_MAX;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = '\0';
		c->added[c->added_n++] = (struct pair){ line, value };
	}
}

static uint32_t find_label(const struct pair *pairs, uint32_t n, const char *name)
{
	uint32_t i = 0;

	while (i < n && !STRV_EQ(pairs[i].name, name))
		i++;
	return i;
}

/* Labels that a scrape sets, too. */
static const char *exported_name(const char *name)
{
	if (STRV_EQ(name, "job"))
		return "exported_job";
	return STRV_EQ(name, "instance") ? "exported_instance" : NULL;
}

static uint32_t add_destination(const struct context *c, struct pair *pairs, uint32_t n)
{
	for (uint32_t i = 0; i < c->added_n && n < LABELS_MAX; i++) {
		const char *exported = exported_name(c->added[i].name);
		uint32_t own = find_label(pairs, n, c->added[i].name);

		if (own < n && !exported)
			continue;
		if (own < n)
			pairs[own].name = exported;
		pairs[n++] = c->added[i];
	}
	return n;
}

static int compare_pairs(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* An empty label is as none. */
static void write_pairs(struct points *points, struct point *point, const struct pair *pairs, uint32_t n)
{
	point->labels = points->text.len;
	for (uint32_t i = 0; i < n; i++) {
		if (!*pairs[i].value)
			continue;
		strbuf_add(&points->text, pairs[i].name, strlen(pairs[i].name) + 1);
		strbuf_add(&points->text, pairs[i].value, strlen(pairs[i].value) + 1);
		point->labels_n++;
	}
	point->bytes = (uint32_t)(points->text.len - point->labels);
}

/* ---- points ---- */

static void append_point(struct points *points, const struct point *point)
{
	if (points->n == points->room) {
		uint32_t room = MAX(1024u, points->room * 2);
		struct point *more = reallocarray(points->list, room, sizeof(*more));

		if (!more) {
			points->failed = true;
			return;
		}
		points->list = more;
		points->room = room;
	}
	points->list[points->n++] = *point;
}

/* @le: NULL, or the bound of a bucket. */
static void add_point(struct context *c, const struct page_series *series, struct point *point,
		      const char *suffix, const char *le)
{
	struct page_label labels[LABELS_MAX];
	struct pair pairs[LABELS_MAX + 2]; /* the name, le */
	char name[NAME_MAX_BYTES];
	uint32_t n = samples_labels(c->samples, series, labels, LABELS_MAX / 2);

	for (uint32_t i = 0; i < n; i++)
		pairs[i] = (struct pair){ samples_text(c->samples, labels[i].name),
					  samples_text(c->samples, labels[i].value) };
	n = add_destination(c, pairs, n);
	snprintf(name, sizeof(name), "%s%s", samples_text(c->samples, point->family->name), suffix);
	pairs[n++] = (struct pair){ "__name__", name };
	if (le)
		pairs[n++] = (struct pair){ "le", le };
	qsort(pairs, n, sizeof(*pairs), compare_pairs);
	write_pairs(c->points, point, pairs, n);
	append_point(c->points, point);
}

static void add_value_point(struct context *c, const struct page_family *family,
			    const struct page_series *series, double value, const char *suffix,
			    const char *le)
{
	struct point point = { .value = value, .created_real_ns = series->created_real_ns, .family = family };

	add_point(c, series, &point, suffix, le);
}

static void add_buckets(struct context *c, const struct page_family *family, const struct page_series *series,
			const struct page_histogram *h)
{
	const uint64_t *counts = c->samples->counts + h->counts;

	for (uint32_t i = 0; i < h->n; i++)
		add_value_point(c, family, series, (double)counts[i], "_bucket",
				samples_text(c->samples, c->samples->bounds[h->bounds + i].text));
	add_value_point(c, family, series, (double)samples_count(c->samples, h), "_bucket", "+Inf");
	add_value_point(c, family, series, series->value, "_sum", NULL);
	add_value_point(c, family, series, (double)samples_count(c->samples, h), "_count", NULL);
}

static void add_whole(struct context *c, const struct page_family *family, const struct page_series *series,
		      const struct page_histogram *h)
{
	struct point point = { .value = series->value,
			       .created_real_ns = series->created_real_ns,
			       .family = family,
			       .histogram = h };

	add_point(c, series, &point, "", NULL);
}

static void add_series(struct context *c, const struct page_family *family, const struct page_series *series)
{
	const struct page_histogram *h =
		series->histogram ? &c->samples->histograms[series->histogram - 1] : NULL;

	if (!h)
		add_value_point(c, family, series, series->value, "", NULL);
	else if (c->style->whole_histograms)
		add_whole(c, family, series, h);
	else
		add_buckets(c, family, series, h);
}

int points_add(struct points *points, const struct samples *samples, const struct points_style *style)
{
	struct context c = { .points = points, .samples = samples, .style = style };

	split_added(&c);
	for (uint32_t i = 0; i < samples->n[PAGE_FAMILIES]; i++) {
		const struct page_family *family = &samples->families[i];

		for (uint32_t k = 0; k < family->n; k++)
			add_series(&c, family, &samples->series[family->first + k]);
	}
	return points->failed || points->text.failed ? -ENOMEM : 0;
}

void points_add_ended(struct points *points, const struct points *from, const struct point *point,
		      double value)
{
	struct point ended = {
		.labels = points->text.len, .labels_n = point->labels_n, .bytes = point->bytes, .value = value
	};

	strbuf_add(&points->text, point_labels(from, point), point->bytes);
	append_point(points, &ended);
}
