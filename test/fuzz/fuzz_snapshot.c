// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "view/snapshot/read.h"
#include "view/view.h"

typedef int table_fn(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* Whatever answers in an agent's place: what is decoded can be shown in every format. */
static void show(const struct snapshot *s)
{
	static table_fn *const tables[] = { table_gpus, table_processes, table_node };
	const struct table_options options = { .width = 80 };
	struct strbuf out;

	strbuf_init(&out, 0);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i](s, &options, &out) < 0)
			abort();
	if (!utf8_valid(out.data, out.len))
		abort();
	strbuf_reset(&out);
	if (view_prometheus(s, EXPOSITION_OPENMETRICS, NULL, &out) < 0 ||
	    view_dcgm(s, &(struct dcgm_style){ .names = DCGM_NAMES_49 }, EXPOSITION_PROMETHEUS, &out) < 0)
		abort();
	strbuf_done(&out);
}

/* And its own document is one that is decoded, to the same. */
static void check_again(const struct snapshot *s)
{
	enum { SECTIONS = JSON_GPUS | JSON_PROCESSES | JSON_NODE };
	json_t *first = view_json(s, SECTIONS), *second;
	struct snapshot *again;

	if (!first || snapshot_read(first, &again) < 0)
		abort();
	second = view_json(again, SECTIONS);
	if (!second || json_array_size(json_object_get(first, "processes")) !=
			       json_array_size(json_object_get(second, "processes")))
		abort();
	json_decref(first);
	json_decref(second);
	snapshot_read_free(again);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	json_t *document = json_loadb((const char *)data, size, 0, NULL);
	struct snapshot *s = NULL;

	if (document && snapshot_read(document, &s) == 0) {
		show(s);
		check_again(s);
	} else if (s) {
		abort();
	}
	snapshot_read_free(s);
	json_decref(document);
	return 0;
}
