// SPDX-License-Identifier: Apache-2.0
/* A growing list of rows of one size, with a limit; what does not fit is counted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct row_list {
	void *list;
	size_t size; /* bytes of a row */
	uint32_t n, room, max;
	uint64_t dropped; /* rows beyond @max, or for which there was no memory */
};

/* A zeroed row; NULL: it is dropped. */
void *row_list_add(struct row_list *list);
/* Empties it; its memory stays. */
void row_list_clear(struct row_list *list);
void row_list_done(struct row_list *list);
/* Sorts the rows by their bytes, and returns what differs where rows differ; never 0. */
uint64_t row_list_digest(struct row_list *list);

/* Copies @from, cut to the size of the member, as valid UTF-8. */
void put_text(char *to, size_t size, const char *from, size_t n);
#define PUT_TEXT(member_, text_) put_text(member_, sizeof(member_), text_, strlen(text_))
