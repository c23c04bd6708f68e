// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers of a kernel's launches, by the rows of KERNEL_METRIC, and identifiers of kernels, for all views.
 *
 * Brief names are readable and fold templates, so many kernels of a program may share one; full names have
 * thousands of characters. So a kernel also has an id, a hash of its symbol and file: it is the same in every
 * run of the program. Two kernels that share both (generated at run time) are counted as one.
 */
#pragma once

#include "model/trace.h"

enum {
	KERNEL_ID_TEXT = 17,
	KERNEL_LABEL_BYTES = 128, /* of a name in /metrics */
};

/* Cuts longer names, with "..." at the end; never within a UTF-8 character. */
void kernel_label(const struct kernel *kernel, char buf[static KERNEL_LABEL_BYTES + 1]);

uint64_t kernel_id(const struct kernel *kernel);
/* 16 hexadecimal digits. */
void kernel_id_text(const struct kernel *kernel, char buf[static KERNEL_ID_TEXT]);

/* Numbers of @kernel for the launches in @part, which is all of them or those with a series. */
void kernel_numbers(const struct traced_kernel *kernel, const struct traced_launches *part,
		    double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS]);

/* Numbers of launches of several kernels. */
void launches_numbers(const struct traced_launches *launches, uint8_t presence,
		      double v[static KERNEL_METRICS], uint8_t p[static KERNEL_METRICS]);

struct snapshot;
struct table;
/* The GPU's index; if the driver has not listed it, enough of the UUID to identify it. */
void kernels_gpu_cell(struct table *table, const struct snapshot *s, const char *uuid);
