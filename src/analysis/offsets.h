// SPDX-License-Identifier: Apache-2.0
/*
 * How much the clocks of nodes differ, by the collectives that they have in common: a collective's calls on
 * all ranks are one event, told by communicator and sequence. The offset of two nodes is the median of what
 * their arrivals differ by. So what a node is always late by counts as its clock's: who is late by more than
 * usual, or late on its node, is seen nevertheless (ranks.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

enum {
	OFFSET_NODES_MAX = 64,
	OFFSET_ARRIVALS_MAX = 1 << 20, /* of all nodes; further ones change nothing */
	OFFSET_COMMON_MIN = 3, /* collectives that two nodes must have in common */
};

struct offsets;

/* NULL: out of memory. */
struct offsets *offsets_new(uint32_t nodes);
void offsets_free(struct offsets *offsets);
DEFINE_CLEANUP(struct offsets *, offsets_free, offsets_freep)

/* @node: below that many. */
void offsets_add(struct offsets *offsets, uint32_t node, uint64_t communicator, uint64_t sequence,
		 uint64_t arrived_ns);

struct node_offset {
	int64_t offset_ns; /* to be added to the node's times for those of node 0 */
	uint32_t common; /* collectives by which it was found, from a node whose offset is known; 0: none */
};

/* *ret_offsets: one for each node. -ENOMEM. */
int offsets_solve(struct offsets *offsets, struct node_offset *ret_offsets);
