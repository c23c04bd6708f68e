// SPDX-License-Identifier: Apache-2.0
#include "view/container/filter.h"

#include <errno.h>
#include <string.h>

#include "view/container/go_json.h"

const struct container_filter container_filters[CONTAINER_FILTERS] = {
	{ "container", "container" },
	{ "pod", "pod" },
	{ "namespace", "namespace" },
	{ "node", "node_name" },
};

/* Around an object, and where it ends within. */
static const char object_begin[] = "\n  {", object_end[] = "\n  }";

/* The line that an object must have, with the line ends around it; empty: any. */
static void make_line(const struct container_filter *filter, const char *value, struct strbuf *line)
{
	if (!value || !*value)
		return;
	strbuf_addf(line, "\n    \"%s\": ", filter->member);
	go_json_string(line, value);
	strbuf_adds(line, ",\n");
}

static bool matches(const char *object, size_t n, const struct strbuf lines[static CONTAINER_FILTERS])
{
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++)
		if (lines[i].len > 0 && !memmem(object, n, lines[i].data, lines[i].len))
			return false;
	return true;
}

static void keep_objects(const char *page, size_t n, const struct strbuf lines[static CONTAINER_FILTERS],
			 struct strbuf *out)
{
	const char *end = page + n;
	bool any = false;

	strbuf_addc(out, '[');
	for (const char *at = page;
	     (at = memmem(at, (size_t)(end - at), object_begin, strlen(object_begin)));) {
		const char *last = memmem(at, (size_t)(end - at), object_end, strlen(object_end));
		size_t length;

		if (!last)
			break;
		length = (size_t)(last - at) + strlen(object_end);
		if (matches(at, length, lines)) {
			strbuf_adds(out, any ? "," : "");
			strbuf_add(out, at, length);
			any = true;
		}
		at += length;
	}
	strbuf_adds(out, any ? "\n]\n" : "]\n");
}

int container_filter(const char *page, size_t n, const char *const values[static CONTAINER_FILTERS],
		     struct strbuf *out)
{
	struct strbuf lines[CONTAINER_FILTERS];
	bool failed = false;

	for (unsigned i = 0; i < CONTAINER_FILTERS; i++) {
		strbuf_init(&lines[i], 0);
		make_line(&container_filters[i], values[i], &lines[i]);
		failed |= lines[i].failed;
	}
	if (!failed)
		keep_objects(page, n, lines, out);
	for (unsigned i = 0; i < CONTAINER_FILTERS; i++)
		strbuf_done(&lines[i]);
	return failed || out->failed ? -ENOMEM : 0;
}
