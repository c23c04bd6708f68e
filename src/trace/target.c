// SPDX-License-Identifier: Apache-2.0
#include "trace/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/proc.h"
#include "trace/target_private.h"

#define LINGER_NS (2 * NSEC_PER_SEC)

enum { FILE_SHARE = 50 }; /* reading a file anew costs at most 1/50 of the time between two readings */

static void target_release(struct targets *targets, struct target *target);

/* ---- files ---- */

static uint64_t file_key(uint64_t dev, uint64_t ino)
{
	const uint64_t id[2] = { dev, ino };

	return hash_bytes(id, sizeof(id));
}

/* Two files whose hashes are equal: the first is kept, the other is not found, and counted by file_add(). */
static struct target *file_find(const struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target;
	uint32_t slot;

	if (!hashmap_get(&targets->by_file, file_key(dev, ino), &slot))
		return NULL;
	target = targets->files[slot];
	return target->file.dev == dev && target->file.ino == ino ? target : NULL;
}

static void file_remove(struct targets *targets, struct target *target)
{
	struct target *last = targets->files[--targets->files_n];

	hashmap_del(&targets->by_file, file_key(target->file.dev, target->file.ino));
	targets->files[target->slot] = last;
	last->slot = target->slot;
	if (last != target)
		hashmap_put(&targets->by_file, file_key(last->file.dev, last->file.ino), last->slot);
	if (target->file.fd >= 0) {
		targets->targets_n--;
		if (!target->rewritten)
			targets->ops->file_gone(&target->file, targets->userdata);
		close(target->file.fd);
	}
	sd_event_source_disable_unref(target->watch);
	free(target);
}

/*
 * Somebody writes into the file itself: probes would be put into what the next process finds at the old
 * places.
 */
static int on_modified(sd_event_source *source, _unused_ const struct inotify_event *event, void *userdata)
{
	struct target *target = userdata;

	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	target->rewritten = true;
	target->expected = false;
	target->targets->ops->file_gone(&target->file, target->targets->userdata);
	if (target->file.processes == 0)
		target_release(target->targets, target);
	return 0;
}

static void watch(struct targets *targets, struct target *target)
{
	char path[64];

	target->targets = targets;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", target->file.fd);
	/* Without a watch (too many, or none on this file system) it is as if nobody ever wrote. */
	if (sd_event_add_inotify(targets->event, &target->watch, path, IN_MODIFY, on_modified, target) < 0)
		target->watch = NULL;
}

/*
 * The file of that identity. One that was written into since is forgotten once nobody maps it; until then it
 * is not probed again.
 */
static struct target *file_current(struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target = file_find(targets, dev, ino);

	if (!target || !target->rewritten || target->file.processes > 0)
		return target;
	file_remove(targets, target);
	return NULL;
}

/* The memory of what is no target may go: the worst is to ask again. */
static void forget_refused(struct targets *targets)
{
	for (uint32_t i = targets->files_n; i-- > 0;)
		if (targets->files[i]->file.fd < 0)
			file_remove(targets, targets->files[i]);
}

static int file_add(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		    struct target **ret_target)
{
	uint64_t key = file_key(mapping->dev, mapping->ino);
	_cleanup_free_ struct target *target = NULL;
	uint32_t slot;
	int r;

	if (targets->files_n == TARGET_FILES_MAX)
		forget_refused(targets);
	if (targets->files_n == TARGET_FILES_MAX || hashmap_get(&targets->by_file, key, &slot)) {
		targets->stats.overflow++;
		return -E2BIG;
	}
	target = calloc(1, sizeof(*target) + mapping->path_n + 1);
	if (!target)
		return -ENOMEM;
	r = hashmap_put(&targets->by_file, key, targets->files_n);
	if (r < 0)
		return r;
	memcpy(target->path, mapping->path, mapping->path_n);
	target->file = (struct target_file){
		.dev = mapping->dev, .ino = mapping->ino, .fd = -1, .path = target->path
	};
	target->generation = mapping->generation;
	target->changed = st->st_ctim;
	target->size = st->st_size;
	target->slot = targets->files_n;
	targets->files[targets->files_n++] = target;
	*ret_target = TAKE_PTR(target);
	return 0;
}

/* Takes @fd. Whether the engine wants the file; either is remembered. */
static int file_offer(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		      int fd, struct target **ret_target)
{
	_cleanup_close_ int file_fd = fd;
	struct target *target;
	int64_t begun_ns;
	int r = file_add(targets, mapping, st, &target);

	if (r < 0)
		return r;
	target->file.fd = TAKE_FD(file_fd);
	targets->targets_n++;
	begun_ns = clock_mono_ns();
	r = targets->ops->file(&target->file, targets->userdata);
	target->again_ns = clock_mono_ns() + (clock_mono_ns() - begun_ns) * FILE_SHARE;
	if (r == 0) {
		watch(targets, target);
		*ret_target = target;
		return 0;
	}
	file_fd = TAKE_FD(target->file.fd);
	targets->targets_n--;
	if (r != -ENOENT)
		targets->stats.files_refused++;
	/* What is too much to read stays so until it changes. */
	if (r != -ENOENT && r != -E2BIG) {
		file_remove(targets, target);
		return r;
	}
	*ret_target = target;
	return 0;
}

/* What was found to be no target may be another file by now. */
static bool refused_still(struct target *target, const struct target_mapping *mapping, const struct stat *st)
{
	if (target->generation && mapping->generation && target->generation != mapping->generation)
		return false;
	return target->changed.tv_sec == st->st_ctim.tv_sec &&
	       target->changed.tv_nsec == st->st_ctim.tv_nsec && target->size == st->st_size;
}

/* Who has a file that is deleted or replaced shows it so. */
static void refused(struct targets *targets, const struct target_mapping *mapping, int error)
{
	static const char mark[] = " (deleted)";
	bool deleted = mapping->path_n >= strlen(mark) &&
		       memcmp(mapping->path + mapping->path_n - strlen(mark), mark, strlen(mark)) == 0;
	char path[256];

	if (error != -ESTALE && error != -ENOENT && error != -ESRCH)
		targets->stats.files_refused++;
	if (!targets->ops->refused || error == -ESRCH || !(deleted || error == -EACCES || error == -EPERM) ||
	    !(library_of_path(mapping->path, mapping->path_n) & ~library_companions()))
		return;
	snprintf(path, sizeof(path), "%.*s", (int)MIN(mapping->path_n, sizeof(path) - 1), mapping->path);
	targets->ops->refused(mapping->pid, path, deleted, error, targets->userdata);
}

/* The file of a mapping, opened and offered where it is new. -ENOENT: no target. */
static int file_get(struct targets *targets, const struct target_mapping *mapping, struct target **ret_target)
{
	struct target *target = file_current(targets, mapping->dev, mapping->ino);
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (!target || target->file.fd < 0) {
		r = target_open(targets->config.proc_root, mapping, &fd, &st);
		if (r < 0) {
			refused(targets, mapping, r);
			return r;
		}
		if (target && !refused_still(target, mapping, &st)) {
			/* Its owner could have it read for ever by touching it. */
			if (clock_mono_ns() < target->again_ns) {
				targets->stats.files_refused++;
				return -ENOENT;
			}
			file_remove(targets, target);
			target = NULL;
		}
	}
	if (!target) {
		r = file_offer(targets, mapping, &st, TAKE_FD(fd), &target);
		if (r < 0)
			return r;
	}
	if (target->file.fd < 0)
		return -ENOENT;
	*ret_target = target;
	return 0;
}

struct target_file *targets_find(struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target = file_find(targets, dev, ino);

	return target && target->file.fd >= 0 ? &target->file : NULL;
}

/* ---- processes ---- */

struct target_process *targets_process(struct targets *targets, pid_t pid)
{
	uint32_t index;

	return hashmap_get(&targets->by_pid, (uint64_t)pid, &index) ? &targets->processes[index] : NULL;
}

struct target_process *targets_process_add(struct targets *targets, pid_t pid, uint64_t time_ns)
{
	struct target_process *process = targets_process(targets, pid);
	uint32_t cap = targets->processes_cap;

	if (process)
		return process;
	if (targets->processes_n == TARGET_PROCESSES_MAX) {
		targets->stats.overflow++;
		return NULL;
	}
	if (targets->processes_n == cap) {
		cap = cap ? cap * 2 : 16;
		process = reallocarray(targets->processes, cap, sizeof(*process));
		if (!process)
			return NULL;
		targets->processes = process;
		targets->processes_cap = cap;
	}
	if (hashmap_put(&targets->by_pid, (uint64_t)pid, targets->processes_n) < 0)
		return NULL;
	process = &targets->processes[targets->processes_n++];
	*process = (struct target_process){ .id.pid = (uint32_t)pid,
					    .scan = targets->scan.number,
					    .since_ns = time_ns };
	proc_process_id(targets->config.proc_root, (uint32_t)pid, &process->id);
	return process;
}

/*
 * A file that nobody maps stays open and probed for a while: the next process that maps it may come at once,
 * or be the same after exec.
 */
static void target_release(struct targets *targets, struct target *target)
{
	uint64_t now;

	if (target->file.processes > 0 && --target->file.processes > 0)
		return;
	if (target->expected)
		return;
	target->idle_ns = clock_mono_ns();
	if (sd_event_now(targets->event, CLOCK_MONOTONIC, &now) < 0)
		return;
	sd_event_source_set_time(targets->reaper, now + LINGER_NS / NSEC_PER_USEC);
	sd_event_source_set_enabled(targets->reaper, SD_EVENT_ONESHOT);
}

static int on_reaper(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;
	int64_t now_ns = clock_mono_ns();
	bool more = false;

	for (uint32_t i = targets->files_n; i-- > 0;) {
		struct target *target = targets->files[i];

		if (target->file.fd < 0 || target->file.processes > 0 || target->expected)
			continue;
		if (now_ns - target->idle_ns >= LINGER_NS)
			file_remove(targets, target);
		else
			more = true;
	}
	if (!more)
		return 0;
	sd_event_source_set_time(source, usec + LINGER_NS / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void keep_held(struct targets *targets, struct target_process *process,
		      bool (*keep)(const struct target_held *held, uint64_t than), uint64_t than)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < process->held_n; i++) {
		struct target_held held = process->held[i];

		if (keep && keep(&held, than))
			process->held[kept++] = held;
		else
			target_release(targets, held.target);
	}
	process->held_n = kept;
	if (kept == 0) {
		free(process->held);
		process->held = NULL;
		process->companions_wanted = false;
	}
}

static bool held_looked(const struct target_held *held, uint64_t looked)
{
	return held->looked == looked;
}

static bool held_since(const struct target_held *held, uint64_t time_ns)
{
	return held->since_ns > time_ns;
}

void targets_process_looked(struct targets *targets, struct target_process *process, uint32_t looked)
{
	keep_held(targets, process, held_looked, looked);
}

static void process_remove(struct targets *targets, struct target_process *process)
{
	struct target_process *last = &targets->processes[--targets->processes_n];

	hashmap_del(&targets->by_pid, process->id.pid);
	if (last == process)
		return;
	*process = *last;
	hashmap_put(&targets->by_pid, process->id.pid, (uint32_t)(process - targets->processes));
}

void targets_process_gone(struct targets *targets, struct target_process *process)
{
	if (process->held_n)
		targets->ops->process_gone((pid_t)process->id.pid, false, targets->userdata);
	keep_held(targets, process, NULL, 0);
	process_remove(targets, process);
}

void targets_exec(struct targets *targets, struct target_process *process, uint64_t time_ns)
{
	if (process->held_n)
		targets->ops->process_gone((pid_t)process->id.pid, true, targets->userdata);
	keep_held(targets, process, held_since, time_ns);
	targets->stats.looked = false;
	for (uint16_t i = 0; i < process->held_n; i++)
		targets->ops->process((pid_t)process->id.pid, &process->held[i].target->file,
				      process->held[i].since_ns, targets->userdata);
	if (process->held_n == 0 && !process->followed)
		process_remove(targets, process);
}

static int hold(struct targets *targets, struct target_process *process, struct target *target,
		const struct target_mapping *mapping)
{
	struct target_held *held;

	for (uint16_t i = 0; i < process->held_n; i++)
		if (process->held[i].target == target) {
			process->held[i].looked = mapping->looked;
			process->held[i].since_ns = MAX(process->held[i].since_ns, mapping->time_ns);
			return 0;
		}
	if (process->held_n == TARGET_PROCESS_FILES_MAX) {
		targets->stats.overflow++;
		return -E2BIG;
	}
	held = reallocarray(process->held, process->held_n + 1U, sizeof(*held));
	if (!held)
		return -ENOMEM;
	process->held = held;
	held[process->held_n++] = (struct target_held){ .target = target,
							.looked = mapping->looked,
							.since_ns = mapping->time_ns };
	target->file.processes++;
	targets->stats.looked = mapping->looked != 0;
	targets->ops->process((pid_t)process->id.pid, &target->file, mapping->time_ns, targets->userdata);
	return 0;
}

void targets_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns)
{
	const struct target_mapping inherited = { .pid = child, .time_ns = time_ns };
	struct target_process *from = targets_process(targets, parent), *to;
	uint32_t from_index;

	if (!from || child == targets->own_pid ||
	    (from->held_n == 0 && !(from->followed && targets->config.children)))
		return;
	from_index = (uint32_t)(from - targets->processes);
	to = targets_process_add(targets, child, time_ns);
	if (!to)
		return;
	from = &targets->processes[from_index]; /* the array may have moved */
	to->followed = from->followed && targets->config.children;
	if (!to->followed && targets->config.pid) {
		process_remove(targets, to);
		return;
	}
	to->companions_wanted = from->companions_wanted;
	for (uint16_t i = 0; i < from->held_n; i++)
		hold(targets, to, from->held[i].target, &inherited);
}

/* ---- what is mapped ---- */

unsigned target_wanted(const struct targets *targets, pid_t pid, const char *path, size_t path_n)
{
	struct target_process *process;
	unsigned roles = library_of_path(path, path_n) & targets->config.roles;

	if (pid == targets->own_pid || path_n == 0)
		return 0;
	if (!targets->config.pid)
		return roles;
	process = targets_process((struct targets *)targets, pid);
	if (!process || !process->followed)
		return 0;
	return roles | (targets->config.roles & TARGET_ROLE_ANY);
}

int targets_mapped(struct targets *targets, const struct target_mapping *mapping)
{
	unsigned roles = target_wanted(targets, mapping->pid, mapping->path, mapping->path_n);
	struct target_process *process = targets_process(targets, mapping->pid);
	struct target *target;
	int r;

	if (!roles || (target_is_companion(roles) && !(process && process->companions_wanted)))
		return 0;
	r = file_get(targets, mapping, &target);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	process = targets_process_add(targets, mapping->pid, mapping->time_ns);
	r = process ? hold(targets, process, target, mapping) : -ENOMEM;
	if (r < 0) {
		if (target->file.processes == 0)
			target_release(targets, target);
		if (process && process->held_n == 0 && !process->followed)
			process_remove(targets, process);
		return r;
	}
	if (roles & ~(library_companions() | TARGET_ROLE_ANY) && !process->companions_wanted) {
		process->companions_wanted = true;
		/* Its libc was mapped before it was known that it matters. */
		if (targets->config.roles & library_companions() && !mapping->looked)
			targets_look(targets, mapping->pid);
	}
	return 0;
}

int targets_offer(struct targets *targets, pid_t pid, int fd, const char *path)
{
	struct target_mapping mapping = { .pid = pid, .path = path, .path_n = strlen(path) };
	struct target_process *process;
	struct target *target = NULL;
	struct stat st;
	int r, copy;

	if (pid == targets->own_pid)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	r = target_identify(fd, &mapping.dev, &mapping.ino);
	if (r < 0)
		return r;
	target = file_current(targets, mapping.dev, mapping.ino);
	if (target && target->file.fd < 0 && !refused_still(target, &mapping, &st)) {
		file_remove(targets, target);
		target = NULL;
	}
	if (!target) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		r = copy < 0 ? -errno : file_offer(targets, &mapping, &st, copy, &target);
		if (r < 0)
			return r;
	}
	mapping.time_ns = (uint64_t)clock_mono_ns();
	if (target->file.fd < 0 && !targets->config.pid)
		return 0;
	process = targets_process_add(targets, pid, mapping.time_ns);
	if (!process)
		return -ENOMEM;
	process->followed |= targets->config.pid != 0;
	return target->file.fd < 0 ? 0 : hold(targets, process, target, &mapping);
}

/* What was expected under this path is so no more, unless it is @still. */
static void unexpect(struct targets *targets, const char *path, const struct target *still)
{
	for (uint32_t i = 0; i < targets->files_n; i++) {
		struct target *target = targets->files[i];

		if (target == still || !target->expected || strcmp(target->file.path, path) != 0)
			continue;
		target->expected = false;
		if (target->file.processes == 0)
			target_release(targets, target);
	}
}

int targets_expect(struct targets *targets, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct target_mapping mapping = { .path = path, .path_n = strlen(path) };
	struct target *target = NULL;
	struct stat st;
	int r;

	if (fd < 0) {
		r = -errno;
		unexpect(targets, path, NULL);
		return r;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENOENT;
	r = target_identify(fd, &mapping.dev, &mapping.ino);
	if (r < 0)
		return r;
	target = file_current(targets, mapping.dev, mapping.ino);
	if (!target) {
		r = file_offer(targets, &mapping, &st, TAKE_FD(fd), &target);
		if (r < 0)
			return r;
	}
	target->expected = target->file.fd >= 0;
	unexpect(targets, path, target);
	return 0;
}

/* ---- the whole ---- */

void targets_stats(const struct targets *targets, struct target_stats *ret_stats)
{
	*ret_stats = targets->stats;
	ret_stats->files = targets->targets_n;
	ret_stats->processes = 0;
	for (uint32_t i = 0; i < targets->processes_n; i++)
		ret_stats->processes += targets->processes[i].held_n > 0;
}

void targets_free(struct targets *targets)
{
	if (!targets)
		return;
	targets_records_done(targets);
	targets_scan_done(targets);
	sd_event_source_disable_unref(targets->reaper);
	for (uint32_t i = 0; i < targets->processes_n; i++)
		free(targets->processes[i].held);
	while (targets->files_n)
		file_remove(targets, targets->files[targets->files_n - 1]);
	free(targets->processes);
	free(targets->files);
	hashmap_done(&targets->by_file);
	hashmap_done(&targets->by_pid);
	sd_event_unref(targets->event);
	free(targets);
}

int targets_new(sd_event *event, const struct target_config *config, const struct target_ops *ops,
		void *userdata, struct targets **ret_targets)
{
	_cleanup_(targets_freep) struct targets *targets = calloc(1, sizeof(*targets));
	struct target_process *process;
	int r;

	if (!targets)
		return -ENOMEM;
	targets->records.epoll = -1;
	targets->event = sd_event_ref(event);
	targets->config = *config;
	targets->ops = ops;
	targets->userdata = userdata;
	targets->own_pid = getpid();
	targets->files = calloc(TARGET_FILES_MAX, sizeof(struct target *));
	if (!targets->files)
		return -ENOMEM;
	if (config->pid) {
		process = targets_process_add(targets, config->pid, (uint64_t)clock_mono_ns());
		if (!process)
			return -ENOMEM;
		process->followed = true;
	}
	r = sd_event_add_time(targets->event, &targets->reaper, CLOCK_MONOTONIC, 0, 1, on_reaper, targets);
	if (r >= 0)
		r = sd_event_source_set_enabled(targets->reaper, SD_EVENT_OFF);
	if (r >= 0)
		r = targets_scan_init(targets);
	if (r >= 0)
		r = targets_records_init(targets);
	if (r < 0)
		return r;
	*ret_targets = TAKE_PTR(targets);
	return 0;
}
