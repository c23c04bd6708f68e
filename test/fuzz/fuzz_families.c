// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "serve/encoding.h"
#include "view/metrics/families.h"

/* What is left of a page is never more than it, and all of it if every family is wanted. */
static void choose(const struct strbuf *page, const char *list)
{
	struct strbuf part;

	strbuf_init(&part, 0);
	families_of_page(page, list, &part);
	if (part.failed || part.len > page->len)
		abort();
	strbuf_reset(&part);
	families_of_page(page, "*", &part);
	if (part.len != page->len || memcmp(part.data, page->data, page->len) != 0)
		abort();
	strbuf_done(&part);
}

/* The first line is of a client: a list of families, and a header Accept-Encoding; the rest is a page. */
int fuzz_one(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t n = end ? (size_t)(end - data) : size;
	char *line = strndup((const char *)data, n);
	struct strbuf page;

	if (!line)
		abort();
	strbuf_init(&page, 0);
	strbuf_add(&page, data + n, size - n);
	choose(&page, line);
	if (encoding_negotiate(line) >= HTTP_ENCODINGS)
		abort();
	strbuf_done(&page);
	free(line);
	return 0;
}
