// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/model.h"

#include <stddef.h>

#include "base/macro.h"
#include "nvml/abi_device.h"
#include "nvml/abi_link.h"

#define MODEL(...) { __VA_ARGS__ },
static const struct model models[] = {
#include "sim/scenario/models.def"
};
#undef MODEL

const struct model *model_find(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		if (STRV_EQ(models[i].id, id))
			return &models[i];
	}
	return NULL;
}

const char *model_id(unsigned index)
{
	return index < ARRAY_SIZE(models) ? models[index].id : NULL;
}
