// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nvml/reader.h"

/* The reading functions of getters.def and standins.def; see there. */
#define GETTER(function_, levels_, cadence_) \
	enum nvml_return function_(struct reader *reader, struct device *device);
#include "nvml/getters.def"
#define STANDIN(function_, row_, cadence_) \
	enum nvml_return function_(struct reader *reader, struct device *device);
#include "nvml/standins.def"
