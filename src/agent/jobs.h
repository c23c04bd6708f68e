// SPDX-License-Identifier: Apache-2.0
/*
 * Asks for the environments of processes on GPUs, once each, and tells the model which jobs they say they are
 * of. They lie in the processes' memory, which their users can withhold: a helper reads them
 * (symbolize/client.h), and is replaced when it hangs. Belongs to the main thread.
 */
#pragma once

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "model/model.h"

struct jobs_config {
	const char *run, *group; /* names of variables that name a training run and its group; "": none */
	const char *program; /* NULL: gpusonde-reader */
	int64_t stall_ns; /* 0: the default */
};

struct jobs;
int jobs_new(sd_event *event, struct model *model, const struct jobs_config *config, struct jobs **ret_jobs);
void jobs_free(struct jobs *jobs);
/* Asks for what is not known yet, a bounded number at a time. */
void jobs_tick(struct jobs *jobs);
/* Of the helper; 0: none runs. */
pid_t jobs_pid(const struct jobs *jobs);
