// SPDX-License-Identifier: Apache-2.0
/*
 * How target*.c divide the work. Two sources find mappings: target_scan.c reads /proc, a slice at a time;
 * target_records.c reads the kernel's records, in the order of their times. Both call targets_mapped() in
 * target.c, for the same mapping any number of times. target_file.c holds the files and offers them to the
 * engine, target_open.c opens them, target_process.c holds the processes and what each maps.
 */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/process_id.h"
#include "proc/maps.h"
#include "trace/perf_record.h"
#include "trace/target.h"

enum {
	TARGET_PROCESS_FILES_MAX = 64, /* targets in one process */
	TARGET_QUEUE_MAX = 65536, /* processes waiting to be looked at */
};

/* A candidate file. One that is no target is stored, too, so that it is not read twice. */
struct target {
	struct target_file file; /* fd -1: no target */
	uint64_t generation; /* from records; 0: not known */
	/* with the size: distinguishes another file that got the same inode */
	struct timespec changed;
	off_t size;
	int64_t again_ns; /* no target: not read again before, even if it changed */
	int64_t idle_ns; /* since when no process maps it */
	bool rewritten; /* written into since it was probed: its probes are gone */
	sd_event_source *watch;
	struct targets *targets; /* for the watch */
	bool expected; /* probed before the first process maps it */
	uint32_t slot; /* in targets.files */
	char path[];
};

struct target_held {
	struct target *target;
	uint32_t looked; /* last look at the maps that showed it */
	uint64_t since_ns; /* newest record that it is mapped: an earlier exec changes nothing */
};

struct target_process {
	bool followed;
	bool companions_wanted; /* it maps a library that is traced: its libc is a candidate */
	uint32_t scan; /* last scan that met it */
	struct process_id id;
	uint64_t since_ns; /* when it was first seen: an older fork is of another process */
	uint64_t looked_ns; /* when its maps were last read: they include older records */
	uint16_t held_n;
	struct target_held *held;
};

/* A mapping, from a scan or a record. */
struct target_mapping {
	pid_t pid;
	uint64_t start, end, dev, ino, generation;
	const char *path;
	size_t path_n;
	uint32_t looked; /* scans: which look */
	uint64_t time_ns; /* when this was so */
};

struct target_scan {
	sd_event_source *timer;
	uint32_t number; /* of this scan, from 1 */
	bool running, wanted;
	DIR *proc;
	pid_t *queue; /* ring */
	uint32_t queue_head, queue_n;
	struct proc_maps *maps; /* of the process being looked at; fd -1: none */
	pid_t pid;
	uint32_t looks;
	uint64_t look_ns; /* when this look began */
	struct proc_map libc; /* of the process being looked at, seen before a library that is traced */
	char libc_path[512];
	int64_t cost_ns; /* of this scan so far */
	int64_t ended_ns;
};

struct target_ring {
	int fd;
	void *base; /* mapped: a page of control, then the ring */
};

struct target_event {
	struct perf_record record;
	uint64_t order; /* equal times stay in the order they were read */
	char *path; /* owned */
};

struct target_records {
	int epoll;
	sd_event_source *io, *timer, *keeper;
	struct target_ring *rings;
	uint32_t rings_n;
	char online[256]; /* CPUs, as the kernel writes it */
	struct target_event *events; /* read, not yet handled */
	size_t events_n, events_cap;
	uint64_t order;
};

struct targets {
	sd_event *event;
	struct target_config config;
	const struct target_ops *ops;
	void *userdata;
	pid_t own_pid;
	struct target **files; /* dense */
	uint32_t files_n, targets_n;
	struct hashmap by_file; /* hash of device and inode: slot */
	struct target_process *processes; /* dense */
	uint32_t processes_n, processes_cap;
	struct hashmap by_pid;
	sd_event_source *reaper;
	struct target_scan scan;
	struct target_records records;
	struct target_stats stats;
};

/* ---- target_file.c ---- */
int target_files_init(struct targets *targets);
void target_files_done(struct targets *targets);
/* The file of that identity, target or not; NULL: not known, or written into and mapped by no process. */
struct target *target_file_current(struct targets *targets, uint64_t dev, uint64_t ino);
/* No target, and neither written to nor replaced since. */
bool target_file_unchanged(const struct target *target, const struct target_mapping *mapping,
			   const struct stat *st);
/* Adds a file and asks the engine whether it is a target. Takes @fd. */
int target_file_offer(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		      int fd, struct target **ret_target);
/* The file of a mapping, opened and offered where it is new. -ENOENT: no target. */
int target_file_get(struct targets *targets, const struct target_mapping *mapping,
		    struct target **ret_target);
/*
 * One process fewer maps it. A file that no process maps stays open and probed for a while: the next process
 * may map it at once, or be the same after exec.
 */
void target_file_release(struct targets *targets, struct target *target);
void target_file_remove(struct targets *targets, struct target *target);

/* ---- target.c ---- */
/* Whether nothing but companions has this name (struct library). */
static inline bool target_is_companion(unsigned roles)
{
	return roles && !(roles & ~library_companions());
}
unsigned target_wanted(const struct targets *targets, pid_t pid, const char *path, size_t path_n);
/* 0, also when the file is no target. */
int targets_mapped(struct targets *targets, const struct target_mapping *mapping);

/* ---- target_process.c ---- */
struct target_process *targets_process(struct targets *targets, pid_t pid); /* NULL: not known */
struct target_process *targets_process_add(struct targets *targets, pid_t pid, uint64_t time_ns);
/* Drops what the look @looked did not show. */
void targets_process_looked(struct targets *targets, struct target_process *process, uint32_t looked);
/* @process is another one after this, or none. */
void targets_process_gone(struct targets *targets, struct target_process *process);
/* @process maps @target; a second call only updates the time. -E2BIG: it maps too many. */
int target_process_hold(struct targets *targets, struct target_process *process, struct target *target,
			const struct target_mapping *mapping);
/* @process is another one after this, or none. */
void target_process_remove(struct targets *targets, struct target_process *process);
void targets_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns);
/* @process may be gone after this. */
void targets_exec(struct targets *targets, struct target_process *process, uint64_t time_ns);

/* ---- target_scan.c ---- */
int targets_scan_init(struct targets *targets);
void targets_scan_done(struct targets *targets);
/* Looks at one process soon. */
void targets_look(struct targets *targets, pid_t pid);
/* A scan as soon as the interval allows: records were lost, CPUs came. */
void targets_scan_again(struct targets *targets);

/* ---- target_records.c ---- */
int targets_records_init(struct targets *targets);
void targets_records_done(struct targets *targets);
/* In any order; handled when their time has come. */
void targets_record(struct targets *targets, const struct perf_record *record);
/* Handles what is not newer than @until_ns. */
void targets_records_handle(struct targets *targets, uint64_t until_ns);

/* ---- target_open.c ---- */
/*
 * Opens the mapped file, and no other, for reading. -ESTALE: another file is mapped there now; -ENOTSUP: no
 * regular file.
 */
int target_open(const char *root, const struct target_mapping *mapping, int *ret_fd, struct stat *ret_st);
/* Device and inode as maps would show them. */
int target_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino);
