// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

/*
 * Finds real processes of this machine for those of a scenario. Callers hold the lock of the node: the list
 * of PIDs is shared, read again from /proc at most twice a second, and only if a scenario uses it.
 */

/* The PID of the index-th process whose name (comm) matches the shell pattern, by ascending PID; 0: none. */
uint32_t match_pid(const char *pattern, uint32_t index);

uint32_t match_self(void);

/* The PID that this process has in its own PID namespace; the same if it is not known. */
uint32_t match_namespaced(uint32_t pid);
