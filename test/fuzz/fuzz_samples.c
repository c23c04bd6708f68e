// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a page of samples: refused, or a reader of all that it names stays within it. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "samples/native.h"
#include "samples/read.h"

enum { LABELS_MAX = 64 };

static size_t sum; /* so that nothing is left out */

static void read_histogram(const struct samples *s, const struct page_histogram *h)
{
	int64_t *deltas = calloc(h->all, sizeof(*deltas));
	struct native_histogram native;

	for (uint32_t i = 0; i < h->n; i++)
		sum += strlen(samples_text(s, s->bounds[h->bounds + i].text)) + s->counts[h->counts + i];
	sum += samples_count(s, h);
	if (!deltas)
		return;
	native_histogram_make(s->counts + h->counts, h->all, h->first, &native, deltas);
	for (uint32_t i = 0; i < native.length; i++)
		sum += (size_t)deltas[i];
	free(deltas);
}

static void read_series(const struct samples *s, const struct page_series *series)
{
	struct page_label labels[LABELS_MAX];
	uint32_t n = samples_labels(s, series, labels, LABELS_MAX);

	for (uint32_t i = 0; i < n; i++)
		sum += strlen(samples_text(s, labels[i].name)) + strlen(samples_text(s, labels[i].value));
	if (series->histogram)
		read_histogram(s, &s->histograms[series->histogram - 1]);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	void *page = aligned_alloc(8, (size + 8) / 8 * 8);
	struct samples s;

	if (!page)
		return 0;
	memcpy(page, data, size);
	if (samples_read(page, size, &s) == 0) {
		for (uint32_t i = 0; i < s.n[PAGE_FAMILIES]; i++)
			sum += strlen(samples_text(&s, s.families[i].name));
		for (uint32_t i = 0; i < s.n[PAGE_SERIES]; i++)
			read_series(&s, &s.series[i]);
	}
	free(page);
	return 0;
}
