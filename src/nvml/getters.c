// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"

#include "base/macro.h"

struct getter {
	enum nvml_return (*read)(struct reader *reader, struct device *device);
	unsigned levels;
	enum metric_cadence cadence;
	unsigned row; /* of a stand-in */
};

static const struct getter getters[] = {
#define GETTER(function_, levels_, cadence_) { .read = function_, .levels = levels_, .cadence = cadence_ },
#include "nvml/getters.def"
};

static const struct getter standins[] = {
#define STANDIN(function_, row_, cadence_) \
	{ .read = function_, .levels = LEVEL_GPU, .cadence = cadence_, .row = GPU_##row_ },
#include "nvml/standins.def"
};

_Static_assert(ARRAY_SIZE(getters) + ARRAY_SIZE(standins) <= GETTERS_MAX, "a bit of getters_off for each");

static void read_one(struct reader *reader, struct device *device, const struct getter *getter, unsigned bit)
{
	unsigned level = device->parent == READING_NONE ? LEVEL_GPU : LEVEL_MIG;

	if (!(getter->levels & level) || !device->due[getter->cadence] ||
	    (device->getters_off & UINT64_C(1) << bit))
		return;
	if (nvml_unsupported(getter->read(reader, device)))
		device->getters_off |= UINT64_C(1) << bit;
}

void getters_read(struct reader *reader, struct device *device)
{
	for (unsigned i = 0; i < ARRAY_SIZE(getters); i++) {
		read_one(reader, device, &getters[i], i);
		if (reader->lost || reader->gone)
			return;
	}
}

void standins_read(struct reader *reader, struct device *device)
{
	for (unsigned i = 0; i < ARRAY_SIZE(standins); i++)
		if (!fields_has(device, standins[i].row))
			read_one(reader, device, &standins[i], ARRAY_SIZE(getters) + i);
}
