// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/nccl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "view/nccl.h"

struct trace_nccl {
	struct event_sink sink;
	struct nccl *nccl;
};

static int on_event(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct trace_nccl *nccl = userdata;

	nccl_event(nccl->nccl, event, size);
	return 0;
}

static void on_process_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_nccl *nccl = userdata;

	nccl_process_over(nccl->nccl, tgid, incarnation);
}

int trace_nccl_new(struct trace_nccl **ret_nccl)
{
	struct trace_nccl *nccl = calloc(1, sizeof(*nccl));

	if (!nccl)
		return -ENOMEM;
	nccl->nccl = nccl_new(NCCL_PROCESSES_MAX, true);
	if (!nccl->nccl) {
		free(nccl);
		return -ENOMEM;
	}
	nccl->sink = (struct event_sink){ .sink = { .name = "nccl", .userdata = nccl },
					  .event = on_event,
					  .process_over = on_process_over };
	*ret_nccl = nccl;
	return 0;
}

void trace_nccl_free(struct trace_nccl *nccl)
{
	if (nccl)
		nccl_free(nccl->nccl);
	free(nccl);
}

struct event_sink *trace_nccl_sink(struct trace_nccl *nccl)
{
	return &nccl->sink;
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

int trace_nccl_table(struct trace_nccl *nccl, struct trace_engine *engine,
		     const struct table_options *options, struct strbuf *out)
{
	_cleanup_free_ struct nccl_view *view = view_of(nccl, engine);

	return view ? table_nccl(view, options, out) : -ENOMEM;
}

int trace_nccl_json(struct trace_nccl *nccl, struct trace_engine *engine, struct strbuf *out)
{
	_cleanup_free_ struct nccl_view *view = view_of(nccl, engine);

	return view ? json_nccl(view, out) : -ENOMEM;
}
