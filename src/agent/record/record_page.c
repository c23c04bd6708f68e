// SPDX-License-Identifier: Apache-2.0
#include "agent/record/record_page.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "web/record_numbers.h"

_Static_assert((int)RECORD_LAST + 1 == (int)RECORD_ACTIONS, "each action has a word");

const char *record_action_name(enum record_action action)
{
	return record_actions[action];
}

int record_page_request(const struct http_request *request, struct record_request *ret_request)
{
	const int64_t *n = request->numbers;

	if (n[RECORD_NUMBER_ACTION] < 0 || n[RECORD_NUMBER_ACTION] >= RECORD_ACTIONS ||
	    n[RECORD_NUMBER_DURATION] < 0 || n[RECORD_NUMBER_BYTES] < 0 || n[RECORD_NUMBER_PID] < 0 ||
	    n[RECORD_NUMBER_PID] > INT32_MAX)
		return -EINVAL;
	*ret_request = (struct record_request){
		.action = (enum record_action)n[RECORD_NUMBER_ACTION],
		.duration_ns = n[RECORD_NUMBER_DURATION],
		.bytes = (uint64_t)n[RECORD_NUMBER_BYTES],
		.pid = (uint32_t)n[RECORD_NUMBER_PID],
		.reason = "request",
	};
	return 0;
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
