// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/nvml/call.h"

/*
 * The library as loaded into one process: its node, its faults, whether it is initialised. One lock guards
 * all of it; callers hold it, except for library_lock().
 */
void library_lock(void);
void library_unlock(void);

/* Success, or why calls fail now: UNINITIALIZED, or GPU_IS_LOST if the driver was unloaded since. */
enum nvml_return library_state(int64_t now_ms);

/* Checks the control file, at most 20 times a second, and whether the driver was unloaded. */
void library_refresh(int64_t now_ms);

/*
 * Faults that concern a function and a GPU (negative: none) now, by bit: [0] those of the scenario, [1]
 * those of the control file.
 */
void library_faults(enum function function, int gpu, int64_t now_ms, uint32_t ret_active[2]);
const struct fault *library_fault(unsigned set, unsigned number);

/* Whether the GPU is there. */
bool library_removed(uint32_t gpu, int64_t now_ms);

/* Whether the scenario says that this GPU does not support this function. */
bool library_unsupported(enum function function, uint32_t gpu);

const char *function_name(enum function function);

/* Of default.c: the generation whose functions it exports, and the default scenario. */
extern const enum generation_id library_generation;
extern const char *const library_scenario;
