// SPDX-License-Identifier: Apache-2.0
#include "web/file_arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "web/history_numbers.h"
#include "web/routes.h"

#define REPORT_SINCE_NS (24 * 3600 * NSEC_PER_SEC)

const char *const report_who_names[REPORT_WHOS] = { "", "pod", "container", "job", "user" };
const char *const report_format_names[REPORT_FORMATS] = { "html", "json", "markdown", "text" };

static bool refuse_argument(struct http_reply *reply, const char *what, const char *must)
{
	reply->status = 400;
	strbuf_addf(&reply->body, "400 bad request: %s= must be %s\n", what, must);
	return false;
}

static bool argument_text(const char *value, char ret_text[static HTTP_TEXT_MAX])
{
	if (!value || strlen(value) >= HTTP_TEXT_MAX || !text_is_printable(value))
		return false;
	strcpy(ret_text, value);
	return true;
}

/* ---- a timeline ---- */

static bool timeline_numbers(const struct http_request *request, int64_t n[static HTTP_NUMBERS],
			     struct http_reply *reply)
{
	const char *text = request->argument(request, "at");
	uint64_t at = 0;

	n[TIMELINE_AT] = -1;
	if (!text)
		return true;
	if (parse_u64(text, &at) < 0 || at > INT64_MAX)
		return refuse_argument(reply, "at", "the number of a byte");
	n[TIMELINE_AT] = (int64_t)at;
	return true;
}

static bool timeline_text(const struct http_request *request, char ret_text[static HTTP_TEXT_MAX],
			  struct http_reply *reply)
{
	const char *file = request->argument(request, "file");

	return (file && !strchr(file, '/') && argument_text(file, ret_text)) ||
	       refuse_argument(reply, "file", "a name that /api/v1/timelines has");
}

/* ---- a report ---- */

/* The first one that is given; REPORT_ALL: none is. */
static enum report_who report_who(const struct http_request *request)
{
	for (unsigned i = REPORT_ALL + 1; i < REPORT_WHOS; i++)
		if (request->argument(request, report_who_names[i]))
			return (enum report_who)i;
	return REPORT_ALL;
}

static bool report_format(const struct http_request *request, int64_t *ret_format, struct http_reply *reply)
{
	const char *text = request->argument(request, "format");

	*ret_format = REPORT_HTML;
	if (!text)
		return true;
	for (unsigned i = 0; i < REPORT_FORMATS; i++)
		if (STRV_EQ(text, report_format_names[i])) {
			*ret_format = (int64_t)i;
			return true;
		}
	return refuse_argument(reply, "format", "html, json, markdown or text");
}

static bool report_numbers(const struct http_request *request, int64_t n[static HTTP_NUMBERS],
			   struct http_reply *reply)
{
	n[REPORT_WHO] = (int64_t)report_who(request);
	return web_when(request, "since", -REPORT_SINCE_NS, &n[REPORT_SINCE], reply) &&
	       web_when(request, "until", 0, &n[REPORT_UNTIL], reply) &&
	       report_format(request, &n[REPORT_FORMAT], reply);
}

static bool report_text(const struct http_request *request, char ret_text[static HTTP_TEXT_MAX],
			struct http_reply *reply)
{
	enum report_who who = report_who(request);
	const char *value = who == REPORT_ALL ? NULL : request->argument(request, report_who_names[who]);

	return !value || (*value && argument_text(value, ret_text)) ||
	       refuse_argument(reply, report_who_names[who], "a name of at most 255 bytes");
}

/* A report has its style in it, and nothing else than text and drawings. */
static const struct http_header report_headers[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
	  "frame-ancestors 'self'" },
	{ "Referrer-Policy", "no-referrer" },
	{ 0 },
};

const struct http_manner timeline_manner = { .numbers = timeline_numbers, .text = timeline_text };
const struct http_manner report_manner = {
	.headers = report_headers,
	.numbers = report_numbers,
	.text = report_text,
};
