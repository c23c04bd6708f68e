// SPDX-License-Identifier: Apache-2.0
#include "timeline/stacks.h"

#include <errno.h>
#include <string.h>

#include "timeline/private.h"

void timeline_stacks_init(struct timeline_stacks *s)
{
	*s = (struct timeline_stacks){
		.frames = { .size = sizeof(struct timeline_frame_row), .max = TIMELINE_FRAMES_MAX },
		.stacks = { .size = sizeof(struct timeline_stack_row), .max = TIMELINE_STACKS_MAX },
		.numbers = { .size = sizeof(uint32_t), .max = TIMELINE_STACK_NUMBERS_MAX },
	};
}

void timeline_stacks_done(struct timeline_stacks *s)
{
	row_list_done(&s->frames);
	row_list_done(&s->stacks);
	row_list_done(&s->numbers);
	hashmap_done(&s->frame_by);
	hashmap_done(&s->stack_by);
}

void timeline_stacks_clear(struct timeline_stacks *s)
{
	row_list_clear(&s->frames);
	row_list_clear(&s->stacks);
	row_list_clear(&s->numbers);
	hashmap_clear(&s->frame_by);
	hashmap_clear(&s->stack_by);
}

double timeline_stacks_fill(const struct timeline_stacks *s)
{
	double frames = (double)s->frames.n / TIMELINE_FRAMES_MAX,
	       stacks = (double)s->stacks.n / TIMELINE_STACKS_MAX,
	       numbers = (double)s->numbers.n / TIMELINE_STACK_NUMBERS_MAX;

	return MAX(MAX(frames, stacks), numbers);
}

static int text_cut(struct timeline *t, const char *text, uint32_t *ret_text)
{
	return texts_add(&t->texts, text, strnlen(text, TIMELINE_FRAME_TEXT - 1), ret_text);
}

int timeline_frame(struct timeline *t, const char *function, const char *file, uint32_t line,
		   bool interpreted, uint32_t *ret_frame)
{
	struct timeline_frame frame = { .line = line, .interpreted = interpreted };
	int r = text_cut(t, function, &frame.function);

	if (r == 0)
		r = text_cut(t, file, &frame.file);
	if (r == 0)
		r = timeline_texts_used(t, MAX(frame.function, frame.file));
	return r < 0 ? r : timeline_stacks_frame(&t->stacks, &frame, ret_frame);
}

int timeline_stacks_frame(struct timeline_stacks *s, const struct timeline_frame *frame, uint32_t *ret_frame)
{
	uint64_t key = hash_bytes_secret(frame, sizeof(*frame));
	struct timeline_frame_row *row;

	if (hashmap_get(&s->frame_by, key, ret_frame) &&
	    memcmp(&timeline_frame_at(s, *ret_frame)->frame, frame, sizeof(*frame)) == 0)
		return 0;
	row = row_list_add(&s->frames);
	if (!row)
		return -ENOBUFS;
	row->frame = *frame;
	*ret_frame = s->frames.n - 1;
	return hashmap_put(&s->frame_by, key, *ret_frame);
}

static bool is_stack(const struct timeline_stacks *s, uint32_t stack, const uint32_t *frames, uint32_t n)
{
	const struct timeline_stack_row *row = timeline_stack_at(s, stack);

	return row->n == n && memcmp(timeline_stack_numbers(s, row), frames, n * sizeof(*frames)) == 0;
}

int timeline_stack(struct timeline *t, const uint32_t *frames, uint32_t n, uint32_t *ret_stack)
{
	return timeline_stacks_stack(&t->stacks, frames, n, ret_stack);
}

int timeline_stacks_stack(struct timeline_stacks *s, const uint32_t *frames, uint32_t n, uint32_t *ret_stack)
{
	struct timeline_stack_row *row;
	uint32_t found, first = s->numbers.n;
	uint64_t key;

	n = MIN(n, (uint32_t)TIMELINE_STACK_FRAMES);
	key = hash_bytes_secret(frames, n * sizeof(*frames));
	if (hashmap_get(&s->stack_by, key, &found) && is_stack(s, found, frames, n)) {
		*ret_stack = found + 1;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *number = row_list_add(&s->numbers);

		if (!number)
			return -ENOBUFS;
		*number = frames[i];
	}
	row = row_list_add(&s->stacks);
	if (!row || hashmap_put(&s->stack_by, key, s->stacks.n - 1) < 0)
		return -ENOBUFS;
	*row = (struct timeline_stack_row){ .first = first, .n = n };
	*ret_stack = s->stacks.n;
	return 0;
}
