// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/nccl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/row_list.h"
#include "base/text.h"
#include "cmd/trace/plugin_place.h"
#include "cmd/trace/request.h"
#include "nccl_socket/receive.h"
#include "trace/engine.h"
#include "view/nccl.h"

struct trace_nccl {
	struct event_sink sink;
	struct nccl *nccl;
	struct plugin_place place;
	struct nccl_receiver *receiver; /* NULL: the plugin is not listened for */
	struct row_list rows; /* of connections that have ended */
};

static int trace_nccl_listen(struct trace_nccl *nccl, sd_event *event)
{
	nccl->receiver = nccl_receiver_new();
	return nccl->receiver ? plugin_place_open(&nccl->place, event, nccl_receiver_clients(nccl->receiver),
						  NCCL_SOCKET_VARIABLE) :
				-ENOMEM;
}

void trace_nccl_collect(struct trace_nccl *nccl)
{
	plugin_place_collect(&nccl->place);
}

static int on_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct trace_nccl *nccl = userdata;

	nccl_event(nccl->nccl, event, size);
	return 0;
}

static void nccl_events_lost(uint64_t events, void *userdata)
{
	(void)events;
	nccl_lost(((struct trace_nccl *)userdata)->nccl, 0);
}

static void nccl_events_incomplete(uint32_t tgid, uint64_t incarnation, unsigned bits, void *userdata)
{
	(void)incarnation;
	if (bits & (TRACE_INCOMPLETE_LOST | TRACE_INCOMPLETE_QUIET | TRACE_INCOMPLETE_GIVEN_UP))
		nccl_lost(((struct trace_nccl *)userdata)->nccl, tgid);
}

static void on_process_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_nccl *nccl = userdata;

	nccl_process_over(nccl->nccl, tgid, incarnation);
}

int trace_nccl_new(sd_event *event, bool listens, struct trace_nccl **ret_nccl)
{
	struct trace_nccl *nccl = calloc(1, sizeof(*nccl));
	int r;

	if (!nccl)
		return -ENOMEM;
	nccl->place.listener = -1;
	nccl->rows = (struct row_list){ .size = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };
	nccl->nccl = nccl_new(NCCL_PROCESSES_MAX, true);
	r = nccl->nccl ? 0 : -ENOMEM;
	if (r == 0 && listens)
		r = trace_nccl_listen(nccl, event);
	if (r < 0) {
		fprintf(stderr, "gpusonde %s: NCCL cannot be shown: %s\n", trace_command_name(),
			strerror(-r));
		trace_nccl_free(nccl);
		return r;
	}
	nccl->sink = (struct event_sink){ .sink = { .name = "nccl", .userdata = nccl },
					  .event = on_event,
					  .lost = nccl_events_lost,
					  .incomplete = nccl_events_incomplete,
					  .process_over = on_process_over };
	*ret_nccl = nccl;
	return 0;
}

void trace_nccl_free(struct trace_nccl *nccl)
{
	if (!nccl)
		return;
	nccl_free(nccl->nccl);
	nccl_receiver_free(nccl->receiver);
	row_list_done(&nccl->rows);
	plugin_place_close(&nccl->place);
	free(nccl);
}

struct event_sink *trace_nccl_sink(struct trace_nccl *nccl)
{
	return &nccl->sink;
}

static void row_add(struct row_list *rows, const struct nccl_measured *row)
{
	struct nccl_measured *copy = row_list_add(rows);

	if (copy)
		*copy = *row;
}

static struct nccl_view *view_of(struct trace_nccl *nccl, struct trace_engine *engine)
{
	struct nccl_view *view = nccl_window(nccl->nccl, (uint64_t)clock_mono_ns());

	for (uint32_t i = 0; view && i < view->processes_n; i++) {
		struct nccl_process *p = &view->processes[i];
		const char *comm = trace_engine_comm(engine, p->pid);

		snprintf(p->comm, sizeof(p->comm), "%s", comm ? comm : "");
		utf8_sanitize(p->comm);
	}
	return view;
}

/* Those that have ended are kept. NULL: out of memory. */
static struct nccl_measurements *measured_of(struct trace_nccl *nccl)
{
	struct row_list rows = { .size = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };
	struct nccl_measurements *measured;
	const struct nccl_measured *now;
	uint32_t kept = nccl->rows.n;

	trace_nccl_collect(nccl);
	for (uint32_t i = 0; i < kept; i++)
		row_add(&rows, &((const struct nccl_measured *)nccl->rows.list)[i]);
	if (nccl->receiver)
		nccl_receiver_rows(nccl->receiver, &rows);
	now = rows.list;
	for (uint32_t i = kept; i < rows.n; i++)
		if (now[i].gone)
			row_add(&nccl->rows, &now[i]);
	measured = nccl_measurements_new(now, rows.n);
	if (measured)
		measured->left_out = rows.dropped + nccl->rows.dropped;
	row_list_done(&rows);
	return measured;
}

int trace_nccl_table(struct trace_nccl *nccl, struct trace_engine *engine,
		     const struct table_options *options, struct strbuf *out)
{
	_cleanup_free_ struct nccl_view *view = view_of(nccl, engine);
	struct nccl_measurements *measured = measured_of(nccl);
	int r = view && measured ? table_nccl(view, options, out) : -ENOMEM;

	if (r == 0)
		r = table_measured(measured, options, out);
	nccl_measurements_unref(measured);
	return r;
}

int trace_nccl_json(struct trace_nccl *nccl, struct trace_engine *engine, struct strbuf *out)
{
	_cleanup_free_ struct nccl_view *view = view_of(nccl, engine);
	struct nccl_measurements *measured = measured_of(nccl);
	int r = view && measured ? json_nccl(view, out) : -ENOMEM;

	if (r == 0) {
		strbuf_adds(out, ",\"nccl_measured\":");
		r = json_measured(measured, out);
	}
	nccl_measurements_unref(measured);
	return r;
}
