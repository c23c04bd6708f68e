// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>

#include "trace/reader_files.h"
#include "trace/reader_sites.h"

/* The input as the answer of a helper that was taken over. */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct sites_taken taken = { 0 };
	struct site_list *list = NULL;
	struct files_area area;
	const char *path;
	size_t at = 0, before = 0;

	while (files_areas_next(data, size, &at, &area, &path)) {
		const uint8_t *bytes = (const uint8_t *)path;

		if (at <= before || bytes < data || bytes + area.path_n > data + size)
			abort();
		before = at;
	}
	library_set_user_text("libfoo.so:foo_*");
	if (sites_answer_take(&taken, data, size, &list) == 0)
		for (uint32_t i = 0; i < list->n; i++)
			if (list->at[i].call >= probes_n)
				abort();
	sites_taken_done(&taken);
	free(list);
	return 0;
}
