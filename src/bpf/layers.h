// SPDX-License-Identifier: Apache-2.0
/* Frames: the outermost call of a thread in each layer, and its enclosing call. */
#pragma once

#include "bpf/threads.h"

/*
 * The frame of a layer. @frames: the thread's frames in the layers above CUDA. NULL: no frames, or an invalid
 * layer.
 */
static __always_inline struct frame *frame_of(struct thread *thread, struct frames *frames, __u32 layer)
{
	__u64 above = layer - 1U; /* wraps for the CUDA layer */

	if (layer == TRACE_LAYER_CUDA)
		return &thread->frame;
	SHOW_BOUND(above);
	if (!frames || above >= TRACE_LAYERS - 1)
		return NULL;
	return &frames->at[above];
}

/*
 * The current thread's frames in the layers above CUDA, created if needed. NULL: there is no room, which is
 * counted.
 */
static __noinline struct frames *frames_get(__u64 id, __u64 owner)
{
	struct frames *frames = bpf_map_lookup_elem(&layers, &id);
	struct frames *none = bpf_map_lookup_elem(&zeros, &zero);

	if (frames || !none)
		return frames;
	if (share_take(owner, TRACE_TABLE_LAYERS)) {
		if (bpf_map_update_elem(&layers, &id, none, BPF_NOEXIST))
			share_give(owner, TRACE_TABLE_LAYERS);
		frames = bpf_map_lookup_elem(&layers, &id);
	}
	if (!frames)
		table_lost(owner, TRACE_TABLE_LAYERS);
	return frames;
}

/*
 * Whether the function was entered by a tail call from the one with the same stack pointer. Then its return
 * address is that of the kernel's trampoline, which is at the start of a page. Otherwise it is a new call.
 */
static __noinline bool is_tail_call(__u64 link, __u64 sp)
{
	__u64 address = return_address(link, sp);

	return address && (address & (PAGE - 1)) == 0;
}

/*
 * Whether the call's probes were detached after it began. Its frame would hide all calls deeper in the stack.
 */
static __noinline bool is_gone(const struct frame *frame)
{
	__u32 call = frame->call;
	const struct trace_spec *spec = bpf_map_lookup_elem(&specs, &call);

	return spec && spec->gone_ns > frame->entry_ns;
}

/*
 * Whether the frame's call was left by longjmp or an exception, so that a call deeper in the stack is not
 * nested in it. In that case the return address, which the kernel had replaced by its trampoline's, is
 * overwritten sooner or later.
 */
static __always_inline bool was_left(__u64 link, const struct frame *frame)
{
	return RETURN_ON_STACK && !is_tail_call(link, frame->sp);
}

/* Whether a function, entered at @sp, is called within the call of this frame of another layer. */
static __always_inline bool is_within(__u64 link, const struct trace_control *ctl, const struct frame *frame,
				      __u64 sp)
{
	if (sp > frame->sp || (ctl->gone_ns > frame->entry_ns && is_gone(frame)))
		return false;
	return sp == frame->sp ? is_tail_call(link, sp) : !was_left(link, frame);
}

/*
 * At an entry of thread @id at @sp in layer @own: drops frames of other layers whose calls have been left.
 * Returns the number of the innermost call of the layers above @own; 0: there is none. @link: the link
 * register. Not static, as in shares.h.
 */
__noinline __u32 layers_unwind(__u64 id, __u64 sp, __u32 own, __u64 link)
{
	struct frames *frames = bpf_map_lookup_elem(&layers, &id);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_counters *c = counters_get();
	__u32 innermost = 0;

	/* Used on any machine, so that the compiler passes it. */
	asm volatile("" : "+r"(link));
	if (!c || !ctl || !frames || !thread)
		return 0;
	if (own != TRACE_LAYER_CUDA && thread->frame.sp && sp > thread->frame.sp) {
		COUNT(&c->abandoned);
		thread->frame.sp = 0;
	}
	for (__u32 i = 0; i < TRACE_LAYERS - 1; i++) {
		struct frame *frame = &frames->at[i];

		if (i + 1 == own)
			continue;
		if (frame->sp && !is_within(link, ctl, frame, sp)) {
			COUNT(&c->abandoned);
			frame->sp = 0;
		}
		if (!frame->sp)
			thread->above &= ~(1U << (i + 1));
		else if (i + 1 > own && frame->number > innermost)
			innermost = frame->number;
	}
	return innermost;
}

/*
 * The layer that a return at @sp belongs to: of those with this stack pointer, the one that was entered
 * last. If there is none, any layer with a call that encloses the returning function. Not static, as in
 * shares.h.
 */
__noinline __u32 layer_returning(__u64 id, __u64 sp)
{
	struct frames *frames = bpf_map_lookup_elem(&layers, &id);
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct trace_counters *c = counters_get();
	__u32 found = TRACE_LAYER_CUDA;
	__u64 entered_ns, found_sp;
	bool exact;

	if (!frames || !thread || !c)
		return found;
	if (thread->frame.sp && sp > thread->frame.sp) {
		COUNT(&c->abandoned);
		thread->frame.sp = 0;
	}
	found_sp = thread->frame.sp;
	entered_ns = thread->frame.entry_ns;
	exact = found_sp == sp;
	for (__u32 i = 0; i < TRACE_LAYERS - 1; i++) {
		struct frame *frame = &frames->at[i];
		bool take = false;

		if (frame->sp && sp > frame->sp) {
			COUNT(&c->abandoned);
			frame->sp = 0;
		}
		if (!frame->sp) {
			thread->above &= ~(1U << (i + 1));
		} else if (frame->sp == sp) {
			take = !exact || frame->entry_ns > entered_ns;
			exact = true;
		} else {
			take = !found_sp;
		}
		if (take) {
			found = i + 1;
			found_sp = frame->sp;
			entered_ns = frame->entry_ns;
		}
	}
	return found;
}
