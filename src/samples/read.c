// SPDX-License-Identifier: Apache-2.0
#include "samples/read.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/macro.h"

static const size_t part_bytes[PAGE_PARTS_N] = {
#define PAGE_PART(id_, member_, type_) [PAGE_##id_] = sizeof(type_),
	PAGE_PARTS(PAGE_PART)
#undef PAGE_PART
};

/* [first, first + count) lies within an array of @n. */
static bool lies_within(uint32_t first, uint32_t count, uint32_t n)
{
	return count <= n && first <= n - count;
}

/* ---- where the arrays are ---- */

static int find_parts(const uint8_t *data, size_t n, const void *parts[static PAGE_PARTS_N],
		      struct samples *samples)
{
	struct page_header header;
	size_t at = sizeof(header);

	if (n < sizeof(header) || n > PAGE_BYTES_MAX)
		return -EBADMSG;
	memcpy(&header, data, sizeof(header));
	if (memcmp(header.magic, PAGE_MAGIC, sizeof(header.magic)) != 0)
		return -EBADMSG;
	samples->real_ns = header.real_ns;
	memcpy(samples->n, header.n, sizeof(header.n));
	for (unsigned part = 0; part < PAGE_PARTS_N; part++) {
		at = (at + 7) / 8 * 8;
		if (at > n || header.n[part] > (n - at) / part_bytes[part])
			return -EBADMSG;
		parts[part] = data + at;
		at += header.n[part] * part_bytes[part];
	}
	return at == n ? 0 : -EBADMSG;
}

/* ---- what is in them ---- */

static bool text_is_there(const struct samples *s, uint32_t text)
{
	return text < s->n[PAGE_TEXTS];
}

static bool labels_are_whole(const struct samples *s)
{
	for (uint32_t i = 0; i < s->n[PAGE_LABELS]; i++)
		if (!text_is_there(s, s->labels[i].name) || !text_is_there(s, s->labels[i].value))
			return false;
	for (uint32_t i = 0; i < s->n[PAGE_SETS]; i++)
		if (!lies_within(s->sets[i].first, s->sets[i].n, s->n[PAGE_LABELS]))
			return false;
	return true;
}

static bool histograms_are_whole(const struct samples *s)
{
	for (uint32_t i = 0; i < s->n[PAGE_BOUNDS]; i++)
		if (!text_is_there(s, s->bounds[i].text))
			return false;
	for (uint32_t i = 0; i < s->n[PAGE_HISTOGRAMS]; i++) {
		const struct page_histogram *h = &s->histograms[i];

		if (h->n >= h->all || h->first < -PAGE_FIRST_MAX || h->first > PAGE_FIRST_MAX ||
		    !lies_within(h->bounds, h->n, s->n[PAGE_BOUNDS]) ||
		    !lies_within(h->counts, h->all, s->n[PAGE_COUNTS]))
			return false;
	}
	return true;
}

static bool series_are_whole(const struct samples *s)
{
	for (uint32_t i = 0; i < s->n[PAGE_SERIES]; i++) {
		const struct page_series *series = &s->series[i];

		if (series->histogram > s->n[PAGE_HISTOGRAMS] || series->estimated > 1)
			return false;
		for (unsigned k = 0; k < PAGE_SERIES_SETS; k++)
			if (series->sets[k] > s->n[PAGE_SETS])
				return false;
	}
	return true;
}

/* A family of histograms has nothing else, and no other has one. */
static bool is_of_type(const struct samples *s, const struct page_family *family)
{
	for (uint32_t i = 0; i < family->n; i++)
		if ((s->series[family->first + i].histogram > 0) != (family->type == PAGE_HISTOGRAM))
			return false;
	return true;
}

static bool families_are_whole(const struct samples *s)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < s->n[PAGE_FAMILIES]; i++) {
		const struct page_family *family = &s->families[i];

		if (!text_is_there(s, family->name) || !text_is_there(s, family->help) ||
		    !text_is_there(s, family->unit) || family->type >= PAGE_TYPES || family->first != first ||
		    !lies_within(first, family->n, s->n[PAGE_SERIES]) || !is_of_type(s, family))
			return false;
		first += family->n;
	}
	return first == s->n[PAGE_SERIES];
}

int samples_read(const void *data, size_t n, struct samples *ret_samples)
{
	struct samples s = { 0 };
	const void *parts[PAGE_PARTS_N];
	int r = find_parts(data, n, parts, &s);

	if (r < 0)
		return r;
#define PAGE_PART(id_, member_, type_) s.member_ = parts[PAGE_##id_];
	PAGE_PARTS(PAGE_PART)
#undef PAGE_PART
	if (s.n[PAGE_TEXTS] == 0 || s.texts[0] != '\0' || s.texts[s.n[PAGE_TEXTS] - 1] != '\0')
		return -EBADMSG;
	if (!labels_are_whole(&s) || !histograms_are_whole(&s) || !series_are_whole(&s) ||
	    !families_are_whole(&s))
		return -EBADMSG;
	*ret_samples = s;
	return 0;
}

uint32_t samples_labels(const struct samples *samples, const struct page_series *series,
			struct page_label *labels, uint32_t max)
{
	uint32_t n = 0;

	for (unsigned k = 0; k < PAGE_SERIES_SETS; k++) {
		const struct page_set *set = series->sets[k] ? &samples->sets[series->sets[k] - 1] : NULL;

		for (uint32_t i = 0; set && i < set->n && n < max; i++)
			labels[n++] = samples->labels[set->first + i];
	}
	return n;
}
