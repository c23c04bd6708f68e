// SPDX-License-Identifier: Apache-2.0
#include "trace/site_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/engine.h"

struct growing {
	struct site_list *list;
	uint32_t cap;
};

static int on_listing(const struct trace_listing *listing, void *userdata)
{
	struct growing *growing = userdata;
	const struct site *site = &listing->site;

	if (!growing->list || growing->list->n == growing->cap) {
		uint32_t cap = growing->cap ? 2 * growing->cap : 64;
		struct site_list *grown = realloc(growing->list, sizeof(*grown) + cap * sizeof(grown->at[0]));

		if (!grown)
			return -ENOMEM;
		if (!growing->list)
			grown->n = 0;
		growing->list = grown;
		growing->cap = cap;
	}
	growing->list->at[growing->list->n++] = (struct site_entry){
		.offset = listing->file_offset,
		.stack = site->stack,
		.call = probe_call(listing->probe),
		.class = (uint8_t)site->class,
		.flags = (uint8_t)((site->chosen ? SITE_ENTRY_CHOSEN : 0) |
				   (site->may_return ? SITE_ENTRY_MAY_RETURN : 0) |
				   (listing->left_to_driver ? SITE_ENTRY_LEFT_TO_DRIVER : 0)),
	};
	return 0;
}

int site_list_read(int fd, const char *path, const struct site_query *query, struct site_list **ret_list)
{
	unsigned named = library_of_path(path, strlen(path));
	struct growing growing = { 0 };
	bool libraries[PROBE_LIBRARIES];
	int r;

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		libraries[i] =
			query->libraries[i] && (!probe_libraries[i].companion || (named & LIBRARY_BIT(i)));
	r = trace_list_sites(fd, libraries, &query->rules, on_listing, &growing);
	if (r == 0 && !growing.list) {
		growing.list = calloc(1, sizeof(*growing.list));
		r = growing.list ? 0 : -ENOMEM;
	}
	if (r != 0) {
		free(growing.list);
		return r;
	}
	*ret_list = growing.list;
	return 0;
}

int site_list_check(const struct site_entry *entries, uint32_t n, struct site_list **ret_list)
{
	struct site_list *list;

	for (uint32_t i = 0; i < n; i++)
		if (entries[i].call >= probes_n || entries[i].class >= SITE_CLASSES ||
		    ((entries[i].flags & SITE_ENTRY_CHOSEN) && entries[i].class == SITE_REFUSED))
			return -EBADMSG;
	list = malloc(sizeof(*list) + n * sizeof(list->at[0]));
	if (!list)
		return -ENOMEM;
	list->n = n;
	memcpy(list->at, entries, n * sizeof(list->at[0]));
	*ret_list = list;
	return 0;
}
