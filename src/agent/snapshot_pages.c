// SPDX-License-Identifier: Apache-2.0
#include "agent/snapshot_pages.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "view/findings.h"
#include "view/stacks/stacks.h"
#include "view/view.h"

static const char plain_text[] = "text/plain; charset=utf-8";
static const char html_text[] = "text/html; charset=utf-8";
static const char json_text[] = "application/json";

struct shown {
	const struct snapshot *snapshot;
	const struct snapshot_page_style *style;
	const struct http_request *request;
	struct http_reply *reply;
};

static int show_metrics(const struct shown *shown)
{
	enum exposition format = (enum exposition)(shown->request->variant % EXPOSITIONS);

	if (shown->request->variant == METRICS_PROTOBUF) {
		shown->reply->content_type = METRICS_PROTOBUF_TYPE;
		return view_metrics_protobuf(shown->snapshot, shown->style->families,
					     !shown->style->without_native, &shown->reply->body);
	}
	shown->reply->content_type = exposition_content_type(format);
	return view_prometheus(shown->snapshot, format, shown->style->families, &shown->reply->body);
}

static int show_dcgm(const struct shown *shown)
{
	enum exposition format;
	struct dcgm_style style = *shown->style->dcgm;

	if (shown->request->variant < 0)
		return dcgm_refuse(shown->reply);
	style.names = dcgm_names(shown->request->variant);
	format = dcgm_format(shown->request->variant);
	shown->reply->content_type = exposition_content_type(format);
	return view_dcgm(shown->snapshot, &style, format, &shown->reply->body);
}

#define SHOW_JSON(name_, sections_)                                                     \
	static int name_(const struct shown *shown)                                     \
	{                                                                               \
		shown->reply->content_type = json_text;                                 \
		return view_json_text(shown->snapshot, sections_, &shown->reply->body); \
	}
SHOW_JSON(show_gpus, JSON_GPUS)
SHOW_JSON(show_processes, JSON_PROCESSES)
SHOW_JSON(show_node, JSON_NODE)
SHOW_JSON(show_trace, JSON_TRACE)
SHOW_JSON(show_kernels, JSON_KERNELS)
SHOW_JSON(show_events, JSON_EVENTS)

static int show_snapshot(const struct shown *shown)
{
	unsigned brief = shown->request->variant > 0 ? (unsigned)JSON_BRIEF : 0;

	if (shown->request->variant < 0)
		return snapshot_refuse(shown->reply);
	shown->reply->content_type = json_text;
	return view_json_text(shown->snapshot, JSON_GPUS | JSON_PROCESSES | JSON_NODE | brief,
			      &shown->reply->body);
}

static int show_plain(const struct shown *shown)
{
	shown->reply->content_type = html_text;
	return view_html(shown->snapshot, shown->style->replay, shown->request->variant == PLAIN_RELOAD,
			 &shown->reply->body);
}

static int render_stacks(const struct stack_page *page, int format, struct http_reply *reply)
{
	switch (format) {
	case STACKS_FOLDED:
		reply->content_type = plain_text;
		view_stacks_remarks(page, &reply->body);
		for (size_t row = 0; row < page->rows_n;)
			row = view_stacks_folded(page, STACK_LAUNCHES, row, SIZE_MAX, &reply->body);
		return 0;
	case STACKS_PPROF:
		reply->content_type = "application/octet-stream";
		return view_stacks_pprof(page, &reply->body);
	case STACKS_HTML:
		reply->content_type = html_text;
		return view_stacks_html(page, &reply->body);
	default:
		reply->content_type = json_text;
		return view_stacks_json(page, &reply->body);
	}
}

static void no_stacks(const struct trace_view *view, struct http_reply *reply)
{
	if (view && view->stacks_error < 0) {
		reply->status = 503;
		strbuf_addf(&reply->body, "503 this second's stacks could not be put together: %s\n",
			    strerror(-view->stacks_error));
		return;
	}
	reply->status = 404;
	strbuf_adds(&reply->body, "404 no stacks are recorded: trace.stacks is off, or tracing is\n");
}

static int show_stacks(const struct shown *shown)
{
	const struct trace_view *view = shown->snapshot->trace;

	if (shown->request->variant < 0)
		return stacks_refuse(shown->reply);
	if (view && view->stacks)
		return render_stacks(&view->stacks->page, shown->request->variant, shown->reply);
	no_stacks(view, shown->reply);
	return 0;
}

static int show_findings(const struct shown *shown)
{
	const struct trace_view *view = shown->snapshot->trace;

	if (view && view->findings) {
		shown->reply->content_type = json_text;
		return json_findings(view->findings, &shown->reply->body);
	}
	shown->reply->status = 404;
	strbuf_adds(&shown->reply->body, "404 nothing is analysed: trace.analysis is off, or tracing is\n");
	return 0;
}

static int show_index(const struct shown *shown)
{
	static const struct {
		const char *path, *help;
	} pages[] = {
#define PAGE(path_, methods_, right_, variant_, handle_, help_) { path_, help_ },
#include "web/routes.def"
	};

	strbuf_addf(&shown->reply->body, "gpusonde %s%s\n\n", GPUSONDE_VERSION,
		    shown->snapshot->simulated ? " (simulated GPUs)" : "");
	if (shown->style->replay)
		strbuf_addf(&shown->reply->body, "%s\n\n", shown->style->replay);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		strbuf_addf(&shown->reply->body, "%-20s %s\n", pages[i].path, pages[i].help);
	shown->reply->content_type = plain_text;
	return 0;
}

int snapshot_page(enum web_page page, const struct snapshot *snapshot,
		  const struct snapshot_page_style *style, const struct http_request *request,
		  struct http_reply *reply)
{
	static int (*const functions[WEB_PAGES])(const struct shown *shown) = {
#define SNAPSHOT_PAGE(handle_, show_) [PAGE_##handle_] = show_,
#include "agent/snapshot_pages.def"
	};
	const struct shown shown = { snapshot, style, request, reply };

	return functions[page] ? functions[page](&shown) : -ENOENT;
}
