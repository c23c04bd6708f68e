// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: reads single arguments, and what they point at. */
#pragma once

#include "bpf/maps.h"

/*
 * Saturates. Multiplies halves, since the compiler would turn a simpler overflow check into a 128-bit
 * product. Not static, as in shares.h.
 */
__noinline __u64 multiply(__u64 a, __u64 b)
{
	__u64 small = a < b ? a : b, large = a < b ? b : a;

	if (small >> 32 || ((large >> 32) * small + ((__u32)large * small >> 32)) >> 32)
		return U64_MAX;
	return a * b;
}

static __always_inline void read_user(void *to, __u32 size, __u64 from, struct frame *frame)
{
	if (bpf_probe_read_user(to, size, (void *)from)) {
		__builtin_memset(to, 0, size);
		frame->flags |= TRACE_FLAG_UNREAD;
	}
}

static __always_inline __u64 read_user_number(__u64 from, __u32 width, struct frame *frame)
{
	__u64 wide = 0;
	__u32 narrow = 0;

	if (width == 4) {
		read_user(&narrow, sizeof(narrow), from, frame);
		return narrow;
	}
	read_user(&wide, sizeof(wide), from, frame);
	return wide;
}

static __always_inline __u64 argument(struct pt_regs *ctx, __u32 i, struct frame *frame)
{
	if (i < REGISTER_ARGS)
		return register_arg(ctx, i);
	return read_user_number(frame->sp + STACK_ARGS + (__u64)(i - REGISTER_ARGS) * 8, 8, frame);
}

/*
 * Of the first @n bytes at @from, or if @by_pointer where the pointer there points: at most DIGEST_MAX, a
 * multiple of 8. Not 0; 0: they could not be read. Not static, as in shares.h.
 */
__noinline __u64 digest(__u64 from, __u32 n, __u32 by_pointer)
{
	__u64 words[DIGEST_MAX / 8] = {}, sum = n, bytes = n;

	if (by_pointer && bpf_probe_read_user(&from, sizeof(from), (void *)from))
		return 0;
	SHOW_BOUND(bytes); /* of 64 bits: without jumps of 32 bits the other half's bound is lost */
	if (bytes > sizeof(words) || bpf_probe_read_user(words, bytes, (void *)from))
		return 0;
	for (__u32 i = 0; i < DIGEST_MAX / 8; i++) {
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 29;
	}
	return sum | 1;
}
