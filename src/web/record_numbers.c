// SPDX-License-Identifier: Apache-2.0
#include "web/record_numbers.h"

#include "base/macro.h"
#include "base/size.h"
#include "base/text.h"
#include "web/routes.h"

#define DURATION_MIN_S 1.0
#define DURATION_MAX_S (7 * 86400.0)

const char *const record_actions[RECORD_ACTIONS] = { "start", "stop", "last" };

static bool refuse_argument(struct http_reply *reply, const char *what, const char *must)
{
	reply->status = 400;
	strbuf_addf(&reply->body, "%s must be %s\n", what, must);
	return false;
}

static bool parse_action(const char *text, int64_t *ret_action)
{
	for (int i = 0; text && i < RECORD_ACTIONS; i++)
		if (STRV_EQ(text, record_actions[i])) {
			*ret_action = i;
			return true;
		}
	return false;
}

/* GET has none. */
static bool record_numbers(const struct http_request *request, int64_t n[static HTTP_NUMBERS],
			   struct http_reply *reply)
{
	const char *duration = request->argument(request, "duration"),
		   *size = request->argument(request, "max_size"), *pid = request->argument(request, "pid");
	uint64_t number = 0;

	if (request->method != HTTP_POST)
		return true;
	if (!parse_action(request->argument(request, "action"), &n[RECORD_NUMBER_ACTION]))
		return refuse_argument(reply, "action", "start, stop or last");
	if (duration &&
	    parse_seconds_ns(duration, DURATION_MIN_S, DURATION_MAX_S, &n[RECORD_NUMBER_DURATION]) < 0)
		return refuse_argument(reply, "duration", "a time from 1s to 7d");
	if (size && (size_parse(size, &n[RECORD_NUMBER_BYTES]) < 0 || n[RECORD_NUMBER_BYTES] <= 0))
		return refuse_argument(reply, "max_size", "a size such as 256MiB");
	if (pid && (parse_u64(pid, &number) < 0 || number == 0 || number > INT32_MAX))
		return refuse_argument(reply, "pid", "a process ID");
	n[RECORD_NUMBER_PID] = (int64_t)number;
	return true;
}

const struct http_manner record_manner = { .numbers = record_numbers };
