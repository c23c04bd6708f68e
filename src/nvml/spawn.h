// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "nvml/shared.h"

/* A started child, and the agent's ends of what they share. */
struct spawned {
	pid_t pid;
	int pidfd;
	int socket; /* non-blocking */
	/* pages are allocated on first use; the child cannot truncate it */
	struct nvml_shared *shared;
};

/*
 * The child's executable: @configured, or gpusonde-nvml beside our own executable, or where it is installed.
 * Always returns a path, which need not exist.
 */
void spawn_find_helper(const char *configured, char ret_path[PATH_MAX]);

/*
 * Starts @helper with only the mapping and the socket open, default signals, and the agent's environment.
 * @library may be NULL; @left_out as in struct nvml_shared. Copies @states (READING_ENTITIES_MAX entries;
 * NULL: none) into the mapping. 0 or negative errno.
 */
int spawn_child(const char *helper, const char *library, const struct persistent_state *states,
		uint32_t attach, uint32_t left_out, struct spawned *ret_spawned);
