// SPDX-License-Identifier: Apache-2.0
/*
 * An exposition page, text format 0.0.4 or OpenMetrics 1.0.0, written family by family.
 *
 * page_family() only announces a family: HELP, TYPE and UNIT appear with its first sample, so a family
 * without samples leaves no trace. Label text is made once per entity by label_add() and handed over
 * ready-made, because a page repeats it hundreds of times.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "model/metric.h"
#include "view/view.h"

enum family_type {
	FAMILY_GAUGE,
	FAMILY_COUNTER,
	FAMILY_INFO,
	FAMILY_UNKNOWN,
	FAMILY_HISTOGRAM,
	FAMILY_TYPES
};

struct family {
	const char *prefix; /* of the name, "gpusonde_" or "" */
	const char *name; /* with _total, _info */
	const char *help, *help_more; /* one text in two pieces; the second may be NULL */
	enum family_type type;
	enum metric_unit unit;
};

struct page {
	struct strbuf *out;
	enum exposition format;
	struct family family;
	const char *suffix; /* of the samples' names, "" mostly */
	bool opened; /* the family's header is written */
};

void page_init(struct page *page, enum exposition format, struct strbuf *out);
void page_family(struct page *page, const struct family *family);
/*
 * What the names of the family's next samples have behind it: _bucket, _sum, _count of a histogram. A
 * literal.
 */
void page_suffix(struct page *page, const char *suffix);

/*
 * Everything of a sample before its value: name, labels, a space. @labels and @tail are label text without
 * braces ("" for none) and joined by a comma; @index_name adds one more label with the number @index unless
 * NULL. The caller writes value and newline.
 */
void page_labels(struct page *page, const char *labels, const char *tail, const char *index_name,
		 unsigned index);

/* A whole sample. */
void page_sample(struct page *page, const char *labels, const char *tail, double value);

/* Ends the page; 0, or -E2BIG/-ENOMEM when the buffer failed. */
int page_end(struct page *page);

/* Appends name="value", after a comma if @out is not empty, escaped and with invalid UTF-8 made '?'. */
enum { LABEL_VALUE_MAX = 512 }; /* longer invalid text is cut; every text of a snapshot is shorter */
void label_add(struct strbuf *out, const char *name, const char *value);
void label_add_u64(struct strbuf *out, const char *name, uint64_t value);
