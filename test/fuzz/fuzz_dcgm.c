// SPDX-License-Identifier: Apache-2.0
/* A page: the first byte says how it is read, and in which pieces. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "dcgm/page.h"

#define ENDS(member_) (memchr(member_, 0, sizeof(member_)) != NULL)

static void check_row(const struct page *page, uint32_t i)
{
	struct scraped_row row;

	page_row(page, i, &row);
	if (!ENDS(row.uuid) || !ENDS(row.gi) || !ENDS(row.gpu) || !ENDS(row.device) ||
	    !ENDS(row.mig_profile) || !ENDS(row.namespace) || !ENDS(row.pod) || !ENDS(row.container) ||
	    !ENDS(row.node) || !ENDS(row.model) || !utf8_valid(row.pod, strlen(row.pod)))
		abort();
	for (unsigned k = 0; k < SCRAPED_METRICS; k++)
		if (scraped_has(&row, k) && isnan(row.v[k]))
			abort();
}

static void check_device(const struct dcgm_device *d)
{
	if (!d->uuid[0] || !ENDS(d->uuid) || !ENDS(d->name) || !ENDS(d->pci_bus_id) ||
	    !ENDS(d->mig_profile) || !ENDS(d->driver_version))
		abort();
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if ((d->p[row] & PRESENCE_MASK) > PRESENCE_PRESENT)
			abort();
}

static int read_page(struct page *page, const uint8_t *data, size_t size, size_t piece)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < size; at += piece)
		r = page_feed(page, (const char *)data + at, MIN(piece, size - at));
	return r == 0 ? page_end(page) : r;
}

static uint64_t left_out(const struct page *page)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SCRAPE_LINES; i++)
		n += page_exposition(page)->dropped[i];
	return n;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const char *const nodes[] = { "n1", NULL };
	struct page *page, *whole;
	int r;

	if (size < 1 || families_init() < 0 || page_new(data[0] & 1, data[0] & 2, "", nodes, &page) < 0)
		return 0;
	if (page_new(data[0] & 1, data[0] & 2, "", nodes, &whole) < 0)
		abort();
	r = read_page(page, data + 1, size - 1, 1 + (data[0] >> 2));
	/* Pieces make no difference. */
	if (r != read_page(whole, data + 1, size - 1, size) || page_rows(page) != page_rows(whole) ||
	    page_devices(page) != page_devices(whole) || left_out(page) != left_out(whole))
		abort();
	for (uint32_t i = 0; r == 0 && i < page_rows(page); i++)
		check_row(page, i);
	for (uint32_t i = 0; r == 0 && i < page_devices(page); i++)
		check_device(page_device(page, i));
	page_free(page);
	page_free(whole);
	return 0;
}
