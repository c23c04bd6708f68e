// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/text.h"
#include "store/walk.h"

#define SPEED_MAX 1e6

static bool parse_speed(const char *text, const char *command, double *ret_speed)
{
	if (!text || (parse_double(text, ret_speed) == 0 && *ret_speed > 0 && *ret_speed <= SPEED_MAX))
		return true;
	fprintf(stderr, "gpusonde %s: --speed cannot be \"%.80s\": it must be a number, up to 1000000\n",
		command, text);
	return false;
}

static bool parse_at(const char *text, const char *command, int64_t *ret_ns)
{
	int64_t at_ns;

	if (!text)
		return true;
	if (moment_parse(text, clock_real_ns(), &at_ns) == 0) {
		/* Pages tell times to the millisecond: this is the whole one. */
		*ret_ns = at_ns + NSEC_PER_MSEC - 1;
		return true;
	}
	fprintf(stderr,
		"gpusonde %s: --at cannot be \"%.80s\": it must be a time such as 2026-01-31T23:59, or "
		"how long ago: 10m, 24h\n",
		command, text);
	return false;
}

bool replay_arguments(const struct invocation *inv, const char *command, int64_t *ret_at_ns,
		      double *ret_speed)
{
	return parse_speed(inv->flag[FLAG_SPEED], command, ret_speed) &&
	       parse_at(inv->flag[FLAG_AT], command, ret_at_ns);
}

int replay_report(const char *command, const struct store_reader *reader, const char *path, int r)
{
	int64_t first_ns, last_ns;
	char first[32], last[32];

	if (r >= 0 || r == -EPIPE)
		return r >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	if (r == -ENOENT && store_whole_span(reader, &first_ns, &last_ns)) {
		format_rfc3339(first_ns, first);
		format_rfc3339(last_ns, last);
		fprintf(stderr, "gpusonde %s: %s has nothing of that time, but from %s to %s\n", command,
			path, first, last);
	} else if (r == -ENOENT) {
		fprintf(stderr, "gpusonde %s: nothing is recorded in %s yet\n", command, path);
	} else if (r == -EBADMSG && !*store_reader_error(reader)) {
		fprintf(stderr, "gpusonde %s: %s: what is recorded contradicts itself: it is damaged\n",
			command, path);
	} else {
		fprintf(stderr, "gpusonde %s: %s: %s\n", command, path,
			*store_reader_error(reader) ? store_reader_error(reader) : strerror(-r));
	}
	return EXIT_FAILURE;
}
