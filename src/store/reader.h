// SPDX-License-Identifier: Apache-2.0
/*
 * A store that is read: gpusonde-store opens the file and hands blocks over, which are read here. Waits for
 * the disk: for commands.
 */
#pragma once

#include <sys/types.h>

#include "store/block.h"
#include "store/database.h"

struct store_reader;

/* @why, if it fails, names cause and remedy. -errno. */
int store_reader_open(const char *path, struct store_reader **ret_reader, char *why, size_t size);
void store_reader_free(struct store_reader *reader);
DEFINE_CLEANUP(struct store_reader *, store_reader_free, store_reader_freep)

/* Lists the blocks again: who records goes on. -errno. */
int store_reader_refresh(struct store_reader *reader);
/* gpusonde-store's; 0: none runs. */
pid_t store_reader_pid(const struct store_reader *reader);

/* All blocks, in the order in which they were begun; borrowed. */
const struct stored_block *store_reader_blocks(const struct store_reader *reader, size_t *ret_n);
/* For restore_snapshot(). */
const struct fields *store_reader_fields(const struct store_reader *reader);
/* Borrowed until the next one. -ENOENT: it was dropped meanwhile; -EBADMSG; ... */
int store_reader_block(struct store_reader *reader, const struct stored_block *stored,
		       struct block **ret_block);
/* Of the newest failure. */
const char *store_reader_error(const struct store_reader *reader);
