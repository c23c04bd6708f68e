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
static __noinline bool is_tail_call(struct pt_regs *ctx, __u64 sp)
{
	__u64 address = return_address(ctx, sp);

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
static __always_inline bool was_left(struct pt_regs *ctx, const struct frame *frame)
{
	return RETURN_ON_STACK && !is_tail_call(ctx, frame->sp);
}

/* Whether a function, entered at @sp, is called within the call of this frame of another layer. */
static __always_inline bool is_within(struct pt_regs *ctx, const struct trace_control *ctl,
				      const struct frame *frame, __u64 sp)
{
	if (sp > frame->sp || (ctl->gone_ns > frame->entry_ns && is_gone(frame)))
		return false;
	return sp == frame->sp ? is_tail_call(ctx, sp) : !was_left(ctx, frame);
}

/*
 * At an entry at @sp in layer @own: drops frames of other layers whose calls have been left. Returns the
 * number of the innermost call of the layers above @own; 0: there is none.
 */
static __noinline __u32 layers_unwind(struct pt_regs *ctx, struct thread *thread, struct frames *frames,
				      __u64 sp, __u32 own)
{
	struct trace_control *ctl = bpf_map_lookup_elem(&control, &zero);
	struct trace_counters *c = counters_get();
	__u32 innermost = 0;

	if (!c || !ctl)
		return 0;
	if (own != TRACE_LAYER_CUDA && thread->frame.sp && sp > thread->frame.sp) {
		COUNT(&c->abandoned);
		thread->frame.sp = 0;
	}
	for (__u32 i = 0; i < TRACE_LAYERS - 1; i++) {
		struct frame *frame = &frames->at[i];

		if (i + 1 == own)
			continue;
		if (frame->sp && !is_within(ctx, ctl, frame, sp)) {
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
 * The frame that a return at @sp belongs to: of those with this stack pointer, the one that was entered last.
 * If there is none, any frame that encloses the returning function.
 */
static __noinline struct frame *frame_returning(struct trace_counters *c, struct thread *thread, __u64 id,
						__u64 sp)
{
	struct frames *frames = bpf_map_lookup_elem(&layers, &id);
	struct frame *found = &thread->frame;
	bool exact;

	if (!frames)
		return found;
	if (found->sp && sp > found->sp) {
		COUNT(&c->abandoned);
		found->sp = 0;
	}
	exact = found->sp == sp;
	for (__u32 i = 0; i < TRACE_LAYERS - 1; i++) {
		struct frame *frame = &frames->at[i];

		if (frame->sp && sp > frame->sp) {
			COUNT(&c->abandoned);
			frame->sp = 0;
		}
		if (!frame->sp) {
			thread->above &= ~(1U << (i + 1));
		} else if (frame->sp == sp) {
			if (!exact || frame->entry_ns > found->entry_ns)
				found = frame;
			exact = true;
		} else if (!found->sp) {
			found = frame;
		}
	}
	return found;
}
