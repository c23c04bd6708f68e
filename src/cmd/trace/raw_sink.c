// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/raw_sink.h"

#include <errno.h>
#include <string.h>

#include "trace/probe.h"
#include "view/raw.h"

enum { RAW_FLUSH = 64 << 10 };

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
	enum trace_operand_from from = probes[call->header.call].spec.operands[operands[i].operand].from;
	bool succeeded = !(call->header.flags & TRACE_FLAG_NO_RESULT) && call->result == 0;

	return from != TRACE_FROM_NONE && (from != TRACE_FROM_OUT || succeeded);
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

/* @comm holds raw->comm. */
static void from_process(const struct trace_process *process, char comm[static TRACE_COMM + 1],
			 struct raw_event *raw)
{
	memcpy(comm, process->comm, TRACE_COMM);
	comm[TRACE_COMM] = '\0';
	raw->comm = comm;
}

/* False: an event that is not printed. */
static bool from_event(const struct trace_header *event, char comm[static TRACE_COMM + 1],
		       struct raw_event *ret_raw)
{
	struct raw_event raw = { .time_ns = event->time_ns, .pid = event->tgid, .tid = event->tid };

	if (event->call >= probes_n)
		return false;
	raw.api = probes[event->call].symbol;
	switch (event->type) {
	case TRACE_EVENT_LAUNCH:
		from_launch((const void *)event, &raw);
		break;
	case TRACE_EVENT_CALL:
		from_call((const void *)event, &raw);
		break;
	case TRACE_EVENT_NAME:
		from_name((const void *)event, &raw);
		break;
	case TRACE_EVENT_PROCESS:
		raw.type = RAW_PROCESS;
		from_process((const void *)event, comm, &raw);
		break;
	case TRACE_EVENT_EXEC:
		raw.type = RAW_EXEC;
		from_process((const void *)event, comm, &raw);
		break;
	case TRACE_EVENT_EXIT:
		raw.type = RAW_EXIT;
		from_process((const void *)event, comm, &raw);
		break;
	default:
		return false;
	}
	*ret_raw = raw;
	return true;
}

static int raw_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct raw_sink *sink = userdata;
	char comm[TRACE_COMM + 1];
	struct raw_event raw;
	int r;

	if (sink->failed || !from_event(event, comm, &raw))
		return sink->failed;
	r = view_raw_event(&raw, sink->json, &sink->text);
	if (sink->text.len >= RAW_FLUSH)
		raw_sink_flush(sink);
	return sink->failed ? sink->failed : r;
}

static void raw_lost(uint64_t events, void *userdata)
{
	struct raw_sink *sink = userdata;

	view_raw_lost(events, sink->json, &sink->text);
}

void raw_sink_init(struct raw_sink *raw, bool json, int (*write)(const struct strbuf *text, void *userdata),
		   void *userdata)
{
	*raw = (struct raw_sink){
		.sink = { .sink = { .name = "raw", .userdata = raw }, .event = raw_event, .lost = raw_lost },
		.json = json,
		.write = write,
		.userdata = userdata,
	};
	strbuf_init(&raw->text, 0);
}

void raw_sink_done(struct raw_sink *raw)
{
	strbuf_done(&raw->text);
}

void raw_sink_flush(struct raw_sink *raw)
{
	if (raw->text.len > 0 && !raw->failed)
		raw->failed = raw->write(&raw->text, raw->userdata);
	strbuf_reset(&raw->text);
}
