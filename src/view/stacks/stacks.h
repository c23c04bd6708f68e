// SPDX-License-Identifier: Apache-2.0
/*
 * What stacks of calls cost (model/stacks.h), as files that other programs read: folded text, pprof, and a
 * page with a flame graph that needs no other file; and as JSON. All are made of the same rows.
 */
#pragma once

#include "base/strbuf.h"
#include "model/stacks.h"

/*
 * Lines "process;outer;inner;call WEIGHT", as flamegraph.pl and speedscope read them. Rows of weight 0 are
 * left out. From row @from on, until @out has some @most bytes: each line repeats all of its names. The row
 * to go on with; page->rows_n: that was all.
 */
size_t view_stacks_folded(const struct stack_page *page, enum stack_weight weight, size_t from, size_t most,
			  struct strbuf *out);
/* Lines "# ..." of what the numbers are not, which readers of folded text skip. */
void view_stacks_remarks(const struct stack_page *page, struct strbuf *out);
/* A gzipped profile.proto. -ENOMEM. */
int view_stacks_pprof(const struct stack_page *page, struct strbuf *out);
int view_stacks_html(const struct stack_page *page, struct strbuf *out);
/* The page's data: tables of texts and places, which rows name by their numbers. */
int view_stacks_json(const struct stack_page *page, struct strbuf *out);
