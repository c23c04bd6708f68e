// SPDX-License-Identifier: Apache-2.0
/*
 * Traced processes in lists of processes: those that the driver lists, and the others.
 */
#pragma once

#include "model/snapshot.h"

enum { TRACED_SHOWN_MAX = 2048 }; /* others that are shown; this number fits a page */

/* Traced data of a process that the driver lists, on its device; NULL: not traced there. */
const struct traced_device *traced_device_of(const struct snapshot *s, const struct process *process);

/* The workload of one of the snapshot's traced processes; NULL: none is known. */
const struct workload_name *traced_workload(const struct snapshot *s, const struct traced_process *process);

/* Iterates over processes on devices where the driver does not list them, or on unknown devices. */
struct traced_apart {
	const struct snapshot *s;
	uint32_t process_i, device_i; /* position of the next one */
	const struct traced_process *process;
	const struct traced_device *device; /* without UUID and numbers if the device is unknown */
	const struct entity *entity; /* NULL: the driver has not listed the device */
};
/* Start with {.s = snapshot}; false at the end, or if nothing is traced. */
bool traced_apart_next(struct traced_apart *apart);
