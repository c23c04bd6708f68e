// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/scenario/scenario.h"

/* One of CUDA's devices: a GPU of the scenario, or (instance not negative) a MIG device on it. */
struct visible {
	int gpu, instance;
};

/*
 * Which devices CUDA shows, in its order, at most SCENARIO_MAX_GPUS. @visible is CUDA_VISIBLE_DEVICES and
 * @order CUDA_DEVICE_ORDER, NULL where they are not set.
 *
 * Without a list: the GPUs that are not in MIG mode, the fastest first (or by bus with PCI_BUS_ID); if all
 * are in MIG mode, the first MIG device alone. A list has indices into these, prefixes of UUIDs ("GPU-8932"),
 * MIG devices ("MIG-…"). It ends at the first entry that is invalid, ambiguous or repeated; entries
 * before it count. It also ends after a MIG device, because a process can have only one.
 */
uint32_t visible_devices(const struct scenario *scenario, const char *visible, const char *order,
			 struct visible ret_devices[static SCENARIO_MAX_GPUS]);
