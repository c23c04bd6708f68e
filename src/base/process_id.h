// SPDX-License-Identifier: Apache-2.0
/*
 * What a process is: a PID and the time at which the process that has it started. A PID alone is given to
 * another process later; the pair is not, since a PID does not come again within a clock tick.
 *
 * Start times come in two units. /proc/PID/stat has clock ticks since boot (_SC_CLK_TCK of them a second),
 * the kernel itself, and so each traced event, nanoseconds. The kernel rounds down when it writes ticks
 * (nsec_to_clock_t), and so do we: identities are compared in ticks, where both sources agree. Ticks made
 * into nanoseconds are the beginning of the tick, at most one tick before the process started. Both count
 * from boot, suspend included, in the initial time namespace.
 *
 * An *incarnation*, the word of tracing, is a program within a process: what runs between one exec and the
 * next, named by the CLOCK_MONOTONIC time of its first traced call. exec changes neither PID nor start time:
 * a process has one process_id and one or more incarnations, one after the other. Figures, workloads and
 * owners belong to the process; contexts, streams, handles and mapped files belong to the incarnation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct process_id {
	uint32_t pid;
	/* since boot; 0: unknown, for a process in another PID namespace, or that ended before it was read */
	uint64_t start_ticks;
};

/* Certainly the same process: false if either start time is unknown. */
bool process_id_equal(struct process_id a, struct process_id b);
/* Equal PIDs, and start times that do not differ or are unknown. */
bool process_id_may_equal(struct process_id a, struct process_id b);
uint64_t process_id_hash(struct process_id id);

/* Ticks from nanoseconds, rounded down as the kernel does. */
uint64_t process_ticks(uint64_t start_boot_ns);
/* The beginning of that tick in nanoseconds; saturates at INT64_MAX. */
int64_t process_boot_ns(uint64_t start_ticks);

/* Data from /proc/PID/stat; see proc_pid_stat(5). */
struct process_stat {
	/* points into the text; may contain any byte, including parentheses, blanks and line ends */
	struct cursor comm;
	uint64_t parent; /* field 4: its PID, 0 if it is in another PID namespace */
	char state; /* field 3: 'R', 'S', 'Z', ... */
	uint64_t user_ticks, kernel_ticks; /* fields 14 and 15: CPU time of all threads, in clock ticks */
	uint64_t threads; /* field 20 */
	uint64_t resident_pages; /* field 24; 0: not present */
	uint64_t start_ticks; /* field 22 */
	uint64_t env_start, env_end; /* fields 50 and 51; 0: not present */
};
/*
 * @text need not end in NUL. -EBADMSG: invalid, or ends before the start time; the result is then unchanged.
 */
int process_stat_parse(const char *text, size_t length, struct process_stat *ret_stat);
