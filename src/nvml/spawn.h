// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "nvml/shared.h"

/* A child that was started: who it is, and our ends of what we share. */
struct spawned {
	pid_t pid;
	int pidfd;
	int socket; /* non-blocking */
	/* its pages are allocated as they are touched; cannot be made shorter by the child */
	struct nvml_shared *shared;
};

/*
 * The child's executable: @configured, or gpusonde-nvml beside our own executable, or where it is installed.
 * Always gives a path, which may name nothing.
 */
void spawn_find_helper(const char *configured, char ret_path[PATH_MAX]);

/*
 * Starts @helper with nothing of ours open but the mapping and the socket, default signals, and our
 * environment. @library may be NULL. What is in @states (READING_ENTITIES_MAX, NULL: none) are put into
 * the mapping. Negative errno of what failed.
 */
int spawn_child(const char *helper, const char *library, const struct persistent_state *states,
		uint32_t attach, struct spawned *ret_spawned);
