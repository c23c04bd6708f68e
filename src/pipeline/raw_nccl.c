// SPDX-License-Identifier: Apache-2.0
#include "pipeline/raw_nccl.h"

#include "model/nccl.h"

/* What an operand of struct trace_call is called in a line; NULL: it is not shown. */
struct names {
	const char *addr, *size, *handle, *kind, *other;
};

static const struct names of_op[] = {
#define NAMES(id_, ...) [TRACE_OP_NCCL_##id_ - TRACE_OP_NCCL_FIRST] = { __VA_ARGS__ }
	NAMES(ALL_REDUCE, .addr = "comm", .size = "bytes", .kind = "type", .handle = "reduction"),
	NAMES(REDUCE, .addr = "comm", .size = "bytes", .kind = "type", .handle = "reduction",
	      .other = "root"),
	NAMES(REDUCE_SCATTER, .addr = "comm", .size = "bytes", .kind = "type", .handle = "reduction"),
	NAMES(BROADCAST, .addr = "comm", .size = "bytes", .kind = "type", .other = "root"),
	NAMES(ALL_GATHER, .addr = "comm", .size = "bytes", .kind = "type"),
	NAMES(ALL_TO_ALL, .addr = "comm", .size = "bytes", .kind = "type"),
	NAMES(GATHER, .addr = "comm", .size = "bytes", .kind = "type", .other = "root"),
	NAMES(SCATTER, .addr = "comm", .size = "bytes", .kind = "type", .other = "root"),
	NAMES(SEND, .addr = "comm", .size = "bytes", .kind = "type", .other = "peer"),
	NAMES(RECV, .addr = "comm", .size = "bytes", .kind = "type", .other = "peer"),
	NAMES(PUT, .addr = "comm", .size = "bytes", .kind = "type", .other = "peer"),
	NAMES(SIGNAL, .addr = "comm", .other = "peer"),
	NAMES(WAIT_SIGNAL, .addr = "comm"),
	NAMES(INIT, .addr = "id", .handle = "comm", .kind = "ranks", .other = "rank"),
	NAMES(INIT_ALL, .handle = "comm", .kind = "ranks", .other = "rank"),
	NAMES(SPLIT, .addr = "parent", .handle = "comm", .kind = "color", .other = "key"),
	NAMES(SHRINK, .addr = "parent", .handle = "comm", .kind = "excluded"),
	NAMES(GROW, .addr = "parent", .handle = "comm", .kind = "ranks", .other = "rank"),
	NAMES(FINALIZE, .addr = "comm"),
	NAMES(DESTROY, .addr = "comm"),
	NAMES(ABORT, .addr = "comm"),
	NAMES(ASYNC_ERROR, .addr = "comm", .kind = "error"),
	NAMES(COUNT, .addr = "comm", .kind = "ranks"),
	NAMES(USER_RANK, .addr = "comm", .kind = "rank"),
	NAMES(REGISTER, .addr = "comm", .size = "bytes", .handle = "handle"),
	NAMES(DEREGISTER, .addr = "comm", .handle = "handle"),
	NAMES(MEM_ALLOC, .addr = "addr", .size = "bytes"),
	NAMES(MEM_FREE, .addr = "addr"),
	NAMES(GROUP_START, .other = "depth"),
	NAMES(GROUP_END, .other = "depth", .handle = "operations"),
#undef NAMES
};

static void field_add(struct raw_event *raw, const char *name, enum raw_number number, uint64_t value,
		      const char *text)
{
	if (name && raw->fields.n < RAW_FIELDS_MAX)
		raw->fields.at[raw->fields.n++] =
			(struct raw_field){ .name = name, .number = number, .value = value, .text = text };
}

void raw_nccl(const struct trace_call *call, struct raw_event *raw)
{
	const struct names *names = &of_op[call->header.op - TRACE_OP_NCCL_FIRST];
	bool moves = call->header.op <= TRACE_OP_NCCL_LAST_MOVING,
	     ends = call->header.op == TRACE_OP_NCCL_GROUP_END,
	     made = call->result == 0 && !(call->header.flags & TRACE_FLAG_NO_RESULT);

	raw->type = RAW_FIELDS;
	field_add(raw, names->addr, call->header.op == TRACE_OP_NCCL_INIT ? RAW_ID : RAW_HEX, call->addr,
		  NULL);
	field_add(raw, names->size, RAW_UNSIGNED, call->size, NULL);
	field_add(raw, names->kind, RAW_SIGNED, (uint64_t)(int64_t)(int32_t)call->kind,
		  moves ? nccl_type_name(call->kind) : NULL);
	if (moves)
		field_add(raw, names->handle, RAW_UNSIGNED, call->handle,
			  nccl_reduction_name((uint32_t)call->handle));
	else if (made)
		field_add(raw, names->handle, ends ? RAW_UNSIGNED : RAW_HEX, call->handle, NULL);
	field_add(raw, names->other, RAW_SIGNED, (uint64_t)(int64_t)(int32_t)call->other, NULL);
	if (moves)
		field_add(raw, "stream", RAW_HEX, call->stream, NULL);
	if (call->header.flags & TRACE_FLAG_GROUPED)
		field_add(raw, "grouped", RAW_UNSIGNED, 1, NULL);
}
