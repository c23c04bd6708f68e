// SPDX-License-Identifier: Apache-2.0
/*
 * An exposition page in text format 0.0.4 or OpenMetrics 1.0.0, written family by family: the sink of a walk
 * (walk.h) for all pages that Prometheus scrapes. It does the escaping and formats names and units.
 *
 * page_family() writes nothing: HELP, TYPE and UNIT are written with the family's first sample, so a family
 * without samples is omitted. The text of a label set is rendered once, since a page repeats it hundreds of
 * times.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "view/set_texts.h"
#include "view/view.h"
#include "view/walk/walk.h"

struct page {
	struct strbuf *out;
	enum exposition format;
	struct family family;
	struct strbuf name; /* of the family's samples */
	const char *suffix; /* mostly "", for a histogram _bucket, _sum, _count */
	bool opened; /* the family's header has been written */
	struct set_texts texts;
};

void page_init(struct page *page, enum exposition format, struct strbuf *out);
void page_done(struct page *page);
void page_family(struct page *page, const struct family *family);

/* Writes a sample, or all samples of a histogram. */
void page_series(struct page *page, const struct series *series);

/*
 * Writes everything of a sample before its value: name, labels, a space. The caller writes value and newline.
 * All sets with ids must be of one walk, since texts are cached by id.
 */
void page_labels(struct page *page, const struct label_set *const *sets, unsigned n);

/* A character that does something to a terminal, as pages spell it: \x1b. */
void page_add_spelt(struct strbuf *out, uint32_t c);

/* Ends the page; 0, or -E2BIG/-ENOMEM if a buffer failed. */
int page_end(struct page *page);

enum { LABEL_VALUE_MAX = 512 }; /* longer invalid text is cut; the texts of snapshots are shorter */
/* @value, or what is made of it in @room if it is not UTF-8. */
const char *page_valid_value(const char *value, char room[static LABEL_VALUE_MAX]);
/*
 * @value as a page has it: UTF-8 without what does something to a terminal; in @room if that is not what it
 * is.
 */
const char *page_clean_value(const char *value, struct strbuf *room);
/* Whether the family's name ends with its unit, before _total: only then formats may say the unit. */
bool page_names_unit(const struct family *family);
