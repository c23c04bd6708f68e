// SPDX-License-Identifier: Apache-2.0
#include "nvml/library.h"

#include "base/macro.h"

/* Both halves have this table: the child writes a number into the mapping, the agent reads it. */
static const char *const names[NVML_FUNCTIONS] = {
	[NVML_FUNCTION_NONE] = "",
#define NVML_FUNCTION(name_, ...) [NVML_FUNCTION_##name_] = #name_,
#include "nvml/nvml.def"
};

const char *nvml_function_name(unsigned function)
{
	return function < ARRAY_SIZE(names) ? names[function] : "";
}
