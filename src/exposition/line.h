// SPDX-License-Identifier: Apache-2.0
/*
 * One line of the exposition format, by the rules of Prometheus's own parser of text (prometheus/common,
 * before names in quotes). Tokens point into the line.
 */
#pragma once

#include "base/cursor.h"
#include "exposition/reason.h"

enum line_kind {
	LINE_NOTHING, /* empty, a comment, or a HELP or TYPE that says nothing */
	LINE_HELP,
	LINE_TYPE,
	LINE_SAMPLE,
};

enum { LINE_LABELS_MAX = 128 };

struct line_label {
	struct cursor name;
	struct cursor value; /* as it stands there */
	bool escaped; /* it has escapes: line_unescape() */
};

struct line {
	enum line_kind kind;
	struct cursor name; /* of the metric; empty: HELP or TYPE without one */
	struct cursor rest; /* behind the name and blanks: the help, the type, or what line_sample() reads */
	/* of line_sample(): */
	double value;
	bool whole; /* the value is written as a whole number */
	uint32_t labels_n;
	struct line_label labels[LINE_LABELS_MAX];
};

/* What kind of line it is, and of which metric. @n bytes, without the line's end. */
enum scrape_line line_begin(const char *p, size_t n, struct line *line);
/*
 * The rest of a sample. @apart: a label's name that may be there twice and whose value is a number
 * ("quantile" of a summary, "le" of a histogram); NULL.
 */
enum scrape_line line_sample(struct line *line, const char *apart);
/* The rest of a HELP line. */
enum scrape_line line_help(const struct line *line);
/* A label's value, at most @size bytes; returns their number, or @size + 1 if there are more. */
size_t line_unescape(const struct line_label *label, char *to, size_t size);
