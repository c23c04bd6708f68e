// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of processes in an array: which are free, which one makes room next, and which are of one process,
 * to be dropped with it. Each entry begins with a struct slot_link, and is all zeros while it is free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hashmap.h"

/* A place in a chain of a process's entries: one plus the index of its neighbours; 0: none. */
struct slot_link {
	uint32_t before, after;
};

struct slots {
	void *entries;
	size_t size; /* of one */
	uint32_t max;
	uint32_t begun; /* those from there on were never used */
	uint32_t free; /* one plus the first of those given back, linked by link.after; 0: none */
	uint32_t next, share_next; /* where room is looked for next: of all entries; of a user's own */
	struct hashmap chains; /* by tgid: one plus the index of the first of its entries */
};

/* @max entries. -ENOMEM. */
int slots_init(struct slots *slots, uint32_t max, size_t size);
void slots_done(struct slots *slots);
bool slots_have(const struct slots *slots);
/* One is free. It becomes the first of the process's. -ENOMEM: it is still free. */
int slots_take(struct slots *slots, uint32_t tgid, uint32_t *ret_index);
/* The entry is all zeros then. */
void slots_give(struct slots *slots, uint32_t tgid, uint32_t index);
/* False: the process has none. */
bool slots_first(const struct slots *slots, uint32_t tgid, uint32_t *ret_index);
/* The entry that is looked at next; @next, of the two, goes round. */
uint32_t slots_next(const struct slots *slots, uint32_t *next);
