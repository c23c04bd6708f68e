// SPDX-License-Identifier: Apache-2.0
#include "serve/pages.h"

#include <errno.h>
#include <stdlib.h>

#include "serve/access.h"

int pages_init(struct pages *pages, struct conns *conns, unsigned n_routes)
{
	unsigned n = pages_slot(n_routes, 0, HTTP_PLAIN);
	struct page_slot *slots = calloc(n ? n : 1, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	*pages = (struct pages){ .conns = conns, .slots = slots, .n_slots = n };
	return 0;
}

static void page_free(struct page *page)
{
	if (!page)
		return;
	strbuf_done(&page->body);
	free(page);
}

/* The page has no readers any more. */
static void retire(struct page *page)
{
	struct page_slot *slot = page->slot;

	if (!slot || slot->spare)
		page_free(page);
	else
		slot->spare = page;
}

/* Called when libmicrohttpd drops the last reference. */
static void on_last_reader(void *userdata)
{
	struct page *page = userdata;
	struct pages *pages = page->pages;

	if (page->copy)
		pages->copies_bytes -= page->body.cap;
	for (struct page **p = page->copy ? &pages->newest_copy : &pages->newest_old; *p; p = &(*p)->older) {
		if (*p == page) {
			*p = page->older;
			break;
		}
	}
	page->response = NULL;
	retire(page);
}

/* Replaces the slot's page by a newer one, or by NULL. */
static void replace(struct pages *pages, struct page_slot *slot)
{
	struct page *page = TAKE_PTR(slot->current);

	if (!page)
		return;
	page->older = pages->newest_old;
	pages->newest_old = page;
	/* without readers this calls on_last_reader(), which undoes the two lines above */
	MHD_destroy_response(page->response);
}

/* Closes the readers of the oldest pages; those that are already being closed are not affected. */
static void drop_old(struct pages *pages)
{
	unsigned n = 0;

	for (const struct page *p = pages->newest_old; p; p = p->older) {
		if (++n > PAGES_OLD)
			conns_drop_page(pages->conns, p);
	}
}

bool pages_expire(struct pages *pages)
{
	int64_t now_ns = clock_mono_ns();
	bool kept = pages->newest_old;

	for (struct page_slot *s = pages->slots; s < pages->slots + pages->n_slots; s++) {
		if ((s->current || s->spare) && now_ns - s->used_ns > PAGES_IDLE_NS) {
			replace(pages, s);
			page_free(TAKE_PTR(s->spare));
		}
		kept |= s->current || s->spare;
	}
	return kept;
}

void pages_done(struct pages *pages)
{
	if (!pages->slots)
		return;
	for (struct page_slot *s = pages->slots; s < pages->slots + pages->n_slots; s++) {
		replace(pages, s);
		page_free(TAKE_PTR(s->spare));
	}
	free(TAKE_PTR(pages->slots));
}

struct page *pages_lookup(struct pages *pages, unsigned slot, uint64_t generation, int64_t max_age_ns)
{
	struct page_slot *s = &pages->slots[slot];
	int64_t now_ns = clock_mono_ns();

	if (!s->current || s->current->generation != generation)
		return NULL;
	if (max_age_ns && now_ns - s->current->made_ns > max_age_ns)
		return NULL;
	s->used_ns = now_ns;
	return s->current;
}

static struct page *page_new(struct pages *pages)
{
	struct page *page = calloc(1, sizeof(*page));

	if (page) {
		strbuf_init(&page->body, PAGES_BYTES_MAX);
		page->pages = pages;
	}
	return page;
}

struct page *pages_begin(struct pages *pages, int slot)
{
	struct page_slot *s = slot < 0 ? NULL : &pages->slots[slot];
	struct page *page = NULL;

	if (s) {
		/* Before rendering, so that the new page can reuse its memory if it has no readers. */
		replace(pages, s);
		drop_old(pages);
		page = TAKE_PTR(s->spare);
	}
	if (page)
		strbuf_reset(&page->body);
	else
		page = page_new(pages);
	if (page) {
		page->slot = s;
		page->tag = NULL;
	}
	return page;
}

/* The page's response, from now on libmicrohttpd's; if there is none, the page is freed. */
static int make_response(struct page *page, unsigned status)
{
	page->response = MHD_create_response_from_buffer_with_free_callback_cls(
		page->body.len, page->body.data, on_last_reader, page);
	if (!page->response) {
		pages_discard(page);
		return -ENOMEM;
	}
	page->status = status;
	page->made_ns = clock_mono_ns();
	return 0;
}

/* @value NULL: none. */
static bool add_header(struct page *page, const char *name, const char *value)
{
	if (!value || access_header(page->pages->access, name))
		return true;
	return MHD_add_response_header(page->response, name, value) == MHD_YES;
}

void pages_add_headers(const struct pages *pages, struct MHD_Response *response)
{
	for (unsigned i = 0; pages->access && i < pages->access->n; i++) {
		const struct access_record *record = &pages->access->records[i];

		if (record->kind == ACCESS_HEADER)
			MHD_add_response_header(response, record->name, record->text);
	}
}

static void become_current(struct page *page)
{
	if (!page->slot)
		return;
	page->slot->current = page;
	page->slot->used_ns = page->made_ns;
}

int pages_publish(struct page *page, unsigned status, const char *content_type, uint64_t generation)
{
	int r = make_response(page, status);

	if (r < 0)
		return r;
	page->generation = generation;
	if (!add_header(page, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) ||
	    !add_header(page, MHD_HTTP_HEADER_CACHE_CONTROL, page->tag ? "no-cache" : "no-store") ||
	    !add_header(page, MHD_HTTP_HEADER_ETAG, page->tag) ||
	    !add_header(page, "X-Content-Type-Options", "nosniff")) {
		MHD_destroy_response(page->response);
		return -ENOMEM;
	}
	pages_add_headers(page->pages, page->response);
	become_current(page);
	return 0;
}

/* Closes the readers of the oldest copies, so that @more bytes have room; they are freed later. */
static void drop_copies(struct pages *pages, size_t more)
{
	size_t kept = more;

	for (const struct page *p = pages->newest_copy; p; p = p->older) {
		kept += p->body.cap;
		if (kept > PAGES_COPIES_KEPT)
			conns_drop_page(pages->conns, p);
	}
}

static enum MHD_Result copy_header(void *userdata, _unused_ enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	return MHD_add_response_header(userdata, name, value);
}

int pages_publish_copy(struct page *page, const struct page *of)
{
	struct pages *pages = page->pages;
	int r;

	drop_copies(pages, page->body.cap);
	if (pages->copies_bytes + page->body.cap > PAGES_COPIES_BYTES) {
		pages_discard(page);
		return -ENOBUFS;
	}
	r = make_response(page, of->status);
	if (r < 0)
		return r;
	page->copy = true;
	page->older = pages->newest_copy;
	pages->newest_copy = page;
	pages->copies_bytes += page->body.cap;
	MHD_get_response_headers(of->response, copy_header, page->response);
	return 0;
}

int pages_publish_encoded(struct page *page, const struct page *of, enum http_encoding encoding)
{
	int r = make_response(page, of->status);

	if (r < 0)
		return r;
	page->generation = of->generation;
	MHD_get_response_headers(of->response, copy_header, page->response);
	if (!add_header(page, MHD_HTTP_HEADER_CONTENT_ENCODING, encoding_name(encoding))) {
		MHD_destroy_response(page->response);
		return -ENOMEM;
	}
	become_current(page);
	return 0;
}

void pages_discard(struct page *page)
{
	retire(page);
}

void pages_unref(struct page *page)
{
	MHD_destroy_response(page->response);
}
