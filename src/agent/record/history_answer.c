// SPDX-License-Identifier: Apache-2.0
#include "agent/record/history_answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "store/history.h"
#include "view/metrics/metric_name.h"
#include "view/number.h"
#include "view/view.h"
#include "web/history_numbers.h"

_Static_assert((int)HISTORY_METRICS_MAX == (int)HISTORY_METRICS_OF_QUERY, "as many as may be asked for");

void history_refuse(struct answer *answer, int error, const char *why)
{
	strbuf_reset(&answer->body);
	switch (error) {
	case -ENOENT:
		answer->status = 404;
		strbuf_adds(&answer->body, "404 nothing of that time is recorded\n");
		return;
	case -E2BIG:
		answer->status = 413;
		strbuf_addf(&answer->body,
			    "413 content too large: more than %d points of a series, or %d of all: ask for a "
			    "greater step, one GPU, or one metric\n",
			    HISTORY_POINTS_MAX, HISTORY_CELLS_MAX);
		return;
	case -EINVAL:
		answer->status = 400;
		strbuf_adds(&answer->body, "400 bad request: since= must be before until=\n");
		return;
	default:
		answer->status = 503;
		strbuf_addf(&answer->body, "503 the recording cannot be read: %s\n",
			    *why ? why : strerror(-error));
	}
}

int64_t history_when(int64_t number, int64_t now_ns)
{
	return number > 0 ? number : number > -now_ns ? now_ns + number : 0;
}

/* ---- JSON ---- */

static void put_time(struct strbuf *out, const char *name, int64_t real_ns)
{
	char text[32];

	format_rfc3339(real_ns, text);
	strbuf_addf(out, "\"%s\":\"%s\",", name, text);
}

static void put_values(struct strbuf *out, const char *name, const struct history *history,
		       const struct history_series *series, size_t offset)
{
	strbuf_addf(out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < history->points; i++) {
		const struct history_point *point = &series->points[i];
		double v;

		memcpy(&v, (const char *)point + offset, sizeof(v));
		if (i)
			strbuf_addc(out, ',');
		if (point->known && v - v == 0)
			number_add(out, v);
		else
			strbuf_adds(out, "null");
	}
	strbuf_addc(out, ']');
}

/* What a damaged file could have in it must not end the text. */
static void put_word(struct strbuf *out, const char *name, const char *text)
{
	char word[128];

	snprintf(word, sizeof(word), "%s", text);
	utf8_sanitize(word);
	for (char *c = word; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = '?';
	if (word[0])
		strbuf_addf(out, "\"%s\":\"%s\",", name, word);
	else
		strbuf_addf(out, "\"%s\":null,", name);
}

/* A GPU or MIG instance, or a disk or interface of the machine; of the machine itself none. */
static void put_subject(struct strbuf *out, const struct history_series *series)
{
	bool is_gpu = metric_list_of(series->metric) == METRICS_OF_GPU;

	if (is_gpu)
		strbuf_addf(out, "{\"gpu\":%u,", series->index);
	else
		strbuf_adds(out, "{\"gpu\":null,");
	put_word(out, "uuid", series->uuid);
	if (is_gpu && series->gi != UINT32_MAX)
		strbuf_addf(out, "\"instance\":\"%u/%u\",", series->gi & 0xffff, series->ci & 0xffff);
	else
		strbuf_adds(out, "\"instance\":null,");
	put_word(out, "device", series->device);
}

static void put_history_series(struct strbuf *out, const struct history *history,
			       const struct history_series *series)
{
	const struct metric *m = metric_of_code(series->metric);
	char name[METRIC_NAME];

	metric_name(m, name);
	put_subject(out, series);
	strbuf_addf(out, "\"metric\":\"%s\",\"index\":", name);
	if (m->index)
		strbuf_addf(out, "%u", series->slot);
	else
		strbuf_adds(out, "null");
	strbuf_addf(out, ",\"type\":\"%s\",\"estimated\":%s",
		    m->kind == METRIC_GAUGE || m->kind == METRIC_PEAK ? "gauge" : "counter",
		    series->estimated ? "true" : "false");
	put_values(out, "values", history, series, offsetof(struct history_point, last));
	if (m->kind == METRIC_GAUGE) {
		put_values(out, "min", history, series, offsetof(struct history_point, min));
		put_values(out, "max", history, series, offsetof(struct history_point, max));
	}
	strbuf_addc(out, '}');
}

static void put_history(struct strbuf *out, const struct history *history)
{
	strbuf_adds(out, "{\"schema\":\"gpusonde/history/v1\",");
	put_time(out, "first", history->first_ns);
	strbuf_adds(out, "\"first_unix_seconds\":");
	number_add(out, (double)history->first_ns / NSEC_PER_SEC);
	strbuf_adds(out, ",\"step_seconds\":");
	number_add(out, (double)history->step_ns / NSEC_PER_SEC);
	strbuf_adds(out, ",\"recorded_step_seconds\":");
	number_add(out, (double)store_tiers[history->tier].period_ns / NSEC_PER_SEC);
	strbuf_addf(out, ",\"points\":%u,", history->points);
	put_time(out, "recorded_first", history->recorded_first_ns);
	put_time(out, "recorded_last", history->recorded_last_ns);
	strbuf_adds(out, "\"series\":[");
	for (uint32_t i = 0; i < history->series_n; i++) {
		if (i)
			strbuf_addc(out, ',');
		put_history_series(out, history, &history->series[i]);
	}
	strbuf_adds(out, "]}\n");
}

/* ---- answers ---- */

static int answer_history(struct store_reader *reader, const int64_t n[static HTTP_NUMBERS], int64_t now_ns,
			  struct answer *answer)
{
	struct history_query query = {
		.gpu = n[HISTORY_GPU] >= 0 && n[HISTORY_GPU] <= UINT16_MAX ? (int32_t)n[HISTORY_GPU] :
									     HISTORY_GPU_ALL,
		.since_ns = history_when(n[HISTORY_SINCE], now_ns),
		.until_ns = history_when(n[HISTORY_UNTIL], now_ns),
		.step_ns = n[HISTORY_STEP],
		.metrics_n = (uint32_t)MIN((uint64_t)n[HISTORY_METRICS], (uint64_t)HISTORY_METRICS_MAX),
	};
	struct history history;
	int r;

	for (uint32_t i = 0; i < query.metrics_n; i++)
		query.metrics[i] = (uint32_t)MIN((uint64_t)n[HISTORY_METRIC + i], (uint64_t)UINT32_MAX);
	r = history_read(reader, &query, &history);
	if (r < 0)
		return r;
	put_history(&answer->body, &history);
	history_done(&history);
	return 0;
}

static int answer_moment(struct store_reader *reader, int64_t at, int64_t now_ns, struct answer *answer)
{
	struct snapshot *snapshot;
	int64_t when_ns = MIN(history_when(at, now_ns), INT64_MAX - NSEC_PER_MSEC);
	/* Pages tell times to the millisecond: this is the whole one. */
	int r = store_moment(reader, when_ns + NSEC_PER_MSEC - 1, &snapshot);

	if (r < 0)
		return r;
	r = view_json_text(snapshot, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &answer->body);
	restored_free(snapshot);
	return r;
}

int history_answer(struct store_reader *reader, const struct question *question, bool moment,
		   struct answer *answer)
{
	int64_t now_ns = question->now_ns ? question->now_ns : clock_real_ns();
	int r = moment ? answer_moment(reader, question->numbers[HISTORY_SINCE], now_ns, answer) :
			 answer_history(reader, question->numbers, now_ns, answer);

	if (r == 0 && answer->body.failed)
		r = -E2BIG;
	if (r == 0)
		answer->content_type = "application/json";
	else
		history_refuse(answer, r, store_reader_error(reader));
	return r;
}
