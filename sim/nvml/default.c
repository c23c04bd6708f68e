// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/library.h"
#include "sim/scenario/locate.h"

/* What tells the library of one generation from that of another, beside the names that it exports. */
#ifndef SIM_GENERATION
#define SIM_GENERATION GENERATION_NEWEST
#define SIM_SCENARIO SCENARIO_DEFAULT
#endif

const enum generation_id library_generation = SIM_GENERATION;
const char *const library_scenario = SIM_SCENARIO;
