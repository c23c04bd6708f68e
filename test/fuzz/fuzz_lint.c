// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a board or a file of rules; names and labels lie within it, replacements are whole. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/lint/lint.h"

static void on_name(const struct lint_name *name, void *userdata)
{
	const struct lint_query *query = userdata;

	if (name->name < query->text || name->n == 0 || name->n > strlen(name->name) ||
	    memcmp(name->name, "DCGM_", 5) != 0 || !memchr(name->ours, 0, sizeof(name->ours)))
		abort();
}

static bool is_within(const struct lint_query *query, const char *text, size_t n)
{
	return !text || (text >= query->text && text + n <= query->text + strlen(query->text));
}

static void on_fault(const struct lint_fault *fault, void *userdata)
{
	if (!is_within(userdata, fault->metric, fault->metric_n) ||
	    !is_within(userdata, fault->label, fault->label_n))
		abort();
}

static void on_query(const struct lint_query *query, _unused_ void *userdata)
{
	lint_names(query->text, on_name, (void *)query);
	if (lint_ours(query->text, query->title, on_fault, (void *)query) < 0)
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct strbuf why;

	strbuf_init(&why, 0);
	if (lint_read("file", (const char *)data, size, on_query, NULL, &why) < 0 && why.len == 0)
		abort();
	strbuf_done(&why);
	return 0;
}
