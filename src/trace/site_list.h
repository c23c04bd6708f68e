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
};

struct site_entry {
	uint64_t offset; /* in the file */
	int32_t stack; /* struct site */
	uint16_t call; /* index in the table of probes */
	uint8_t class; /* enum site_class */
	uint8_t flags;
};
_Static_assert(sizeof(struct site_entry) == 16, "passes between processes");

struct site_list {
	uint32_t n;
	struct site_entry at[];
};

/* What is listed. */
struct site_query {
	bool libraries[PROBE_LIBRARIES];
	struct site_rules rules;
};

/*
 * Lists the functions of the file @path, open as @fd; companions only where the path has their name.
 * -ENOEXEC: not an ELF file, or not supported.
 */
int site_list_read(int fd, const char *path, const struct site_query *query, struct site_list **ret_list);
/* Checks @n entries from another process and copies them. -EBADMSG. */
int site_list_check(const struct site_entry *entries, uint32_t n, struct site_list **ret_list);
