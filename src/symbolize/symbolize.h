// SPDX-License-Identifier: Apache-2.0
/*
 * Names of launched kernels: from what a program passed (a host function, or a handle and the name it was
 * created from) to the kernel with its resources. Files are identified by their content (build-id, or device,
 * inode, size and time), and each is read once, however many processes map it.
 *
 * One thread, at the lowest priority, reads files. No caller waits for it: questions go into a bounded queue,
 * answers come from another, and an eventfd signals them.
 *
 * Invariants
 *  1. A file is opened once, through /proc/PID/map_files or /proc/PID/root: even in containers, deleted or
 *     replaced, it is the mapped one.
 *  2. Memory is bounded: symbolizer_limits.bytes of tables; those of the least recently used file are freed
 *     first. What could not be stored is counted.
 *  3. Nothing is guessed: a function without a name is KERNEL_SOURCE_UNRESOLVED with address, file and
 *     offset.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/process_id.h"
#include "model/device_code.h"
#include "model/kernel.h"
#include "symbolize/progress.h"

struct symbolizer;

/* 0 means the default. */
struct symbolizer_limits {
	uint32_t questions; /* queued ones; default 4096 */
	uint64_t bytes; /* of tables; default 48 MiB; a quarter of it in addition for mappings */
	uint32_t files; /* default 1024 */
};

struct symbolizer_config {
	struct symbolizer_limits limits;
	/*
	 * read variables, images and handles' targets in processes' memory if there is no other way; false:
	 * never
	 */
	bool read_memory;
	const char *proc_root; /* "/proc" but in tests */
	/* interval until a failed question is retried, and then four times that; 0: 250 ms */
	int64_t again_ns;
	int64_t patience_ns; /* until a thread that does not end is abandoned; 0: 600 ms */
	/* Files that are not read; must outlive the symbolizer. */
	const struct file_mark *avoided;
	uint32_t avoided_n;
	struct progress_lane *lane; /* of its thread; may be NULL */
};

struct symbolizer_question {
	uint64_t id; /* chosen by the caller */
	struct process_id process;
	/* of the process, see base/process_id.h; symbolizer_forget() uses it. 0: unknown */
	uint64_t incarnation;
	uint64_t function; /* as passed to the launch: host function or handle */
	uint16_t sm; /* of the device; 0 not known */
	/*
	 * The name that the handle was created from, or NULL; and its image in the process's memory or a
	 * file, or 0 and "".
	 */
	const char *symbol;
	bool symbol_last; /* a guess, used only where nothing else names the function */
	uint64_t image;
	const char *path;
	/* order among questions and images; 0: that of the calls */
	uint64_t seq;
};

/* An executable mapping that a stopped process is about to make, or a program that it is about to execute. */
struct symbolizer_mapping {
	pid_t pid;
	int fd; /* is duplicated */
	const char *path;
	bool execution;
	uint64_t address, length, offset; /* length 0: the address is not known yet */
};

struct symbolizer_answer {
	uint64_t id;
	struct kernel *kernel; /* the caller must unref it */
};

struct symbolizer_stats {
	uint64_t asked, answered, refused; /* refused: the queue was full */
	uint64_t named[KERNEL_SOURCES];
	uint64_t files, files_read, files_failed, evicted, kernels;
	uint64_t left_out; /* stubs and areas beyond a limit or unreadable */
	uint64_t images[CUBIN_COMPRESSIONS]; /* of device code, met in files */
	uint64_t bytes; /* of tables, now */
	double seconds; /* CPU of the thread */
};

int symbolizer_new(const struct symbolizer_config *config, struct symbolizer **ret_symbolizer);
/* Ends the thread; one that hangs in a file system is abandoned with all memory it refers to. */
void symbolizer_free(struct symbolizer *symbolizer);
DEFINE_CLEANUP(struct symbolizer *, symbolizer_free, symbolizer_freep)

/* Copies the question. -EAGAIN: the queue is full; try again later. */
int symbolizer_ask(struct symbolizer *symbolizer, const struct symbolizer_question *question);
/*
 * Reads the kernels of an image that a process is about to load from memory, which may be freed soon after,
 * for later questions about that image. @seq: as in a question.
 */
int symbolizer_image(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation, uint64_t address,
		     uint64_t seq);
/*
 * Reads the process's mappings now and stores them and the file, for questions that arrive after its end.
 * Reads only /proc/PID/maps. -EAGAIN: too many, counted as refused; -ESRCH.
 */
int symbolizer_look(struct symbolizer *symbolizer, const struct symbolizer_mapping *mapping);
/* The process has ended, or executes another program. */
void symbolizer_forget(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation);
/* Readable while there are answers. */
int symbolizer_fd(const struct symbolizer *symbolizer);
/* False: none now. */
bool symbolizer_take(struct symbolizer *symbolizer, struct symbolizer_answer *ret_answer);
void symbolizer_stats(struct symbolizer *symbolizer, struct symbolizer_stats *ret_stats);
