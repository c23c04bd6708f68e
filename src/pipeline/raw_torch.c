// SPDX-License-Identifier: Apache-2.0
#include "pipeline/raw_torch.h"

#include "model/torch.h"
#include "torch/name.h"
#include "trace/probe.h"

static void number_field(struct raw_event *raw, const char *name, enum raw_number number, uint64_t value)
{
	raw->fields.at[raw->fields.n++] =
		(struct raw_field){ .name = name, .number = number, .value = value };
}

static void text_field(struct raw_event *raw, const char *name, const char *text)
{
	raw->fields.at[raw->fields.n++] = (struct raw_field){ .name = name, .text = text };
}

static void operator_field(struct raw_event *raw, uint16_t call)
{
	static char name[TORCH_NAME_MAX];

	if (call == 0 || call >= probe_calls())
		return;
	torch_name(probe_at(call)->symbol, name);
	text_field(raw, "operator", name);
}

static void memory_fields(struct raw_event *raw, const struct trace_call *call, const char *bytes)
{
	static char device[TORCH_DEVICE_TEXT];

	torch_device_text((struct torch_device){ .type = (int8_t)call->kind,
						 .index = (int8_t)(call->kind >> 8) },
			  device);
	number_field(raw, bytes, RAW_SIGNED, call->size);
	number_field(raw, "allocated", RAW_UNSIGNED, call->stream);
	number_field(raw, "reserved", RAW_UNSIGNED, call->handle);
	text_field(raw, "device", device);
}

void raw_torch(const struct trace_call *call, struct raw_event *raw)
{
	raw->type = RAW_FIELDS;
	raw->fields.n = 0;
	if (call->header.op == TRACE_OP_TORCH_NODE) {
		number_field(raw, "node", RAW_HEX, call->addr);
		number_field(raw, "type", RAW_HEX, call->handle);
		number_field(raw, "sequence", RAW_UNSIGNED, call->size);
		operator_field(raw, call->header.forward);
		return;
	}
	if (call->header.op == TRACE_OP_TORCH_MEMORY)
		number_field(raw, "addr", RAW_HEX, call->addr);
	memory_fields(raw, call, call->header.op == TRACE_OP_TORCH_OOM ? "asked" : "bytes");
	operator_field(raw, call->header.operator);
}
