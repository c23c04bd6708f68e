// SPDX-License-Identifier: Apache-2.0
/*
 * For trace.bpf.c only: sends stacks, and the functions in them, once (bpf/stack.h). The functions that are
 * not static: as in shares.h.
 */
#pragma once

#include "bpf/python_walk.h"
#include "bpf/threads.h"

/* ---- code objects ---- */

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
	n = user_word(lines + python->bytes_size);
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
	__u32 tgid = id >> 32, sent = 1;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct trace_counters *c = counters_get();
	struct code_key key = { .incarnation = incarnation };
	const struct trace_frame *frame;
	__u64 lines;
	int r;

	SHOW_BOUND(i);
	if (!python || !walk || !c || i >= TRACE_STACK_MAX)
		return 0;
	frame = &walk->frames[i];
	key.code = frame->code;
	key.check = frame->check;
	if (bpf_map_lookup_elem(&codes, &key))
		return 1;
	lines = user_word(frame->code + python->code_from + python->code_lines);
	if (user_word(lines + python->bytes_size) <= TRACE_LINES_SMALL)
		r = code_send_small(c, python, frame);
	else
		r = code_send_large(c, python, frame);
	if (r > 0)
		bpf_map_update_elem(&codes, &key, &sent, BPF_ANY);
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

/* ---- stacks ---- */

/* A new id; 0: this CPU's number is too high. */
static __always_inline __u32 stack_number(struct trace_counters *c)
{
	__u32 cpu = bpf_get_smp_processor_id(), n;

	if (cpu >> TRACE_STACK_CPU_BITS)
		return 0;
#ifdef TRACE_FETCH
	n = __sync_fetch_and_add(&c->stacks, 1);
#else
	n = c->stacks++;
#endif
	/* From 1 on, so that an id is never below TRACE_STACK_NONES. */
	n = n % ((1U << (32 - TRACE_STACK_CPU_BITS)) - 1) + 1;
	return n << TRACE_STACK_CPU_BITS | cpu;
}

#define STACK_SEND(function, capacity)                                                                       \
	static __noinline int function(struct trace_counters *c, const struct walk *walk, __u32 number)      \
	{                                                                                                    \
		struct trace_stack *event =                                                                  \
			event_begin(c, sizeof(struct trace_stack) + (capacity) * sizeof(struct trace_frame), \
				    TRACE_EVENT_STACK, bpf_ktime_get_ns());                                  \
                                                                                                             \
		if (!event)                                                                                  \
			return 0;                                                                            \
		event->header.stack = number;                                                                \
		event->n = walk->n;                                                                          \
		event->flags = walk->flags;                                                                  \
		bpf_probe_read_kernel(event->frames, (capacity) * sizeof(struct trace_frame), walk->frames); \
		event_submit(event);                                                                         \
		return 1;                                                                                    \
	}
STACK_SEND(stack_send_small, TRACE_STACK_SMALL)
STACK_SEND(stack_send_large, TRACE_STACK_LARGE)

/* The id of the stack in a walk, if it was sent lately; else 0. */
static __noinline __u32 stack_known(const struct walk *walk, __u64 incarnation)
{
	const struct stack_known *known;
	struct stack_key key = { .incarnation = incarnation };

	key.hash = hash_mix(walk->hash, walk->flags);
	known = bpf_map_lookup_elem(&stacks, &key);
	return known && bpf_ktime_get_ns() - known->since_ns < TRACE_STACK_KEPT_NS ? known->id : 0;
}

/* Sends the stack in @id's walk, whose code objects were sent. Its new id. */
__noinline __u32 stack_send(__u64 id, __u64 incarnation)
{
	struct stack_known new = { .since_ns = bpf_ktime_get_ns() };
	struct walk *walk = bpf_map_lookup_elem(&walks, &id);
	struct trace_counters *c = counters_get();
	struct stack_key key = { .incarnation = incarnation };

	if (!walk || !c)
		return TRACE_STACK_LOST;
	key.hash = hash_mix(walk->hash, walk->flags);
	new.id = stack_number(c);
	if (!new.id || !(walk->n <= TRACE_STACK_SMALL ? stack_send_small(c, walk, new.id) :
							stack_send_large(c, walk, new.id)))
		return TRACE_STACK_LOST;
	bpf_map_update_elem(&stacks, &key, &new, BPF_ANY);
	return new.id;
}

static __always_inline __u32 stack_walked(__u64 id, __u64 incarnation)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &id), *none;
	__u32 tgid = id >> 32, why, stack;
	const struct trace_python *python = bpf_map_lookup_elem(&pythons, &tgid);
	__u64 frame;

	if (!python)
		return TRACE_STACK_NO_PYTHON;
	if (!walk) {
		none = bpf_map_lookup_elem(&no_walk, &zero);
		if (none)
			bpf_map_update_elem(&walks, &id, none, BPF_NOEXIST);
		walk = bpf_map_lookup_elem(&walks, &id);
	}
	if (!walk)
		return TRACE_STACK_LOST;
	why = python_locate(python, walk, id);
	if (why)
		return why;
	frame = python_innermost(python, walk);
	if (!frame)
		return TRACE_STACK_EMPTY;
	python_walk(walk, id, frame);
	if (!walk->n)
		return walk->flags ? TRACE_STACK_UNREAD : TRACE_STACK_EMPTY;
	/* One after the other: the stacks of functions within each other may take 512 bytes. */
	stack = stack_known(walk, incarnation);
	if (stack)
		return stack;
	return codes_send(id, incarnation) ? stack_send(id, incarnation) : TRACE_STACK_LOST;
}

__noinline __u64 stack_take(__u64 id)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_counters *c = counters_get();
	__u32 shift, stack;

	if (!ctl || !thread || !c)
		return TRACE_STACK_OFF;
	shift = ctl->stack_shift & TRACE_FLAG_SAMPLED_BITS;
	if (shift && bpf_get_prandom_u32() & ((1U << shift) - 1))
		stack = TRACE_STACK_SKIPPED;
	else
		stack = stack_walked(id, thread->incarnation);
	SHOW_BOUND(stack);
	if (stack < TRACE_STACK_NONES)
		COUNT(&c->stackless[stack]);
	return (__u64)shift << (32 + TRACE_FLAG_SAMPLED_SHIFT) | stack;
}
