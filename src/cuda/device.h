// SPDX-License-Identifier: Apache-2.0
/*
 * The node's devices, and which of them a process sees.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/cuda.h"

struct process;
struct trace_name;

/* An environment variable that selects devices. */
struct variable {
	bool seen; /* cuInit was called */
	bool known;
	char *value; /* NULL: not set */
};

enum {
	DEVICES_MAX = 1024, /* UUIDs ever seen; index 0 is "", not known which */
	VISIBLE_MAX = 64, /* devices that one process sees */
	VALUE_MAX = 4096, /* CUDA_VISIBLE_DEVICES; 64 MIG UUIDs are 2,624 bytes */
	ENVIRONMENT_MAX = 1 << 18,
};

/* device.c */
uint32_t device_uuid(struct cuda *cuda, const char *uuid); /* index; 0: no room, or "" */
const struct cuda_device *device_find(const struct cuda *cuda, uint32_t uuid);
/* Finds again which device each context of a process is on: what that depends on has changed. */
void device_resolve(struct cuda *cuda, struct process *p);
/* Why the device of a context is not known. */
enum traced_unplaced device_unplaced(const struct cuda *cuda, const struct process *p);
/* An environment variable, from cuInit. */
void device_variable(struct cuda *cuda, struct process *p, const struct trace_name *event, uint32_t size);

/* visible.c */
struct visible {
	uint16_t device[VISIBLE_MAX]; /* indexes into the devices given */
	uint32_t n;
	bool estimated;
};
/*
 * The devices that CUDA lets a process see, in its order. @value of CUDA_VISIBLE_DEVICES, NULL: not set;
 * @order of CUDA_DEVICE_ORDER or NULL.
 */
void visible_resolve(const struct cuda_device *devices, uint32_t n, const char *value, const char *order,
		     struct visible *ret_visible);
