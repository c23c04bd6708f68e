// SPDX-License-Identifier: Apache-2.0
/*
 * What every view says of a kernel's launches, by the rows of KERNEL_METRIC, and how it tells kernels apart.
 *
 * Brief names are for people and fold templates, so that many kernels of a program share one; full names have
 * thousands of characters. So a kernel has an id as well, from what it is called in which file: the same
 * whenever the program runs, and whatever else it launches. Two kernels that differ in neither (a program
 * that makes its kernels as it runs) are one.
 */
#pragma once

#include "model/trace.h"

enum {
	KERNEL_ID_TEXT = 17,
	KERNEL_LABEL_BYTES = 128, /* of a name in /metrics */
};

/* Of names that are longer the beginning, "..." at its end; never half a character. */
void kernel_label(const struct kernel *kernel, char buf[static KERNEL_LABEL_BYTES + 1]);

uint64_t kernel_id(const struct kernel *kernel);
/* Sixteen digits. */
void kernel_id_text(const struct kernel *kernel, char buf[static KERNEL_ID_TEXT]);

/* Numbers of @kernel with the launches of @part, which is all of it or a part. */
void kernel_numbers(const struct traced_kernel *kernel, const struct traced_launches *part,
		    double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS]);

/* Numbers of launches that are of many kernels. */
void launches_numbers(const struct traced_launches *launches, uint8_t presence,
		      double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS]);
