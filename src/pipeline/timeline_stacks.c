// SPDX-License-Identifier: Apache-2.0
/* Stacks of calls in a timeline, where they are recorded (stacks.h). */
#include "pipeline/stacks.h"
#include "pipeline/timeline_private.h"

/* A stack that was told before has the same number, until all stacks begin anew. */
static bool is_known(struct trace_timeline *t, uint32_t path, uint32_t *ret_stack)
{
	int64_t since_ns = stack_sums_since(t->stacks);

	if (t->stacks_since_ns != since_ns)
		hashmap_clear(&t->stack_by);
	t->stacks_since_ns = since_ns;
	return hashmap_get(&t->stack_by, path, ret_stack);
}

static bool frame_of(struct trace_timeline *t, uint32_t path, uint32_t i, uint32_t *ret_frame)
{
	struct stack_place place;
	bool native;

	if (!stack_sums_frame(t->stacks, path, i, &place, &native))
		return false;
	t->stacks_unnamed |= native && place.name[0] == '[';
	return timeline_frame(t->timeline, place.name, place.file, place.line, !native, ret_frame) == 0;
}

uint32_t timeline_stack_of(struct trace_timeline *t, const struct trace_header *event)
{
	uint32_t frames[TIMELINE_STACK_FRAMES], path, stack = 0, n = 0;

	if (!t->stacks || !stack_sums_path(t->stacks, event, &path))
		return 0;
	if (is_known(t, path, &stack))
		return stack;
	while (n < TIMELINE_STACK_FRAMES && frame_of(t, path, n, &frames[n]))
		n++;
	if (n == 0 || timeline_stack(t->timeline, frames, n, &stack) < 0) {
		t->missing.cut++;
		return 0;
	}
	hashmap_put(&t->stack_by, path, stack);
	return stack;
}

void timeline_stacks_again(struct trace_timeline *t)
{
	if (t->stacks_unnamed)
		hashmap_clear(&t->stack_by);
	t->stacks_unnamed = false;
}
