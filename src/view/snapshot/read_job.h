// SPDX-License-Identifier: Apache-2.0
/* The job of a process or workload of a document; for view/snapshot/read.c alone. */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/* Its index in @s's jobs, of which there is room for @max; JOB_NONE: none, or no room. */
uint32_t snapshot_read_job(struct snapshot *s, uint32_t max, const json_t *object);
