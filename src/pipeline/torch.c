// SPDX-License-Identifier: Apache-2.0
/* Figures of PyTorch's allocators and graphs for a view: processes and operators get their names. */
#include "pipeline/private.h"
#include "torch/name.h"

_Static_assert((int)TORCH_LABEL == (int)TORCH_NAME_MAX, "model/torch.h and torch/name.h must agree");

void pipeline_fill_torch(const struct pipeline *pipeline, struct trace_view *view)
{
	for (uint32_t i = 0; i < view->processes_n; i++)
		torch_call_process(pipeline->torch, view->processes[i].id.pid, view->processes[i].comm);
	view->torch = torch_window(pipeline->torch);
	for (uint32_t i = 0; view->torch && i < view->torch->memories_n; i++) {
		struct torch_memory *memory = &view->torch->memories[i];
		const struct probe *probe =
			memory->oom_call < probe_calls() ? probe_at(memory->oom_call) : NULL;

		if (memory->oom_call && probe && probe->pattern)
			torch_name(probe->symbol, memory->oom_operator);
	}
}
