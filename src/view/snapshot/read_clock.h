// SPDX-License-Identifier: Apache-2.0
/* Part of read.c: the driver's clock, and its times of numbers. */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/* @clock: of the entity, after the times of its newest reading. */
void snapshot_read_clock(struct entity *entity, const json_t *clock);
