// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: reads the arguments of cuBLAS's multiplications. */
#pragma once

#include "bpf/operands.h"

static __always_inline __u32 type_read(struct pt_regs *ctx, __u32 i, struct frame *frame)
{
	__u32 type = argument(ctx, i, frame);

	return type < 0xff ? type : 0xff;
}

/* The arguments that TRACE_GEMM_WHERE names; 0 where it names none. */
static __noinline __u32 types_read(struct pt_regs *ctx, const struct trace_operand *kind, struct frame *frame)
{
	__u32 types = type_read(ctx, kind->arg, frame), where = kind->value;

	for (__u32 i = 1; i < 4; i++) {
		__u32 arg = where & 0xff;

		where >>= 8;
		if (arg)
			types |= type_read(ctx, arg, frame) << i * 8;
	}
	return types;
}

static __always_inline void blas_read(struct pt_regs *ctx, const struct trace_spec *spec, struct frame *frame)
{
	const struct trace_operand *kind = &spec->operands[TRACE_OPERAND_KIND];
	__u64 *n = &frame->values[TRACE_OPERAND_TIMES];

	if (spec->shape != TRACE_SHAPE_GEMM)
		return;
	if (*n > 0xffffffff)
		*n = 0xffffffff;
	if (kind->from == TRACE_FROM_ARG)
		frame->values[TRACE_OPERAND_KIND] = types_read(ctx, kind, frame);
}
