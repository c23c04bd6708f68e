// SPDX-License-Identifier: Apache-2.0
#include "generation.h"

#include "nvml/abi_field.h"

const struct generation generations[GENERATION_COUNT] = {
#define GENERATION(id, ...) [GENERATION_##id] = { __VA_ARGS__ },
#include "generations.def"
};
