// SPDX-License-Identifier: Apache-2.0
#include "view/traced.h"

/* For a process on no known device. */
static const struct traced_device nowhere;

const struct traced_device *traced_device_of(const struct snapshot *s, const struct process *process)
{
	return s->trace && process->traced != TRACED_NONE ? &s->trace->devices[process->traced] : NULL;
}

const struct workload_name *traced_workload(const struct snapshot *s, const struct traced_process *process)
{
	uint16_t index;

	if (!s->traced_workloads)
		return NULL; /* a decoded document has them not */
	index = s->traced_workloads[process - s->trace->processes];
	return index < s->workload_names_n ? &s->workload_names[index] : NULL;
}

bool traced_apart_next(struct traced_apart *apart)
{
	const struct snapshot *s = apart->s;
	const struct trace_view *view = s->trace;

	for (; view && view->enabled && apart->process_i < view->processes_n;
	     apart->process_i++, apart->device_i = 0) {
		const struct traced_process *process = &view->processes[apart->process_i];

		if (process->exited)
			continue;
		apart->process = process;
		if (process->devices_n == 0 && apart->device_i == 0) {
			apart->device_i++;
			apart->device = &nowhere;
			apart->entity = NULL;
			return true;
		}
		while (apart->device_i < process->devices_n) {
			uint32_t i = process->devices_first + apart->device_i++;
			uint16_t entity = s->traced_places[i].entity;

			apart->device = &view->devices[i];
			apart->entity = entity == READING_NONE ? NULL : &s->entities[entity];
			if (!s->traced_places[i].listed)
				return true;
		}
	}
	return false;
}
