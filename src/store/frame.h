// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot as rows of the tables of layout.h, in one piece of memory that another process of the same
 * version reads: rows are the structs themselves, pointers to texts are offsets. What two versions exchange
 * are blocks.
 */
#pragma once

#include "store/layout.h"

#define FRAME_UNCHANGED UINT32_MAX
enum { FRAME_BYTES_MAX = 64 << 20 };

/* Where what is not in the frame before goes on. */
struct frame_mark {
	uint64_t exit_seq; /* of the newest exit that was written */
};

/*
 * Appends @snapshot; @slow: with the tables from STORE_SLOW on, which else are marked as unchanged. Rows
 * beyond a table's limit are left out and counted. -ENOMEM.
 */
int frame_write(const struct snapshot *snapshot, bool slow, struct frame_mark *mark, struct strbuf *out,
		uint64_t *ret_left_out);

/* Borrows the memory that it was read from, which must be aligned as malloc()'s is. */
struct frame {
	const uint8_t *rows[STORE_TABLES];
	uint32_t n[STORE_TABLES]; /* FRAME_UNCHANGED: as in the frame before */
	const char *texts; /* ends with NUL */
	uint32_t texts_n;
};

/* -EPROTONOSUPPORT: another version's; -EBADMSG. */
int frame_read(const void *data, size_t n, struct frame *ret_frame);
/* The text at a COLUMN_STRING's place of a row; NULL: there is none. */
const char *frame_string(const struct frame *frame, const uint8_t *row, const struct field *field);
