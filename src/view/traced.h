// SPDX-License-Identifier: Apache-2.0
/* Traced processes as lists of processes show them: beside what the driver lists, or apart from it. */
#pragma once

#include "model/snapshot.h"

enum { TRACED_SHOWN_MAX = 2048 }; /* apart from the driver's list: with that they fit a page */

/* What tracing says of a process that the driver lists, on its device; NULL: it is not traced there. */
const struct traced_device *traced_device_of(const struct snapshot *s, const struct process *process);

/* Walks processes on devices where the driver does not list them, or on none that is known. */
struct traced_apart {
	const struct snapshot *s;
	uint32_t process_i, device_i; /* the next */
	const struct traced_process *process;
	const struct traced_device *device; /* without UUID and numbers where it is on none */
	const struct entity *entity; /* NULL: the driver has not shown the device */
};
/* Begin with {.s = snapshot}; false at the end, and at once where nothing is traced. */
bool traced_apart_next(struct traced_apart *apart);
