// SPDX-License-Identifier: Apache-2.0
/*
 * Blocks in an SQLite file, in WAL mode: one writes while others read, and what was put stays whole whenever
 * the process ends. For one file of a process: SQLite is made to open files of one folder alone, by its
 * descriptor, so that the process can be confined to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "store/tier.h"

struct database;

struct stored_block {
	int64_t id; /* grows from one to the next; 0: not stored yet */
	int64_t layout; /* id */
	uint32_t tier, frames;
	int64_t real_first_ns, real_last_ns; /* the least and greatest: a clock may be set back */
	int64_t boot_first_ns, boot_last_ns;
};

struct database_figures {
	uint64_t bytes; /* in use in the file */
	uint64_t blocks;
};

/*
 * The file @name in the folder of the descriptor, which stays the caller's. @why, if it fails, says what is
 * to be done. -EBADMSG: not a store, or of a later version; -ENOENT; -EACCES; -EIO; ...
 */
int database_open(int folder, const char *name, bool writes, struct database **ret_database, char *why,
		  size_t size);
void database_close(struct database *database);
DEFINE_CLEANUP(struct database *, database_close, database_closep)
/* Of the newest failure. */
const char *database_error(const struct database *database);

/* The file never grows beyond: -ENOSPC then. */
int database_limit(struct database *database, uint64_t bytes);
/* Adds a layout, if it is not there. */
int database_put_layout(struct database *database, const char *text, size_t n, int64_t *ret_id);
/* Adds a block, or replaces it, if it has an ID. -ENOSPC: there is no room; -EIO. */
int database_put(struct database *database, struct stored_block *block, const void *data, size_t n);
/* Removes the oldest blocks of a tier until the others have at most @frames. *ret_n: how many. */
int database_keep(struct database *database, uint32_t tier, uint64_t frames, uint64_t *ret_n);
/* Removes the oldest block but @except. -ENOENT: there is none. */
int database_drop_oldest(struct database *database, int64_t except);
int database_figures(struct database *database, struct database_figures *ret_figures);

/* Of all tiers, in the order of their IDs. *ret_blocks is the caller's. */
int database_list(struct database *database, struct stored_block **ret_blocks, size_t *ret_n);
/* The caller's. -ENOENT: it was dropped meanwhile. */
int database_get(struct database *database, int64_t id, void **ret_data, size_t *ret_n);
int database_get_layout(struct database *database, int64_t id, void **ret_data, size_t *ret_n);
