// SPDX-License-Identifier: Apache-2.0
/* Stacks of events, by their keys; users share their table. */
#include "analysis/stack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/private.h"
#include "base/clock.h"

enum { TEXTS_MAX = 1 << 16 };
#define ANEW_NS (600 * (uint64_t)NSEC_PER_SEC) /* at least, from one beginning to the next */

struct stack_row {
	uint32_t first, n;
};

void stack_table_init(struct stack_table *t)
{
	text_table_init(&t->texts, TEXTS_MAX, ROOM_STACK_BYTES);
	t->stacks = (struct row_list){ .size = sizeof(struct stack_row), .max = ROOM_STACKS };
	t->numbers = (struct row_list){ .size = sizeof(uint32_t), .max = ROOM_STACK_NUMBERS };
}

void stack_table_done(struct stack_table *t)
{
	text_table_done(&t->texts);
	row_list_done(&t->stacks);
	row_list_done(&t->numbers);
	hashmap_done(&t->by);
}

static void begin_anew(struct analysis *a)
{
	struct stack_table *t = &a->stacks;

	text_table_clear(&t->texts);
	row_list_clear(&t->stacks);
	row_list_clear(&t->numbers);
	hashmap_clear(&t->by);
	t->generation++;
	t->since_ns = a->newest_ns;
	share_clear(a, SHARE_STACKS);
	share_clear(a, SHARE_STACK_NUMBERS);
	share_clear(a, SHARE_STACK_BYTES);
}

static uint64_t stack_id(const struct stack_table *t, uint32_t index)
{
	return (uint64_t)t->generation << 32 | (index + 1);
}

const uint32_t *stack_numbers(const struct analysis *a, uint64_t stack, uint32_t *ret_n)
{
	const struct stack_table *t = &a->stacks;
	const struct stack_row *row;
	uint32_t number = (uint32_t)stack;

	if (stack >> 32 != t->generation || number == 0 || number > t->stacks.n)
		return NULL;
	row = &((const struct stack_row *)t->stacks.list)[number - 1];
	*ret_n = row->n;
	return &((const uint32_t *)t->numbers.list)[row->first];
}

/* "forward (model.py:31)": the file without its folders. */
static int frame_text(struct analysis *a, uint64_t user, const struct analysis_place *place,
		      uint32_t *ret_text)
{
	const char *file = strrchr(place->file, '/') ? strrchr(place->file, '/') + 1 : place->file;
	size_t before = a->stacks.texts.bytes.len;
	char text[ANALYSIS_TEXT_MAX];
	int r;

	if (!file[0])
		snprintf(text, sizeof(text), "%s", place->function);
	else if (place->line == 0)
		snprintf(text, sizeof(text), "%.300s (%.190s)", place->function, file);
	else
		snprintf(text, sizeof(text), "%.300s (%.190s:%u)", place->function, file, place->line);
	if (!share_has(a, user, SHARE_STACK_BYTES, (uint32_t)strlen(text) + 1))
		return -ENOBUFS;
	r = text_table_add(&a->stacks.texts, text, ret_text);
	share_take(a, user, SHARE_STACK_BYTES, (uint32_t)(a->stacks.texts.bytes.len - before));
	return r;
}

static int add_stack(struct analysis *a, uint64_t user, uint64_t key, const uint32_t *numbers, uint32_t n,
		     uint64_t *ret_stack)
{
	struct stack_table *t = &a->stacks;
	struct stack_row *row;

	if (!share_has(a, user, SHARE_STACKS, 1) || !share_has(a, user, SHARE_STACK_NUMBERS, n) ||
	    t->stacks.n == ROOM_STACKS || n > ROOM_STACK_NUMBERS - t->numbers.n)
		return -ENOBUFS;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *number = row_list_add(&t->numbers);

		if (!number)
			return -ENOMEM;
		*number = numbers[i];
	}
	row = row_list_add(&t->stacks);
	if (!row || hashmap_put(&t->by, key, t->stacks.n - 1) < 0)
		return -ENOMEM;
	*row = (struct stack_row){ t->numbers.n - n, n };
	share_take(a, user, SHARE_STACKS, 1);
	share_take(a, user, SHARE_STACK_NUMBERS, n);
	*ret_stack = stack_id(t, t->stacks.n - 1);
	return 0;
}

bool analysis_stack_known(const struct analysis *a, uint64_t key, uint64_t *ret_stack)
{
	uint32_t index;

	if (!hashmap_get(&a->stacks.by, key, &index))
		return false;
	*ret_stack = stack_id(&a->stacks, index);
	return true;
}

/* Its frames have other names now, and are as many as before. */
static void rename_stack(struct analysis *a, uint64_t stack, const uint32_t *numbers, uint32_t n)
{
	uint32_t known, *to = (uint32_t *)stack_numbers(a, stack, &known);

	if (to && known == n)
		memcpy(to, numbers, n * sizeof(*numbers));
}

static int put_stack(struct analysis *a, uint64_t user, uint64_t key, const struct analysis_place *places,
		     uint32_t n, uint64_t *ret_stack)
{
	uint32_t numbers[ANALYSIS_STACK_FRAMES];
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = frame_text(a, user, &places[i], &numbers[i]);
	if (r < 0 || !analysis_stack_known(a, key, ret_stack))
		return r < 0 ? r : add_stack(a, user, key, numbers, n, ret_stack);
	rename_stack(a, *ret_stack, numbers, n);
	return 0;
}

int analysis_stack(struct analysis *a, uint64_t user, uint64_t key, const struct analysis_place *places,
		   uint32_t n, uint64_t *ret_stack)
{
	int r;

	*ret_stack = 0;
	n = MIN(n, (uint32_t)ANALYSIS_STACK_FRAMES);
	if (n == 0)
		return -EINVAL;
	r = put_stack(a, user, key, places, n, ret_stack);
	if (r == -ENOBUFS && a->newest_ns >= a->stacks.since_ns + ANEW_NS) {
		begin_anew(a);
		r = put_stack(a, user, key, places, n, ret_stack);
	}
	a->counts.beyond += r == -ENOBUFS;
	return r;
}
