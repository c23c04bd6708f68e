// SPDX-License-Identifier: Apache-2.0
/* What --timeline and the flags that belong to it ask for. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/text.h"
#include "cmd/trace/request.h"

enum { KEEP_MAX = 100000 };
#define ROTATE_BYTES_MIN (1 << 20)
#define LAST_MIN_S 1.0
#define LAST_MAX_S 600.0
#define ROTATE_MIN_S 1.0
#define ROTATE_MAX_S (7 * 86400.0)

static bool refuse_flag(const char *flag, const char *text, const char *what)
{
	fprintf(stderr, "gpusonde %s: %s cannot be \"%s\": it must be %s\n", trace_command_name(), flag, text,
		what);
	return false;
}

static bool contradict(const char *why)
{
	fprintf(stderr, "gpusonde %s: %s\n", trace_command_name(), why);
	return false;
}

static bool parse_keep(const char *text, uint32_t *ret_keep)
{
	uint64_t n;

	if (parse_u64(text, &n) < 0 || n == 0 || n > KEEP_MAX)
		return false;
	*ret_keep = (uint32_t)n;
	return true;
}

static bool parse_numbers(const struct invocation *inv, struct timeline_request *request)
{
	const char *const bytes = inv->flag[FLAG_ROTATE_SIZE], *const time = inv->flag[FLAG_ROTATE_TIME],
			  *const keep = inv->flag[FLAG_KEEP], *const last = inv->flag[FLAG_TIMELINE_LAST];
	int64_t size;

	if (bytes && (size_parse(bytes, &size) < 0 || size < ROTATE_BYTES_MIN))
		return refuse_flag("--rotate-size", bytes, "a size of at least 1MiB, such as 256MiB");
	if (bytes)
		request->rotate_bytes = (uint64_t)size;
	if (time && parse_seconds_ns(time, ROTATE_MIN_S, ROTATE_MAX_S, &request->rotate_ns) < 0)
		return refuse_flag("--rotate-time", time, "a time from 1s to 7d, such as 10m");
	if (keep && !parse_keep(keep, &request->keep))
		return refuse_flag("--keep", keep, "a number of files from 1 to 100000");
	if (last && parse_seconds_ns(last, LAST_MIN_S, LAST_MAX_S, &request->last_ns) < 0)
		return refuse_flag("--last", last, "a time from 1s to 10m, such as 60s");
	return true;
}

bool timeline_request_parse(const struct invocation *inv, struct timeline_request *ret_request)
{
	struct timeline_request request = { 0 };
	const char *path = inv->flag[FLAG_TIMELINE];
	bool rotates = inv->flag[FLAG_ROTATE_SIZE] || inv->flag[FLAG_ROTATE_TIME];
	size_t stem;

	if (path && !timeline_format_of(path, &request.format, &stem))
		return refuse_flag("--timeline", path, "a file whose name ends in .pftrace or .json");
	if (inv->flag[FLAG_MERGE] && (!path || inv->flag[FLAG_TIMELINE_LAST]))
		return contradict("--merge is of --timeline without --last: add it, or leave out --merge");
	if (!path && (rotates || inv->flag[FLAG_KEEP] || inv->flag[FLAG_TIMELINE_LAST]))
		return contradict(
			"--rotate-size, --rotate-time, --keep and --last are of --timeline: add it");
	if (inv->flag[FLAG_KEEP] && !rotates)
		return contradict("--keep is of several files: add --rotate-size or --rotate-time");
	if (inv->flag[FLAG_TIMELINE_LAST] && rotates)
		return contradict("--last writes one file of what it keeps: leave out --rotate-size and "
				  "--rotate-time");
	if (!parse_numbers(inv, &request))
		return false;
	*ret_request = request;
	return true;
}
