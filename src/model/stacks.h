// SPDX-License-Identifier: Apache-2.0
/*
 * What stacks of calls cost, for the views: rows of one stack of one process each. Texts and places are in
 * tables, each once. Immutable once it is made; a part of struct trace_view, or of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

/* stack_weights.def has the names. */
enum stack_weight {
#define STACK_WEIGHT(id_, name_, unit_, title_) STACK_##id_,
#include "model/stack_weights.def"
	STACK_WEIGHTS,
};

struct stack_weight_info {
	const char *name, *unit, *title;
};
extern const struct stack_weight_info stack_weight_infos[STACK_WEIGHTS];

struct stack_place {
	const char *name; /* of a function; valid UTF-8, without control characters */
	const char *file; /* "": not a function of a file */
	uint32_t line; /* 0: not known */
	uint32_t first_line; /* of the function; 0: not known */
};

struct stack_row {
	const uint32_t *places; /* indexes of struct stack_page.places, the innermost first */
	uint32_t n;
	uint32_t pid;
	const char *process; /* what is outermost: its name and PID */
	const char *call; /* what is innermost: the function of CUDA */
	double weights[STACK_WEIGHTS];
};

struct stack_page {
	const struct stack_place *places;
	size_t places_n;
	const struct stack_row *rows;
	size_t rows_n;
	bool estimated; /* from a sample: of the weights that are not estimates anyway */
	bool has_gpu_time; /* else that weight is not known */
	const char *incomplete; /* what is missing; NULL: nothing */
	int64_t real_ns, duration_ns; /* when it began, and how long that is ago */
};

/* A page that owns what it shows. */
struct stack_view {
	struct stack_page page;
	struct stack_place *places;
	struct stack_row *rows;
	uint32_t *indexes; /* of all rows */
	char *texts;
};

/* @view may be NULL. */
void stack_view_free(struct stack_view *view);
DEFINE_CLEANUP(struct stack_view *, stack_view_free, stack_view_freep)

/* "launches" or another name; false: there is none. */
bool stack_weight_parse(const char *text, enum stack_weight *ret_weight);
bool stack_weight_is_known(const struct stack_page *page, enum stack_weight weight);
