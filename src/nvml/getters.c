// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"

#include "nvml/report.h"

#include "base/macro.h"

struct getter {
	enum nvml_return (*read)(struct reader *reader, struct device *device);
	enum reading_group group;
	unsigned levels;
	enum metric_cadence cadence;
	unsigned row; /* of a fallback */
};

static const struct getter getters[] = {
#define GETTER(function_, group_, levels_, cadence_) \
	{ .read = function_, .group = READING_GROUP_##group_, .levels = levels_, .cadence = cadence_ },
#include "nvml/getters.def"
};

static const struct getter fallback_getters[] = {
#define FALLBACK_GETTER(function_, group_, row_, cadence_) \
	{ .read = function_,                               \
	  .group = READING_GROUP_##group_,                 \
	  .levels = LEVEL_GPU,                             \
	  .cadence = cadence_,                             \
	  .row = GPU_##row_ },
#include "nvml/fallback_getters.def"
};

_Static_assert(ARRAY_SIZE(getters) + ARRAY_SIZE(fallback_getters) <= GETTERS_MAX,
	       "a bit of getters_off for each");

static void read_one(struct reader *reader, struct device *device, const struct getter *getter, unsigned bit)
{
	unsigned level = device->parent == READING_NONE ? LEVEL_GPU : LEVEL_MIG;

	if (!(getter->levels & level) || !device->due[getter->cadence] ||
	    (device->getters_off & UINT64_C(1) << bit) || !reader_group_begin(reader, getter->group))
		return;
	if (nvml_unsupported(getter->read(reader, device)))
		device->getters_off |= UINT64_C(1) << bit;
	reader_group_end(reader, getter->group);
}

void getters_read(struct reader *reader, struct device *device)
{
	for (unsigned i = 0; i < ARRAY_SIZE(getters); i++) {
		read_one(reader, device, &getters[i], i);
		if (reader->lost || reader->gone)
			return;
	}
}

void fallback_getters_read(struct reader *reader, struct device *device)
{
	for (unsigned i = 0; i < ARRAY_SIZE(fallback_getters); i++)
		if (!fields_has(device, fallback_getters[i].row))
			read_one(reader, device, &fallback_getters[i], ARRAY_SIZE(getters) + i);
}
