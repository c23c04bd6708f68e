// SPDX-License-Identifier: Apache-2.0
/*
 * Rendered pages as libmicrohttpd responses. A cached page is rendered once per generation and queued on as
 * many connections as ask for it; libmicrohttpd counts them. When a newer one takes its place it lives on
 * until its last reader has it.
 *
 * Bounds: of each route and variant one current page and one spare buffer; besides them at most PAGES_OLD old
 * pages and those that were replaced in the same round of the HTTP thread: above that, the readers of the
 * oldest give way. A page that nobody asked for in PAGES_IDLE_NS is freed. One page is at most
 * PAGES_BYTES_MAX bytes.
 *
 * All of it belongs to the HTTP thread; after that has ended, to the one that ended it.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "serve/conns.h"
#include "serve/http.h"

enum { PAGES_OLD = 8, PAGES_BYTES_MAX = 16 << 20 };
#define PAGES_IDLE_NS (5 * NSEC_PER_SEC)

struct page {
	struct MHD_Response *response;
	unsigned status;
	uint64_t generation;
	struct strbuf body;
	struct page_slot *slot; /* whose spare buffer it becomes; NULL: it is freed */
	struct page *older; /* towards the oldest of pages.newest_old */
	struct pages *pages;
};

/* Of one route and variant. */
struct page_slot {
	struct page *current;
	struct page *spare;
	int64_t used_ns;
};

struct pages {
	struct conns *conns;
	struct page_slot *slots; /* HTTP_VARIANTS for each route */
	unsigned n_slots;
	struct page *newest_old; /* replaced, still being read */
};

int pages_init(struct pages *pages, struct conns *conns, unsigned n_routes);
/* After libmicrohttpd has closed every connection. */
void pages_done(struct pages *pages);

/* Frees the pages that nobody asked for lately. Are there any left? */
bool pages_expire(struct pages *pages);

/*
 * The current page of a route's variant if it is of this generation, else NULL. Borrowed; libmicrohttpd takes
 * its own reference when the response is queued.
 */
struct page *pages_lookup(struct pages *pages, unsigned slot, uint64_t generation);

/*
 * A page to render into: body is empty. To be given to pages_publish() or pages_discard(). @slot as in
 * pages_lookup(), or -1 for one that is not cached. NULL: out of memory.
 */
struct page *pages_begin(struct pages *pages, int slot);
/*
 * Makes the response and, if it has a slot, the slot's current page. On success the page is borrowed and
 * valid until the next pages_begin() or pages_unref(); on failure (-ENOMEM) it is gone.
 */
int pages_publish(struct page *page, unsigned status, const char *content_type, uint64_t generation);
void pages_discard(struct page *page);
/* For a page without slot: our own reference, once it is queued. */
void pages_unref(struct page *page);
