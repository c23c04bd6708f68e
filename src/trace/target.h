// SPDX-License-Identifier: Apache-2.0
/*
 * Targets: files that are mapped executable, by device and inode, and the processes that map them. They are
 * found by a scan of /proc at start, then by the kernel's mmap, exec, fork and exit records. Where these
 * records are refused (perf_event_paranoid) or were lost, /proc is scanned again, at most once a second and
 * for at most a twentieth of the time.
 *
 * Invariants
 *  1. A file is opened once, through /proc/PID/map_files or /proc/PID/root, and checked to have the mapped
 *     device and inode. A deleted, replaced or overlay file is thus the mapped one, not the one that its path
 *     names now.
 *  2. gpusonde itself is not a target.
 *  3. To avoid blocking on a dead network file system, a file is opened only if its name or its process makes
 *     it a candidate.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "trace/library.h"
#include "trace/readers.h"

enum { TARGET_FILES_MAX = 4096, TARGET_PROCESSES_MAX = 65536 };

struct targets;

/*
 * What a mapped file may be, judged by its name and the process that maps it; its contents decide. A mask of
 * the LIBRARY_BIT() of the libraries whose name it has, and:
 */
enum target_role {
	/* every file of a followed process, which may have libraries linked in statically */
	TARGET_ROLE_ANY = 1 << 30,
};

/* Why a file is not read. */
enum target_unread {
	TARGET_UNTRUSTED, /* its pages could be withheld (proc/trust.h) */
	TARGET_BEYOND_SHARE, /* its user has more files or sites than a share */
	TARGET_BARRED, /* reading for its user hung or crashed */
	TARGET_UNREADS,
};

struct target_file {
	uint64_t dev, ino;
	int fd; /* open for reading; owned by struct targets */
	const char *path; /* as in the process's maps, for messages */
	void *data; /* owned by the engine */
	uint32_t processes; /* number that map it now */
	bool of_users; /* users can write to it, or it is a container's */
	bool no_patterns; /* no functions that patterns find: the same */
	bool no_user; /* none of the user's probes in it: its user's share has no room for them */
};

struct target_ops {
	/*
	 * A candidate was found. Returns 0: it is a target and stays open; -ENOENT: it is not a target, and
	 * is not offered again until it changes. @sites: of a file that a helper read; else NULL.
	 */
	int (*file)(struct target_file *file, const struct site_list *sites, void *userdata);
	/*
	 * It is to be detached: no process has mapped it for two seconds, it was modified, or it is closed.
	 */
	void (*file_gone)(struct target_file *file, void *userdata);
	/*
	 * A process maps a target for the first time. @since_ns: when it was known to map it,
	 * CLOCK_MONOTONIC.
	 */
	void (*process)(pid_t pid, struct target_file *file, uint64_t since_ns, void *userdata);
	/*
	 * A process has mapped a file with code, a target or not, by a record of the kernel. May be NULL.
	 */
	void (*mapping)(pid_t pid, void *userdata);
	/*
	 * A process that maps targets has ended or called exec. Mappings after the exec are reported after
	 * this.
	 */
	void (*process_gone)(pid_t pid, bool exec, void *userdata);
	/*
	 * A process maps a file that is not read, so what calls it is not traced. Once for each process and
	 * reason. @type: of its file system, "" if unknown. May be NULL.
	 */
	void (*unread)(pid_t pid, const char *path, enum target_unread why, const char *type, void *userdata);
	/*
	 * A library of the table that a process maps could not be opened. Called each time it is found. May
	 * be NULL.
	 */
	void (*refused)(pid_t pid, const char *path, bool deleted, int error, void *userdata);
};

struct target_config {
	unsigned roles;
	pid_t pid; /* follow this process and, with @children, its descendants; 0: all processes */
	bool children;
	const char *proc_root; /* "/proc", except in tests */
	/*
	 * How helpers read what users chose. NULL: in this process, at once, and whatever its file system,
	 * for commands that trace what their user started.
	 */
	const struct readers_config *reading;
};

struct target_stats {
	uint64_t files, processes; /* now */
	uint64_t records, records_lost, scans, files_refused, overflow;
	uint64_t unread[TARGET_UNREADS]; /* mapped files that were not read */
	uint32_t user_sites; /* attached now in files that count for users (trace/users.h) */
	struct readers_stats readers;
	bool looked; /* the mapping that is being reported was found in /proc, and may be old */
	bool by_records; /* false: /proc is only scanned, and new mappings are found up to a second late */
	char why_no_records[640];
};

int targets_new(sd_event *event, const struct target_config *config, const struct target_ops *ops,
		void *userdata, struct targets **ret_targets);
void targets_free(struct targets *targets);
DEFINE_CLEANUP(struct targets *, targets_free, targets_freep)
/*
 * Scans all of /proc, or the followed processes: 5 ms at once, the rest in slices from the event loop. Calls
 * target_ops for what it finds.
 */
int targets_scan(struct targets *targets);
/* Adds a file that @pid is about to map (the command of "gpusonde trace"), as if it were mapped now. */
int targets_offer(struct targets *targets, pid_t pid, int fd, const char *path);
/*
 * Probes a file before any process maps it, so that no call of the first one is missed. Must be called again
 * from time to time: if another file is at @path by then, it replaces the expected one.
 */
int targets_expect(struct targets *targets, const char *path);
/* The target of this device and inode, or NULL. */
struct target_file *targets_find(struct targets *targets, uint64_t dev, uint64_t ino);
/* 1: the kernel refuses its records to this process, and @buf has the reason; 0: it does not. */
int targets_records_refused(char *buf, size_t size);
void targets_stats(const struct targets *targets, struct target_stats *ret_stats);
