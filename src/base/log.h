// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#include "base/macro.h"

/*
 * Levels are syslog's: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG. One call is one line of
 * at most about a thousand bytes; control characters in it become '?', so that a process name cannot
 * forge a line. A reader that does not read never holds us up: after a short wait the line is dropped
 * and counted, and the count is told once lines go out again. At most LOG_LINES_A_MINUTE are written,
 * debugging aside; others are counted, and the count is written in the next minute. errno is kept. Safe
 * from any thread; not from a signal handler.
 */
enum { LOG_LINES_A_MINUTE = 600 };

enum log_target {
	LOG_TARGET_STDERR, /* with the journal's "<N>" prefixes when stderr is the journal's */
	LOG_TARGET_SYSLOG, /* facility daemon at /dev/log; stderr if there is no daemon */
};

/*
 * To be called before other threads log. @ident must remain valid. Default: stderr, LOG_INFO and the
 * program's name.
 */
void log_setup(enum log_target target, int max_level, const char *ident);
int log_max_level(void);

/* Path of LOG_TARGET_SYSLOG's socket from the next log_setup() on; for tests. */
void log_set_syslog_path(const char *path);

/* Length of the minute in LOG_LINES_A_MINUTE; for tests. */
void log_set_minute(int64_t ns);

void log_at(int level, const char *fmt, ...) _printf_(2, 3);
/* Each line of @text. */
void log_lines(int level, const char *text);

#define log_error(...) log_at(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_at(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/*
 * At most @burst lines per interval for one recurring cause:
 *	static struct log_limit limit = {
 *		.burst = 5, .interval_ns = 60 * NSEC_PER_SEC, .what = "bad requests"
 *	};
 *	if (log_limit_allow(&limit))
 *		log_warning(...);
 * What an interval suppressed is said when the next one begins. For one thread at a time.
 */
struct log_limit {
	unsigned burst;
	int64_t interval_ns;
	const char *what; /* may be NULL */
	int64_t begin_ns;
	unsigned allowed;
	unsigned suppressed;
	bool begun;
};

bool log_limit_allow(struct log_limit *limit);
