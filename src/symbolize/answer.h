// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the kernel for a question (answer.c), by a name in memory (guess.c).
 */
#pragma once

#include "symbolize/process.h"
#include "symbolize/worker.h"

/* 0: *ret_kernel; -EAGAIN: try again later, *ret_kernel is the preliminary answer. -ENOMEM, -ECANCELED. */
int answer_find(struct symbolizer *symbolizer, const struct work *work, struct kernel **ret_kernel);

/* guess.c */

/*
 * The only kernel of the process whose name can be reached from the memory that a handle points to. The
 * caller must free the text. -ENOENT.
 */
int memory_symbol(struct symbolizer *symbolizer, struct process *process, uint64_t handle, char **ret_symbol);
