// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/raw_sink.h"

#include <errno.h>
#include <string.h>

#include "pipeline/raw_event.h"
#include "view/raw.h"

enum { RAW_FLUSH = 64 << 10 };

/* @own holds that of an event which has it. */
static const char *comm_of(const struct raw_sink *sink, const struct trace_header *event,
			   char own[static TRACE_COMM + 1])
{
	if (event->type != TRACE_EVENT_PROCESS && event->type != TRACE_EVENT_EXEC &&
	    event->type != TRACE_EVENT_EXIT)
		return sink->ops.comm(event->tgid, sink->userdata);
	memcpy(own, ((const struct trace_process *)event)->comm, TRACE_COMM);
	own[TRACE_COMM] = '\0';
	return own;
}

static int raw_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct raw_sink *sink = userdata;
	char comm[TRACE_COMM + 1];
	struct raw_event raw;
	int r;

	if (sink->failed || !raw_event_of(sink->blas, event, &raw))
		return sink->failed;
	raw.comm = comm_of(sink, event, comm);
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

void raw_sink_init(struct raw_sink *raw, bool json, const struct raw_sink_ops *ops, void *userdata)
{
	*raw = (struct raw_sink){
		.sink = { .sink = { .name = "raw", .userdata = raw }, .event = raw_event, .lost = raw_lost },
		.json = json,
		.ops = *ops,
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
		raw->failed = raw->ops.write(&raw->text, raw->userdata);
	strbuf_reset(&raw->text);
}
