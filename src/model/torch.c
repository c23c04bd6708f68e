// SPDX-License-Identifier: Apache-2.0
#include "model/torch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/saturated.h"

struct torch_view *torch_view_new(uint32_t processes, uint32_t memories, uint32_t counts, uint32_t operators)
{
	size_t head = sizeof(struct torch_view) + processes * sizeof(struct torch_process);
	struct torch_view *view = calloc(1, head + memories * sizeof(struct torch_memory) +
						    counts * sizeof(struct torch_count) +
						    operators * sizeof(struct traced_operator));

	if (!view)
		return NULL;
	view->processes = (struct torch_process *)(view + 1);
	view->memories = (struct torch_memory *)(view->processes + processes);
	view->counts = (struct torch_count *)(view->memories + memories);
	view->operators = (struct traced_operator *)(view->counts + counts);
	return view;
}

enum { DEVICE_TYPE_CUDA = 1 };

bool torch_beside(const struct torch_view *view, const struct torch_process *process, uint64_t *ret_reserved,
		  uint64_t *ret_beside)
{
	uint64_t reserved = 0;
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < process->memories_n; i++) {
		const struct torch_memory *memory = &view->memories[process->memories_first + i];

		if (memory->device.type != DEVICE_TYPE_CUDA || memory->reserved_peak == 0)
			continue;
		reserved = add_saturated(reserved, memory->reserved);
		gpus++;
	}
	if (gpus == 0 || gpus != process->nvml_gpus || process->nvml_bytes < reserved)
		return false;
	*ret_reserved = reserved;
	*ret_beside = process->nvml_bytes - reserved;
	return true;
}

void torch_device_text(struct torch_device device, char text[static TORCH_DEVICE_TEXT])
{
	/* enum DeviceType in torch/headeronly/core/DeviceType.h, before 2.8 in c10/core */
	static const char *const types[] = { "cpu", "cuda", "mkldnn",       "opengl", "opencl", "ideep",
					     "hip", "fpga", "maia",         "xla",    "vulkan", "metal",
					     "xpu", "mps",  "meta",         "hpu",    "ve",     "lazy",
					     "ipu", "mtia", "privateuseone" };
	char type[16];

	if (device.type >= 0 && (size_t)device.type < ARRAY_SIZE(types))
		snprintf(type, sizeof(type), "%s", types[device.type]);
	else
		snprintf(type, sizeof(type), "type%d", device.type);
	if (device.index < 0)
		snprintf(text, TORCH_DEVICE_TEXT, "%s", type);
	else
		snprintf(text, TORCH_DEVICE_TEXT, "%s:%d", type, device.index);
}
