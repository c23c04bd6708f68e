// SPDX-License-Identifier: Apache-2.0
/* True times of GPUs' work (model/gpu_time.h), and of kernels by name, as tables and JSON. */
#pragma once

#include "base/strbuf.h"
#include "model/gpu_time.h"
#include "model/snapshot.h"
#include "view/view.h"

/* Kernels of one name that a process ran on a device, or graphs as a whole. */
struct timed_kernel {
	uint32_t pid;
	const char *uuid; /* "": not known */
	const char *name; /* "": it was not told */
	const char *symbol; /* as compiled */
	uint64_t count;
	double seconds;
	uint64_t least_ns, most_ns;
	uint64_t correlated; /* whose call is known */
};

struct gpu_time_view {
	const struct gpu_time *rows;
	const struct timed_kernel *kernels; /* the most time first */
	uint32_t rows_n, kernels_n;
	uint64_t left_out; /* works of kernels for which there was no room */
	const struct snapshot *node; /* for the GPUs' numbers */
};

/* What was measured of which process, kernels, and what is missing. 0, or -ENOMEM/-E2BIG. */
int table_gpu_time(const struct gpu_time_view *view, const struct table_options *options, struct strbuf *out);
int json_gpu_time(const struct gpu_time_view *view, struct strbuf *out);
/* An object: rows as in the other, and what of them is missing. */
int json_gpu_times(const struct gpu_times *times, struct strbuf *out);
/* Why there are no times, or not all; "" if there is nothing to say. */
void gpu_time_reason(const struct gpu_time *row, char *text, size_t size);
