// SPDX-License-Identifier: Apache-2.0
/*
 * What stacks of calls cost, as files that other programs read: folded text, pprof, and a page with a flame
 * graph that needs no other file. All three are made of the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* stack_weights.def has the names. */
enum stack_weight {
#define STACK_WEIGHT(id_, name_, unit_, title_) STACK_##id_,
#include "view/stack_weights.def"
	STACK_WEIGHTS,
};

struct stack_place {
	const char *name; /* of a function; valid UTF-8, without control characters */
	const char *file; /* "": not a function of a file */
	uint32_t line; /* 0: not known */
	uint32_t first_line; /* of the function; 0: not known */
};

struct stack_row {
	const uint32_t *places; /* indexes of struct stack_page.places, the innermost first */
	uint32_t n;
	const char *process; /* what is outermost: its name and PID */
	const char *call; /* what is innermost: the function of CUDA */
	double weights[STACK_WEIGHTS];
};

struct stack_page {
	const struct stack_place *places;
	const struct stack_row *rows;
	size_t rows_n;
	bool estimated; /* from a sample: of the weights that are not estimates anyway */
	bool has_gpu_time; /* else that weight is not known */
	const char *incomplete; /* what is missing; NULL: nothing */
	int64_t real_ns, duration_ns;
};

/* "launches" or another name; false: there is none. */
bool stack_weight_parse(const char *text, enum stack_weight *ret_weight);
const char *stack_weight_name(enum stack_weight weight);
bool stack_weight_is_known(const struct stack_page *page, enum stack_weight weight);

/*
 * Lines "process;outer;inner;call WEIGHT", as flamegraph.pl and speedscope read them. Rows of weight 0 are
 * left out.
 */
int view_stacks_folded(const struct stack_page *page, enum stack_weight weight, struct strbuf *out);
/* A gzipped profile.proto. -ENOMEM. */
int view_stacks_pprof(const struct stack_page *page, struct strbuf *out);
int view_stacks_html(const struct stack_page *page, struct strbuf *out);
