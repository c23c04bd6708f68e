// SPDX-License-Identifier: Apache-2.0
/* Events of PyTorch and CPython in a timeline that are not shown as the call of a probed function. */
#include <inttypes.h>
#include <stdio.h>

#include "pipeline/timeline_private.h"
#include "model/torch.h"

static const struct {
	enum trace_op op;
	enum timeline_category category;
	const char *name;
} named[] = {
	{ TRACE_OP_PYTHON_GIL, TIMELINE_PYTHON, "wait for the GIL" },
	{ TRACE_OP_PYTHON_GC, TIMELINE_PYTHON, "garbage collection" },
	{ TRACE_OP_TORCH_OOM, TIMELINE_TORCH, "out of memory" },
};

bool timeline_layer_name(struct trace_timeline *t, const struct trace_header *header,
			 struct timeline_event *event, bool *ret_made)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		if (named[i].op != header->op)
			continue;
		event->category = (uint8_t)named[i].category;
		*ret_made = trace_timeline_key(t, named[i].name, &event->name);
		return true;
	}
	return false;
}

/* What an allocator holds is a curve of the process, one for each of its devices. */
static void add_memory(struct trace_timeline *t, const struct trace_call *call, uint32_t process,
		       const char *what, uint64_t bytes)
{
	struct timeline_track track = { .kind = TIMELINE_COUNTER, .unit = TIMELINE_BYTES };
	const struct torch_device device = { .type = (int8_t)call->kind, .index = (int8_t)(call->kind >> 8) };
	struct timeline_event event = { .type = TIMELINE_VALUE,
					.category = TIMELINE_TORCH,
					.begin_ns = call->header.time_ns,
					.value = (double)bytes };
	char text[TORCH_DEVICE_TEXT], name[TORCH_DEVICE_TEXT + 48];

	torch_device_text(device, text);
	snprintf(name, sizeof(name), "%s %s, bytes", text, what);
	if (timeline_child(t, process, &track, name, &t->counter_by,
			   (call->kind & 0xffff) << 1 | (*what == 'r'), &event.track))
		trace_timeline_add(t, &event);
	else
		t->missing.dropped++;
}

void timeline_torch_memory(struct trace_timeline *t, const struct trace_call *call, uint32_t process)
{
	add_memory(t, call, process, "allocated", call->stream);
	add_memory(t, call, process, "reserved", call->handle);
}
