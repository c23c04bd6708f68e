// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "nvml/abi_base.h"

/* The return codes of NVML by the names that scenarios use: NVML's own without NVML_ERROR_. 0 or -EINVAL. */
int error_by_name(const char *name, uint32_t *ret_error);

/* The message that programs show for a code. */
const char *error_words(uint32_t error);
