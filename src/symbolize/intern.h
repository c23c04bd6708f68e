// SPDX-License-Identifier: Apache-2.0
/* Kernels shared by processes. One thread owns a table. */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "model/kernel.h"

struct kernels;
int kernels_new(struct kernels **ret_kernels);
void kernels_free(struct kernels *kernels);
DEFINE_CLEANUP(struct kernels *, kernels_free, kernels_freep)
/* A kernel equal to @from, shared by all users; returns a reference. -ENOMEM. */
int kernels_intern(struct kernels *kernels, const struct kernel *from, struct kernel **ret_kernel);
uint32_t kernels_count(const struct kernels *kernels);
