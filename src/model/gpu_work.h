// SPDX-License-Identifier: Apache-2.0
/*
 * Single works of GPUs, and the slices of time in which they were measured, as CUPTI's plugin tells them:
 * on their way from the process that receives to the tracing thread.
 *
 * These are claims of the program that sends them; whose they are the kernel says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "model/cupti_wire.h"
#include "model/gpu_time.h"

enum {
	GPU_WORKS_MAX = 1 << 16, /* that wait to be handed on, of all */
	GPU_WORKS_PROCESS = 1 << 15, /* of these, of one connection */
};

/* A record, with its connection. */
struct gpu_work {
	uint32_t pid, uid;
	uint64_t since_boot_ns;
	uint8_t uuid[16]; /* of the device; zeros: not known */
	uint64_t missing; /* of a slice: records that are missing since the one before */
	uint64_t busy_ns; /* of a slice: in which work of the device runs, that no slice before has told */
	union cupti_record record;
};
_Static_assert(sizeof(struct gpu_work) == 128, "rows of one size, without holes");

/* What was handed on at once, in the order in which it came. */
struct gpu_works {
	struct gpu_works *next; /* the owner's own */
	struct gpu_times *times; /* of the connections that are there; NULL: not known. Its own reference */
	uint32_t n;
	struct gpu_work list[];
};

/* Room for @n; takes a reference to @times. NULL: out of memory. */
struct gpu_works *gpu_works_new(uint32_t n, struct gpu_times *times);
void gpu_works_free(struct gpu_works *works); /* without the next */
DEFINE_CLEANUP(struct gpu_works *, gpu_works_free, gpu_works_freep)

/* Whether the record means something. */
bool cupti_record_is_valid(const union cupti_record *record);
/* "GPU-..." */
void gpu_uuid_text(char *to, size_t size, const uint8_t uuid[static 16]);
bool gpu_uuid_is_known(const uint8_t uuid[static 16]);
