// SPDX-License-Identifier: Apache-2.0
/* Frames and call stacks of a timeline that is read: each once, whatever how often a file says it. */
#include <errno.h>

#include "timeline/perfetto.h"
#include "timeline/read_private.h"

/* Where there is no room for it, it is left out: events have no stack then. */
static int left_out(struct timeline_reader *r, int result)
{
	r->read.left_out += result == -ENOBUFS;
	return result == -ENOBUFS ? 0 : result;
}

int read_frame(struct timeline_reader *r, struct read_sequence *s, const struct proto_field *entry)
{
	struct timeline_frame frame = { .function = r->no_text, .file = r->no_text };
	struct proto_in in = proto_in(entry);
	struct proto_field field;
	uint64_t iid = 0;
	uint32_t number;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.wire != PROTO_VARINT)
			continue;
		if (field.number == ENTRY_IID)
			iid = field.value;
		else if (field.number == FRAME_FUNCTION)
			read_interned(s, field.value, INTERNED_FUNCTIONS, &frame.function);
		else if (field.number == FRAME_SOURCE)
			read_interned(s, field.value, INTERNED_SOURCES, &frame.file);
		else if (field.number == FRAME_LINE)
			frame.line = (uint32_t)MIN(field.value, (uint64_t)UINT32_MAX);
		else if (field.number == FRAME_KIND)
			frame.interpreted = field.value == KIND_INTERPRETED;
	}
	if (n < 0)
		return read_malformed(r);
	n = timeline_stacks_frame(&r->stacks, &frame, &number);
	return n < 0 ? left_out(r, n) : read_intern(r, s, iid, INTERNED_FRAMES, number);
}

/* A file has the outermost frame first; of more than there is room for, the innermost ones are kept. */
int read_callstack(struct timeline_reader *r, struct read_sequence *s, const struct proto_field *entry)
{
	uint32_t ring[TIMELINE_STACK_FRAMES], frames[TIMELINE_STACK_FRAMES], count = 0, number;
	struct proto_in in = proto_in(entry);
	struct proto_field field;
	uint64_t iid = 0;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == ENTRY_IID && field.wire == PROTO_VARINT)
			iid = field.value;
		else if (field.number == CALLSTACK_FRAME && field.wire == PROTO_VARINT &&
			 read_interned(s, field.value, INTERNED_FRAMES, &number))
			ring[count++ % TIMELINE_STACK_FRAMES] = number;
	}
	if (n < 0)
		return read_malformed(r);
	for (uint32_t i = 0; i < MIN(count, (uint32_t)TIMELINE_STACK_FRAMES); i++)
		frames[i] = ring[(count - 1 - i) % TIMELINE_STACK_FRAMES];
	if (count == 0) {
		r->read.left_out++;
		return 0;
	}
	n = timeline_stacks_stack(&r->stacks, frames, MIN(count, (uint32_t)TIMELINE_STACK_FRAMES), &number);
	return n < 0 ? left_out(r, n) : read_intern(r, s, iid, INTERNED_CALLSTACKS, number);
}

bool timeline_reader_frame(const struct timeline_reader *r, uint32_t stack, uint32_t i,
			   struct timeline_frame *ret_frame)
{
	const struct timeline_stack_row *row;

	if (stack == 0 || stack > r->stacks.stacks.n)
		return false;
	row = timeline_stack_at(&r->stacks, stack - 1);
	if (i >= row->n)
		return false;
	*ret_frame = timeline_frame_at(&r->stacks, timeline_stack_numbers(&r->stacks, row)[i])->frame;
	return true;
}
