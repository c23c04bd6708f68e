// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "view/container/filter.h"
#include "view/container/go_writer.h"

enum { OBJECTS = 3 };

/* The next text of the input, up to a line's end, as it is: no UTF-8, control characters. */
static char *next_text(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
	size_t n = end ? (size_t)(end - *data) : *size;
	char *text = malloc(n + 1);

	if (!text)
		abort();
	memcpy(text, *data, n);
	text[n] = '\0';
	n += end != NULL;
	*data += n;
	*size -= n;
	return text;
}

static const char *const members[CONTAINER_FILTERS] = { "container", "pod", "namespace", "node_name" };

static void add_object(struct go_writer *w, char *const texts[CONTAINER_FILTERS])
{
	go_open(w, NULL, '{');
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++)
		go_text(w, members[i], texts[i]);
	go_number(w, "sm_active", 0.5);
	go_close(w, '}');
}

/* As the filter of the other program compares: the texts themselves. */
static bool is_wanted(char *const texts[CONTAINER_FILTERS], const char *const values[CONTAINER_FILTERS])
{
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++)
		if (values[i][0] && strcmp(values[i], texts[i]) != 0)
			return false;
	return true;
}

/*
 * Objects of four texts each, which are made valid as the model does, and the filter's values, which are
 * not.
 */
static void filter_objects(const uint8_t *data, size_t size)
{
	char *texts[OBJECTS][CONTAINER_FILTERS], *values[CONTAINER_FILTERS];
	struct strbuf page, expected, out;
	struct go_writer whole = { .out = &page }, part = { .out = &expected };

	strbuf_init(&page, 0);
	strbuf_init(&expected, 0);
	strbuf_init(&out, 0);
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++)
		values[i] = next_text(&data, &size);
	go_open(&whole, NULL, '[');
	go_open(&part, NULL, '[');
	for (unsigned k = 0; k < OBJECTS; k++) {
		for (unsigned i = 0; i < CONTAINER_FILTERS; i++) {
			texts[k][i] = next_text(&data, &size);
			utf8_sanitize(texts[k][i]);
		}
		add_object(&whole, texts[k]);
		if (is_wanted(texts[k], (const char *const *)values))
			add_object(&part, texts[k]);
	}
	go_close(&whole, ']');
	go_close(&part, ']');
	if (container_filter(page.data, page.len, (const char *const *)values, &out) < 0 ||
	    out.len != expected.len || memcmp(out.data, expected.data, out.len) != 0)
		abort();
	if (!utf8_valid(out.data, out.len))
		abort();
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++) {
		free(values[i]);
		for (unsigned k = 0; k < OBJECTS; k++)
			free(texts[k][i]);
	}
	strbuf_done(&page);
	strbuf_done(&expected);
	strbuf_done(&out);
}

/* Also the input itself as a page: whatever it is, it is gone through. */
int fuzz_one(const uint8_t *data, size_t size)
{
	const char *const values[CONTAINER_FILTERS] = { "a", "" };
	struct strbuf out;

	filter_objects(data, size);
	strbuf_init(&out, 0);
	if (container_filter((const char *)data, size, values, &out) < 0 || out.len > size + strlen("[]\n\n"))
		abort();
	strbuf_done(&out);
	return 0;
}
