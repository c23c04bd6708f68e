// SPDX-License-Identifier: Apache-2.0
#include "web/history_numbers.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/moment.h"
#include "base/text.h"
#include "view/metrics/metric_name.h"
#include "web/routes.h"

#define SINCE_NS (10 * 60 * NSEC_PER_SEC)
enum { POINTS = 600 }; /* of a series, unless a step is asked for */

static bool refuse_number(struct http_reply *reply, const char *what, const char *must)
{
	reply->status = 400;
	strbuf_addf(&reply->body, "400 bad request: %s= must be %s\n", what, must);
	return false;
}

/* ---- times ---- */

bool web_when(const struct http_request *request, const char *name, int64_t otherwise, int64_t *ret_when,
	      struct http_reply *reply)
{
	const char *text = request->argument(request, name);

	*ret_when = otherwise;
	if (!text)
		return true;
	if (parse_duration_ns(text, ret_when) == 0 && *ret_when <= clock_real_ns()) {
		*ret_when = -*ret_when;
		return true;
	}
	return (moment_parse(text, clock_real_ns(), ret_when) == 0 && *ret_when > 0) ||
	       refuse_number(reply, name,
			     "a time such as 2026-01-31T23:59:59Z, seconds since 1970, or how long ago: 10m");
}

/* What is left out comes of the time that is asked for. */
static bool parse_step(const struct http_request *request, int64_t since, int64_t until, int64_t *ret_step,
		       struct http_reply *reply)
{
	const char *text = request->argument(request, "step");
	int64_t now = clock_real_ns();
	int64_t span = (until > 0 ? until : now + until) - (since > 0 ? since : now + since);

	if (!text) {
		*ret_step = MAX(span / POINTS / NSEC_PER_SEC, INT64_C(1)) * NSEC_PER_SEC;
		return true;
	}
	return parse_seconds_ns(text, 1, 366 * 86400.0, ret_step) == 0 ||
	       refuse_number(reply, "step", "a time such as 10s, from 1s on");
}

/* ---- metrics ---- */

static bool add_metrics(const char *name, size_t n, int64_t numbers[static HTTP_NUMBERS])
{
	uint32_t list[HISTORY_METRICS_MAX];
	size_t room = HISTORY_METRICS_MAX - (size_t)numbers[HISTORY_METRICS];
	size_t found = metrics_named(name, n, list, room);

	for (size_t i = 0; i < MIN(found, room); i++)
		numbers[HISTORY_METRIC + numbers[HISTORY_METRICS]++] = list[i];
	return found > 0 && found <= room;
}

static bool parse_metrics(const struct http_request *request, int64_t numbers[static HTTP_NUMBERS],
			  struct http_reply *reply)
{
	const char *text = request->argument(request, "metric");

	numbers[HISTORY_METRICS] = 0;
	while (text) {
		size_t n = strcspn(text, ",");

		if (!add_metrics(text, n, numbers))
			break;
		if (text[n] == '\0')
			return true;
		text += n + 1;
	}
	return refuse_number(reply, "metric",
			     "up to 6 metrics of GPUs or of the machine, such as "
			     "power_watts,utilization_ratio.gpu; docs/metrics.md lists them");
}

static bool parse_gpu(const struct http_request *request, int64_t *ret_gpu, struct http_reply *reply)
{
	const char *text = request->argument(request, "gpu");
	uint64_t gpu = 0;

	*ret_gpu = -1;
	if (!text)
		return true;
	if (parse_u64(text, &gpu) < 0 || gpu > UINT16_MAX)
		return refuse_number(reply, "gpu", "the index of a GPU");
	*ret_gpu = (int64_t)gpu;
	return true;
}

/* ---- pages ---- */

static bool history_numbers(const struct http_request *request, int64_t n[static HTTP_NUMBERS],
			    struct http_reply *reply)
{
	return web_when(request, "since", -SINCE_NS, &n[HISTORY_SINCE], reply) &&
	       web_when(request, "until", 0, &n[HISTORY_UNTIL], reply) &&
	       parse_step(request, n[HISTORY_SINCE], n[HISTORY_UNTIL], &n[HISTORY_STEP], reply) &&
	       parse_gpu(request, &n[HISTORY_GPU], reply) && parse_metrics(request, n, reply);
}

static bool moment_numbers(const struct http_request *request, int64_t n[static HTTP_NUMBERS],
			   struct http_reply *reply)
{
	return web_when(request, "at", 0, &n[HISTORY_SINCE], reply);
}

const struct http_manner history_manner = { .numbers = history_numbers };
const struct http_manner moment_manner = { .numbers = moment_numbers };
