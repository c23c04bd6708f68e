// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/node/live.h"

/*
 * Processes that use the simulated CUDA, as NVML shows them: read again from live.h's folder after each tick
 * of the library's time. They are added to the scenario's processes; without the folder there are none.
 * Callers hold the library's lock.
 */
struct guest {
	uint32_t pid;
	int32_t gpu, instance;
	uint64_t bytes; /* contexts included */
	struct live_period periods[LIVE_PERIODS];
};

/* Those on a GPU, or (instance not negative) on one MIG device of it; valid until the next call. */
uint32_t guests_of(uint32_t gpu, int instance, int64_t now_ms, const struct guest **ret_guests);

/* Their memory in sum. */
uint64_t guests_bytes(uint32_t gpu, int instance, int64_t now_ms);

/* How busy one was in a second since boot. */
uint32_t guest_percent(const struct guest *guest, uint64_t second);

/* How busy they all were in the latest whole second; may exceed 100. */
uint32_t guests_percent(uint32_t gpu, int64_t now_ms);
