// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/nvml/call.h"

/*
 * Functions that give one number: whether this GPU has it, and where it comes from. Both are expressions
 * that may use `call`, and the shorthands `what` (the GPU in the scenario), `model` and `now` (the tick
 * under way).
 */
#define DEVICE_GETTER(name, type, put, support, value)               \
	enum nvml_return name(struct nvml_device *device, type *ret) \
	{                                                            \
		CALL(name, device);                                  \
		const struct scenario_gpu *what = call->gpu->what;   \
		const struct model *model = &what->model;            \
		const struct tick *now = gpu_now(call->gpu);         \
                                                                     \
		(void)now, (void)model;                              \
		NEED(ret);                                           \
		NEED_SUPPORT(support);                               \
		put(call, ret, value);                               \
		return NVML_SUCCESS;                                 \
	}
#define DEVICE_U32(name, support, value) DEVICE_GETTER(name, uint32_t, put_u32, support, value)
#define DEVICE_U64(name, support, value) DEVICE_GETTER(name, uint64_t, put_u64, support, value)

enum { BYTES_PER_MIB = 1 << 20 };
