// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: reads the arguments and outputs of a call. */
#pragma once

#include "bpf/arguments.h"

static __always_inline bool has_other(const struct trace_spec *spec)
{
	return spec->shape >= TRACE_SHAPE_OTHER;
}

/* Reads the operands at the function's entry. */
static __always_inline void operands_read(struct pt_regs *ctx, const struct trace_spec *spec,
					  struct frame *frame)
{
	for (__u32 i = 0; i < TRACE_OPERANDS; i++) {
		const struct trace_operand *o = &spec->operands[i];
		__u64 v = 0;

		if (o->from == TRACE_FROM_CONST) {
			v = (__s64)o->value;
		} else if (o->from != TRACE_FROM_NONE) {
			v = argument(ctx, o->arg, frame);
			if (o->from == TRACE_FROM_ARG && o->width == 4)
				v = (__u32)v;
			else if (o->from == TRACE_FROM_ARG)
				v = o->value ? multiply(v, (__u32)o->value) : v;
			else
				v += (__s64)o->value;
			if (o->from == TRACE_FROM_IN)
				v = read_user_number(v, o->width, frame);
			else if (o->from == TRACE_FROM_DIGEST_IN)
				v = digest(v, o->width, false);
		}
		frame->values[i] = v;
	}
}

/* Multiplies TIMES by a depth, which is in the same structure as TIMES, or an argument if TIMES is one. */
static __noinline void depth_read(struct pt_regs *ctx, const struct trace_spec *spec, struct frame *frame)
{
	const struct trace_operand *times = &spec->operands[TRACE_OPERAND_TIMES];
	bool in_memory = times->from != TRACE_FROM_ARG;
	__u64 depth = argument(ctx, in_memory ? times->arg : spec->depth_in, frame);

	if (in_memory)
		depth = read_user_number(depth + spec->depth_in, 8, frame);

	frame->values[TRACE_OPERAND_TIMES] = multiply(frame->values[TRACE_OPERAND_TIMES], depth);
}

/* cudaMalloc3D's second argument: width, height, depth. Passed on the stack, or by a pointer on arm64. */
static __noinline void extent_read(struct pt_regs *ctx, struct frame *frame)
{
	__u64 extent[3];
#if defined(__TARGET_ARCH_arm64)
	__u64 from = register_arg(ctx, 1);
#else
	__u64 from = frame->sp + STACK_ARGS;

	(void)ctx;
#endif
	read_user(extent, sizeof(extent), from, frame);
	frame->values[TRACE_OPERAND_TIMES] = multiply(extent[1], extent[2]);
}

/*
 * Replaces SIZE, an array of TIMES sizes, by their sum. Adds halves and saturates at the end: a check of each
 * addition would cost most, since the verifier follows both ways of every branch.
 */
static __noinline void batch_read(struct frame *frame)
{
	__u64 from = frame->values[TRACE_OPERAND_SIZE], n = frame->values[TRACE_OPERAND_TIMES];
	__u64 sizes[BATCH_CHUNK], low = 0, high = 0;

	if (n > TRACE_BATCH_MAX) {
		frame->flags |= TRACE_FLAG_BATCH_CUT;
		n = TRACE_BATCH_MAX;
	}
	for (__u32 done = 0; done < TRACE_BATCH_MAX && done < n; done += BATCH_CHUNK) {
		__u64 bytes = (n - done) * 8;

		SHOW_BOUND(bytes);
		if (bytes > sizeof(sizes))
			bytes = sizeof(sizes);
		__builtin_memset(sizes, 0, sizeof(sizes));
		if (bpf_probe_read_user(sizes, bytes, (void *)(from + done * 8))) {
			frame->flags |= TRACE_FLAG_UNREAD;
			break;
		}
		for (__u32 i = 0; i < BATCH_CHUNK; i++) {
			low += (__u32)sizes[i];
			high += sizes[i] >> 32;
		}
	}
	high += low >> 32;
	frame->values[TRACE_OPERAND_SIZE] = high >> 32 ? U64_MAX : high << 32 | (__u32)low;
	frame->values[TRACE_OPERAND_TIMES] = 1;
}

/* Splits a register with two 32-bit members of a struct. */
static __always_inline void pair_split(__u64 pair, __u32 *first, __u32 *second)
{
	*first = pair;
	*second = pair >> 32;
}

static __always_inline void launch_read(struct pt_regs *ctx, struct frame *frame)
{
	__u64 rest[3] = {};

	frame->function = register_arg(ctx, 0);
	for (__u32 i = 0; i < 5; i++)
		frame->dim[i] = register_arg(ctx, i + 1);
#if defined(__TARGET_ARCH_arm64)
	rest[0] = register_arg(ctx, 6);
	rest[1] = register_arg(ctx, 7);
	rest[2] = argument(ctx, 8, frame);
#else
	read_user(rest, sizeof(rest), frame->sp + STACK_ARGS, frame);
#endif
	frame->dim[5] = rest[0];
	frame->shared = (__u32)rest[1];
	frame->values[TRACE_OPERAND_STREAM] = rest[2];
}

static __always_inline void launch_dim3_read(struct pt_regs *ctx, struct frame *frame)
{
	__u64 rest[2] = {};

	frame->function = register_arg(ctx, 0);
	pair_split(register_arg(ctx, 1), &frame->dim[0], &frame->dim[1]);
	frame->dim[2] = register_arg(ctx, 2);
	pair_split(register_arg(ctx, 3), &frame->dim[3], &frame->dim[4]);
	frame->dim[5] = register_arg(ctx, 4);
#if defined(__TARGET_ARCH_arm64)
	rest[0] = register_arg(ctx, 6);
	rest[1] = register_arg(ctx, 7);
#else
	read_user(rest, sizeof(rest), frame->sp + STACK_ARGS, frame);
#endif
	frame->shared = rest[0];
	frame->values[TRACE_OPERAND_STREAM] = rest[1];
}

/* The common part of CUlaunchConfig in cuda.h and cudaLaunchConfig_t in driver_types.h. */
struct launch_config {
	__u32 dim[6];
	__u64 shared; /* in the driver's, 4 bytes and 4 unused ones */
	__u64 stream;
};

static __always_inline void launch_config_read(struct pt_regs *ctx, struct frame *frame)
{
	struct launch_config config;

	read_user(&config, sizeof(config), register_arg(ctx, 0), frame);
	__builtin_memcpy(frame->dim, config.dim, sizeof(frame->dim));
	frame->function = register_arg(ctx, 1);
	frame->shared = frame->flags & TRACE_FLAG_RUNTIME ? config.shared : (__u32)config.shared;
	frame->values[TRACE_OPERAND_STREAM] = config.stream;
}

static __always_inline void frame_fill(struct pt_regs *ctx, const struct trace_spec *spec,
				       struct frame *frame)
{
	switch (spec->shape) {
	case TRACE_SHAPE_LAUNCH:
		launch_read(ctx, frame);
		return;
	case TRACE_SHAPE_LAUNCH_DIM3:
		launch_dim3_read(ctx, frame);
		return;
	case TRACE_SHAPE_LAUNCH_CONFIG:
		launch_config_read(ctx, frame);
		return;
	}
	if (spec->flags & TRACE_SPEC_INPUTS)
		operands_read(ctx, spec, frame);
	else
		__builtin_memset(frame->values, 0, sizeof(frame->values));
	if (spec->shape == TRACE_SHAPE_EXTENT)
		extent_read(ctx, frame);
	else if (spec->shape == TRACE_SHAPE_BATCH)
		batch_read(frame);
	else if (spec->depth_in)
		depth_read(ctx, spec, frame);
	if (spec->shape == TRACE_SHAPE_ARRAYS &&
	    (frame->values[TRACE_OPERAND_HANDLE] || frame->values[TRACE_OPERAND_ADDR]))
		frame->values[TRACE_OPERAND_SIZE] = 0;
}

/* Reads the function's outputs. @good: it has succeeded; otherwise, or if unknown, they are 0. */
static __always_inline void outputs_read(const struct trace_spec *spec, struct frame *frame, bool good)
{
	for (__u32 i = 0; i < TRACE_OPERANDS; i++) {
		const struct trace_operand *o = &spec->operands[i];

		if (o->from == TRACE_FROM_OUT)
			frame->values[i] = good ? read_user_number(frame->values[i], o->width, frame) : 0;
		else if (TRACE_FROM_IS_OUTPUT(o->from))
			frame->values[i] =
				good ? digest(frame->values[i], o->width, o->from == TRACE_FROM_DIGEST_MADE) :
				       0;
	}
}

static __always_inline __u64 bytes_of(const struct trace_spec *spec, const struct frame *frame)
{
	bool times = (spec->operands[TRACE_OPERAND_TIMES].from != TRACE_FROM_NONE && !has_other(spec)) ||
		     spec->shape == TRACE_SHAPE_EXTENT;

	return times ? multiply(frame->values[TRACE_OPERAND_SIZE], frame->values[TRACE_OPERAND_TIMES]) :
		       frame->values[TRACE_OPERAND_SIZE];
}
