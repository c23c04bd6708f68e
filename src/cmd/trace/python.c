// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/text.h"
#include "pipeline/interpreters.h"
#include "view/python.h"

struct trace_python_figures {
	struct event_sink sink;
	struct python_figures *figures;
	struct interpreters interpreters;
};

static int python_take(const struct trace_header *event, uint32_t size, void *userdata)
{
	struct trace_python_figures *python = userdata;

	python_figures_event(python->figures, event, size);
	return 0;
}

static void python_lost(_unused_ uint64_t events, void *userdata)
{
	struct trace_python_figures *python = userdata;

	python_figures_lost(python->figures, 0);
}

static void python_incomplete(uint32_t tgid, _unused_ uint64_t incarnation, unsigned bits, void *userdata)
{
	struct trace_python_figures *python = userdata;

	if (bits & (TRACE_INCOMPLETE_LOST | TRACE_INCOMPLETE_QUIET | TRACE_INCOMPLETE_GIVEN_UP |
		    TRACE_INCOMPLETE_PYTHON))
		python_figures_lost(python->figures, tgid);
}

void trace_python_mapped(struct trace_python_figures *python, struct trace_engine *engine, pid_t pid)
{
	interpreters_mapped(&python->interpreters, engine, pid);
}

void trace_python_again(struct trace_python_figures *python, struct trace_engine *engine)
{
	interpreters_again(&python->interpreters, engine);
}

static void python_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_python_figures *python = userdata;

	interpreters_over(&python->interpreters, (pid_t)tgid);
	python_figures_process_over(python->figures, tgid, incarnation);
}

int trace_python_new(struct trace_python_figures **ret_python)
{
	struct trace_python_figures *python = calloc(1, sizeof(*python));

	if (!python)
		return -ENOMEM;
	python->figures = python_figures_new(PYTHON_PROCESSES_MAX, true);
	if (!python->figures) {
		free(python);
		return -ENOMEM;
	}
	python->interpreters.figures = python->figures;
	python->sink = (struct event_sink){ .sink = { .name = "python", .userdata = python },
					    .event = python_take,
					    .lost = python_lost,
					    .incomplete = python_incomplete,
					    .process_over = python_over };
	*ret_python = python;
	return 0;
}

void trace_python_free(struct trace_python_figures *python)
{
	if (python)
		python_figures_free(python->figures);
	free(python);
}

struct event_sink *trace_python_sink(struct trace_python_figures *python)
{
	return &python->sink;
}

static struct python_view *view_of(struct trace_python_figures *python, struct trace_engine *engine)
{
	struct python_view *view = python_figures_window(python->figures);

	for (uint32_t i = 0; view && i < view->processes_n; i++) {
		struct python_process *p = &view->processes[i];
		const char *comm = trace_engine_comm(engine, p->pid);

		snprintf(p->comm, sizeof(p->comm), "%s", comm ? comm : "");
		utf8_sanitize(p->comm);
	}
	return view;
}

int trace_python_table(struct trace_python_figures *python, struct trace_engine *engine,
		       const struct table_options *options, struct strbuf *out)
{
	_cleanup_free_ struct python_view *view = view_of(python, engine);

	return view ? table_python(view, options, out) : -ENOMEM;
}

int trace_python_json(struct trace_python_figures *python, struct trace_engine *engine, struct strbuf *out)
{
	_cleanup_free_ struct python_view *view = view_of(python, engine);

	return view ? json_python(view, out) : -ENOMEM;
}
