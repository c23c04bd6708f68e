// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/reader.h"

/* The reading functions of getters.def and fallback_getters.def; see there. */
#define GETTER(function_, group_, levels_, cadence_) \
	enum nvml_return function_(struct reader *reader, struct device *device);
#include "nvml/getters.def"
#define FALLBACK_GETTER(function_, group_, row_, cadence_) \
	enum nvml_return function_(struct reader *reader, struct device *device);
#include "nvml/fallback_getters.def"
