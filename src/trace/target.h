// SPDX-License-Identifier: Apache-2.0
/*
 * Who maps what: files that are mapped executable, by device and inode, and the processes that map them. A
 * scan of /proc at start, then the kernel's own mmap, exec, fork and exit records; where those are refused
 * (perf_event_paranoid) or were lost, scans again: once a second at most, and at most a twentieth of the
 * time.
 *
 * Invariants
 *  1. A file is opened once, through /proc/PID/map_files or /proc/PID/root, and checked to be the device
 *     and inode that is mapped: deleted, replaced and overlay files are the ones mapped, never what the path
 *     names now.
 *  2. gpusonde itself is no target.
 *  3. Nothing here waits: a file on a dead network file system is not opened unless its name or its
 *     process makes it a candidate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "trace/library.h"

enum { TARGET_FILES_MAX = 4096, TARGET_PROCESSES_MAX = 65536 };

struct targets;

/*
 * What a mapped file may be, from its name and who maps it; the contents decide. LIBRARY_BIT() of the
 * libraries it has the name of, and:
 */
enum target_role {
	/* every file of the processes that are followed: static copies of libraries */
	TARGET_ROLE_ANY = LIBRARY_BIT(PROBE_LIBRARIES),
};

struct target_file {
	uint64_t dev, ino;
	int fd; /* open for reading; the targets' own */
	const char *path; /* as the process has it, for people */
	void *data; /* the engine's */
	uint32_t processes; /* that map it now */
};

struct target_ops {
	/*
	 * A candidate was found. 0: it is a target, keep it open; -ENOENT: it is not, never ask again while
	 * it lies there.
	 */
	int (*file)(struct target_file *file, void *userdata);
	/* The last process that mapped it has been gone for two seconds, or it is closed: detach. */
	void (*file_gone)(struct target_file *file, void *userdata);
	/* A process maps a target for the first time; @tid is its in the initial namespace. */
	/* @since_ns: CLOCK_MONOTONIC, when it was known to map it. */
	void (*process)(pid_t pid, struct target_file *file, uint64_t since_ns, void *userdata);
	/*
	 * A process that maps targets has ended or executes something else; what it maps anew is told after
	 * this.
	 */
	void (*process_gone)(pid_t pid, bool exec, void *userdata);
	/*
	 * A library of the table that a process maps could not be opened; again and again, as often as it is
	 * met. May be NULL.
	 */
	void (*refused)(pid_t pid, const char *path, bool deleted, int error, void *userdata);
};

struct target_config {
	unsigned roles;
	pid_t pid; /* follow this one and, with @children, what it makes; 0: everybody */
	bool children;
	const char *proc_root; /* "/proc" but in tests */
};

struct target_stats {
	uint64_t files, processes; /* now */
	uint64_t records, records_lost, scans, files_refused, overflow;
	bool looked; /* the mapping that is being reported was found in /proc: it may be old */
	bool by_records; /* false: found by scanning only, new mappings show after up to a second */
	char why_no_records[640];
};

int targets_new(sd_event *event, const struct target_config *config, const struct target_ops *ops,
		void *userdata, struct targets **ret_targets);
void targets_free(struct targets *targets);
DEFINE_CLEANUP(struct targets *, targets_free, targets_freep)
/*
 * The whole of /proc, or the process followed: 5 ms of it at once, the rest in slices of the event loop. What
 * is found is reported from within.
 */
int targets_scan(struct targets *targets);
/*
 * A file that somebody is about to map (the command that "gpusonde trace" runs): as if it were mapped by @pid
 * now.
 */
int targets_offer(struct targets *targets, pid_t pid, int fd, const char *path);
/*
 * A file that processes will map, sooner or later: it is probed now, so that the first of them misses
 * nothing. To be called again now and then: when another file lies at @path, that one is expected instead.
 */
int targets_expect(struct targets *targets, const char *path);
/* The target of this device and inode, or NULL. */
struct target_file *targets_find(struct targets *targets, uint64_t dev, uint64_t ino);
/* Whether the kernel's records are refused to this process: 1, and why; 0: they are not. */
int targets_records_refused(char *buf, size_t size);
void targets_stats(const struct targets *targets, struct target_stats *ret_stats);
