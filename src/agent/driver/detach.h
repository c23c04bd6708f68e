// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * The kernel removes a process's probes before it lets the process end, and waits for all CPUs at each:
 * seconds for thousands of them, longer on a busy machine. This starts a process that has the same
 * descriptors of probes and ends when this one has: then the kernel makes that process wait, and the process
 * that waits for the agent's end (systemd, a shell) goes on. Call it before the first of them is closed.
 * Failures are ignored: then the agent's end takes as long as the kernel.
 */
void detach_after_end(void);
