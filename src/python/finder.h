// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the interpreters of other users' processes for the agent, in a helper (a role of gpusonde-reader),
 * since the programs are files that users choose.
 *
 * Invariants
 *  1. No call blocks. One process is looked at at a time, for FINDER_PATIENCE_NS at most.
 *  2. A user has at most seven times as many processes waiting as there is room for more, and none is looked
 *     at for FINDER_PENALTY_NS after one of his made the helper hang or crash. For root's processes in
 *     a container the container stands for the user (proc/user.h).
 *  3. What is found is told of the process that was asked about, not of a later one with its PID, and not of
 *     the program that it ran before python_finder_exec().
 */
#pragma once

#include <linux/capability.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/process_id.h"
#include "bpf/stack.h"

#define FINDER_PATIENCE_NS (2 * NSEC_PER_SEC)
#define FINDER_PENALTY_NS (60 * NSEC_PER_SEC)
enum { FINDER_WAITING = 256 };

struct python_finder;

/* @r: as of python_find(), or -EIO: the helper was lost over it. @python: only if @r is 0. */
typedef void python_found(pid_t pid, int r, uint32_t version, const struct trace_python *python,
			  void *userdata);

/* @program: NULL: gpusonde-reader. */
int python_finder_new(sd_event *event, const char *program, python_found *found, void *userdata,
		      struct python_finder **ret_finder);
void python_finder_free(struct python_finder *finder);
DEFINE_CLEANUP(struct python_finder *, python_finder_free, python_finder_freep)

/* -EAGAIN: too many wait, or its user's are not looked at for a while; it is not asked about. -ESRCH. */
int python_finder_ask(struct python_finder *finder, pid_t pid);
/* It runs another program since then (CLOCK_MONOTONIC): what was asked before is not told. */
void python_finder_exec(struct python_finder *finder, pid_t pid, uint64_t time_ns);

struct helper_stats;
void python_finder_stats(const struct python_finder *finder, struct helper_stats *ret_stats);

/* The helper's end: serves until the owner closes the socket. Returns the exit status. */
int python_finder_serve(int channel);
/* Other users' processes, and files closed to others, and deleted ones. */
#define FINDER_CAPABILITIES                                                   \
	(UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH | \
	 UINT64_C(1) << CAP_CHECKPOINT_RESTORE)
