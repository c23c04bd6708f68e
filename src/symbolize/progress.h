// SPDX-License-Identifier: Apache-2.0
/*
 * What a thread of the helper works on, in memory that its owner reads: when the helper hangs or crashes, the
 * owner knows at which process and file. Threads without a lane (inspect, tests) note nothing.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum progress_kind { PROGRESS_IDLE, PROGRESS_PROCESS, PROGRESS_MEMORY, PROGRESS_FILE, PROGRESS_KINDS };

/* A file by what nobody can set; changed_ns 0: not known yet. */
struct file_mark {
	uint64_t dev, ino, changed_ns;
};

struct progress_lane {
	_Atomic uint64_t step, kind, pid, tid;
	_Atomic uint64_t dev, ino, changed_ns; /* PROGRESS_FILE */
};

/* The calling thread's from now on. */
void progress_use(struct progress_lane *lane);
/* Work on a process begins, or ends (0). */
void progress_process(pid_t pid);
/* Its memory, or its files in /proc that need its memory map. */
void progress_memory(void);
/* A file is opened (@st NULL) or read. */
void progress_file(uint64_t dev, uint64_t ino, const struct stat *st);
struct file_mark progress_mark(const struct stat *st);
