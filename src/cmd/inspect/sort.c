// SPDX-License-Identifier: Apache-2.0
#include "cmd/inspect/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

enum { OCCUPANCY = KERNEL_FIGURES, ROWS_MIN = 1024 };

struct inspect_sort_row {
	double figure; /* -1: absent */
	uint64_t part;
	size_t index; /* within the thread: a part belongs to one */
	const struct inspect_sorted *owner;
	size_t at, n; /* of the owner's text */
};

int inspect_sort_key_parse(const char *name, inspect_sort_key *ret_key)
{
	inspect_sort_key key = 0;

	while (key < KERNEL_FIGURES && strcasecmp(name, kernel_figures[key].json) != 0 &&
	       strcasecmp(name, kernel_figures[key].heading) != 0)
		key++;
	if (key == OCCUPANCY && strcasecmp(name, "occupancy") != 0 && strcasecmp(name, "occ") != 0)
		return -EINVAL;
	*ret_key = key;
	return 0;
}

void inspect_sort_key_names(struct strbuf *out)
{
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		strbuf_addf(out, "%s, ", kernel_figures[i].json);
	strbuf_adds(out, "occupancy");
}

void inspect_sorted_init(struct inspect_sorted *sorted)
{
	*sorted = (struct inspect_sorted){ 0 };
	strbuf_init(&sorted->text, 0);
}

void inspect_sorted_done(struct inspect_sorted *sorted)
{
	strbuf_done(&sorted->text);
	free(sorted->rows);
}

int inspect_sorted_add(struct inspect_sorted *sorted, inspect_sort_key key,
		       const struct inspect_kernel *kernel, uint64_t part, size_t at)
{
	struct inspect_sort_row *row;

	if (sorted->text.failed)
		return -ENOMEM;
	if (sorted->rows_n == sorted->rows_size) {
		size_t size = MAX(sorted->rows_size * 2, (size_t)ROWS_MIN);
		void *rows = reallocarray(sorted->rows, size, sizeof(*sorted->rows));

		if (!rows)
			return -ENOMEM;
		sorted->rows = rows;
		sorted->rows_size = size;
	}
	row = &sorted->rows[sorted->rows_n];
	*row = (struct inspect_sort_row){
		.part = part, .index = sorted->rows_n++, .at = at, .n = sorted->text.len - at
	};
	if (key == OCCUPANCY)
		row->figure = kernel->has_occupancy ? kernel->occupancy.ratio : -1;
	else
		row->figure = (double)kernel->figures[key];
	return 0;
}

static int by_figure(const void *a, const void *b)
{
	const struct inspect_sort_row *x = a, *y = b;

	if (x->figure < y->figure || x->figure > y->figure)
		return x->figure > y->figure ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

int inspect_sorted_write(struct inspect_sorted *const *sorted, unsigned n,
			 void (*write)(const char *text, size_t n, void *userdata), void *userdata)
{
	_cleanup_free_ struct inspect_sort_row *all = NULL;
	size_t all_n = 0;

	for (unsigned i = 0; i < n; i++)
		all_n += sorted[i]->rows_n;
	all = reallocarray(NULL, MAX(all_n, (size_t)1), sizeof(*all));
	if (!all)
		return -ENOMEM;
	all_n = 0;
	for (unsigned i = 0; i < n; i++)
		for (size_t k = 0; k < sorted[i]->rows_n; k++) {
			all[all_n] = sorted[i]->rows[k];
			all[all_n++].owner = sorted[i];
		}
	qsort(all, all_n, sizeof(*all), by_figure);
	for (size_t i = 0; i < all_n; i++)
		write(all[i].owner->text.data + all[i].at, all[i].n, userdata);
	for (unsigned i = 0; i < n; i++) {
		strbuf_reset(&sorted[i]->text);
		sorted[i]->rows_n = 0;
	}
	return 0;
}
