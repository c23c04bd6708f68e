// SPDX-License-Identifier: Apache-2.0
/* Figures of PyTorch's allocators and graphs for a view: processes and operators get their names. */
#include <stdlib.h>

#include "pipeline/private.h"
#include "torch/name.h"

_Static_assert((int)TORCH_LABEL == (int)TORCH_NAME_MAX, "model/torch.h and torch/name.h must agree");

/* ---- NVML's memory of processes ---- */

static int memory_by_pid(const void *a, const void *b)
{
	const struct process_memory *x = a, *y = b;

	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

void pipeline_torch_node(struct pipeline *pipeline, const struct snapshot *snapshot)
{
	uint32_t n = snapshot->fresh ? snapshot->processes_n : 0;
	struct process_memory *memory;

	pipeline->nvml_memory_n = 0;
	memory = n > 0 ? reallocarray(pipeline->nvml_memory, n, sizeof(*memory)) : NULL;
	if (!memory)
		return;
	pipeline->nvml_memory = memory;
	pipeline->nvml_memory_n = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct process *p = &snapshot->processes[i];

		memory[i] = (struct process_memory){ p->id, presence_is(p->p[PROCESS_MEMORY]),
						  p->v[PROCESS_MEMORY] };
	}
	qsort(memory, n, sizeof(*memory), memory_by_pid);
}

/* Nothing if it is not certain of which process a figure is. */
static void set_nvml(const struct pipeline *pipeline, struct process_id id, struct torch_process *process)
{
	const struct process_memory *memory = pipeline->nvml_memory;
	uint32_t i = LOWER_BOUND(pipeline->nvml_memory_n, middle, memory[middle].id.pid < id.pid);
	double bytes = 0;
	uint32_t gpus = 0;

	for (; i < pipeline->nvml_memory_n && memory[i].id.pid == id.pid; i++, gpus++) {
		if (!memory[i].known || !process_id_equal(memory[i].id, id))
			return;
		bytes += memory[i].bytes;
	}
	process->nvml_bytes = (uint64_t)bytes;
	process->nvml_gpus = gpus;
}

static void fill_nvml(const struct pipeline *pipeline, const struct trace_view *view)
{
	for (uint32_t i = 0; i < view->torch->processes_n; i++) {
		struct torch_process *process = &view->torch->processes[i];
		uint32_t at = trace_view_find(view, view->processes_n, process->pid);

		/* Of those with one PID, the one that runs comes last. */
		while (at + 1 < view->processes_n && view->processes[at + 1].id.pid == process->pid)
			at++;
		if (!process->exited && at < view->processes_n &&
		    view->processes[at].id.pid == process->pid && !view->processes[at].exited)
			set_nvml(pipeline, view->processes[at].id, process);
	}
}

/* ---- figures ---- */

void pipeline_fill_torch(const struct pipeline *pipeline, struct trace_view *view)
{
	for (uint32_t i = 0; i < view->processes_n; i++)
		torch_call_process(pipeline->torch, view->processes[i].id.pid, view->processes[i].comm);
	view->torch = torch_window(pipeline->torch);
	if (view->torch)
		fill_nvml(pipeline, view);
	for (uint32_t i = 0; view->torch && i < view->torch->memories_n; i++) {
		struct torch_memory *memory = &view->torch->memories[i];
		const struct probe *probe =
			memory->oom_call < probe_calls() ? probe_at(memory->oom_call) : NULL;

		if (memory->oom_call && probe && probe->pattern)
			torch_name(probe->symbol, memory->oom_operator);
	}
}
