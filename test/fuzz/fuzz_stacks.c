// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "python/stacks.h"

enum { IDS = 8, EVENTS = 200 };

struct input {
	const uint8_t *data;
	size_t n;
};

/* Zeros where the input has ended. */
static void take(struct input *input, void *to, size_t n)
{
	size_t here = MIN(n, input->n);

	memset(to, 0, n);
	memcpy(to, input->data, here);
	input->data += here;
	input->n -= here;
}

static uint8_t take_byte(struct input *input)
{
	uint8_t byte;

	take(input, &byte, sizeof(byte));
	return byte;
}

static void set_header(struct input *input, struct trace_header *header, uint8_t type)
{
	*header = (struct trace_header){ .type = type,
					 .tgid = take_byte(input) % 3,
					 .stack = take_byte(input) % IDS };
	if (header->stack > 0)
		header->stack = TRACE_STACK_NONES + header->stack;
}

/* Functions of few addresses, so that stacks have them. */
static struct trace_header *make_code(struct input *input)
{
	struct trace_code *event = calloc(1, sizeof(*event) + TRACE_LINES_SMALL);

	if (!event)
		abort();
	set_header(input, &event->header, TRACE_EVENT_CODE);
	event->code = take_byte(input) % 4;
	event->check = take_byte(input) % 2;
	take(input, &event->first_line, sizeof(event->first_line));
	take(input, &event->instructions, sizeof(event->instructions));
	event->instructions_at = take_byte(input);
	event->lines = take_byte(input) % (TRACE_LINES_LOCATIONS + 2);
	event->unread = take_byte(input) % 8 == 7;
	event->name.width = take_byte(input);
	event->file.width = take_byte(input);
	/* As the kernel side has them: no more than there is room for. */
	event->name.n = (uint16_t)(take_byte(input) % (TRACE_CODE_NAME + 1));
	event->file.n = take_byte(input);
	event->name.total = event->name.n + take_byte(input) % 2;
	event->file.total = event->file.n + take_byte(input) % 2;
	take(input, event->name_text, event->name.n);
	take(input, event->file_text, event->file.n);
	event->lines_n = take_byte(input);
	event->lines_total = event->lines_n + take_byte(input) % 2;
	take(input, event->line_table, event->lines_n);
	return &event->header;
}

static struct trace_header *make_stack(struct input *input)
{
	struct trace_stack *event = calloc(1, sizeof(*event) + TRACE_STACK_LARGE * sizeof(event->frames[0]));

	if (!event)
		abort();
	set_header(input, &event->header, TRACE_EVENT_STACK);
	event->n = take_byte(input) % (TRACE_STACK_MAX + 1);
	event->flags = take_byte(input) % 4;
	for (uint32_t i = 0; i < event->n; i++) {
		event->frames[i].code = take_byte(input) % 4;
		event->frames[i].check = take_byte(input) % 2;
		take(input, &event->frames[i].at, sizeof(event->frames[i].at));
	}
	return &event->header;
}

static struct trace_header *make_native(struct input *input)
{
	struct trace_native *event = calloc(1, sizeof(*event) + TRACE_STACK_LARGE * sizeof(event->pcs[0]));

	if (!event)
		abort();
	set_header(input, &event->header, TRACE_EVENT_NATIVE);
	take(input, event->entries, sizeof(event->entries));
	take(input, event->loops, sizeof(event->loops));
	event->n = take_byte(input) % (TRACE_STACK_MAX + 1);
	event->stop = take_byte(input);
	event->python = take_byte(input) % TRACE_STACK_NONES;
	event->guessed = take_byte(input);
	for (uint32_t i = 0; i < event->n; i++)
		event->pcs[i] = take_byte(input);
	return &event->header;
}

static struct trace_header *make_event(struct input *input)
{
	struct trace_header *end;

	switch (take_byte(input) % 8) {
	case 0:
		end = calloc(1, sizeof(*end));
		if (!end)
			abort();
		set_header(input, end, TRACE_EVENT_EXIT);
		return end;
	case 1:
	case 2:
		return make_native(input);
	case 3:
	case 4:
	case 5:
		return make_code(input);
	}
	return make_stack(input);
}

static uint32_t name_native(const struct trace_native *event, uint32_t i, _unused_ void *userdata)
{
	return (uint32_t)event->pcs[i] % 5;
}

static void check_text(const struct python_stacks *stacks, uint32_t text)
{
	const char *c = python_stacks_text(stacks, text);

	if (!utf8_valid(c, strlen(c)))
		abort();
	for (; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			abort();
}

static void check_paths(const struct python_stacks *stacks)
{
	for (uint32_t path = 0; path < python_stacks_paths(stacks); path++) {
		uint32_t n;
		const uint32_t *places = python_stacks_places(stacks, path, &n);

		if (n > 2 * TRACE_STACK_MAX + 5)
			abort();
		for (uint32_t i = 0; i < n; i++) {
			const struct python_place *place = python_stacks_place(stacks, places[i]);

			check_text(stacks, place->name);
			check_text(stacks, place->file);
			/* A line is within what CPython has; a native function has none. */
			if (place->line > INT32_MAX || (place->native && place->line))
				abort();
		}
	}
}

/*
 * The input as events of three processes, as the kernel side sends them: what processes have chosen is
 * anything.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_(python_stacks_freep) struct python_stacks *stacks = NULL;
	struct input input = { data, size };

	if (python_stacks_new(&stacks) < 0)
		abort();
	if (take_byte(&input) % 2)
		python_stacks_name_natives(stacks, name_native, NULL);
	for (unsigned i = 0; i < EVENTS && input.n > 0; i++) {
		struct trace_header *event = make_event(&input);

		python_stacks_event(stacks, event, 0, 0);
		if (python_stacks_path(stacks, event) >= python_stacks_paths(stacks))
			abort();
		free(event);
	}
	check_paths(stacks);
	return 0;
}
