// SPDX-License-Identifier: Apache-2.0
/*
 * An exposition page, text format 0.0.4 or OpenMetrics 1.0.0, written family by family: the sink of a walk
 * (walk.h) for all pages that Prometheus reads. Escaping, and what formats make of names and units, is here.
 *
 * page_family() only announces a family: HELP, TYPE and UNIT appear with its first sample, so a family
 * without samples leaves no trace. The text of a label set is made once, because a page repeats it hundreds
 * of times.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "view/view.h"
#include "view/walk.h"

struct page_text;

struct page {
	struct strbuf *out;
	enum exposition format;
	struct family family;
	struct strbuf name; /* of the family's samples */
	const char *suffix; /* of it, "" mostly: _bucket, _sum, _count of a histogram */
	bool opened; /* the family's header is written */
	struct strbuf texts; /* of label sets */
	struct page_text *sets; /* by id */
	uint32_t sets_n;
};

void page_init(struct page *page, enum exposition format, struct strbuf *out);
void page_done(struct page *page);
void page_family(struct page *page, const struct family *family);

/* A sample, or all those of a histogram. */
void page_series(struct page *page, const struct series *series);

/*
 * Everything of a sample before its value: name, labels, a space. The caller writes value and newline. Ids of
 * sets must be of one source, since what was made of a set is kept by its id.
 */
void page_labels(struct page *page, const struct label_set *const *sets, unsigned n);

/* Ends the page; 0, or -E2BIG/-ENOMEM when a buffer failed. */
int page_end(struct page *page);

enum { LABEL_VALUE_MAX = 512 }; /* longer invalid text is cut; every text of a snapshot is shorter */
