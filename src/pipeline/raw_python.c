// SPDX-License-Identifier: Apache-2.0
#include "pipeline/raw_python.h"

#include "model/python.h"

static void python_field(struct raw_event *raw, const char *name, uint64_t value, const char *text)
{
	raw->fields.at[raw->fields.n++] =
		(struct raw_field){ .name = name, .number = RAW_UNSIGNED, .value = value, .text = text };
}

void raw_python(const struct trace_call *call, struct raw_event *raw)
{
	raw->type = RAW_FIELDS;
	raw->fields.n = 0;
	if (call->header.op == TRACE_OP_PYTHON_GIL) {
		raw->api = "GIL"; /* of no probe */
		python_field(raw, "waits", call->size, NULL);
		python_field(raw, "longest_ns", call->addr, NULL);
	} else if (call->header.op == TRACE_OP_PYTHON_GC) {
		bool known = call->kind < PYTHON_GENERATIONS;

		python_field(raw, "generation", known ? call->kind : 0,
			     known ? NULL : python_generation_name(call->kind));
	}
}
