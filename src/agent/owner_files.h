// SPDX-License-Identifier: Apache-2.0
/*
 * The source FILES: names of the node's containers and pods, and which GPUs containers were given. A
 * process of its own reads them from the files of kubelet and the container runtimes (src/owners). Belongs
 * to the thread of the event loop.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "model/model.h"

struct owner_files;

struct owner_files_config {
	const char *program; /* NULL: gpusonde-owners */
	const char *root; /* where the host's root file system is mounted; copied */
	const char *job_dir; /* below it, see owners/job_map.h; copied; NULL: none */
	/* Called when names have come for which a container or pod waited. May be NULL. */
	void (*named)(void *userdata);
	void *userdata;
};

/* Starts no process: that is owner_files_tick()'s. @model must live for longer. */
int owner_files_new(sd_event *event, struct model *model, const struct owner_files_config *config,
		    struct owner_files **ret_files);
void owner_files_free(struct owner_files *files);
/*
 * Asks when it is time: every second while a container has no name, else every two. Called with each
 * snapshot, so that a name that is missing is asked for at once.
 */
void owner_files_tick(struct owner_files *files);
/* Of its process; 0: none runs. */
pid_t owner_files_pid(const struct owner_files *files);
