// SPDX-License-Identifier: Apache-2.0
/*
 * Which lines of Python make which calls of CUDA, made of stacks (model/stacks.h): as a table and JSON.
 *
 * A call counts once for each line of its stack, however often that is in it, and `itself` for the innermost
 * one. What has no line of Python is a row, too, by what its stack says in place of it.
 */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"
#include "model/stacks.h"
#include "view/view.h"

/* What a line itself calls. */
struct stack_line_call {
	const char *call; /* the function of CUDA */
	double count;
};

struct stack_line {
	uint32_t pid;
	uint32_t place; /* index of struct stack_page.places */
	double itself; /* calls */
	double weights[STACK_WEIGHTS]; /* of the line and all that it calls */
	const struct stack_line_call *calls; /* the most first */
	size_t calls_n;
};

struct stack_lines {
	struct stack_line *lines; /* by calls that they make themselves, the most first */
	size_t lines_n;
	struct stack_line_call *calls; /* of all lines */
};

/* -ENOMEM. */
int stack_lines_new(const struct stack_page *page, struct stack_lines **ret_lines);
void stack_lines_free(struct stack_lines *lines);
DEFINE_CLEANUP(struct stack_lines *, stack_lines_free, stack_lines_freep)

/* @rows: at most so many lines; 0: all. 0, or -ENOMEM/-E2BIG. */
int table_lines(const struct stack_page *page, const struct table_options *options, size_t rows,
		struct strbuf *out);
/* A list of all lines. 0, or -ENOMEM/-E2BIG. */
int json_lines(const struct stack_page *page, struct strbuf *out);
