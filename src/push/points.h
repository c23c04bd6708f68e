// SPDX-License-Identifier: Apache-2.0
/*
 * A page of samples (samples/page.h) as points: one value of one series each, with its labels as a server
 * stores them: sorted, the name among them as __name__, those of the destination added. A series that has a
 * label that the destination sets (job, instance) has it as exported_job, as Prometheus does that scrapes; of
 * further labels the series' own stay.
 *
 * Histograms become points with le, _sum and _count, or stay whole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "samples/read.h"

struct point {
	size_t labels; /* where its labels are in the text: name, NUL, value, NUL, n times */
	uint32_t labels_n;
	uint32_t bytes; /* of them */
	double value;
	int64_t created_real_ns; /* 0: it is not known */
	const struct page_family *family; /* NULL: of a series that has ended */
	const struct page_histogram *histogram; /* whole; NULL: the value */
};

struct points {
	struct point *list;
	uint32_t n, room;
	struct strbuf text;
	bool failed;
};

struct points_style {
	const char *labels; /* struct push_settings' */
	bool whole_histograms;
};

void points_init(struct points *points);
void points_done(struct points *points);
/* Adds a page's. -ENOMEM. */
int points_add(struct points *points, const struct samples *samples, const struct points_style *style);
/* Adds one with the labels of another list's. */
void points_add_ended(struct points *points, const struct points *from, const struct point *point,
		      double value);

static inline const char *point_labels(const struct points *points, const struct point *point)
{
	return points->text.data + point->labels;
}
