// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --stacks": what each stack of calls costs (pipeline/stacks.h), written as a file; and
 * "--python": which lines of Python make the calls.
 */
#pragma once

#include "pipeline/stacks.h"
#include "view/stacks/stacks.h"
#include "view/view.h"

enum trace_stacks_format {
	TRACE_STACKS_FOLDED,
	TRACE_STACKS_PPROF,
	TRACE_STACKS_HTML,
};

/* The format that a file's name asks for. False: none. */
bool trace_stacks_format(const char *path, enum trace_stacks_format *ret_format);
/* @kinds: enum trace_stack_kind. An error is printed. */
int trace_stacks_new(sd_event *event, unsigned kinds, struct stack_sums **ret_stacks);
/*
 * Writes the file whole, or not at all: beside, then renamed. @weight: of folded text. *ret_said: what the
 * user should know, "" if nothing; to be freed.
 */
int trace_stacks_write(struct stack_sums *stacks, struct trace_engine *engine, const char *path,
		       enum stack_weight weight, char **ret_said);
/* Lines of Python. -ENOMEM/-E2BIG. */
int trace_stacks_table(struct stack_sums *stacks, struct trace_engine *engine,
		       const struct table_options *options, size_t rows, struct strbuf *out);
/* The value of the member `lines`. */
int trace_stacks_json(struct stack_sums *stacks, struct trace_engine *engine, struct strbuf *out);
