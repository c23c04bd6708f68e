// SPDX-License-Identifier: Apache-2.0
/* A snapshot of the rows of a frame, as it was when it was recorded, for views. */
#pragma once

#include "store/block.h"

/*
 * *ret_snapshot, of the frame where the block stands, is the caller's. -EBADMSG: the rows contradict each
 * other; -ENOMEM.
 */
int restore_snapshot(const struct block *block, const struct fields fields[STORE_TABLES],
		     struct snapshot **ret_snapshot);
/* Not for snapshot_unref(). */
void restored_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot *, restored_free, restored_freep)
