// SPDX-License-Identifier: Apache-2.0
/*
 * True times of GPUs' work by process and device, as CUPTI measured them in the program (src/cupti_plugin).
 *
 * Who sends them is the program itself: these are its claims about itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "model/cupti_wire.h"
#include "model/nccl.h"
#include "model/trace.h"

enum { GPU_TIMES_MAX = 4096 };
#define GPU_TIME_NO_DEVICE UINT32_MAX

struct gpu_time {
	uint32_t pid;
	uint32_t uid; /* of the process, as the kernel says */
	uint64_t since_boot_ns; /* when it connected: one that began later has its PID only */
	uint32_t device; /* CUDA's number in the process; GPU_TIME_NO_DEVICE: none was seen yet */
	uint32_t api, error; /* as in struct cupti_slice */
	uint8_t state, clock; /* enum cupti_state, enum cupti_clock */
	uint8_t gone; /* it has closed its connection */
	uint8_t told; /* the state is known */
	char uuid[TRACED_UUID]; /* "": the program does not know it */
	uint64_t kernels, graphs, copies, sets, bytes; /* bytes: copied and set */
	double kernel_seconds,
		copy_seconds; /* graphs are in the former, sets in the latter; sums, not unions */
	double busy_seconds; /* in which any kernel or graph ran, within the slices */
	double observed_seconds; /* of slices: the others say nothing */
	double estimated_seconds; /* what tracing estimates of busy_seconds from outside; 0: nothing */
	/* Of the process, in its first row: */
	uint64_t lost; /* records that found no room on their way */
	uint64_t dropped, unknown, bad; /* as in struct cupti_slice */
	char comm[NCCL_COMM]; /* the process's name, "": not known */
};

/* Shared by snapshots. */
struct gpu_times {
	atomic_uint refs;
	uint32_t n;
	uint64_t refused; /* connections and messages */
	uint64_t left_out; /* rows for which there was no room this time */
	uint64_t lost; /* records that plugins had no room for, of all processes that ever were */
	uint64_t dropped; /* records that are in these sums, and in no timeline and finding */
	struct gpu_time rows[]; /* by process and device */
};

/* A copy of @rows; NULL: out of memory. */
struct gpu_times *gpu_times_new(const struct gpu_time *rows, uint32_t n);
struct gpu_times *gpu_times_ref(struct gpu_times *times);
void gpu_times_unref(struct gpu_times *times);

/* How far the estimate is from what was measured, as a share of the larger one; NAN: there is none. */
double gpu_time_estimate_error(const struct gpu_time *row);
/* "on", "over", "spent", "other", "no_library", "refused"; "" if it is not known. */
const char *gpu_time_state(const struct gpu_time *row);
