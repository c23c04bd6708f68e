// SPDX-License-Identifier: Apache-2.0
/*
 * A page of samples: the same families and series as GET /metrics, for what sends them elsewhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/macro.h"
#include "samples/write.h"
#include "view/number.h"
#include "view/page.h"
#include "view/view.h"
#include "view/walk/walk.h"

_Static_assert((int)PAGE_SERIES_SETS == SERIES_SETS, "a series keeps its sets");
_Static_assert((int)PAGE_TYPES == FAMILY_TYPES && (int)PAGE_HISTOGRAM == FAMILY_HISTOGRAM,
	       "types are the same");

enum { SETS_AT_ONCE = 256, SET_LABELS_MAX = 32 };

struct sink {
	struct samples_writer writer;
	const char *families; /* glob_list_has() */
	uint32_t *sets; /* of the page, by the walk's ids; 0: not written yet */
	uint32_t sets_n;
	struct strbuf text;
};

/* ---- labels ---- */

static const char *clean_value(struct sink *sink, const char *value)
{
	value = page_clean_value(value, &sink->text);
	sink->writer.failed |= sink->text.failed;
	return value;
}

static uint32_t write_set(struct sink *sink, const struct label_set *set)
{
	struct page_label labels[SET_LABELS_MAX];
	uint32_t n = MIN(set->n, (uint32_t)SET_LABELS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		labels[i].name = samples_add_text(&sink->writer, set->labels[i].name);
		labels[i].value = samples_add_text(&sink->writer, clean_value(sink, set->labels[i].value));
	}
	return samples_add_set(&sink->writer, labels, n);
}

static bool set_has_room(struct sink *sink, uint32_t id)
{
	uint32_t n = MAX(id + SETS_AT_ONCE, sink->sets_n * 2);
	uint32_t *sets;

	if (id < sink->sets_n)
		return true;
	sets = reallocarray(sink->sets, n, sizeof(*sets));
	if (!sets)
		return false;
	memset(sets + sink->sets_n, 0, (n - sink->sets_n) * sizeof(*sets));
	sink->sets = sets;
	sink->sets_n = n;
	return true;
}

static uint32_t find_set(struct sink *sink, const struct label_set *set)
{
	if (!set || set->n == 0)
		return 0;
	if (set->id == 0)
		return write_set(sink, set);
	if (!set_has_room(sink, set->id)) {
		sink->writer.failed = true;
		return 0;
	}
	if (sink->sets[set->id] == 0)
		sink->sets[set->id] = write_set(sink, set);
	return sink->sets[set->id];
}

/* ---- the sink ---- */

static bool family_begins(void *userdata, const struct family *family)
{
	struct sink *sink = userdata;
	struct page_family written = { .type = family->type };
	char name[256];

	snprintf(name, sizeof(name), "%s%s", family->prefix, family->name);
	if (sink->families && !glob_list_has(sink->families, name))
		return false;
	strbuf_reset(&sink->text);
	strbuf_adds(&sink->text, family->help);
	strbuf_adds(&sink->text, family->help_more ? family->help_more : "");
	sink->writer.failed |= sink->text.failed;
	written.name = samples_add_text(&sink->writer, name);
	written.help = samples_add_text(&sink->writer, sink->text.failed ? "" : sink->text.data);
	written.unit = samples_add_text(&sink->writer, unit_name(family->unit));
	samples_add_family(&sink->writer, &written);
	return true;
}

static uint32_t write_histogram(struct sink *sink, const struct histogram *h)
{
	const struct page_histogram written = { .n = h->n, .all = h->all, .first = h->first };
	struct page_bound bounds[h->n];

	for (unsigned i = 0; i < h->n; i++) {
		strbuf_reset(&sink->text);
		number_add_bound(&sink->text, h->bounds[i]);
		bounds[i] = (struct page_bound){ .value = h->bounds[i],
						 .text = samples_add_text(&sink->writer, sink->text.data) };
		sink->writer.failed |= sink->text.failed;
	}
	return samples_add_histogram(&sink->writer, &written, bounds, h->within);
}

static void series_comes(void *userdata, const struct series *series)
{
	struct sink *sink = userdata;
	struct page_series written = { .value = series->value,
				       .created_real_ns = series->created_real_ns,
				       .estimated = (series->presence & PRESENCE_ESTIMATED) != 0 };

	for (unsigned k = 0; k < SERIES_SETS; k++)
		written.sets[k] = find_set(sink, series->sets[k]);
	if (series->histogram) {
		written.value = series->histogram->sum;
		written.histogram = write_histogram(sink, series->histogram);
	}
	samples_add_series(&sink->writer, &written);
}

int view_samples(const struct snapshot *snapshot, const char *families, uint32_t *ret_bytes)
{
	struct sink sink = { .families = families };
	const struct walk_sink walk = { family_begins, series_comes, &sink };
	int r;

	samples_writer_init(&sink.writer);
	strbuf_init(&sink.text, 0);
	r = walk_snapshot(snapshot, WALK_ALL, &walk);
	if (r == 0)
		r = samples_write(&sink.writer, snapshot->real_ns, ret_bytes);
	strbuf_done(&sink.text);
	samples_writer_done(&sink.writer);
	free(sink.sets);
	return r;
}
