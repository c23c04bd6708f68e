// SPDX-License-Identifier: Apache-2.0
/*
 * Reads mappings of processes before there are questions about them.
 */
#pragma once

#include "symbolize/process.h"

enum {
	LOOKS = 256, /* queued, each with an open file */
	LOOKED = 512, /* processes without questions so far */
};

struct look;
void look_free(struct look *look);
void look_take(struct symbolizer *symbolizer, struct look *look);
/* Index of the file in @before that was to be mapped and is now @mapped. UINT32_MAX */
uint32_t look_pending(const struct process *before, const struct mapped *mapped);
/* The record read before that belongs to the question; NULL. */
struct process *look_find(struct symbolizer *symbolizer, const struct symbolizer_question *question);
