// SPDX-License-Identifier: Apache-2.0
/* Stacks that events of a timeline refer to: each function's line once, each stack of them once. */
#pragma once

#include "base/hashmap.h"
#include "base/row_list.h"
#include "timeline/timeline.h"

enum {
	TIMELINE_FRAMES_MAX = 1 << 17,
	TIMELINE_STACKS_MAX = 1 << 16,
	TIMELINE_STACK_NUMBERS_MAX = 1 << 20, /* frames of all stacks */
	/* What a stack adds to a block at most, with all its frames, which must have room there. */
	TIMELINE_STACK_BYTES = TIMELINE_STACK_FRAMES * (2 * TIMELINE_FRAME_TEXT + 128),
};

/* `block`: number of the newest one that has it. */
struct timeline_frame_row {
	struct timeline_frame frame;
	uint32_t block;
};

struct timeline_stack_row {
	uint32_t first, n; /* numbers, the innermost first */
	uint32_t block;
};

struct timeline_stacks {
	struct row_list frames, stacks;
	struct row_list numbers; /* uint32_t: frames */
	struct hashmap frame_by, stack_by; /* by hash */
};

void timeline_stacks_init(struct timeline_stacks *stacks);
void timeline_stacks_done(struct timeline_stacks *stacks);
void timeline_stacks_clear(struct timeline_stacks *stacks);
/* As timeline_frame() and timeline_stack(). */
int timeline_stacks_frame(struct timeline_stacks *stacks, const struct timeline_frame *frame,
			  uint32_t *ret_frame);
int timeline_stacks_stack(struct timeline_stacks *stacks, const uint32_t *frames, uint32_t n,
			  uint32_t *ret_stack);
/* The share of the limit that is nearest. */
double timeline_stacks_fill(const struct timeline_stacks *stacks);

static inline struct timeline_frame_row *timeline_frame_at(const struct timeline_stacks *stacks, uint32_t i)
{
	return &((struct timeline_frame_row *)stacks->frames.list)[i];
}

static inline struct timeline_stack_row *timeline_stack_at(const struct timeline_stacks *stacks, uint32_t i)
{
	return &((struct timeline_stack_row *)stacks->stacks.list)[i];
}

static inline const uint32_t *timeline_stack_numbers(const struct timeline_stacks *stacks,
						     const struct timeline_stack_row *stack)
{
	return &((const uint32_t *)stacks->numbers.list)[stack->first];
}
