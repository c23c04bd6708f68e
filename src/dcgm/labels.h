// SPDX-License-Identifier: Apache-2.0
/* The labels of a sample that mean something here, in the dialects of all releases of the exporter. */
#pragma once

#include "exposition/line.h"

enum page_label {
	/* The key, in the order of a row's text. */
	LABEL_UUID,
	LABEL_GI,
	LABEL_GPU,
	LABEL_DEVICE,
	LABEL_PROFILE,
	LABEL_NAMESPACE,
	LABEL_POD,
	LABEL_CONTAINER,
	LABEL_KEYS,
	/* Of the row, beside it. */
	LABEL_NODE = LABEL_KEYS,
	LABEL_MODEL,
	LABEL_BUS,
	LABEL_DRIVER,
	LABEL_JOB,
	LABEL_VGPU,
	LABEL_NVLINK,
	LABEL_METRIC,
	LABEL_SIMULATED,
	LABELS,
};

enum { LABELS_TEXT_MAX = 4096 };

struct page_labels {
	struct {
		const char *p; /* NULL: not there */
		uint32_t n;
		uint32_t rank; /* of two names for one thing the higher decides */
	} v[LABELS];
	uint32_t text_n;
	char text[LABELS_TEXT_MAX]; /* of values with escapes */
};

/* SCRAPE_LINE_KEY: one is longer than it may be, or has a NUL. Points into the line and into @labels. */
enum scrape_line labels_read(struct page_labels *labels, const struct line *line);

static inline bool label_is_set(const struct page_labels *labels, enum page_label label)
{
	return labels->v[label].n > 0;
}
