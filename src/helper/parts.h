// SPDX-License-Identifier: Apache-2.0
/*
 * Tables that a helper sends to its owner: rows of one size each, in messages that hold as many as fit. A
 * table that the owner has already, by its digest, is not sent again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/row_list.h"
#include "helper/helper.h"

/* What a message is, in its first word. Others are the protocol's own, from PART_OTHERS on. */
enum { PART_ROWS = 1, PART_OTHERS };

/* The rows at..at+n of a table of @rows follow it. */
struct part_header {
	uint32_t message; /* PART_ROWS */
	uint32_t table; /* which, a number of the protocol's */
	uint64_t digest; /* of the table; not 0 */
	uint32_t rows, at, n;
	uint32_t row_bytes;
};

enum { PART_BYTES = HELPER_MESSAGE_MAX - sizeof(struct part_header) };

struct part {
	struct part_header header;
	uint8_t data[PART_BYTES];
};

/* All rows of @rows. 0 or -errno: the owner is gone. */
int parts_send(int channel, uint32_t table, uint64_t digest, const struct row_list *rows);

/* A table as the owner gets it. */
struct arriving {
	uint32_t row_bytes, max; /* set by the owner: of a row; rows that it takes */
	void *list; /* NULL: no part has come */
	uint32_t n, rows; /* that have come, of so many */
	uint64_t digest;
};

/* Takes the next part of one of @tables. False: it is none, and its sender is to be replaced. */
bool parts_take(struct arriving *tables, uint32_t tables_n, const void *message, size_t n);
/*
 * Whether @digest[i], as the sender says at the end, is that of a whole table that has come, or else of the
 * one that the owner has (@known), or 0.
 */
bool parts_are_whole(const struct arriving *tables, uint32_t tables_n, const uint64_t *digest,
		     const uint64_t *known);
void parts_forget(struct arriving *tables, uint32_t tables_n);
