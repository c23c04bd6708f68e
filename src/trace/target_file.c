// SPDX-License-Identifier: Apache-2.0
/* Files: candidates, which of them are targets, and when they are released. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/mapped.h"
#include "trace/target_private.h"

#define LINGER_NS (2 * NSEC_PER_SEC)

enum { FILE_SHARE = 50 }; /* rereading a changed file takes at most 1/50 of the time between two readings */

static uint64_t file_key(uint64_t dev, uint64_t ino)
{
	const uint64_t id[2] = { dev, ino };

	return hash_bytes(id, sizeof(id));
}

/* Where the hashes of two files are equal, the second is not stored, and file_add() counts it. */
static struct target *file_find(const struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target;
	uint32_t slot;

	if (!hashmap_get(&targets->by_file, file_key(dev, ino), &slot))
		return NULL;
	target = targets->files[slot];
	return target->file.dev == dev && target->file.ino == ino ? target : NULL;
}

void target_file_uncount(struct targets *targets, uint64_t user, const struct counted_sites *counted)
{
	if (!counted->any)
		return;
	users_detach_operators(&targets->users, user, counted->operators);
	users_detach(&targets->users, user, counted->sites);
}

void target_file_remove(struct targets *targets, struct target *target)
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
	target_file_uncount(targets, target->user, &target->counted);
	sd_event_source_disable_unref(target->watch);
	free(target);
}

/* The file was modified in place: its probes would hit arbitrary code in the next process. */
static void rewritten(struct target *target)
{
	/*
	 * Not only switched off: sd-event of systemd 252 loops for ever over an event of an inode whose
	 * sources are all off.
	 */
	target->watch = sd_event_source_disable_unref(target->watch);
	target->rewritten = true;
	target->expected = false;
	target->targets->ops->file_gone(&target->file, target->targets->userdata);
}

static int on_modified(_unused_ sd_event_source *source, _unused_ const struct inotify_event *event,
		       void *userdata)
{
	struct target *target = userdata;

	rewritten(target);
	if (target->file.processes == 0)
		target_file_release(target->targets, target);
	return 0;
}

static void watch(struct targets *targets, struct target *target)
{
	char path[64];

	target->targets = targets;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", target->file.fd);
	/* Without a watch (too many, or not supported by this file system) writes go unnoticed. */
	if (sd_event_add_inotify(targets->event, &target->watch, path, IN_MODIFY, on_modified, target) < 0)
		target->watch = NULL;
}

/* Between the reading of its sites and the watch. What a server would have to be asked is not known. */
static bool was_rewritten(const struct target *target)
{
	struct statx st;

	return statx(target->file.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_CTIME,
		     &st) == 0 &&
	       (st.stx_ctime.tv_sec != target->changed.tv_sec ||
		st.stx_ctime.tv_nsec != (uint32_t)target->changed.tv_nsec ||
		st.stx_size != (uint64_t)target->size);
}

/*
 * The file with this identity, or NULL. A file that was modified in place is not probed again while a process
 * maps it, and is removed here once none does.
 */
struct target *target_file_current(struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target = file_find(targets, dev, ino);

	if (!target || !target->rewritten || target->file.processes > 0)
		return target;
	target_file_remove(targets, target);
	return NULL;
}

/* Drops files that are not targets. They are read again if they are found again. */
static void drop_refused(struct targets *targets)
{
	for (uint32_t i = targets->files_n; i-- > 0;)
		if (targets->files[i]->file.fd < 0)
			target_file_remove(targets, targets->files[i]);
}

static int file_add(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		    struct target **ret_target)
{
	uint64_t key = file_key(mapping->dev, mapping->ino);
	_cleanup_free_ struct target *target = NULL;
	uint32_t slot;
	int r;

	if (targets->files_n == TARGET_FILES_MAX)
		drop_refused(targets);
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
	target->roles = library_of_path(mapping->path, mapping->path_n);
	target->generation = mapping->generation;
	target->changed = st->st_ctim;
	target->size = st->st_size;
	target->slot = targets->files_n;
	targets->files[targets->files_n++] = target;
	*ret_target = TAKE_PTR(target);
	return 0;
}

int target_file_refuse(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		       int64_t again_ns)
{
	struct target *target = file_find(targets, mapping->dev, mapping->ino);
	int r = target ? 0 : file_add(targets, mapping, st, &target);

	if (r == 0) {
		target->roles |= library_of_path(mapping->path, mapping->path_n);
		target->again_ns = again_ns;
		target->refused = false;
	}
	return r;
}

int target_file_offer(struct targets *targets, const struct target_mapping *mapping, const struct stat *st,
		      int fd, const struct target_file *like, const struct site_list *sites,
		      struct target **ret_target)
{
	_cleanup_close_ int file_fd = fd;
	struct target *target;
	int64_t begun_ns;
	int r = file_add(targets, mapping, st, &target);

	if (r < 0)
		return r;
	target->file.fd = TAKE_FD(file_fd);
	target->file.of_users = like && like->of_users;
	target->file.no_patterns = like && like->no_patterns;
	target->file.no_user = like && like->no_user;
	targets->targets_n++;
	begun_ns = clock_mono_ns();
	r = targets->ops->file(&target->file, sites, targets->userdata);
	target->again_ns = clock_mono_ns() + (clock_mono_ns() - begun_ns) * FILE_SHARE;
	if (r == 0) {
		watch(targets, target);
		if (was_rewritten(target))
			rewritten(target);
		*ret_target = target;
		return 0;
	}
	file_fd = TAKE_FD(target->file.fd);
	targets->targets_n--;
	if (r != -ENOENT)
		targets->stats.files_refused++;
	/* With -E2BIG, too, the file is kept: it stays too large until it changes. */
	if (r != -ENOENT && r != -E2BIG) {
		target_file_remove(targets, target);
		return r;
	}
	*ret_target = target;
	return 0;
}

bool target_file_is_more(const struct target *target, const struct target_mapping *mapping)
{
	return library_of_path(mapping->path, mapping->path_n) & ~target->roles;
}

bool target_file_unchanged(const struct target *target, const struct target_mapping *mapping,
			   const struct stat *st)
{
	if (target->generation && mapping->generation && target->generation != mapping->generation)
		return false;
	return target->changed.tv_sec == st->st_ctim.tv_sec &&
	       target->changed.tv_nsec == st->st_ctim.tv_nsec && target->size == st->st_size;
}

void target_file_refused(struct targets *targets, const struct target_mapping *mapping, int error)
{
	static const char mark[] = " (deleted)";
	bool deleted = mapping->path_n >= strlen(mark) &&
		       memcmp(mapping->path + mapping->path_n - strlen(mark), mark, strlen(mark)) == 0;
	char path[256];

	if (error != -ESTALE && error != -ENOENT && error != -ESRCH)
		targets->stats.files_refused++;
	if (!targets->ops->refused || error == -ESRCH || !(deleted || error == -EACCES || error == -EPERM) ||
	    !library_of_path(mapping->path, mapping->path_n))
		return;
	snprintf(path, sizeof(path), "%.*s", (int)MIN(mapping->path_n, sizeof(path) - 1), mapping->path);
	targets->ops->refused(mapping->pid, path, deleted, error, targets->userdata);
}

void target_file_refuse_for(struct targets *targets, const struct target_mapping *mapping, uint64_t user,
			    enum target_unread why, const char *type)
{
	struct target *target = target_file_current(targets, mapping->dev, mapping->ino);

	if (!target || target->file.fd >= 0)
		return;
	target->refused = true;
	target->refused_user = user;
	target->why = why;
	snprintf(target->refused_type, sizeof(target->refused_type), "%s", type);
}

static int open_here(const char *root, const struct target_mapping *mapping, int *ret_fd, struct stat *ret_st)
{
	const struct proc_mapped mapped = { .pid = mapping->pid,
					    .start = mapping->start,
					    .end = mapping->end,
					    .dev = mapping->dev,
					    .ino = mapping->ino,
					    .path = mapping->path,
					    .path_n = mapping->path_n };

	return proc_mapped_open(root, &mapped, ret_fd, ret_st);
}

int target_file_get(struct targets *targets, const struct target_mapping *mapping, struct target **ret_target)
{
	struct target *target = target_file_current(targets, mapping->dev, mapping->ino);
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (targets->readers && (!target || target->file.fd < 0)) {
		/* Otherwise its owner could have it read all the time by touching it. */
		if (target && clock_mono_ns() < target->again_ns && !target_file_is_more(target, mapping) &&
		    target_ask_remembered(targets, target, mapping))
			return -ENOENT;
		return target_ask_file(targets, mapping);
	}
	if (!target || target->file.fd < 0) {
		r = open_here(targets->config.proc_root, mapping, &fd, &st);
		if (r < 0) {
			target_file_refused(targets, mapping, r);
			return r;
		}
		if (target && target_file_is_more(target, mapping)) {
			target_file_remove(targets, target);
			target = NULL;
		}
		if (target && !target_file_unchanged(target, mapping, &st)) {
			if (clock_mono_ns() < target->again_ns) {
				targets->stats.files_refused++;
				return -ENOENT;
			}
			target_file_remove(targets, target);
			target = NULL;
		}
	}
	if (!target) {
		r = target_file_offer(targets, mapping, &st, TAKE_FD(fd), NULL, NULL, &target);
		if (r < 0)
			return r;
	}
	if (target->file.fd < 0)
		return -ENOENT;
	*ret_target = target;
	return 0;
}

/* ---- files that no process maps ---- */

void target_file_release(struct targets *targets, struct target *target)
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
			target_file_remove(targets, target);
		else
			more = true;
	}
	if (!more)
		return 0;
	sd_event_source_set_time(source, usec + LINGER_NS / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void target_file_unexpect(struct targets *targets, const char *path, const struct target *still)
{
	for (uint32_t i = 0; i < targets->files_n; i++) {
		struct target *target = targets->files[i];

		if (target == still || !target->expected || strcmp(target->file.path, path) != 0)
			continue;
		target->expected = false;
		if (target->file.processes == 0)
			target_file_release(targets, target);
	}
}

int targets_expect(struct targets *targets, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct target_mapping mapping = { .path = path, .path_n = strlen(path) };
	struct target *target = NULL;
	struct stat st;
	int r;

	if (targets->readers)
		return target_ask_expected(targets, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		r = -errno;
		target_file_unexpect(targets, path, NULL);
		return r;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENOENT;
	r = proc_maps_identify(fd, &mapping.dev, &mapping.ino);
	if (r < 0)
		return r;
	target = target_file_current(targets, mapping.dev, mapping.ino);
	if (!target) {
		r = target_file_offer(targets, &mapping, &st, TAKE_FD(fd), NULL, NULL, &target);
		if (r < 0)
			return r;
	}
	target->expected = target->file.fd >= 0;
	target_file_unexpect(targets, path, target);
	return 0;
}

struct target_file *targets_find(struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct target *target = file_find(targets, dev, ino);

	return target && target->file.fd >= 0 ? &target->file : NULL;
}

int target_files_init(struct targets *targets)
{
	int r;

	targets->files = calloc(TARGET_FILES_MAX, sizeof(struct target *));
	if (!targets->files)
		return -ENOMEM;
	r = sd_event_add_time(targets->event, &targets->reaper, CLOCK_MONOTONIC, 0, 1, on_reaper, targets);
	return r < 0 ? r : sd_event_source_set_enabled(targets->reaper, SD_EVENT_OFF);
}

void target_files_done(struct targets *targets)
{
	sd_event_source_disable_unref(targets->reaper);
	while (targets->files_n)
		target_file_remove(targets, targets->files[targets->files_n - 1]);
	free(targets->files);
	hashmap_done(&targets->by_file);
}
