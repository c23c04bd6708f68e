// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/blas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/text.h"
#include "view/blas.h"

enum { SHAPES_MAX = 4096 }; /* of a process */

struct trace_blas {
	struct event_sink sink;
	struct blas *blas;
};

static int blas_take(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct trace_blas *blas = userdata;

	blas_event(blas->blas, event, size);
	return 0;
}

static void forget_modes(_unused_ uint64_t events, void *userdata)
{
	struct trace_blas *blas = userdata;

	blas_lost(blas->blas);
}

static void on_process_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_blas *blas = userdata;

	blas_process_over(blas->blas, tgid, incarnation);
}

int trace_blas_new(struct trace_blas **ret_blas)
{
	struct trace_blas *blas = calloc(1, sizeof(*blas));

	if (!blas)
		return -ENOMEM;
	blas->blas = blas_new(BLAS_PROCESSES_MAX, SHAPES_MAX, true);
	if (!blas->blas) {
		free(blas);
		return -ENOMEM;
	}
	blas->sink = (struct event_sink){ .sink = { .name = "blas", .userdata = blas },
					  .event = blas_take,
					  .lost = forget_modes,
					  .process_over = on_process_over };
	*ret_blas = blas;
	return 0;
}

void trace_blas_free(struct trace_blas *blas)
{
	if (blas)
		blas_free(blas->blas);
	free(blas);
}

struct event_sink *trace_blas_sink(struct trace_blas *blas)
{
	return &blas->sink;
}

static struct blas_view *view_of(struct trace_blas *blas, struct trace_engine *engine)
{
	struct blas_view *view = blas_window(blas->blas);

	for (uint32_t i = 0; view && i < view->processes_n; i++) {
		struct blas_process *p = &view->processes[i];
		const char *comm = trace_engine_comm(engine, p->pid);

		snprintf(p->comm, sizeof(p->comm), "%s", comm ? comm : "");
		utf8_sanitize(p->comm);
	}
	return view;
}

int trace_blas_table(struct trace_blas *blas, struct trace_engine *engine,
		     const struct table_options *options, struct strbuf *out)
{
	_cleanup_free_ struct blas_view *view = view_of(blas, engine);

	return view ? table_blas(view, options, out) : -ENOMEM;
}

int trace_blas_json(struct trace_blas *blas, struct trace_engine *engine, struct strbuf *out)
{
	_cleanup_free_ struct blas_view *view = view_of(blas, engine);

	return view ? json_blas(view, out) : -ENOMEM;
}

const struct blas *trace_blas_of(const struct trace_blas *blas)
{
	return blas ? blas->blas : NULL;
}
