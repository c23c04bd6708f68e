// SPDX-License-Identifier: Apache-2.0
/* Traced calls by name, over all processes: as many series as there are probes, whatever the node runs. */
#include "view/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include "view/number.h"

#define PREFIX "gpusonde_"

struct call_page {
	struct exposition_page *p;
	const struct trace_view *view;
	struct strbuf tail, last; /* label texts of the sample at hand */
};

static void begin(struct call_page *cp, const char *name, enum family_type type, enum metric_unit unit,
		  const char *help)
{
	page_family(&cp->p->page, &(struct family){ PREFIX, name, help, NULL, type, unit });
}

/* One that has the name of the call before it would be in the page twice. */
static const char *api_labels(struct call_page *cp, uint32_t i)
{
	const struct traced_call *calls = cp->view->all_calls;

	if (i > 0 && STRV_EQ(calls[i - 1].api, calls[i].api))
		return NULL;
	strbuf_reset(&cp->tail);
	label_add(&cp->tail, "api", calls[i].api);
	return cp->tail.data;
}

static void add_errors(struct call_page *cp, const char *api, const struct traced_call *call)
{
	char text[16];

	for (uint32_t i = 0; i < call->errors_n; i++) {
		const struct traced_error *error = &cp->view->errors[call->errors_first + i];

		snprintf(text, sizeof(text), "%d", error->code);
		strbuf_reset(&cp->last);
		label_add(&cp->last, "code", error->code == INT32_MIN ? "other" : text);
		page_sample(&cp->p->page, api, cp->last.data, (double)error->count);
	}
}

/*
 * Of the calls whose end was seen. The sums of buckets may have been read while they were counted: still a
 * histogram.
 */
static void add_histogram(struct call_page *cp, const char *api, const struct traced_call *call)
{
	struct page *page = &cp->p->page;
	uint64_t below = 0;

	page_suffix(page, "_bucket");
	for (unsigned i = 0; i <= TRACED_LE; i++) {
		below = i < TRACED_LE ? MAX(below, MIN(call->le[i], call->timed)) : call->timed;
		strbuf_reset(&cp->last);
		strbuf_adds(&cp->last, "le=\"");
		number_add(&cp->last, i < TRACED_LE ? traced_le[i] : INFINITY);
		strbuf_addc(&cp->last, '"');
		page_sample(page, api, cp->last.data, (double)below);
	}
	page_suffix(page, "_sum");
	page_sample(page, api, "", call->seconds);
	page_suffix(page, "_count");
	page_sample(page, api, "", (double)call->timed);
}

static void add_calls(struct call_page *cp)
{
	const struct trace_view *view = cp->view;
	const char *labels;

	begin(cp, "cuda_calls_total", FAMILY_COUNTER, UNIT_NONE,
	      "Traced calls of all processes, failed ones included; nested calls count once, by the outer "
	      "name.");
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		if ((labels = api_labels(cp, i)))
			page_sample(&cp->p->page, "", labels, (double)view->all_calls[i].count);
	begin(cp, "cuda_call_errors_total", FAMILY_COUNTER, UNIT_NONE,
	      "Traced calls that failed, by CUresult or, of the runtime's calls, cudaError_t.");
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		if ((labels = api_labels(cp, i)))
			add_errors(cp, labels, &view->all_calls[i]);
	begin(cp, "cuda_call_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
	      "Bytes that successful traced calls were asked to allocate, copy or set.");
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		if (view->all_calls[i].bytes > 0 && (labels = api_labels(cp, i)))
			page_sample(&cp->p->page, "", labels, (double)view->all_calls[i].bytes);
	begin(cp, "cuda_call_duration_seconds", FAMILY_HISTOGRAM, UNIT_SECONDS,
	      "Time from entry to return of traced calls that were seen to return, not of the work that "
	      "they start.");
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		if (view->all_calls[i].timed > 0 && (labels = api_labels(cp, i)))
			add_histogram(cp, labels, &view->all_calls[i]);
}

int prometheus_calls(struct exposition_page *p)
{
	struct call_page cp = { .p = p, .view = p->s->trace };
	int r = 0;

	if (!cp.view)
		return 0;
	strbuf_init(&cp.tail, 0);
	strbuf_init(&cp.last, 0);
	add_calls(&cp);
	if (cp.tail.failed || cp.last.failed)
		r = -ENOMEM;
	strbuf_done(&cp.tail);
	strbuf_done(&cp.last);
	return r;
}
