// SPDX-License-Identifier: Apache-2.0
/* The arguments of /api/v1/timeline and /api/v1/report as numbers and a text (struct http_request). */
#pragma once

#include "serve/http.h"

/* Of a timeline, whose text is the file's name. */
enum timeline_number {
	TIMELINE_AT, /* the part's first byte; -1: not said */
};

/* Of a report, whose text is who it is of. Times as enum history_number's. */
enum report_number {
	REPORT_SINCE,
	REPORT_UNTIL,
	REPORT_WHO, /* enum report_who */
	REPORT_FORMAT, /* enum report_format */
};

/* Is the argument's name, and with "--" before it the command's flag. */
enum report_who { REPORT_ALL, REPORT_POD, REPORT_CONTAINER, REPORT_JOB, REPORT_USER, REPORT_WHOS };
extern const char *const report_who_names[REPORT_WHOS]; /* that of REPORT_ALL is "" */

enum report_format { REPORT_HTML, REPORT_JSON, REPORT_MARKDOWN, REPORT_TEXT, REPORT_FORMATS };
extern const char *const report_format_names[REPORT_FORMATS];
