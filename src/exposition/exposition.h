// SPDX-License-Identifier: Apache-2.0
/*
 * src/exposition: Prometheus's exposition format, for code that reads pages of others. exposition.c has lines
 * from bytes and types of families, line.c one line, float.c its number, reason.h why a line or page is left
 * out.
 *
 * Reads a page in the exposition format as its bytes come: a line at a time, of which 64 KiB at most are
 * kept.
 *
 * Lenient, a line that is not of the format is left out and counted by its reason; lines of families that are
 * not read are not looked into. Strict, the first such line of any family loses the page, as Prometheus's own
 * parser has it; a sample whose family is no gauge or counter then has the value 0.
 *
 * Memory: a line that came in pieces; the families of which the page had a TYPE, a HELP or, strict, a sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exposition/line.h"

enum family_type {
	TYPE_NONE, /* not said yet */
	TYPE_COUNTER,
	TYPE_GAUGE,
	TYPE_SUMMARY,
	TYPE_UNTYPED,
	TYPE_HISTOGRAM,
	TYPE_GAUGE_HISTOGRAM,
};

enum {
	EXPOSITION_LINE_MAX = 64 << 10,
	EXPOSITION_FAMILIES_MAX = 8192, /* strict: further ones lose the page */
};

/* What the reader knows a family by, from its name; NULL: it is not read. */
typedef const void *exposition_find_fn(const char *name, size_t length, void *userdata);
/* @line has the sample, of what exposition_find_fn() found; valid for the call. */
typedef void exposition_sample_fn(const void *family, const struct line *line, void *userdata);

struct seen_family;

struct exposition {
	bool strict;
	exposition_find_fn *find;
	exposition_sample_fn *sample;
	void *userdata;
	uint64_t lines; /* number of the newest, from 1 */
	uint64_t dropped[SCRAPE_LINES]; /* lines left out, by reason */
	enum scrape_line failed; /* strict: why the page is lost */
	bool skipping; /* the rest of a line that is too long */
	char *partial; /* what has come of a line */
	size_t partial_n, partial_room;
	struct seen_family *seen; /* open addressing */
	uint32_t seen_n, seen_room;
	struct line line;
};

/* @sample is called with the samples of families that @find knows. */
void exposition_init(struct exposition *exposition, bool strict, exposition_find_fn *find,
		     exposition_sample_fn *sample, void *userdata);
void exposition_done(struct exposition *exposition);
/* -EBADMSG: strict, and the page is lost; -ENOMEM. Then it must not be called again. */
int exposition_feed(struct exposition *exposition, const char *data, size_t n);
/* The page has ended. Errors as above. */
int exposition_end(struct exposition *exposition);
