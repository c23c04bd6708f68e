// SPDX-License-Identifier: Apache-2.0
/*
 * The NVML source, agent side: keeps a child process that holds the driver's library, asks it once a tick for
 * a reading and hands each reading on. It never waits: a child that does not answer makes ticks overdue, is
 * killed after a time and replaced; one that cannot be killed (stuck in the driver) is left behind, up to a
 * stated number.
 *
 * Protocol: the agent writes one command byte on a socket pair, the child answers with one byte when the
 * reading in the shared mapping is complete. Between the two the reading in it is the child's, otherwise
 * nobody writes it: none is ever torn or lost. State that must survive a child (time stamps of the newest
 * driver samples seen) lies in the same mapping.
 */
#pragma once

#include <systemd/sd-event.h>

#include "model/reading.h"

struct nvml_config {
	const char *library; /* path or soname to dlopen; NULL: libnvidia-ml.so.1 */
	const char *helper; /* the child's executable; NULL: gpusonde-nvml beside our own, else in libexec */
	/* a child that has not answered for this long is killed and replaced; default 10 s */
	int64_t call_timeout_ns;
	unsigned max_stuck; /* children left behind at most; then none is started until one ends; default 3 */
};

struct nvml_status {
	bool running; /* a child is there */
	bool busy; /* and is at work on a reading */
	bool released;
	uint64_t starts, crashes, overdue;
	uint64_t given_up; /* children killed because they did not answer in time */
	unsigned stuck; /* killed and not ended */
	char call[64]; /* driver function under way, "" none */
	double call_seconds;
	char error[256]; /* cause and remedy; "" if there is no error */
	char cause[256]; /* the same without times and counts, so that it does not change during an outage */
	pid_t child; /* 0 none */
};

struct nvml_source;

/* A reading has arrived and passed reading_check(); it is valid during the call only. */
typedef void nvml_reading_fn(const struct reading *reading, void *userdata);

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
 * Let go of the driver (nvmlShutdown, library closed) until resumed; readings then have state
 * READING_RELEASED.
 */
void nvml_source_release(struct nvml_source *source);
void nvml_source_resume(struct nvml_source *source);

void nvml_source_status(const struct nvml_source *source, struct nvml_status *ret_status);
