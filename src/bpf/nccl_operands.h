// SPDX-License-Identifier: Apache-2.0
/* For trace.bpf.c only: reads NCCL's arguments. */
#pragma once

#include "bpf/operands.h"

/* Bytes of an element, by ncclDataType_t, as a power of two; 4 bits each. From 12 on: unknown. */
#define NCCL_TYPE_BITS 0x001321332200ULL
enum { NCCL_TYPES = 12 };

static __always_inline __u64 elements_bytes(__u64 elements, __u32 type)
{
	if (type >= NCCL_TYPES)
		return 0;
	return multiply(elements, 1ULL << (NCCL_TYPE_BITS >> type * 4 & 15));
}

/*
 * The hash that NCCL from 2.22 on calls commHash and prints as commId, of an ID at @from; so it is equal on
 * all ranks.
 */
static __noinline __u64 unique_id_read(__u64 from, struct frame *frame)
{
	__u64 words[4], hash = 1 ^ NCCL_UNIQUE_ID, other = 1;

	for (__u32 at = 0; at < NCCL_UNIQUE_ID; at += sizeof(words)) {
		read_user(words, sizeof(words), from + at, frame);
		for (__u32 i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			hash += other;
			other ^= hash;
			hash ^= hash >> 31;
			hash *= 0x9de62bbc8cef3ce3ULL;
			other ^= other >> 32;
			other *= 0x485cd6311b599e79ULL;
			hash += words[i];
		}
	}
	hash ^= hash >> 31;
	hash *= 0xbac3bd562846de6bULL;
	hash += other;
	hash ^= hash >> 32;
	return hash * 0x995a187a14e7b445ULL;
}

static __always_inline void nccl_read(const struct trace_spec *spec, struct frame *frame)
{
	__u64 *values = frame->values;

	if (spec->shape == TRACE_SHAPE_ELEMENTS) {
		values[TRACE_OPERAND_SIZE] =
			elements_bytes(values[TRACE_OPERAND_SIZE], values[TRACE_OPERAND_KIND]);
	} else if (spec->shape == TRACE_SHAPE_UNIQUE_ID) {
		bool by_value = spec->operands[TRACE_OPERAND_ADDR].from == TRACE_FROM_NONE;

		values[TRACE_OPERAND_ADDR] =
			unique_id_read(by_value ? frame->sp + STACK_ARGS : values[TRACE_OPERAND_ADDR], frame);
	}
}
