// SPDX-License-Identifier: Apache-2.0
/*
 * The sites of a file in a form that passes between processes: a helper (trace/reader_sites.c), which may
 * crash or be taken over by the file that it reads, lists them, and the engine attaches them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "trace/probe.h"
#include "trace/site.h"

enum site_entry_flag {
	SITE_ENTRY_CHOSEN = 1 << 0,
	SITE_ENTRY_MAY_RETURN = 1 << 1, /* struct site */
	SITE_ENTRY_LEFT_TO_DRIVER = 1 << 2, /* struct trace_listing */
	SITE_ENTRY_USER = 1 << 3, /* of one of the user's probes */
	SITE_ENTRY_PATTERN = 1 << 4, /* found by a pattern */
	SITE_ENTRY_NAMED = SITE_ENTRY_USER | SITE_ENTRY_PATTERN,
};

struct site_entry {
	uint64_t offset; /* in the file */
	int32_t stack; /* struct site */
	/* index in the table of probes; SITE_ENTRY_NAMED: which of the user's probes or patterns, from 0 */
	uint16_t call;
	uint8_t class; /* enum site_class */
	uint8_t flags;
};
_Static_assert(sizeof(struct site_entry) == 16, "passes between processes");

/* Functions that are not listed, for want of room. */
struct site_more {
	uint32_t user, patterns;
};

/* In one piece of memory, which is also what a helper sends. */
struct site_list {
	uint32_t n;
	uint32_t names_n; /* bytes of the names */
	struct site_more more;
	/*
	 * followed by the functions' names of those with SITE_ENTRY_NAMED, in their order, each with its NUL
	 */
	struct site_entry at[];
};

static inline const char *site_list_names(const struct site_list *list)
{
	return (const char *)&list->at[list->n];
}
static inline size_t site_list_size(const struct site_list *list)
{
	return sizeof(*list) + list->n * sizeof(list->at[0]) + list->names_n;
}

/* What is listed. */
struct site_query {
	bool libraries[PROBE_LIBRARIES];
	unsigned users; /* of the file: LIBRARY_USER_BIT() of the user's probes that apply to it */
	struct site_rules rules;
};

/*
 * Lists the functions of a file. -ENOEXEC: not an ELF file, or not supported.
 */
int site_list_read(int fd, const struct site_query *query, struct site_list **ret_list);
enum {
	SITE_LIST_SIZE_MAX = 16 << 20, /* bytes that a list may take */
	SITE_LIST_USER_MAX = 8192, /* functions of the user's probes in a file */
	SITE_LIST_NAME_MAX = USER_SYMBOL_MAX, /* functions with a longer name are not listed */
};
/* Checks a list of @n bytes from another process. -EBADMSG. */
int site_list_check(const struct site_list *list, size_t n);
