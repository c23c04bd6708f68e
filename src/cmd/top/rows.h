// SPDX-License-Identifier: Apache-2.0
/* The rows of a tab: those that match, in groups, sorted. */
#pragma once

#include "cmd/top/tree.h"

enum { FILTER_TEXT = 128, ROWS_MAX = 65536 };

/* A column of the tab, by its index there. Numbers begin with the largest, texts with "a", or reversed. */
struct sort_key {
	unsigned column;
	bool reversed;
};

enum process_types { TYPES_ALL, TYPES_COMPUTE, TYPES_GRAPHICS, TYPES_KINDS };

struct rows_wanted {
	enum tab tab;
	/* words that all must match: a text that any column has, "column=text", "column>1G", "column!=0" */
	char filter[FILTER_TEXT];
	enum process_types types; /* of processes */
	enum group_by by; /* of processes: under a heading each; of owners: what is added up */
	const struct closed *closed; /* headings whose processes are not shown; NULL: none */
	struct sort_key keys[SORT_KEYS]; /* the first decides */
	unsigned keys_n;
};

struct rows {
	uint32_t n, all; /* shown, headings included; of how many */
	struct row *list;
	struct tree tree; /* of processes in groups: what the rows point to */
	json_t *groups; /* the documents that headings, or owners' rows, are of */
	bool bad_filter; /* a word of it names no column; then it is taken as a text */
};

/* Fills @rows, which is empty or was filled before. -ENOMEM: none. */
int tab_rows_make(const struct sample *sample, const struct rows_wanted *wanted, struct rows *rows);
void tab_rows_done(struct rows *rows);

/* What tells the row from others, in this and the next sample; for what is selected. */
uint64_t row_id(const struct row *row);
