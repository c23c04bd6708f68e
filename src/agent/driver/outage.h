// SPDX-License-Identifier: Apache-2.0
/*
 * Tracks an unresponsive driver as one outage: from the first tick without a reading until the next reading
 * arrives. Children that are killed and replaced meanwhile restart their calls, but the outage continues.
 * Logs each event once and describes the state in words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/reading.h"
#include "nvml/source.h"

struct driver_outage {
	bool quiet; /* log nothing */
	bool silent; /* at the newest tick no reading had arrived since the previous one */
	bool reading_arrived; /* a reading arrived since the newest tick */
	bool logged, logged_call; /* the outage has been logged, and the hanging call too */
	int64_t since_ns; /* boot clock: the newest reading, or the first request; 0: none yet */
	int64_t outage_ns; /* boot clock: begin of the logged outage */
	char call[64]; /* the hanging call, "" unknown; retained while children are replaced */
	unsigned left_behind; /* stuck processes, as last logged */
	struct nvml_status last; /* status of the newest tick */
};

/* To be called for each reading, of any state. @state is enum reading_state. */
void driver_outage_reading(struct driver_outage *outage, uint32_t state, int64_t now_ns);

/* To be called once a tick, after nvml_source_tick(). */
void driver_outage_tick(struct driver_outage *outage, const struct nvml_status *status, int64_t now_ns);

/*
 * Replaces reason, hanging call and its duration in @status by those of the whole outage. While readings
 * arrive, @status is unchanged.
 */
void driver_outage_status(const struct driver_outage *outage, int64_t now_ns, struct nvml_status *status);
