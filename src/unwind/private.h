// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of src/unwind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "unwind/eh_frame.h"
#include "unwind/unwind.h"

/* Parts of an array that are in use, by @first; a part is taken where there is room first. */
struct ranges {
	struct range {
		uint32_t first, n;
	} * used;
	uint32_t used_n, used_cap;
	uint32_t size; /* of the array */
};

/* -ENOBUFS: there is no gap of @n. */
int ranges_take(struct ranges *ranges, uint32_t n, uint32_t *ret_first);
void ranges_give(struct ranges *ranges, uint32_t first);
void ranges_done(struct ranges *ranges);

enum { FILE_RANGES = 8 };

/* CPU time for a file's rules. */
#define MAKING_CPU_NS (2 * NSEC_PER_SEC)

/* A file's rules while they are made, in steps. */
struct making {
	struct eh_frame frame;
	uint8_t *bytes;
	struct eh_function *functions;
	uint32_t functions_n, functions_cap;
	uint32_t at; /* in the section, then of the functions */
	bool sorted; /* all functions are known */
	int64_t cpu_ns; /* that was used for it */
	struct unwind_row *rows;
	uint32_t rows_n, rows_cap;
	uint64_t base, end;
};

/* A table of rules that all files share. */
struct rules {
	struct unwind_rule *rules; /* the kernel side's map */
	uint32_t n;
	struct hashmap by;
};

int making_begin(struct making *making, int fd);
/* 1: there is more to do; 0: making->rows are all; -ETIME: they take longer than MAKING_CPU_NS. */
int making_step(struct making *making, struct rules *rules);
void making_done(struct making *making);
int rules_add(struct rules *rules, const struct unwind_rule *rule, uint32_t *ret_index);
