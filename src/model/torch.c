// SPDX-License-Identifier: Apache-2.0
#include "model/torch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"

struct torch_view *torch_view_new(uint32_t processes, uint32_t memories, uint32_t counts)
{
	size_t head = sizeof(struct torch_view) + processes * sizeof(struct torch_process);
	struct torch_view *view = calloc(1, head + memories * sizeof(struct torch_memory) +
						    counts * sizeof(struct torch_count));

	if (!view)
		return NULL;
	view->processes = (struct torch_process *)(view + 1);
	view->memories = (struct torch_memory *)(view->processes + processes);
	view->counts = (struct torch_count *)(view->memories + memories);
	return view;
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
