// SPDX-License-Identifier: Apache-2.0
/*
 * A program as a child process, and what it prints, within a time and a size: for threads and commands that
 * may wait for it. It does not outlive them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct run {
	const char *program; /* its path; NULL: this very program */
	char *const *arguments; /* with the program's name first; the last one is NULL */
	unsigned seconds; /* that it may take */
	size_t limit; /* bytes of each that it may print */
	int nice; /* 0: as we are */
	size_t memory; /* bytes of its address space; 0: as we are */
	bool powerless; /* it does not get our ambient capabilities; root keeps its own */
	atomic_int *pid; /* where its PID is while it runs; else 0. NULL: nowhere */
};

/*
 * Its exit status, or 128 and the number of the signal that ended it; -ETIMEDOUT and -E2BIG, and it was
 * killed; any errno of starting it.
 */
int run_program(const struct run *run, struct strbuf *ret_output, struct strbuf *ret_errors);
