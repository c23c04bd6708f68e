// SPDX-License-Identifier: Apache-2.0
/* Figures of cuBLAS for a view, beside what the boards can do. */
#include <string.h>

#include "pipeline/private.h"

static const struct blas_peak *peak_of(const struct pipeline *pipeline, const char *uuid)
{
	for (uint32_t i = 0; i < pipeline->devices_n; i++)
		if (strcmp(pipeline->devices[i].uuid, uuid) == 0)
			return pipeline->peaks[i];
	return NULL;
}

/*
 * Of a process on one whole GPU that is known: what several devices share in its FLOP is not known. Below 0:
 * not known.
 */
static double peak_share(const struct pipeline *pipeline, const struct trace_view *view, uint32_t process,
			 const struct blas_process *blas)
{
	const struct traced_device *only = NULL;
	const struct blas_peak *peak;
	double seconds;

	if (blas->unsized > 0)
		return -1; /* there was more */
	for (uint32_t i = 0; i < view->devices_n; i++) {
		if (view->devices[i].process != process)
			continue;
		if (only)
			return -1;
		only = &view->devices[i];
	}
	peak = only ? peak_of(pipeline, only->uuid) : NULL;
	if (!peak || !presence_is(only->p[TRACED_BUSY_ESTIMATED]) || only->v[TRACED_BUSY_ESTIMATED] <= 0)
		return -1;
	seconds = blas_peak_seconds(peak, blas->by_precision);
	return seconds < 0 ? -1 : seconds / only->v[TRACED_BUSY_ESTIMATED];
}

void pipeline_fill_blas(const struct pipeline *pipeline, struct trace_view *view)
{
	view->blas = blas_window(pipeline->blas);
	for (uint32_t i = 0; view->blas && i < view->blas->processes_n; i++) {
		struct blas_process *p = &view->blas->processes[i];
		uint32_t at = trace_view_find(view, view->processes_n, p->pid);

		while (at < view->processes_n && view->processes[at].id.pid == p->pid &&
		       view->processes[at].exited != p->exited)
			at++;
		if (at >= view->processes_n || view->processes[at].id.pid != p->pid)
			continue;
		memcpy(p->comm, view->processes[at].comm, sizeof(p->comm));
		p->peak_share = peak_share(pipeline, view, at, p);
	}
}
