// SPDX-License-Identifier: Apache-2.0
/* From what exporters' pages say of this node's GPUs to a reading of the source DCGM. */
#pragma once

#include "agent/dcgm/targets.h"
#include "model/reading.h"

/*
 * Fills all of @reading but its times. The numbers are those of pages that the newest cycle has read; of a
 * device that only other pages know its identity alone is there. @xids: an XID that has changed since the
 * page before is an event.
 */
void dcgm_reading_make(struct reading *reading, const struct dcgm_targets *targets, bool xids);
