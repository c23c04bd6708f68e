// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's management library, opened at run time: a pointer for each function of nvml.def, NULL where this
 * library has none. Tests fill the table with functions of their own.
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

/* Numbers of the functions, for telling the agent which one is under way. */
enum nvml_function {
	NVML_FUNCTION_NONE,
#define NVML_FUNCTION(name_, ...) NVML_FUNCTION_##name_,
#include "nvml/nvml.def"
	NVML_FUNCTIONS,
};

/* Name of a function by its number; "" for NVML_FUNCTION_NONE and for numbers that are none. */
const char *nvml_function_name(unsigned function);

/* Has every driver since 470 had it? */
bool nvml_function_expected(unsigned function);

/* Does it have older names? */
bool nvml_function_renamed(unsigned function);

/* Is it in the library that this table is of? */
bool nvml_library_has(const struct nvml_api *api, unsigned function);

#define NVML_LIBRARY_DEFAULT "libnvidia-ml.so.1"

struct nvml_library {
	void *handle;
	char path[256]; /* the file it was loaded from, as far as the loader knows */
	bool simulated; /* gpusonde's own simulated driver */
};

/*
 * Opens @name and fills @ret_api. 0; -ENOENT when it cannot be opened, -EPROTO when it is no NVML: then
 * @error says why.
 */
int nvml_library_open(const char *name, struct nvml_library *ret_library, struct nvml_api *ret_api,
		      char *error, size_t size);
void nvml_library_close(struct nvml_library *library);
