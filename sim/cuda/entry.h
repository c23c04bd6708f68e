// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

/*
 * Exports by number. A row of driver.def makes one, or with a twin two. The thunk variant of the library
 * exports jumps to these functions, as NVIDIA's driver does, and calls the functions themselves entry_NAME.
 */
enum driver_api {
#define DRIVER_ONE(name) API_##name,
#define DRIVER_PTSZ(name) API_##name, API_##name##_ptsz,
#define DRIVER_PTDS(name) API_##name, API_##name##_ptds,
#define DRIVER(name, twin, since, need, implementation, parameters, arguments) DRIVER_##twin(name)
#include "sim/cuda/driver.def"
#undef DRIVER
#undef DRIVER_ONE
#undef DRIVER_PTSZ
#undef DRIVER_PTDS
	DRIVER_API_COUNT,
};

/* By number; the addresses are those that other libraries see. */
extern const char *const entry_names[DRIVER_API_COUNT];
extern const uint32_t entry_since[DRIVER_API_COUNT];
void *entry_address(enum driver_api api);
