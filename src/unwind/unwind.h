// SPDX-License-Identifier: Apache-2.0
/*
 * src/unwind (L2) is what is needed to unwind native frames, and to name them:
 *
 *   eh_frame.h   .eh_frame of a file: for each instruction, where its caller's registers are
 *   unwind.h     which files a process maps, and the kernel side's tables of their rows (bpf/unwind.h)
 *   names.h      addresses in files: functions
 *   perf_map.h   names of code that processes make for themselves
 *   debug_file.h files with the symbols of others
 *   reader.h     the helper that reads all these for the agent
 *
 * Invariants
 *  1. A row says what .eh_frame says, or that no rule is known. Nothing is guessed here.
 *  2. A file is read once for all processes, as long as it is held open, so that its inode is not used again.
 *     Where there is no room, one is given up that no process has mapped and of which nothing is to be named.
 *  3. Memory is bounded: the tables have a size; a file whose rows have no room is told as such.
 *  4. Files are read in steps of some milliseconds: the thread that drains the ring runs them. The agent
 *     reads none: a helper does (unwind_set_reader()), and no call blocks. Users share the tables there
 *     (base/user_shares.h), and the helper's time.
 *
 * No thread of its own: all runs in the thread that drains the ring.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "bpf/event.h"
#include "bpf/stack.h"

enum {
	UNWIND_FILES = 2048, /* that are known at once */
	UNWIND_PROCESSES = 1024,
};

/* File descriptors of the kernel side's maps. */
struct unwind_maps {
	int spaces, areas, rows, rules;
	uint32_t files; /* that are known at once; 0: UNWIND_FILES */
};

struct unwind;

int unwind_new(const struct unwind_maps *maps, struct unwind **ret_unwind);
void unwind_free(struct unwind *unwind);
DEFINE_CLEANUP(struct unwind *, unwind_free, unwind_freep)

/*
 * From now on a helper reads (unwind/reader.h), of which @event is the loop. To be called first. @program:
 * NULL: gpusonde-reader.
 */
int unwind_set_reader(struct unwind *unwind, sd_event *event, const char *program);
/* False: there is none. */
struct helper_stats;
bool unwind_reader_stats(const struct unwind *unwind, struct helper_stats *ret_stats);
struct unwind_names;
/* It also names these, as they come; NULL: none any more. */
void unwind_set_names(struct unwind *unwind, struct unwind_names *names);
/* No address is to be named any more. */
void unwind_forget_names(struct unwind *unwind);

/*
 * Reads which files @pid has mapped, if that has changed. Their rows are read by unwind_work(). With a helper
 * it is only asked to.
 */
int unwind_mapped(struct unwind *unwind, pid_t pid);
/*
 * What @pid has mapped may have changed: it is read again by unwind_work(), at most ten times a second, and
 * less often while nothing is found to have changed, but where it certainly has (@changed). False: it is not
 * listed.
 */
bool unwind_again(struct unwind *unwind, pid_t pid, bool changed);
/* When the first of these is, CLOCK_MONOTONIC; INT64_MAX: there is none. */
int64_t unwind_next_ns(const struct unwind *unwind);
/* Reads lists and files for some milliseconds. True: there is more to do now. */
bool unwind_work(struct unwind *unwind);
/* An EXEC or EXIT event: the process's list of mappings is given up. Others are ignored. */
void unwind_event(struct unwind *unwind, const struct trace_header *event);

/* Where an address lies. */
struct unwind_place {
	uint32_t file; /* of names.h; 0: of none */
	uint64_t address; /* as linked; of no file: in the process */
};

/* Of an address in a NATIVE event with this @space. -ENOENT: nothing is known there. */
int unwind_find(struct unwind *unwind, uint32_t space, uint64_t pc, struct unwind_place *ret_place);
/* How often there was no room for a file: others are in use, or have addresses that are to be named. */
uint64_t unwind_crowded(const struct unwind *unwind);
/* Whether it is no file, but the code that a process has made for itself: the descriptor is its perf map. */
bool unwind_is_made(const struct unwind *unwind, uint32_t file);
/* A file's path, as mapped; its descriptor, -1 if it is not open. */
const char *unwind_path(const struct unwind *unwind, uint32_t file, int *ret_fd);
