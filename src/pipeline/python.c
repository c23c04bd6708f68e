// SPDX-License-Identifier: Apache-2.0
/* Figures of CPython for a view, and the interpreters of the processes. */
#include <string.h>

#include "pipeline/private.h"

static void python_is_found(pid_t pid, int r, uint32_t version, const struct trace_python *python,
			    void *userdata)
{
	struct pipeline *pipeline = userdata;

	if (!pipeline->engine)
		return;
	if (r == 0)
		r = trace_engine_set_python(pipeline->engine, pid, python);
	if (pipeline->python)
		interpreters_found(&pipeline->interpreters, pid, r, version);
	if (pipeline->stacks)
		stack_sums_found(pipeline->stacks, pid, r, version);
}

int pipeline_finder(struct pipeline *pipeline, sd_event *event)
{
	return python_finder_new(event, NULL, python_is_found, pipeline, &pipeline->finder);
}

void pipeline_set_engine(struct pipeline *pipeline, struct trace_engine *engine)
{
	pipeline->engine = engine;
	if (pipeline->stacks)
		stack_sums_set_engine(pipeline->stacks, engine);
}

void pipeline_mapped(struct pipeline *pipeline, struct trace_engine *engine, pid_t pid)
{
	pipeline->engine = engine;
	if (pipeline->python)
		interpreters_mapped(&pipeline->interpreters, engine, pid);
}

void pipeline_remapped(struct pipeline *pipeline, pid_t pid)
{
	if (pipeline->stacks)
		stack_sums_remapped(pipeline->stacks, pid);
}

void pipeline_python_event(struct pipeline *pipeline, const struct trace_header *event, uint32_t size)
{
	if (event->type == TRACE_EVENT_EXEC)
		interpreters_exec(&pipeline->interpreters, (pid_t)event->tgid, event->time_ns);
	python_figures_event(pipeline->python, event, size);
}

/* Without memory for them the figures are absent. */
void pipeline_fill_python(struct pipeline *pipeline, struct trace_engine *engine, struct trace_view *view)
{
	interpreters_again(&pipeline->interpreters, engine);
	view->python = python_figures_window(pipeline->python);
	for (uint32_t i = 0; view->python && i < view->python->processes_n; i++) {
		struct python_process *p = &view->python->processes[i];
		uint32_t at = trace_view_find(view, view->processes_n, p->pid);

		if (at < view->processes_n && view->processes[at].id.pid == p->pid)
			memcpy(p->comm, view->processes[at].comm, sizeof(p->comm));
	}
}
