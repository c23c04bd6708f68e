// SPDX-License-Identifier: Apache-2.0
/*
 * Drivers whose lists of processes have the PIDs that processes have in their own PID namespaces, while the
 * utilisation samples have the machine's (seen with driver 560 in containers). That is detected, and the PIDs
 * are replaced by the machine's where only one process can be meant; where several can, the entry is taken
 * out, since its PID is another process's.
 */
#pragma once

#include "model/reading.h"

struct driver_pids;

/* @root is "/proc" except in tests. */
int driver_pids_new(const char *root, struct driver_pids **ret_pids);
void driver_pids_free(struct driver_pids *pids);
/*
 * Changes the PIDs of a reading, and lists in its `unrecognised` what was found. Returns how many entries it
 * took out. To be called where /proc has all processes of the machine.
 */
unsigned driver_pids_translate(struct driver_pids *pids, struct reading *reading);
