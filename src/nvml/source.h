// SPDX-License-Identifier: Apache-2.0
/*
 * The NVML source, agent side: keeps a child process that holds the driver's library, requests a reading from
 * it at each tick and passes each reading on. It never waits: a child that does not answer makes ticks
 * overdue, is killed after a time and replaced; one that cannot be killed (stuck in the driver) is abandoned,
 * up to a limit.
 *
 * Protocol: the agent writes one command byte on a socket pair, the child answers with one byte when the
 * reading in the shared mapping is complete. Between the two only the child accesses the reading, otherwise
 * only the agent: no reading is torn or lost. State that must survive a child (time stamps of the newest
 * driver samples seen) is in the same mapping.
 */
#pragma once

#include <systemd/sd-event.h>

#include "model/reading.h"

struct nvml_config {
	const char *library; /* path or soname to dlopen; NULL: libnvidia-ml.so.1 */
	const char *helper; /* executable; NULL: gpusonde-nvml next to the agent's, else in libexec */
	/* a child that has not answered for this long is killed and replaced; default 10 s */
	int64_t call_timeout_ns;
	uint32_t left_out; /* groups of readings that are not read: bits 1 << enum reading_group */
	unsigned max_stuck; /* abandoned children; at this number none is started; default 3 */
};

struct nvml_status {
	bool running; /* a child exists */
	bool busy; /* and works on a reading */
	bool released;
	uint64_t starts, crashes, overdue;
	uint64_t given_up; /* children killed because they did not answer in time */
	unsigned stuck; /* killed and not ended */
	char call[64]; /* driver function being called, "": none */
	double call_seconds;
	char error[256]; /* cause and remedy; "" if there is no error */
	char cause[256]; /* the same without times and counts, so that it does not change during an outage */
	pid_t child; /* 0 none */
};

struct nvml_source;

/* A reading has arrived and passed reading_check(); it is valid during the call only. */
/* @reading is the callee's to change until it returns. */
typedef void nvml_reading_fn(struct reading *reading, void *userdata);

/* `event` and the strings in `config` must outlive the source. The child is started at the first tick. */
int nvml_source_new(sd_event *event, const struct nvml_config *config, nvml_reading_fn *on_reading,
		    void *userdata, struct nvml_source **ret_source);
/*
 * Requests the child to exit and kills it if it does not at once; waits at most 2 s for its end, so that no
 * zombie is left.
 */
void nvml_source_free(struct nvml_source *source);

/*
 * One tick: requests a reading, or counts the pending one as overdue and handles a child that hangs or died.
 */
void nvml_source_tick(struct nvml_source *source);

/*
 * Releases the driver (nvmlShutdown, library closed) until resumed; readings then have state
 * READING_RELEASED.
 */
void nvml_source_release(struct nvml_source *source);
void nvml_source_resume(struct nvml_source *source);

void nvml_source_status(const struct nvml_source *source, struct nvml_status *ret_status);
