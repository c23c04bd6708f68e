// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a container runs: by its first process, whose PID its runtime notes. Nothing tells a stopped
 * container's files from those of a running one otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether PIDs of the runtimes mean something in /proc here: it is the host's, and not hidden from us. */
bool running_can_tell(void);
/*
 * Whether @pid is a process whose cgroup names this container, so that another process that was given the
 * number later is not it. To be asked only where running_can_tell().
 */
bool running_is(uint32_t pid, const char *id);
/* The number in a file, which has to be a regular one; 0: none. */
uint32_t running_pid(int fd);
