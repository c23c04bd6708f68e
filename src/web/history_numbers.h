// SPDX-License-Identifier: Apache-2.0
/* The arguments of /api/v1/history and /api/v1/moment as numbers (struct http_request). */
#pragma once

#include "serve/http.h"

/*
 * Times: nanoseconds since 1970; below 0: so long before now, so that who asks again asks the same. Zero:
 * now.
 */
enum history_number {
	HISTORY_SINCE, /* of a moment: when */
	HISTORY_UNTIL,
	HISTORY_STEP, /* nanoseconds */
	HISTORY_GPU, /* its index, -1: all */
	HISTORY_METRICS, /* how many follow: metric_code() */
	HISTORY_METRIC,
};
enum { HISTORY_METRICS_MAX = 6 };
/*
 * The argument @name as such a time; @otherwise: it is left out. False: it is wrong, which @reply says.
 */
bool web_when(const struct http_request *request, const char *name, int64_t otherwise, int64_t *ret_when,
	      struct http_reply *reply);
_Static_assert((int)HISTORY_METRIC + (int)HISTORY_METRICS_MAX <= (int)HTTP_NUMBERS, "there is room");
