// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: sends the functions that are in stacks, once (bpf/stack.h). The functions that are
 * not static: as in shares.h.
 */
#pragma once

#include "bpf/python_walk.h"
#include "bpf/threads.h"

/* Reads a str object. False: it cannot be read, or is of a kind that names never are. */
static __always_inline bool text_read(const struct trace_python *python, __u64 text,
				      struct trace_text *ret_text, unsigned char *to, __u64 capacity)
{
	__u64 length = user_word(text + python->text_length), n;
	__u32 state = user_word(text + python->text_state), kind = state >> (python->text_kind_shift & 31);
	__u64 data = text + (kind >> 4 & 1 ? python->text_ascii : python->text_compact);

	ret_text->width = kind & 7;
	ret_text->n = 0;
	ret_text->total = 0;
	if (!(kind >> 3 & 1) || length >> 24)
		return false;
	n = length * (kind & 7);
	ret_text->total = n;
	SHOW_BOUND(n);
	if (n > capacity)
		n = capacity;
	ret_text->n = n;
	return bpf_probe_read_user(to, n, (void *)data) == 0;
}

static __always_inline void code_fill(struct trace_code *event, const struct trace_python *python,
				      const struct trace_frame *frame, __u64 capacity)
{
	__u64 code = frame->code, lines = user_word(code + python->code_from + python->code_lines), n;
	bool read = true;

	event->code = code;
	event->check = frame->check;
	event->first_line = user_word(code + python->code_from + python->code_first_line);
	event->instructions = python->code_size ? user_word(code + python->code_size) * 2 : 0;
	event->instructions_at = python->code_instructions;
	event->lines = python->lines;
	event->pad[0] = event->pad[1] = event->pad[2] = 0;
	read &= text_read(python, user_word(code + python->code_from + python->code_name), &event->name,
			  event->name_text, sizeof(event->name_text));
	read &= text_read(python, user_word(code + python->code_from + python->code_file), &event->file,
			  event->file_text, sizeof(event->file_text));
	n = 0;
	read &= bpf_probe_read_user(&n, sizeof(n), (void *)(lines + python->bytes_size)) == 0;
	event->lines_total = n >> 31 ? 1U << 31 : n;
	SHOW_BOUND(n);
	if (n > capacity)
		n = capacity;
	event->lines_n = n;
	read &= bpf_probe_read_user(event->line_table, n, (void *)(lines + python->bytes_data)) == 0;
	event->unread = !read;
}

/* @capacity: of the lines. True: sent, and wholly read. */
#define CODE_SEND(function, capacity)                                                               \
	static __noinline int function(struct trace_counters *c, const struct trace_python *python, \
				       const struct trace_frame *frame)                             \
	{                                                                                           \
		struct trace_code *event = event_begin(c, sizeof(struct trace_code) + (capacity),   \
						       TRACE_EVENT_CODE, bpf_ktime_get_ns());       \
		int unread;                                                                         \
                                                                                                    \
		if (!event)                                                                         \
			return -1;                                                                  \
		code_fill(event, python, frame, (capacity));                                        \
		unread = event->unread;                                                             \
		event_submit(event);                                                                \
		return !unread;                                                                     \
	}
CODE_SEND(code_send_small, TRACE_LINES_SMALL)
CODE_SEND(code_send_large, TRACE_LINES_LARGE)

/* Sends the code object of frame @i of thread @id, if it is not known. False: it could not be sent. */
__noinline int code_send(__u64 id, __u64 incarnation, __u32 i)
{
	__u32 tgid = id >> 32;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct trace_counters *c = counters_get();
	struct code_key key = { .incarnation = incarnation };
	const struct trace_frame *frame;
	__u64 lines, now = bpf_ktime_get_ns(), *sent_ns;
	int r;

	SHOW_BOUND(i);
	if (!python || !walk || !c || i >= TRACE_STACK_MAX)
		return 0;
	frame = &walk->frames[i];
	if (frame->code < TRACE_FRAME_MARKS)
		return 1;
	key.code = frame->code;
	key.check = frame->check;
	sent_ns = bpf_map_lookup_elem(&codes, &key);
	if (sent_ns && now - *sent_ns < TRACE_STACK_KEPT_NS)
		return 1;
	lines = user_word(frame->code + python->code_from + python->code_lines);
	if (user_word(lines + python->bytes_size) <= TRACE_LINES_SMALL)
		r = code_send_small(c, python, frame);
	else
		r = code_send_large(c, python, frame);
	if (r > 0)
		bpf_map_update_elem(&codes, &key, &now, BPF_ANY);
	return r >= 0;
}

/* Sends the code objects of all frames. False: one could not be sent. */
__noinline int codes_send(__u64 id, __u64 incarnation)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);

	if (!walk)
		return 0;
	for (__u32 i = 0; i < TRACE_STACK_MAX; i++) {
		if (i >= walk->n)
			break;
		if (!code_send(id, incarnation, i))
			return 0;
	}
	return 1;
}
