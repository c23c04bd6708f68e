// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/generation.h"

#include <stddef.h>

#include "base/macro.h"
#include "nvml/abi_field.h"

const struct generation generations[GENERATION_COUNT] = {
#define GENERATION(id, ...) [GENERATION_##id] = { __VA_ARGS__ },
#include "sim/scenario/generations.def"
};

bool generation_has_field(enum generation_id id, uint32_t field)
{
	static const struct {
		enum generation_id since;
		uint32_t first, last;
	} fields[] = {
#define FIELDS(id, first, last) { GENERATION_##id, first, last },
#include "sim/scenario/generations.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (id >= fields[i].since && field >= fields[i].first && field <= fields[i].last)
			return true;
	}
	return false;
}
