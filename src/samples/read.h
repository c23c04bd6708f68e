// SPDX-License-Identifier: Apache-2.0
/* Reads a page of samples (page.h), wherever it comes from. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "samples/page.h"

/* All of it is borrowed from the page. */
struct samples {
	int64_t real_ns;
	uint32_t n[PAGE_PARTS_N];
#define PAGE_PART(id_, member_, type_) const type_ *member_;
	PAGE_PARTS(PAGE_PART)
#undef PAGE_PART
};

/*
 * Looks at all of it, so that the caller need not check *ret_samples again: every index and text is
 * within its array. @data is aligned to eight bytes. -EBADMSG: it is no page.
 */
int samples_read(const void *data, size_t n, struct samples *ret_samples);

/* How many values a histogram has. */
static inline uint64_t samples_count(const struct samples *samples, const struct page_histogram *histogram)
{
	return samples->counts[histogram->counts + histogram->all - 1];
}

static inline const char *samples_text(const struct samples *samples, uint32_t text)
{
	return samples->texts + text;
}

/* The labels of a series, at most @max of them; returns how many there are. */
uint32_t samples_labels(const struct samples *samples, const struct page_series *series,
			struct page_label *labels, uint32_t max);
