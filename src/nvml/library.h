// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's management library, opened at run time: a pointer for each function of nvml.def, NULL where this
 * library lacks it. Tests provide their own table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "nvml/abi.h"
#include "nvml/abi_prm.h"

struct nvml_api {
#define NVML_FUNCTION(name_, ...) __typeof__(name_) *name_;
#include "nvml/nvml.def"
};

/* Numbers of the functions, to report to the agent which one is being called. */
enum nvml_function {
	NVML_FUNCTION_NONE,
#define NVML_FUNCTION(name_, ...) NVML_FUNCTION_##name_,
#include "nvml/nvml.def"
	NVML_FUNCTIONS,
};

/* Name of a function by its number; "" for NVML_FUNCTION_NONE and for invalid numbers. */
const char *nvml_function_name(unsigned function);

/* Whether every driver since 470 has it. */
bool nvml_function_expected(unsigned function);

/* Whether it has older names. */
bool nvml_function_renamed(unsigned function);

/* Whether this table's library has it. */
bool nvml_library_has(const struct nvml_api *api, unsigned function);

#define NVML_LIBRARY_DEFAULT "libnvidia-ml.so.1"

struct nvml_library {
	void *handle;
	char path[256]; /* the file it was loaded from, according to the loader */
	bool simulated; /* gpusonde's own simulated driver */
};

/*
 * Opens @name and fills @ret_api. 0; -ENOENT: it cannot be opened; -EPROTO: it is not NVML; then @error has
 * the cause.
 */
int nvml_library_open(const char *name, struct nvml_library *ret_library, struct nvml_api *ret_api,
		      char *error, size_t size);
void nvml_library_close(struct nvml_library *library);
