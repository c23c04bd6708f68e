// SPDX-License-Identifier: Apache-2.0
/* A growing list of rows of one size, with a limit; what does not fit is counted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table {
	void *list;
	size_t size; /* bytes of a row */
	uint32_t n, room, max;
	uint64_t dropped; /* rows beyond @max, or for which there was no memory */
};

/* A zeroed row; NULL: it is dropped. */
void *table_add(struct table *table);
/* Empties it; its memory stays. */
void table_clear(struct table *table);
void table_done(struct table *table);
/* Sorts the rows by their bytes, and returns what differs where rows differ; never 0. */
uint64_t table_digest(struct table *table);

/* Copies @from, cut to the size of the member, as valid UTF-8. */
void put_text(char *to, size_t size, const char *from, size_t n);
#define PUT_TEXT(member_, text_) put_text(member_, sizeof(member_), text_, strlen(text_))
