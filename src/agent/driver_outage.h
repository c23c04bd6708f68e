// SPDX-License-Identifier: Apache-2.0
/*
 * A driver that does not answer, as one story: from the first tick that found no reading until one arrives,
 * whatever happens to the child processes meanwhile. Children that are killed and replaced begin their calls
 * anew; the silence goes on. Tells the log what happens, each thing once, and everybody else in words how
 * things stand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/reading.h"
#include "nvml/source.h"

struct driver_outage {
	bool quiet; /* nothing for the log */
	bool silent; /* the newest tick found that nothing had come since the one before */
	bool heard; /* since the newest tick */
	bool told, told_call; /* the log knows of trouble, and in which call it is */
	int64_t since_ns; /* boot clock: the newest reading, or when we began to ask; 0 not yet */
	int64_t trouble_ns; /* since when there has been the trouble that was told */
	char call[64]; /* what hangs, "" nothing known; kept while children are replaced */
	unsigned left_behind; /* as told in the log */
	struct nvml_status last; /* of the newest tick */
};

/* A reading has come, whatever it says. @state is enum reading_state. */
void driver_outage_heard(struct driver_outage *outage, uint32_t state, int64_t now_ns);

/* Once a tick, after the source has had its own. */
void driver_outage_tick(struct driver_outage *outage, const struct nvml_status *status, int64_t now_ns);

/*
 * How things stand: @status with the trouble, the call that hangs and its duration as of the whole outage.
 * All of it is as the source says it while readings come.
 */
void driver_outage_status(const struct driver_outage *outage, int64_t now_ns, struct nvml_status *status);
