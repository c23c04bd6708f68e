// SPDX-License-Identifier: Apache-2.0
/* Two texts, with a line's end between them: whatever they are, events are well formed. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "serve/delta.h"

/* A copy of its own, so that a byte too far is seen. */
static struct delta_text copy_of(const uint8_t *data, size_t n)
{
	char *text = malloc(n ? n : 1);

	if (!text)
		abort();
	memcpy(text, data, n);
	return (struct delta_text){ text, n };
}

/* "event: ...", "data: ...", an empty line, and nothing else. */
static void check_events(const struct strbuf *events)
{
	const char *at = events->data, *end = at + events->len;

	while (at < end) {
		if (strncmp(at, "event: change\ndata: {", 21) != 0)
			abort();
		at = strstr(at + 14, "\n");
		if (!at || at[1] != '\n')
			abort();
		at += 2;
	}
}

int fuzz_one(const uint8_t *data, size_t size)
{
	const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
	size_t n = line ? (size_t)(line - data) : 0, from = line ? n + 1 : 0;
	struct delta_text old = copy_of(data, n), new = copy_of(data + from, size - from);
	struct strbuf events;

	strbuf_init(&events, 0);
	if (delta_events("p", &old, &new, &events) == 0 && events.len > 0)
		check_events(&events);
	strbuf_done(&events);
	free((char *)old.text);
	free((char *)new.text);
	return 0;
}
