// SPDX-License-Identifier: Apache-2.0
/* Looks at processes before anybody asks about them. */
#pragma once

#include "symbolize/process.h"

enum {
	LOOKS = 256, /* that wait, each with a file open */
	LOOKED = 512, /* processes that nobody has asked about yet */
};

struct look;
void look_free(struct look *look);
void look_take(struct symbolizer *symbolizer, struct look *look);
/* The file of @mapped, if it was about to be mapped by @before. UINT32_MAX */
uint32_t look_pending(const struct process *before, const struct mapped *mapped);
/* A process that was looked at, which is the question's; NULL. */
struct process *look_find(struct symbolizer *symbolizer, const struct symbolizer_question *question);
