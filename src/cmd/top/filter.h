// SPDX-License-Identifier: Apache-2.0
/* What people type to see fewer rows: see struct rows_wanted. */
#pragma once

#include "cmd/top/columns.h"

struct filter;

/* *ret_unknown: a word that looks like a condition names no column of the tab. -ENOMEM. */
int filter_new(enum tab tab, const char *text, struct filter **ret_filter, bool *ret_unknown);
void filter_free(struct filter *filter);
DEFINE_CLEANUP(struct filter *, filter_free, filter_freep)
/* Whether the row matches; always, if the filter is empty. */
bool filter_matches(const struct filter *filter, const struct sample *sample, const struct row *row);
/* The column of this name, or whose name alone begins so, whatever the case; @n: there is none. */
unsigned filter_column(const struct column *columns, unsigned n, const char *name, size_t length);
