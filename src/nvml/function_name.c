// SPDX-License-Identifier: Apache-2.0
#include "nvml/library.h"

#include "base/macro.h"

/* Both halves have this table: the child writes a number into the mapping, the agent reads it. */
static const char *const names[NVML_FUNCTIONS] = {
	[NVML_FUNCTION_NONE] = "",
#define NVML_FUNCTION(name_, ...) [NVML_FUNCTION_##name_] = #name_,
#include "nvml/nvml.def"
};

static const bool later[NVML_FUNCTIONS] = {
#define NVML_FUNCTION(name_, ...)
#define NVML_LATER(name_, ...) [NVML_FUNCTION_##name_] = true,
#include "nvml/nvml.def"
};

/* It may go by an older name: that this one is not found tells nothing. */
static const bool renamed[NVML_FUNCTIONS] = {
#define NVML_FUNCTION(name_, ...) [NVML_FUNCTION_##name_] = sizeof(#__VA_ARGS__) > 1,
#include "nvml/nvml.def"
};

bool nvml_function_renamed(unsigned function)
{
	return function < NVML_FUNCTIONS && renamed[function];
}

bool nvml_function_expected(unsigned function)
{
	return function > NVML_FUNCTION_NONE && function < NVML_FUNCTIONS && !later[function];
}

const char *nvml_function_name(unsigned function)
{
	return function < ARRAY_SIZE(names) ? names[function] : "";
}
