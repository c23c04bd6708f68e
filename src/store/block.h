// SPDX-License-Identifier: Apache-2.0
/*
 * A block: the frames of some minutes or an hour, which opens alone (with its layout). Each row that was in
 * one of them is a *track*: found again in the next frame by its key, with its first values; then for each
 * field that changed a *series* of (frames since, difference). Series of a field lie together, and all is
 * compressed; a block that stays is packed before (block_pack.h).
 */
#pragma once

#include "store/frame.h"

enum {
	BLOCK_FRAMES_MAX = 1024,
	BLOCK_TRACKS_MAX = 65536,
	BLOCK_CELLS_MAX = 16 << 20, /* of all tracks */
	BLOCK_SERIES_MAX = 1 << 20,
	BLOCK_BYTES_MAX = 64 << 20, /* before it is compressed */
	/* A block that is larger takes no further frame. */
	BLOCK_FULL_BYTES = 16 << 20,
};

/* ---- writing (block_write.c) ---- */

struct block_writer;

/* @fields stays the caller's, and must live as long. */
int block_writer_new(const struct fields fields[STORE_TABLES], struct block_writer **ret_writer);
void block_writer_free(struct block_writer *writer);
DEFINE_CLEANUP(struct block_writer *, block_writer_free, block_writer_freep)
/* -ENOMEM, -E2BIG: it must be reset. */
int block_writer_add(struct block_writer *writer, const struct frame *frame);
uint32_t block_writer_frames(const struct block_writer *writer);
bool block_writer_is_full(const struct block_writer *writer);
/*
 * Appends the block as it is now to @out; further frames may follow. @last: none will, so that time is taken
 * to make it small. -ENOMEM.
 */
int block_writer_finish(struct block_writer *writer, bool last, struct strbuf *out);
/* Empty again. */
void block_writer_reset(struct block_writer *writer);

/* ---- reading (block_read.c) ---- */

struct block;

/*
 * @layout and @fields stay the caller's, and must live as long. It stands before its first frame. -EBADMSG:
 * it is not one; -ENOMEM.
 */
int block_read(const struct fields fields[STORE_TABLES], const struct stored_layout *layout, const void *data,
	       size_t n, struct block **ret_block);
void block_free(struct block *block);
DEFINE_CLEANUP(struct block *, block_free, block_freep)
uint32_t block_frames(const struct block *block);
/* Goes on to the next frame. False: there is none. -EBADMSG is told by block_error(). */
bool block_next(struct block *block);
int block_error(const struct block *block);

/* The rows of a table in the frame where it stands. */
uint32_t block_rows(const struct block *block, enum store_table table);
/* The cells of the @i-th, by field; texts are the values of block_text(). */
const uint64_t *block_row(const struct block *block, enum store_table table, uint32_t i);
/* NULL: 0, which is none. */
const char *block_text(const struct block *block, uint64_t cell);
