// SPDX-License-Identifier: Apache-2.0
/* Names under which Kubernetes gives GPUs to pods. */
#pragma once

#include <stdbool.h>

/*
 * Whether a resource, or a driver of DRA, of this name is GPUs': NVIDIA's names, and those of @names,
 * separated by commas, in which * stands for any text; NULL: no further ones.
 */
bool resource_is_gpu(const char *name, const char *names);
