// SPDX-License-Identifier: Apache-2.0
/*
 * A driver that does not answer, as one outage: from the first tick that found no reading until one arrives,
 * whatever happens to the child processes meanwhile. Children that are killed and replaced begin their calls
 * again; the outage goes on. It logs what happens, each thing once, and describes the state in words.
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
	bool logged, logged_call; /* the log has the outage, and the call that hangs */
	int64_t since_ns; /* boot clock: the newest reading, or when we began to ask; 0 not yet */
	int64_t outage_ns; /* when the outage that was logged began */
	char call[64]; /* what hangs, "" nothing known; kept while children are replaced */
	unsigned left_behind; /* as logged */
	struct nvml_status last; /* of the newest tick */
};

/* A reading has come, whatever it says. @state is enum reading_state. */
void driver_outage_heard(struct driver_outage *outage, uint32_t state, int64_t now_ns);

/* Once a tick, after the source has had its own. */
void driver_outage_tick(struct driver_outage *outage, const struct nvml_status *status, int64_t now_ns);

/*
 * The state: @status with the reason, the call that hangs and its duration as of the whole outage.
 * All of it is as the source says it while readings come.
 */
void driver_outage_status(const struct driver_outage *outage, int64_t now_ns, struct nvml_status *status);
