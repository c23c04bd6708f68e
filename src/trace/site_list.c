// SPDX-License-Identifier: Apache-2.0
#include "trace/site_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "trace/list.h"
#include "trace/pattern.h"

struct growing {
	struct site_entry *at;
	uint32_t n, cap;
	struct strbuf names;
};

static uint16_t call_of(const struct trace_listing *listing)
{
	if (listing->user)
		return (uint16_t)(listing->user - 1);
	return listing->pattern ? (uint16_t)(listing->pattern - 1) : probe_call(listing->probe);
}

static int on_listing(const struct trace_listing *listing, void *userdata)
{
	struct growing *growing = userdata;
	const struct site *site = &listing->site;

	if (growing->n == growing->cap) {
		uint32_t cap = growing->cap ? 2 * growing->cap : 64;
		void *grown = reallocarray(growing->at, cap, sizeof(growing->at[0]));

		if (!grown)
			return -ENOMEM;
		growing->at = grown;
		growing->cap = cap;
	}
	growing->at[growing->n++] = (struct site_entry){
		.offset = listing->file_offset,
		.stack = site->stack,
		.call = call_of(listing),
		.class = (uint8_t)site->class,
		.flags = (uint8_t)((site->chosen ? SITE_ENTRY_CHOSEN : 0) |
				   (site->may_return ? SITE_ENTRY_MAY_RETURN : 0) |
				   (listing->left_to_driver ? SITE_ENTRY_LEFT_TO_DRIVER : 0) |
				   (listing->user    ? SITE_ENTRY_USER :
				    listing->pattern ? SITE_ENTRY_PATTERN :
						       0)),
	};
	if (listing->user || listing->pattern) {
		strbuf_adds(&growing->names, listing->symbol);
		strbuf_addc(&growing->names, '\0');
	}
	return growing->names.failed ? -ENOMEM : 0;
}

static int pack(const struct growing *growing, struct site_more more, struct site_list **ret_list)
{
	size_t entries = growing->n * sizeof(growing->at[0]);
	struct site_list *list = malloc(sizeof(*list) + entries + growing->names.len);

	if (!list)
		return -ENOMEM;
	*list = (struct site_list){ .n = growing->n, .names_n = (uint32_t)growing->names.len, .more = more };
	if (entries)
		memcpy(list->at, growing->at, entries);
	memcpy((char *)list->at + entries, growing->names.data, growing->names.len);
	*ret_list = list;
	return 0;
}

int site_list_read(int fd, const struct site_query *query, struct site_list **ret_list)
{
	struct growing growing = { 0 };
	struct site_more more;
	int r;

	strbuf_init(&growing.names, 0);
	r = trace_list_sites(fd, query, on_listing, &growing, &more);
	if (r == 0)
		r = pack(&growing, more, ret_list);
	strbuf_done(&growing.names);
	free(growing.at);
	return r;
}

static bool is_valid(const struct site_entry *entry)
{
	uint32_t calls = entry->flags & SITE_ENTRY_USER    ? library_user()->n :
			 entry->flags & SITE_ENTRY_PATTERN ? patterns_n :
							     probes_n;

	return entry->call < calls && entry->class < SITE_CLASSES &&
	       !((entry->flags & SITE_ENTRY_CHOSEN) && entry->class == SITE_REFUSED);
}

int site_list_check(const struct site_list *list, size_t n)
{
	size_t at = 0, name_n;
	uint32_t users = 0, found = 0;

	if (n < sizeof(*list) || list->n > SITE_LIST_SIZE_MAX / sizeof(list->at[0]) ||
	    list->names_n > SITE_LIST_SIZE_MAX || n != site_list_size(list))
		return -EBADMSG;
	for (uint32_t i = 0; i < list->n; i++) {
		if (!is_valid(&list->at[i]))
			return -EBADMSG;
		if (!(list->at[i].flags & SITE_ENTRY_NAMED))
			continue;
		name_n = strnlen(site_list_names(list) + at, list->names_n - at);
		at += name_n + 1;
		if (at > list->names_n || name_n == 0 || name_n >= SITE_LIST_NAME_MAX)
			return -EBADMSG;
		users += (list->at[i].flags & SITE_ENTRY_USER) > 0;
		found += (list->at[i].flags & SITE_ENTRY_PATTERN) > 0;
		if (users > SITE_LIST_USER_MAX || found > PATTERN_FILE_MAX)
			return -EBADMSG;
	}
	return at == list->names_n ? 0 : -EBADMSG;
}
