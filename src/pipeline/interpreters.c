// SPDX-License-Identifier: Apache-2.0
#include "pipeline/interpreters.h"

#include <errno.h>

#include "python/find.h"

/* Whether it need not be looked for again: found, of a version that is not known, or not readable. */
static bool interpreter_set(struct trace_engine *engine, pid_t pid)
{
	struct trace_python python;
	uint32_t version = 0;
	int r = python_find("/proc", pid, &version, &python);

	if (r == 0)
		trace_engine_set_python(engine, pid, &python);
	return r != -ENOENT;
}

static void pending_drop(struct interpreters *interpreters, unsigned i)
{
	interpreters->pending[i] = interpreters->pending[--interpreters->pending_n];
}

void interpreters_mapped(struct interpreters *interpreters, struct trace_engine *engine, pid_t pid)
{
	interpreters_over(interpreters, pid);
	if (interpreter_set(engine, pid) || interpreters->pending_n == INTERPRETERS_PENDING)
		return;
	interpreters->pending[interpreters->pending_n].pid = pid;
	interpreters->pending[interpreters->pending_n++].tries = 0;
}

void interpreters_again(struct interpreters *interpreters, struct trace_engine *engine)
{
	for (unsigned i = interpreters->pending_n; i-- > 0;)
		if (interpreter_set(engine, interpreters->pending[i].pid) ||
		    ++interpreters->pending[i].tries == INTERPRETERS_TRIES)
			pending_drop(interpreters, i);
}

void interpreters_over(struct interpreters *interpreters, pid_t pid)
{
	for (unsigned i = interpreters->pending_n; i-- > 0;)
		if (interpreters->pending[i].pid == pid)
			pending_drop(interpreters, i);
}
