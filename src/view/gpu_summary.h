// SPDX-License-Identifier: Apache-2.0
/*
 * The GPUs of a node, added up from the rows of /container/metrics.
 *
 * GPUs are distinct UUIDs; rows without one count singly. Instances are what can be given to a container:
 * whole GPUs, and MIG instances of those that are partitioned. Averages are over the devices that have the
 * number, that of utilisation over whole GPUs unless there are only MIG instances; sums are over all. A
 * number that no device has is null.
 */
#pragma once

#include "view/container/go_writer.h"
#include "view/container/rows.h"

/* Adds the members to the open object. -ENOMEM. */
int gpu_summary_add(struct go_writer *w, const struct container_rows *rows);
