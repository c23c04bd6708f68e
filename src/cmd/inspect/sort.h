// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde inspect --sort: the texts of a file's kernels, largest figure first. Each thread keeps the texts
 * of the kernels it reads; when the file has been read, all of them are put in order. Equal ones stay in
 * the order of the file, and those without the figure come last.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "view/inspect.h"

/* What kernels are sorted by: a figure, or KERNEL_FIGURES, which stands for the occupancy. */
typedef unsigned inspect_sort_key;

/* A JSON member's or a column's name, in any case: "registers", "REGS", "occupancy". -EINVAL. */
int inspect_sort_key_parse(const char *name, inspect_sort_key *ret_key);
/* The names, for messages: "registers, static_shared_bytes, ..." */
void inspect_sort_key_names(struct strbuf *out);

struct inspect_sort_row;
struct inspect_sorted {
	struct strbuf text;
	struct inspect_sort_row *rows;
	size_t rows_n, rows_size;
};
void inspect_sorted_init(struct inspect_sorted *sorted);
void inspect_sorted_done(struct inspect_sorted *sorted);

/*
 * Takes what was appended to @sorted->text from @at on as the text of @kernel, of the file's part @part.
 * -ENOMEM.
 */
int inspect_sorted_add(struct inspect_sorted *sorted, inspect_sort_key key,
		       const struct inspect_kernel *kernel, uint64_t part, size_t at);
/* Passes all texts of @n threads to @write in order, and forgets them. -ENOMEM. */
int inspect_sorted_write(struct inspect_sorted *const *sorted, unsigned n,
			 void (*write)(const char *text, size_t n, void *userdata), void *userdata);
