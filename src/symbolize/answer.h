// SPDX-License-Identifier: Apache-2.0
/* From a question to its kernel (answer.c), by a name in memory (guess.c), shared by processes (intern.c). */
#pragma once

#include "symbolize/process.h"
#include "symbolize/worker.h"

/* 0: *ret_kernel; -EAGAIN: try again later, *ret_kernel is what is known now. -ENOMEM, -ECANCELED. */
int answer_find(struct symbolizer *symbolizer, const struct work *work, struct kernel **ret_kernel);

/* guess.c */

/*
 * The only kernel of the process whose name is reached from what a handle points to. The text is the caller's
 * to free. -ENOENT.
 */
int memory_symbol(struct symbolizer *symbolizer, struct process *process, uint64_t handle, char **ret_symbol);

/* intern.c */

struct kernels;
int kernels_new(struct kernels **ret_kernels);
void kernels_free(struct kernels *kernels);
/* One like @from, shared with all who asked for it; the caller's reference. */
int kernels_intern(struct symbolizer *symbolizer, const struct kernel *from, struct kernel **ret_kernel);
