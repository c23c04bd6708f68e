// SPDX-License-Identifier: Apache-2.0
/*
 * Rendered pages as libmicrohttpd responses. A cached page is rendered once per generation and sent on all
 * connections that request it; libmicrohttpd counts the references. A replaced page exists until its last
 * reader has received it.
 *
 * Limits: of each route, variant and encoding one current page and one spare buffer; in addition at most
 * PAGES_OLD old pages and those that were replaced in the same iteration of the HTTP thread: above that,
 * connections that read the oldest are closed. A page that was not requested for PAGES_IDLE_NS is freed. One
 * page has at most PAGES_BYTES_MAX bytes. Copies of parts of pages, which requests choose, have
 * PAGES_COPIES_BYTES together.
 *
 * All of it belongs to the HTTP thread, and after that has ended, to the thread that ended it.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "serve/conns.h"
#include "serve/encoding.h"
#include "serve/http.h"

enum { PAGES_OLD = 8, PAGES_BYTES_MAX = 16 << 20 };
#define PAGES_IDLE_NS (5 * NSEC_PER_SEC)
/*
 * Of all copies that are being read; the readers of older ones are closed, and so many are left until they
 * are.
 */
#define PAGES_COPIES_KEPT ((size_t)32 << 20)
#define PAGES_COPIES_BYTES (2 * PAGES_COPIES_KEPT)

struct page {
	struct MHD_Response *response;
	unsigned status;
	const char *tag; /* static; ETag, to be set before it is published; NULL: nobody may keep it */
	uint64_t generation;
	int64_t made_ns;
	struct strbuf body;
	struct page_slot *slot; /* the slot that reuses its buffer; NULL: the page is freed */
	struct page *older; /* next older page in the list from pages.newest_old, or pages.newest_copy */
	bool copy; /* in the latter */
	struct pages *pages;
};

/* The pages of one route, variant and encoding. */
struct page_slot {
	struct page *current;
	struct page *spare;
	int64_t used_ns;
};

struct pages {
	struct conns *conns;
	const struct access *access; /* for headers of all replies; NULL: none */
	struct page_slot *slots; /* by pages_slot() */
	unsigned n_slots;
	struct page *newest_old; /* replaced, still being read */
	struct page *newest_copy; /* parts of pages, being read */
	size_t copies_bytes;
};

static inline unsigned pages_slot(unsigned route, unsigned variant, enum http_encoding encoding)
{
	return (route * HTTP_VARIANTS + variant) * HTTP_ENCODINGS + encoding;
}

int pages_init(struct pages *pages, struct conns *conns, unsigned n_routes);
/* To be called after libmicrohttpd has closed every connection. */
void pages_done(struct pages *pages);

/* Frees pages that were not requested lately. Returns whether any are left. */
bool pages_expire(struct pages *pages);

/*
 * The current page of a slot (pages_slot()) if it is of this generation, and, unless @max_age_ns is 0, no
 * older than that; else NULL. Borrowed; libmicrohttpd takes its own reference when the response is queued.
 */
struct page *pages_lookup(struct pages *pages, unsigned slot, uint64_t generation, int64_t max_age_ns);

/*
 * A page with an empty body to render into, to be passed to pages_publish() or pages_discard(). @slot as in
 * pages_lookup(), or -1 for a page that is not cached. NULL: out of memory.
 */
struct page *pages_begin(struct pages *pages, int slot);
/*
 * Creates the response and, if the page has a slot, makes it the current page. On success the page is
 * borrowed and valid until the next pages_begin() or pages_unref(); on failure (-ENOMEM) it has been freed.
 */
int pages_publish(struct page *page, unsigned status, const char *content_type, uint64_t generation);
/*
 * Publishes @page, from pages_begin() without slot, with the status and headers of another one, of which it
 * has a part. -ENOMEM, or -ENOBUFS while the copies that others read leave no room for it: it has been
 * freed.
 */
int pages_publish_copy(struct page *page, const struct page *of);
/* Publishes @page, from pages_begin() with a slot, which is another one encoded; as pages_publish(). */
int pages_publish_encoded(struct page *page, const struct page *of, enum http_encoding encoding);
/* The headers that the configuration wants in all replies. */
void pages_add_headers(const struct pages *pages, struct MHD_Response *response);
void pages_discard(struct page *page);
/* Drops our reference to a page without slot, after it was queued. */
void pages_unref(struct page *page);
