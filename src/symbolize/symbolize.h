// SPDX-License-Identifier: Apache-2.0
/*
 * Names for launches: from what a program passed (a host function, or the name that a handle was made for) to
 * the kernel with its resources. Knows files by what they are (build-id, or device, inode, size and time),
 * each read once however many processes map it, and what of them lies where in a process.
 *
 * One thread of its own, at the lowest priority, reads files; everything else is a table. Nothing here waits
 * for it: questions go into a bounded queue, answers come out of another, an eventfd tells.
 *
 * Invariants
 *  1. A file is opened once, through /proc/PID/map_files or /proc/PID/root: in containers, deleted or
 *     replaced, it is the one that is mapped.
 *  2. Memory is bounded: symbolizer_limits.bytes of tables, the least used file's go first. What could not
 *     be kept is counted.
 *  3. Nothing is guessed: what has no name is KERNEL_SOURCE_UNRESOLVED with address, file and offset.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/process_id.h"
#include "model/kernel.h"

struct symbolizer;

/* 0 means the default. */
struct symbolizer_limits {
	uint32_t questions; /* that wait; default 4096 */
	uint64_t bytes; /* of tables; default 48 MiB; and a quarter of it more for what processes map */
	uint32_t files; /* default 1024 */
};

struct symbolizer_config {
	struct symbolizer_limits limits;
	/*
	 * of processes, where nothing else tells: variables, images, what handles point to; false: none at
	 * all
	 */
	bool read_memory;
	const char *proc_root; /* "/proc" but in tests */
	/* until what was not found is looked for again, and then four times that; 0: 250 ms */
	int64_t again_ns;
};

struct symbolizer_question {
	uint64_t id; /* the asker's */
	struct process_id process;
	/* of the process, see base/process_id.h; what was learned is forgotten with it. 0: not known */
	uint64_t incarnation;
	uint64_t function; /* as passed to the launch: host function or handle */
	uint16_t sm; /* of the device; 0 not known */
	/*
	 * That the handle was made for, or NULL; and the image it is of, in the process's memory or a file,
	 * or 0 and "".
	 */
	const char *symbol;
	uint64_t image;
	const char *path;
};

/* A file that a process, which stands still, is about to map executable, or to become. */
struct symbolizer_mapping {
	pid_t pid;
	int fd; /* is duplicated */
	const char *path;
	bool execution;
	uint64_t address, length, offset; /* length 0: it is not known where it will lie */
};

struct symbolizer_answer {
	uint64_t id;
	struct kernel *kernel; /* the taker's reference */
};

struct symbolizer_stats {
	uint64_t asked, answered, refused; /* refused: the queue was full */
	uint64_t named[KERNEL_SOURCES];
	uint64_t files, files_read, files_failed, evicted, kernels;
	uint64_t left_out; /* stubs and areas that are beyond a limit or could not be read */
	uint64_t bytes; /* of tables, now */
	double seconds; /* CPU of the thread */
};

int symbolizer_new(const struct symbolizer_config *config, struct symbolizer **ret_symbolizer);
/* Ends the thread; one that hangs in a file system is left behind with what it refers to. */
void symbolizer_free(struct symbolizer *symbolizer);
DEFINE_CLEANUP(struct symbolizer *, symbolizer_free, symbolizer_freep)

/* Copies what it is given. -EAGAIN: the queue is full; ask again later. */
int symbolizer_ask(struct symbolizer *symbolizer, const struct symbolizer_question *question);
/*
 * An image that a process is about to load from memory, which may be gone soon after: its kernels are read
 * now, for questions that name it.
 */
int symbolizer_image(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, uint64_t address);
/*
 * Looks at what lies where in the process, now, and keeps it and the file: for questions that come when it
 * has ended. Reads /proc/PID/maps, nothing else. -EAGAIN: no room, counted as refused; -ESRCH.
 */
int symbolizer_look(struct symbolizer *symbolizer, const struct symbolizer_mapping *mapping);
/* The process is over, or executes another program. */
void symbolizer_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
/* Readable when there are answers. */
int symbolizer_fd(const struct symbolizer *symbolizer);
/* False: none now. */
bool symbolizer_take(struct symbolizer *symbolizer, struct symbolizer_answer *ret_answer);
void symbolizer_stats(struct symbolizer *symbolizer, struct symbolizer_stats *ret_stats);
