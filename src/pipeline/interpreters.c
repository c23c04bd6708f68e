// SPDX-License-Identifier: Apache-2.0
#include "pipeline/interpreters.h"

#include <errno.h>

#include "python/find.h"

static void pending_drop(struct interpreters *interpreters, unsigned i)
{
	interpreters->pending[i] = interpreters->pending[--interpreters->pending_n];
}

void interpreters_over(struct interpreters *interpreters, pid_t pid)
{
	for (unsigned i = interpreters->pending_n; i-- > 0;)
		if (interpreters->pending[i].pid == pid)
			pending_drop(interpreters, i);
}

/* It is looked for again only where there was none. -ESRCH: it has ended. */
void interpreters_found(struct interpreters *interpreters, pid_t pid, int r, uint32_t version)
{
	if (r == -ENOENT) {
		trace_engine_forget_python(interpreters->engine, pid);
		return;
	}
	if (r == 0)
		python_figures_known(interpreters->figures, (uint32_t)pid);
	else if (r != -ESRCH)
		python_figures_unknown(interpreters->figures, version);
	interpreters_over(interpreters, pid);
}

static void interpreter_look(struct interpreters *interpreters, pid_t pid)
{
	struct trace_python python;
	uint32_t version = 0;
	int r;

	if (interpreters->finder) {
		if (python_finder_ask(interpreters->finder, pid) == -ESRCH)
			interpreters_over(interpreters, pid);
		return;
	}
	r = python_find("/proc", pid, &version, &python);
	if (r == 0)
		r = trace_engine_set_python(interpreters->engine, pid, &python);
	interpreters_found(interpreters, pid, r, version);
}

void interpreters_mapped(struct interpreters *interpreters, struct trace_engine *engine, pid_t pid)
{
	interpreters->engine = engine;
	interpreters_over(interpreters, pid);
	if (interpreters->pending_n < INTERPRETERS_PENDING) {
		interpreters->pending[interpreters->pending_n].pid = pid;
		interpreters->pending[interpreters->pending_n++].until_ns =
			clock_mono_ns() + INTERPRETERS_PATIENCE_NS;
	}
	interpreter_look(interpreters, pid);
}

void interpreters_again(struct interpreters *interpreters, struct trace_engine *engine)
{
	int64_t now = clock_mono_ns();

	interpreters->engine = engine;
	for (unsigned i = interpreters->pending_n; i-- > 0;) {
		pid_t pid = interpreters->pending[i].pid;

		if (now > interpreters->pending[i].until_ns)
			pending_drop(interpreters, i);
		interpreter_look(interpreters, pid);
	}
}

void interpreters_exec(struct interpreters *interpreters, pid_t pid, uint64_t time_ns)
{
	if (interpreters->finder)
		python_finder_exec(interpreters->finder, pid, time_ns);
}
