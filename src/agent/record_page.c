// SPDX-License-Identifier: Apache-2.0
#include "agent/record_page.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/options.h"

#define DURATION_MIN_S 1.0
#define DURATION_MAX_S (7 * 86400.0)

static bool refuse_argument(struct http_reply *reply, const char *what, const char *must)
{
	reply->status = 400;
	strbuf_addf(&reply->body, "%s must be %s\n", what, must);
	return false;
}

static bool parse_action(const char *text, enum record_action *ret_action)
{
	static const char *const names[] = {
		[RECORD_START] = "start", [RECORD_STOP] = "stop", [RECORD_LAST] = "last"
	};

	for (unsigned i = 0; text && i < ARRAY_SIZE(names); i++)
		if (STRV_EQ(text, names[i])) {
			*ret_action = (enum record_action)i;
			return true;
		}
	return false;
}

bool record_page_parse(const struct http_request *request, struct record_request *ret_request,
		       struct http_reply *reply)
{
	const char *duration = request->argument(request, "duration"),
		   *size = request->argument(request, "max_size"), *pid = request->argument(request, "pid");
	struct record_request parsed = { .reason = "request" };
	int64_t bytes = 0;
	uint64_t number = 0;

	if (!parse_action(request->argument(request, "action"), &parsed.action))
		return refuse_argument(reply, "action", "start, stop or last");
	if (duration && parse_seconds_ns(duration, DURATION_MIN_S, DURATION_MAX_S, &parsed.duration_ns) < 0)
		return refuse_argument(reply, "duration", "a time from 1s to 7d");
	if (size && (option_parse_size(size, &bytes) < 0 || bytes <= 0))
		return refuse_argument(reply, "max_size", "a size such as 256MiB");
	if (pid && (parse_u64(pid, &number) < 0 || number == 0 || number > INT32_MAX))
		return refuse_argument(reply, "pid", "a process ID");
	parsed.bytes = (uint64_t)bytes;
	parsed.pid = (uint32_t)number;
	*ret_request = parsed;
	return true;
}

static json_t *file_json(const struct record_file *file)
{
	return json_pack("{s:s, s:I, s:I, s:b, s:s}", "file", file->path, "files", (json_int_t)file->files,
			 "bytes", (json_int_t)file->bytes, "written", file->done, "error", file->error);
}

static json_t *seconds_json(int64_t ns)
{
	return json_real((double)ns / NSEC_PER_SEC);
}

json_t *record_page_status(struct record *record)
{
	struct record_status s;

	record_status(record, &s);
	return json_pack("{s:I, s:I, s:s, s:b, s:o, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I}, s:o, s:o, s:I}",
			 "asked", (json_int_t)s.asked, "done", (json_int_t)s.done, "error", s.error,
			 "recording", s.on, "duration_seconds", seconds_json(s.request.duration_ns),
			 "max_size", (json_int_t)s.request.bytes, "pid", (json_int_t)s.request.pid,
			 "timeline", file_json(&s.recording), "missing", "lost", (json_int_t)s.lost,
			 "dropped", (json_int_t)s.dropped, "cut", (json_int_t)s.cut, "unwritten",
			 (json_int_t)s.unwritten, "last", file_json(&s.last), "last_seconds",
			 seconds_json(s.last_ns), "kept_bytes", (json_int_t)s.kept_bytes);
}
