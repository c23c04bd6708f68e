// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/raw_sink.h"

#include <errno.h>

#include "cmd/trace/trace.h"

enum { RAW_FLUSH = 64 << 10 };

static int raw_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct raw_sink *raw = userdata;

	if (raw->failed)
		return raw->failed;
	trace_print_event(event, raw->json, &raw->text);
	if (raw->text.len >= RAW_FLUSH)
		raw_sink_flush(raw);
	return raw->failed;
}

/* Where they are missing, as a line among the others. */
static void raw_lost(uint64_t events, void *userdata)
{
	struct raw_sink *raw = userdata;

	if (raw->json)
		strbuf_addf(&raw->text, "{\"type\":\"lost\",\"events\":%llu}\n", (unsigned long long)events);
	else
		strbuf_addf(&raw->text, "-- %llu events lost here\n", (unsigned long long)events);
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
