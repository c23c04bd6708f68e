// SPDX-License-Identifier: Apache-2.0
/*
 * A flight recorder: the newest blocks of a timeline in memory, at most so old and so many bytes, to be
 * written when somebody wants to know what led to a moment. For one thread.
 */
#pragma once

#include "base/macro.h"
#include "timeline/block.h"

enum { TIMELINE_RECENT_BLOCKS = 1 << 16 };

struct timeline_recent;

/* -ENOMEM. */
int timeline_recent_new(int64_t span_ns, size_t bytes, struct timeline_recent **ret_recent);
void timeline_recent_free(struct timeline_recent *recent);
DEFINE_CLEANUP(struct timeline_recent *, timeline_recent_free, timeline_recent_freep)

/* Takes a reference. What is too old at the block's end, or too much, goes; -ENOMEM: this one does. */
int timeline_recent_add(struct timeline_recent *recent, struct timeline_block *block);
/* The oldest first; valid until the next call. NULL: there are no more. */
struct timeline_block *timeline_recent_at(const struct timeline_recent *recent, uint32_t index);
/* Events that went before they were too old, since there was no room. */
uint64_t timeline_recent_lost(const struct timeline_recent *recent);
size_t timeline_recent_bytes(const struct timeline_recent *recent);
