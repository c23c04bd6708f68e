// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by target*.c. Two sources find mappings: target_scan.c reads /proc, in time slices; target_records.c
 * reads the kernel's records, in time order. Both call targets_mapped() in target.c, possibly several times
 * for the same mapping. target_file.c holds the files and offers them to the engine, target_ask.c has
 * helpers open and read them, and target_process.c holds the processes and the targets that each maps.
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
#include "trace/users.h"

/* Targets in one process, and processes whose maps are to be read. */
enum { TARGET_PROCESS_FILES_MAX = 64, TARGET_QUEUE_MAX = 65536 };

/* A candidate file. Files that are not targets are stored, too, so that they are not read twice. */
struct target {
	struct target_file file; /* fd -1: not a target */
	uint64_t generation; /* from records; 0: unknown */
	/* ctime; with the size, distinguishes another file that got the same inode */
	struct timespec changed;
	off_t size;
	int64_t again_ns; /* not a target: when it may be read again at the earliest, even if it changed */
	unsigned roles; /* it was read for, by its names: mask of LIBRARY_BIT() */
	bool refused; /* to this user, for that reason: another may ask at once */
	uint64_t refused_user;
	enum target_unread why;
	char refused_type[32];
	int64_t idle_ns; /* when the last process stopped mapping it */
	bool rewritten; /* modified since it was probed, so its probes were removed */
	sd_event_source *watch;
	struct targets *targets; /* for the watch */
	bool expected; /* probed before the first process maps it */
	struct counted_sites counted; /* for @user */
	uint64_t user;
	uint32_t slot; /* in targets.files */
	char path[];
};

struct target_held {
	struct target *target;
	uint32_t looked; /* number of the last reading of the maps that had it */
	uint64_t since_ns; /* newest record of the mapping; an exec before it does not remove it */
};

struct target_process {
	bool followed;
	bool counted; /* for @user (users.h) */
	uint64_t user;
	uint32_t scan; /* number of the last scan that found it */
	struct process_id id;
	uint64_t since_ns; /* when it was first seen; an older fork record belongs to another process */
	uint64_t looked_ns; /* when its maps were last read; older records add nothing */
	uint16_t held_n;
	uint8_t unread; /* bits 1 << enum target_unread that were reported */
	struct target_held *held;
};

/* A mapping, from a scan or a record. */
struct target_mapping {
	pid_t pid;
	uint64_t start, end, dev, ino, generation;
	const char *path;
	size_t path_n;
	uint32_t looked; /* number of the reading of the maps that found it; 0: from a record */
	uint64_t time_ns; /* when it was mapped, or its maps were read */
};

struct target_scan {
	sd_event_source *timer;
	uint32_t number; /* of this scan, from 1 */
	bool running, wanted;
	DIR *proc;
	pid_t *queue; /* ring */
	uint32_t queue_head, queue_n;
	struct proc_maps *maps; /* of the current process; fd -1: none */
	pid_t pid;
	bool asked; /* a helper reads the maps of @pid */
	uint32_t looks; /* readings of a process's maps so far */
	uint64_t look_ns; /* when the current one began */
	int64_t cost_ns; /* of this scan so far */
	int64_t ended_ns;
};

struct target_ring {
	int fd;
	void *base; /* mapped: the control page, then the ring */
};

struct target_event {
	struct perf_record record;
	uint64_t order; /* order of reading, for records with equal times */
	char *path; /* owned */
};

struct target_records {
	int epoll;
	sd_event_source *io, *timer, *cpu_timer;
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
	struct readers *readers; /* NULL: files are read in this process */
	struct users users;
	struct pending_file *pending; /* asked for, and not attached or refused yet */
	uint32_t pending_n;
	sd_event_source *attaching; /* attaches to users' files that were read */
	int64_t attach_ns; /* not before this */
	sd_event_source *looking; /* looks at processes whose user had opened too many files */
	pid_t again[256];
	uint32_t again_n;
};

/* ---- target_file.c ---- */
int target_files_init(struct targets *targets);
void target_files_done(struct targets *targets);
/* The file with this identity, target or not; NULL: unknown, or modified and mapped by no process. */
struct target *target_file_current(struct targets *targets, uint64_t dev, uint64_t ino);
/* The maps of a process mark a file that was deleted or replaced. */
void target_file_refused(struct targets *targets, const struct target_mapping *mapping, int error);
/* For a file that is not a target: whether it was neither modified nor replaced since it was read. */
bool target_file_unchanged(const struct target *target, const struct target_mapping *mapping,
			   const struct stat *st);
/* Whether it was not read yet under this name. */
bool target_file_is_more(const struct target *target, const struct target_mapping *mapping);
/*
 * Adds a file and asks the engine whether it is a target. Takes ownership of @fd. @like: of_users and
 * no_user; NULL: neither.
 */
int target_file_offer(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		      int fd, const struct target_file *like, const struct site_list *sites,
		      struct target **ret_target);
/* Not a target, or not to be read, until @again_ns. */
int target_file_refuse(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		       int64_t again_ns);
/* What target_file_refuse() has noted holds for this user alone. */
void target_file_refuse_for(struct targets *targets, const struct target_mapping *mapping, uint64_t user,
			    enum target_unread why, const char *type);
/* All files at this path except @still are no longer expected. */
void target_file_unexpect(struct targets *targets, const char *path, const struct target *still);
/*
 * The file of a mapping, opened and offered if it is new. -ENOENT: not a target; -EINPROGRESS: a helper was
 * asked, and targets_mapped() will be called again.
 */
int target_file_get(struct targets *targets, const struct target_mapping *mapping,
		    struct target **ret_target);
/*
 * One process fewer maps it. A file that no process maps stays open and probed for two seconds, since another
 * process, or the same one after exec, often maps it soon.
 */
void target_file_release(struct targets *targets, struct target *target);
void target_file_uncount(struct targets *targets, uint64_t user, const struct counted_sites *counted);
void target_file_remove(struct targets *targets, struct target *target);

/* ---- target_ask.c ---- */
int target_ask_init(struct targets *targets);
void target_ask_done(struct targets *targets);
/* Who answers for it (users.h), and its user. */
int target_user_of(struct targets *targets, pid_t pid, uint64_t *ret_user, uint32_t *ret_uid);
/* Asks for the file of a mapping. -EINPROGRESS, or why it is not asked for. */
int target_ask_file(struct targets *targets, const struct target_mapping *mapping);
/* Whether a refusal is this mapping's, too, whose process is then marked; or another user's. */
bool target_ask_remembered(struct targets *targets, const struct target *target,
			   const struct target_mapping *mapping);
int target_ask_expected(struct targets *targets, const char *path);
/* Asks which candidates a process maps; targets_looked() has the answer. */
int target_ask_look(struct targets *targets, pid_t pid);
/* The process has ended or called exec: its mappings up to then are not waited for any more. */
void target_ask_forget(struct targets *targets, pid_t pid, uint64_t time_ns);
void target_ask_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns);

/* ---- target.c ---- */
unsigned target_wanted(const struct targets *targets, pid_t pid, const char *path, size_t path_n);
/* 0 also when the file is not a target. */
int targets_mapped(struct targets *targets, const struct target_mapping *mapping);

/* ---- target_process.c ---- */
struct target_process *targets_process(struct targets *targets, pid_t pid); /* NULL: unknown */
/* NULL: there are too many, of all or of its user. */
struct target_process *targets_process_add(struct targets *targets, pid_t pid, uint64_t time_ns);
/* Drops mappings that reading number @looked of the maps did not find. */
void targets_process_looked(struct targets *targets, struct target_process *process, uint32_t looked);
/* Invalidates @process: another one is moved into its place. */
void targets_process_gone(struct targets *targets, struct target_process *process);
/* Nothing is known of it that must be kept. */
static inline bool target_process_is_idle(const struct target_process *process)
{
	return process->held_n == 0 && !process->unread && !process->followed;
}
/* Records that @process maps @target; a second call only updates the time. -E2BIG: it maps too many. */
int target_process_hold(struct targets *targets, struct target_process *process, struct target *target,
			const struct target_mapping *mapping);
/* Counts a file that is not read, and reports it once for the process. */
void target_process_unread(struct targets *targets, pid_t pid, const char *path, enum target_unread why,
			   const char *type, uint64_t time_ns);
/* Invalidates @process, as above. */
void target_process_remove(struct targets *targets, struct target_process *process);
void targets_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns);
/* May remove @process. */
void targets_exec(struct targets *targets, struct target_process *process, uint64_t time_ns);

/* ---- target_scan.c ---- */
int targets_scan_init(struct targets *targets);
void targets_scan_done(struct targets *targets);
/* The answer to target_ask_look(). */
void targets_looked(struct targets *targets, pid_t pid, int error, const void *message, size_t n);
/* Queues one process for reading its maps. */
void targets_look(struct targets *targets, pid_t pid);
/* Scans as soon as the interval allows, since records were lost or CPUs came online. */
void targets_scan_again(struct targets *targets);

/* ---- target_records.c ---- */
int targets_records_init(struct targets *targets);
void targets_records_done(struct targets *targets);
/* Stores a record, in any order, until targets_records_handle(). */
void targets_record(struct targets *targets, const struct perf_record *record);
/* Handles records up to @until_ns. */
void targets_records_handle(struct targets *targets, uint64_t until_ns);
