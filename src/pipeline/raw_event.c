// SPDX-License-Identifier: Apache-2.0
#include "pipeline/raw_event.h"

#include <string.h>

#include "pipeline/raw_blas.h"
#include "pipeline/raw_nccl.h"
#include "pipeline/raw_python.h"
#include "pipeline/raw_torch.h"
#include "nccl/nccl.h"
#include "python/figures.h"
#include "torch/torch.h"
#include "trace/arguments.h"

static const struct {
	enum trace_operand_index operand;
	size_t offset; /* in struct trace_call */
	bool is_32_bit;
} operands[RAW_OPERANDS] = {
	[RAW_ADDR] = { TRACE_OPERAND_ADDR, offsetof(struct trace_call, addr), false },
	[RAW_SIZE] = { TRACE_OPERAND_SIZE, offsetof(struct trace_call, size), false },
	[RAW_STREAM] = { TRACE_OPERAND_STREAM, offsetof(struct trace_call, stream), false },
	[RAW_HANDLE] = { TRACE_OPERAND_HANDLE, offsetof(struct trace_call, handle), false },
	[RAW_KIND] = { TRACE_OPERAND_KIND, offsetof(struct trace_call, kind), true },
};

/* An operand that the call writes is valid only after success. */
static bool has_operand(const struct trace_call *call, unsigned i)
{
	enum trace_operand_from from = probe_at(call->header.call)->spec.operands[operands[i].operand].from;
	bool succeeded = !(call->header.flags & TRACE_FLAG_NO_RESULT) && call->result == 0;

	return from != TRACE_FROM_NONE && (!TRACE_FROM_IS_OUTPUT(from) || succeeded);
}

static uint64_t operand_value(const struct trace_call *call, unsigned i)
{
	const char *at = (const char *)call + operands[i].offset;

	return operands[i].is_32_bit ? *(const __u32 *)(const void *)at : *(const __u64 *)(const void *)at;
}

static void from_launch(const struct trace_launch *launch, struct raw_event *raw)
{
	raw->type = RAW_LAUNCH;
	raw->has_result = !(launch->header.flags & TRACE_FLAG_NO_RESULT);
	raw->result = launch->result;
	raw->duration_ns = launch->duration_ns;
	raw->launch.function = launch->function;
	raw->launch.stream = launch->stream;
	memcpy(raw->launch.grid, launch->grid, sizeof(launch->grid));
	memcpy(raw->launch.block, launch->block, sizeof(launch->block));
	raw->launch.shared_bytes = launch->shared_bytes;
}

static void from_call(const struct trace_call *call, struct raw_event *raw)
{
	raw->type = RAW_CALL;
	raw->has_result = !(call->header.flags & TRACE_FLAG_NO_RESULT);
	raw->result = call->result;
	raw->duration_ns = call->duration_ns;
	for (unsigned i = 0; i < RAW_OPERANDS; i++) {
		raw->call.has[i] = has_operand(call, i);
		raw->call.value[i] = operand_value(call, i);
	}
}

static void from_name(const struct trace_name *name, struct raw_event *raw)
{
	raw->type = RAW_NAME;
	raw->name.handle = name->handle;
	raw->name.parent = name->of;
	raw->name.text = name->header.flags & TRACE_FLAG_UNREAD ? NULL : name->name;
	raw->name.is_file = name->header.op == TRACE_OP_MODULE_FILE;
	raw->name.truncated = name->cut;
}

static enum raw_number number_of(enum user_arg_type type)
{
	if (argument_is_signed(type))
		return RAW_SIGNED;
	return type == USER_ARG_X32 || type == USER_ARG_X64 ? RAW_HEX : RAW_UNSIGNED;
}

/* A function that the user named: struct trace_call, or struct trace_name if it has a string. */
static void from_user(const struct trace_header *event, const struct probe *probe, struct raw_event *raw)
{
	const struct user_probe *user = &library_user()->at[probe->user - 1];
	const struct trace_call *call = (const void *)event;

	raw->type = RAW_USER;
	raw->has_result = event->type == TRACE_EVENT_CALL && !(event->flags & TRACE_FLAG_NO_RESULT);
	raw->result = raw->has_result ? call->result : 0;
	raw->duration_ns = raw->has_result ? call->duration_ns : 0;
	raw->user.n = user->args_n;
	for (unsigned i = 0; i < user->args_n; i++) {
		struct raw_argument *arg = &raw->user.at[i];

		arg->position = user->args[i].position;
		arg->is_text = user->args[i].type == USER_ARG_STRING;
		if (arg->is_text)
			arg->text = argument_string(event, &arg->truncated);
		else
			arg->value = argument_number(event, user, i);
		arg->number = number_of(user->args[i].type);
	}
}

static void from_variable(const struct trace_name *name, struct raw_event *raw)
{
	raw->type = RAW_VARIABLE;
	raw->variable.name =
		name->handle == TRACE_VARIABLE_ORDER ? "CUDA_DEVICE_ORDER" : "CUDA_VISIBLE_DEVICES";
	raw->variable.known = name->of != TRACE_SET_UNKNOWN && !(name->of == TRACE_SET_YES && name->cut);
	if (name->of == TRACE_SET_YES && !(name->header.flags & TRACE_FLAG_UNREAD))
		raw->variable.value = name->name;
}

bool raw_event_of(const struct blas *blas, const struct trace_header *event, struct raw_event *ret_raw)
{
	struct raw_event raw = {
		.time_ns = event->time_ns, .pid = event->tgid, .tid = event->tid, .cpu = event->cpu
	};

	if (event->call >= probe_calls())
		return false;
	raw.api = probe_at(event->call)->symbol;
	if (probe_at(event->call)->user &&
	    (event->type == TRACE_EVENT_CALL || event->type == TRACE_EVENT_NAME)) {
		from_user(event, probe_at(event->call), &raw);
		*ret_raw = raw;
		return true;
	}
	switch (event->type) {
	case TRACE_EVENT_LAUNCH:
		from_launch((const void *)event, &raw);
		break;
	case TRACE_EVENT_CALL:
		from_call((const void *)event, &raw);
		if (nccl_is_event(event)) {
			raw.fields.n = 0;
			raw_nccl((const void *)event, &raw);
		} else if (blas_is_event(event)) {
			raw.fields.n = 0;
			raw_blas(blas, (const void *)event, &raw);
		} else if (python_is_event(event)) {
			raw_python((const void *)event, &raw);
		} else if (torch_is_event(event)) {
			raw_torch((const void *)event, &raw);
		}
		break;
	case TRACE_EVENT_NAME:
		if (event->op == TRACE_OP_INIT)
			from_variable((const void *)event, &raw);
		else
			from_name((const void *)event, &raw);
		break;
	case TRACE_EVENT_PROCESS:
	case TRACE_EVENT_EXEC:
	case TRACE_EVENT_EXIT:
		raw.type = event->type == TRACE_EVENT_PROCESS ? RAW_PROCESS :
			   event->type == TRACE_EVENT_EXEC    ? RAW_EXEC :
								RAW_EXIT;
		raw.api = NULL;
		break;
	default:
		return false;
	}
	*ret_raw = raw;
	return true;
}
